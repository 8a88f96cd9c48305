"""Pairs of questions with their signals, as a cache meets them: each asked after those that came before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smartcache.dialogue import Dialogue
from smartcache.digest import Digest
from smartcache.embedding import RememberedVectors
from smartcache.layers.judging import Case, leans_on_nothing, near_signals, signals_of, told_apart
from smartcache.learned import MIN_MEANING, kind_of
from smartcache.signals import MONOTONE, Told
from smartcache.state import State
from smartcache.telling import Telling
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
    def kinds(self) -> NDArray[Any]:
        """Which curve each row counts for."""
        kinds: NDArray[Any] = kind_of(dict(zip(MONOTONE, self.signals.T, strict=True))).astype(int)
        return kinds


def pairs(
    steps: Sequence[Step], digests: Mapping[int, Digest], telling: Telling, vectors: RememberedVectors, seed: int
) -> Pairs:
    """The digest of a fold is one that has not seen the fold's groups."""
    order = stream(steps, "all", seed=seed, limit=MAX_STEPS)
    told = [Told(Dialogue.of(step.request)) for step in order]
    folds = [fold_of(step.group) for step in order]
    rows: list[tuple[float, ...]] = []
    equal: list[bool] = []
    asked: list[int] = []
    for fold, digest in digests.items():
        cases = [Case(one, State.of(one.dialogue, vectors, digest)) for one in told]
        found = [*_found(cases, [number for number, own in enumerate(folds) if own == fold and number])]
        known_before = {text for number, place, _ in found for text in _left(cases[number], cases[place]) if text}
        vectors(sorted(known_before))  # all at once: one by one takes ten times as long
        for number, place, known in found:
            signals = signals_of(cases[number], cases[place], known, vectors, telling)
            if not told_apart(cases[number], cases[place], signals.by_name()):
                rows.append(signals.values())
                equal.append(order[number].truth == order[place].truth)
                asked.append(number)
    own = np.array([folds[number] for number in asked], np.int64)
    return Pairs(
        np.array(rows, np.float32).reshape(-1, len(MONOTONE)), np.array(equal, bool), np.array(asked, np.int64), own
    )


def _found(cases: Sequence[Case], numbers: Sequence[int]) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Of each number the nearest cases before it that no rule sets apart, with what is known of the two."""
    meanings = np.stack([case.state.vector for case in cases])
    for number in numbers:
        similarities = meanings[:number] @ meanings[number]
        for place in map(int, np.argsort(-similarities)[:NEAREST]):
            case, other = cases[number], cases[place]
            if similarities[place] >= MIN_MEANING and not case.told.refusal(other.told):
                known = (
                    near_signals(case.state, other.state) | case.told.shares(other.told) | case.told.agrees(other.told)
                )
                if not leans_on_nothing(case, other, known) and not told_apart(case, other, known):
                    yield number, place, known


def _left(one: Case, other: Case) -> tuple[str, str]:
    return one.told.left(other.told), other.told.left(one.told)
