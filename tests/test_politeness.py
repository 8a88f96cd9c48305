"""What is put around a question is set aside; a text that a word of it may be part of is left as it is."""

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.dialogue import Dialogue
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
    ("Yes please, go ahead", "Yes."),
    ("No thanks.", "No."),
    ("Would you mind telling me who she is?", "Who she is?"),
    ("I was wondering what your rule is.", "What your rule is."),
    ("Thanks for your help. How do I pay?", "How do I pay?"),
]


@pytest.mark.parametrize(("text", "plain"), AROUND)
def test_the_question_alone_is_kept(text, plain):
    assert plainly(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "Nice work",
        "What is the meaning of cheers?",
        "What is French for please?",
        "How do you say thank you?",
        "When should I use please?",
        "When should I use thanks?",
        "How do I respond to thanks?",
        "How do I respond to cheers?",
        "Which is more formal, thank you or thanks?",
        "Works",
        "To the right",
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


@pytest.mark.parametrize(
    ("before", "text", "is_yes"),
    [
        ("Please confirm: a table for two.", "Perfect!", True),
        ("What condition is it in?", "Perfect!", False),
        ("Is it excellent, good or fine?", "Good", False),
        ("Would you like anything else?", "I'm good, thanks", False),
        ("How are you?", "Great!", False),
        ("Shall I book it?", "ok", True),
        ("Shall I book it?", "Yes please", True),
        ("Is it red or blue?", "Yes", False),
        ("Which hand do you need it for? Please confirm.", "Right", False),
        ("Your right hand? Please confirm.", "Right", True),
        ("Should I pick good, better?", "good", False),
        ("Is the weather fine?", "Fine", False),
        ("Is it at seven?", "Fine", True),
        ("Please confirm: a table for two.", "Got it. Perfect.", True),
        ("I found a table for two.", "Got it.", False),
        ("Please confirm: a table for two.", "ok, thats fine", True),
        ("Please confirm: a table for two.", "Continue", True),
        ("Here is the first chapter.", "Continue", False),
        ("Shall I stop here?", "Please continue", False),
        ("Would you like to cancel the order?", "Got it.", False),
        ("Would you like to add more?", "That's it.", False),
        ("Would you like anything else?", "That's it", False),
        ("Shall I book it?", "That suits me well", True),
        ("Shall I book it?", "Works for me", True),
        ("Do you drive?", "I do", True),
        ("Does it work?", "yeah, it does", True),
        ("Who drives?", "I do", False),
        ("", "It is", False),
        ("Do you drive?", "I don't", False),
    ],
)
def test_praise_agrees_to_what_was_to_be_confirmed_alone(before, text, is_yes):
    assert (plainly(text, before) == "Yes.") is is_yes


def test_a_long_turn_before_a_short_reply_is_read_in_one_go():
    """A hundred thousand letters took seconds, when each "what" looked for its mark to the end."""
    assert plainly("yes", "which = what\n" * 20_000) == "Yes."
    assert plainly("Fine", f"{'What is it ' * 20_000}? What is it?") == "Fine"


@pytest.mark.parametrize(
    ("before", "text", "is_no"),
    [
        ("Did you like it?", "no I didn't", True),
        ("Are you in?", "I'm not", True),
        ("Is it red?", "It isn’t.", True),
        ("Who is not in?", "I'm not", False),
        ("Are you in?", "I'm not sure", False),
    ],
)
def test_a_plain_no_is_no_in_any_words(before, text, is_no):
    assert (plainly(text, before) == "No.") is is_no


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("Hello! How can I help you today?", False),
        ("Good evening! What can I do for you?", False),
        ("Hi, I have a Mac", True),
        ("How can I help you with the Mac?", True),
    ],
)
def test_a_greeting_with_an_offer_is_nothing_to_lean_on(text, tells):
    assert bool(Dialogue((("user", "hi"), ("assistant", text)), "How do I renew a passport?").spoken) is tells


def test_a_search_is_asked_in_the_users_own_words():
    request = Request([Turn("user", "Good morning, where is the station please?")])
    assert (Dialogue.of(request).question, Dialogue.of(request).query) == ("Where is the station?", request.query)
    cache, asked = SmartCache.open(embedder=BagOfWordsEmbedder()), []
    cache.answer(request, lambda request, chunks: "There.", search=lambda query: asked.append(query) or ())
    assert asked == [request.query]


def ask(*texts):
    return Request([Turn(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)])


def test_two_ways_to_say_yes_to_one_thing_share_an_answer_and_yes_and_no_do_not():
    cache = SmartCache.open(embedder=BagOfWordsEmbedder())
    offer = "A table for two at Rosa's, at seven?"
    cache.store(ask("Book a table at Rosa's", offer, "Yes, that is correct."), Answer("It is booked."))
    assert cache.lookup(ask("Book a table at Rosa's", offer, "Sounds perfect!")).text == "It is booked."
    assert cache.lookup(ask("Book a table at Rosa's", offer, "No thanks.")) is None
    assert cache.lookup(ask("Book a table at Rosa's", offer, "Yes, but at eight.")) is None
