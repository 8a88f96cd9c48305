"""The layers of Llama and its kin, one at a time and for any tokens of a text: to compute a few of them anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch

from smartcache.models.lean import LeanForward, is_kin

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

    from smartcache.models.kv import Room

MAX_SEEN = 2**22  # tokens by what each sees: as a mask in float32, 16 MiB
_MASKS = {"sdpa", "eager"}  # implementations of attention that take any mask


class BlendLayers(Protocol):
    """Layers by number. Hidden states are of shape (1, tokens, hidden)."""

    def embed(self, ids: torch.Tensor) -> torch.Tensor: ...
    def values(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """The values of these tokens in a layer, of shape (1, tokens, heads * width)."""

    def step(self, number: int, hidden: torch.Tensor, room: Room, view: View) -> torch.Tensor:
        """What the layer makes of the tokens of `view`; their state is written into `room`, which holds that of all
        others before."""

    def turning(self, was: torch.Tensor, now: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """What makes keys of tokens at the positions `was` those that they have at the positions `now`."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Tokens of a text by their places, in order, and what they see, up to the last of them: the `mask` is added to
    their scores, and of shape (1, 1, tokens, seen)."""

    at: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def of(cls, at: torch.Tensor, like: torch.Tensor) -> Self:
        hides = torch.arange(int(at[-1]) + 1, device=at.device)[None] > at[:, None]
        return cls(at, like.new_zeros(hides.shape).masked_fill_(hides, float("-inf"))[None, None])


def step(layers: BlendLayers, number: int, hidden: torch.Tensor, room: Room, at: torch.Tensor) -> torch.Tensor:
    """What a layer makes of the tokens at the places `at`, in order: a slice of them after the other, since a mask of
    all would grow with the square of the text."""
    rows = max(1, MAX_SEEN // (int(at[-1]) + 1))
    slices = zip(torch.split(hidden, rows, dim=1), torch.split(at, rows), strict=True)
    return torch.cat([layers.step(number, some, room, View.of(places, some)) for some, places in slices], dim=1)


def blend_layers(network: PreTrainedModel, lean: LeanForward | None) -> BlendLayers | None:
    """The layers of a network with rotary positions whose code is known; None where it is of another kind."""
    try:
        if not is_kin(network) or len(network.model.layers) < 2:
            return None
        if lean is not None:
            return _LeanLayers(network, lean)
        return _NetworkLayers(network) if network.config._attn_implementation in _MASKS else None
    except Exception:  # whatever a network has that its kin has not
        return None


class _Rotary:
    """What both kinds of layers share: the parts around them."""

    def __init__(self, network: Any) -> None:
        self._body = network.model

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        embedded: torch.Tensor = self._body.embed_tokens(ids)
        return embedded

    def turning(self, was: torch.Tensor, now: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """By the cosines and sines that the model itself would take, so that what is rounded is rounded alike."""
        like = torch.empty(0, dtype=torch.float32, device=now.device)
        cos_was, sin_was = self._body.rotary_emb(like, was[None])
        cos_now, sin_now = self._body.rotary_emb(like, now[None])
        scale = cos_was**2 + sin_was**2  # some rotary embeddings also scale, and the keys are scaled already
        cos = (cos_now * cos_was + sin_now * sin_was) / scale
        sin = (sin_now * cos_was - cos_now * sin_was) / scale

        def turned(keys: torch.Tensor) -> torch.Tensor:
            left, right = keys.float().chunk(2, dim=-1)
            moved: torch.Tensor = (keys.float() * cos + torch.cat((-right, left), dim=-1) * sin).to(keys.dtype)
            return moved

        return turned


class _LeanLayers(_Rotary):
    def __init__(self, network: Any, lean: LeanForward) -> None:
        super().__init__(network)
        self._lean = lean

    def values(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        return self._lean.values(number, hidden)

    def step(self, number: int, hidden: torch.Tensor, room: Room, view: View) -> torch.Tensor:
        return self._lean.step(number, hidden, _Written(room.layers[number], view), view.at, view.mask)


class _NetworkLayers(_Rotary):
    def values(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        layer = self._body.layers[number]
        values: torch.Tensor = layer.self_attn.v_proj(layer.input_layernorm(hidden))
        return values

    def step(self, number: int, hidden: torch.Tensor, room: Room, view: View) -> torch.Tensor:
        made: torch.Tensor = self._body.layers[number](
            hidden,
            attention_mask=view.mask,
            position_embeddings=self._body.rotary_emb(hidden, view.at[None]),
            position_ids=view.at[None],
            cache=_Written(room.layers[number], view),
            use_cache=True,
        )
        return made


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """A layer of a room that is long enough: new state is written at the places of `view`, which gets what it sees."""

    layer: Any
    view: View

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        self.layer.keys.index_copy_(2, self.view.at, keys)
        self.layer.values.index_copy_(2, self.view.at, values)
        seen = self.view.mask.shape[-1]
        return self.layer.keys[:, :, :seen], self.layer.values[:, :, :seen]
