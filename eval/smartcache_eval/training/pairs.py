"""Pairs of questions with their signals, as a cache meets them: each asked after those that came before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smartcache.dialogue import Dialogue
from smartcache.digest import Digest
from smartcache.embedding import RememberedVectors
from smartcache.layers.judging import Case, leans_on_nothing, near_signals, signals_of, told_apart
from smartcache.learned import MIN_MEANING
from smartcache.signals import MONOTONE, Told
from smartcache.state import State
from smartcache_eval.steps import Step, stream
from smartcache_eval.training.examples import fold_of

NEAREST = 16  # stored questions that are judged for one that is asked
MAX_STEPS = 2_500  # of a workload


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of one workload: `signals` (rows, signals), whether the truths are `equal`, which step `asked`, and its
    `fold`."""

    signals: NDArray[np.float32]
    equal: NDArray[np.bool_]
    asked: NDArray[np.int64]
    fold: NDArray[np.int64]

    @property
    def histories(self) -> NDArray[Any]:
        return self.signals[:, HISTORIES].astype(int)


HISTORIES = [*MONOTONE].index("histories")


def pairs(steps: Sequence[Step], digests: Mapping[int, Digest], vectors: RememberedVectors, seed: int) -> Pairs:
    """The digest of a fold is one that has not seen the fold's groups."""
    order = stream(steps, "all", seed=seed, limit=MAX_STEPS)
    told = [Told(Dialogue.of(step.request)) for step in order]
    folds = [fold_of(step.group) for step in order]
    rows: list[tuple[float, ...]] = []
    equal: list[bool] = []
    asked: list[int] = []
    for fold, digest in digests.items():
        cases = [Case(one, State.of(one.dialogue, vectors, digest)) for one in told]
        meanings = np.stack([case.state.vector for case in cases])
        for number in (n for n, own in enumerate(folds) if own == fold and n):
            similarities = meanings[:number] @ meanings[number]
            for place in np.argsort(-similarities)[:NEAREST]:
                case, other = cases[number], cases[int(place)]
                if similarities[place] >= MIN_MEANING and not case.told.refusal(other.told):
                    known = near_signals(case.state, other.state) | case.told.shares(other.told)
                    if leans_on_nothing(case, other, known) or told_apart(known):
                        continue
                    signals = signals_of(case, other, known, vectors)
                    if told_apart(signals.by_name()):
                        continue
                    rows.append(signals.values())
                    equal.append(order[number].truth == order[int(place)].truth)
                    asked.append(number)
    own = np.array([folds[number] for number in asked], np.int64)
    return Pairs(
        np.array(rows, np.float32).reshape(-1, len(MONOTONE)), np.array(equal, bool), np.array(asked, np.int64), own
    )
