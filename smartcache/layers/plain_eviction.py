"""The plain eviction policies: each keeps keys in the order in which they should go; `smartcache.layers.eviction` says
what its methods mean."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain

LIR_SHARE = 0.99  # of the capacity, for the keys that LIRS believes in; as its authors chose it
GHOST_SHARE = 2.0  # how many capacities of evicted keys LIRS remembers


class Line:
    """Keys with their sizes in one order, first to go first, and the sum of the sizes."""

    def __init__(self) -> None:
        self.sizes: OrderedDict[int, int] = OrderedDict()
        self.total = 0

    def __contains__(self, key: int) -> bool:
        return key in self.sizes

    def append(self, key: int, size: int) -> None:
        self.remove(key)
        self.sizes[key] = size
        self.total += size

    def split(self, key: int, head: int, size: int) -> None:
        """Take `size` off `key`, in its place, for `head`, which goes last."""
        self.sizes[key] -= size
        self.total -= size
        self.append(head, size)

    def remove(self, key: int) -> int:
        """The size that it had; 0 where it was not here."""
        size = self.sizes.pop(key, 0)
        self.total -= size
        return size

    def shorten(self, total: float) -> None:
        """Drop from the front down to `total`."""
        while self.total > total:
            self.remove(next(iter(self.sizes)))


class Lru:
    """The one used longest ago goes first; with `moves` off (fifo) the one that came first."""

    def __init__(self, *, moves: bool = True) -> None:
        self._line = Line()
        self._moves = moves

    def expect(self, key: int, size: int) -> None:
        """Nothing is remembered of what is gone."""

    def add(self, key: int, size: int) -> None:
        self._line.append(key, size)

    def touch(self, key: int) -> None:
        if self._moves:
            self._line.sizes.move_to_end(key)

    def split(self, key: int, head: int, size: int) -> None:
        behind = [] if self._moves else list(self._line.sizes)
        self._line.split(key, head, size)
        for later in behind[behind.index(key) + 1 :] if behind else ():
            self._line.sizes.move_to_end(later)

    def evict(self, key: int) -> None:
        self._line.remove(key)

    forget = evict

    def victims(self) -> Iterator[int]:
        return iter(self._line.sizes)


class Lfu:
    """The one used least often goes first, among equals the one used longest ago.

    With `ages` (lfu-da: least frequently used with dynamic aging, Arlitt et al. 2000) a key starts from the rank of the
    last one evicted, so what was popular once does not stay for ever.
    """

    def __init__(self, *, ages: bool = False) -> None:
        self._ages = ages
        self._age = self._clock = 0
        self._uses: dict[int, int] = {}
        self._ranks: dict[int, tuple[int, float]] = {}
        self._heap: list[tuple[tuple[int, float], int, int]] = []  # holds outdated ranks beside the valid ones

    def expect(self, key: int, size: int) -> None:
        """Nothing is remembered of what is gone."""

    def add(self, key: int, size: int) -> None:
        self._uses[key] = 0
        self.touch(key)

    def touch(self, key: int) -> None:
        self._clock += 1
        self._uses[key] += 1
        self._rank(key, (self._age + self._uses[key], self._clock))

    def split(self, key: int, head: int, size: int) -> None:
        self._clock += 1
        self._uses[head] = self._uses[key]
        rank, moment = self._ranks[key]
        self._rank(head, (rank, moment + 0.5))

    def evict(self, key: int) -> None:
        if self._ages:
            self._age = max(self._age, self._ranks[key][0])
        self.forget(key)

    def forget(self, key: int) -> None:
        del self._uses[key], self._ranks[key]
        while self._heap and not self._is_valid(self._heap[0]):
            heapq.heappop(self._heap)

    def victims(self) -> Iterator[int]:
        """Walks the heap best first and leaves it as it is."""
        ahead = [(self._heap[0], 0)] if self._heap else []
        while ahead:
            entry, at = heapq.heappop(ahead)
            for child in range(2 * at + 1, min(2 * at + 3, len(self._heap))):
                heapq.heappush(ahead, (self._heap[child], child))
            if self._is_valid(entry):
                yield entry[2]

    def _rank(self, key: int, rank: tuple[int, float]) -> None:
        self._ranks[key] = rank
        heapq.heappush(self._heap, (rank, self._clock, key))
        if len(self._heap) > 2 * len(self._ranks) + 64:
            self._heap = [entry for entry in self._heap if self._is_valid(entry)]
            heapq.heapify(self._heap)

    def _is_valid(self, entry: tuple[tuple[int, float], int, int]) -> bool:
        return self._ranks.get(entry[2]) == entry[0]


class Arc:
    """Adaptive replacement (Megiddo and Modha 2003): used once and used again share the room as the ghosts advise."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._once, self._again = Line(), Line()
        self._once_ghosts, self._again_ghosts = Line(), Line()
        self._target = 0.0  # what the keys used once may hold
        self._favours_again = False

    def expect(self, key: int, size: int) -> None:
        once, again = self._once_ghosts.total, self._again_ghosts.total
        self._favours_again = key in self._again_ghosts
        if key in self._once_ghosts:
            self._target = min(self._capacity, self._target + size * max(1.0, again / max(1, once)))
        elif self._favours_again:
            self._target = max(0.0, self._target - size * max(1.0, once / max(1, again)))

    def add(self, key: int, size: int) -> None:
        known = key in self._once_ghosts or key in self._again_ghosts
        self._once_ghosts.remove(key)
        self._again_ghosts.remove(key)
        (self._again if known else self._once).append(key, size)
        self._favours_again = False
        self._once_ghosts.shorten(max(0, self._capacity - self._once.total))
        held = self._once.total + self._again.total + self._once_ghosts.total
        self._again_ghosts.shorten(max(0, 2 * self._capacity - held))

    def touch(self, key: int) -> None:
        self._again.append(key, self._once.remove(key) or self._again.remove(key))

    def split(self, key: int, head: int, size: int) -> None:
        (self._once if key in self._once else self._again).split(key, head, size)

    def evict(self, key: int) -> None:
        if key in self._once:
            self._once_ghosts.append(key, self._once.remove(key))
        else:
            self._again_ghosts.append(key, self._again.remove(key))

    def forget(self, key: int) -> None:
        self._once.remove(key)
        self._again.remove(key)

    def victims(self) -> Iterator[int]:
        over = self._once.total > self._target or (self._favours_again and self._once.total == self._target)
        lines = (self._once, self._again) if over else (self._again, self._once)
        return chain.from_iterable(line.sizes for line in lines)


