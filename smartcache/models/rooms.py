"""Rooms whose generation has ended: a conversation goes on in the one it was in, and memory is not asked for anew."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from smartcache.storage.chains import shared_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smartcache.models.kv import Room

MAX_ROOMS = 4


class IdleRooms:
    """A few rooms and the tokens whose state they hold.

    What is known is for the prefix cache to say; a room only saves the copy of it. Any number of threads may call.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._rooms: list[_Idle] = []  # the longest idle first

    def __len__(self) -> int:
        return len(self._rooms)

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(idle.room.nbytes for idle in self._rooms)

    def take(self, tokens: Sequence[int], known: int) -> Room | None:
        """The room of the conversation that `tokens` continue, or the oldest where there are enough; it holds as many
        of the first `known` tokens as it did. None is to make a new one: others may come back to theirs."""
        with self._lock:
            idle = self._continued(tokens) or (self._rooms[0] if len(self._rooms) >= MAX_ROOMS else None)
            if idle is None:
                return None
            self._rooms.remove(idle)
        # a room whose state is no longer exact lends its memory only: what is known may be better
        idle.room.cut(min(known, shared_length(idle.tokens, tokens)) if idle.room.exact else 0)
        return idle.room

    def give(self, tokens: Sequence[int], room: Room, spare_bytes: int) -> None:
        """Take in a room that holds the state of `tokens`; beside it stay the last others that fit into `spare_bytes`
        with it."""
        room.cut(len(tokens))
        with self._lock:
            self._rooms.append(_Idle(list(tokens), room))
        self.shrink(spare_bytes)

    def shrink(self, spare_bytes: int) -> None:
        """Let go of the longest idle, as many as do not fit into `spare_bytes` with the last, which stays."""
        with self._lock:
            while len(self._rooms) > 1 and (
                len(self._rooms) > MAX_ROOMS or sum(idle.room.nbytes for idle in self._rooms) > spare_bytes
            ):
                del self._rooms[0]

    def clear(self) -> None:
        """Let go of all rooms."""
        with self._lock:
            self._rooms.clear()

    def _continued(self, tokens: Sequence[int]) -> _Idle | None:
        """The room that holds the most of what `tokens` begin with, and nothing else."""
        begun = [idle for idle in self._rooms if idle.tokens and list(tokens[: len(idle.tokens)]) == idle.tokens]
        return max(begun, key=lambda idle: len(idle.tokens), default=None)


@dataclass(frozen=True, slots=True, eq=False)
class _Idle:
    tokens: list[int]
    room: Room
