"""Room for KV state behaves as transformers' own cache does, and never moves or loses what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
transformers = pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.models.kv import Room  # noqa: E402

if TYPE_CHECKING:
    from tests.models.conftest import MakeNetwork


def logits(network: Any, cache: Any, *steps: list[int]) -> Any:
    with torch.inference_mode():
        for step in steps:
            result = network(input_ids=torch.tensor([step]), cache=cache, use_cache=True).logits
    return result


def room(capacity: int) -> Room:
    return Room(layer_count=2, capacity=capacity)


def test_a_room_gives_the_logits_of_a_dynamic_cache(network: MakeNetwork) -> None:
    steps = ([1, 2, 3, 4], [5], [6, 7])
    assert torch.equal(
        logits(network(), room(16), *steps),
        logits(network(), transformers.DynamicCache(config=network().config), *steps),
    )


def test_a_room_that_is_too_small_grows(network: MakeNetwork) -> None:
    steps = ([1, 2, 3, 4], [5], [6, 7])
    assert torch.equal(logits(network(), room(3), *steps), logits(network(), room(16), *steps))


def test_decoding_appends_without_moving_what_is_there(network: MakeNetwork) -> None:
    cache = room(16)
    logits(network(), cache, [1, 2, 3])
    before = cache.state(3).layers[0][0].data_ptr()
    logits(network(), cache, [4])
    assert cache.state(3).layers[0][0].data_ptr() == before


def test_a_room_can_be_cut_back_as_a_dynamic_cache_can(network: MakeNetwork) -> None:
    cut, reference = room(16), transformers.DynamicCache(config=network().config)
    for cache in (cut, reference):
        logits(network(), cache, [1, 2, 3, 4, 5])
        cache.crop(-2)
    assert torch.equal(logits(network(), cut, [6]), logits(network(), reference, [6]))


def test_its_length_is_a_number_that_stays(network: MakeNetwork) -> None:
    cache = room(16)
    logits(network(), cache, [1, 2, 3])
    length = cache.get_seq_length()
    logits(network(), cache, [4])
    assert (type(length), length, cache.get_seq_length()) == (int, 3, 4)


def test_placed_segments_give_the_logits_of_computed_ones(network: MakeNetwork) -> None:
    computed, placed = room(16), room(16)
    logits(network(), computed, [1, 2, 3, 4, 5])
    state = computed.state(5)
    placed.place([state[:2], state[2:5]], 4)
    assert torch.allclose(
        logits(network(), placed, [9]), logits(network(), room(16), [1, 2, 3, 4, 9])[:, -1:], atol=1e-5
    )


def test_a_slice_of_state_counts_the_bytes_it_holds(network: MakeNetwork) -> None:
    cache = room(16)
    logits(network(), cache, [1, 2, 3, 4, 5])
    state = cache.state(5)
    assert state[:2].nbytes + state[2:].nbytes == state.nbytes == 2 * 2 * 2 * 5 * 8 * 4  # layers, k and v, heads, width
