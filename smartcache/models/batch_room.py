"""Room for several generations that write their next tokens in one forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from smartcache.models.kv import Room

if TYPE_CHECKING:
    from smartcache.models.kv import KVSegment


class BatchRoom:
    """Place for the KV state of several texts. They end at the same slot, so that all append at the same one; a shorter
    text begins later, after a gap that no token may attend to."""

    def __init__(self, like: KVSegment, lengths: list[int], more: int) -> None:
        """`lengths`: of the texts; `more`: how many tokens may come after each."""
        self.filled = max(lengths)
        self._gaps = [self.filled - length for length in lengths]
        with torch.inference_mode():
            self._memory = [
                (_memory(keys, self._gaps, self.filled + more), _memory(values, self._gaps, self.filled + more))
                for keys, values in like.layers
            ]

    def grow(self) -> bool:
        """See to it that each text can have one more token; whether that took other memory, and rooms are to be made
        anew."""
        capacity = self._memory[0][0].shape[-2]
        if self.filled < capacity:
            return False
        with torch.inference_mode():
            left = self._views(slice(len(self._gaps)), 0)
            self._memory = [(_grown(keys, 2 * capacity), _grown(values, 2 * capacity)) for keys, values in left]
        return True

    def row(self, number: int) -> Room:
        """The empty room of one text."""
        return Room.over(self._views(slice(number, number + 1), self._gaps[number]), 0)

    def together(self) -> Room:
        """The room of all texts that are left, from where the longest begins."""
        start = min(self._gaps)
        return Room.over(self._views(slice(len(self._gaps)), start), self.filled - start)

    def gaps(self, device: torch.device) -> dict[str, torch.Tensor]:
        """What tells the model, at its next forward, where each text begins; nothing where all begin together."""
        start = min(self._gaps)
        if max(self._gaps) == start:
            return {}
        begins = torch.tensor(self._gaps, device=device)[:, None]
        slots = torch.arange(start, self.filled + 1, device=device)
        return {"attention_mask": (slots >= begins).long(), "position_ids": self.filled - begins}

    def leave(self, number: int) -> None:
        """Let a text go: the last one moves to its place."""
        last = len(self._gaps) - 1
        if number != last:
            used = slice(self._gaps[last], self.filled)
            with torch.inference_mode():
                for states in (states for layer in self._memory for states in layer):
                    states[number, :, used].copy_(states[last, :, used])
        self._gaps[number] = self._gaps[last]
        self._gaps.pop()

    def _views(self, rows: slice, start: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        with torch.inference_mode():
            return [(keys[rows, :, start:], values[rows, :, start:]) for keys, values in self._memory]


def _memory(like: torch.Tensor, gaps: list[int], capacity: int) -> torch.Tensor:
    _, heads, _, width = like.shape
    memory = torch.empty((len(gaps), heads, capacity, width), dtype=like.dtype, device=like.device)
    for number, gap in enumerate(gaps):
        memory[number, :, :gap].zero_()  # what is masked must still be a number: 0 times NaN is NaN
    return memory


def _grown(states: torch.Tensor, capacity: int) -> torch.Tensor:
    rows, heads, filled, width = states.shape
    memory = states.new_empty((rows, heads, capacity, width))
    memory[:, :, :filled].copy_(states)
    return memory
