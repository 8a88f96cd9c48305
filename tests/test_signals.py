"""The signals of a pair: what two dialogues share and where they part, each beside a pair where it is otherwise."""

from __future__ import annotations

from dataclasses import fields

import pytest

from smartcache.dialogue import Dialogue
from smartcache.signals import MONOTONE, Signals, Told


def told(*said: str) -> Told:
    *history, question = said
    roles = ("user", "assistant") if len(history) % 2 == 0 else ("assistant", "user")
    return Told(Dialogue(tuple((roles[n % 2], text) for n, text in enumerate(history)), question))


def shares(one: tuple[str, ...], other: tuple[str, ...]) -> dict[str, float]:
    return told(*one).shares(told(*other)) | told(*one).agrees(told(*other))


@pytest.mark.parametrize(
    ("stored", "asked", "may_be_heard"),
    [
        ("Is port 80 open?", ("Is port 80 closed?",), True),
        ("Is port 80 open?", ("Is port 81 open?",), False),
        ("Is port 80 open?", ("I mean port 80.", "Yes?", "Is it open?"), True),
        ("Who is the head of Routers?", ("Who is the head of a router?",), True),
        ("What is the size of Jones's car?", ("What is the size of the car of Jones?",), True),
        ("What does the K3 cost?", ("What does the K4 cost?",), False),
        ("Is it open on the 2 first days?", ("Is it open on the first two days?",), True),
        ("Where is it?", ("Where is Rome?",), True),
        ("阿甘正传是谁导演的？", ("Who made it?",), True),
    ],
)
def test_a_fact_whose_stem_nobody_said_is_mentioned_by_nobody(stored, asked, may_be_heard):
    one, other = told(stored), told(*asked)
    assert (one.fact_stems <= other.heard_stems) is may_be_heard
    if not may_be_heard:
        assert other.refusal(one) == "facts", "and so it needs not be read"


ACME = ("Who runs Acme?", "Ann Miller runs it.", "How old is she?")
BIRK = ("Who runs Birk?", "Bo Larsen runs it.", "How old is she?")
FEE = ("What is the fee for parking?",)
CASE = ("I want a benefit", "Are you employed?", "Yes", "Anything else?", "Can I get it?")
OTHER_CASE = ("I want a benefit", "Are you employed?", "No", "Anything else?", "Can I get it?")
LONGER_CASE = ("I want a benefit", "Are you employed?", "Yes", "Do you drive?", "No", "Anything else?", "Can I get it?")

PAIRS = [
    ("unsaid", ("Is port 80 open?",), ("Is port 81 open?",), 1),
    ("unsaid", ("Is port 80 open?",), ("Open port 80 is it?",), 0),
    ("unsaid", ("Is port 80 open?",), ("Is the port open?",), 1),
    ("clashes", ("I use Acme 5 in Oslo", "Good", "Is it free?"), ("I use Acme", "Good", "Is it free?"), 0),
    ("same_words", ("Is port 80 open?",), ("is PORT 80 open",), True),
    ("same_words", ("Is port 80 open?",), ("is port 80 now open",), False),
    ("words_here", ("Is parking free?",), ("Is parking cheap?",), 1),
    ("words_there", ("Is parking free?",), ("Is parking really cheap there now?",), 2),
    ("words_there", ("Is parking free?",), ("Is parking free please?",), 0),
    ("words_shared", ("parking free",), ("free parking",), 1),
    ("words_shared", ("parking free",), ("parking paid",), 1 / 3),
    ("shared", ("parking fee today",), ("parking fee tomorrow",), 1 / 2),
    ("shared", ("parking fee today",), ("today parking fee",), 1),
    ("shared_here", ("parking fee today",), ("parking fee",), 2 / 3),
    ("shared_there", ("parking fee today",), ("parking fee",), 1),
    ("left_here", ("parking fee",), ("parking fee today",), 0),
    ("left_there", ("parking fee",), ("parking fee today",), 1),
    ("asks_apart", ("When was it built?",), ("In what year was it built?",), 0),
    ("asks_apart", ("When was it built?",), ("Tell of its building.",), 1),
    ("asks_apart", ("When was it built?",), ("What was built?",), 2),
    ("asks_apart", ("When was it built?",), ("Where was it built?",), 3),
    ("asks_apart", ("Was it built?",), ("What was built?",), 3),
    ("asks_apart", ("Was it built?",), ("And is it new?",), 0),
    ("goes_on", ("What came next?",), ("What else is there?",), 2),
    ("goes_on", ("What came next?",), ("What is there?",), 1),
    ("goes_on", ("What else is there besides Rome?",), ("What comes next to Rome?",), 0),
    ("clashes", ACME, BIRK, 1),
    ("clashes", ACME, ("Who heads Acme?", "Ann Miller.", "How old is she?"), 0),
    ("extras", ("I use Acme 5 in Oslo", "Good", "Is it free?"), ("I use Acme", "Good", "Is it free?"), 2),
    ("extras", ("I use Acme", "Good", "Is it free?"), ("I have Acme", "Good", "Is it free?"), 0),
    ("states_opposite", ("I have a car", "Good", "Is it free?"), ("I don't have a car", "Good", "Is it free?"), True),
    ("states_opposite", ("I have a car", "Good", "Is it free?"), ("I have got a car", "Good", "Is it free?"), False),
    ("reply_clashes", CASE, OTHER_CASE, 1),
    ("reply_clashes", CASE, LONGER_CASE, 0),
    ("reply_extras", CASE, LONGER_CASE, 1),
    ("reply_extras", CASE, OTHER_CASE, 0),
    ("last_least", ("Hi", "The red car", "Is it new?"), ("Hi", "The fast red car", "Is it new?"), 0),
    ("last_most", ("Hi", "The red car", "Is it new?"), ("Hi", "The fast red car", "Is it new?"), 1),
    ("last_most", ("Hi", "The red car", "Is it new?"), ("Is the car new?",), 0),
    ("facts_agree", ACME, BIRK, False),
    ("facts_agree", ACME, ACME, True),
    ("same_names", ACME, ("Tell of Acme", "Fine.", "How old is she?"), True),
    ("same_names", ACME, BIRK, False),
]


