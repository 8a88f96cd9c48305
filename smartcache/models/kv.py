"""The KV state of a model: room that a generation writes into, and the segments of it that the prefix cache keeps."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Self

import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedConfig, PreTrainedModel

# rope types that turn a token by how long the whole text is: the same prefix has other keys in a longer prompt
_ROTARY_BY_LENGTH = {"dynamic", "longrope"}


@dataclass(frozen=True, slots=True, eq=False)
class KVSegment:
    """Keys and values of consecutive tokens, by layer: `layers[n]` is (keys, values), each of shape
    (1, heads, tokens, width). A slice is a copy, so it holds no memory but its own, and nobody else writes to it. Not
    `exact` is what was compressed meanwhile, and what was computed on top of it."""

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    exact: bool = True

    def __len__(self) -> int:
        return self.layers[0][0].shape[-2]

    def __getitem__(self, steps: slice) -> KVSegment:
        with torch.inference_mode():
            layers = tuple((_cut(keys, steps), _cut(values, steps)) for keys, values in self.layers)
            return KVSegment(layers, self.exact)

    @property
    def nbytes(self) -> int:
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class Room(Cache):
    """A transformers cache with place for `capacity` tokens from the start: decoding appends without moving what is
    there. It belongs to one generation at a time; what the prefix cache keeps of it is copied out."""

    def __init__(self, layer_count: int, capacity: int) -> None:
        self.exact = True
        self._rooms = [_RoomLayer(capacity) for _ in range(layer_count)]
        super().__init__(layers=list(self._rooms))

    @classmethod
    def over(cls, memory: Sequence[tuple[torch.Tensor, torch.Tensor]], filled: int) -> Self:
        """A room in `memory`, keys and values by layer, which stays the caller's and holds `filled` tokens so far."""
        room = cls(len(memory), memory[0][0].shape[-2])
        for layer, lent in zip(room._rooms, memory, strict=True):
            layer.borrow(lent, filled)
        return room

    def place(self, segments: Sequence[KVSegment], length: int) -> None:
        """Hold the first `length` tokens of `segments`, in order. What the room holds already is taken to be right; the
        rest is one copy, to where it will be read."""
        self.exact = all(segment.exact for segment in segments)
        with torch.inference_mode():
            for number, layer in enumerate(self._rooms):
                layer.place([segment.layers[number] for segment in segments], length)

    def cut(self, length: int) -> None:
        """Hold the first `length` tokens only."""
        for layer in self._rooms:
            layer.cut(length)

    def stretch(self, length: int) -> None:
        """Hold `length` tokens; whoever calls writes the state of those that are new."""
        for layer in self._rooms:
            layer.stretch(length)

    def begin_again(self) -> None:
        """Hold nothing, where placing failed halfway: memory of its own may have been laid out for other state."""
        self.exact = True
        for layer in self._rooms:
            layer.begin_again()

    @property
    def nbytes(self) -> int:
        """What the room takes in memory when it is full."""
        return sum(layer.nbytes for layer in self._rooms)

    def state(self, length: int) -> KVSegment:
        """The first `length` tokens, as a view of this room: to be sliced, not to be kept."""
        return KVSegment(tuple(layer.first(length) for layer in self._rooms), self.exact)


