"""The forward pass of Llama and its kin on a CPU, in fewer and larger operations than transformers takes.

It computes what the network computes, on its own layers; `lean_forward` tries whether it does, and else gives none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from smartcache.models.kv import Room
from smartcache.models.packed import PackedLinear, agree

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CHILDREN = {
    "network": {"model", "lm_head"},
    "model": {"embed_tokens", "layers", "norm", "rotary_emb"},
    "layer": {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    "attention": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "mlp": {"gate_proj", "up_proj", "down_proj", "act_fn"},
}
_PROBE_TOKENS = 24


class LeanForward:
    """Reads token ids after what a Room holds, writes their state into it, and returns the last one's logits."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._body: Any = network.model
        self._head: PackedLinear = network.lm_head
        self._blocks = [_Block.of(layer) for layer in self._body.layers]

    def __call__(self, ids: torch.Tensor, room: Room) -> torch.Tensor:
        """`ids` of shape (tokens,); the logits are of shape (1, vocabulary)."""
        start = room.get_seq_length()
        rows = self._body.embed_tokens(ids)
        cos, sin = self._rotary(rows, start)
        mask = _mask(len(ids), start)
        for number, block in enumerate(self._blocks):
            # after the last layer nothing looks at any row but the last
            wanted = slice(-1, None) if number == len(self._blocks) - 1 else slice(None)
            rows = block(rows, room.layers[number], cos, sin, mask, wanted)
        logits: torch.Tensor = self._head(self._body.norm(rows))
        return logits

    def _rotary(self, rows: torch.Tensor, start: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and signed sine, each of shape (tokens, 1, width): x' = x * cos + roll(x) * sin."""
        positions = torch.arange(start, start + len(rows))[None]
        cos, sin = self._body.rotary_emb(rows[None], positions)
        half = sin.shape[-1] // 2
        signed = torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)
        return cos[0][:, None], signed[:, None]


@dataclass(frozen=True, slots=True)
class _Block:
    """One layer, on rows of shape (tokens, hidden)."""

    norm: nn.Module
    query: PackedLinear
    key: PackedLinear
    value: PackedLinear
    out: PackedLinear
    next_norm: nn.Module
    gate: PackedLinear
    up: PackedLinear
    down: PackedLinear
    width: int
    scale: float

    @classmethod
    def of(cls, layer: Any) -> _Block:
        attention, mlp = layer.self_attn, layer.mlp
        return cls(
            norm=layer.input_layernorm,
            query=attention.q_proj,
            key=attention.k_proj,
            value=attention.v_proj,
            out=attention.o_proj,
            next_norm=layer.post_attention_layernorm,
            gate=mlp.gate_proj,
            up=mlp.up_proj,
            down=mlp.down_proj,
            width=attention.head_dim,
            scale=attention.scaling,
        )

    def __call__(
        self,
        rows: torch.Tensor,
        kept: Any,
        cos: torch.Tensor,
        sin: torch.Tensor,
        mask: _Mask,
        wanted: slice,
    ) -> torch.Tensor:
        normed = self.norm(rows)
        keys, values = kept.update(
            _turn(self._heads(self.key(normed)), cos, sin).transpose(0, 1)[None],
            self._heads(self.value(normed)).transpose(0, 1)[None],
        )
        rows = rows[wanted]
        queries = _turn(self._heads(self.query(normed[wanted])), cos[wanted], sin[wanted]).transpose(0, 1)[None]
        seen = nn.functional.scaled_dot_product_attention(
            queries, keys, values, **mask.of(wanted), scale=self.scale, enable_gqa=queries.shape[1] != keys.shape[1]
        )
        rows = self.out.plus(seen[0].transpose(0, 1).reshape(len(rows), -1), rows)
        normed = self.next_norm(rows)
        return self.down.plus(self.up.times(normed, self.gate.silu(normed)), rows)

    def _heads(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.view(len(rows), -1, self.width)


@dataclass(frozen=True, slots=True)
class _Mask:
    """Who sees whom: a token what is before it."""

    added: torch.Tensor | None
    causal: bool

    def of(self, wanted: slice) -> dict[str, Any]:
        if wanted.start == -1:
            return {}  # the last one sees all
        return {"attn_mask": self.added, "is_causal": self.causal}


def _mask(tokens: int, start: int) -> _Mask:
    if tokens == 1 or not start:
        return _Mask(None, causal=tokens > 1)
    return _Mask(torch.full((tokens, start + tokens), float("-inf")).triu_(start + 1), causal=False)


def _turn(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, dims=-1), sin)


def lean_forward(network: PreTrainedModel, layers: int) -> LeanForward | None:
    """A lean forward pass for a packed `network` of so many full attention layers; None where it is of another kind."""
    try:
        if not _is_kin(network):
            return None
        lean = LeanForward(network)
        return lean if _same(network, lean, layers) else None
    except Exception:  # whatever a network has that its kin has not: it keeps its own forward pass
        return None


def _is_kin(network: Any) -> bool:
    """By the names of the parts. What the names do not tell (scales, another rotation) shows in the logits."""

    def has(module: nn.Module, kind: str) -> bool:
        return {name for name, _ in module.named_children()} == _CHILDREN[kind]

    return (
        has(network, "network")
        and has(network.model, "model")
        and all(
            has(layer, "layer")
            and has(layer.self_attn, "attention")
            and has(layer.mlp, "mlp")
            and all(isinstance(part, PackedLinear) for part in layer.self_attn.children())
            and "silu" in type(layer.mlp.act_fn).__name__.lower()
            for layer in network.model.layers
        )
    )


def _same(network: PreTrainedModel, lean: LeanForward, layers: int) -> bool:
    """Whether both write the same logits, for a beginning and for what follows it."""
    ids = torch.arange(_PROBE_TOKENS) * 7 % network.config.get_text_config().vocab_size
    room = Room(layers, _PROBE_TOKENS)
    with torch.inference_mode():
        logits = network(input_ids=ids[None], use_cache=False).logits[0]
        beginning, end = ids[: _PROBE_TOKENS // 2], ids[_PROBE_TOKENS // 2 :]
        return agree(logits[len(beginning) - 1], lean(beginning, room)[0]) and agree(logits[-1], lean(end, room)[0])
