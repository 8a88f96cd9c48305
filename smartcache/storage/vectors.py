"""Nearest vectors by cosine similarity: FAISS behind own ids, derived from the entries and rebuilt at will."""

from __future__ import annotations

from collections.abc import Sequence

import faiss
import numpy as np

from smartcache.embedding import Vector


class VectorIndex:
    """Unit vectors of one dimension under ids that are never given twice. Not thread-safe: its owner holds the lock."""

    def __init__(self, dimension: int) -> None:
        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        self._ids: set[int] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def store(self, ids: Sequence[int], vectors: Sequence[Vector]) -> None:
        """Adds vectors; an id that is there already keeps its own."""
        new = [(id, vector) for id, vector in zip(ids, vectors, strict=True) if id not in self._ids]
        if new:
            rows = np.stack([vector for _, vector in new]).astype(np.float32)
            self._index.add_with_ids(rows, np.array([id for id, _ in new], dtype=np.int64))
            self._ids.update(id for id, _ in new)

    def forget(self, ids: Sequence[int]) -> None:
        gone = [id for id in ids if id in self._ids]
        if gone:
            self._index.remove_ids(faiss.IDSelectorBatch(np.array(gone, dtype=np.int64)))
            self._ids.difference_update(gone)

    def lookup(self, vector: Vector, count: int) -> list[tuple[int, float]]:
        """At most `count` (id, similarity) pairs, nearest first, similarities in [-1, 1]."""
        if not self._ids:
            return []
        similarities, ids = self._index.search(vector[np.newaxis], min(count, len(self._ids)))
        found = zip(ids[0].tolist(), similarities[0].tolist(), strict=True)
        return [(id, min(1.0, max(-1.0, similarity))) for id, similarity in found if id >= 0]
