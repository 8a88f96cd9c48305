"""KV state on disk: the same tokens after a restart, a measured error in eight bits, nothing from a damaged file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")
safetensors = pytest.importorskip("safetensors.torch", reason="needs the `local` extra")

from smartcache.layers.prefixes import PrefixCache  # noqa: E402 - after the skip
from smartcache.models.kv import KVSegment  # noqa: E402 - after the skip
from smartcache.models.kv_files import KVFiles  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from tests.models.conftest import MakeModel

STORED = "the quick brown fox jumps"


def on_disk(path: Path, max_bytes: int = 10**8, **options: Any) -> PrefixCache[Any]:
    return PrefixCache(max_bytes, disk_path=path, **{"block_tokens": 8} | options)


def tokens(model: Any, prompt: str) -> tuple[int, ...]:
    return tuple(model.generate(prompt, max_new_tokens=6).token_ids)


def written(local_model: MakeModel, path: Path, *prompts: str, kind: str = "llama", **options: Any) -> None:
    """What a process leaves that generated after `prompts`."""
    with on_disk(path, **options) as prefixes:
        for prompt in prompts:
            local_model(kind, prefix_cache=prefixes).generate(prompt, max_new_tokens=1)


def state(dtype: Any = torch.float32, length: int = 8) -> KVSegment:
    torch.manual_seed(0)
    numbers = [torch.randn(1, 2, length, 4).to(dtype) for _ in range(4)]
    return KVSegment(((numbers[0], numbers[1]), (numbers[2], numbers[3])))


def pairs(before: KVSegment, after: KVSegment) -> list[tuple[Any, Any]]:
    layers = zip(before.layers, after.layers, strict=True)
    return [pair for one, other in layers for pair in zip(one, other, strict=True)]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("overlap", range(len(STORED) + 1))
def test_any_overlap_after_a_restart_gives_the_tokens_of_a_cold_run(
    local_model: MakeModel, tmp_path: Path, kind: str, overlap: int
) -> None:
    written(local_model, tmp_path, STORED, kind=kind)
    prompt = STORED[:overlap] + "!?"
    generation = local_model(kind, prefix_cache=on_disk(tmp_path)).generate(prompt, max_new_tokens=6)
    assert (generation.cached_tokens, generation.exact) == (overlap, True)
    assert generation.token_ids == tokens(local_model(kind, warm=False), prompt)


texts = st.text("ab ?", max_size=14)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=4), st.integers(2, 40))
def test_any_sequence_of_prompts_and_restarts_gives_the_tokens_of_cold_runs(
    local_model: MakeModel, tmp_path: Path, prompts: list[tuple[str, str, bool]], kept_tokens: int
) -> None:
    cold = local_model(warm=False)
    warm = local_model(prefix_cache=on_disk(tmp_path, 512 * kept_tokens))
    for shared, own, restart in prompts:
        for prompt in ("a" + shared, "a" + shared + own):
            assert tokens(warm, prompt) == tokens(cold, prompt)
        if restart:
            warm.prefix_cache.close()
            warm = local_model(prefix_cache=on_disk(tmp_path, 512 * kept_tokens))
    warm.prefix_cache.close()


def test_a_loaded_prefix_owns_its_memory_and_counts_its_bytes(local_model: MakeModel, tmp_path: Path) -> None:
    written(local_model, tmp_path, STORED)
    prefixes = on_disk(tmp_path)
    warm = local_model(prefix_cache=prefixes)
    with prefixes.match(warm.fingerprint, warm.tokens_of(STORED + "!")) as match:
        held = [tensor for segment in match.segments for layer in segment.layers for tensor in layer]
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in held)
    assert prefixes.bytes() == sum(tensor.nbytes for tensor in held) == 256 * len(STORED)


def test_models_with_other_weights_do_not_meet_on_disk(local_model: MakeModel, tmp_path: Path) -> None:
    written(local_model, tmp_path, STORED)
    found = [
        local_model(seed=seed, prefix_cache=on_disk(tmp_path)).generate(STORED + "!", max_new_tokens=1).cached_tokens
        for seed in (1, 0)
    ]
    assert found == [0, len(STORED)]


def test_scopes_do_not_meet_on_disk(local_model: MakeModel, tmp_path: Path) -> None:
    with on_disk(tmp_path) as prefixes:
        local_model(prefix_cache=prefixes).generate(STORED, max_new_tokens=1, scope="acme")
    found = []
    for scope in ("other", "", "acme"):
        model = local_model(prefix_cache=on_disk(tmp_path))
        found.append(model.generate(STORED + "!", max_new_tokens=1, scope=scope).cached_tokens)
        model.prefix_cache.close()
        model.prefix_cache.forget(model.fingerprint)
        model.prefix_cache.forget(f"{model.fingerprint}/other")
    assert found == [0, 0, len(STORED)]


def test_files_are_safetensors_and_nothing_else(local_model: MakeModel, tmp_path: Path) -> None:
    written(local_model, tmp_path, STORED)
    files = list(tmp_path.glob("*/*"))
    shapes = {name: tensor.shape for name, tensor in safetensors.load_file(files[0]).items()}
    assert {file.suffix for file in files} == {".safetensors"}
    assert set(shapes) == {"0.keys", "0.values", "1.keys", "1.values"}


# -- eight bits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_whole_state_comes_back_to_the_bit(dtype: Any) -> None:
    before = state(dtype)
    codec = KVFiles(torch.device("cpu"), before)
    after = codec.join([codec.unpack(codec.pack(before, None))])
    assert after.exact
    assert all(torch.equal(a, b) for a, b in pairs(before, after))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_eight_bits_are_off_by_what_they_say_and_say_so(dtype: Any) -> None:
    before = state(dtype)
    codec = KVFiles(torch.device("cpu"), before)
    packed = codec.pack(before, "int8")
    after = codec.unpack(packed)
    errors = [float((a.float() - b.float()).abs().max()) for a, b in pairs(before, after)]
    steps = [float(a.float().abs().max()) / 127 for a, _ in pairs(before, after)]
    assert (max(errors), after.exact, after.layers[0][0].dtype) == (packed.max_error, False, dtype)
    assert 0 < max(errors) <= max(steps) / 2 * (1.01 if dtype == torch.float32 else 2)


def test_a_token_whose_state_is_zero_stays_zero() -> None:
    zero = torch.zeros(1, 2, 3, 4)
    segment = KVSegment(((zero, zero),))
    codec = KVFiles(torch.device("cpu"), segment)
    after = codec.unpack(codec.pack(segment, "int8"))
    assert torch.equal(after.layers[0][0], zero)


def test_what_rests_on_eight_bits_is_never_called_exact_again(local_model: MakeModel, tmp_path: Path) -> None:
    written(local_model, tmp_path, STORED, compress="int8")
    prefixes = on_disk(tmp_path, compress="int8")
    model = local_model(prefix_cache=prefixes)
    assert model.generate("other", max_new_tokens=1).exact
    first = model.generate(STORED + " over", max_new_tokens=8)
    second = model.generate(STORED + " over" + first.text + "!", max_new_tokens=1)
    assert (first.cached_tokens, first.exact) == (len(STORED), False)
    assert (second.cached_tokens, second.exact) == (len(STORED) + 12, False)
    assert 0 < prefixes.tiers().max_error < 0.1


def test_without_compression_generations_are_exact(local_model: MakeModel, tmp_path: Path) -> None:
    written(local_model, tmp_path, STORED, compress="int8")
    model = local_model(prefix_cache=on_disk(tmp_path))
    generation = model.generate(STORED + "!", max_new_tokens=1)
    assert (generation.cached_tokens, generation.exact) == (0, True)


# -- what cannot be trusted


def damaged(file: Path, how: str) -> None:
    content = bytearray(file.read_bytes())
    if how.startswith("cut"):
        content = content[: int(float(how.split()[1]) * len(content))]
    elif how.startswith("flip"):
        content[int(float(how.split()[1]) * (len(content) - 1))] ^= 1
    elif how == "foreign":
        content = bytearray(safetensors.save({"weight": torch.zeros(3)}, {"format": "pt"}))
    file.unlink()
    file.mkdir() if how == "folder" else file.write_bytes(content)


CUTS = [f"cut {part}" for part in (0, 0.001, 0.1, 0.6, 0.999)]
FLIPS = [f"flip {part}" for part in (0, 0.2, 0.8, 1)]


@pytest.mark.parametrize("how", [*CUTS, *FLIPS, "foreign", "folder"])
def test_a_damaged_file_costs_only_what_it_held(local_model: MakeModel, tmp_path: Path, how: str) -> None:
    written(local_model, tmp_path, STORED)
    second = sorted(tmp_path.glob("*/*-8.safetensors"), key=lambda file: file.stat().st_mtime_ns)[1]
    damaged(second, how)
    model = local_model(prefix_cache=on_disk(tmp_path))
    generation = model.generate(STORED + "!", max_new_tokens=6)
    assert generation.cached_tokens == 8
    assert generation.token_ids == tokens(local_model(warm=False), STORED + "!")
    assert dict(model.prefix_cache.tiers().reasons) == {"set aside: damaged or foreign": 1}


@pytest.mark.parametrize("other", [{"dtype": torch.float16}, {"heads": 4}, {"width": 8}, {"layers": 3}])
def test_state_of_another_form_is_refused(other: dict[str, Any]) -> None:
    form = {"dtype": torch.float32, "heads": 2, "width": 4, "layers": 2} | other
    tensor = torch.ones(1, form["heads"], 8, form["width"], dtype=form["dtype"])
    foreign = KVSegment(((tensor, tensor),) * form["layers"])
    packed = KVFiles(torch.device("cpu"), foreign).pack(foreign, None)
    codec = KVFiles(torch.device("cpu"), state())
    with pytest.raises(ValueError, match="another model"):
        codec.unpack(packed)
    assert len(codec.unpack(codec.pack(state(), None))) == len(state())


def test_files_of_another_form_are_set_aside_after_a_restart(local_model: MakeModel, tmp_path: Path) -> None:
    """As one of an older version of this project might have left them: well-formed, with the right tokens."""
    written(local_model, tmp_path, STORED)
    for file in tmp_path.glob("*/*.safetensors"):
        with safetensors.safe_open(file, "pt") as opened:
            about = opened.metadata()
        narrow = {name: tensor[..., :4].contiguous() for name, tensor in safetensors.load_file(file).items()}
        safetensors.save_file(narrow, file, about)
    prompts = [STORED + "!", STORED + "?", "other"]
    cold = local_model(warm=False)
    expected = [tokens(cold, prompt) for prompt in prompts]
    for number in range(3):
        model = local_model(prefix_cache=on_disk(tmp_path))
        if number == 2:  # what was computed anew is found again
            assert model.generate(prompts[0], max_new_tokens=1).cached_tokens == len(STORED)
        batch = model.generate_batch(prompts, max_new_tokens=6) if number else []
        found = [generation.token_ids for generation in batch] or [tokens(model, prompt) for prompt in prompts]
        assert (found, dict(model.usage.bypasses)) == (expected, {})
        model.prefix_cache.close()


def test_threads_get_the_answers_of_cold_runs(local_model: MakeModel, tmp_path: Path) -> None:
    prompts = [STORED[: 3 + number] + "!" for number in range(0, 20, 2)]
    written(local_model, tmp_path, *prompts[::2])
    warm = local_model(prefix_cache=on_disk(tmp_path, 512 * 30, disk_max_bytes=60_000))
    answers: dict[str, tuple[int, ...]] = {}
    asked = [threading.Thread(target=lambda p=prompt: answers.update({p: tokens(warm, p)})) for prompt in prompts * 2]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    warm.prefix_cache.close()
    cold = local_model(warm=False)
    assert answers == {prompt: tokens(cold, prompt) for prompt in prompts}
