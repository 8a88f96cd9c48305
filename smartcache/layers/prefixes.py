"""Prefix state that is computed once: a radix tree over token ids, generic in what the state is.

Each node owns the state of its own tokens and nothing else, so a prefix that many prompts share is stored and counted
once. Models plug in their KV tensors; the tests plug in letters.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic

from smartcache.layers.eviction import eviction_policy
from smartcache.layers.prefix_nodes import Node as _Node
from smartcache.layers.prefix_nodes import path_to
from smartcache.layers.tiered import Tiered
from smartcache.storage.chains import shared_length
from smartcache.storage.segments import Segment, SegmentT, is_exact
from smartcache.storage.tiers import Tiers, require_bytes
from smartcache.storage.transit import Continuation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PrefixMatch(Generic[SegmentT]):
    """The longest known prefix: the state of the first `length` tokens is what `segments` hold one after the other; the
    last segment may reach beyond it."""

    length: int = 0
    segments: tuple[SegmentT, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether this is the state as it was computed, and computed on such: not where it was compressed meanwhile."""
        return all(is_exact(segment) for segment in self.segments)

    def then(self, more: Continuation[SegmentT]) -> PrefixMatch[SegmentT]:
        """This match, and what continues it."""
        segments = self.segments
        if beyond := sum(map(len, segments)) - self.length:
            segments = (*segments[:-1], segments[-1][:-beyond])
        return PrefixMatch(more.length, (*segments, more.segment))


