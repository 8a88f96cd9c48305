"""State on its way to the lower tiers and back: what is to be written, what was found, and what was fetched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic

from smartcache.storage.chains import shared_length
from smartcache.storage.segments import SegmentT

if TYPE_CHECKING:
    from smartcache.storage.chains import Block
    from smartcache.storage.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Continuation(Generic[SegmentT]):
    """State that was fetched, of the last of `tokens`; the first `length` of those are the ones asked for."""

    tokens: tuple[int, ...]
    length: int
    segment: SegmentT


@dataclass(frozen=True, slots=True, eq=False)
class Writing(Generic[SegmentT]):
    """A sequence to be kept; `parts` hold its state: from which token to which, and the segment. One that was used, and
    should be there already, is `optional`."""

    tree: str
    tokens: tuple[int, ...]
    parts: tuple[tuple[int, int, SegmentT], ...]
    nbytes: int
    optional: bool

    def replaces(self, older: object) -> bool:
        return (
            isinstance(older, Writing) and older.tree == self.tree and self.tokens[: len(older.tokens)] == older.tokens
        )

    def required(self) -> Writing[SegmentT]:
        return replace(self, optional=False)

    def state(self, first: int, end: int) -> list[SegmentT]:
        """The state of the tokens from `first` to `end`, in pieces."""
        spans = ((max(first, start), min(end, stop), start, segment) for start, stop, segment in self.parts)
        return [segment[begin - start : stop - start] for begin, stop, start, segment in spans if begin < stop]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A block that lies on a shelf, its tokens, and the part of the prompt that it may hold."""

    shelf: Shelf
    block: Block
    tokens: tuple[int, ...]
    wanted: tuple[int, ...]

    @property
    def shared(self) -> int:
        return shared_length(self.tokens, self.wanted)
