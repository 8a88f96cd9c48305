"""Where chunks lie in a prompt: found by their tokens, so that what was computed of each alone can be taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

Reuse: TypeAlias = Literal["prefix", "blend"]
RECOMPUTE = 0.15


@dataclass(frozen=True, slots=True)
class Blend:
    """What of a prompt may be taken from where else it was computed, and which share of that is computed anew.

    `places` are the chunks' first tokens and those after their last, in order; `lost` counts chunks whose tokens are
    not found in the prompt as they are alone.
    """

    places: tuple[range, ...]
    recompute: float
    lost: int = 0

    @classmethod
    def of(cls, prompt: Sequence[int], chunks: Sequence[Sequence[int]], recompute: float) -> Blend:
        places: list[range] = []
        for chunk in chunks:
            start = _found(prompt, chunk, places[-1].stop if places else 0)
            if start is not None:
                places.append(range(start, start + len(chunk)))
        return cls(tuple(places), recompute, len(chunks) - len(places))

    def alone(self, prompt: Sequence[int]) -> list[list[int]]:
        """The text of which each chunk's state is kept: the chunk, after what stands before the first one."""
        return [[*prompt[: self.places[0].start], *prompt[place.start : place.stop]] for place in self.places]


def kept_of(prompt: Sequence[int], chunks: Sequence[Sequence[int]]) -> list[list[int]]:
    """The texts of which a generation that was given these chunks, in any order, has kept the state."""
    starts = [_found(prompt, chunk, 0) for chunk in chunks]
    if None in starts:
        raise ValueError(
            f"chunks[{starts.index(None)}] is not in the prompt, so nothing was forgotten: give the chunks as they "
            "stand there, without those that have other tokens there than alone, of which nothing is kept"
        )
    beginning = prompt[: min(start for start in starts if start is not None)] if chunks else ()
    return [[*beginning, *chunk] for chunk in chunks]


def require_blend(reuse: object, chunks: Any, recompute: Any) -> None:
    """`recompute` is None where none was asked for."""
    if reuse not in get_args(Reuse):
        raise ValueError(f"reuse is {reuse!r}: it must be one of {', '.join(get_args(Reuse))}")
    is_list = isinstance(chunks, Sequence) and not isinstance(chunks, str)
    if not is_list or not all(isinstance(chunk, str) for chunk in chunks):
        raise TypeError(
            "chunks are the texts of a prompt's chunks, as build_prompt(…).chunks: put a single one in a list"
        )
    if "" in chunks:
        raise ValueError(f"chunks[{list(chunks).index('')}] is empty: leave it out")
    if reuse != "blend" and (chunks or recompute is not None):
        raise ValueError(
            'chunks and recompute are for reuse="blend" alone, which is not exact: add it, or leave them out'
        )
    if recompute is None:
        return
    if not isinstance(recompute, int | float) or isinstance(recompute, bool):
        raise TypeError(f"recompute is {recompute!r}: it must be a number from 0 to 1")
    if not 0 <= recompute <= 1:
        raise ValueError(f"recompute is {recompute}: it must be from 0, for nothing, to 1, for all")


def _found(tokens: Sequence[int], part: Sequence[int], start: int) -> int | None:
    """Where `part` begins in `tokens`, from `start` on."""
    if not part:
        return None
    while True:
        try:
            start = tokens.index(part[0], start)
        except ValueError:
            return None
        if list(tokens[start : start + len(part)]) == list(part):
            return start
        start += 1
