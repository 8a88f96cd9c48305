"""Vectors for text that a sentence model cannot read: the letters that stand side by side, and no model at all."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smartcache.chinese import is_chinese
from smartcache.embedding import Embedder

GRAM_LETTERS = (1, 2, 3)
BY_LETTERS = ", Chinese by letters 1"  # after the name of the embedder that all other text is for
_FOREIGN = re.compile(  # words of letters that an English model knows one by one: Cyrillic to Thai, and of Greek ones
    r"[^\W\d_\u0000-\u024f\u0370-\u03ff\u1e00-\u1eff\u2000-\u2bff\u3000-\uffff]{2,}|[\u0370-\u03ff]{2,}"
)
_SIGNS = str.maketrans(dict.fromkeys("，。！？；：、“”‘’（）《》,.!?;:()\"' \n\t"))


class ByScript:
    """Chinese text by its letters, all other text by `embedder`.

    In one space, though never near each other: a text's letters fall on all dimensions with either sign, which is at
    right angles to what any model gives, as near as random directions are.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"{embedder.name}{BY_LETTERS}"
        self.dimension, self.max_tokens = embedder.dimension, embedder.max_tokens

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        chinese = [place for place, text in enumerate(texts) if is_chinese(text)]
        others = sorted(set(range(len(texts))) - set(chinese))
        for place in chinese:
            rows[place] = letters_vector(texts[place], self.dimension)
        if others:
            rows[others] = self._embedder([texts[place] for place in others])
        return rows

    def count_tokens(self, text: str, /) -> int:
        """Of Chinese one: however long, it is read in full."""
        return 1 if is_chinese(text) else self._embedder.count_tokens(text)

    def reads(self, text: str, /) -> bool:
        reads: Any = getattr(self._embedder, "reads", None)
        return reads is None or is_chinese(text) or bool(reads(text) and not _FOREIGN.search(text))


def letters_vector(text: str, dimension: int) -> NDArray[np.float32]:
    """The unit vector of a text: one, two and three letters side by side, each on a dimension of its own hash."""
    row = np.zeros(dimension, dtype=np.float32)
    for gram in _grams(text):
        hashed = zlib.crc32(gram.encode())
        row[hashed % dimension] += 1.0 if hashed >> 31 else -1.0
    length = float(np.linalg.norm(row))
    if length == 0.0:
        row[0] = length = 1.0  # signs alone, or letters that cancel each other
    return row / np.float32(length)


def _grams(text: str) -> Iterator[str]:
    plain = text.lower().translate(_SIGNS)
    for letters in GRAM_LETTERS:
        yield from (plain[start : start + letters] for start in range(len(plain) - letters + 1))
