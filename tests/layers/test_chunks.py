"""The context layer: one order for one set of chunks, and retrievals that are remembered as long as they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcache import ChunkRef, KnowledgeUpdate, SmartCache, plan_context
from smartcache.testing import FakeSearch, chunk

CHUNKS = [chunk(str(number), f"text {number}", score=number / 10) for number in range(5)]


@given(st.permutations(CHUNKS))
def test_the_same_set_is_the_same_prefix_in_any_order(shuffled):
    assert plan_context(shuffled).chunks == plan_context(CHUNKS).chunks


@given(st.lists(st.sampled_from(CHUNKS)))
def test_each_chunk_is_in_the_plan_once(chunks):
    plan = plan_context(chunks)
    assert sorted(plan.chunks, key=lambda c: c.ref) == sorted(set(chunks), key=lambda c: c.ref)


def test_citation_numbers_follow_the_chunk_and_not_its_place():
    c1, c2, c3 = CHUNKS[:3]
    plan = plan_context([c3, c1, c1, c2])
    assert plan.numbers == {c3.ref: 1, c1.ref: 2, c2.ref: 3}


def test_the_order_given_can_be_kept():
    c1, c2, c3 = CHUNKS[:3]
    assert plan_context([c3, c1, c1, c2], order="given").chunks == (c3, c1, c2)


def test_the_callers_list_and_scores_stay_as_they_are():
    chunks = [CHUNKS[2], CHUNKS[0], CHUNKS[2]]
    plan = plan_context(chunks)
    assert chunks == [CHUNKS[2], CHUNKS[0], CHUNKS[2]]
    assert {one.ref: one.score for one in plan.chunks} == {CHUNKS[2].ref: 0.2, CHUNKS[0].ref: 0.0}


def test_equal_text_under_two_ids_is_two_chunks():
    assert len(plan_context([chunk("a", "same"), chunk("b", "same")]).chunks) == 2


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="use one of 'given', 'hash'"):
        plan_context(CHUNKS, order="random")


@pytest.fixture
def cache():
    with SmartCache.open(mode="exact", strict=True) as cache:
        yield cache


def test_a_retrieval_is_remembered(cache):
    search = FakeSearch(list(CHUNKS))
    assert cache.retrieve("buildings", search) == cache.retrieve("buildings", search) == tuple(CHUNKS)
    assert search.queries == ["buildings"]


def test_another_retriever_is_asked_itself(cache):
    one, other = FakeSearch([CHUNKS[0]]), FakeSearch([CHUNKS[1]])
    assert cache.retrieve("buildings", one) == (CHUNKS[0],)
    assert cache.retrieve("buildings", other) == (CHUNKS[1],)


def test_a_method_is_known_by_its_object(cache):
    one, other = FakeSearch([CHUNKS[0]]), FakeSearch([CHUNKS[1]])
    assert cache.retrieve("buildings", one.__call__) == (CHUNKS[0],)
    assert cache.retrieve("buildings", other.__call__) == (CHUNKS[1],)
    cache.retrieve("buildings", one.__call__)
    assert len(one.queries) == 1


def test_a_search_that_cannot_be_told_from_others_is_asked_every_time(cache):
    class Slotted:
        __slots__ = ("calls",)

        def __init__(self):
            self.calls = 0

        def __call__(self, query):
            self.calls += 1
            return [CHUNKS[0]]

    search = Slotted()
    cache.retrieve("buildings", search)
    cache.retrieve("buildings", search)
    assert search.calls == 2


@pytest.mark.parametrize(
    "update",
    [
        KnowledgeUpdate(changed=[chunk("1", "new text")]),
        KnowledgeUpdate(removed=["1"]),
        KnowledgeUpdate(added=[chunk("99", "new")]),
        KnowledgeUpdate(changed=[chunk("77", "elsewhere")]),
    ],
    ids=["changed", "removed", "added", "changed elsewhere"],
)
def test_a_retrieval_is_made_again_when_anything_it_could_find_changed(cache, update):
    search = FakeSearch(list(CHUNKS))
    cache.retrieve("buildings", search)
    cache.update_knowledge(update)
    cache.retrieve("buildings", search)
    assert len(search.queries) == 2


def test_a_retrieval_outlives_the_removal_of_what_it_did_not_find(cache):
    search = FakeSearch(list(CHUNKS))
    cache.retrieve("buildings", search)
    cache.update_knowledge(KnowledgeUpdate(removed=["77"]))
    cache.retrieve("buildings", search)
    assert len(search.queries) == 1


def test_an_update_while_a_search_runs_makes_its_outcome_stale(cache):
    found = []

    def search(query):
        found.append(query)
        if len(found) == 1:
            cache.update_knowledge(KnowledgeUpdate(changed=[chunk("1", "new text")]))
        return [chunk("1", "old text")]

    cache.retrieve("buildings", search)
    cache.retrieve("buildings", search)
    assert len(found) == 2


def test_what_is_found_keeps_its_scores_and_refs(cache):
    search = FakeSearch([chunk("1", "text", version="v7", source="kb", score=0.25)])
    cache.retrieve("buildings", search)
    (again,) = cache.retrieve("buildings", search)
    assert (again.ref, again.score) == (ChunkRef("1", "v7", "kb"), 0.25)
