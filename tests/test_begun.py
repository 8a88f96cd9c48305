"""Answers that are made elsewhere, or under way: what was learned or forgotten meanwhile counts."""

from __future__ import annotations

import pytest

from smartcache import Answer, KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.testing import FakeModel, FakeSearch, chunk

UPDATE = KnowledgeUpdate(changed=[chunk("a", "new")])


@pytest.fixture
def cache():
    with SmartCache.open(mode="exact", strict=True) as cache:
        yield cache


def ask(text: str = "How do I reset it?", scope: str = "") -> Request:
    return Request([Turn("user", text)], scope)


def test_an_update_between_lookup_and_store_leaves_nothing_stale(cache):
    cache.lookup(ask())
    cache.update_knowledge(UPDATE)
    assert not cache.store(ask(), Answer("old"))
    cache.lookup(ask())
    assert cache.store(ask(), Answer("new"))


def test_a_later_lookup_makes_an_earlier_one_no_younger(cache):
    cache.lookup(ask())
    cache.update_knowledge(UPDATE)
    cache.lookup(ask())
    assert [cache.store(ask(), Answer("old")), cache.store(ask(), Answer("old"))] == [False, False]
    cache.lookup(ask())
    assert cache.store(ask(), Answer("new"))


def test_a_hit_by_another_makes_an_earlier_lookup_no_younger(cache):
    cache.lookup(ask())
    cache.update_knowledge(UPDATE)
    cache.answer(ask(), FakeModel())
    assert cache.lookup(ask()) is not None
    assert not cache.store(ask(), Answer("old"))


def test_every_one_of_many_equal_lookups_may_store(cache):
    for _ in range(3):
        cache.lookup(ask())
    assert all(cache.store(ask(), Answer("an answer")) for _ in range(3))


@pytest.mark.parametrize("forget", [lambda c: c.forget(scope="acme"), lambda c: c.clear("acme"), lambda c: c.clear()])
def test_what_is_forgotten_under_way_is_not_stored(cache, forget):
    def generate(request, chunks):
        forget(cache)
        return "a secret"

    search = FakeSearch([chunk("a", "a secret")])
    assert cache.answer(ask(scope="acme"), generate, search=search).text == "a secret"
    assert (cache.stats().entries, cache.stats().not_stored) == (0, {"forgotten": 1})
    cache.lookup(ask(scope="acme"))
    forget(cache)
    assert not cache.store(ask(scope="acme"), Answer("a secret"))


@pytest.mark.parametrize(
    "forget", [lambda c: c.forget(scope="other"), lambda c: c.forget(older_than=60.0), lambda c: c.clear("other")]
)
def test_what_is_under_way_is_stored_where_something_else_is_forgotten(cache, forget):
    def generate(request, chunks):
        forget(cache)
        return "no secret"

    cache.answer(ask(scope="acme"), generate)
    assert cache.lookup(ask(scope="acme")).text == "no secret"


def test_a_retrieval_that_is_forgotten_under_way_is_made_again(cache):
    search = FakeSearch([chunk("a", "a secret")])

    def found_while_forgotten(query):
        if not search.queries:
            cache.forget(scope="acme")
        return search(query)

    for calls in (1, 2, 2):
        cache.retrieve("a question", found_while_forgotten, scope="acme")
        assert len(search.queries) == calls


def test_an_answer_that_is_larger_than_the_cache_pushes_nothing_out():
    with SmartCache.open(mode="exact", max_bytes=50_000) as cache:
        cache.answer(ask(), FakeModel())
        assert not cache.store(ask("Tell me all"), Answer("x" * 60_000))
        assert cache.stats().not_stored == {"too_large": 1}
        assert cache.lookup(ask()) is not None
        assert cache.store(ask("Tell me much"), Answer("x" * 40_000))
