"""Room for KV state behaves as transformers' own cache does, and never moves or loses what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
transformers = pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import PrefixCache  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip
from smartcache.models.batch_room import BatchRoom  # noqa: E402 - after the skip
from smartcache.models.decoding import MAX_FIRST_TOKENS  # noqa: E402 - after the skip
from smartcache.models.kv import KVSegment, Room  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from tests.models.conftest import MakeModel, MakeNetwork


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


@pytest.fixture
def long_model(network: MakeNetwork, letter_tokenizer: Any) -> Any:
    return LocalModel(network(max_position_embeddings=10**7), letter_tokenizer(), prefix_cache=PrefixCache(10**8))


def room_bytes(model: Any) -> int:
    model.warm(["z"])  # whoever comes next sees to the room that was left
    return max(idle.room.nbytes for idle in model._decoder._idle._rooms)


def test_memory_is_taken_for_what_is_written_not_for_what_may_be(long_model: Any) -> None:
    stream = long_model.stream("ab", max_new_tokens=10**6)
    assert len([next(stream) for _ in range(3)]) == 3
    stream.close()
    assert room_bytes(long_model) == 256 * (2 + MAX_FIRST_TOKENS)


def test_a_batch_takes_memory_for_what_is_written_too(long_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def room(like: KVSegment, lengths: list[int], more: int) -> BatchRoom:
        taken.append(more)
        return BatchRoom(like, lengths, more)

    monkeypatch.setattr("smartcache.models.batch.BatchRoom", room)
    stop = list("abcdefghijklmnopqrstuvwxyz .!?")
    long_model.generate_batch(["ab", "c"], max_new_tokens=10**6, stop=stop)
    long_model.generate_batch(["ab", "c"], max_new_tokens=3)
    assert taken == [MAX_FIRST_TOKENS, 3]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", [1, 2, 5, 100])
def test_a_generation_that_outgrows_its_room_goes_on(
    local_model: MakeModel, monkeypatch: pytest.MonkeyPatch, first: int, packed: bool
) -> None:
    prompts = ["the quick", "a", "the quick brown fox"]
    cold = local_model(warm=False)
    expected = [cold.generate(prompt, max_new_tokens=24).token_ids for prompt in prompts]
    monkeypatch.setattr("smartcache.models.decoding.MAX_FIRST_TOKENS", first)
    monkeypatch.setattr("smartcache.models.batch.MAX_FIRST_TOKENS", first)
    model = local_model(packed=packed)
    assert [model.generate(prompt, max_new_tokens=24).token_ids for prompt in prompts] == expected
    model = local_model(packed=packed)
    together = model.generate_batch(prompts, max_new_tokens=24)
    assert [generation.token_ids for generation in together] == expected
    again = model.generate(prompts[2] + together[2].text, max_new_tokens=1)  # the rows were kept whole
    assert again.cached_tokens == again.prompt_tokens - 1


def test_a_batch_that_outgrows_its_room_while_some_have_left_goes_on(
    local_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = local_model(warm=False)
    prompts = ["the quick", "a", "the quick brown fox", "over"]
    whole = [cold.generate(prompt, max_new_tokens=24).text for prompt in prompts]
    stop = [whole[0][6:8], whole[1][2:4]]
    expected = [cold.generate(prompt, max_new_tokens=24, stop=stop).text for prompt in prompts]
    assert len({len(text) for text in expected}) > 2
    monkeypatch.setattr("smartcache.models.batch.MAX_FIRST_TOKENS", 1)
    together = local_model().generate_batch(prompts, max_new_tokens=24, stop=stop)
    assert [generation.text for generation in together] == expected


@pytest.mark.parametrize("leaves_at", range(2, 12))
def test_a_batch_grows_at_the_step_at_which_a_row_leaves(
    local_model: MakeModel, monkeypatch: pytest.MonkeyPatch, leaves_at: int
) -> None:
    """With place for four more, then eight, then sixteen: one row leaves before, at and after each growth."""
    prompts = ["the quick brown fox", "jumps"]
    cold = local_model(warm=False)
    texts = [cold.generate(prompt, max_new_tokens=20).text for prompt in prompts]
    stop = [texts[1][leaves_at - 1 : leaves_at + 1]]
    expected = [cold.generate(prompt, max_new_tokens=20, stop=stop).token_ids for prompt in prompts]
    monkeypatch.setattr("smartcache.models.batch.MAX_FIRST_TOKENS", 4)
    model = local_model()
    together = model.generate_batch(prompts, max_new_tokens=20, stop=stop)
    assert [generation.token_ids for generation in together] == expected
    assert (
        model.generate(prompts[0], max_new_tokens=20).token_ids
        == cold.generate(prompts[0], max_new_tokens=20).token_ids
    )


def test_a_lent_room_refuses_to_grow() -> None:
    memory = [(torch.zeros(1, 2, 4, 4), torch.zeros(1, 2, 4, 4))]
    lent, states = Room.over(memory, 3), torch.ones(1, 2, 1, 4)
    lent.layers[0].update(states, states)
    with pytest.raises(RuntimeError, match="place for 4 tokens, not for 5"):
        lent.layers[0].update(states, states)


def test_a_room_that_finds_no_memory_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    small, states = Room(1, 2), torch.ones(1, 2, 2, 4)
    layer = small.layers[0]
    layer.update(states, states)
    with monkeypatch.context() as patched:
        patched.setattr("smartcache.models.kv._empty", lambda *_: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            layer.update(states, states)
    layer.update(2 * states, 2 * states)
    assert small.state(4).layers[0][0][0, 0, :, 0].tolist() == [1, 1, 2, 2]


def test_a_room_that_begins_again_takes_state_of_any_form() -> None:
    def state(heads: int) -> KVSegment:
        ones = torch.ones(1, heads, 3, 4)
        return KVSegment(((ones, ones), (ones, ones)))

    again = room(8)
    again.place([state(2)], 3)
    again.begin_again()
    again.place([state(5)], 3)
    assert [keys.shape for keys, _ in again.state(3).layers] == [(1, 5, 3, 4)] * 2
