"""Measure another cache: any function that says how well a stored request's answer suits the one asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smartcache import Request
from smartcache_eval.folder import UnreadableWorkload
from smartcache_eval.playing import Outcome
from smartcache_eval.protocol import Run, Settings, Standing, best_threshold
from smartcache_eval.steps import Step, stream
from smartcache_eval.tally import tally
from smartcache_eval.workloads import read_workload
from smartcache_eval.wrong_pairs import wrong_pairs

Check = Callable[[Request, Request], float]
MAX_THRESHOLDS = 25


def evaluate(
    check: Check,
    workload: str | Sequence[Step] = "support",
    *,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    threshold: float | None = None,
) -> Run:
    """How a cache would do that serves the best stored answer from a score on: `check(stored, asked)`, more is better.

    Asked of every stored request, so take a small workload or a limit. Without a `threshold`, one is chosen on the
    part for choosing, as for the baselines. The only contestant of the result is named "check".
    """
    steps = read_workload(workload) if isinstance(workload, str) else workload
    name = workload if isinstance(workload, str) else "steps"
    reported = stream(steps, settings.part, seed=settings.seed, limit=settings.limit)
    chosen_on = stream(steps, "choose", seed=settings.seed, limit=settings.limit)
    if not reported or (not chosen_on and threshold is None):
        raise UnreadableWorkload(
            f"{name} has no step in a part that is needed: use Settings(part='all') and a threshold"
        )
    scores = _Scores(check)
    curve = {at: tally(reported, scores.play(reported, at)) for at in scores.thresholds(reported)}
    if threshold is None:
        swept = [(at, tally(chosen_on, scores.play(chosen_on, at))) for at in scores.thresholds(chosen_on)]
        threshold = best_threshold(swept, settings.max_wrong) if swept else 1.0
    outcomes = scores.play(reported, threshold)
    of_all, pairs = tally(reported, outcomes), wrong_pairs(reported, outcomes)
    standing = Standing(of_all, threshold, tuple(curve.items()) if settings.curves else (), pairs)
    groups = len({step.group for step in reported})
    return Run(name, settings, "", len(reported), of_all.attainable, groups, {"check": standing})


class _Scores:
    """The scores that a check gave, each asked for once."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._known: dict[tuple[int, int], float] = {}

    def play(self, steps: Sequence[Step], threshold: float) -> list[Outcome]:
        """What is stored is what was not served; the best of it is served from `threshold` on."""
        stored: list[int] = []
        outcomes = []
        for number, step in enumerate(steps):
            best = max(stored, key=lambda other: self._score(steps[other], step), default=None)
            is_served = best is not None and self._score(steps[best], step) >= threshold
            outcomes.append(Outcome(best if is_served else None))
            if not is_served:
                stored.append(number)
        return outcomes

    def thresholds(self, steps: Sequence[Step]) -> list[float]:
        """Scores that were reached against all that came before, evenly out of all."""
        reached = sorted(
            {
                max(self._score(earlier, step) for earlier in steps[:number])
                for number, step in enumerate(steps)
                if number
            }
        )
        every = max(1, len(reached) // MAX_THRESHOLDS)
        return [*reached[::every], *reached[-1:]] if reached else []

    def _score(self, stored: Step, asked: Step) -> float:
        key = (id(stored), id(asked))
        if key not in self._known:
            self._known[key] = float(self._check(stored.request, asked.request))
        return self._known[key]
