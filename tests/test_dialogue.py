"""The dialogue state: what a question leans on, and what two dialogues must have in common."""

from __future__ import annotations

import pytest

from smartcache import Request, Turn
from smartcache.dialogue import Dialogue, stands_alone
from smartcache.facts import Facts


@pytest.mark.parametrize(
    "question",
    [
        "How do I reset the hub to factory settings?",
        "Who founded Acme?",
        "Is it possible to export my data as CSV?",
        "How long does it take to charge the battery fully?",
        "Is there a fee for early cancellation?",
        "What's the warranty on the Halden One?",
        "电影霸王别姬的导演是谁？",
    ],
)
def test_a_question_that_names_what_it_is_about_stands_alone(question):
    assert stands_alone(question)


@pytest.mark.parametrize(
    "question",
    [
        "How old is she?",
        "And in winter?",
        "What about the Pro plan?",
        "Why?",
        "How much is it?",
        "Tell me more about that",
        "What is the price?",
        "the second one",
        "Yes, please",
        "Does Ann like them?",
        "他什么时候出生的？",
        "那北京的呢？",
    ],
)
def test_a_question_that_points_back_or_says_too_little_does_not(question):
    assert not stands_alone(question)


def test_a_sign_and_a_number_name_nothing_and_a_word_does():
    assert Facts.of("What is 12 + 7?").names == frozenset()
    assert Facts.of("Who led Operation Torch?").names == {"operation", "torch"}


def dialogue(*said: str) -> Dialogue:
    roles = ("user", "assistant")
    return Dialogue.of(Request([Turn(roles[n % 2], text) for n, text in enumerate(said)]))


@pytest.mark.parametrize("greeting", ["Hi", "Hi, how can I help you?", "Sure!"])
def test_greetings_are_nothing_to_lean_on(greeting):
    assert dialogue("Hello!", greeting, "What does it cost?").context == ()


def test_the_context_of_a_leaning_question_is_all_that_was_said():
    assert dialogue("Who runs Acme?", "Ann", "How old is she?").context == (
        ("user", "Who runs Acme?"),
        ("assistant", "Ann"),
    )


def test_the_query_of_a_leaning_question_holds_what_the_user_said_before():
    assert dialogue("Who runs Acme?", "Ann", "How old is she?").query == "Who runs Acme?\nHow old is she?"


def test_the_query_of_a_question_that_stands_alone_is_the_question():
    assert dialogue("Who runs Acme?", "Ann", "When was Birk founded?").query == "When was Birk founded?"


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (("Who runs Acme?", "Ann", "How old is she?"), ("Who runs Birk?", "Bo", "How old is she?"), "facts"),
        (("I have the Pro plan", "Good", "Why so?"), ("I don't have the Pro plan", "Good", "Why so?"), "polarity"),
        (("Who runs Acme?", "Ann", "How old is she?"), ("How old is she?",), "context"),
        (("Is port 80 open?",), ("Is port 80 closed?",), "polarity"),
        (("Is port 80 open?",), ("Is port 81 open?",), "facts"),
        (("Is port 80 open?",), ("is Port 80 OPEN",), None),
        (("Who runs Acme?", "Ann", "How old is she?"), ("who runs acme", "ann", "how old is she"), None),
    ],
)
def test_why_two_dialogues_have_no_common_answer(one, other, conflict):
    assert dialogue(*one).conflict(dialogue(*other)) == conflict
    assert dialogue(*other).conflict(dialogue(*one)) == conflict


@pytest.mark.parametrize(
    ("text", "hard"),
    [
        ("Is port 6379 open?", {"6379"}),
        ("It costs $1,000.00 or 12.5%", {"1000", "12.5%"}),
        ("Release v2.3.1 of max_tokens", {"v2.3.1", "max_tokens"}),
        ('The "red button" on it', {"red", "button"}),
        ("Ask Frank Zappa's band", {"frank", "zappa"}),
        ("two or three of them", {"2", "3"}),
        ("What is 12 + 7?", {"12", "+", "7"}),
        ("What is the weather like?", set()),
        ("《霸王别姬》是哪年的？", {"霸王别姬"}),
        ("Write to ann@acme.com", {"ann@acme.com"}),
    ],
)
def test_the_hard_facts_of_a_text(text, hard):
    assert Facts.of(text).hard == hard
