"""Caches that cannot be cut at any token (sliding windows, recurrent layers beside attention): reused only at stored
boundaries, where the output is that of a run without any cache, token for token (faults B45, B48)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.boundaries import MARK  # noqa: E402 - after the skip
from smartcache.layers.prefixes import NoPrefixCache, PrefixCache  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.conftest import MakeModel, MakeNetwork

STORED = "the quick brown"
SYSTEM = "you are told to answer in few words. "  # longer than what is worth a boundary of its own
WINDOWS = ["sliding", "wide", "qwen2 sliding", "qwen3 sliding", "gemma2", "gemma3", "chunked"]
HYBRIDS = ["linear", "convolution", "both in a layer", "no offset"]
EACH_KIND = pytest.mark.parametrize("kind", WINDOWS + HYBRIDS)
QUICK_KINDS = ("sliding", "gemma3", "linear")
ALL_THE_WAY = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in QUICK_KINDS else pytest.mark.slow) for kind in WINDOWS + HYBRIDS]
)
A_WINDOW_AND_A_HYBRID = pytest.mark.parametrize("kind", ["gemma3", "linear"])


@pytest.fixture
def local_model(letter_tokenizer: Any, network: MakeNetwork) -> MakeModel:
    """As everywhere, with a text for the one token more that the network has: what it writes can be read again."""

    def make(kind: str = "llama", **options: Any) -> Any:
        return LocalModel(network(kind), letter_tokenizer(("!", "!")), **{"prefix_cache": PrefixCache(10**8)} | options)

    return make


class Cold:
    """A network that computes the whole text for every token: no cache of any kind."""

    def __init__(self, network: Any, tokens_of: Any) -> None:
        self._network, self._tokens_of = network, tokens_of

    def __call__(self, prompt: str, count: int) -> tuple[int, ...]:
        tokens = list(self._tokens_of(prompt))
        for _ in range(count):
            with torch.inference_mode():
                logits = self._network(input_ids=torch.tensor([tokens]), use_cache=False).logits
            tokens.append(int(logits[0, -1].argmax()))
        return tuple(tokens[-count:])


@pytest.fixture
def cold(local_model: MakeModel, network: MakeNetwork, kind: str) -> Cold:
    return Cold(network(kind), local_model().tokens_of)


@ALL_THE_WAY
def test_any_overlap_gives_the_tokens_of_a_run_without_a_cache(local_model: MakeModel, kind: str, cold: Cold) -> None:
    warm = local_model(kind)
    for overlap in range(len(STORED) + 2):
        prefixes: PrefixCache[Any] = warm.prefix_cache
        prefixes.clear()
        warm.generate(STORED, max_new_tokens=3)
        prompt = (STORED + "!")[:overlap] + "?fox"
        assert warm.generate(prompt, max_new_tokens=4).token_ids == cold(prompt, 4), overlap


@EACH_KIND
def test_the_same_prompt_again_computes_its_last_token_only(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    first, second = (model.generate(STORED, max_new_tokens=6) for _ in range(2))
    assert (first.cached_tokens, second.cached_tokens) == (0, len(STORED) - 1)
    assert first.token_ids == second.token_ids == cold(STORED, 6)


@EACH_KIND
def test_a_conversation_goes_on_where_its_last_turn_ended(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    text, known = STORED, 0
    for _ in range(4):
        generation = model.generate(text, max_new_tokens=5)
        assert (generation.cached_tokens, generation.token_ids) == (known, cold(text, 5))
        known = model.count_tokens(text) + 4  # the last token written was never read
        text += generation.text + " and?"


@A_WINDOW_AND_A_HYBRID
def test_a_branch_finds_no_state_between_boundaries(local_model: MakeModel, kind: str) -> None:
    model = local_model(kind)
    model.generate(STORED, max_new_tokens=3)
    assert model.generate(STORED[:-3] + "!", max_new_tokens=1).cached_tokens == 0


@EACH_KIND
def test_where_two_prompts_part_the_third_begins(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    generations = []
    for own in ("a fox?", "the dog", "my cat", "a bird"):
        generations.append(model.generate(SYSTEM + own, max_new_tokens=4))
        assert generations[-1].token_ids == cold(SYSTEM + own, 4)
    assert [generation.cached_tokens for generation in generations] == [0, 0, len(SYSTEM), len(SYSTEM)]


@EACH_KIND
def test_warming_stores_the_very_end_of_a_prefix(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    for prefix in (SYSTEM, SYSTEM + "now"):
        model.warm([prefix])
        generation = model.generate(prefix + "!", max_new_tokens=4)
        assert (generation.cached_tokens, generation.token_ids) == (len(prefix), cold(prefix + "!", 4))


@A_WINDOW_AND_A_HYBRID
def test_generations_from_one_boundary_do_not_disturb_each_other(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    model.warm([STORED])
    for prompt in (STORED + " fox", STORED + " dog and so on", STORED + " fox", STORED + "!"):
        generation = model.generate(prompt, max_new_tokens=6)
        assert (generation.cached_tokens >= len(STORED), generation.token_ids) == (True, cold(prompt, 6))


def tensors_in(held: Any) -> Iterator[Any]:
    if isinstance(held, torch.Tensor):
        yield held
    elif isinstance(held, dict):
        for value in held.values():
            yield from tensors_in(value)


@A_WINDOW_AND_A_HYBRID
def test_a_stored_boundary_holds_and_counts_no_memory_but_its_own(local_model: MakeModel, kind: str) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    model = local_model(kind, prefix_cache=prefixes)
    model.generate(STORED, max_new_tokens=30)
    with prefixes.match(model.fingerprint, [*model.tokens_of(STORED)[:-1], MARK, MARK]) as match:
        tail = match.segments[-1].tail
    held = list(tensors_in(tail.layers))
    assert sum(tensor.untyped_storage().nbytes() for tensor in held) == tail.nbytes > 0
    assert sum(tensor.untyped_storage().nbytes() for tensor in held) == sum(tensor.nbytes for tensor in held)


@A_WINDOW_AND_A_HYBRID
def test_a_bounded_model_bypasses_nothing(local_model: MakeModel, kind: str) -> None:
    model = local_model(kind)
    model.generate(STORED, max_new_tokens=2)
    assert model.usage.bypasses == {}


@pytest.mark.parametrize(
    ("kind", "prefixes", "steps"),
    [("gemma3", PrefixCache(10**8), [15]), ("linear", PrefixCache(10**8), [14, 1]), ("linear", NoPrefixCache(), [15])],
)
def test_only_for_a_recurrent_layer_that_is_kept_is_the_prompt_read_in_steps(
    network: MakeNetwork, letter_tokenizer: Any, kind: str, prefixes: Any, steps: list[int]
) -> None:
    read: list[int] = []
    watched = network(kind)
    model = LocalModel(watched, letter_tokenizer(), prefix_cache=prefixes)
    watched.register_forward_pre_hook(lambda *call: read.append(call[-1]["input_ids"].shape[1]), with_kwargs=True)
    model.generate(STORED, max_new_tokens=1)
    assert read == steps


@A_WINDOW_AND_A_HYBRID
def test_without_a_prefix_cache_nothing_is_reused(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind, prefix_cache=NoPrefixCache())
    generations = [model.generate(STORED, max_new_tokens=6) for _ in range(2)]
    assert [(each.cached_tokens, each.token_ids) for each in generations] == [(0, cold(STORED, 6))] * 2


@A_WINDOW_AND_A_HYBRID
def test_a_pass_that_breaks_off_leaves_nothing_wrong_behind(
    network: MakeNetwork, letter_tokenizer: Any, kind: str, cold: Cold
) -> None:
    failing = network(kind)
    model = LocalModel(failing, letter_tokenizer(), prefix_cache=PrefixCache(10**8))
    stream = model.stream(STORED, max_new_tokens=8)
    text = next(stream) + next(stream)

    def fail(*call: Any) -> None:
        raise MemoryError

    hook = failing.model.layers[-1].register_forward_pre_hook(fail)  # the first layer has read the token by then
    with pytest.raises(MemoryError):
        next(stream)
    hook.remove()
    generation = model.generate(STORED + text + "!", max_new_tokens=6)
    assert (generation.cached_tokens, generation.token_ids) == (len(STORED) - 1, cold(STORED + text + "!", 6))


@A_WINDOW_AND_A_HYBRID
def test_a_stream_that_is_dropped_keeps_what_it_had_read(local_model: MakeModel, kind: str, cold: Cold) -> None:
    model = local_model(kind)
    stream = model.stream(STORED, max_new_tokens=8)
    text = "".join(next(stream) for _ in range(3))
    stream.close()  # type: ignore[attr-defined]  # a generator
    generation = model.generate(STORED + text + "!", max_new_tokens=6)
    assert (generation.cached_tokens, generation.token_ids) == (len(STORED) + 2, cold(STORED + text + "!", 6))


@A_WINDOW_AND_A_HYBRID
def test_a_budget_too_small_for_a_boundary_changes_nothing_but_the_reuse(
    local_model: MakeModel, kind: str, cold: Cold
) -> None:
    tight = local_model(kind, prefix_cache=PrefixCache(100))
    generations = [tight.generate(STORED, max_new_tokens=4) for _ in range(2)]
    assert [(each.cached_tokens, each.token_ids) for each in generations] == [(0, cold(STORED, 4))] * 2


class BrokenPrefixCache(NoPrefixCache):
    """A cache whose every call fails."""

    max_bytes = 1

    def match(self, fingerprint: str, tokens: Any) -> Any:
        raise MemoryError

    def store(self, fingerprint: str, tokens: Any, state: Any, **about: Any) -> int:
        raise MemoryError


@A_WINDOW_AND_A_HYBRID
def test_trouble_in_the_cache_is_counted_and_never_the_callers(local_model: MakeModel, kind: str, cold: Cold) -> None:
    broken = local_model(kind, prefix_cache=BrokenPrefixCache())
    assert broken.generate(STORED, max_new_tokens=4).token_ids == cold(STORED, 4)
    assert set(broken.usage.bypasses) == {"known prefix could not be placed", "state could not be kept"}


@A_WINDOW_AND_A_HYBRID
def test_another_scope_reuses_nothing_and_the_same_scope_does(local_model: MakeModel, kind: str) -> None:
    model = local_model(kind)
    model.warm(["the "])
    found = [model.generate(STORED, max_new_tokens=2, scope=scope).cached_tokens for scope in ("a", "b", "a")]
    assert found == [4, 4, 4], "the rest is nearer than a boundary is worth"
    model.generate(SYSTEM, max_new_tokens=2, scope="a")
    found = [model.generate(SYSTEM, max_new_tokens=2, scope=scope).cached_tokens for scope in ("b", "", "a", "b")]
    assert found == [0, 0, len(SYSTEM) - 1, len(SYSTEM) - 1]
