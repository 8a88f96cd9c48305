"""Keys: equal meaning, equal bytes; nothing else."""

from __future__ import annotations

import enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from smartcache.errors import UnstableKey
from smartcache.keys import canonical, digest

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"


class Shape(enum.Enum):
    RED = "red"


class Person(BaseModel):
    name: str


class Animal(BaseModel):
    name: str
    legs: int


def typed(value: object) -> object:
    """A value with its types, by which Python tells apart what a key must."""
    if isinstance(value, dict):
        return "map", tuple(sorted((key, typed(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        return "list", tuple(map(typed, value))
    if isinstance(value, float) and value.is_integer():
        return "int", str(int(value))
    return type(value).__name__, str(value)


@given(json_values, json_values)
def test_two_values_have_one_key_only_if_they_are_the_same(one, other):
    assert (canonical(one) == canonical(other)) == (repr(typed(one)) == repr(typed(other)))


@given(st.dictionaries(st.text(), json_values))
def test_the_order_of_a_mapping_does_not_matter(mapping):
    assert digest(mapping) == digest(dict(reversed(mapping.items())))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        ([["a"], "b"], ["a", ["b"]]),
        (None, ""),
        (None, "None"),
        (b"a", "a"),
        ({1: "a"}, {"1": "a"}),
        ({"a"}, ["a"]),
        (Colour.RED, "red"),
        (Colour.RED, Shape.RED),
        (Person(name="Ann"), {"name": "Ann"}),
        (Person, Animal),
        (True, 1),
    ],
)
def test_what_differs_has_another_key(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, 0),
        ((1, 2), [1, 2]),
        ({"x", "y"}, {"y", "x"}),
        (Person(name="Ann"), Person(name="Ann")),
        (bytearray(b"a"), b"a"),
    ],
)
def test_what_means_the_same_has_one_key(one, other):
    assert digest(one) == digest(other)


def test_a_half_character_has_a_key():
    assert digest("\ud800") != digest("?")


@pytest.mark.parametrize("value", [object(), {"a": [lambda: 1]}, float("nan"), [object]])
def test_what_has_no_stable_form_is_refused(value):
    with pytest.raises(UnstableKey):
        canonical(value)


def test_a_value_that_contains_itself_is_refused():
    value: list[object] = []
    value.append(value)
    with pytest.raises(UnstableKey, match="contains itself"):
        canonical(value)
