"""How long answers live: by the kind of question, on a clock that the application may give."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder, FakeClock

FACTUAL, CODE = "When does the shop open?", "Write a Python function that adds."
LIFETIMES = {
    "by intent": {"factual": 10.0, "code": 100.0},
    "by a function": lambda question: 10.0 if "shop" in question else 100.0,
}


def ask(text: str) -> Request:
    return Request([Turn("user", text)])


@pytest.mark.parametrize("ttl_seconds", LIFETIMES.values(), ids=LIFETIMES)
def test_each_kind_of_question_has_its_own_time(ttl_seconds):
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), ttl_seconds=ttl_seconds, clock=(clock := FakeClock()))
    for text in (FACTUAL, CODE):
        cache.store(ask(text), Answer("x"))
    clock.advance(9.9)
    assert cache.lookup(ask(FACTUAL)) is not None
    clock.advance(0.2)
    assert cache.lookup(ask(FACTUAL)) is None
    assert cache.lookup(ask(CODE)) is not None
    clock.advance(90)
    assert cache.lookup(ask(CODE)) is None
    assert cache.stats().entries == 0, "what has expired is removed"


def test_an_intent_that_has_no_time_lives_for_ever():
    cache = SmartCache.open(mode="exact", ttl_seconds={"factual": 10.0}, clock=(clock := FakeClock()))
    cache.store(ask(CODE), Answer("x"))
    clock.advance(10**9)
    assert cache.lookup(ask(CODE)) is not None


@pytest.mark.parametrize("ttl_seconds", [0, -1.0, {"code": 0}])
def test_no_time_at_all_is_refused(ttl_seconds):
    with pytest.raises(ValueError, match="ttl_seconds is above 0"):
        SmartCache.open(mode="exact", ttl_seconds=ttl_seconds)


@pytest.mark.parametrize("ttl_seconds", [True, "5", {"code": False}])
def test_a_time_is_a_number(ttl_seconds):
    with pytest.raises(TypeError, match="ttl_seconds is a number of seconds"):
        SmartCache.open(mode="exact", ttl_seconds=ttl_seconds)


def test_a_clock_that_tells_no_time_serves_nothing_that_expires():
    for ttl_seconds, is_served in ((5.0, False), (None, True)):
        cache = SmartCache.open(mode="exact", ttl_seconds=ttl_seconds, clock=(clock := FakeClock()))
        cache.store(ask(CODE), Answer("x"))
        clock.seconds = float("nan")
        assert (cache.lookup(ask(CODE)) is not None) is is_served


def test_a_function_that_gives_no_time_at_all_is_told_as_trouble_and_serves_nothing():
    cache = SmartCache.open(mode="exact", ttl_seconds=lambda question: 0)
    cache.store(ask(CODE), Answer("x"))
    assert cache.lookup(ask(CODE)) is None
    assert cache.stats().troubles == {"lookup": 1}


def test_an_intent_that_there_is_none_of_is_refused():
    with pytest.raises(ValueError, match="'prices', which is no intent: use code"):
        SmartCache.open(mode="exact", ttl_seconds={"prices": 10.0})