@pytest.mark.parametrize(("name", "one", "other", "value"), PAIRS)
def test_the_texts_alone_give_a_signal(name, one, other, value):
    assert shares(one, other)[name] == pytest.approx(value)


REWRITTEN = ("How old is Ann Miller of Acme?",)


@pytest.mark.parametrize(
    ("name", "leaning", "alone", "value"),
    [
        ("told_there", ACME, REWRITTEN, 1),
        ("told_there", BIRK, REWRITTEN, 1 / 4),
        ("left_there", ACME, REWRITTEN, 0),
        ("left_there", BIRK, REWRITTEN, 3),
        ("shared_there", ACME, REWRITTEN, 1 / 4),
        ("shared_here", ACME, REWRITTEN, 1),
    ],
)
def test_what_one_question_says_the_other_may_have_been_told_before(name, leaning, alone, value):
    assert shares(leaning, alone)[name] == pytest.approx(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [(pair[1], pair[2]) for pair in PAIRS] + [(ACME, REWRITTEN), (FEE, ACME), (CASE, FEE)],
)
def test_the_signals_are_the_same_in_either_order(one, other):
    assert shares(one, other) == shares(other, one)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (("Is port 80 open?",), ("Is port 80 closed?",), "polarity"),
        (("Does Ann manage Bob at work?",), ("Does Bob manage Ann at work?",), "order"),
        (("Is port 80 open?",), ("Is port 81 open?",), "facts"),
        (("Is port 80 open?",), ("Is port 80 open now?",), None),
        (REWRITTEN, ACME, None),
        (REWRITTEN, BIRK, "facts"),
    ],
)
def test_why_two_can_have_no_common_answer(one, other, reason):
    assert told(*one).refusal(told(*other)) == reason
    assert told(*other).refusal(told(*one)) == reason


def test_what_only_the_users_stated_refuses_nothing_by_itself():
    """It is weighed: `clashes` and `extras` tell of it."""
    assert told(*ACME).refusal(told(*BIRK)) is None


def test_every_signal_has_a_direction_in_the_order_of_its_values():
    assert list(MONOTONE) == [field.name for field in fields(Signals)]
    assert set(MONOTONE.values()) == {1, 0, -1}


def test_the_values_of_signals_are_numbers_in_their_order():
    signals = Signals(**{name: place for place, name in enumerate(MONOTONE)} | {"facts_agree": True})
    values = list(map(float, range(len(MONOTONE))))
    values[list(MONOTONE).index("facts_agree")] = 1.0
    assert signals.values() == tuple(values)


@pytest.mark.parametrize(("one", "other", "refusal"), [("Plan a", "plan b", "facts"), ("Option 2", "option 2.", None)])
def test_a_letter_at_the_end_is_a_fact(one, other, refusal):
    assert Told(Dialogue((), one)).refusal(Told(Dialogue((), other))) == refusal


@pytest.mark.parametrize(
    ("asked", "one", "other", "refusal"),
    [
        ("Card or PayPal?", "Card.", "PayPal", "facts"),
        ("It is at 19.", "Warmer", "Cooler", "facts"),
        ("Which crust?", "thin", "Thin please", None),
        ("Which crust?", "Is thin good?", "Is thick good?", None),
        ("Which crust?", "the thin one with garlic and cheese", "the thick one with garlic and cheese", None),
    ],
)
def test_a_reply_of_a_word_or_two_means_just_that(asked, one, other, refusal):
    left, right = told("I want pizza", asked, one), told("I want pizza", asked, other)
    assert left.refusal(right) == right.refusal(left) == refusal


@pytest.mark.parametrize(
    ("one", "other", "refusal"),
    [
        ("How old is Ann's sister?", "How old is Eve's sister?", "facts"),
        ("How old is Ann's sister?", "How old is her sister?", None),
    ],
)
def test_two_that_name_two_things_ask_of_two_things_though_both_were_named_before(one, other, refusal):
    said = ("Tell me of Ann and Eve", "Ann won with Eve.")
    assert told(*said, one).refusal(told(*said, other)) == refusal


def test_who_it_was_done_to_is_not_met_by_the_same_words():
    one, other = (told(said, "Oh.", "Who pays?") for said in ("I was rear-ended.", "I rear-ended someone."))
    again = told("Yesterday I was rear-ended by a van.", "Oh.", "Who pays?")
    assert [sentence.text for sentence in one.tells_beside(other)] == ["I was rear-ended."]
    assert again.tells_beside(again) == []


def test_a_choice_is_not_met_by_the_sentence_that_offered_it():
    one, other = (told("Pick one: A or B", "Sure.", chosen, "Good.", "Why?") for chosen in ("A", "B"))
    assert [sentence.text for sentence in one.tells_beside(other)] == ["A"]
    assert [sentence.text for sentence in other.tells_beside(one)] == ["B"]
    assert one.tells_beside(told("Pick one: A or B", "Sure.", "A", "Good.", "How?")) == []
