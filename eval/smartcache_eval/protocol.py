"""One run of a workload: all contestants on one stream, thresholds chosen on one part and reported on the rest."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from smartcache.calibrated import MAX_WRONG
from smartcache_eval.contestants import Contestant, contestants
from smartcache_eval.folder import UnreadableWorkload
from smartcache_eval.playing import play
from smartcache_eval.steps import Part, Step, stream
from smartcache_eval.tally import Tally, tally
from smartcache_eval.vectors import KnownVectors
from smartcache_eval.wrong_pairs import WrongPair, wrong_pairs

PACKAGES = ("smartcache-llm", "numpy", "faiss-cpu", "torch", "transformers", "sentence-transformers")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a workload is run. `limit`: steps a part at most, whole groups. `max_wrong`: wrong answers per hit, which is
    the bound of our policy, and what a threshold of the others may cost on the part for choosing."""

    seed: int = 0
    part: Part = "report"
    limit: int | None = None
    max_wrong: float = MAX_WRONG
    curves: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """How one contestant did: at the threshold that was chosen for it, and at every one of its curve. `wrong_pairs`: of
    one that takes part as it ships."""

    tally: Tally
    threshold: float | None = None
    curve: tuple[tuple[float, Tally], ...] = ()
    wrong_pairs: tuple[WrongPair, ...] = ()

    def as_json(self) -> dict[str, Any]:
        curve = [{"threshold": threshold, **_point(tally)} for threshold, tally in self.curve]
        pairs = [pair.as_json() for pair in self.wrong_pairs]
        told = {name: value for name, value in (("curve", curve), ("wrong_pairs", pairs)) if value}
        return {**self.tally.as_json(), "threshold": self.threshold, **told}


@dataclass(frozen=True, slots=True)
class Run:
    """The result: what was asked, under which settings, and how each contestant did."""

    workload: str
    settings: Settings
    embedder: str
    requests: int
    attainable: int
    groups: int
    standings: dict[str, Standing]

    def as_json(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "workload": self.workload,
            "requests": self.requests,
            "attainable": self.attainable,
            "groups": self.groups,
            "part": settings.part,
            "seed": settings.seed,
            "limit": settings.limit,
            "max_wrong": settings.max_wrong,
            "embedder": self.embedder,
            "versions": _versions(),
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "policies": {name: standing.as_json() for name, standing in self.standings.items()},
        }


def run(
    workload: str,
    steps: Sequence[Step],
    vectors: KnownVectors,
    settings: Settings = Settings(),
    competing: Sequence[Contestant] | None = None,
) -> Run:
    """Plays the workload's part to every contestant. Raises UnreadableWorkload where the part has no step."""
    reported = stream(steps, settings.part, seed=settings.seed, limit=settings.limit)
    if not reported:
        raise UnreadableWorkload(f"{workload} has no step in the part {settings.part!r}: use --part all")
    chosen_on = stream(steps, "choose", seed=settings.seed, limit=settings.limit)
    competing = contestants(vectors, settings.max_wrong) if competing is None else competing
    if any(one.embedder for one in competing):
        vectors.anew_seconds(["the first text pays for loading the model"])
        vectors.learn(turn.text for step in (*reported, *chosen_on) for turn in step.turns)
    standings = {one.name: _standing(one, reported, chosen_on, vectors, settings) for one in competing}
    first = next(iter(standings.values())).tally
    groups = len({step.group for step in reported})
    return Run(workload, settings, vectors.name, len(reported), first.attainable, groups, standings)


def _standing(
    one: Contestant, reported: list[Step], chosen_on: list[Step], vectors: KnownVectors, settings: Settings
) -> Standing:
    threshold = None
    known: dict[float, Tally] = {}
    if one.is_chosen:
        swept = {at: tally(chosen_on, play(chosen_on, one, at, vectors=vectors)) for at in one.thresholds}
        threshold = best_threshold(swept.items(), settings.max_wrong)
        known = swept if settings.part == "choose" else {}
    outcomes = play(reported, one, threshold, vectors=vectors, timed=one.embedder is not None)
    curve = one.thresholds if settings.curves else ()
    points = ((at, known.get(at) or tally(reported, play(reported, one, at, vectors=vectors))) for at in curve)
    pairs = () if one.is_chosen else wrong_pairs(reported, outcomes)
    return Standing(tally(reported, outcomes), threshold, tuple(points), pairs)


def best_threshold(swept: Iterable[tuple[float, Tally]], max_wrong: float) -> float:
    """Of the thresholds whose wrong answers per hit keep the bound, the one with the most right hits; the strictest
    where none keeps it. The bound is held against the share itself, not its upper end: in favour of the baselines."""
    swept = list(swept)
    kept = [(tally.saved_calls, at) for at, tally in swept if (tally.wrong_per_hit or 0.0) <= max_wrong]
    return max(kept)[1] if kept else max(at for at, _ in swept)


def _point(tally: Tally) -> dict[str, Any]:
    whole = tally.as_json()
    names = ("requests", "attainable", "hits", "wrong", "stale", "missed", "hit_rate", "wrong_per_hit")
    return {name: whole[name] for name in (*names, "wrong_per_hit_upper95", "hits_of_attainable", "wrong_per_request")}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name, metadata.version) for name in PACKAGES}}


def _version(name: str, version: Callable[[str], str]) -> str:
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