class _RoomLayer(DynamicLayer):
    """One layer's room. `keys` and `values` are views of the filled part, so the inherited length, mask sizes and crop
    hold for it too."""

    def __init__(self, capacity: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers has no types here
        self._capacity = capacity
        self._room: tuple[torch.Tensor, torch.Tensor] | None = None
        self._is_lent = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self._take((_empty(key_states, self._capacity), _empty(value_states, self._capacity)), 0)

    def borrow(self, memory: tuple[torch.Tensor, torch.Tensor], filled: int) -> None:
        self._is_lent = True
        self._take(memory, filled)

    def _take(self, memory: tuple[torch.Tensor, torch.Tensor], filled: int) -> None:
        self._room = memory
        self.device = memory[0].device
        self.fill_to(filled)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        self._make_room(end, start)
        self._write(key_states, value_states, start)
        return self.fill_to(end)

    def place(self, parts: Sequence[tuple[torch.Tensor, torch.Tensor]], length: int) -> None:
        if not parts:
            return
        if not self.is_initialized:
            self.lazy_initialization(*parts[0])
        filled = self.get_seq_length()
        self._make_room(length, filled)
        start = 0
        for keys, values in parts:
            end = min(start + keys.shape[-2], length)
            if end > filled:
                new = slice(max(filled - start, 0), end - start)
                self._write(keys[..., new, :], values[..., new, :], start + new.start)
            start = end
        self.fill_to(length)

    def cut(self, length: int) -> None:
        if self._room is not None:
            self.fill_to(length)

    def stretch(self, length: int) -> None:
        self._make_room(length, self.get_seq_length())
        self.fill_to(length)

    def begin_again(self) -> None:
        if self._is_lent:
            self.cut(0)
        else:
            self._room = self.keys = self.values = None
            self.is_initialized = False

    @property
    def nbytes(self) -> int:
        return 0 if self._room is None else sum(states.nbytes for states in self._room)

    def first(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        assert self._room is not None
        keys, values = self._room
        return keys[..., :length, :], values[..., :length, :]

    def _write(self, keys: torch.Tensor, values: torch.Tensor, start: int) -> None:
        assert self._room is not None
        for room, new in zip(self._room, (keys, values), strict=True):
            room[..., start : start + new.shape[-2], :].copy_(new)

    def fill_to(self, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys, self.values = filled = self.first(end)
        return filled

    def _make_room(self, tokens: int, filled: int) -> None:
        if tokens <= self._capacity:
            return
        if self._is_lent:  # it would go on in memory of its own, which its owner does not see
            raise RuntimeError(f"this room is lent and has place for {self._capacity} tokens, not for {tokens}")
        keys, values = self.first(filled)
        capacity = max(tokens, 2 * self._capacity)
        self._room = _empty(keys, capacity), _empty(values, capacity)  # may raise: the layer is then as it was
        self._capacity = capacity
        self._write(keys, values, 0)


def own_cache(network: PreTrainedModel) -> Cache | None:
    """The cache that transformers itself would make for one generation; `None` where the model has its own form."""
    if "cache" not in inspect.signature(network.forward).parameters or not _takes_dynamic_cache(network):
        return None
    try:
        return DynamicCache(config=network.config)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # a configuration from which transformers cannot tell the layers


def layers_to_keep(network: PreTrainedModel) -> int | str:
    """How many layers a `Room` for this model has, or why its state cannot be cut at any token.

    transformers derives the kind of each layer from the configuration; only full attention keeps every token.
    """
    cache = own_cache(network)
    if cache is None:
        return "a cache class of its own"
    if changing := rotary_by_length(network.config):
        return f"rotary positions of kind {', '.join(sorted(changing))}"
    others = {type(layer).__name__ for layer in cache.layers if type(layer) is not DynamicLayer}
    if others:
        return f"cache layers of kind {', '.join(sorted(others))}"
    return len(cache.layers) or "no cache layers"


def _takes_dynamic_cache(network: PreTrainedModel) -> bool:
    """By what `generate` itself goes by; True where transformers does not say."""
    says = getattr(network, "_supports_default_dynamic_cache", None)
    return says is None or bool(says())


def require_cache_argument() -> None:
    """Before 5.24, models took their cache under another name: they would run, and compute every prompt in full."""
    found = metadata.version("transformers")
    if tuple(int(part) for part in found.split(".")[:2]) < (5, 24):
        raise ImportError(f"transformers {found} is too old: run  pip install -U 'smartcache-llm[local]'")


def rotary_by_length(config: PreTrainedConfig) -> set[str]:
    """The rope types of a model, over all kinds of its layers, that go by how long the whole text is."""
    parameters = getattr(config.get_text_config(decoder=True), "rope_parameters", None) or {}
    layered = [value for value in parameters.values() if isinstance(value, dict)]
    return {str(rope.get("rope_type")) for rope in [parameters, *layered]} & _ROTARY_BY_LENGTH


def _empty(like: torch.Tensor, capacity: int) -> torch.Tensor:
    batch, heads, _, width = like.shape
    return torch.empty((batch, heads, capacity, width), dtype=like.dtype, device=like.device)


def _cut(states: torch.Tensor, steps: slice) -> torch.Tensor:
    return states[..., steps, :].detach().clone(memory_format=torch.contiguous_format)
