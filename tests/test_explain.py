"""`cache.explain`: what a lookup would do, and why, without doing it."""

from __future__ import annotations

import pytest

from smartcache import (
    Answer,
    CalibratedPolicy,
    Chunk,
    ChunkRef,
    KnowledgeUpdate,
    Request,
    SmartCache,
    ThresholdPolicy,
    Turn,
)
from smartcache.errors import MissingModel
from smartcache.reasons import SIGNALS
from smartcache.signals import MONOTONE
from smartcache.testing import FakeClock, TableEmbedder

RESET, NEAR, FAR = (
    "How do I reset the hub to factory settings?",
    "To factory settings, how do I reset the hub?",
    "Which countries do you ship batteries to?",
)


def ask(*texts: str, scope: str = "", options=None) -> Request:
    return Request([Turn("user", text) for text in texts], scope, options=options)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(clock) -> SmartCache:
    embedder = TableEmbedder({(RESET, NEAR): 0.93})
    cache = SmartCache.open(embedder=embedder, clock=clock, ttl_seconds=100, strict=True)
    cache.store(ask(RESET), Answer("Hold the button.", frozenset({ChunkRef("reset", "1")})))
    cache.store(ask(FAR), Answer("To all.", frozenset()))
    return cache


def test_the_nearest_stored_question_comes_first(cache):
    assert [one.question for one in cache.explain(ask(NEAR))] == [RESET, FAR]
    assert [one.question for one in cache.explain(ask(NEAR), count=1)] == [RESET]


def test_it_says_what_a_lookup_does(cache):
    near, far = cache.explain(ask(NEAR))
    assert (near.is_served, near.refusal, round(near.similarity, 2)) == (True, None, 0.93)
    assert (far.is_served, far.refusal) == (False, "far")
    assert cache.lookup(ask(NEAR)).entry_id == near.entry_id


def test_it_says_what_was_needed(cache):
    near, _ = cache.explain(ask(NEAR))
    assert near.bar.needed == 0.90
    assert near.reasons[0] == "0.930 alike, and 0.900 is enough"


def test_the_same_request_comes_before_near_ones(cache):
    first, second = cache.explain(ask(RESET))
    assert (first.question, first.similarity, first.reasons) == (RESET, 1.0, ("it is the same request",))
    assert second.question == FAR


def test_it_counts_nothing_and_keeps_nothing(cache):
    before = cache.stats()
    cache.explain(ask(NEAR))
    cache.explain(ask(RESET))
    assert cache.stats() == before


def test_a_document_that_changed_is_told(cache):
    chunk = Chunk(ChunkRef("reset", "2"), "Press twice.")
    cache.update_knowledge(KnowledgeUpdate(changed=[chunk]))
    near = cache.explain(ask(NEAR))[0]
    assert (near.is_served, near.refusal, near.is_current) == (False, "stale", False)


def test_an_answer_that_is_too_old_is_told_and_stays(cache, clock):
    clock.advance(100)
    assert cache.explain(ask(NEAR))[0].refusal == "expired"
    assert cache.stats().entries == 2


def test_a_report_is_told(cache):
    cache.report_wrong(ask(NEAR), cache.lookup(ask(NEAR)))
    assert cache.explain(ask(NEAR))[0].refusal == "reported_wrong"


def test_a_raised_bar_is_told(cache):
    for scope in "ab":
        cache.store(ask(RESET, scope=scope), Answer("Hold the button.", frozenset()))
    for scope in "ab":
        cache.report_wrong(ask(NEAR, scope=scope), cache.lookup(ask(NEAR, scope=scope)))
    near = cache.explain(ask(NEAR))[0]
    assert (near.refusal, near.bar.is_raised) == ("far", True)
    assert "the bar was raised from 0.900: 2 of 2 hits were reported wrong" in near.reasons


