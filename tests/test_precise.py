"""What must be equal to the letter and is no name: signs of code, units, days, ordinals, who does what to whom."""

import pytest

from smartcache.facts import Facts
from smartcache.precise import is_done_to


def part(one: str, other: str) -> bool:
    left, right = Facts.of(one), Facts.of(other)
    return left.opposes(right) or left.exchanges(right) or not left.agree(right)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What does ls -l do?", "What does ls -L do?"),
        ("What is == for?", "What is === for?"),
        ("Is C++ hard?", "Is C# hard?"),
        ("What does strip() return?", "What does rstrip() return?"),
        ("Take 10 mg of it", "Take 10 g of it"),
        ("Is it open on monday?", "Is it open on friday?"),
        ("Is it due in march, or in june?", "Is it due in march, or in july?"),
        ("What happens today?", "What happens tomorrow?"),
        ("Is it open next week?", "Was it open last week?"),
        ("Solve a+b", "Solve a-b"),
        ("Is x<y?", "Is x>y?"),
        ("Is it ≤ 3?", "Is it ≥ 3?"),
        ("Is it !x?", "Is it x?"),
        ("How do I type ñ?", "How do I type ü?"),
        ("Is .net fast?", "Is net fast?"),
        ("They won the final", "They lost the final"),
        ("Is it open this Sunday?", "Is it open next Sunday?"),
        ("Do all snakes lay eggs?", "Do some snakes lay eggs?"),
        ("Tell me about the third rule", "Tell me about the fourth rule"),
        ("Tell me about the second one", "Tell me about the first one"),
        ("When was world war i?", "When was world war ii?"),
        ("Is 70 enough?", "Is eighty enough?"),
        ("How tall is he?", "How tall is she?"),
        ("Who did Microsoft acquire?", "Who acquired Microsoft?"),
        ("Did Rome defeat Carthage?", "Was Rome defeated by Carthage?"),
        ("Name all planets except Earth", "Name all planets and Earth"),
        ("Which plan has phone support?", "Which plan lacks phone support?"),
        ("In what year was it released?", "On what date was it released?"),
        ("How do I convert a list to a set?", "How do I convert a set to a list?"),
        ("How do I turn a will into a trust?", "How do I turn a trust into a will?"),
        ("I am left-handed", "I am right-handed"),
    ],
)
def test_what_is_written_otherwise_is_another_question(one, other):
    assert part(one, other)
    assert part(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What does ls -l do?", "What is ls -l for?"),
        ("Is C++ hard?", "Is C++ difficult?"),
        ("Take 10 kilos of it", "Take 10 kg of it"),
        ("Is it open on monday?", "Is it open on Mondays?"),
        ("Is it open next week?", "Is it open in the coming week?"),
        ("How long does it take?", "How many minutes does it take?"),
        ("Is a café near?", "Is a cafe near?"),
        ("Is it open last?", "Is it open in the next row?"),
        ("Do all snakes lay eggs?", "Does every snake lay eggs?"),
        ("Is 70 enough?", "Is seventy enough?"),
        ("When was it released?", "On what date was it released?"),
        ("How tall is he?", "What is his height?"),
        ("Who did Microsoft acquire?", "Whom did Microsoft acquire?"),
        ("Did Rome defeat Carthage?", "Was Carthage defeated by Rome?"),
        ("Who killed Hamlet?", "By whom was Hamlet killed?"),
    ],
)
def test_the_same_in_other_words_is_the_same_question(one, other):
    assert not part(one, other)
    assert not part(other, one)


@pytest.mark.parametrize(
    ("one", "other", "is_turned"),
    [
        ("I was rear-ended", "I rear-ended someone", True),
        ("I was bitten by a dog", "My dog bit someone", True),
        ("I sued my boss", "I got sued", True),
        ("I was sued", "I was sued again", False),
        ("I was sued.", "I sued.", True),
        ("I hit a parked car", "Someone hit my parked car", True),
        ("I bit my tongue", "My dog bit my tongue", True),
        ("I sold a faulty car", "I was sold a faulty car", True),
        ("I stole a bike.", "Somebody stole my bike.", True),
        ("I have two dogs", "I have two big dogs", False),
        ("I was hired by Acme in Oslo!", "My car is blue.", False),
        ("I was fired", "I got fired", False),
        ("We booked a room", "I booked a room", False),
        ("I booked a room", "I booked a cheap room", False),
        ("I am married", "I am single", False),
    ],
)
def test_who_does_it_and_to_whom_it_is_done(one, other, is_turned):
    assert is_done_to(one, other) is is_turned
    assert is_done_to(other, one) is is_turned


@pytest.mark.parametrize("text", ["laſt week and this year", "it weighs 5 mſ", "ſecond one"])
def test_a_letter_that_is_another_to_a_pattern_is_read(text):
    assert Facts.of(text).agree(Facts.of(text))
    assert not part(text, text)


@pytest.mark.parametrize("text", ["a" * 20_000, "我" * 20_000, "a/" * 10_000, "1-" * 10_000, "deadbeef1" * 2_000])
def test_a_long_text_without_a_space_is_told_from_another(text):
    assert Facts.of(text).agree(Facts.of(text))
    assert part(f"{text} b", f"{text[:-1]}c b") or not text.isascii()
