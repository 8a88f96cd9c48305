"""Vectors that are computed once and used by every contestant, so that what is compared is what they do with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from smartcache import Embedder

BATCH_TEXTS = 64


class KnownVectors:
    """An embedder that remembers every vector, also in `folder` where there is one, and the time it lost embedding."""

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        self.name, self.dimension, self.max_tokens = embedder.name, embedder.dimension, embedder.max_tokens
        self._path = folder / f"{_key(embedder.name)}.npz" if folder else None
        self._vectors = _read(self._path, self.dimension)
        self.asked: list[str] = []
        self.seconds = 0.0  # spent embedding, all in all

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        self.asked.extend(texts)
        self.learn(texts)
        return np.stack([self._vectors[_key(text)] for text in texts])

    def count_tokens(self, text: str, /) -> int:
        return self._embedder.count_tokens(text)

    def reads(self, text: str, /) -> bool:
        reads = getattr(self._embedder, "reads", None)
        return reads is None or bool(reads(text))

    def learn(self, texts: Iterable[str]) -> None:
        """Embeds what is not known yet, in batches of texts of like length."""
        unknown = sorted({text for text in texts if _key(text) not in self._vectors}, key=len)
        started = perf_counter()
        for start in range(0, len(unknown), BATCH_TEXTS):
            batch = unknown[start : start + BATCH_TEXTS]
            rows = np.asarray(self._embedder(batch), dtype=np.float32)
            self._vectors.update(zip(map(_key, batch), rows, strict=True))
        self.seconds += perf_counter() - started

    def anew_seconds(self, texts: Sequence[str]) -> float:
        """How long the embedder itself takes over these texts."""
        started = perf_counter()
        if texts:
            self._embedder(texts)
        return perf_counter() - started

    def save(self) -> None:
        if self._path and self._vectors:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._path, keys=np.array(list(self._vectors)), rows=np.stack(list(self._vectors.values())))


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path | None, dimension: int) -> dict[str, NDArray[np.float32]]:
    if path is None or not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as kept:
        rows = kept["rows"]
        return dict(zip(kept["keys"].tolist(), rows, strict=True)) if rows.shape[1:] == (dimension,) else {}
