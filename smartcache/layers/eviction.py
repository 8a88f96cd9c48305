"""What goes first when room is needed: seven policies behind one small interface, none of which knows what it orders.

A policy only puts keys in order. Which of them may go at all (leaves, nothing in use) is for its owner to say: it takes
the first of `victims()` that may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Protocol

from smartcache.layers.plain_eviction import Arc, Lfu, Line, Lirs, Lru

SETTLED = 1.05  # how much better another policy must have done before `adaptive` changes over


class EvictionPolicy(Protocol):
    """An order over keys with sizes, whose sum their owner keeps within the policy's capacity.

    `expect(key, size)` tells that a key is wanted and absent, before room is made for it; `add` that it is there now;
    `touch` that it was used; `evict` that it had to go (a policy may remember it); `forget` that it is gone for
    other reasons. `split(key, head, size)` hands `size` of a key, and its whole history, to a new key that is in use
    now, and whenever the old one is. `victims` yields every key, the first to go first; do not change the policy while
    it runs.
    """

    def expect(self, key: int, size: int) -> None: ...
    def add(self, key: int, size: int) -> None: ...
    def touch(self, key: int) -> None: ...
    def split(self, key: int, head: int, size: int) -> None: ...
    def evict(self, key: int) -> None: ...
    def forget(self, key: int) -> None: ...
    def victims(self) -> Iterator[int]: ...


def eviction_policy(name: str, capacity: int) -> EvictionPolicy:
    """The policy of that name, new and empty. Raises ValueError, with all names, where there is none."""
    if name not in _MAKERS:
        raise ValueError(f"there is no policy {name!r}: use one of {', '.join(_MAKERS)}")
    return _MAKERS[name](capacity)


class _Adaptive:
    """Follows whichever plain policy would have had the most hits of late.

    Each plain policy rules a shadow of its own: keys and sizes, no content. What a shadow finds counts for its policy;
    older counts fade as the capacity is turned over. What the leader's shadow has let go goes first here, then what it
    would let go next: so what is here becomes what the leader would hold had it ruled from the start.
    """

    def __init__(self, capacity: int) -> None:
        self._shadows = {name: _Shadow(maker(capacity), capacity) for name, maker in _PLAIN.items()}
        self._capacity = capacity
        self._sizes: dict[int, int] = {}
        self._strays: dict[int, None] = {}  # here, but not in the leader's shadow; the first to become so goes first
        self._used = 0
        self._leader = self._shadows["lfu-da"]

    def expect(self, key: int, size: int) -> None:
        self._weigh(key, size)

    def add(self, key: int, size: int) -> None:
        self._sizes[key] = size
        if key not in self._leader:
            self._strays[key] = None

    def touch(self, key: int) -> None:
        self._weigh(key, self._sizes[key])

    def split(self, key: int, head: int, size: int) -> None:
        self._sizes[key] -= size
        self._sizes[head] = size
        for shadow in self._shadows.values():
            shadow.split(key, head, size)
        if head not in self._leader:
            self._strays[head] = None

    def evict(self, key: int) -> None:
        del self._sizes[key]
        self._strays.pop(key, None)

    def forget(self, key: int) -> None:
        self.evict(key)
        for shadow in self._shadows.values():
            shadow.forget(key)

    def victims(self) -> Iterator[int]:
        return chain(self._strays, (key for key in self._leader.victims() if key in self._sizes))

    def _weigh(self, key: int, size: int) -> None:
        for shadow in self._shadows.values():
            gone = shadow.use(key, size)
            if shadow is self._leader:
                self._strays |= dict.fromkeys(lost for lost in gone if lost in self._sizes)
        if key in self._leader:
            self._strays.pop(key, None)
        best = max(self._shadows.values(), key=lambda shadow: shadow.found)
        if best.found > SETTLED * self._leader.found:
            self._leader = best
            self._strays = dict.fromkeys(held for held in self._sizes if held not in best)
        self._used += size
        if self._used > 4 * self._capacity:
            self._used = 0
            for shadow in self._shadows.values():
                shadow.found /= 2


class _Shadow:
    """What a policy would hold, and how much it has found, if it ruled alone over a cache of `capacity`."""

    def __init__(self, policy: EvictionPolicy, capacity: int) -> None:
        self._policy = policy
        self._capacity = capacity
        self._held = Line()
        self.found = 0.0

    def __contains__(self, key: int) -> bool:
        return key in self._held

    def use(self, key: int, size: int) -> list[int]:
        """What had to go for it."""
        gone: list[int] = []
        if key in self._held:
            self.found += size
            self._policy.touch(key)
        elif size <= self._capacity:
            self._policy.expect(key, size)
            while self._held.total + size > self._capacity:
                gone.append(next(self._policy.victims()))
                self._held.remove(gone[-1])
                self._policy.evict(gone[-1])
            self._held.append(key, size)
            self._policy.add(key, size)
        return gone

    def split(self, key: int, head: int, size: int) -> None:
        if key in self._held and head not in self._held:
            size = min(size, self._held.sizes[key])  # it may have come in other parts here
            self._held.split(key, head, size)
            self._policy.split(key, head, size)

    def forget(self, key: int) -> None:
        if key in self._held:
            self._held.remove(key)
            self._policy.forget(key)

    def victims(self) -> Iterator[int]:
        return self._policy.victims()


_PLAIN: dict[str, Callable[[int], EvictionPolicy]] = {
    "lru": lambda capacity: Lru(),
    "lfu": lambda capacity: Lfu(),
    "fifo": lambda capacity: Lru(moves=False),
    "arc": Arc,
    "lirs": Lirs,
    "lfu-da": lambda capacity: Lfu(ages=True),
}
_MAKERS: dict[str, Callable[[int], EvictionPolicy]] = {**_PLAIN, "adaptive": _Adaptive}
POLICIES = tuple(_MAKERS)