class PrefixCache(Tiered[SegmentT]):
    """States by token prefix, within `max_bytes` over all fingerprints together.

    A fingerprint names whatever makes state valid (weights, adapter, dtype, …): prefixes of two fingerprints never
    meet. Scopes are not known here: who keeps them apart, as a LocalModel does, gives each a fingerprint of its own.
    Tokens are compared one by one, never by hash alone. When room is needed, leaves go, in the order of the `policy`
    (lru, lfu, fifo, arc, lirs, lfu-da or adaptive), and never what a match has in use. A match counts as a use, storing
    does not. Any number of threads may call; the lock is held while the tree is read or changed, not while a caller
    uses its match.

    With a `disk_path` (or `ram_max_bytes`, for state on another device) what is stored is also written there in the
    background, and what the tree does not hold is fetched from there, if that is sooner than computing it. It survives
    a restart; files over `disk_max_bytes` go, the least recently used first. `compress="int8"` keeps it at a quarter
    of float32 and no longer exact, which every match on it says. A file holds `block_tokens`, or fewer at the end of a
    sequence. `close()`, or the end of a `with` block or of the process, writes what is still queued.
    """

    def __init__(
        self,
        max_bytes: int = 1024**3,
        *,
        policy: str = "lfu-da",
        disk_path: str | Path | None = None,
        disk_max_bytes: int = 8 * 1024**3,
        ram_max_bytes: int = 0,
        compress: str | None = None,
        block_tokens: int = 64,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        require_bytes(max_bytes=max_bytes)
        super().__init__(Tiers(disk_path, disk_max_bytes, ram_max_bytes, compress, max_bytes // 4, block_tokens, clock))
        self._policy = eviction_policy(policy, max_bytes)
        self.max_bytes = max_bytes
        self.policy = policy
        self._lock = Lock()
        self._roots: dict[str, _Node[SegmentT]] = {}
        # The policy knows a node by the hash of all tokens up to its end, so that it knows again what comes back.
        self._nodes: dict[int, _Node[SegmentT]] = {}
        self._in_use: set[_Node[SegmentT]] = set()  # the ends of what matches hold
        self._bytes = 0
        self._tokens = 0
        self._forgotten = 0  # how many times: what was fetched before must not come back after

    @property
    def forgets(self) -> int:
        """How many times something was forgotten, or all cleared."""
        return self._forgotten

    def __len__(self) -> int:
        """How many tokens have their state here."""
        return self._tokens

    def bytes(self) -> int:
        """What all stored segments hold, in bytes; never more than `max_bytes`."""
        return self._bytes

    @contextmanager
    def match(self, fingerprint: str, tokens: Sequence[int]) -> Iterator[PrefixMatch[SegmentT]]:
        """The longest known prefix of `tokens` without the last one, which a model must always compute.

        What the match hands out stays in the cache until the block ends, and stays right after it.
        """
        wanted = tuple(tokens[:-1])
        with ExitStack() as pins:
            found = pins.enter_context(self._pinned(fingerprint, wanted, used=True))
            if self._tiers.active and found.length < len(wanted):
                found = self._continued(fingerprint, wanted, found, pins)
            yield found

    def held(self, fingerprint: str, tokens: Sequence[int]) -> int:
        """How many tokens of the beginning of `tokens` have their state in memory now; asking is no use of it."""
        with self._lock:
            return self._walk(fingerprint, tuple(tokens))[1]

    def store(self, fingerprint: str, tokens: Sequence[int], state: SegmentT, *, begun: int | None = None) -> int:
        """Keep the state of `tokens[: len(state)]`; how many of its tokens are new here. `begun` is what `forgets` was
        when the state began to be computed: if something was forgotten since, nothing is stored.

        Only the part that is not known yet is sliced out of `state`, so a view of memory that lives on may be given. If
        that part finds no room beside what is in use, nothing is stored and the result is 0.
        """
        if len(state) > len(tokens):
            raise ValueError(f"the state covers {len(state)} tokens, but only {len(tokens)} were given")
        tokens = tuple(tokens[: len(state)])
        with self._pinned(fingerprint, tokens, used=False) as known:
            if known.length == len(tokens):
                return 0
            segment = state[known.length : len(tokens)]
            with self._lock:
                if begun is not None and begun != self._forgotten:
                    return 0
                new = self._insert(fingerprint, tokens, known.length, segment)
                # not if what it continues was forgotten meanwhile
                if self._tiers.active and self._walk(fingerprint, tokens)[1] >= known.length:
                    self._tiers.keep(fingerprint, tokens, known.segments, known.length, segment)
                return new

    def forget(self, fingerprint: str, tokens: Sequence[int] = ()) -> int:
        """Drop every stored sequence that begins with `tokens` (all of the fingerprint's, without tokens), here and on
        disk; how many tokens lost their state here. Prefixes that other sequences share with them stay."""
        with self._told_of_it(), self._tiers.paused():
            dropped = self._forget_here(fingerprint, tuple(tokens))
            self._tiers.forget(fingerprint, tuple(tokens))
            return dropped

    def clear(self) -> None:
        """Drop everything, on disk too. A match in use keeps the segments that it was handed."""
        with self._told_of_it(), self._tiers.paused():
            with self._lock:
                self._forgotten += 1
                self._roots.clear()
                self._nodes.clear()
                self._policy = eviction_policy(self.policy, self.max_bytes)
                self._bytes = self._tokens = 0
            self._tiers.clear()

    def _forget_here(self, fingerprint: str, tokens: tuple[int, ...]) -> int:
        with self._lock:
            self._forgotten += 1
            path, length = self._walk(fingerprint, tokens)
            if not path or length < len(tokens):
                return 0
            node = path[-1]
            # what leads to one forgotten sequence only is part of that sequence
            while node.parent is not None and node.parent.parent is not None and len(node.parent.children) == 1:
                node = node.parent
            before = self._tokens
            self._drop_tree(node)
            return before - self._tokens

    def _continued(
        self, fingerprint: str, wanted: tuple[int, ...], found: PrefixMatch[SegmentT], pins: ExitStack
    ) -> PrefixMatch[SegmentT]:
        """`found`, and what the lower tiers have after it: taken into the tree where there is room, handed out where
        there is none."""
        forgotten = self._forgotten
        more = self._tiers.fetch(fingerprint, wanted, found.length)
        if more is None:
            return found
        with self._lock:
            if forgotten == self._forgotten:
                self._insert(fingerprint, more.tokens, found.length, more.segment)
        again = pins.enter_context(self._pinned(fingerprint, wanted, used=False))
        return again if again.length >= more.length else found.then(more)

    @contextmanager
    def _pinned(self, fingerprint: str, tokens: tuple[int, ...], *, used: bool) -> Iterator[PrefixMatch[SegmentT]]:
        with self._lock:
            path, length = self._walk(fingerprint, tokens)
            known = path[1:]
            # From the end to the root, so that a child goes before its parent and a leaf to evict is soon found.
            for node in reversed(known if used else ()):
                self._policy.touch(node.name)
            # Pinning the end is enough: every node above it has a child and is no leaf.
            end = known[-1] if known else None
            if end is not None:
                end.pins += 1
                self._in_use.add(end)
            segments = tuple(node.segment for node in known if node.segment is not None)
            if used:
                self._tiers.keep(fingerprint, tokens[:length], segments, length)
        try:
            yield PrefixMatch(length, segments)
        finally:
            if end is not None:
                with self._lock:
                    end.pins -= 1
                    if not end.pins:
                        self._in_use.discard(end)

    def _walk(self, fingerprint: str, tokens: tuple[int, ...]) -> tuple[list[_Node[SegmentT]], int]:
        """The nodes from the root that share tokens with `tokens`, and how many tokens are shared."""
        node = self._roots.get(fingerprint)
        path: list[_Node[SegmentT]] = []
        length = 0
        while node is not None:
            path.append(node)
            shared = shared_length(node.tokens, tokens[length : length + len(node.tokens)])
            length += shared
            if shared < len(node.tokens) or length == len(tokens):
                break
            node = node.children.get(tokens[length])
        return path, length

    def _insert(self, fingerprint: str, tokens: tuple[int, ...], known: int, segment: SegmentT) -> int:
        """Hang `segment`, the state of `tokens[known:]`, into the tree; the caller has pinned the known prefix."""
        self._policy.expect(hash((fingerprint, tokens)), segment.nbytes)
        if not self._make_room(segment.nbytes):
            return 0
        path, length = self._walk(fingerprint, tokens)
        if length == len(tokens) or length < known:
            return 0  # another thread was first, or the prefix was forgotten meanwhile
        if length > known:
            segment = segment[length - known :]
        parent = path[-1] if path else self._roots.setdefault(fingerprint, _Node())
        depth = sum(len(node.tokens) for node in path)
        if depth > length:
            name = self._name(fingerprint, tokens[:length])
            parent = self._split(parent, len(parent.tokens) - (depth - length), name)
        leaf = _Node(tokens[length:], segment, parent, name=self._name(fingerprint, tokens))
        parent.children[leaf.tokens[0]] = leaf
        self._nodes[leaf.name] = leaf
        self._count(leaf, +1)
        self._policy.add(leaf.name, segment.nbytes)
        return len(leaf.tokens)

    def _name(self, fingerprint: str, tokens: tuple[int, ...]) -> int:
        """What the policy shall call the node that ends with `tokens`: their hash, or the next number that is free."""
        name = hash((fingerprint, tokens))
        while name in self._nodes:
            name += 1
        return name

    def _split(self, node: _Node[SegmentT], at: int, name: int) -> _Node[SegmentT]:
        """Cut `node` before its token `at`; the new node above it. The old object stays the end, and so keeps its
        name and its pins."""
        assert node.segment is not None
        assert node.parent is not None
        self._count(node, -1)
        head = _Node(node.tokens[:at], node.segment[:at], node.parent, name=name)
        node.parent.children[head.tokens[0]] = head
        node.tokens, node.segment, node.parent = node.tokens[at:], node.segment[at:], head
        head.children[node.tokens[0]] = node
        self._nodes[name] = head
        self._count(head, +1)
        self._count(node, +1)
        assert head.segment is not None
        self._policy.split(node.name, name, head.segment.nbytes)
        return head

    def _make_room(self, nbytes: int) -> bool:
        """Evict until `nbytes` more fit; False, and nothing evicted, where there is no room beside what is in use."""
        if self._bytes + nbytes > self.max_bytes and self._held_bytes() + nbytes > self.max_bytes:
            return False
        while self._bytes + nbytes > self.max_bytes:
            candidates = (self._nodes[name] for name in self._policy.victims())
            leaf = next(node for node in candidates if not node.children and not node.pins)
            self._policy.evict(leaf.name)
            self._drop(leaf)
        return True

    def _held_bytes(self) -> int:
        """What cannot be evicted now: the ends in use, and all that leads to them."""
        held = {node: None for end in self._in_use if self._nodes.get(end.name) is end for node in path_to(end)}
        return sum(node.segment.nbytes for node in held if node.segment is not None)

    def _drop(self, leaf: _Node[SegmentT]) -> None:
        assert leaf.parent is not None
        del leaf.parent.children[leaf.tokens[0]]
        del self._nodes[leaf.name]
        self._count(leaf, -1)
        if leaf.parent.parent is None and not leaf.parent.children:
            self._roots = {name: root for name, root in self._roots.items() if root.children}

    def _drop_tree(self, top: _Node[SegmentT]) -> None:
        waiting, order = [top], []
        while waiting:
            order.append(waiting.pop())
            waiting.extend(order[-1].children.values())
        for node in reversed(order):
            if node.parent is not None:
                self._policy.forget(node.name)
                self._drop(node)

    def _count(self, node: _Node[SegmentT], sign: int) -> None:
        assert node.segment is not None
        self._bytes += sign * node.segment.nbytes
        self._tokens += sign * len(node.tokens)


class NoPrefixCache(Tiered[Any]):
    """A prefix cache that never knows anything: the baseline, with the interface of the real one."""

    max_bytes = 0
    forgets = 0

    def __init__(self) -> None:
        super().__init__(Tiers())

    def __len__(self) -> int:
        return 0

    def bytes(self) -> int:
        return 0

    @contextmanager
    def match(self, fingerprint: str, tokens: Sequence[int]) -> Iterator[PrefixMatch[Any]]:
        yield PrefixMatch()

    def store(self, fingerprint: str, tokens: Sequence[int], state: Segment, *, begun: int | None = None) -> int:
        return 0

    def held(self, fingerprint: str, tokens: Sequence[int]) -> int:
        return 0

    def forget(self, fingerprint: str, tokens: Sequence[int] = ()) -> int:
        return 0

    def clear(self) -> None:
        """Nothing to drop."""
