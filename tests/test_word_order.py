"""Two words in each other's place make another question, whatever articles stand before them."""

import pytest

from smartcache.facts import Facts


def exchanges(one: str, other: str) -> bool:
    return Facts.of(one).exchanges(Facts.of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I copy a file from my laptop to my phone?", "How do I copy a file from my phone to my laptop?"),
        ("Do I add the milk to the tea?", "Do I add the tea to the milk?"),
        ("How many cents are in a euro?", "How many euros are in a cent?"),
        ("Does a buyer pay the seller's fees?", "Does a seller pay the buyer's fees?"),
    ],
)
def test_what_changes_places_is_seen_behind_articles_and_forms(one, other):
    assert exchanges(one, other)
    assert exchanges(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I copy a file from my laptop to my phone?", "How do I copy the file from a laptop to the phone?"),
        ("Do I add milk and sugar to the tea?", "Do I add sugar and milk to the tea?"),
        ("How many cents are in a euro?", "How many cents does a euro have?"),
    ],
)
def test_what_stays_in_its_place_or_stands_beside_its_equal_does_not(one, other):
    assert not exchanges(one, other)
