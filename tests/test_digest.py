"""The learned digest: what a question means after what was said, and that training and serving compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from smartcache.digest import MAX_STANDING, Digest, kept_turns

WIDTH, INNER, HEADS = 12, 8, 2
USER, ASSISTANT = (0.0, 0.1, 0.0), (1.0, 0.1, 0.0)


def unit_rows(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, WIDTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def digest(seed: int = 0, **changes: np.ndarray) -> Digest:
    draw = np.random.default_rng(seed)
    shapes = {"key": (INNER, WIDTH + 3), "query": (INNER, WIDTH), "own": (INNER, WIDTH), "mix": (INNER, HEADS * WIDTH)}
    shapes |= {"gate": (HEADS + 1, INNER), "out": (WIDTH, INNER)}
    weights = {f"{name}.weight": draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": draw.normal(0, 0.5, shape[:1]).astype(np.float32) for name, shape in shapes.items()}
    return Digest(weights | {"null": np.zeros(HEADS, np.float32)} | changes)


QUESTION, *TURNS = unit_rows(10)


def test_where_nothing_was_said_a_question_means_itself_and_stands_alone():
    meaning, standing = digest()(QUESTION, [], [])
    assert np.array_equal(meaning, QUESTION)
    assert standing == MAX_STANDING


def test_what_was_said_moves_the_meaning():
    one, _ = digest()(QUESTION, TURNS[:1], [USER])
    other, _ = digest()(QUESTION, TURNS[1:2], [USER])
    assert abs(float(one @ QUESTION)) < 0.999
    assert abs(float(one @ other)) < 0.999


@pytest.mark.parametrize("place", [ASSISTANT, (0.0, 0.9, 0.0), (0.0, 0.1, 1.0)], ids=["role", "age", "opening"])
def test_who_said_it_how_long_ago_and_whether_it_was_first_is_read(place):
    places = [USER, USER]
    one, _ = digest()(QUESTION, TURNS[:2], places)
    other, _ = digest()(QUESTION, TURNS[:2], [place, USER])
    assert not np.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_meaning_has_length_one(count):
    meaning, _ = digest()(QUESTION, TURNS[:count], [USER] * count)
    assert float(np.linalg.norm(meaning)) == pytest.approx(1, abs=1e-6)
    assert meaning.dtype == np.float32


@pytest.mark.parametrize("sign", [1, -1])
def test_no_question_stands_more_surely_than_the_limit(sign):
    bias = np.array([0, 0, sign * 1000], np.float32)
    assert digest(**{"gate.bias": bias})(QUESTION, TURNS[:2], [USER] * 2)[1] == sign * MAX_STANDING


def test_a_question_may_lean_on_nothing_that_was_said():
    """A null as heavy as this takes all attention to itself."""
    sure = digest(null=np.full(HEADS, 1000, np.float32))
    one, _ = sure(QUESTION, TURNS[:2], [USER] * 2)
    other, _ = sure(QUESTION, TURNS[2:4], [USER] * 2)
    assert np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("lengths", [(0,), (1,), (2,), (5,), (8,), (3, 0, 8, 1)])
def test_the_digest_is_the_attention_that_was_trained(lengths):
    torch = pytest.importorskip("torch", reason="needs the `local` extra")
    from smartcache_eval.training.attention import Attention, tensors
    from smartcache_eval.training.examples import Side

    torch.manual_seed(3)
    net = Attention(WIDTH).eval()
    with torch.no_grad():
        for weights in net.parameters():
            weights.normal_(0, 0.3)
    vectors = dict(zip(["question", *map(str, range(9))], unit_rows(10), strict=True))
    histories = [tuple((("user", "assistant")[n % 2], str(n)) for n in range(length)) for length in lengths]
    sides = [Side(history, "question") for history in histories]
    with torch.no_grad():
        meanings, stands = net(*tensors(sides, vectors.__getitem__))
    for place, side in enumerate(sides):
        kept = kept_turns(side.history)
        meaning, standing = net.digest()(
            vectors["question"], [vectors[text] for text, _ in kept], [place for _, place in kept]
        )
        assert np.allclose(meaning, meanings[place].numpy(), atol=1e-5)
        if kept:
            assert standing == pytest.approx(float(stands[place]), abs=1e-5)


def spoken(count: int) -> list[tuple[str, str]]:
    return [(("user", "assistant")[n % 2], str(n)) for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_a_short_dialogue_is_read_whole(count):
    assert [text for text, _ in kept_turns(spoken(count))] == [str(n) for n in range(count)]


@pytest.mark.parametrize("count", [9, 30])
def test_of_a_long_one_the_first_two_turns_and_the_last_six_are_read(count):
    kept = [int(text) for text, _ in kept_turns(spoken(count))]
    assert kept == [0, 1, *range(count - 6, count)]


def test_the_place_of_a_turn_is_its_role_its_age_and_whether_it_opened():
    places = [place for _, place in kept_turns(spoken(12))]
    assert places[0] == (0.0, 1.0, 1.0)
    assert places[1] == (1.0, 1.0, 1.0)
    assert places[-2] == (0.0, 0.2, 0.0)
    assert places[-1] == (1.0, 0.1, 0.0)
