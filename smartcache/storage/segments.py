"""What the prefix cache keeps, as storage sees it: runs of state that can be cut, joined and written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Segment(Protocol):
    """The state of consecutive tokens, one step per token.

    A slice is a segment that owns its content: it stays right and alone in memory whatever becomes of the segment that
    it was cut from. `nbytes` is what it holds in memory; the parts of a segment add up to the whole. A segment that has
    an attribute `exact` says with it whether this is the state as it was computed.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, steps: slice, /) -> Self: ...
    @property
    def nbytes(self) -> int: ...


SegmentT = TypeVar("SegmentT", bound=Segment)


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers in host memory; `dtype` is a name of the safetensors format: F32, BF16, I8, …"""

    dtype: str
    shape: tuple[int, ...]
    content: bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Packed:
    """A segment as arrays in host memory, and what its codec has to know of them; `max_error` is how far any number may
    be from what was computed, 0 where it is kept bit for bit."""

    arrays: Mapping[str, Array]
    label: Mapping[str, str] = field(default_factory=dict)
    max_error: float = 0.0

    @property
    def nbytes(self) -> int:
        return sum(len(array.content) for array in self.arrays.values())


class Codec(Protocol[SegmentT]):
    """How the state of one model becomes arrays and comes back to where the model reads it."""

    def pack(self, segment: SegmentT, compress: str | None, /) -> Packed:
        """`segment` in host memory; in a shorter form where `compress` names one."""

    def unpack(self, packed: Packed, /) -> SegmentT:
        """What was packed, on the host and for `join` only. Raises ValueError for what is no state of this model."""

    def join(self, segments: Sequence[SegmentT], /) -> SegmentT:
        """Segments one after the other as one that owns its content."""


def is_exact(segment: Segment) -> bool:
    return bool(getattr(segment, "exact", True))
