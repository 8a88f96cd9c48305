"""What two texts of like wording differ in: the part that decides whether they are one question."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.focus import focus, unnamed, weighty_stems
from smartcache.state import State
from smartcache.testing import TableEmbedder


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [
        ("Is it free for students?", "Is it free for teachers?", ("students?", "teachers?")),
        ("who runs acme", "who runs birk", ("acme", "birk")),
        ("Is the store open today?", "is the store open TOMORROW", ("today?", "TOMORROW")),
        ("Summarise the text in one sentence", "Summarise the text in one paragraph", ("sentence", "paragraph")),
        ("What are the types of inflation?", "What are the causes of inflation?", ("types", "causes")),
        ("What is inflation?", "What is the cause of inflation?", ("", "the cause of")),
        (
            "You are a friendly bank. Answer in one short sentence: where is my card",
            "You are a friendly bank. Answer in one short sentence: tell a joke",
            ("where is my card", "tell a joke"),
        ),
    ],
)
def test_an_exchanged_part_is_what_decides(one, other, left):
    assert focus(one, other) == left
    assert focus(other, one) == left[::-1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I reset it?", "How can I reset it?"),
        ("How do I reset it?", "Well, how do I reset it please"),
        ("Which Android version does it need?", "What version of Android does it need?"),
        ("When was the tower opened?", "What year was the tower opened?"),
        ("How does it work?", "What opens the second door at night?"),
        ("Are refunds possible?", "Is a refund possible?"),
        ("the same", "the same"),
    ],
)
def test_another_wording_leaves_nothing_to_decide(one, other):
    assert focus(one, other) is None


NAMES = frozenset(("richard", "pipes"))


def test_what_is_said_of_a_long_name_decides():
    one, other = "Who criticized Richard Pipes?", "What was notable about Richard Pipes' work?"
    assert unnamed(one, other, NAMES) == ("Who criticized", "What was notable about work?")
    assert unnamed(other, one, NAMES) == ("What was notable about work?", "Who criticized")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("When was Richard Pipes born?", "What year was Richard Pipes born?"),
        ("Who criticized Richard Pipes?", "Who was it that criticized Richard Pipes in public?"),
        ("Richard Pipes", "Who was Richard Pipes?"),
    ],
)
def test_one_who_says_all_that_the_other_does_leaves_nothing_to_decide(one, other):
    assert unnamed(one, other, NAMES) is None


def test_a_short_name_hides_nothing():
    assert unnamed("Who runs Acme?", "What does Acme sell?", frozenset(("acme",))) is None


def ask(*said: str) -> Request:
    roles = ("user", "assistant")
    return Request([Turn(roles[n % 2], text) for n, text in enumerate(said)])


NEAR_MISSES = [
    (("Is the API free for students?",), ("Is the API free for teachers?",)),
    (("Which lamp is above the desk?",), ("Which lamp is below the desk?",)),
    (("Does a dog bite a man?",), ("Does a man bite a dog?",)),
    (("Who criticized Richard Pipes?",), ("What was notable about Richard Pipes?",)),
    (("What are the types of rust?",), ("What are the causes of rust?",)),
    (("Can I bring a guest to dinner?",), ("Must I bring a guest to dinner?",)),
    (
        ("My budget is small", "OK", "Which laptop should I buy?"),
        ("My budget is huge", "OK", "Which laptop should I buy?"),
    ),
    (
        ("Explain recursion", "Sure", "Give an example in Java"),
        ("Explain iteration", "Sure", "Give an example in Java"),
    ),
]


@pytest.mark.parametrize(("stored", "asked"), [*NEAR_MISSES, *((asked, stored) for stored, asked in NEAR_MISSES)])
def test_a_near_miss_is_no_hit_however_near(stored, asked):
    pairs = dict.fromkeys(pair for pair in zip(stored, asked, strict=True) if pair[0] != pair[1])
    cache = SmartCache.open(embedder=TableEmbedder(dict.fromkeys(pairs, 0.99)), strict=True)
    cache.store(ask(*stored), Answer("stored"))
    assert cache.lookup(ask(*asked)) is None
    assert cache.lookup(ask(*stored)) is not None


def test_what_is_far_as_a_whole_is_not_looked_into():
    stored, asked = "Is the API free for students?", "Is the API free for teachers?"
    embedder = TableEmbedder({(stored, asked): 0.5})
    cache = SmartCache.open(embedder=embedder, strict=True)
    cache.store(ask(stored), Answer("stored"))
    assert cache.lookup(ask(asked)) is None
    assert embedder.texts == [stored, asked]


REWORDED = [
    (("Is the API free for students?",), ("Can students use the API for free?",)),
    (("How do I reset my password?",), ("How can I reset my password?",)),
    (
        ("My budget is small", "OK", "Which laptop should I buy?"),
        ("My budget is small", "OK", "What laptop should I buy?"),
    ),
]


@pytest.mark.parametrize(("stored", "asked"), REWORDED)
def test_the_same_in_other_words_is_a_hit(stored, asked):
    pairs = dict.fromkeys(pair for pair in zip(stored, asked, strict=True) if pair[0] != pair[1])
    cache = SmartCache.open(embedder=TableEmbedder(dict.fromkeys(pairs, 0.95)), strict=True)
    cache.store(ask(*stored), Answer("stored"))
    assert cache.lookup(ask(*asked)) is not None


PIZZA = "Do you know Pizza Fen?", "Yes.", "Do they deliver?"
OF_A_FRIEND = "A friend told me of Pizza Fen.", "Yes.", "Do they deliver?"


@pytest.mark.parametrize(("near", "hits"), [(0.70, True), (0.60, False)])
def test_a_context_that_names_the_same_may_be_worded_otherwise(near, hits):
    cache = SmartCache.open(embedder=TableEmbedder({(PIZZA[0], OF_A_FRIEND[0]): near}), strict=True)
    cache.store(ask(*PIZZA), Answer("stored"))
    assert (cache.lookup(ask(*OF_A_FRIEND)) is not None) == hits


def test_a_state_that_was_kept_under_another_rule_is_not_compared(monkeypatch):
    """Of a question that leans on its dialogue by today's rule, kept as one that stands alone."""
    reworded = ask(*PIZZA[:2], "Do they really deliver?")
    embedder = TableEmbedder({(PIZZA[2], "Do they really deliver?"): 0.99})
    for of, hits in ((State.of, True), (lambda dialogue, vectors, digest: State(*vectors([dialogue.question])), False)):
        cache = SmartCache.open(embedder=embedder, strict=True)
        with monkeypatch.context() as patched:
            patched.setattr(State, "of", of)
            cache.store(ask(*PIZZA), Answer("stored"))
        assert (cache.lookup(reworded) is not None) == hits


@pytest.mark.parametrize("pointing", ["it", "this", "that", "here"])
def test_a_word_that_points_is_light_in_each_of_its_forms(pointing):
    assert weighty_stems(f"Is {pointing} a fish?") == weighty_stems("Is it a fish?") == {"fish"}
    assert weighty_stems("Is Theo a fish?") == {"theo", "fish"}


def test_two_ways_to_ask_for_one_kind_of_thing_are_wording_alone():
    assert focus("How much does it cost?", "What does it cost?") is None
    assert focus("Where is it?", "What is it?") == ("Where", "What")
    assert focus("How much does it cost?", "How much does it weigh?") is not None
