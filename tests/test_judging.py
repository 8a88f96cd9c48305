"""The quick judge of freshness says what the plain rule says, over any updates and any basis."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from smartcache import ChunkRef, KnowledgeUpdate
from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.sameness import content_of
from smartcache.storage.columns import basis_from, basis_text
from smartcache.testing import chunk

SOURCES, IDS, TEXTS = ["", "a", "a", "b"], ["1", "2"], ["house", "house", "house ", "garden"]


def some(*ids: str, max_size: int = 2) -> st.SearchStrategy:
    one = st.builds(
        lambda id, text, version, source: chunk(id, text, source=source, **({"version": version} if version else {})),
        st.sampled_from(ids),
        st.sampled_from(TEXTS),
        st.sampled_from(["", "", "v1"]),
        st.sampled_from(SOURCES),
    )
    return st.lists(one, max_size=max_size, unique_by=lambda one: (one.ref.source, one.ref.id))


removed = st.sets(st.sampled_from(IDS), max_size=2)
updates = st.builds(KnowledgeUpdate, some(*IDS), some(*IDS), removed, st.sampled_from(SOURCES), st.booleans())
bases = st.builds(
    lambda found, evidence, others, is_all, is_known, sequence, checked: Basis(
        frozenset(one.ref for one in (found if is_all else [*evidence, *others])) if is_known else None,
        None if not is_all and others else frozenset(one.ref for one in found),
        sequence,
        {one.ref: content_of(one) for one in (*found, *evidence)},
        checked,
    ),
    some(*IDS, "never told"),
    some(*IDS, "never told", max_size=1),
    some(*IDS, max_size=1),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    st.integers(0, 4),
    st.sampled_from([None, None, 0, 2, 4]),
)


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

    if came_in(own, "added") or (basis.checked is not None and came_in(own, "changed")):
        return Verdict.DOUBTFUL
    if basis.found == frozenset() and came_in(any_one, "added"):
        return Verdict.DOUBTFUL
    is_other = not is_found or came_in(any_one, "added", "changed", "moved")
    return Verdict.RECHECK if basis.found is not None and is_other else Verdict.CURRENT


@given(st.lists(updates, max_size=4), st.lists(bases, min_size=4, max_size=12))
@settings(max_examples=300)
def test_the_quick_judge_says_what_the_plain_rule_says(history, made):
    knowledge = Knowledge()
    for update in history:
        knowledge.apply(update)
    for basis in made:
        assert knowledge.judge(basis) is plain(knowledge, basis)


@given(st.lists(updates, max_size=3), st.lists(updates, max_size=2), st.lists(bases, min_size=1, max_size=4))
def test_so_does_one_that_was_told_by_another(history, later, made):
    one, other, third = Knowledge(), Knowledge(), Knowledge()
    for update in history:
        other.take(one.apply(update))
    assert [*map(other.judge, made)] == [*map(one.judge, made)]
    third.become(other)
    for update in later:
        third.apply(update, is_shared=False)
    assert [*map(third.judge, made)] == [plain(third, basis) for basis in made]


@given(bases)
def test_a_basis_comes_back_from_its_column_as_it_was(basis):
    kept = basis_from(basis_text(basis), basis.checked)
    assert kept == basis
    assert kept.contents == basis.contents
