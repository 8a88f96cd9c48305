"""How long the index of vectors takes for one lookup, and how much of what is nearest it finds, size by size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

from smartcache.storage.vectors import VectorIndex
from smartcache_eval.figures import Figure

DIMENSION = 384
COUNT = 16
QUERIES = 500
SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
CHUNK_ROWS = 50_000

Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Where vectors come from that lie as those of questions do: topics, questions in them, wordings of each, more of
    the popular ones. The similarities of the 1st, 8th and 16th nearest, and the falling weight of the directions, are
    about those of 23,000 questions of public sets under the default embedder (0.89, 0.66, 0.60)."""

    middles: Rows
    shares: NDArray[np.float64]
    weights: Rows  # of the directions

    @classmethod
    def seeded(cls, size: int, seed: int) -> Clusters:
        draws = np.random.default_rng(seed)
        weights = (1 / np.sqrt(np.arange(9, 9 + DIMENSION))).astype(np.float32)
        count = max(1, size // 6)
        topics = _normal(draws, max(1, count // 50)) * weights
        own = _normal(draws, count) * weights
        middles: Rows = np.float32(0.4**0.5) * topics[draws.integers(len(topics), size=count)]
        middles += np.float32(0.6**0.5) * own
        shares = draws.lognormal(0.0, 1.0, count)
        return cls(middles, shares / shares.sum(), weights)

    def draw(self, count: int, seed: int) -> Rows:
        """Unit vectors, (count, DIMENSION)."""
        draws = np.random.default_rng(seed)
        rows = self.middles[draws.choice(len(self.middles), count, p=self.shares)]
        for start in range(0, count, CHUNK_ROWS):
            part = rows[start : start + CHUNK_ROWS]
            spread = np.float32(0.8) * draws.random((len(part), 1), np.float32)
            part += spread * _normal(draws, len(part)) * self.weights
            part /= np.linalg.norm(part, axis=1, keepdims=True)
        return rows


def index_figures(sizes: Sequence[int] = SIZES, seed: int = 0) -> Iterator[Figure]:
    for size in sizes:
        clusters = Clusters.seeded(size, seed)
        yield from _figures(clusters.draw(size, seed + 1), clusters.draw(QUERIES, seed + 2))


def _figures(rows: Rows, queries: Rows) -> Iterator[Figure]:
    index = VectorIndex(DIMENSION)
    started = perf_counter()
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS]
        index.store(range(start, start + len(part)), list(part))
    index.wait()
    built = perf_counter() - started
    took, worked, found = zip(*(_timed(index, query) for query in queries), strict=True)
    name, load = f"{len(rows):,}", os.getloadavg()[0]
    conditions = f"{QUERIES} lookups of {COUNT} in turn among clustered vectors of {DIMENSION}; load {load:.1f}"
    yield Figure(f"{name}: lookup p50", 1e3 * float(np.quantile(took, 0.5)), "ms", conditions)
    yield Figure(f"{name}: lookup p99", 1e3 * float(np.quantile(took, 0.99)), "ms", conditions)
    yield Figure(f"{name}: lookup p99, CPU", 1e3 * float(np.quantile(worked, 0.99)), "ms", conditions)
    share = np.mean([len(ids & own) / COUNT for ids, own in zip(found, nearest(rows, queries), strict=True)])
    yield Figure(f"{name}: recall@{COUNT}", 100 * float(share), "%", f"{conditions}; against comparing each")
    yield Figure(f"{name}: memory", index.size_bytes / 1e6, "MB", conditions)
    yield Figure(f"{name}: built", built, "s", f"{conditions}; on one core, lookups go on meanwhile")


def _timed(index: VectorIndex, query: Rows) -> tuple[float, float, frozenset[int]]:
    """Seconds that passed, seconds of this thread's own work, and the ids that were found."""
    started, began = perf_counter(), thread_time()
    found = index.lookup(query, COUNT)
    return perf_counter() - started, thread_time() - began, frozenset(id for id, _ in found)


def nearest(rows: Rows, queries: Rows) -> list[frozenset[int]]:
    """The ids of the `COUNT` nearest of each query, every vector compared."""
    best = np.full((len(queries), COUNT), -2.0, np.float32)
    ids = np.full((len(queries), COUNT), -1, np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        similar = queries @ rows[start : start + CHUNK_ROWS].T
        both = np.concatenate([best, similar], axis=1)
        own = np.broadcast_to(np.arange(start, start + similar.shape[1]), similar.shape)
        top = np.argpartition(both, -COUNT, axis=1)[:, -COUNT:]
        best = np.take_along_axis(both, top, axis=1)
        ids = np.take_along_axis(np.concatenate([ids, own], axis=1), top, axis=1)
    return [frozenset(row) for row in ids.tolist()]


def _normal(draws: np.random.Generator, count: int) -> Rows:
    return draws.standard_normal((count, DIMENSION), np.float32)
