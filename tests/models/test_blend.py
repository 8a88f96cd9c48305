"""Chunks away from the beginning: their state is taken, moved and mended; approximate, told, and never kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import NoPrefixCache, PrefixCache  # noqa: E402 - after the skip
from smartcache.layers.prompts import build_prompt  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip
from smartcache.models import blend_layers as blend_layers_module  # noqa: E402 - after the skip
from smartcache.models.blend_layers import blend_layers  # noqa: E402 - after the skip
from smartcache.models.kv import Room  # noqa: E402 - after the skip
from smartcache.testing import chunk  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.conftest import MakeNetwork

SYSTEM, A, B, C, ASK = "be short. ", "the quick fox. ", "a lazy dog! ", "some hen. ", "who jumps?"
PROMPT = SYSTEM + A + B + C + ASK
BLEND: dict[str, Any] = {"reuse": "blend", "chunks": [A, B, C], "max_new_tokens": 6}
KINDS = [("llama", {}), ("qwen2", {}), ("sliding", {"sliding_window": None})]
kinds = pytest.mark.parametrize(("kind", "config"), KINDS, ids=["llama", "qwen2", "mistral"])
packing = pytest.mark.parametrize("packed", [False, True])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The state of every prompt that was read, by layer, as the first new token was chosen on it."""
    from smartcache.models.blend import BlendDecoder

    states: list[Any] = []
    keep = BlendDecoder._keep

    def spying(self: Any, progress: Any, text: Any, computed: int, cache: Any) -> None:
        state = cache.state(len(progress.prompt))
        states.append([(keys.clone(), values.clone()) for keys, values in state.layers])
        keep(self, progress, text, computed, cache)

    monkeypatch.setattr(BlendDecoder, "_keep", spying)
    return states


@pytest.fixture
def model_of(network: MakeNetwork, letter_tokenizer: Any) -> Any:
    def make(kind: str = "llama", config: dict[str, Any] | None = None, **options: Any) -> LocalModel:
        config = {"max_position_embeddings": 256} | (config or {})
        return LocalModel(network(kind, **config), letter_tokenizer(), **options)

    return make


def _noted(view: Any, masks: list[int]) -> Any:
    masks.append(view.mask.numel())
    return view


@kinds
@packing
def test_with_all_computed_anew_it_is_what_a_cold_run_computes(model_of, seen, kind, config, packed):
    blended = model_of(kind, config, packed=packed).generate(PROMPT, recompute=1.0, **BLEND)
    cold = model_of(kind, config, packed=packed).generate(PROMPT, max_new_tokens=6)
    assert blended.token_ids == cold.token_ids
    for mended, right in zip(seen[0], seen[-1], strict=True):
        torch.testing.assert_close(mended, right, atol=1e-5, rtol=1e-5)
    assert (blended.recomputed_share, blended.exact, cold.recomputed_share, cold.exact) == (1.0, False, None, True)


@kinds
@packing
@pytest.mark.parametrize("rows", [1, 7])
def test_no_mask_is_of_all_by_all(model_of, seen, monkeypatch, kind, config, packed, rows):
    masks: list[int] = []
    monkeypatch.setattr(blend_layers_module, "MAX_SEEN", rows * len(PROMPT))
    of = blend_layers_module.View.of
    monkeypatch.setattr(blend_layers_module.View, "of", lambda *own: _noted(of(*own), masks))
    blended = model_of(kind, config, packed=packed).generate(PROMPT, recompute=1.0, **BLEND)
    cold = model_of(kind, config, packed=packed).generate(PROMPT, max_new_tokens=6)
    assert max(masks) <= rows * len(PROMPT)
    assert blended.token_ids == cold.token_ids
    for mended, right in zip(seen[0], seen[-1], strict=True):
        torch.testing.assert_close(mended, right, atol=1e-5, rtol=1e-5)


@kinds
@packing
def test_with_none_computed_anew_the_first_layer_is_right_and_the_second_is_not(model_of, seen, kind, config, packed):
    blended = model_of(kind, config, packed=packed).generate(PROMPT, recompute=0, **BLEND)
    model_of(kind, config, packed=packed).generate(PROMPT, max_new_tokens=1)
    torch.testing.assert_close(seen[0][0], seen[-1][0], atol=1e-5, rtol=1e-5)
    moved = slice(len(SYSTEM + A), len(SYSTEM + A + B + C))
    assert (seen[0][1][1] - seen[-1][1][1])[..., moved, :].abs().max() > 1e-2
    assert blended.recomputed_share == 0


