"""The two ways to search vectors: compare each, or only those in the lists whose middle is nearest."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any, Self, cast

import faiss
import numpy as np
from numpy.typing import NDArray

from smartcache.embedding import Vector

Rows = NDArray[np.float32]
Found = list[tuple[int, float]]

TRAINING_ROWS = 24  # for each list
MANY = 200_000
RECALL = 0.997  # of the RECALL_COUNT nearest of vectors that are kept, so that it is 0.99 for what is asked
RECALL_COUNT = 16


class Lists:
    """Vectors in half precision (a similarity is right to four digits), each in the list whose middle is nearest to it.

    What is removed is gone, its place taken by another. `trained` decides the middles once and for all.
    """

    def __init__(self, middles: Any, dimension: int, count: int) -> None:
        kind = faiss.ScalarQuantizer.QT_fp16
        self.index = faiss.IndexIVFScalarQuantizer(middles, dimension, count, kind, faiss.METRIC_INNER_PRODUCT, False)
        self.index.nprobe = count

    @classmethod
    def sample_rows(cls, size: int) -> int:
        """How many vectors `trained` should be given for `size` of them."""
        return TRAINING_ROWS * _list_count(size)

    @classmethod
    def trained(cls, sample: Rows, size: int) -> Self:
        """Empty lists for about `size` vectors like those of the sample."""
        dimension = sample.shape[1]
        lists = cls(faiss.IndexFlatIP(dimension), dimension, min(_list_count(size), len(sample)))
        lists.index.cp.niter, lists.index.cp.min_points_per_centroid = 5, 1
        lists.index.train(sample)
        lists.index.set_direct_map_type(cast(Any, faiss).DirectMap.Hashtable)  # finds by id what is to be removed
        return lists

    @property
    def size_bytes(self) -> int:
        return int(self.index.ntotal * (self.index.code_size + 8) + self.index.nlist * self.index.d * 4)

    def places(self, rows: Rows) -> NDArray[np.int64]:
        """The list of each row. Reads nothing that ever changes."""
        return self.index.quantizer.search(rows, 1)[1][:, 0]

    def add(self, ids: Sequence[int], rows: Rows, places: NDArray[np.int64] | None = None) -> None:
        if not ids:
            return
        rows, keys = np.ascontiguousarray(rows, dtype=np.float32), np.array(ids, dtype=np.int64)
        places = np.ascontiguousarray(self.places(rows) if places is None else places)
        self.index.add_core(len(keys), faiss.swig_ptr(rows), faiss.swig_ptr(keys), faiss.swig_ptr(places))

    def remove(self, ids: Sequence[int]) -> None:
        if ids:
            self.index.remove_ids(faiss.IDSelectorArray(np.array(ids, dtype=np.int64)))

    def rows(self, ids: Sequence[int]) -> Rows:
        return _rows(self.index, ids)

    def search(self, vector: Vector, count: int) -> Found:
        found = pairs(self.index.search(vector[np.newaxis], count))
        if len(found) == count:
            return found
        return self._search_all(vector, count)  # the nearest lists hold too few

    def lists_needed(self, row: Vector) -> list[int]:
        """For each of the nearest of a vector: how many lists must be searched to find it."""
        found = self._search_all(row, RECALL_COUNT + 1)[1:]  # the first is itself
        order = self.index.quantizer.search(row[np.newaxis], self.index.nlist)[1][0]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(1, len(order) + 1)
        return cast(list[int], rank[self.places(self.rows([id for id, _ in found]))].tolist()) if found else []

    def search_for(self, needed: Sequence[int]) -> None:
        """From now on as many lists are searched as were needed for all but a few."""
        if needed:
            self.index.nprobe = int(np.quantile(needed, RECALL, method="higher"))

    def _search_all(self, vector: Vector, count: int) -> Found:
        every = faiss.SearchParametersIVF()
        every.nprobe = self.index.nlist
        return pairs(self.index.search(vector[np.newaxis], count, params=every))


class Flat:
    """Vectors in single precision, each compared."""

    def __init__(self, dimension: int) -> None:
        self.index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))

    @property
    def size_bytes(self) -> int:
        return int(self.index.ntotal * (self.index.d * 4 + 8))

    def add(self, ids: Sequence[int], rows: Rows) -> None:
        self.index.add_with_ids(rows, np.array(ids, dtype=np.int64))

    def remove(self, ids: Sequence[int]) -> None:
        if ids:
            self.index.remove_ids(faiss.IDSelectorBatch(np.array(ids, dtype=np.int64)))

    def rows(self, ids: Sequence[int]) -> Rows:
        return _rows(self.index, ids)

    def search(self, vector: Vector, count: int) -> Found:
        return pairs(self.index.search(vector[np.newaxis], count))


def pairs(searched: tuple[Rows, NDArray[np.int64]]) -> Found:
    """(id, similarity) of what one search found: FAISS fills up with ids below zero."""
    similarities, ids = searched
    found = zip(ids[0].tolist(), similarities[0].tolist(), strict=True)
    return [(id, similarity) for id, similarity in found if id >= 0]


def _rows(index: Any, ids: Sequence[int]) -> Rows:
    if not ids:
        return np.empty((0, index.d), dtype=np.float32)
    return cast(Rows, index.reconstruct_batch(np.array(ids, dtype=np.int64)))


def _list_count(size: int) -> int:
    """More of them where there are many vectors: they take twice as long to make then, and of the clustered vectors of
    `bench index` a thirtieth holds the same share of what is nearest."""
    fineness = 8 if size >= MANY else 4
    return max(1, min(fineness * isqrt(size), size // 8))
