"""Spoken slips: what was taken back in the same breath does not count, and what only looks like a slip stays."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.dialogue import Dialogue
from smartcache.repair import MAX_LETTERS, mended
from smartcache.testing import BagOfWordsEmbedder

SLIPS = [
    ("How many live in Warsaw, no, sorry, in Europe?", "How many live in Europe?"),
    ("What is the capital of France, I mean Germany?", "What is the capital of Germany?"),
    ("the number of people in Rome no wait Milan", "the number of people in Milan"),
    ("Where was he born? Sorry, when was he born?", "when was he born?"),
    ("who wrote Hamlet or rather who played Hamlet", "who played Hamlet"),
    ("How did no when did the Rhine freeze?", "when did the Rhine freeze?"),
    ("Where is uh what is the Rhine?", "what is the Rhine?"),
    ("What is the age oops make that height of it?", "What is the height of it?"),
    ("the red one, scratch that, blue one", "the red blue one"),
    ("How do I open it? No wait, how do I close it?", "how do I close it?"),
    ("Who led the army no no the navy?", "Who led the navy?"),
    ("Of what age what kind no wait what size is it?", "Of what size is it?"),
    ("When did he or actually tell me where did he live?", "where did he live?"),
    ("in May, no, I mean in June, oops, in July", "in July"),
    ("Which way did the Nile or no the Rhine flow?", "Which way did the Rhine flow?"),
    ("What is the longest no the shortest river?", "What is the shortest river?"),
    ("Where is Abu al-Rayhan erm Fielding Garrison from?", "Where is Fielding Garrison from?"),
    ("Who lived in New York ah no I mean Boston?", "Who lived in Boston?"),
    ("What began in 1981, oh that should be 1982?", "What began in 1982?"),
    ("What opened in 1995 or uh sorry 1999?", "What opened in 1999?"),
    ("In three er uh two rooms", "In two rooms"),
    ("Which century, uh no let me ask, what happened to it?", "what happened to it?"),
    ("How instead what is it?", "what is it?"),
    ("What period ugh erm how long did it last?", "how long did it last?"),
    ("What colour umm no size is it?", "What size is it?"),
]


@pytest.mark.parametrize(("text", "meant"), SLIPS)
def test_what_was_taken_back_is_left_out(text, meant):
    assert mended(text) == meant


@pytest.mark.parametrize(("letters", "is_mended"), [(MAX_LETTERS, True), (MAX_LETTERS + 1, False)])
def test_what_is_too_long_to_be_spoken_is_left_as_it_is(letters, is_mended):
    slip, before = SLIPS[0][0], "It is a long story. " * 200
    text = before[len(slip) - letters :] + slip
    assert (len(text), mended(text) != text) == (letters, is_mended)


@pytest.mark.parametrize("text", dict.fromkeys(meant for _, meant in SLIPS))
def test_what_was_meant_is_whole_already(text):
    assert mended(text) == text


@pytest.mark.parametrize(
    "text",
    [
        'What does "I mean" mean in German?',
        "What do I mean to her?",
        "By that I mean the blue one",
        "What did he mean? I mean it seriously.",
        "I'm sorry, I lost my card. What now?",
        "I am sorry about the mess, how do I clean it?",
        "Sorry, how do I reset it?",
        "How do I say sorry in French?",
        "Is he sorry or not?",
        "I feel sorry for him, what can I do?",
        "Who wrote the song Sorry by Justin Bieber?",
        "Who sings Oops I did it again?",
        "Wait, what does it cost?",
        "Should I buy it or wait until spring?",
        "Is there no wait time?",
        "Is it red or rather pink?",
        "I have no idea what to do",
        "No, I want the blue one",
        "No no, book it for three",
        "Is the answer yes or no? Actually, who asked?",
        "Tell me yes or no where the shop is",
        "She said no what should I do?",
        "When was ER first shown?",
        "How do I scratch that itch?",
        "How do I actually reset it?",
        "What happens uh when I cancel?",
        "What can I use instead when baking?",
        "What is the um capital of France?",
        "Where can I buy uh cheap shoes?",
        "Who wrote Ashita no Joe?",
        "Is a 100 Ah 12 V battery enough?",
        "the price of a 9 ah 6 volt battery",
        "Where is Kaiser ER Oakland?",
        "What is the capital of Norway, um, Oslo or Bergen?",
        "We need the milk, um, the bread and the eggs",
        "Is it Rome or uh Paris?",
        "Which is bigger, Rome or um Paris?",
        "Is the shop actually the cheapest?",
        "Is there no uh parking?",
        "We have no um parking",
        "I'd rather know what it costs",
        "two  spaces,\n\tand lines\n",
        "",
    ],
)
def test_a_text_without_a_slip_stays_to_the_letter(text):
    assert mended(text) == text


@pytest.mark.parametrize("text", ["no wait", ", sorry, ", "well, I mean", " no wait Rome"])
def test_where_nothing_comes_before_or_after_there_is_nothing_to_mend(text):
    assert mended(text) == text


@pytest.mark.parametrize("letter", [" ", "-", "\n", ",", "a "])
def test_a_long_run_of_one_sign_is_read_in_one_go(letter):
    """A hundred thousand of them would take an hour, were each tried as a beginning."""
    text = f"x{letter * 100_000}y"
    assert mended(text) == text


def test_what_was_taken_back_is_no_fact_of_a_dialogue():
    said = [Turn("user", "I have a Halden One, I mean a Halden Two"), Turn("assistant", "Good.")]
    dialogue = Dialogue.of(Request([*said, Turn("user", "How do I reset port 80, no wait, port 81?")]))
    assert dialogue.history[0][1] == "I have a Halden Two"
    assert dialogue.question == "How do I reset port 81?"


@pytest.mark.parametrize(("asked", "hits"), [("Is port 81 open?", True), ("Is port 80 open?", False)])
def test_the_question_that_was_meant_is_served(asked, hits):
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True)
    cache.store(Request([Turn("user", "Is port 80, no wait, port 81 open?")]), Answer("stored"))
    assert (cache.lookup(Request([Turn("user", asked)])) is not None) == hits


@pytest.mark.parametrize("filler", ["Um", "Umm", "Ugh", "Well", "Yes", "Er, no"])
def test_a_filler_before_a_slip_is_nothing_to_take_back(filler):
    assert mended(f"{filler}, I meant Rome") == f"{filler}, I meant Rome"


@pytest.mark.parametrize("text", ["Sorry, I meant Bristol.", "Oops, I meant a bus", "No wait, sorry, I meant Rome"])
def test_what_takes_back_another_turn_stays_as_it_is(text):
    assert mended(text) == text
    assert mended(f"To Bath. {text}") != f"To Bath. {text}"
