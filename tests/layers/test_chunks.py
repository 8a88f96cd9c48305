"""The context layer: retrievals are remembered as long as they hold, and as long as the retriever is set as it was."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

from smartcache import ChunkRef, KnowledgeUpdate, SmartCache
from smartcache.testing import FakeSearch, chunk

CHUNKS = [chunk(str(number), f"text {number}", score=number / 10) for number in range(5)]


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


class Retriever:
    """Finds the first `k` chunks, and counts how often it was asked."""

    def __init__(self, **settings):
        self.calls = 0
        vars(self).update(settings)

    def __call__(self, query):
        self.calls += 1
        return CHUNKS[: getattr(self, "k", 2)]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("k", 1, 2),
        ("_similarity_top_k", 1, 2),
        ("_filters", None, {"year": 2024}),
        ("search_kwargs", {"k": 1}, {"k": 2}),
        ("search_kwargs", {"filter": len}, {"filter": max}),
        ("retriever", SimpleNamespace(k=1), SimpleNamespace(k=2)),
    ],
)
def test_a_retriever_set_otherwise_is_asked_itself(cache, name, before, after):
    search = Retriever(**{name: before})
    cache.retrieve("buildings", search)
    cache.retrieve("buildings", search)
    assert search.calls == 1
    setattr(search, name, after)
    cache.retrieve("buildings", search)
    assert search.calls == 2
    setattr(search, name, before)
    cache.retrieve("buildings", search)
    assert search.calls == 2


def test_what_a_retriever_counts_is_no_setting(cache):
    search = FakeSearch(list(CHUNKS))
    cache.retrieve("buildings", search)
    cache.retrieve("buildings", search)
    assert search.queries == ["buildings"]


def test_a_partial_is_known_by_its_function_and_arguments(cache):
    asked = []

    def search(query, k):
        asked.append(k)
        return CHUNKS[:k]

    found = [cache.retrieve("buildings", partial(search, k=k)) for k in (1, 2, 1)]
    assert [len(chunks) for chunks in found] == [1, 2, 1]
    assert asked == [1, 2]


def test_a_setting_without_any_form_is_asked_every_time(cache):
    search = Retriever(filter=object())
    cache.retrieve("buildings", search)
    cache.retrieve("buildings", search)
    assert search.calls == 2