@kinds
def test_keys_that_are_turned_are_those_of_the_new_place(network, kind, config):
    made = network(kind, **{"max_position_embeddings": 256} | config)
    ids, places, later = torch.tensor([[5, 3, 8, 1]]), torch.arange(4), torch.arange(4) + 150
    rooms = [Room(2, 4), Room(2, 4)]
    with torch.inference_mode():
        for room, at in zip(rooms, (places, later), strict=True):
            made(input_ids=ids, cache=room, position_ids=at[None], use_cache=True)
        turn = blend_layers(made, None).turning(places, later)
        (before, _), (after, _) = (room.state(4).layers[0] for room in rooms)
        torch.testing.assert_close(turn(before), after, atol=1e-5, rtol=1e-5)
        assert (before - after).abs().max() > 1e-2


def test_more_computed_anew_is_nearer_to_a_cold_run(model_of, seen):
    model = model_of(config={"num_hidden_layers": 6})
    for share in (0, 0.5, 1.0):
        model.generate(PROMPT, recompute=share, reuse="blend", chunks=[A, B, C], max_new_tokens=1)
    model.generate(PROMPT, max_new_tokens=1)
    off = [sum((mine[1] - right[1]).norm() for mine, right in zip(one, seen[-1], strict=True)) for one in seen[::2]]
    assert off[0] > off[1] > off[2]


def test_a_chunk_in_its_own_place_is_exact(model_of):
    model = model_of()
    model.generate(SYSTEM + A + ASK, reuse="blend", chunks=[A], max_new_tokens=1)
    again = model.generate(SYSTEM + A + "is it?", reuse="blend", chunks=[A], max_new_tokens=6)
    assert (again.exact, again.recomputed_share, again.cached_tokens) == (True, None, len(SYSTEM + A))
    assert again.token_ids == model_of().generate(SYSTEM + A + "is it?", max_new_tokens=6).token_ids


def test_chunks_are_taken_from_wherever_they_were(model_of):
    model = model_of()
    model.generate(PROMPT, **BLEND)
    other = model.generate(SYSTEM + B + C + A + ASK, reuse="blend", chunks=[B, C, A], recompute=0)
    assert other.cached_tokens == len(SYSTEM + B + C + A)
    mended = model.generate(SYSTEM + C + B + A + ASK, reuse="blend", chunks=[C, B, A], recompute=1.0)
    assert mended.cached_tokens == len(SYSTEM + C)


def test_the_known_beginning_comes_first(model_of):
    model = model_of()
    model.generate(SYSTEM + A + B, max_new_tokens=1)
    model.warm([SYSTEM + C])
    only_c = model.generate(PROMPT, recompute=1.0, **BLEND)
    assert only_c.cached_tokens == len(SYSTEM + A + B)
    whole = model.generate(SYSTEM + A + B + ASK, **BLEND | {"chunks": [A, B]})
    assert (whole.exact, whole.cached_tokens) == (True, len(SYSTEM + A + B))


def test_what_was_blended_feeds_no_later_generation(model_of):
    model = model_of()
    blended = model.generate(PROMPT, recompute=0, **BLEND)
    held = model.held_tokens(PROMPT)
    assert held == len(SYSTEM + A)
    exact = model.generate(PROMPT + "more", max_new_tokens=6)
    assert (exact.exact, exact.cached_tokens) == (True, held)
    assert exact.token_ids == model_of().generate(PROMPT + "more", max_new_tokens=6).token_ids
    assert not blended.exact


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.permutations([A, B, C, A]), st.sampled_from([None, 0.0, 0.3, 1.0])), max_size=5))
def test_whatever_is_blended_between_exact_generations_are_those_of_a_cold_run(model_of, asked):
    model, cold = model_of(), model_of(prefix_cache=NoPrefixCache())
    for chunks, recompute in asked:
        prompt = SYSTEM + "".join(chunks) + ASK
        own = {} if recompute is None else {"reuse": "blend", "chunks": chunks, "recompute": recompute}
        got = model.generate(prompt, max_new_tokens=3, **own)
        if got.exact or recompute == 1.0:
            assert got.token_ids == cold.generate(prompt, max_new_tokens=3).token_ids
        assert got.exact or recompute is not None


