"""The forward pass of Llama and its kin on a CPU: packed weights, and fewer and larger operations than transformers'.

It computes what the network computes, from its own weights; `lean_forward` tries whether it does, and else gives none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from smartcache.models.kv import Room
from smartcache.models.packed import PackedLinear, agree, keep_to_one

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedModel

_CHILDREN = {
    "network": {"model", "lm_head"},
    "model": {"embed_tokens", "layers", "norm", "rotary_emb"},
    "layer": {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    "attention": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "mlp": {"gate_proj", "up_proj", "down_proj", "act_fn"},
}
# Whose code was read. Another one of the same shape may do otherwise far from where it is tried: scale its queries
# beyond some position, for one.
_ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention"}
_PROBE_TOKENS = 24


class LeanForward:
    """Reads token ids after what a Room holds, writes their state into it, and returns the last one's logits."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._body: Any = network.model
        self._head = PackedLinear(network.lm_head)
        self._blocks = [_Block.of(layer) for layer in self._body.layers]

    def __call__(self, ids: torch.Tensor, room: Room, gaps: Mapping[str, torch.Tensor] | None = None) -> torch.Tensor:
        """`ids` of shape (rows, tokens); the logits are of shape (rows, vocabulary).

        `gaps`: of a BatchRoom whose rows begin at slots of their own, for one token a row.
        """
        count, start = ids.shape[1], room.get_seq_length()
        hidden = self._body.embed_tokens(ids)
        positions = gaps["position_ids"] if gaps else torch.arange(start, start + count, device=hidden.device)[None]
        cos, sin = self._rotary(hidden, positions)
        sight = _over_gaps(gaps["attention_mask"], hidden) if gaps else _in_order(count, start, hidden)
        for number, block in enumerate(self._blocks):
            # after the last layer nothing looks at any token but the last
            wanted = slice(-1, None) if number == len(self._blocks) - 1 else slice(None)
            hidden = block(hidden, room.layers[number], cos, sin, sight, wanted)
        logits: torch.Tensor = self._head(self._body.norm(hidden[:, -1]))
        return logits

    def values(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """The values of one layer, of shape (rows, tokens, heads * width)."""
        block = self._blocks[number]
        values: torch.Tensor = block.inward(block.norm(hidden))[..., (block.queries + block.keys) * block.width :]
        return values

    def step(self, number: int, hidden: torch.Tensor, kept: Any, at: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One layer, for tokens at the positions `at`; `mask` is added to their scores and has four dimensions."""
        cos, sin = self._rotary(hidden, at[None])
        return self._blocks[number](hidden, kept, cos, sin, _Sight(mask), slice(None))

    def _rotary(self, hidden: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and signed sine, each of shape (rows, tokens, 1, width): x' = x * cos + roll(x) * sin."""
        cos, sin = self._body.rotary_emb(hidden, positions)
        half = sin.shape[-1] // 2
        signed = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)
        return cos[:, :, None], signed[:, :, None]


@dataclass(frozen=True, slots=True)
class _Block:
    """One layer, on hidden states of shape (rows, tokens, hidden)."""

    norm: nn.Module
    inward: PackedLinear  # queries, keys and values, head by head
    outward: PackedLinear
    next_norm: nn.Module
    gate: PackedLinear
    up: PackedLinear
    down: PackedLinear
    queries: int
    keys: int
    width: int
    scale: float

    @classmethod
    def of(cls, layer: Any) -> _Block:
        attention, mlp = layer.self_attn, layer.mlp
        width = attention.head_dim
        return cls(
            norm=layer.input_layernorm,
            inward=PackedLinear(attention.q_proj, attention.k_proj, attention.v_proj),
            outward=PackedLinear(attention.o_proj),
            next_norm=layer.post_attention_layernorm,
            gate=PackedLinear(mlp.gate_proj),
            up=PackedLinear(mlp.up_proj),
            down=PackedLinear(mlp.down_proj),
            queries=attention.q_proj.out_features // width,
            keys=attention.k_proj.out_features // width,
            width=width,
            scale=attention.scaling,
        )

    def __call__(
        self, hidden: torch.Tensor, kept: Any, cos: torch.Tensor, sin: torch.Tensor, sight: _Sight, wanted: slice
    ) -> torch.Tensor:
        heads = self.inward(self.norm(hidden)).unflatten(-1, (-1, self.width))
        turned = heads[:, :, : self.queries + self.keys]
        turned = torch.addcmul(turned * cos, turned.roll(self.width // 2, dims=-1), sin).transpose(1, 2)
        keys, values = kept.update(turned[:, self.queries :], heads[:, :, self.queries + self.keys :].transpose(1, 2))
        seen = sight.attend(turned[:, : self.queries, wanted], keys, values, self.scale)
        hidden = self.outward.plus(seen.transpose(1, 2).flatten(2), hidden[:, wanted])
        normed = self.next_norm(hidden)
        return self.down.plus(self.up.times(normed, self.gate.silu(normed)), hidden)


@dataclass(frozen=True, slots=True)
class _Sight:
    """Who sees whom: a token what is before it. `added` to the scores, of shape (tokens, all) or, for one token a row,
    (rows, 1, 1, all). Instead of it, `before`: how many rows before the queries make them the square that needs no
    mask."""

    added: torch.Tensor | None = None
    before: int | None = None

    def attend(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float) -> torch.Tensor:
        """All of shape (rows, heads, tokens, width)."""
        shared = {"scale": scale, "enable_gqa": queries.shape[1] != keys.shape[1]}
        attention: Any = nn.functional.scaled_dot_product_attention
        if queries.shape[2] == 1:  # the last one sees all, but for what a row has not begun with
            mask = self.added if self.added is not None and self.added.dim() == 4 else None
            seen = attention(queries, keys, values, attn_mask=mask, **shared)
        elif self.before is not None:
            square = nn.functional.pad(queries, (0, 0, self.before, 0))
            seen = attention(square, keys, values, is_causal=True, **shared)[:, :, self.before :]
        else:
            seen = attention(queries, keys, values, attn_mask=self.added, **shared)
        result: torch.Tensor = seen
        return result


def _in_order(tokens: int, start: int, like: torch.Tensor) -> _Sight:
    """Of `tokens` after `start` others: a few of those cost less as rows too many than a mask does."""
    if 4 * start <= tokens:
        return _Sight(before=start)
    return _Sight(like.new_full((tokens, start + tokens), float("-inf")).triu_(start + 1) if tokens > 1 else None)


def _over_gaps(slots: torch.Tensor, like: torch.Tensor) -> _Sight:
    """`slots` of shape (rows, slots): 0 where a row has not begun."""
    return _Sight(like.new_zeros(slots.shape).masked_fill_(slots == 0, float("-inf"))[:, None, None])


def lean_forward(network: PreTrainedModel, layers: int) -> LeanForward | None:
    """A lean forward pass for a `network` of so many full attention layers; None where it is of another kind.

    Where there is one, the network's own linear layers are let go: it cannot be run without it any more.
    """
    try:
        if not is_kin(network):
            return None
        lean = LeanForward(network)
        if not _same(network, lean, layers):
            return None
    except Exception:  # whatever a network has that its kin has not: it keeps its own forward pass
        return None
    for module in network.modules():
        if type(module) is nn.Linear:
            module.weight = nn.Parameter(torch.empty(0), requires_grad=False)
    keep_to_one(network, runs=False)
    return lean


def is_kin(network: Any) -> bool:
    """By its attention and the names of its parts. What these do not tell (other scales) shows in the logits."""

    def has(module: nn.Module, kind: str) -> bool:
        return {name for name, _ in module.named_children()} == _CHILDREN[kind]

    return (
        has(network, "network")
        and has(network.model, "model")
        and all(
            has(layer, "layer")
            and type(layer.self_attn).__name__ in _ATTENTIONS
            and has(layer.self_attn, "attention")
            and has(layer.mlp, "mlp")
            and "silu" in type(layer.mlp.act_fn).__name__.lower()
            for layer in network.model.layers
        )
    )


def _same(network: PreTrainedModel, lean: LeanForward, layers: int) -> bool:
    """Whether both write the same logits, for a beginning and for what follows it."""
    ids = torch.arange(_PROBE_TOKENS)[None] * 7 % network.config.get_text_config().vocab_size
    room, half = Room(layers, _PROBE_TOKENS), _PROBE_TOKENS // 2
    with torch.inference_mode():
        logits = network(input_ids=ids, use_cache=False).logits[0]
        return agree(logits[half - 1], lean(ids[:, :half], room)[0]) and agree(logits[-1], lean(ids[:, half:], room)[0])
