"""Boosted decision trees, as arrays: a score from a few numbers, and how much each of them had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


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

    def _below(self, nodes: NDArray[np.intp], row: NDArray[np.float32]) -> NDArray[np.intp]:
        feature, threshold, below = self._flat
        is_right = row.take(feature.take(nodes)) > threshold.take(nodes)
        return below.take(2 * nodes + is_right)
