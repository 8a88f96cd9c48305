"""Streams that are dropped halfway: whoever ends them, the garbage collector too, what they computed is kept."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs the `local` extra")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.conftest import MakeModel

PROMPT = "the quick brown fox"


class Reader:
    """Someone who reads some pieces, and whom only the garbage collector can end."""

    def __init__(self, pieces: Iterator[str], count: int = 2) -> None:
        self.pieces, self.itself = pieces, self
        self.read = [next(pieces) for _ in range(count)]


def ends_within(seconds: float, work: Any) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


@pytest.mark.parametrize("kind", ["llama", "sliding"])
@pytest.mark.parametrize("lock", ["prefix cache", "forward pass", "usage", "rooms"])
def test_a_stream_that_the_garbage_collector_ends_waits_for_no_lock(
    local_model: MakeModel, kind: str, lock: str
) -> None:
    model = local_model(kind)
    decoder = model._decoder
    locks = {"prefix cache": model.prefix_cache._lock, "forward pass": decoder._lock, "usage": model._usage_lock}

    def collect() -> None:
        with (locks | {"rooms": decoder._idle._lock})[lock]:
            gc.collect()

    Reader(model.stream(PROMPT, max_new_tokens=8))
    assert ends_within(10, collect)
    assert model.usage.generations == 1


def test_nor_does_one_that_is_left_at_the_piece_before_a_stop_string(local_model: MakeModel) -> None:
    text = local_model().generate(PROMPT, max_new_tokens=8).text
    model = local_model()

    def collect() -> None:
        with model.prefix_cache._lock:
            gc.collect()

    # three letters are held back for the first stop string; the fourth lets one go, and completes the second
    reader = Reader(model.stream(PROMPT, max_new_tokens=8, stop=[text[:3] + "\n", text[1:4]]), 1)
    assert reader.read == [text[:1]]
    del reader
    assert ends_within(10, collect)
    assert model.generate(PROMPT, max_new_tokens=1).cached_tokens == len(PROMPT) - 1


@pytest.mark.parametrize("end", ["collected", "closed"])
@pytest.mark.parametrize("kind", ["llama", "sliding"])
def test_what_a_dropped_stream_computed_is_found_by_the_next(local_model: MakeModel, kind: str, end: str) -> None:
    model = local_model(kind)
    reader = Reader(model.stream(PROMPT, max_new_tokens=8))
    if end == "closed":
        reader.pieces.close()  # type: ignore[attr-defined]  # of a generator
    del reader
    gc.collect()
    whole = local_model(kind, warm=False).generate(PROMPT, max_new_tokens=8)
    again = model.generate(PROMPT, max_new_tokens=8)
    assert (again.token_ids, again.cached_tokens) == (whole.token_ids, len(PROMPT) - 1)
    assert model.usage.generations == 2


def test_a_dropped_stream_leaves_its_room(local_model: MakeModel) -> None:
    model = local_model()
    model.stream(PROMPT).close()  # never begun: there is none to leave
    Reader(model.stream(PROMPT, max_new_tokens=8)).pieces.close()  # type: ignore[attr-defined]  # a generator
    assert len(model._decoder._idle) == 0
    model.warm([PROMPT])  # whoever comes next keeps what was left
    assert max(len(idle.tokens) for idle in model._decoder._idle._rooms) > len(PROMPT)


def test_the_state_of_many_dropped_streams_does_not_pile_up(local_model: MakeModel) -> None:
    model, cold = local_model(), local_model(warm=False)
    for one in (model, cold):
        for _ in range(30):
            Reader(one.stream(PROMPT, max_new_tokens=8)).pieces.close()  # type: ignore[attr-defined]  # a generator
    assert 0 < len(model._decoder._broken_off) < 10
    assert len(cold._decoder._broken_off) == 0


def test_a_stream_that_is_read_to_its_end_is_kept_at_once(local_model: MakeModel) -> None:
    model = local_model()
    text = "".join(model.stream(PROMPT, max_new_tokens=8))
    assert len(model._decoder._broken_off) == 0
    assert len(model.prefix_cache) == len(PROMPT) + len(text) - 1


def test_so_is_one_that_ends_at_a_stop_string(local_model: MakeModel) -> None:
    text = local_model().generate(PROMPT, max_new_tokens=8).text
    model = local_model()
    for take in (model.generate, lambda *args, **options: list(model.stream(*args, **options))):
        take(PROMPT, max_new_tokens=8, stop=[text[4]])
        assert len(model._decoder._broken_off) == 0
        assert len(model.prefix_cache) >= len(PROMPT) + text.index(text[4])
        model.prefix_cache.clear()


def test_endings_that_nobody_asks_about_do_not_pile_up(local_model: MakeModel) -> None:
    model = local_model()
    for _ in range(200):
        model.generate("a", max_new_tokens=1)
    assert len(model._done) < 100
    assert model.usage.generations == 200
