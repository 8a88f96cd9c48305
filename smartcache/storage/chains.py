"""Which blocks a sequence of tokens is made of: each named by a hash of its tokens and of all before them."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_KEY_BYTES = 16
_FORM_LETTERS = 8


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a chain, and where it lies: `count` tokens after the block `parent` in the tree `root`. The name is
    where it is looked for, never the proof of what it holds."""

    root: str
    parent: str
    key: str
    count: int
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """The blocks of `tokens`, `block_tokens` each; what is left at the end is a shorter one."""

    root: str
    tokens: tuple[int, ...]
    block_tokens: int
    keys: tuple[str, ...]

    @classmethod
    def of(cls, root: str, tokens: tuple[int, ...], block_tokens: int) -> Chain:
        keys: list[str] = []
        for start in range(0, len(tokens), block_tokens):
            keys.append(_key(keys[-1] if keys else root, tokens[start : start + block_tokens]))
        return cls(root, tokens, block_tokens, tuple(keys))

    def parent(self, number: int) -> str:
        """What block `number` follows: the one before it, or the root."""
        return self.keys[number - 1] if number else self.root

    def tokens_of(self, number: int) -> tuple[int, ...]:
        return self.tokens[number * self.block_tokens : (number + 1) * self.block_tokens]

    def blocks(self, first: int = 0) -> Iterator[tuple[Block, tuple[int, ...]]]:
        """Every block from number `first` on, with its tokens."""
        for number in range(first, len(self.keys)):
            tokens = self.tokens_of(number)
            yield Block(self.root, self.parent(number), self.keys[number], len(tokens)), tokens


def root_of(tree: str, *form: object) -> str:
    """What the first blocks of a tree follow: another one for each tree, and for each form that blocks are kept in."""
    return _hash(repr(tree).encode()) + _hash(repr(form).encode())[:_FORM_LETTERS]


def is_other_form(root: str, other: str) -> bool:
    """Whether `other` is of the same tree as `root`, whose blocks are kept in another form."""
    return root != other and root[:-_FORM_LETTERS] == other[:-_FORM_LETTERS]


def shared_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens are equal."""
    if left == right:
        return len(left)
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _key(parent: str, tokens: tuple[int, ...]) -> str:
    return _hash(parent.encode() + array("q", tokens).tobytes())


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).hexdigest()