def test_what_was_not_blended_does(model_of):
    model = model_of()
    model.generate(PROMPT, max_new_tokens=6)
    assert model.generate(PROMPT + "more", max_new_tokens=6).cached_tokens == len(PROMPT)


def test_a_stream_that_is_left_keeps_nothing_that_was_blended(model_of):
    model = model_of()
    pieces = model.stream(PROMPT, recompute=0, **BLEND)
    next(pieces)
    del pieces
    assert model.generate(PROMPT, max_new_tokens=1).cached_tokens == len(SYSTEM + A)


def test_a_stream_says_what_was_computed_anew(model_of):
    ends: list[Any] = []
    text = "".join(model_of().stream(PROMPT, on_end=ends.append, **BLEND))
    assert text == ends[0].text == model_of().generate(PROMPT, **BLEND).text
    assert not ends[0].exact
    assert 0.15 <= ends[0].recomputed_share < 0.2


def test_chunks_of_a_scope_are_taken_in_it_only(model_of):
    model = model_of()
    model.generate(PROMPT, scope="a", **BLEND)
    swapped = SYSTEM + B + A + ASK
    asked = {"reuse": "blend", "chunks": [B, A], "recompute": 0}
    assert model.generate(swapped, scope="b", **asked).cached_tokens == 0
    assert model.generate(swapped, scope="a", **asked).cached_tokens == len(SYSTEM + B + A)


def test_everyones_chunks_are_taken_in_any_scope(model_of):
    model = model_of()
    model.warm([SYSTEM + A, SYSTEM + B])
    got = model.generate(SYSTEM + B + A + ASK, scope="b", reuse="blend", chunks=[B, A], recompute=0)
    assert got.cached_tokens == len(SYSTEM + B + A)


@pytest.mark.parametrize(
    ("forget", "left"),
    [
        (lambda model: model.forget(PROMPT, chunks=[A, B, C]), 0),
        (lambda model: model.forget(), 0),
        (lambda model: model.forget(SYSTEM), 0),
        (lambda model: model.prefix_cache.clear(), 0),
        (lambda model: model.forget(SYSTEM + B), len(SYSTEM + A)),
        (lambda model: model.forget(PROMPT), len(SYSTEM + A)),
    ],
    ids=["its chunks", "all", "the fixed text", "clear", "another chunk", "the prompt alone"],
)
def test_chunks_are_forgotten(model_of, forget, left):
    model = model_of()
    model.generate(PROMPT, **BLEND)
    forget(model)
    assert model.held_tokens(SYSTEM + A) == left


@pytest.mark.parametrize("chunks", [[A, B, C], [C, A, B], [B, C, A], [B, A, C, B]])
def test_no_chunk_of_a_prompt_stays(model_of, chunks):
    model = model_of()
    model.generate(PROMPT, **BLEND)
    model.forget(PROMPT, chunks=chunks)
    assert [model.held_tokens(SYSTEM + one) for one in (A, B, C)] == [0, 0, 0]


def test_of_the_chunks_that_were_given_none_stays_though_the_prompt_has_more(model_of):
    model = model_of()
    model.generate(PROMPT, **BLEND | {"chunks": [B, C]})
    assert model.held_tokens(SYSTEM + A + C) == len(SYSTEM + A + C)
    model.forget(PROMPT, chunks=[C, B])
    assert model.held_tokens(SYSTEM + A + C) == 0


def test_a_last_chunk_whose_end_could_go_on_in_a_token_is_forgotten(network, letter_tokenizer):
    model = LocalModel(network("llama", max_position_embeddings=256), letter_tokenizer((" ", "z")))
    model.generate(PROMPT, **BLEND)
    model.forget(SYSTEM + A + B + C, chunks=[A, B, C])
    assert [model.held_tokens(SYSTEM + one) for one in (A, B, C)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("prompt", "chunks", "told"),
    [
        (PROMPT, [A, "no cat. ", C], r"chunks\[1\] is not in the prompt"),
        (None, [A], "chunks are those of a prompt"),
        (PROMPT, [A, ""], r"chunks\[1\] is empty"),
    ],
)
def test_chunks_that_cannot_be_forgotten_are_told_and_nothing_is_forgotten(model_of, prompt, chunks, told):
    model = model_of()
    model.generate(PROMPT, **BLEND)
    with pytest.raises(ValueError, match=told):
        model.forget(prompt, chunks=chunks)
    assert [model.held_tokens(SYSTEM + one) for one in (A, B, C)] == [len(SYSTEM + one) for one in (A, B, C)]


