"""Packed weights change how long a forward pass takes, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.models import LocalModel  # noqa: E402 - after the skip
from smartcache.models.kv import Room  # noqa: E402 - after the skip
from smartcache.models.lean import lean_forward  # noqa: E402 - after the skip
from smartcache.models.packed import PackedLinear, pack, packs  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import MakeModel, MakeNetwork

KIN = [
    ("llama", {}),
    ("llama", {"num_key_value_heads": 4}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"tie_word_embeddings": True}),
    ("llama", {"head_dim": 16}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}}),
    ("qwen2", {}),
]
OTHERS = [
    ("llama", {"hidden_act": "gelu"}),
    ("stablelm", {}),  # turns a part of each head
    ("helium", {}),  # turns neighbours in pairs
    ("granite", {"attention_multiplier": 0.5, "residual_multiplier": 0.5, "logits_scaling": 2.0}),
    ("qwen3", {}),
    ("gpt2", {}),
]
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]

needs_packing = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN, so nothing is packed"
)
pytestmark = needs_packing


def logits_of(network: Any, ids: list[int]) -> Any:
    with torch.inference_mode():
        return network(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def linear_layers(network: Any) -> set[str]:
    return {type(module).__name__ for module in network.modules() if "Linear" in type(module).__name__}


@pytest.mark.parametrize(("kind", "settings"), KIN + OTHERS)
def test_a_packed_network_writes_the_logits_that_it_wrote(
    network: MakeNetwork, kind: str, settings: dict[str, Any]
) -> None:
    packed = network(kind, **settings)
    expected = logits_of(packed, TEXT)
    assert pack(packed)
    assert torch.allclose(logits_of(packed, TEXT), expected, atol=1e-4, rtol=1e-4)


def test_packing_lets_go_of_the_weights_it_packed(network: MakeNetwork) -> None:
    packed = network()
    assert pack(packed)
    assert linear_layers(packed) == {"PackedLinear"}
    assert not any("proj" in name for name, _ in packed.named_parameters())


@pytest.mark.parametrize(("kind", "settings"), KIN)
@pytest.mark.parametrize("known", range(len(TEXT)))
def test_the_lean_forward_pass_continues_any_beginning(
    network: MakeNetwork, kind: str, settings: dict[str, Any], known: int
) -> None:
    expected = logits_of(network(kind, **settings), TEXT)[-1]
    lean = lean_forward(network(kind, **settings), layers=2)
    assert lean
    room = Room(2, len(TEXT))
    with torch.inference_mode():
        if known:
            lean(torch.tensor([TEXT[:known]]), room)
        logits = lean(torch.tensor([TEXT[known:]]), room)
    assert torch.allclose(logits[0], expected, atol=1e-4, rtol=1e-4)
    assert room.get_seq_length() == len(TEXT)


@pytest.mark.parametrize("known", [1, 2, 3, 9, 10, 11, 20, 39])
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_the_lean_forward_pass_sees_the_same_with_and_without_a_mask(
    network: MakeNetwork, kind: str, known: int
) -> None:
    """On 40 tokens, what follows the first ten is read with rows too many, and what follows more with a mask."""
    text = [number * 7 % 30 for number in range(40)]
    expected = logits_of(network(kind), text)[-1]
    lean = lean_forward(network(kind), layers=2)
    assert lean
    room = Room(2, 40)
    with torch.inference_mode():
        lean(torch.tensor([text[:known]]), room)
        logits = lean(torch.tensor([text[known:]]), room)
    assert torch.allclose(logits[0], expected, atol=1e-4, rtol=1e-4)


def test_the_lean_masks_are_as_the_hidden_states_are_whatever_torch_takes_for_granted(local_model: MakeModel) -> None:
    prompts = ["the quick brown fox jumps", "the quick brown fox over", "a"]
    cold = local_model(warm=False)
    expected = [cold.generate(prompt, max_new_tokens=8).token_ids for prompt in prompts]
    usual, model = torch.get_default_dtype(), local_model(packed=True)
    torch.set_default_dtype(torch.float64)
    try:
        together = local_model(packed=True).generate_batch(prompts, max_new_tokens=8)
        alone = [model.generate(prompt, max_new_tokens=8) for prompt in prompts]
    finally:
        torch.set_default_dtype(usual)
    assert [generation.token_ids for generation in alone] == expected
    assert [generation.token_ids for generation in together] == expected
    assert alone[1].cached_tokens


@pytest.mark.parametrize(("kind", "settings"), OTHERS)
def test_a_network_of_another_kind_keeps_its_own_forward_pass(
    network: MakeNetwork, kind: str, settings: dict[str, Any]
) -> None:
    other = network(kind, **settings)
    expected = logits_of(other, TEXT)
    assert lean_forward(other, layers=2) is None
    assert torch.equal(logits_of(other, TEXT), expected)


def test_an_attention_that_nobody_read_keeps_its_own_forward_pass(network: MakeNetwork) -> None:
    """It may differ where it is not tried, such as far out in a long text."""
    stranger = network()
    for layer in stranger.model.layers:
        layer.self_attn.__class__ = type("FarsightedAttention", (type(layer.self_attn),), {})
    assert lean_forward(stranger, layers=2) is None
    assert lean_forward(network(), layers=2)


def test_the_lean_forward_pass_lets_go_of_the_weights_it_packed(network: MakeNetwork) -> None:
    kin = network()
    assert lean_forward(kin, layers=2)
    assert sum(weights.numel() for name, weights in kin.named_parameters() if "proj" in name or "head" in name) == 0


class Nosy(torch.nn.Module):
    """A layer that looks into its linear layer's weights."""

    def __init__(self, inner: torch.nn.Linear) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, rows: Any) -> Any:
        return self.inner(rows.to(self.inner.weight.dtype))


