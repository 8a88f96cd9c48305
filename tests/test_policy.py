"""Decisions apart from storage: near enough, and fit to be stored."""

from __future__ import annotations

import pytest

from smartcache import Answer, Candidate, ThresholdPolicy
from smartcache.policy import samples, unstorable_reason


@pytest.mark.parametrize(
    ("similarity", "context", "focus", "accepted"),
    [
        (0.95, None, None, True),
        (0.89, None, None, False),
        (0.95, 0.90, None, True),
        (0.95, 0.84, None, False),
        (0.95, None, 0.95, True),
        (0.95, None, 0.50, False),
    ],
    ids=["near", "far", "near context", "far context", "near inside its frame", "far inside its frame"],
)
def test_a_question_is_near_in_every_respect_or_not_at_all(similarity, context, focus, accepted):
    candidate = Candidate("a", "b", similarity, context_similarity=context, focus_similarity=focus)
    assert ThresholdPolicy(0.9, 0.85).accepts(candidate) is accepted


@pytest.mark.parametrize(
    ("same_names", "context", "accepted"),
    [(False, 0.84, False), (True, 0.84, True), (True, 0.65, True), (True, 0.64, False)],
)
def test_a_context_that_names_the_same_may_be_worded_otherwise(same_names, context, accepted):
    candidate = Candidate("a", "b", 0.95, context_similarity=context, same_names=same_names)
    assert ThresholdPolicy(0.9, 0.85).accepts(candidate) is accepted
    assert not ThresholdPolicy(0.9, 0.85, 0.85).accepts(candidate)


@pytest.mark.parametrize("name", ["min_similarity", "min_context_similarity", "min_named_similarity"])
def test_each_threshold_is_checked_when_the_policy_is_made(name):
    with pytest.raises(ValueError, match=f"{name} is a cosine similarity"):
        ThresholdPolicy(**{name: 2.0})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("text"), None),
        (Answer("text", finish_reason="stop"), None),
        (Answer("", payload={"tool_calls": ["a"]}, finish_reason="tool_calls"), None),
        (Answer(""), "empty"),
        (Answer("tex", finish_reason="length"), "finish_length"),
        (Answer("text", finish_reason="refusal"), "finish_refusal"),
    ],
)
def test_why_an_answer_is_not_stored(answer, reason):
    assert unstorable_reason(answer) == reason


@pytest.mark.parametrize(
    ("options", "sampled"),
    [
        (None, False),
        ({}, False),
        ({"temperature": 0}, False),
        ({"temperature": 0.0}, False),
        ({"temperature": None}, False),
        ({"temperature": 0.7}, True),
        ({"do_sample": True}, True),
        ({"n": 1}, False),
        ({"n": 2}, True),
        ({"temperature": 0.7, "sample_index": 0}, False),
        ({"top_p": 0.9}, True),
        ({"top_k": 50}, True),
        ({"min_p": 0.1}, True),
        ({"top_p": 1.0}, False),
        ({"top_p": 0.9, "temperature": 0}, False),
        ({"temperature": 0.7, "do_sample": False}, False),
    ],
)
def test_a_request_asks_for_a_draw_only_where_it_says_so(options, sampled):
    assert samples(options) is sampled
