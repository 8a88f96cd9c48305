"""What one user told and another did not: apart where it can matter, and small talk where it cannot."""

import numpy as np
import pytest

from smartcache.embedding import RememberedVectors
from smartcache.facts import Facts
from smartcache.telling import MAX_SENTENCES, Telling, beside, changed, stated
from smartcache.testing import TableEmbedder

SMALL_TALK = "One moment please."
CASES = "I rent a flat.", "I am a tenant.", "I own a house."
PAIRS = {(CASES[0], CASES[1]): 0.9, (CASES[0], CASES[2]): 0.3, ("yes", "no"): 0.99}


@pytest.fixture
def vectors() -> RememberedVectors:
    return RememberedVectors(TableEmbedder(PAIRS))


@pytest.fixture
def telling(vectors) -> Telling:
    """Small talk is what is like `SMALL_TALK`."""
    return Telling(-4.0 * np.asarray(vectors([SMALL_TALK])[0]), 2.0)


def told(*texts: str):
    return [
        sentence for text in texts for sentence in stated([("assistant", "Well?"), ("user", text)], "user", Facts.of)
    ]


def test_two_wordings_of_one_case_are_alike_and_two_cases_are_not(vectors, telling):
    assert beside(told(CASES[0]), told(CASES[1]), vectors, telling).alike == 1.0
    assert beside(told(CASES[0]), told(CASES[2]), vectors, telling).alike == pytest.approx(0.3, abs=1e-3)


def test_small_talk_is_nothing_told(vectors, telling):
    assert beside(told(CASES[0]), told(SMALL_TALK), vectors, telling).alike == 1.0
    assert beside(told(CASES[0], SMALL_TALK), told(), vectors, telling).none == 1
    assert beside(told(SMALL_TALK), told(), vectors, telling).none == 0


def test_what_one_told_more_is_counted(vectors, telling):
    found = beside(told(CASES[0]), told(CASES[1], CASES[2]), vectors, telling)
    assert (found.alike, found.none) == (1.0, 1)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [("B", "C", 0.0), ("b", "B.", 1.0), ("option A", "Option B", 0.0), ("the second", "The third", 0.0)],
)
def test_a_choice_means_just_that_however_near(vectors, telling, one, other, alike):
    assert beside(told(one), told(other), vectors, telling).alike == alike


def test_what_was_offered_is_a_choice_though_it_looks_like_small_talk(vectors):
    nothing_tells = Telling(np.zeros(len(vectors(["a"])[0]), np.float32), -9.0)
    offered = [("assistant", "Fish or chicken?"), ("user", "fish")], [("assistant", "Fish or chicken?"), ("user", "ok")]
    chosen, agreed = ([*stated(turns, "user", Facts.of)] for turns in offered)
    assert beside(chosen, [], vectors, nothing_tells).none == 1
    assert beside(agreed, [], vectors, nothing_tells).none == 0


def test_it_is_the_same_in_either_order(vectors, telling):
    one, other = told(CASES[0], "My dog is ill."), told(CASES[1], CASES[2])
    assert beside(one, other, vectors, telling) == beside(other, one, vectors, telling)
    assert beside(one, other, vectors, telling).alike < 0.5


@pytest.mark.parametrize(("count", "alike"), [(MAX_SENTENCES, 1.0), (MAX_SENTENCES + 1, 0.0)])
def test_two_stories_too_long_to_compare_are_two(vectors, telling, count, alike):
    story = told(*[f"My house number {number} is red." for number in range(count)])
    assert beside(story, story[:1], vectors, telling).alike == alike


def test_a_sentence_may_tell_and_ask():
    assert [one.text for one in told("I am vegan, is there anything for me?")] == ["I am vegan"]
    assert [one.text for one in told("What I have is a Mac.")] == ["What I have is a Mac."]
    assert told("What is a Mac?", "How do I start it", "May I go", "Had they known", "Wouldn't that help") == []
    assert [one.text for one in told("May 5 works for me")] == ["May 5 works for me"]


@pytest.mark.parametrize(
    "text",
    [
        "I have a dog\n \nand a cat",
        "I have a dog\n\t\nand a cat",
        "  \nI have a dog\nand a cat",
        "I have a dog\n\u3000\nand a cat",
    ],
)
def test_a_line_of_nothing_tells_nothing(text):
    assert [one.text.strip() for one in told(text)] == ["I have a dog", "and a cat"]


def test_what_the_embedder_does_not_see_whole_is_told(vectors, telling):
    long = "One " + 300 * "brief " + "moment please."
    assert not vectors.fits(long)
    assert beside(told(long), told(), vectors, telling).none == 1
    assert beside(told(long), told(long), vectors, telling).none == 0
    assert beside(told(SMALL_TALK), told(), vectors, telling).none == 0


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Your order has been shipped.", "Your order has not been shipped.", 0.0),
        ("The red bin is full on Monday mornings.", "The blue bin is full on Monday mornings.", 0.0),
        ("Your order has been shipped.", "We sent the parcel off.", 1.0),
        ("Saturday is sold out, Sunday is available.", "Saturday is available, Sunday is sold out.", 0.0),
    ],
)
def test_where_only_a_word_of_a_turn_changed_it_decides(vectors, one, other, alike):
    assert changed([one], [other], Facts.of, vectors) == pytest.approx(alike, abs=1e-3)
    assert changed([one], [one], Facts.of, vectors) == 1.0
