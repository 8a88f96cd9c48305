"""A hit must be one that the caller can restore: what another version wrote, this one may not understand."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder, FakeModel

RESET = Request([Turn("user", "How do I reset the hub?")])


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def cache():
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        yield cache


def of_another_version(hit: Answer) -> None:
    raise KeyError("a field that another version wrote")


def test_a_hit_that_cannot_be_restored_is_a_miss_and_trouble_is_told(cache, model):
    cache.answer(RESET, model)
    again = cache.answer(RESET, model, restore=of_another_version)
    assert (again.served_by, model.calls) == ("model", 2)
    stats = cache.stats()
    assert (stats.misses, stats.troubles, stats.hits) == ({"new": 1, "not_restorable": 1}, {"restore": 1}, 0)


def test_a_hit_is_restored_once_as_it_is_served(cache, model):
    cache.answer(RESET, model)
    restored: list[Answer] = []
    again = cache.answer(RESET, model, restore=restored.append)
    assert (restored, again.served_by) == ([again], "exact")


def test_what_cannot_be_restored_is_answered_anew_and_replaced(cache, model):
    for restore in (None, of_another_version, None):
        last = cache.answer(RESET, model, restore=restore)
    assert (last.served_by, last.text) == ("exact", "answer 2 to 'How do I reset the hub?'")


def test_a_lookup_finds_nothing_that_cannot_be_restored(cache, model):
    cache.answer(RESET, model)
    assert cache.lookup(RESET, restore=of_another_version) is None
    assert cache.lookup(RESET, restore=str) is not None


def test_a_stream_that_cannot_be_replayed_to_its_end_comes_from_the_model(cache, model):
    def broken(hit: Answer):
        yield "a piece that nobody sees"
        raise KeyError("a field that another version wrote")

    first = "".join(cache.stream(RESET, model.stream))
    second = "".join(cache.stream(RESET, model.stream, replay=broken))
    third = "".join(cache.stream(RESET, model.stream))
    assert (first, second, third) == (
        "answer 1 to 'How do I reset the hub?'",
        "answer 2 to 'How do I reset the hub?'",
        second,
    )


async def test_coroutines_restore_alike(cache, model):
    await cache.aanswer(RESET, model.acall)
    again = await cache.aanswer(RESET, model.acall, restore=of_another_version)
    assert (again.served_by, model.calls) == ("model", 2)
    pieces = [piece async for piece in cache.astream(RESET, model.astream, replay=of_another_version)]
    assert ("".join(pieces), model.calls) == ("answer 3 to 'How do I reset the hub?'", 3)
