"""A place for blocks with a budget: what lies there, how blocks follow one another, and which go first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smartcache.storage.chains import Block, Chain
    from smartcache.storage.segments import Packed


class Shelf(ABC):
    """Blocks within `max_bytes`; the least recently used go first, and what follows a block never outlives it.

    Any number of threads may call. The lock is held while the index is read or changed, not while content moves.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._blocks: OrderedDict[str, Block] = OrderedDict()  # the least recently used first
        self._children: dict[str, dict[str, None]] = {}
        self._tokens: dict[str, tuple[int, ...]] = {}  # as far as they are known already
        self._bytes = 0

    @abstractmethod
    def read(self, block: Block, tokens: tuple[int, ...]) -> Packed | None:
        """The content of `block`, if it is there and belongs to `tokens`."""

    @abstractmethod
    def put(self, block: Block, tokens: tuple[int, ...], packed: Packed) -> None:
        """Keep a block, whatever the budget: `make_room` comes after."""

    @abstractmethod
    def tokens_of(self, block: Block) -> tuple[int, ...]:
        """The tokens that a block here says it has; none where it cannot be read."""

    @abstractmethod
    def _delete(self, blocks: Sequence[Block]) -> None:
        """Drop the content of blocks that the index does not have any more."""

    def set_aside(self, block: Block, reason: str) -> None:
        """Never hand out `block` again."""
        self.remove([block.key])

    def bytes(self) -> int:
        with self._lock:
            return self._bytes

    def find(self, block: Block) -> Block | None:
        """`block` as it lies here."""
        with self._lock:
            return self._blocks.get(block.key)

    def has(self, key: str) -> bool:
        with self._lock:
            return key in self._blocks

    def after(self, parent: str) -> list[Block]:
        """The blocks that follow `parent`."""
        with self._lock:
            return [self._blocks[key] for key in self._children.get(parent, ())]

    def holds(self, block: Block, tokens: tuple[int, ...]) -> bool:
        """Whether the state of `tokens` is here, in `block` itself or in a longer one that begins with them."""
        return self.find(block) is not None or any(
            other.count > block.count and self.tokens_of(other)[: block.count] == tokens
            for other in self.after(block.parent)
        )

    def replace_shorter(self, block: Block, tokens: tuple[int, ...]) -> None:
        """Drop the blocks that hold a part of `block` only."""
        shorter = [other for other in self.after(block.parent) if other.count < block.count]
        self.remove([other.key for other in shorter if self.tokens_of(other) == tokens[: other.count]])

    def used(self, keys: Sequence[str]) -> None:
        """Blocks in the order of their chain were used: the first of them shall go last."""
        with self._lock:
            for key in reversed(keys):
                if key in self._blocks:
                    self._blocks.move_to_end(key)

    def make_room(self) -> None:
        gone: list[Block] = []
        with self._lock:
            while self._bytes > self.max_bytes and self._blocks:
                gone += self._drop([next(iter(self._blocks))])
        self._delete(gone)

    def remove(self, keys: Iterable[str]) -> list[Block]:
        """Drop blocks and all that follows them."""
        with self._lock:
            gone = self._drop(keys)
        self._delete(gone)
        return gone

    def forget(self, chain: Chain) -> None:
        """Drop every block that holds state of a sequence that begins with the tokens of `chain` (all of its tree's,
        without tokens), and what leads to nothing else."""
        if not chain.tokens:
            self.remove([block.key for block in self._of_tree(chain.root)])
            return
        self.remove_unreachable()  # or what follows a block that is gone would stay
        number = len(chain.keys) - 1
        tokens = chain.tokens_of(number)
        siblings = self.after(chain.parent(number))
        begun = [block.key for block in siblings if self.tokens_of(block)[: len(tokens)] == tokens]
        gone = self.remove([chain.keys[number], *begun])
        while gone and number and not self.after(chain.parent(number)):
            number -= 1
            self.remove([chain.keys[number]])

    def remove_unreachable(self) -> None:
        """What follows a block that is not here can never be found."""
        with self._lock:
            orphans = [
                block.key
                for block in self._blocks.values()
                if block.count and block.parent not in self._blocks and block.parent != block.root
            ]
        self.remove(orphans)

    def clear(self) -> None:
        with self._lock:
            gone = self._drop(list(self._blocks))
        self._delete(gone)

    def _of_tree(self, root: str) -> list[Block]:
        with self._lock:
            return [block for block in self._blocks.values() if block.root == root]

    def _add(self, block: Block, tokens: tuple[int, ...] | None = None) -> None:
        self._drop_one(block.key)
        self._blocks[block.key] = block
        self._children.setdefault(block.parent, {})[block.key] = None
        self._bytes += block.nbytes
        if tokens is not None:
            self._tokens[block.key] = tokens

    def _drop(self, keys: Iterable[str]) -> list[Block]:
        waiting, gone = list(keys), []
        while waiting:
            key = waiting.pop()
            waiting.extend(self._children.get(key, ()))
            gone += self._drop_one(key)
        return gone

    def _drop_one(self, key: str) -> list[Block]:
        block = self._blocks.pop(key, None)
        if block is None:
            return []
        siblings = self._children[block.parent]
        del siblings[key]
        if not siblings:
            del self._children[block.parent]
        self._tokens.pop(key, None)
        self._bytes -= block.nbytes
        return [block]


class BlockMemory(Shelf):
    """Blocks in host memory."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._content: dict[str, Packed] = {}

    def read(self, block: Block, tokens: tuple[int, ...]) -> Packed | None:
        with self._lock:
            return self._content.get(block.key) if self._tokens.get(block.key) == tokens else None

    def put(self, block: Block, tokens: tuple[int, ...], packed: Packed) -> None:
        with self._lock:
            self._add(replace(block, nbytes=packed.nbytes), tokens)
            self._content[block.key] = packed

    def tokens_of(self, block: Block) -> tuple[int, ...]:
        with self._lock:
            return self._tokens.get(block.key, ())

    def _delete(self, blocks: Sequence[Block]) -> None:
        with self._lock:
            for block in blocks:
                if block.key not in self._blocks:
                    self._content.pop(block.key, None)
