"""Boosted decision trees, as arrays: a score from a few numbers, and how much each of them had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

BITS = 8  # of a byte: as many comparisons of one tree are looked up at once


@dataclass(frozen=True)
class Trees:
    """All arrays have the shape (trees, nodes); node 0 is a tree's root, and a leaf is its own child.

    At a node a row goes to `left` where its number `feature` is at most `threshold`, otherwise to `right`. `value`:
    what a leaf adds to the score, and of other nodes the mean of what lies below, by the rows they were grown on.
    `start`: the score before the first tree; `depth`: of the deepest.
    """

    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: NDArray[np.float32]
    start: float
    depth: int

    def score(self, row: NDArray[np.float32]) -> float:
        """The logit of one row."""
        if self._by_outcome:
            feature, threshold, value, places = self._by_outcome
            return float(self.start + value.take(places + np.packbits(row.take(feature) > threshold)).sum())
        nodes = self._roots
        for _ in range(self.depth):
            nodes = self._below(nodes, row)
        return float(self.start + self.value.take(nodes).sum())

    def parts(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each number of a row adds to its score: together, and with the mean of all rows, they are the score."""
        nodes = self._roots
        parts = np.zeros(len(row), np.float32)
        for _ in range(self.depth):
            below = self._below(nodes, row)
            np.add.at(parts, self.feature.take(nodes), self.value.take(below) - self.value.take(nodes))
            nodes = below
        return parts

    @cached_property
    def _roots(self) -> NDArray[np.intp]:
        return np.arange(0, self.feature.size, self.feature.shape[1])

    @cached_property
    def _flat(self) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.intp]]:
        """Of all trees, one after the other: `feature`, `threshold`, and the two places below a node, left first."""
        below = np.stack([self.left + self._roots[:, np.newaxis], self.right + self._roots[:, np.newaxis]], axis=-1)
        return self.feature.ravel().astype(np.intp), self.threshold.ravel(), below.ravel().astype(np.intp)

    @cached_property
    def _by_outcome(self) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.float32], NDArray[np.intp]] | None:
        """All that a row is compared with at once, `BITS` comparisons a tree, and what each tree adds for every outcome
        of its own, from its place on. None where a tree has more nodes than that."""
        trees, size = self.feature.shape
        is_inner = self.left != np.arange(size)
        if is_inner.sum(axis=1).max(initial=0) > BITS:
            return None
        bit = np.where(is_inner, is_inner.cumsum(axis=1) - 1, 0)
        tree, node = np.nonzero(is_inner)
        feature, threshold = np.zeros((trees, BITS), np.intp), np.full((trees, BITS), np.inf, np.float32)
        feature[tree, bit[tree, node]] = self.feature[tree, node]
        threshold[tree, bit[tree, node]] = self.threshold[tree, node]
        each, outcomes = np.arange(trees)[:, np.newaxis], np.arange(2**BITS)
        nodes = np.zeros((trees, 2**BITS), np.intp)
        for _ in range(self.depth):
            is_right = outcomes >> (BITS - 1 - bit[each, nodes]) & 1
            nodes = np.where(is_right, self.right[each, nodes], self.left[each, nodes])
        return feature.ravel(), threshold.ravel(), self.value[each, nodes].ravel(), np.arange(trees) * 2**BITS

    def _below(self, nodes: NDArray[np.intp], row: NDArray[np.float32]) -> NDArray[np.intp]:
        feature, threshold, below = self._flat
        is_right = row.take(feature.take(nodes)) > threshold.take(nodes)
        return below.take(2 * nodes + is_right)
