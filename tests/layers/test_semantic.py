"""Which of the near questions are looked at: not those that name something else, however many and however near."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.layers.semantic import MAX_JUDGED
from smartcache.testing import TableEmbedder

ASKED, SAME = "How do I reset the printer K99?", "In what way is the printer K99 reset?"


def request(question: str) -> Request:
    return Request([Turn("user", question)])


def looked_up(cache: SmartCache) -> str | None:
    answer = cache.lookup(request(ASKED))
    return answer.text if answer else None


def cache_of(questions: list[str]) -> SmartCache:
    """All of them nearer to what is asked than the one of other words."""
    near = {(ASKED, question): 0.99 - n / 1000 for n, question in enumerate(questions)} | {(ASKED, SAME): 0.95}
    cache = SmartCache.open(embedder=TableEmbedder(near), strict=True)
    for question in (*questions, SAME):
        assert cache.store(request(question), Answer(question, frozenset(), finish_reason="stop"))
    return cache


OTHERS = [f"How do I reset the printer K{number}?" for number in range(14)]
DENIED = [f"How do I never reset the printer K99 number {word}?" for word in "abcdefghijkl"]


def test_a_crowd_that_names_other_things_hides_nothing():
    with cache_of(OTHERS) as cache:
        assert looked_up(cache) == SAME
        assert cache.stats().misses == {}


@pytest.mark.parametrize(("count", "found"), [(MAX_JUDGED - 1, SAME), (MAX_JUDGED, None)])
def test_of_those_that_name_nothing_else_only_the_nearest_are_judged(count, found):
    with cache_of(DENIED[:count]) as cache:
        assert looked_up(cache) == found


def test_it_holds_after_a_restart(tmp_path):
    near = {(ASKED, question): 0.99 - n / 1000 for n, question in enumerate(OTHERS)} | {(ASKED, SAME): 0.95}
    with SmartCache.open(tmp_path / "cache.db", embedder=TableEmbedder(near), strict=True) as cache:
        for question in (*OTHERS, SAME):
            cache.store(request(question), Answer(question, frozenset(), finish_reason="stop"))
    with SmartCache.open(tmp_path / "cache.db", embedder=TableEmbedder(near), strict=True) as cache:
        assert looked_up(cache) == SAME


def test_the_reason_of_a_miss_is_that_of_the_nearest_that_was_judged():
    with cache_of(DENIED[:1]) as cache:
        cache.clear()
        cache.store(request(DENIED[0]), Answer("never", frozenset(), finish_reason="stop"))
        cache.store(request(OTHERS[0]), Answer("other", frozenset(), finish_reason="stop"))
        assert looked_up(cache) is None
        assert cache.stats().misses == {"polarity": 1}
    with cache_of(OTHERS[:1]) as cache:
        cache.clear()
        cache.store(request(OTHERS[0]), Answer("other", frozenset(), finish_reason="stop"))
        assert looked_up(cache) is None
        assert cache.stats().misses == {"facts": 1}


def test_half_a_sign_in_an_address_is_stored_and_served_to_the_letter():
    question = request("Summarise http://x.yz/\ud83d for me")
    with SmartCache.open(embedder=TableEmbedder({}), strict=True) as cache:
        assert cache.store(question, Answer("Short.", frozenset(), finish_reason="stop"))
        answer = cache.lookup(question)
        assert answer is not None
        assert (answer.text, answer.served_by) == ("Short.", "exact")
