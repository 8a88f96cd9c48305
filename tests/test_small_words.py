"""Two questions of the same words that a small word makes two, and small words that change nothing."""

import pytest

from smartcache.small_words import SmallWords


def part(one: str, other: str) -> bool:
    return SmallWords.of(one).part_from(SmallWords.of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who is the mayor of Bern?", "Who was the mayor of Bern?"),
        ("How many people live in Chur?", "How many people lived in Chur?"),
        ("When will my parcel arrive?", "When did my parcel arrive?"),
        ("Can I fly with a cold?", "Should I fly with a cold?"),
        ("Can I wear a hat?", "Do I have to wear a hat?"),
        ("Does the bus go to the airport?", "Does the bus go from the airport?"),
        ("How do I call abroad?", "How do I call from abroad?"),
        ("Is every seat taken?", "Is any seat taken?"),
        ("Can I zoom in?", "Can I zoom out?"),
        ("Is it open before Easter?", "Is it open after Easter?"),
        ("What causes rust?", "What does rust cause?"),
        ("Which team beat Basel?", "Which team did Basel beat?"),
        ("What is made from milk?", "What is milk made from?"),
        ("My tree fell on his car", "His tree fell on my car"),
        ("Do I need a visa for India?", "Does he need a visa for India?"),
        ("What should she wear?", "What should I wear?"),
        ("Is it my fault?", "Is it his fault?"),
        ("Do they have to pay?", "Do I have to pay?"),
        ("Ann’s dog bit Bob’s cat", "Bob’s dog bit Ann’s cat"),
        ("Did its owner bite my dog?", "Did my owner bite its dog?"),
        ("Can my wife use my credit card?", "Can I use my wife's credit card?"),
        ("Can my boss read my emails?", "Can I read my boss's emails?"),
    ],
)
def test_a_small_word_may_make_another_question(one, other):
    assert part(one, other)
    assert part(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who is the mayor of Bern?", "Who's the mayor of Bern, please?"),
        ("How do I open it?", "How do you open it?"),
        ("Can I take my dog if he barks?", "Can I take a dog if he barks?"),
        ("Do we need a visa?", "Do I need a visa?"),
        ("When does the shop open?", "When will the shop open?"),
        ("Can I bring my dog?", "May I bring a dog?"),
        ("Must I wear a hat?", "Do I have to wear a hat?"),
        ("How do I reset it?", "How can I reset it?"),
        ("Could you tell me when the shop opens?", "When does the shop open?"),
        ("What happened to my order?", "What has happened to my order?"),
        ("What does VAT mean?", "What is the meaning of VAT?"),
        ("My tree fell on his car", "My tree fell on the car"),
        ("What do I do if my phone was lost?", "My phone is lost! And what is it that I now do about it?"),
        ("Is every seat taken?", "Are all the seats taken?"),
        ("Who is the mayor of Bern?", "Who was the mayor of Chur?"),
        ("Can my wife use my card?", "Can my wife use the card that is mine?"),
    ],
    ids=lambda text: text[:30],
)
def test_others_change_nothing_or_not_alone(one, other):
    assert not part(one, other)
    assert not part(other, one)
