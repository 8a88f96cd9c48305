"""Boosted trees as arrays: a score, and what each number of a row had to do with it."""

from __future__ import annotations

import numpy as np
import pytest

from smartcache.trees import Trees

# Over three numbers. The first tree: number 0 at most 0.5, then number 1 at most 2; the second: number 1 at most 1.
TREES = Trees(
    feature=np.array([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]], np.int16),
    threshold=np.array([[0.5, 2, 0, 0, 0], [1, 0, 0, 0, 0]], np.float32),
    left=np.array([[1, 3, 2, 3, 4], [1, 1, 2, 3, 4]], np.int16),
    right=np.array([[2, 4, 2, 3, 4], [2, 1, 2, 3, 4]], np.int16),
    value=np.array([[1, 2, -3, 1, 4], [0.5, -1, 2, 0, 0]], np.float32),
    start=10.0,
    depth=2,
)
MEAN = 10.0 + 1 + 0.5  # what the roots stand for


@pytest.mark.parametrize(
    ("row", "score"),
    [
        ((0.0, 0.0, 0.0), 10 + 1 - 1),
        ((0.0, 1.5, 0.0), 10 + 1 + 2),
        ((0.0, 3.0, 0.0), 10 + 4 + 2),
        ((1.0, 0.0, 0.0), 10 - 3 - 1),
        ((0.5, 2.0, 0.0), 10 + 1 + 2),
        ((np.inf, np.inf, 0.0), 10 - 3 + 2),
        ((-np.inf, -np.inf, 0.0), 10 + 1 - 1),
    ],
    ids=["left left", "left middle", "left right", "right", "equal goes left", "endless", "endless below"],
)
def test_a_row_goes_down_every_tree(row, score):
    assert TREES.score(np.array(row, np.float32)) == score


def test_what_each_number_adds_is_what_changes_on_the_way_down():
    assert TREES.parts(np.array([0.0, 3.0, 0.0], np.float32)).tolist() == [1.0, 2.0 + 1.5, 0.0]


@pytest.mark.parametrize("row", [(0.0, 0.0, 7.0), (0.0, 3.0, 0.0), (1.0, 1.5, 0.0)])
def test_the_parts_and_the_mean_are_the_score(row):
    row = np.array(row, np.float32)
    assert float(TREES.parts(row).sum()) + MEAN == pytest.approx(TREES.score(row))


def test_a_number_that_no_tree_looks_at_adds_nothing():
    row = np.array([0.0, 3.0, 99.0], np.float32)
    assert TREES.parts(row)[2] == 0
    assert TREES.score(row) == TREES.score(np.array([0.0, 3.0, -99.0], np.float32))


@pytest.mark.parametrize("inner", [1, 7, 8, 9, 20])
def test_a_tree_of_any_size_is_gone_down_to_the_same_leaf(inner):
    """A row of nodes, each with a leaf to its left: the last one is at the end of the row."""
    size = 2 * inner + 1
    steps, nodes = np.arange(inner), np.arange(size)
    left, right, threshold = nodes.copy(), nodes.copy(), np.zeros(size)
    left[steps], right[steps] = inner + 1 + steps, steps + 1
    threshold[steps] = steps
    trees = Trees(
        feature=np.zeros((1, size), np.int16),
        threshold=threshold[np.newaxis].astype(np.float32),
        left=left[np.newaxis].astype(np.int16),
        right=right[np.newaxis].astype(np.int16),
        value=nodes[np.newaxis].astype(np.float32),
        start=0.0,
        depth=inner,
    )
    for at in range(inner):
        assert trees.score(np.array([at], np.float32)) == inner + 1 + at
    assert trees.score(np.array([inner], np.float32)) == inner
