"""On a CUDA device: the tokens of a cold run, and state that never leaves the device on a hit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import NoPrefixCache, PrefixCache  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import MakeNetwork

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

STORED = "the quick brown"
FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16


@pytest.fixture
def on_gpu(network: MakeNetwork, letter_tokenizer: Any) -> Any:
    """Makes a LocalModel on the device, around equal weights each time."""

    def make(dtype: Any = FLOAT32, *, kind: str = "llama", warm: bool = True, **options: Any) -> Any:
        prefix_cache: Any = PrefixCache(**{"max_bytes": 10**8} | options) if warm else NoPrefixCache()
        return LocalModel(network(kind).to("cuda", dtype), letter_tokenizer(), prefix_cache=prefix_cache)

    return make


@contextmanager
def known(model: Any, prompt: str) -> Iterator[list[Any]]:
    """Every tensor that the cache has for a prompt."""
    with model.prefix_cache.match(model.fingerprint, model.tokens_of(prompt)) as match:
        yield [tensor for segment in match.segments for layer in segment.layers for tensor in layer]


@pytest.mark.parametrize("overlap", range(len(STORED) + 1))
def test_float32_gives_the_tokens_of_a_cold_run(on_gpu: Any, overlap: int) -> None:
    prompt = STORED[:overlap] + "!fox!"
    warm = on_gpu()
    warm.generate(STORED, max_new_tokens=1)
    generation = warm.generate(prompt, max_new_tokens=6)
    assert generation.cached_tokens == overlap
    assert generation.token_ids == on_gpu(warm=False).generate(prompt, max_new_tokens=6).token_ids


@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16])
def test_state_is_kept_on_the_device_in_the_models_dtype(on_gpu: Any, dtype: Any) -> None:
    model = on_gpu(dtype)
    model.generate(STORED, max_new_tokens=1)
    with known(model, STORED + "!") as tensors:
        assert {(tensor.device.type, tensor.dtype) for tensor in tensors} == {("cuda", dtype)}


def test_half_precision_reuses_what_is_known(on_gpu: Any) -> None:
    model = on_gpu(BFLOAT16)
    model.generate(STORED, max_new_tokens=1)
    assert model.generate(STORED + "!", max_new_tokens=4).cached_tokens == len(STORED)


def test_a_hit_moves_no_state_to_the_host_or_back(on_gpu: Any) -> None:
    prompt = STORED * 3
    warm, cold = on_gpu(), on_gpu(warm=False)
    for model in (warm, cold):
        model.generate(prompt, max_new_tokens=1)
    known_tokens, on_a_hit = host_copies(warm, prompt + "!")
    assert known_tokens == len(prompt)
    assert on_a_hit <= host_copies(cold, prompt + "!")[1]  # the ids in and the token out, as without a cache


def test_a_batch_writes_what_each_prompt_would_alone(on_gpu: Any) -> None:
    prompts = [STORED, STORED + " fox", "a", STORED + " fox jumps"]
    cold = on_gpu(warm=False)
    expected = [cold.generate(prompt, max_new_tokens=6).token_ids for prompt in prompts]
    together = on_gpu().generate_batch(prompts, max_new_tokens=6)
    assert [generation.token_ids for generation in together] == expected
    assert sum(generation.cached_tokens for generation in together) > len(STORED)


@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize("tier", ["disk", "host memory"])
def test_state_comes_back_from_the_lower_tiers_to_the_device(
    on_gpu: Any, tmp_path: Path, dtype: Any, tier: str
) -> None:
    tiers = {"disk_path": tmp_path} if tier == "disk" else {"ram_max_bytes": 10**8}
    model = on_gpu(dtype, block_tokens=4, max_bytes=256 * 20, **tiers)  # one prompt of float32
    model.generate(STORED, max_new_tokens=1)
    model.prefix_cache.flush()
    model.generate("zzzzzzzzzzzzzzzzz", max_new_tokens=1)  # takes its place on the device
    with known(model, STORED + "!") as tensors:
        assert {(tensor.device.type, tensor.dtype) for tensor in tensors} == {("cuda", dtype)}
        assert sum(tensor.shape[-2] for tensor in tensors) == 4 * len(STORED)
    again = model.generate(STORED + "!", max_new_tokens=4)
    assert (again.cached_tokens, again.exact) == (len(STORED), True)
    if dtype == FLOAT32:
        assert again.token_ids == on_gpu(warm=False).generate(STORED + "!", max_new_tokens=4).token_ids


@pytest.mark.parametrize("kind", ["sliding", "linear", "convolution"])
def test_state_that_cannot_be_cut_is_found_at_its_boundaries(on_gpu: Any, kind: str) -> None:
    model, cold = on_gpu(kind=kind), on_gpu(kind=kind, warm=False)
    first = model.generate(STORED, max_new_tokens=6)
    assert first.token_ids == cold.generate(STORED, max_new_tokens=6).token_ids
    prompt = STORED + first.text + "!"
    second = model.generate(prompt, max_new_tokens=6)
    assert second.cached_tokens >= len(STORED) - 1  # a prompt leaves a boundary before its last token
    assert second.token_ids == cold.generate(prompt, max_new_tokens=6).token_ids


def host_copies(model: Any, prompt: str) -> tuple[int, int]:
    """How many tokens were known, and how often something went between host and device."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        cached_tokens = model.generate(prompt, max_new_tokens=1).cached_tokens
        torch.cuda.synchronize()
    return cached_tokens, sum("HtoD" in event.name or "DtoH" in event.name for event in profile.events())
