"""Freshness as a property: against a plain list of what the knowledge base held at each moment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcache import ChunkRef, KnowledgeUpdate
from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.testing import chunk

IDS = "abc"
changes = st.lists(st.dictionaries(st.sampled_from(IDS), st.sampled_from(["one", "two", None])), max_size=8)


@given(changes, st.sets(st.sampled_from(IDS)), st.integers(0, 8))
def test_an_answer_is_never_current_on_other_text_than_it_was_made_from(history, used, made_at):
    knowledge, texts = Knowledge(), dict.fromkeys(IDS, "one")
    knowledge.apply(KnowledgeUpdate(added=[chunk(id, text) for id, text in texts.items()]))
    basis, has_moved = None, False
    for number, change in enumerate([*history, {}]):
        if number == min(made_at, len(history)):
            found = tuple(chunk(id, texts[id]) for id in sorted(used) if texts[id])
            basis, then = Basis.of(frozenset(one.ref for one in found), found, knowledge.sequence), dict(texts)
        left = {texts[id] for id, text in change.items() if texts[id] not in (None, text)}
        has_moved |= basis is not None and any(text in left and texts[id] != text for id, text in change.items())
        texts |= change
        present = {id: text for id, text in change.items() if text}
        gone = [id for id, text in change.items() if text is None]
        knowledge.apply(KnowledgeUpdate(changed=[chunk(id, text) for id, text in present.items()], removed=gone))
    rests_on = {ref.id for ref in basis.evidence}
    same = all(texts[id] == then[id] for id in rests_on)
    is_stale = knowledge.judge(basis) is Verdict.STALE
    assert is_stale or all(then[id] in texts.values() for id in rests_on), "its text is nowhere"
    assert not (is_stale and same)
    if not has_moved:
        assert is_stale == (not same)


def test_an_update_that_says_nothing_new_changes_nothing():
    knowledge = Knowledge()
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "house")]))
    basis = Basis.of(frozenset({chunk("1", "house").ref}), (chunk("1", "house"),), knowledge.sequence)
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "house")], changed=[chunk("1", "house")]))
    assert knowledge.judge(basis) is Verdict.CURRENT


def test_what_one_update_removes_and_adds_is_there():
    knowledge = Knowledge()
    basis = Basis(frozenset({ChunkRef("1", "v1")}), None, 0)
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "house", version="v1")], removed=["1"]))
    assert knowledge.judge(basis) is not Verdict.STALE


def test_sources_are_apart():
    knowledge = Knowledge()
    basis = Basis(frozenset({ChunkRef("1", "v1", "a")}), None, 0)
    knowledge.apply(KnowledgeUpdate(changed=[chunk("1", "x", version="v2")], removed=["2"], source="b"))
    assert knowledge.judge(basis) is Verdict.CURRENT
    knowledge.apply(KnowledgeUpdate(changed=[chunk("1", "x", version="v2")], source="a"))
    assert knowledge.judge(basis) is Verdict.STALE


def test_a_source_that_is_not_named_may_be_any():
    for update_source, evidence_source in (("", "a"), ("a", "")):
        knowledge = Knowledge()
        knowledge.apply(KnowledgeUpdate(removed=["1"], source=update_source))
        assert knowledge.judge(Basis(frozenset({ChunkRef("1", "v1", evidence_source)}), None, 0)) is Verdict.STALE


def test_what_is_there_is_what_updates_added_and_did_not_remove():
    knowledge = Knowledge()
    knowledge.apply(KnowledgeUpdate(added=[chunk("a", "one"), chunk("b", "one")]))
    knowledge.apply(KnowledgeUpdate(removed=["a"]))
    assert knowledge.there("") == {"b"}
    assert knowledge.there("another source") == frozenset()


def current(knowledge: Knowledge, source: str) -> bool:
    return knowledge.judge(Basis(frozenset({ChunkRef("1", "v1", source)}), None, knowledge.sequence)) is Verdict.CURRENT


NAMED = KnowledgeUpdate(added=[chunk("1", "x", version="v1")], source="a")


@pytest.mark.parametrize(
    "unnamed", [KnowledgeUpdate(removed=["1"]), KnowledgeUpdate(changed=[chunk("1", "y", version="v0")])]
)
def test_an_update_that_names_the_source_is_believed_over_an_older_one_that_names_none(unnamed):
    knowledge = Knowledge()
    knowledge.apply(unnamed)
    knowledge.apply(NAMED)
    assert current(knowledge, "a")
    assert not current(knowledge, "b"), "of which it does not tell"
    assert not current(knowledge, ""), "which may be another one"
    knowledge.apply(unnamed)
    assert not current(knowledge, "a"), "and over a newer one it is not"


def test_what_a_whole_set_leaves_out_is_gone_whatever_its_sources_are_called():
    for source in ("a", ""):
        knowledge = Knowledge()
        knowledge.apply(KnowledgeUpdate.replace("a", [chunk("2", "y")]))
        basis = Basis(frozenset({ChunkRef("1", "v1", source)}), None, 0)
        assert knowledge.judge(basis) is Verdict.STALE
        assert knowledge.judge(replace(basis, sequence=1)) is Verdict.CURRENT, "found after it was told"


@pytest.mark.parametrize(("made_at", "verdict"), [(1, Verdict.CURRENT), (2, Verdict.DOUBTFUL), (3, Verdict.DOUBTFUL)])
def test_a_chunk_of_no_source_may_be_gone_since_the_first_whole_set_that_left_it_out(made_at, verdict):
    knowledge = Knowledge()
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "house")]))
    for source in ("b", "a"):
        knowledge.apply(KnowledgeUpdate.replace(source, []))
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "house")]))
    assert knowledge.judge(Basis(frozenset({ChunkRef("2", "v1", "c")}), None, made_at)) is verdict


class Sought(str):
    """A name that counts how often one is looked up."""

    times = 0

    def __hash__(self):
        Sought.times += 1
        return str.__hash__(self)


def test_an_update_of_no_source_does_not_look_at_each_replaced_source_for_each_chunk():
    knowledge = Knowledge()
    for number in range(100):
        knowledge.apply(KnowledgeUpdate.replace(Sought(number), []))
    for text in ("old", "new"):
        Sought.times = 0
        knowledge.apply(KnowledgeUpdate(changed=[chunk(f"chunk{number}", text) for number in range(100)]))
        assert Sought.times < 100 * 100, text


class Counted(str):
    """A name that counts how often one is compared with another."""

    compared: list[object] = []  # noqa: RUF012  # of all of them
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared.append(other)
        return str.__eq__(self, other)


def compared(work) -> int:
    Counted.compared.clear()
    work()
    return len(Counted.compared)


def many(count: int, text: str, kind: str = "id") -> list:
    return [chunk(Counted(f"{kind}{number}"), f"{text} {number}", source="kb") for number in range(count)]


@pytest.mark.parametrize(
    "after",
    [
        lambda count: KnowledgeUpdate(changed=many(count, "edited"), source="kb"),
        lambda count: KnowledgeUpdate(added=many(count, "text", "new"), removed=[c.ref.id for c in many(count, "")]),
        lambda count: KnowledgeUpdate(added=many(count, "text", "new"), removed=[f"id{n}" for n in range(count)]),
        lambda count: KnowledgeUpdate.replace("kb", many(count, "text", "new")),
    ],
)
def test_an_update_of_many_chunks_compares_each_with_a_few(after):
    comparisons = []
    for count in (50, 200):
        knowledge = Knowledge()
        knowledge.apply(KnowledgeUpdate(added=many(count, "text"), source="kb"))
        comparisons.append(compared(lambda: knowledge.apply(after(count))) / count)  # noqa: B023  # called at once
    assert comparisons[1] < 2 * comparisons[0] + 10


def test_an_answer_is_judged_by_its_own_sources_however_many_others_there_are():
    comparisons = []
    for count in (10, 400):
        knowledge = Knowledge()
        for number in range(count):
            source = Counted(f"source{number}")
            knowledge.apply(KnowledgeUpdate.replace(source, [chunk("1", f"text {number}")]))
        found = (chunk("1", "text 3", source="source3"),)
        basis = Basis.of(frozenset({found[0].ref}), found, 4)
        comparisons.append(compared(lambda: knowledge.judge(basis)))  # noqa: B023  # called at once
        assert knowledge.judge(basis) is Verdict.RECHECK
    assert comparisons[1] <= comparisons[0] + 10


def test_what_comes_in_without_a_source_may_be_of_any_and_what_has_another_is_not():
    found = (chunk("1", "x", source="a"),)
    basis = Basis.of(frozenset({found[0].ref}), found, 0)
    for source, verdict in (("", Verdict.DOUBTFUL), ("a", Verdict.DOUBTFUL), ("b", Verdict.RECHECK)):
        knowledge = Knowledge()
        knowledge.apply(KnowledgeUpdate(added=[chunk("2", "y")], source=source))
        assert knowledge.judge(basis) is verdict


def test_what_came_back_in_one_source_puts_no_answer_of_another_in_doubt_that_was_made_with_it():
    knowledge = Knowledge()
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "x")], source="a"))
    knowledge.apply(KnowledgeUpdate(added=[chunk("1", "x")], source="b"))
    for source in "ab":
        knowledge.apply(KnowledgeUpdate(removed=["1"], source=source))
        knowledge.apply(KnowledgeUpdate(added=[chunk("1", "x")], source=source))
    judged = [knowledge.judge(Basis(frozenset(), frozenset(), sequence)) for sequence in range(2, 7)]
    doubtful, current = Verdict.DOUBTFUL, Verdict.CURRENT
    assert judged == [current, doubtful, current, doubtful, current], "it is in doubt where it was made without it"


def added(source: str = "kb", text: str = "house") -> KnowledgeUpdate:
    return KnowledgeUpdate(added=[chunk("1", text, source=source)], source=source)


def changed(source: str, text: str) -> KnowledgeUpdate:
    return KnowledgeUpdate(changed=[chunk("1", text, source=source)], source=source)


GONE = {
    "removed": KnowledgeUpdate(removed=["1"]),
    "left out of all that there is": KnowledgeUpdate.replace("", [chunk("2", "garage")]),
}
UNNAMED_GONE = {
    "removed": KnowledgeUpdate(removed=["1"], source="kb"),
    "left out of a whole source": KnowledgeUpdate.replace("kb", [chunk("2", "garage", source="kb")]),
}
CASES = [("kb", gone) for gone in GONE.values()] + [("", gone) for gone in UNNAMED_GONE.values()]


@pytest.mark.parametrize(("source", "gone"), CASES, ids=[*GONE, *[f"{name} that is named" for name in UNNAMED_GONE]])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "and by its source too"])
def test_what_went_without_its_source_and_came_back_with_it_is_an_addition(source, gone, twice):
    knowledge = Knowledge()
    knowledge.apply(added(source))
    before = garage(knowledge)
    knowledge.apply(gone)
    between = garage(knowledge)
    if twice:
        knowledge.apply(KnowledgeUpdate(removed=["1"], source=source))
    knowledge.apply(added(source))
    after = garage(knowledge)
    assert knowledge.judge(between) is Verdict.DOUBTFUL
    assert knowledge.judge(after) is Verdict.CURRENT
    assert gone.replaces or knowledge.judge(before) is Verdict.CURRENT, "as it was before it went"
    knowledge.apply(added(source))
    assert knowledge.judge(after) is Verdict.CURRENT, "which says nothing new"


@pytest.mark.parametrize(("source", "other"), [("kb", ""), ("", "kb")])
@pytest.mark.parametrize("is_removed", [False, True], ids=["at once", "after it was gone"])
def test_an_edit_without_the_source_that_is_taken_back_with_it_is_an_edit(source, other, is_removed):
    knowledge = Knowledge()
    knowledge.apply(added(source))
    before = garage(knowledge)
    knowledge.apply(changed(other, "castle"))
    between = garage(knowledge)
    if is_removed:
        knowledge.apply(KnowledgeUpdate(removed=["1"], source=source))
    knowledge.apply(changed(source, "house"))
    assert knowledge.judge(between) is not Verdict.CURRENT
    assert knowledge.judge(before) is not Verdict.STALE
    assert knowledge.judge(garage(knowledge)) is Verdict.CURRENT


def garage(knowledge: Knowledge) -> Basis:
    found = (chunk("2", "garage", source="kb"),)
    return Basis.of(frozenset({found[0].ref}), found, knowledge.sequence)