def test_a_network_that_looks_into_its_weights_is_left_as_it_was(network: MakeNetwork) -> None:
    nosy = network()
    nosy.lm_head = Nosy(nosy.lm_head)
    expected = logits_of(nosy, TEXT)
    assert not pack(nosy)
    assert linear_layers(nosy) == {"Linear"}
    assert torch.equal(logits_of(nosy, TEXT), expected)


def test_only_float32_is_packed(network: MakeNetwork) -> None:
    assert packs(network())
    assert not packs(network().to(torch.bfloat16))
    mixed = network()
    mixed.lm_head.to(torch.bfloat16)  # the last of its parameters
    assert not packs(mixed)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_a_packed_model_writes_what_the_plain_one_writes(local_model: MakeModel, kind: str) -> None:
    packed, plain = local_model(kind, packed=True), local_model(kind, warm=False)
    for prompt in ("the quick brown", "the quick brown fox", "the quick!", "the quick brown"):
        assert packed.generate(prompt, max_new_tokens=8).token_ids == plain.generate(prompt, max_new_tokens=8).token_ids
    assert packed.usage.cached_tokens


def test_packed_and_plain_models_never_share_state(local_model: MakeModel) -> None:
    assert local_model(packed=True).fingerprint != local_model().fingerprint


def test_a_packed_linear_layer_does_in_one_pass_what_follows() -> None:
    torch.manual_seed(0)
    linear, rows, other = torch.nn.Linear(6, 4), torch.randn(3, 6), torch.randn(3, 4)
    packed = PackedLinear(linear)
    with torch.inference_mode():
        plain = linear(rows)
        assert torch.allclose(packed(rows), plain, atol=1e-5)
        assert torch.allclose(packed.silu(rows), torch.nn.functional.silu(plain), atol=1e-5)
        assert torch.allclose(packed.plus(rows, other), plain + other, atol=1e-5)
        assert torch.allclose(packed.times(rows, other), plain * other, atol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_a_packed_model_cannot_be_wrapped_again(network: MakeNetwork, letter_tokenizer: Any, kind: str) -> None:
    mine = network(kind)
    LocalModel(mine, letter_tokenizer())
    LocalModel(mine, letter_tokenizer(), packed=True)
    with pytest.raises(ValueError, match="packed by another LocalModel"):
        LocalModel(mine, letter_tokenizer())


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_a_packed_model_is_not_saved_without_its_weights(
    network: MakeNetwork, letter_tokenizer: Any, tmp_path: Path, kind: str
) -> None:
    mine = network(kind)
    mine.save_pretrained(tmp_path / "before")
    model = LocalModel(mine, letter_tokenizer(), packed=True)
    with pytest.raises(ValueError, match="load it anew"):
        mine.save_pretrained(tmp_path / "after")
    assert not list(tmp_path.glob("after/*.safetensors"))
    assert model.generate("abc", max_new_tokens=3).token_ids


def test_a_lean_model_cannot_be_run_by_itself(network: MakeNetwork, letter_tokenizer: Any) -> None:
    mine = network()
    assert logits_of(mine, TEXT).shape[0] == len(TEXT)
    LocalModel(mine, letter_tokenizer(), packed=True)
    with pytest.raises(ValueError, match="load it anew"):
        logits_of(mine, TEXT)
