"""The order of chunks in a prompt: the one that shares most of its beginning with prompts before, within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal, get_args

from smartcache.layers.planned import Held, PlannedContexts, Tokens, key_of
from smartcache.types import Chunk, ChunkRef

Order = Literal["given", "hash", "popularity", "cache-aware"]


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Chunks in the order in which they enter the prompt, each once.

    `numbers[ref]` is the chunk's rank in the order given, from 1: a citation number that follows the chunk, not its
    place. `shared`: how many chunks of the beginning were planned in this order before; `shared_unguarded`: how many
    it would be without `max_shift`.
    """

    chunks: tuple[Chunk, ...]
    numbers: Mapping[ChunkRef, int] = field(default_factory=dict)
    shared: int = 0
    shared_unguarded: int = 0


@dataclass(frozen=True, slots=True)
class ContextOrder:
    """How a cache puts the chunks of its prompts in order: see `plan_context`. `held(chunks)` asks the prefix cache of
    the model how many tokens of a prompt that begins so it holds now; without it, that is told by what was planned.
    `tokens(chunk)` counts what a chunk adds to a prompt; without it, that is told by its letters."""

    order: Order = "cache-aware"
    max_shift: int | None = None
    held: Held | None = None
    tokens: Tokens | None = None

    def __post_init__(self) -> None:
        _require(self.order, self.max_shift)


def checked_order(context: ContextOrder | None) -> ContextOrder:
    """The order that a cache was given, or the default. Raises TypeError for anything else."""
    if context is not None and not isinstance(context, ContextOrder):
        raise TypeError(f"context is {context!r}: pass a ContextOrder, such as ContextOrder(max_shift=2)")
    return context or ContextOrder()


def plan_context(
    chunks: Sequence[Chunk],
    *,
    order: Order = "cache-aware",
    planned: PlannedContexts | None = None,
    max_shift: int | None = None,
    scope: str = "",
) -> ContextPlan:
    """Puts chunks in an order that prompts can share; `chunks` itself is left as it is, and so is `planned`.

    "given": as they come, the best first. "hash": by a hash of identity and content, so that the same set is the same
    prefix whatever the retriever's order. "popularity": what was in most prompts of the scope first, then by hash.
    "cache-aware": the longest beginning in `planned` that these chunks can make, then the rest by popularity; without
    `planned`, by hash. `max_shift`: no chunk comes more than so many places after the one it was given at. A chunk
    that comes twice is kept once, the first time.
    """
    _require(order, max_shift)
    first: dict[ChunkRef, Chunk] = {}
    for chunk in chunks:
        first.setdefault(chunk.ref, chunk)
    unique = list(first.values())
    numbers = {chunk.ref: number for number, chunk in enumerate(unique, start=1)}
    ordered = _ordered(unique, order, planned, _Guard(unique, max_shift), scope)
    if planned is None:
        return ContextPlan(ordered, numbers)
    free = ordered if max_shift is None else _ordered(unique, order, planned, _Guard(unique, None), scope)
    return ContextPlan(ordered, numbers, planned.shared(ordered, scope=scope), planned.shared(free, scope=scope))


class _Guard:
    """The chunks in the order given, and how far back each may move."""

    def __init__(self, given: Sequence[Chunk], max_shift: int | None) -> None:
        self._given, self._max_shift = given, max_shift

    def allows(self, begin: Sequence[Chunk]) -> bool:
        """Whether a prompt that begins so can still have each of the other chunks early enough."""
        if self._max_shift is None:
            return True
        placed = {chunk.ref for chunk in begin}
        left = (rank for rank, chunk in enumerate(self._given) if chunk.ref not in placed)
        return all(place <= rank + self._max_shift for place, rank in enumerate(left, start=len(begin)))

    def latest(self, left: Sequence[int]) -> int:
        """Of the ranks not placed yet, ascending, up to which the next may be taken: none from behind one that cannot
        wait any more."""
        if self._max_shift is None:
            return len(self._given)
        placed = len(self._given) - len(left)
        return next((rank for place, rank in enumerate(left, placed) if place >= rank + self._max_shift), left[-1])


def _ordered(
    given: Sequence[Chunk], order: Order, planned: PlannedContexts | None, guard: _Guard, scope: str
) -> tuple[Chunk, ...]:
    if order == "given":
        return tuple(given)
    uses = {chunk.ref: 0 for chunk in given}
    begin: tuple[Chunk, ...] = ()
    if planned is not None and order != "hash":
        uses = {chunk.ref: planned.uses(chunk, scope=scope) for chunk in given}
    if planned is not None and order == "cache-aware":
        begin = planned.longest(given, scope=scope, allows=guard.allows)
    placed, taken = list(begin), {chunk.ref for chunk in begin}
    left = [rank for rank, chunk in enumerate(given) if chunk.ref not in taken]
    rest = sorted(left, key=lambda rank: (-uses[given[rank].ref], key_of(given[rank])))
    while rest:
        latest = guard.latest(left)
        rank = next(rank for rank in rest if rank <= latest)
        placed.append(given[rank])
        rest.remove(rank)
        left.remove(rank)
    return tuple(placed)


def _require(order: object, max_shift: int | None) -> None:
    if order not in (known := get_args(Order)):
        raise ValueError(f"unknown order {order!r}: use one of {', '.join(map(repr, known))}")
    if max_shift is not None and (isinstance(max_shift, bool) or not isinstance(max_shift, Integral)):
        raise TypeError(f"max_shift is {max_shift!r}: it must be a whole number of places, or None for no bound")
    if max_shift is not None and max_shift < 0:
        raise ValueError(f"max_shift is {max_shift!r}: it must be 0 or more, or None for no bound")
