"""Texts to vectors: the seam to any embedder, and a memory so that no turn is embedded twice."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors. `name` identifies model, revision and prompt prefix: it enters every key made from
    its vectors. `max_tokens` is the longest input that it reads in full. One that also has `reads(text) -> bool` is not
    asked about texts with words that it has no token for: to it, they are all the same word."""

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimension)."""
        ...

    def count_tokens(self, text: str, /) -> int:
        """How many tokens `text` has, not cut to `max_tokens`."""
        ...


class RememberedVectors:
    """An embedder's vectors, made unit length here, checked, and remembered for the last `max_texts` texts."""

    def __init__(self, embedder: Embedder, *, max_texts: int = 20_000) -> None:
        self.embedder = embedder
        self._max_texts = max_texts
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._readable: OrderedDict[tuple[str, str], bool] = OrderedDict()
        self._cleared = 0
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text. Raises ValueError for a vector of another dimension, with NaN, or of length zero."""
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in known:
                self._vectors.move_to_end(text)
            cleared = self._cleared
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        if unknown:
            known |= zip(unknown, self._embed(unknown), strict=True)
            self._remember({text: known[text] for text in unknown}, cleared)
        return [known[text] for text in texts]

    def fits(self, text: str) -> bool:
        """Whether the embedder reads `text` in full.

        Short ASCII text does, uncounted: no tokenizer makes more than one token of a letter of it, and the other half
        of the limit is more than any tokenizer or prompt prefix adds. Of other letters some make several.
        """
        is_short = text.isascii() and 2 * len(text) <= self.embedder.max_tokens
        limit = self.embedder.max_tokens
        return is_short or self._known("fits", text, lambda: self.embedder.count_tokens(text) <= limit)

    def reads(self, text: str) -> bool:
        """Whether the embedder has a token for every word of `text`, as far as it can tell."""
        reads = getattr(self.embedder, "reads", None)
        return reads is None or self._known("reads", text, lambda: bool(reads(text)))

    def clear(self) -> None:
        """Drops all; what is being embedded just now is not remembered either."""
        with self._lock:
            self._cleared += 1
            self._vectors.clear()
            self._readable.clear()

    def _known(self, question: str, text: str, ask: Callable[[], bool]) -> bool:
        """What the embedder says of a text, asked once."""
        with self._lock:
            known, cleared = self._readable.get((question, text)), self._cleared
        if known is None:
            known = ask()
            with self._lock:
                if cleared == self._cleared:
                    self._readable[question, text] = known
                while len(self._readable) > 2 * self._max_texts:
                    self._readable.popitem(last=False)
        return known

    def _embed(self, texts: list[str]) -> list[Vector]:
        rows = np.asarray(self.embedder(texts), dtype=np.float32)
        expected = (len(texts), self.embedder.dimension)
        if rows.shape != expected:
            raise ValueError(f"embedder {self.embedder.name!r} gave vectors of shape {rows.shape}, not {expected}")
        return [unit(row) for row in rows]

    def _remember(self, vectors: dict[str, Vector], cleared: int) -> None:
        with self._lock:
            if cleared == self._cleared:
                self._vectors.update(vectors)
            while len(self._vectors) > self._max_texts:
                self._vectors.popitem(last=False)


def unit(vector: Vector) -> Vector:
    """`vector` at length one. Raises ValueError where it has no direction."""
    length = math.sqrt(float(vector @ vector))
    if not math.isfinite(length) or length == 0.0:
        raise ValueError("a vector with NaN, infinity or length zero has no direction")
    return np.asarray(vector / np.float32(length), dtype=np.float32)


def cosine(one: Vector, other: Vector) -> float:
    """Cosine similarity of two unit vectors, in [-1, 1] whatever the rounding."""
    return max(-1.0, min(1.0, float(one @ other)))
