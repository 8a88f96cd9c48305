"""The vectors of a dialogue: what they are made of, and that they come back from the store as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartcache.dialogue import Dialogue
from smartcache.digest import MAX_STANDING
from smartcache.embedding import RememberedVectors, unit
from smartcache.state import QUESTION_SHARE, State
from smartcache.testing import BagOfWordsEmbedder

OPERA = "Who wrote the opera Carmen?"
ACME = (("user", "Who runs Acme?"), ("assistant", "Ann runs it."))
LEANING = Dialogue(ACME, "How old is she?")
VECTORS = RememberedVectors(BagOfWordsEmbedder())


class FirstTurn:
    """A digest that means the first turn, whatever is asked, and remembers what it was given."""

    def __init__(self):
        self.places = None

    def __call__(self, question, turns, places):
        self.places = places
        return (turns[0], -1.5) if turns else (question, MAX_STANDING)


def vector(text: str) -> np.ndarray:
    return VECTORS([text])[0]


def test_a_question_that_stands_alone_is_found_by_itself():
    state = State.of(Dialogue(ACME, OPERA), VECTORS)
    assert state.context is None
    assert np.allclose(state.vector, vector(OPERA))


def test_one_that_leans_is_found_by_what_the_user_said_as_well():
    state = State.of(LEANING, VECTORS)
    expected = QUESTION_SHARE * vector("How old is she?") + (1 - QUESTION_SHARE) * vector("Who runs Acme?")
    assert np.allclose(state.vector, unit(expected))


def test_where_the_user_said_nothing_it_leans_on_the_assistant():
    state = State.of(Dialogue((("assistant", "Ann runs Acme."),), "How old is she?"), VECTORS)
    assert np.allclose(state.context, vector("Ann runs Acme."))


def test_without_a_digest_there_is_nothing_of_a_digest():
    state = State.of(LEANING, VECTORS)
    assert (state.meaning, state.said, state.last, state.standing) == (None, None, None, None)


def test_without_a_digest_only_what_is_leaned_on_is_embedded():
    embedder = BagOfWordsEmbedder()
    State.of(Dialogue(ACME, OPERA), RememberedVectors(embedder))
    assert embedder.texts == [OPERA]


def test_with_a_digest_the_dialogue_is_found_by_its_meaning():
    state = State.of(LEANING, VECTORS, FirstTurn())
    assert np.allclose(state.vector, vector("Who runs Acme?"))
    assert state.standing == -1.5


def test_the_user_said_the_mean_of_all_their_turns_and_last_is_the_turn_before_the_question():
    history = (*ACME, ("user", "And who runs Birk?"), ("assistant", "Bo runs it."))
    state = State.of(Dialogue(history, OPERA), VECTORS, FirstTurn())
    assert np.allclose(state.said, unit(vector("Who runs Acme?") + vector("And who runs Birk?")))
    assert np.allclose(state.last, vector("Bo runs it."))


def test_greetings_are_nothing_that_was_said():
    state = State.of(Dialogue((("user", "Hi"), ("assistant", "Hello!")), OPERA), VECTORS, FirstTurn())
    assert (state.said, state.last, state.standing) == (None, None, MAX_STANDING)
    assert np.allclose(state.meaning, vector(OPERA))


def test_each_turn_goes_to_the_digest_with_its_place():
    digest = FirstTurn()
    State.of(LEANING, VECTORS, digest)
    assert digest.places == [(0.0, 0.2, 1.0), (1.0, 0.1, 1.0)]


def test_a_chinese_question_has_no_digest():
    state = State.of(Dialogue((("user", "你看过《无间道》吗？"),), "它的导演是谁？"), VECTORS, FirstTurn())
    assert (state.meaning, state.said, state.last, state.standing) == (None, None, None, MAX_STANDING)


def test_a_text_is_embedded_once_however_often_it_is_needed():
    embedder = BagOfWordsEmbedder()
    State.of(Dialogue((*ACME, *ACME), "How old is she?"), RememberedVectors(embedder), FirstTurn())
    assert sorted(embedder.texts) == ["Ann runs it.", "How old is she?", "Who runs Acme?"]


ROWS = {name: VECTORS([f"of {name}"])[0] for name in ("question", "context", "meaning", "said", "last")}
PLAIN = [State(ROWS["question"]), State(ROWS["question"], ROWS["context"])]
LEARNED = [
    State(**ROWS, standing=-2.25),
    State(ROWS["question"], None, ROWS["meaning"], None, None, MAX_STANDING),
    State(ROWS["question"], None, ROWS["meaning"], None, ROWS["last"], 0.0),
    State(ROWS["question"], standing=MAX_STANDING),
]


@pytest.mark.parametrize("state", [*PLAIN, *LEARNED])
def test_a_state_comes_back_from_its_bytes(state):
    again = State.from_bytes(state.to_bytes(), 512)
    for name in ROWS:
        one, other = getattr(state, name), getattr(again, name)
        assert (one is None) == (other is None)
        assert one is None or np.allclose(one, other, atol=5e-4)
    assert again.standing == state.standing


def test_a_plain_state_comes_back_to_the_bit():
    again = State.from_bytes(PLAIN[1].to_bytes(), 512)
    assert np.array_equal(again.question, ROWS["question"])
    assert np.array_equal(again.context, ROWS["context"])


@pytest.mark.parametrize("state", [*PLAIN, *LEARNED])
def test_it_is_found_by_a_unit_vector_also_after_that(state):
    found = State.from_bytes(state.to_bytes(), 512).vector
    assert float(np.linalg.norm(found)) == pytest.approx(1, abs=1e-6)
    assert float(found @ state.vector) == pytest.approx(1, abs=1e-4)


@given(dimension=st.integers(1, 2_000), has_context=st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_state_with_a_digest_is_never_taken_for_one_without(dimension, has_context):
    row = np.ones(dimension, np.float32)
    context = row if has_context else None
    assert State.from_bytes(State(row, context).to_bytes(), dimension).standing is None
    assert State.from_bytes(State(row, context, row, standing=1.0).to_bytes(), dimension).standing == 1.0


@pytest.mark.parametrize("raw", [b"", b"1234567", b"\0" * 12, LEARNED[0].to_bytes()[:-1]])
def test_damaged_bytes_are_no_state(raw):
    with pytest.raises(ValueError, match=r"."):
        State.from_bytes(raw, 512)