@pytest.mark.parametrize(
    ("policy", "served", "has_a_bar"),
    [
        (ThresholdPolicy(0.92), True, False),
        (ThresholdPolicy(0.95), False, False),
        (CalibratedPolicy(0.05), True, True),
        (CalibratedPolicy(0.0), False, True),
    ],
)
def test_it_says_what_another_policy_would_do(cache, policy, served, has_a_bar):
    near = cache.explain(ask(NEAR), policy=policy)[0]
    assert (near.is_served, near.bar is not None) == (served, has_a_bar)
    assert cache.explain(ask(NEAR))[0].is_served


def test_what_is_no_policy_is_a_mistake(cache):
    with pytest.raises(TypeError, match="pass a HitPolicy"):
        cache.explain(ask(NEAR), policy=0.9)


def test_every_signal_has_its_words():
    assert SIGNALS.keys() == MONOTONE.keys()
    assert len(set(SIGNALS.values())) == len(SIGNALS)


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (ask(NEAR, scope="other"), "new"),
        (ask(NEAR, options={"temperature": 1}), "sampling"),
        (ask(NEAR, options={"cache": False}), "requested"),
        (ask(NEAR, options={"cache": "refresh"}), "refresh"),
        (ask("word " * 300), "too_long"),
    ],
)
def test_where_nothing_is_compared_it_says_why(cache, request_, refusal):
    [one] = cache.explain(request_)
    assert (one.question, one.refusal, one.is_served, len(one.reasons)) == (None, refusal, False, 1)


def test_an_exact_cache_compares_the_same_request_only():
    cache = SmartCache.open(mode="exact", strict=True)
    cache.store(ask(RESET), Answer("Hold the button."))
    assert cache.explain(ask(RESET))[0].is_served
    assert cache.explain(ask(NEAR))[0].refusal == "exact_mode"


def test_none_at_all_is_asked_for_by_mistake(cache):
    with pytest.raises(ValueError, match="1 or more"):
        cache.explain(ask(NEAR), count=0)


@pytest.mark.parametrize(
    ("asked", "stored", "reason"),
    [
        ("When did Frank Zappa die?", "Where did Frank Zappa die?", "one asks when, the other where"),
        ("What is free in Paris?", "What is free?", "Paris is not mentioned in the other"),
        ("Is it free for students?", "Is it free for teachers?", "one says “students”, the other “teachers”"),
        ("Can I turn it on?", "Can I turn it off?", "one asks the opposite of the other"),
        ("Does the dog bite the man?", "Does the man bite the dog?", "the same words stand in each other's place"),
    ],
)
def test_the_reasons_are_plain_words(asked, stored, reason):
    cache = SmartCache.open(embedder=TableEmbedder({(stored, asked): 0.99}), strict=True)
    cache.store(ask(stored), Answer("x"))
    assert reason in cache.explain(ask(asked))[0].reasons


def test_when_and_where_are_no_opposites():
    cache = SmartCache.open(embedder=TableEmbedder({}), strict=True)
    cache.store(ask("Where did Frank Zappa die?"), Answer("x"))
    assert cache.explain(ask("When did Frank Zappa die?"))[0].reasons == ("one asks when, the other where",)


def test_a_conversation_on_one_side_alone_is_told():
    cache = SmartCache.open(embedder=TableEmbedder({}), strict=True)
    cache.store(ask("What does it cost?"), Answer("x"))
    found = cache.explain(ask("I take the Plus plan.", "What does it cost?"))[0]
    assert "only the question asked has turns before it" in found.reasons
    assert "said before, Plus is not mentioned in the other" in found.reasons


@pytest.mark.model
def test_with_weights_the_weightiest_signals_are_told():
    try:
        cache = SmartCache.open(strict=True)
    except MissingModel as missing:
        pytest.skip(str(missing))
    cache.store(ask("How do I reset my password?"), Answer("x"))
    same, other = (cache.explain(ask(text))[0] for text in ("How can I reset my password?", "Where is the station?"))
    assert same.is_served
    assert same.confidence >= same.bar.needed > 0.9 > other.confidence
    parts = [abs(signal.part) for signal in same.signals]
    assert parts == sorted(parts, reverse=True) != []
    assert all(signal.phrase == SIGNALS[signal.name] for signal in same.signals)
    assert not other.is_served