class Lirs:
    """Low inter-reference recency set (Jiang and Zhang 2002): what came back soon after its last use is believed in;
    the rest passes through a small queue."""

    def __init__(self, capacity: int) -> None:
        self._lir_capacity = capacity * LIR_SHARE
        self._ghost_capacity = capacity * GHOST_SHARE
        self._recency = Line()  # the believed, and whatever was used since the oldest of them; oldest first
        self._believed: dict[int, int] = {}
        self._believed_total = 0
        self._queue = Line()
        self._ghosts = Line()  # evicted, but still in `_recency`

    def expect(self, key: int, size: int) -> None:
        """A key that returns is judged when it is added."""

    def add(self, key: int, size: int) -> None:
        returned = key in self._ghosts
        self._ghosts.remove(key)
        if returned or self._believed_total + size <= self._lir_capacity:
            self._believe(key, size)
        else:
            self._queue.append(key, size)
        self._recency.append(key, size)
        self._settle()

    def touch(self, key: int) -> None:
        if key in self._believed:
            size = self._believed[key]
        elif key in self._recency:
            size = self._queue.remove(key)
            self._believe(key, size)
        else:
            size = self._queue.remove(key)
            self._queue.append(key, size)
        self._recency.append(key, size)
        self._settle()

    def split(self, key: int, head: int, size: int) -> None:
        if key in self._believed:
            self._believed[key] -= size
            self._believed[head] = size
        else:
            self._queue.split(key, head, size)
        if key in self._recency:
            self._recency.split(key, head, size)

    def evict(self, key: int) -> None:
        size = self._leave(key)
        if key in self._recency:
            self._ghosts.append(key, size)
            while self._ghosts.total > self._ghost_capacity:
                oldest = next(iter(self._ghosts.sizes))
                self._ghosts.remove(oldest)
                self._recency.remove(oldest)
        self._settle()

    def forget(self, key: int) -> None:
        self._leave(key)
        self._recency.remove(key)
        self._settle()

    def victims(self) -> Iterator[int]:
        believed = (key for key in self._recency.sizes if key in self._believed)
        return chain(self._queue.sizes, believed)

    def _believe(self, key: int, size: int) -> None:
        self._believed[key] = size
        self._believed_total += size

    def _leave(self, key: int) -> int:
        size = self._believed.pop(key, 0)
        self._believed_total -= size
        return size + self._queue.remove(key)

    def _settle(self) -> None:
        """Give up belief in the oldest where too much is believed; begin the recency with a key that is believed."""
        while self._recency.sizes:
            oldest = next(iter(self._recency.sizes))
            if oldest in self._believed:
                if self._believed_total <= self._lir_capacity or len(self._believed) == 1:
                    return
                self._queue.append(oldest, self._leave(oldest))
            self._recency.remove(oldest)
            self._ghosts.remove(oldest)
