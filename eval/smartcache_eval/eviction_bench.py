"""Which share of a trace's blocks each eviction policy finds, under the rule of the prefix cache: leaves first, never
what is in use.

Blocks stand for equal pieces of state. A block is found only if all blocks before it in its request are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartcache.layers.eviction import POLICIES, eviction_policy
from smartcache_eval.figures import Figure
from smartcache_eval.traces import Trace, mooncake_trace

SHARES = (0.01, 0.05, 0.10, 0.25)


def eviction_figures() -> Iterator[Figure]:
    """Every policy on the Mooncake trace, at each share of its distinct blocks, and a cache that never evicts."""
    trace = mooncake_trace()
    asked, distinct = sum(map(len, trace)), distinct_blocks(trace)
    conditions = f"Mooncake synthetic trace, {len(trace):,} requests, {asked:,} blocks, {distinct:,} distinct"
    for share in SHARES:
        capacity = int(distinct * share)
        for policy in POLICIES:
            rate = 100 * hit_rate(trace, policy, capacity)
            yield Figure(f"{policy}, {share:.0%}", rate, "% found", f"{conditions}; room for {capacity:,}")
    yield Figure("no eviction", 100 * hit_rate(trace, "fifo", distinct), "% found", conditions)


def distinct_blocks(trace: Trace) -> int:
    return len({block for request in trace for block in request})


def hit_rate(trace: Trace, policy: str, capacity: int) -> float:
    """The share of all blocks asked for that are found in a cache with room for `capacity` blocks."""
    cache = _BlockCache(policy, capacity)
    return sum(map(cache.ask, trace)) / sum(map(len, trace))


class _BlockCache:
    """The tree of the prefix cache, one node a block, without its content."""

    def __init__(self, policy: str, capacity: int) -> None:
        self._policy = eviction_policy(policy, capacity)
        self._capacity = capacity
        self._parents: dict[int, int | None] = {}
        self._children: dict[int, int] = {}  # how many

    def ask(self, request: Sequence[int]) -> int:
        """How many blocks are found at the beginning of `request`; the rest is here afterwards, as far as it fits."""
        found = next((at for at, block in enumerate(request) if block not in self._parents), len(request))
        for block in reversed(request[:found]):
            self._policy.touch(block)
        missing = [at for at in range(found, min(len(request), self._capacity)) if request[at] not in self._parents]
        for at in reversed(missing):
            self._policy.expect(request[at], 1)
        in_use = frozenset(request)
        while missing and len(self._parents) + len(missing) > self._capacity:
            if not self._evict(in_use):
                missing.pop()
        for at in reversed(missing):
            self._add(request[at], request[at - 1] if at else None)
        return found

    def _add(self, block: int, parent: int | None) -> None:
        self._parents[block] = parent
        if parent is not None:
            self._children[parent] = self._children.get(parent, 0) + 1
        self._policy.add(block, 1)

    def _evict(self, in_use: frozenset[int]) -> bool:
        candidates = (block for block in self._policy.victims() if not self._children.get(block))
        leaf = next((block for block in candidates if block not in in_use), None)
        if leaf is None:
            return False
        self._policy.evict(leaf)
        parent = self._parents.pop(leaf)
        if parent is not None:
            self._children[parent] -= 1
        return True
