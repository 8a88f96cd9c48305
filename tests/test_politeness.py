"""What is put around a question is set aside; a text that a word of it may be part of is left as it is."""

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.politeness import MAX_LETTERS, plainly
from smartcache.testing import BagOfWordsEmbedder

AROUND = [
    ("Good evening, what does it cost please?", "What does it cost?"),
    ("hi how do i pay pls", "how do i pay"),
    ("Sorry to bother you, but how do I pay?", "How do I pay?"),
    ("Okay, thanks. What does it cost?", "What does it cost?"),
    ("Could you tell me what it costs?", "What it costs?"),
    ("I'd like to know where she lives.", "Where she lives."),
    ("Quick question: is it open?", "Is it open?"),
    ("That works for me", "Yes."),
    ("Right. That's what I want to do.", "Yes."),
    ("No thanks.", "No."),
]


@pytest.mark.parametrize(("text", "plain"), AROUND)
def test_the_question_alone_is_kept(text, plain):
    assert plainly(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "Hello by Adele, when was it released?",
        "Please Please Me is on which album?",
        'Translate "good morning, please"',
        "Yes, but for three",
        "No, not that one",
        "Is that right?",
        "right",
        "Can you tell me the address?",
        "Great Britain, where is it?",
        "Good evening, " + "what is it? " * MAX_LETTERS,
    ],
    ids=lambda text: text[:30],
)
def test_what_may_be_meant_stays(text):
    assert plainly(text) == text


def ask(*texts):
    return Request([Turn(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)])


def test_two_ways_to_say_yes_to_one_thing_share_an_answer_and_yes_and_no_do_not():
    cache = SmartCache.open(embedder=BagOfWordsEmbedder())
    offer = "A table for two at Rosa's, at seven?"
    cache.store(ask("Book a table at Rosa's", offer, "Yes, that is correct."), Answer("It is booked."))
    assert cache.lookup(ask("Book a table at Rosa's", offer, "Sounds perfect!")).text == "It is booked."
    assert cache.lookup(ask("Book a table at Rosa's", offer, "No thanks.")) is None
    assert cache.lookup(ask("Book a table at Rosa's", offer, "Yes, but at eight.")) is None