def test_chunks_stay_within_the_bytes_of_the_prefix_cache(model_of):
    room = PrefixCache(512 * 30)
    cold = model_of().generate(PROMPT, max_new_tokens=6)
    blended = model_of(prefix_cache=room).generate(PROMPT, recompute=1.0, **BLEND)
    assert room.bytes() <= 512 * 30 < 512 * len(PROMPT)
    assert blended.token_ids == cold.token_ids


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("granite", {}, "blend: not for this kind of model"),
        ("wide", {}, "blend: not for this kind of model"),
        ("llama", {"prefix_cache": NoPrefixCache()}, "blend: no prefix cache"),
    ],
)
def test_where_it_cannot_be_the_generation_is_exact(model_of, kind, options, reason):
    model = model_of(kind, {}, **options)
    got = model.generate(PROMPT, **BLEND)
    assert (got.exact, got.recomputed_share) == (True, None)
    assert model.usage.bypasses[reason] == 1
    assert got.token_ids == model_of(kind, {}, **options).generate(PROMPT, max_new_tokens=6).token_ids


def test_no_chunk_takes_itself_for_the_beginning(model_of):
    model, prompt = model_of(), A + B + ASK
    got = model.generate(prompt, reuse="blend", chunks=[A, B], recompute=0, max_new_tokens=6)
    assert (got.exact, model.usage.bypasses) == (True, {"blend: no text before the first chunk": 1})
    assert got.token_ids == model_of().generate(prompt, max_new_tokens=6).token_ids
    assert model.held_tokens(B) == 0


def test_a_chunk_that_is_not_found_is_computed(model_of, seen):
    model, prompt = model_of(), SYSTEM + A + B + ASK
    got = model.generate(prompt, reuse="blend", chunks=[A, C, B], recompute=1.0, max_new_tokens=6)
    assert (got.exact, model.usage.bypasses["blend: other tokens alone than in the prompt"]) == (False, 1)
    cold = model_of().generate(prompt, max_new_tokens=6)
    assert got.token_ids == cold.token_ids
    for mended, right in zip(seen[0], seen[-1], strict=True):
        torch.testing.assert_close(mended, right, atol=1e-5, rtol=1e-5)


def test_trouble_in_placing_is_an_exact_generation(model_of, monkeypatch):
    model = model_of()
    monkeypatch.setattr(model._decoder, "_mend", lambda *_: 1 / 0)
    got = model.generate(PROMPT, **BLEND)
    assert (got.exact, got.token_ids) == (True, model_of().generate(PROMPT, max_new_tokens=6).token_ids)
    assert model.usage.bypasses["blend: chunks could not be placed"] == 1
    assert model.generate(PROMPT, max_new_tokens=1).cached_tokens == len(PROMPT) - 1


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"reuse": "mix"}, ValueError),
        ({"recompute": 1.5}, ValueError),
        ({"recompute": "all"}, TypeError),
        ({"chunks": A}, TypeError),
        ({"chunks": [1]}, TypeError),
        ({"chunks": [A, ""]}, ValueError),
    ],
)
def test_mistakes_are_told(model_of, wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        model_of().generate(PROMPT, **BLEND | wrong)


def test_a_prompt_knows_its_chunks():
    prompt = build_prompt(
        "who?", [chunk("a", "one"), chunk("b", " "), chunk("c", "two")], system="be short", examples=["x"]
    )
    assert prompt.chunks == ("one\n", "two\n")
    assert build_prompt("who?", system="be short").chunks == ()


@pytest.mark.parametrize("asked", [{"chunks": [B]}, {"recompute": 0.15}, {"chunks": [B], "reuse": "prefix"}])
@pytest.mark.parametrize("way", ["generate", "stream"])
def test_what_is_for_blend_is_refused_without_it(model_of, asked, way):
    with pytest.raises(ValueError, match='for reuse="blend" alone'):
        getattr(model_of(), way)(PROMPT, **asked)


def test_the_chunks_of_a_prompt_without_any_are_none_to_refuse(model_of):
    model = model_of()
    assert [model.generate(PROMPT, reuse=reuse, chunks=()).exact for reuse in ("prefix", "blend")] == [True, True]
    assert model.usage.bypasses == {}
