"""Hard facts in other spellings and other forms, and what is no negation: each beside what must stay apart."""

from __future__ import annotations

import pytest

from smartcache.dialogue import Dialogue
from smartcache.facts import Facts


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Fly to Zürich", "fly to Zurich", True),
        ("Fly to Zürich", "fly to Zug", False),
        ("Who is Beyoncé?", "Who is Beyonce?", True),
        ("Meet at 5pm", "Meet at 5 pm", True),
        ("Meet at 5pm", "Meet at 6 pm", False),
        ("A disk of 1.5TB", "a disk of 1.5 TB", True),
        ("A disk of 1.5TB", "a disk of 1.5 GB", False),
        ("Songs by the Beatles", "a Beatle song", True),
        ("Songs by the Beatles", "a song by the Stones", False),
        ("In two Markets", "in 2 markets", True),
        ("Where is the Box?", "Where are the boxes?", True),
        ("Songs by Jones", "songs by Jon", False),
        ("Songs by Jones", "songs by jon", False),
        ("Songs by Jones", "songs that are Jones's", True),
        ("Songs by Jones", "jones's songs", True),
        ("Poems by Browning", "poems by Brown", False),
        ("Poems by Browning", "poems by browning", True),
        ("Is port 80 open?", "Is port 8 open?", False),
        ("Is it v2.3 or more?", "Is it v2.31 or more?", False),
    ],
)
def test_a_fact_in_another_spelling_is_the_same_fact(one, other, agree):
    assert Facts.of(one).agree(Facts.of(other)) is agree
    assert Facts.of(other).agree(Facts.of(one)) is agree


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ポケモン", "ポケモン"),
        ("ガス", "ガス"),
        ("한국", "한국"),
        ("май", "май"),
        ("naïve", "naive"),
        ("Ångström", "angstrom"),
    ],
)
def test_only_latin_letters_lose_their_accents(text, word):
    assert word in Facts.of(text).words


@pytest.mark.parametrize(
    ("one", "other", "opposed"),
    [
        ("Is it open or not?", "Is it open?", False),
        ("Is it not open?", "Is it open?", True),
        ("I don't know why it stopped", "Why it stopped", False),
        ("I don't see why it stopped", "I see why it stopped", True),
        ("I am not sure which it is", "Which it is", False),
        ("No problem, is it open?", "Is it open?", False),
        ("Not only the car runs", "Also the car runs", False),
        ("No, book it for three people", "Book it for three people", False),
        ("Book it for no three people", "Book it for three people", True),
        ("No, book it for three people", "Yes, book it for three people", True),
        ("Yes, book it for three people", "Sure, book it for three people", False),
        ("No one came here", "Yes, he came here", True),
        ("No.", "Yes.", True),
        ("No.", "nope", False),
        ("Why can't I log in?", "Why can I log in?", True),
        ("I can't wait to log in", "I long to log in", False),
        ("Meet at 5pm", "Meet at 5 am", True),
        ("Meet at 5pm", "Meet at 5 PM", False),
        ("Meet at 5pm", "I am to meet at 5", False),
        ("a bag of 10kg", "a bag of 10 km", True),
        ("a walk of 2hrs", "a walk of 2 hr", False),
    ],
)
def test_what_denies_something_and_what_only_says_no(one, other, opposed):
    assert Facts.of(one).opposes(Facts.of(other)) is opposed
    assert Facts.of(other).opposes(Facts.of(one)) is opposed


@pytest.mark.parametrize(
    ("one", "other", "exchanged"),
    [
        ("Move files from Acme to Birk", "Move files from Birk to Acme", True),
        (
            "Could you tell me in detail how to move files from Acme to Birk?",
            "Please explain moving all my old files from Birk to Acme quickly",
            True,
        ),
        (
            "Could you tell me in detail how the files get a copy on disks?",
            "Please explain whether disks of old machines keep the files safe",
            False,
        ),
        ("Move files from disks to tapes", "Move files from tapes to disks", True),
    ],
)
def test_of_texts_that_are_reworded_only_what_is_named_has_its_place(one, other, exchanged):
    assert Facts.of(one).exchanges(Facts.of(other)) is exchanged
    assert Facts.of(other).exchanges(Facts.of(one)) is exchanged


def test_greetings_tell_nothing_and_what_is_left_was_spoken():
    dialogue = Dialogue((("user", "Hello!"), ("assistant", "Hi"), ("user", "I use Acme"), ("assistant", "5")), "Is it?")
    assert dialogue.spoken == (("user", "I use Acme"), ("assistant", "5"))
