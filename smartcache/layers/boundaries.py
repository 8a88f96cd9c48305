"""State that cannot be cut at any token (a sliding window, a recurrence): found only where it was stored.

It lives in the one `PrefixCache`, under its budget, policy and pins: a boundary is a token of its own, `MARK`, that
hangs in the tree after the tokens before it. So the boundaries of a sequence are leaves, each evicted by itself, and
what can be cut is stored once for all of them.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from smartcache.storage.segments import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smartcache.layers.prefixes import NoPrefixCache, PrefixCache

MARK = -1  # no tokenizer has it
TOKEN_BYTES = 36  # a number and the reference to it: what remembering a token takes
MIN_TOKENS = 32  # a boundary nearer than this to the one before it costs more than it saves


class Tail(Protocol):
    """The part of the state at a boundary that cannot be cut; nobody writes to it."""

    @property
    def nbytes(self) -> int: ...


CutT = TypeVar("CutT", bound=Segment)
TailT = TypeVar("TailT", bound=Tail)


@dataclass(frozen=True, slots=True)
class Stretch(Generic[CutT, TailT]):
    """The state of `tokens` consecutive tokens: `cut`, the part of it that can be cut anywhere, None where there is no
    such part, and as one step more `tail`, the rest, right at the end only. `nbytes` counts the token ids too, so that
    what is remembered without any state has its place in the budget."""

    tokens: int
    cut: CutT | None = None
    tail: TailT | None = None

    def __len__(self) -> int:
        return self.tokens + (self.tail is not None)

    def __getitem__(self, steps: slice) -> Stretch[CutT, TailT]:
        start, stop, _ = steps.indices(len(self))
        end = min(stop, self.tokens)
        cut = self.cut[start:end] if self.cut is not None and start < end else None
        return Stretch(max(0, end - start), cut, self.tail if start <= self.tokens < stop else None)

    @property
    def nbytes(self) -> int:
        held = sum(part.nbytes for part in (self.cut, self.tail) if part is not None)
        return held + TOKEN_BYTES * len(self)


@dataclass(frozen=True, slots=True)
class BoundaryMatch(Generic[CutT, TailT]):
    """The longest stored boundary: the state of the first `length` tokens is `cuts`, one after the other, and `tail`.

    `parting`: how many tokens an earlier sequence has in common, whether their state is known or not.
    """

    length: int = 0
    cuts: tuple[CutT, ...] = ()
    tail: TailT | None = None
    parting: int = 0

    def ends(self, prompt_tokens: int) -> list[int]:
        """The boundaries to store on the way through the prompt: where it parts from an earlier one, for the next that
        does, and before its last token, for the same prompt."""
        last = prompt_tokens - 1
        ends = [self.parting] if self.length + MIN_TOKENS <= self.parting < last else []
        known = ends[-1] if ends else self.length
        return [*ends, last] if last > known and (not known or last - known >= MIN_TOKENS) else ends


class Boundaries(Generic[CutT, TailT]):
    """States by token boundary, in a prefix cache that other kinds of state may live in too.

    What is forgotten or cleared there is forgotten here.
    """

    def __init__(self, prefixes: PrefixCache[Stretch[CutT, TailT]] | NoPrefixCache) -> None:
        self._prefixes = prefixes

    @contextmanager
    def match(self, fingerprints: Sequence[str], tokens: Sequence[int]) -> Iterator[BoundaryMatch[CutT, TailT]]:
        """The longest boundary in `tokens` without the last one that is stored under any of the fingerprints, the first
        of equals; what it hands out stays in the cache until the block ends, and stays right after it."""
        with ExitStack() as pinned:
            found = [self._longest(pinned, fingerprint, tuple(tokens)) for fingerprint in fingerprints]
            best = max(found, key=lambda match: match.length)
            yield replace(best, parting=max(match.parting for match in found))

    def store(
        self, fingerprint: str, tokens: Sequence[int], state: Stretch[CutT, TailT], *, begun: int | None = None
    ) -> bool:
        """Keep the state at the end of `tokens`; whether it is new here and found room. `begun`: as in PrefixCache."""
        if state.tokens != len(tokens) or state.tail is None:
            raise ValueError(f"the state must be that at the end of the {len(tokens)} tokens, with its tail")
        return self._prefixes.store(fingerprint, (*tokens, MARK), state, begun=begun) > 0

    def forget(self, fingerprint: str, tokens: Sequence[int]) -> int:
        """Drop all boundaries of texts that begin with `tokens`, and the one that reading just these leaves before the
        last of them; how many tokens lost their state in memory."""
        dropped = self._prefixes.forget(fingerprint, tokens)
        return dropped + (self._prefixes.forget(fingerprint, (*tokens[:-1], MARK)) if tokens else 0)

    def _longest(self, pinned: ExitStack, fingerprint: str, tokens: tuple[int, ...]) -> BoundaryMatch[CutT, TailT]:
        known = pinned.enter_context(self._prefixes.match(fingerprint, tokens))
        shared = known.length
        # A boundary lies where a part ends, or where the shared tokens do.
        ends = {end for end in accumulate(map(len, known.segments)) if end < shared} | {shared}
        for end in sorted(ends, reverse=True):
            # a match leaves out the last token, hence one mark more
            marked = pinned.enter_context(self._prefixes.match(fingerprint, (*tokens[:end], MARK, MARK)))
            if marked.length == end + 1 and end:
                cuts = tuple(part.cut for part in marked.segments if part.cut is not None)
                return BoundaryMatch(end, cuts, marked.segments[-1].tail, shared)
        return BoundaryMatch(parting=shared)
