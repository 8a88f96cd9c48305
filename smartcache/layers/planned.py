"""Which chunks began prompts lately, in which order: what a prefix cache is likely to hold, without asking it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from smartcache.keys import digest
from smartcache.types import Chunk

Held = Callable[[Sequence[Chunk]], int]
"""How many tokens of a prompt that begins with these chunks a prefix cache holds now."""
Tokens = Callable[[Chunk], int]
"""How many tokens a chunk adds to a prompt, such as `TokenCounts(model.count_tokens).of`."""

MAX_ASKED = 16  # beginnings of which a prefix cache is asked, the longest first


class PlannedContexts:
    """The chunk sequences that entered prompts lately, as a tree; no text is kept, only ids and hashes.

    At most `max_chunks` of them, over all scopes: what was not planned for the longest time goes, ends first. What one
    scope planned, no other finds. `held` asks a real prefix cache, where there is one to ask: then what it holds most
    of is chosen among the longest beginnings. How long one is, is told in `tokens`, or in letters where nothing counts
    tokens. Any number of threads may call.
    """

    def __init__(self, max_chunks: int = 10_000, *, held: Held | None = None, tokens: Tokens | None = None) -> None:
        if max_chunks < 1:
            raise ValueError(f"max_chunks is {max_chunks!r}: it must be at least 1")
        self._max_chunks = max_chunks
        self._held, self._size = held, tokens or _letters
        self._roots: dict[str, _Node] = {}
        # A node comes after all that follow it in a prompt, so the first is always an end.
        self._ages: OrderedDict[_Node, None] = OrderedDict()
        self._uses: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()  # (scope, key): chunk id, how often
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many chunks the tree holds, each place counted."""
        return len(self._ages)

    def __deepcopy__(self, memo: object) -> PlannedContexts:
        """Itself: a copy of an application's chain knows the same prompts."""
        return self

    def record(self, chunks: Sequence[Chunk], *, scope: str = "") -> None:
        """Takes note that a prompt began with `chunks`."""
        keys = [(key_of(chunk), chunk.ref.id) for chunk in chunks[: self._max_chunks]]
        with self._lock:
            path = [self._roots.setdefault(scope, _Node(scope))]
            for key, id in keys:
                path.append(path[-1].children.setdefault(key, _Node(scope, key, id, path[-1])))
                path[-1].uses += 1
                self._uses[scope, key] = (id, self._uses.pop((scope, key), (id, 0))[1] + 1)
            for node in reversed(path[1:]):
                self._ages[node] = None
                self._ages.move_to_end(node)
            while len(self._ages) > self._max_chunks:
                self._drop(next(iter(self._ages)))
            while len(self._uses) > self._max_chunks:
                self._uses.popitem(last=False)
            if not path[0].children:
                self._roots.pop(scope, None)

    def uses(self, chunk: Chunk, *, scope: str = "") -> int:
        """In how many prompts of the scope the chunk was, at any place."""
        with self._lock:
            return self._uses.get((scope, key_of(chunk)), ("", 0))[1]

    def shared(self, chunks: Sequence[Chunk], *, scope: str = "") -> int:
        """How many of `chunks`, from the first on, began a prompt in this order before."""
        keys = list(map(key_of, chunks))
        with self._lock:
            node = self._roots.get(scope)
            for number, key in enumerate(keys):
                node = node.children.get(key) if node else None
                if node is None:
                    return number
        return len(keys)

    def longest(
        self, chunks: Sequence[Chunk], *, scope: str = "", allows: Callable[[Sequence[Chunk]], bool] = lambda _: True
    ) -> tuple[Chunk, ...]:
        """The longest beginning that was planned before, uses none but `chunks` and that `allows` lets pass at
        every step; of equals, the one used most, then by hash."""
        at_hand = {key_of(chunk): chunk for chunk in chunks}
        with self._lock:
            ends = list(_ends(self._roots.get(scope), at_hand, allows))
        ends.sort(key=lambda end: (-sum(self._size(at_hand[key]) for key in end.keys), -end.uses, end.keys))
        begins = [tuple(at_hand[key] for key in end.keys) for end in ends[: MAX_ASKED if self._held else 1]]
        return max(begins, key=self._held or len, default=())

    def forget(self, scope: str | None = None, chunk_ids: Sequence[str] | None = None) -> None:
        """Forgets what meets every condition given: of `scope`, and from one of `chunk_ids` on."""
        ids = None if chunk_ids is None else set(chunk_ids)
        with self._lock:
            for node in [n for n in self._ages if scope in (None, n.scope) and (ids is None or n.id in ids)]:
                self._drop(node)
            for place, (id, _) in list(self._uses.items()):
                if scope in (None, place[0]) and (ids is None or id in ids):
                    del self._uses[place]

    def _drop(self, node: _Node) -> None:
        """Drops a node and all that follow it, where that was not done yet."""
        waiting = [node] if node in self._ages else []
        while waiting:
            gone = waiting.pop()
            del self._ages[gone]
            waiting.extend(gone.children.values())
        if node.parent:
            node.parent.children.pop(node.key, None)
            if node.parent.parent is None and not node.parent.children:
                self._roots.pop(node.scope, None)


def key_of(chunk: Chunk) -> str:
    """A hash of identity and content: another text under the same id is another chunk."""
    return digest(chunk.ref.source, chunk.ref.id, chunk.ref.version, chunk.text)


def _letters(chunk: Chunk) -> int:
    return len(chunk.text)


@dataclass(slots=True, eq=False)
class _Node:
    """A chunk at its place, and how many prompts came by; the root of a scope has no parent."""

    scope: str
    key: str = ""
    id: str = ""
    parent: _Node | None = None
    uses: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _End:
    """Where a walk down the tree ends for want of a chunk that goes on."""

    keys: tuple[str, ...]
    uses: int


def _ends(root: _Node | None, at_hand: dict[str, Chunk], allows: Callable[[Sequence[Chunk]], bool]) -> Iterator[_End]:
    waiting: list[tuple[_Node, tuple[str, ...]]] = [(root, ())] if root else []
    while waiting:
        node, keys = waiting.pop()
        further = [(node.children[key], (*keys, key)) for key in node.children.keys() & at_hand.keys() - {*keys}]
        allowed = [step for step in further if allows([at_hand[key] for key in step[1]])]
        waiting.extend(allowed)
        if keys and not allowed:
            yield _End(keys, node.uses)
