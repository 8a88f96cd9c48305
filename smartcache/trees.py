"""Boosted decision trees, as arrays: a score from a few numbers, and how much each of them had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
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
        trees = np.arange(len(self.feature))
        nodes = np.zeros(len(trees), np.intp)
        for _ in range(self.depth):
            nodes = self._below(trees, nodes, row)
        return float(self.start + self.value[trees, nodes].sum())

    def parts(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each number of a row adds to its score: together, and with the mean of all rows, they are the score."""
        trees = np.arange(len(self.feature))
        nodes = np.zeros(len(trees), np.intp)
        parts = np.zeros(len(row), np.float32)
        for _ in range(self.depth):
            below = self._below(trees, nodes, row)
            np.add.at(parts, self.feature[trees, nodes], self.value[trees, below] - self.value[trees, nodes])
            nodes = below
        return parts

    def _below(self, trees: NDArray[Any], nodes: NDArray[Any], row: NDArray[np.float32]) -> NDArray[Any]:
        is_left = row[self.feature[trees, nodes]] <= self.threshold[trees, nodes]
        return np.asarray(np.where(is_left, self.left[trees, nodes], self.right[trees, nodes]))
