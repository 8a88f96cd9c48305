"""The confidence of a pair: monotone boosted trees over its signals, and what they are worth on groups not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smartcache.learned import Curve, is_same
from smartcache.signals import MONOTONE
from smartcache.trees import Trees
from smartcache_eval.training.examples import FOLDS
from smartcache_eval.training.pairs import Pairs

BAGS, TREES, LEAVES, RATE, MIN_ROWS = 4, 60, 8, 0.15, 40


def grow(rows: Sequence[Pairs], seed: int) -> Trees:
    """The mean of several boosted ensembles; every workload weighs as the root of its rows."""
    signals = np.concatenate([one.signals for one in rows])
    equal = np.concatenate([one.equal for one in rows])
    weights = np.concatenate([np.full(len(one.equal), max(1, len(one.equal)) ** -0.5) for one in rows])
    draws = np.random.default_rng(seed)
    grown, start = list[Any](), 0.0
    for _ in range(BAGS):
        # each on a draw of its own, so that no few rows decide how sure the surest are
        drawn = draws.choice(len(equal), len(equal), p=weights / weights.sum())
        nodes, own_start = _boosted(signals[drawn], equal[drawn], seed)
        grown, start = grown + nodes, start + own_start / BAGS
    return _trees(grown, start)


def _boosted(signals: NDArray[np.float32], equal: NDArray[np.bool_], seed: int) -> tuple[list[Any], float]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model: Any = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=MIN_ROWS,
        monotonic_cst=list(MONOTONE.values()),
        l2_regularization=1.0,
        random_state=seed,
    )
    model.fit(signals, equal)
    return [predictors[0].nodes for predictors in model._predictors], float(np.ravel(model._baseline_prediction)[0])


def curves(rows: Mapping[str, Pairs], seed: int) -> tuple[Curve, Curve, Curve]:
    """What would have been served, and how much of it wrongly, by trees that had not seen the asked one's group."""
    outcomes: list[list[tuple[float, bool]]] = [[], [], []]
    for fold in range(FOLDS):
        trees = grow([_of(one, one.fold != fold) for one in rows.values()], seed)
        for one in rows.values():
            held = _of(one, one.fold == fold)
            confidence = 1 / (1 + np.exp(-np.array([trees.score(row) for row in held.signals])))
            confidence[is_same(dict(zip(MONOTONE, held.signals.T, strict=True)))] = 1.0
            for kind in range(3):
                outcomes[kind] += _best(held, confidence, held.kinds == kind)
    return _curve(outcomes[0]), _curve(outcomes[1]), _curve(outcomes[2])


def _of(rows: Pairs, kept: NDArray[np.bool_]) -> Pairs:
    return Pairs(rows.signals[kept], rows.equal[kept], rows.asked[kept], rows.fold[kept])


def _best(rows: Pairs, confidence: NDArray[Any], kept: NDArray[np.bool_]) -> list[tuple[float, bool]]:
    """Of each asked question the surest pair: its confidence, and whether it is right."""
    best: dict[int, tuple[float, bool]] = {}
    for place in np.flatnonzero(kept):
        number, sure = int(rows.asked[place]), float(confidence[place])
        if number not in best or sure > best[number][0]:
            best[number] = sure, bool(rows.equal[place])
    return list(best.values())


def _curve(outcomes: list[tuple[float, bool]]) -> Curve:
    """A point for each step of one per cent more that would be served, from the first twenty on."""
    outcomes.sort(key=lambda one: -one[0])
    wrong = np.cumsum([not right for _, right in outcomes])
    counts = sorted({*np.unique(np.geomspace(20, max(20, len(outcomes)), 200).astype(int)), len(outcomes)})
    counts = [int(count) for count in counts if 0 < count <= len(outcomes)]
    return Curve(
        tuple(outcomes[count - 1][0] for count in counts),
        tuple(counts),
        tuple(int(wrong[count - 1]) for count in counts),
    )


def _trees(grown: Sequence[Any], start: float) -> Trees:
    """scikit-learn's nodes as arrays of one shape; a node that is no leaf gets the mean of the leaves below it."""
    most = max(len(nodes) for nodes in grown)
    shape = (len(grown), most)
    feature, threshold = np.zeros(shape, np.int16), np.zeros(shape, np.float32)
    left, right = np.zeros(shape, np.int16), np.zeros(shape, np.int16)
    value, depth = np.zeros(shape, np.float32), 0
    for tree, nodes in enumerate(grown):
        for place in range(len(nodes) - 1, -1, -1):  # children stand behind their parents
            node = nodes[place]
            depth = max(depth, int(node["depth"]))
            if node["is_leaf"]:
                left[tree, place] = right[tree, place] = place
                value[tree, place] = node["value"] / BAGS
                continue
            below = [int(node["left"]), int(node["right"])]
            left[tree, place], right[tree, place] = below
            feature[tree, place] = node["feature_idx"]
            threshold[tree, place] = _at_most(float(node["num_threshold"]))
            counts = [float(nodes[one]["count"]) for one in below]
            value[tree, place] = np.average(value[tree, below], weights=counts)
    return Trees(feature, threshold, left, right, value, start, depth)


def _at_most(threshold: float) -> np.float32:
    """The largest float32 that is no more than a threshold in float64."""
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))
