"""The state of models with sliding windows or recurrent layers: what of it can be cut, and copies of the rest."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import (
    DummyLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from smartcache.layers.boundaries import Boundaries, BoundaryMatch, Stretch
from smartcache.models.kv import KVSegment, Room, own_cache, rotary_by_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import PreTrainedConfig, PreTrainedModel

# what is known to hold all that it knows in its attributes; of any other kind there may be more to a layer
_COPIED = {
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    DummyLayer,
}
_PROBE_TOKENS = 12
_PROBE_TOLERANCE = 0.02  # of the largest logit: beyond rounding in half precision, below what another state does


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Copies of what the layers that cannot be cut hold at one boundary: attributes by name, by number of the layer."""

    layers: dict[int, dict[str, Any]]

    @property
    def nbytes(self) -> int:
        return sum(_nbytes(held) for held in self.layers.values())


KVStretch = Stretch[KVSegment, Tail]
KVBoundaries = Boundaries[KVSegment, Tail]
KVBoundaryMatch = BoundaryMatch[KVSegment, Tail]


class BoundedRoom(DynamicCache):
    """The cache of one generation: a `Room` for the layers with full attention, transformers' own for the others.

    What is kept are the boundaries at `ends`, and the one after the last token that was computed. A window is cut from
    what it held while the prompt was read, so the prompt is read in one go; a recurrent layer has only the state it is
    in, so the prompt is read up to each of `stops` first, and `mark` is called there.
    """

    def __init__(self, config: PreTrainedConfig, capacity: int) -> None:
        super().__init__(config=config)
        cut = [number for number, layer in enumerate(self.layers) if type(layer) is DynamicLayer]
        self._cut = Room(len(cut), capacity) if cut else None
        for number, layer in zip(cut, self._cut.layers if self._cut else (), strict=True):
            self.layers[number] = layer
        self._held = {number: layer for number, layer in enumerate(self.layers) if number not in cut}
        self._recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in self._held.values())
        self._tails: dict[int, Tail] = {}
        self._prompt_tokens = 0
        self._whole = True
        self.ends: list[int] = []

    @property
    def stops(self) -> list[int]:
        return self.ends if self._recurrent else []

    def begin(self, known: KVBoundaryMatch, prompt_tokens: int, *, keeps: bool) -> None:
        """Begin with the state of `known`, on the way to the end of the prompt."""
        if known.tail is not None:
            if self._cut is not None:
                self._cut.place(known.cuts, known.length)
            with torch.inference_mode():
                for number, held in known.tail.layers.items():
                    vars(self.layers[number]).update(_copied(held))
        self._prompt_tokens = prompt_tokens
        self.ends = known.ends(prompt_tokens) if keeps else []
        for layer in self._windows():
            layer.record_past = bool(self.ends)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around a forward pass: one that breaks off leaves layers of different lengths, of which nothing is kept."""
        self._whole = False
        yield
        self._whole = True

    def mark(self, end: int) -> None:
        """Hold on to the state after `end` tokens, the last that were read."""
        self._tails[end] = self._tail(end)

    def keep(self, boundaries: KVBoundaries, tree: str, text: Sequence[int], computed: int, *, begun: int) -> None:
        """Store the boundaries among the first `computed` tokens of `text`, all that were read; `begun` is for the
        prefix cache."""
        if not self._whole:
            return
        try:
            for end in sorted({*self.ends, computed} - {self._prompt_tokens}):
                if end > computed or (self._recurrent and end not in self._tails and end < computed):
                    continue
                cut = self._cut.state(end) if self._cut is not None else None
                tail = self._tails.pop(end, None) or self._tail(end)
                boundaries.store(tree, text[:end], Stretch(end, cut, tail), begun=begun)
        finally:  # trouble here must not let the windows grow on
            self.ends = []
            for layer in self._windows():
                if layer.record_past:
                    layer.crop(0)  # back to the window alone
                    layer.record_past = False

    def _tail(self, end: int) -> Tail:
        with torch.inference_mode():
            return Tail({number: _copied(_held_at(layer, end)) for number, layer in self._held.items()})

    def _windows(self) -> list[DynamicSlidingWindowLayer]:
        if self._recurrent:
            return []
        return [layer for layer in self._held.values() if isinstance(layer, DynamicSlidingWindowLayer)]


def takes_boundaries(model: PreTrainedModel) -> bool:
    """Whether the state of this model, which cannot be cut at any token, can be copied and gone on from."""
    cache = own_cache(model)
    if cache is None or rotary_by_length(model.config):
        return False
    kinds = {type(layer) for layer in cache.layers}
    if not kinds <= _COPIED or not any(issubclass(kind, DynamicLayer) for kind in kinds):
        return False
    return not any(issubclass(kind, LinearAttentionLayer) for kind in kinds) or _goes_on(model)


def _goes_on(model: PreTrainedModel) -> bool:
    """Whether recurrent layers take up their state for several tokens at once: not every implementation does."""
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    steps = torch.arange(1, _PROBE_TOKENS + 1, device=model.device)
    placed = "position_ids" in inspect.signature(model.forward).parameters

    def logits_after(*parts: torch.Tensor) -> torch.Tensor:
        cache = own_cache(model)
        for part in parts:
            positions = {"position_ids": part[None] - 1} if placed else {}
            output = model(input_ids=part[None] % vocabulary, cache=cache, use_cache=True, **positions)
        last: torch.Tensor = output.logits[0, -1].float()
        return last

    try:
        with torch.inference_mode():
            whole, parted = logits_after(steps), logits_after(*steps.chunk(2))
    except Exception:  # whatever a model says to it, it is run as transformers would
        return False
    return bool((whole - parted).abs().max() <= _PROBE_TOLERANCE * whole.abs().max())


def _held_at(layer: Any, end: int) -> dict[str, Any]:
    """What a layer held after `end` tokens, as views of what it holds."""
    held: dict[str, Any] = vars(layer)
    if type(layer) is not DynamicSlidingWindowLayer or not layer.record_past:
        return held
    stop = end - (layer.cumulative_length - held["keys"].shape[-2])
    steps = slice(max(0, stop - layer.sliding_window + 1), stop)
    now = {name: held[name][..., steps, :] for name in ("keys", "values")}
    return held | now | {"cumulative_length": end, "record_past": False}


def _copied(held: Any) -> Any:
    """The same with tensors of its own, which hold no memory but theirs."""
    if isinstance(held, torch.Tensor):
        return held.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(held, dict):
        return {name: _copied(value) for name, value in held.items()}
    return held


def _nbytes(held: Any) -> int:
    if isinstance(held, dict):
        return sum(_nbytes(value) for value in held.values())
    return held.nbytes if isinstance(held, torch.Tensor) else 0
