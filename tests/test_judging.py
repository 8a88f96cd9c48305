"""The quick judge of freshness says what the plain rule says, over any updates and any basis."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from smartcache import ChunkRef, KnowledgeUpdate
from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.sameness import content_of
from smartcache.storage.columns import basis_from, basis_text
from smartcache.testing import chunk

SOURCES, IDS, TEXTS = ["", "a", "a", "a", "b"], ["1", "2"], ["house", "house ", "garden"]


def one(*ids: str) -> st.SearchStrategy:
    return st.builds(
        lambda id, text, version, source: chunk(id, text, source=source, **({"version": version} if version else {})),
        st.sampled_from(ids),
        st.sampled_from(TEXTS),
        st.sampled_from(["", "v1", "v2"]),
        st.sampled_from(SOURCES),
    )


def some(one: st.SearchStrategy, max_size: int = 2) -> st.SearchStrategy:
    return st.lists(one, max_size=max_size, unique_by=lambda one: (one.ref.source, one.ref.id))


removed = st.sets(st.sampled_from(IDS), max_size=2)
news = some(one(*IDS))
updates = st.builds(KnowledgeUpdate, news, news, removed, st.sampled_from(SOURCES), st.booleans())


def bases(history) -> st.SearchStrategy:
    """What answers may rest on: most often chunks that updates told of."""
    told = [replace(c, ref=replace(c.ref, source=c.ref.source or u.source)) for u in history for c in u.added]
    known = st.sampled_from(told) if told else one(*IDS)
    anyhow = some(known | known | one(*IDS, "never told"))
    return st.builds(
        lambda found, evidence, is_all, is_known, is_searched, sequence, checked: Basis(
            frozenset(one.ref for one in (found if is_all else evidence)) if is_known else None,
            frozenset(one.ref for one in found) if is_searched else None,
            sequence,
            {one.ref: content_of(one) for one in found},
            checked,
        ),
        anyhow,
        anyhow,
        st.booleans(),
        st.sampled_from([True, True, True, False]),
        st.booleans(),
        st.integers(0, 4),
        st.sampled_from([None, None, 0, 2, 4]),
    )


def after(*sizes: int) -> st.SearchStrategy:
    """Updates, in as many parts, and what may be judged after them."""
    parts = st.tuples(*(st.lists(updates, max_size=size) for size in sizes))
    made = lambda told: st.lists(bases([*chain(*told)]), min_size=6, max_size=8)  # noqa: E731
    return parts.flatmap(lambda told: st.tuples(st.just(told), made(told)))


def plain(knowledge: Knowledge, basis: Basis) -> Verdict:
    """The rule, with nothing left out because it is seen to be so."""
    if basis.evidence is None:
        return Verdict.CURRENT if knowledge._sequence <= basis.sequence else Verdict.STALE

    def is_current(ref: ChunkRef) -> bool:
        return knowledge._is_current(ref, basis.contents.get(ref), basis.sequence)

    if not all(map(is_current, basis.evidence)):
        return Verdict.STALE
    found = basis.found or frozenset()
    is_found = all(map(is_current, found - basis.evidence))
    since = max(basis.sequence, basis.checked or 0) if is_found else basis.sequence
    sources = {ref.source for ref in basis.evidence | found}

    def came_in(of, *kinds: str) -> bool:
        spans = [
            g for (source, kind), known in knowledge._growth.items() if of(source) and kind in kinds for g in known
        ]
        return any(grown.since <= since < grown.until for grown in spans)

    def own(source: str) -> bool:
        return bool(sources) and (source in sources or source == "" or "" in sources)

    def any_one(source: str) -> bool:
        return True

    if came_in(own, "added") or (basis.checked is not None and came_in(any_one, "added", "changed")):
        return Verdict.DOUBTFUL
    if basis.found == frozenset() and came_in(any_one, "added"):
        return Verdict.DOUBTFUL
    is_other = not is_found or came_in(any_one, "added", "changed", "moved")
    return Verdict.RECHECK if basis.found is not None and is_other else Verdict.CURRENT


@given(after(4))
@settings(max_examples=300)
def test_the_quick_judge_says_what_the_plain_rule_says(told):
    ((history,), made), knowledge = told, Knowledge()
    for update in history:
        knowledge.apply(update)
    assert [*map(knowledge.judge, made)] == [plain(knowledge, basis) for basis in made]


@given(after(3, 2))
def test_so_does_one_that_was_told_by_another(told):
    (history, later), made = told
    one, other, third = Knowledge(), Knowledge(), Knowledge()
    for update in history:
        other.take(one.apply(update))
    assert [*map(other.judge, made)] == [*map(one.judge, made)]
    third.become(other)
    for update in later:
        third.apply(update, is_shared=False)
    assert [*map(third.judge, made)] == [plain(third, basis) for basis in made]


@given(bases([]))
def test_a_basis_comes_back_from_its_column_as_it_was(basis):
    kept = basis_from(basis_text(basis), basis.checked)
    assert kept == basis
    assert kept.contents == basis.contents
