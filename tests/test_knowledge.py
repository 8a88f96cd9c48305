"""Freshness as a property: against a plain list of what the knowledge base held at each moment."""

from __future__ import annotations

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
