"""The figures of one contestant on one stream: counted from what was served and what was right, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from smartcache_eval.intervals import clustered
from smartcache_eval.playing import Outcome
from smartcache_eval.steps import Step


@dataclass(frozen=True, slots=True)
class Tally:
    """`hits` is all that was served: right, `wrong` (another question's answer) or `stale` (the right question's, from
    before its documents changed). `attainable`: requests whose right answer had been given before; `missed`: those of
    them that got nothing. Every share of nothing is None."""

    requests: int
    attainable: int
    hits: int
    wrong: int
    stale: int
    missed: int
    saved_tokens: int
    wrong_interval: tuple[float, float] | None
    lookups_ms: tuple[float, ...] = ()
    embedded_ms: tuple[float, ...] = ()  # lookup and embedding together, where both are known
    by_sort: tuple[tuple[str, Tally], ...] = ()

    @property
    def saved_calls(self) -> int:
        """Hits that were right: a wrong one saves nothing that is worth having."""
        return self.hits - self.wrong - self.stale

    @property
    def hit_rate(self) -> float | None:
        return share(self.hits, self.requests)

    @property
    def hits_of_attainable(self) -> float | None:
        return share(self.saved_calls, self.attainable)

    @property
    def wrong_per_hit(self) -> float | None:
        return share(self.wrong, self.hits)

    @property
    def wrong_per_request(self) -> float | None:
        return share(self.wrong, self.requests)

    @property
    def wrong_per_hit_upper95(self) -> float | None:
        return self.wrong_interval[1] if self.wrong_interval else None

    def as_json(self) -> dict[str, Any]:
        shares = {
            "hit_rate": self.hit_rate,
            "hits_of_attainable": self.hits_of_attainable,
            "wrong_per_hit": self.wrong_per_hit,
            "wrong_per_hit_lower95": self.wrong_interval[0] if self.wrong_interval else None,
            "wrong_per_hit_upper95": self.wrong_per_hit_upper95,
            "wrong_per_request": self.wrong_per_request,
        }
        counts = {
            name: getattr(self, name)
            for name in ("requests", "attainable", "hits", "wrong", "stale", "missed", "saved_calls", "saved_tokens")
        }
        times = {
            "lookup_p50_ms": quantile(self.lookups_ms, 0.50),
            "lookup_p99_ms": quantile(self.lookups_ms, 0.99),
            "lookup_with_embedding_p50_ms": quantile(self.embedded_ms, 0.50),
            "lookup_with_embedding_p99_ms": quantile(self.embedded_ms, 0.99),
        }
        by_sort = {sort: tally.as_json() for sort, tally in self.by_sort}
        return {**counts, **shares, **times, **({"by_sort": by_sort} if by_sort else {})}


def tally(steps: Sequence[Step], outcomes: Sequence[Outcome]) -> Tally:
    """Counts a stream, as a whole and by the sort of its steps."""
    seen: set[tuple[str, frozenset[Any]]] = set()
    judged = []
    for step, outcome in zip(steps, outcomes, strict=True):
        answered = None if outcome.served is None else steps[outcome.served]
        judged.append(_Judged(step, outcome, (step.truth, step.evidence) in seen, _verdict(step, answered)))
        seen.add((step.truth, step.evidence))
    sorts = sorted({step.sort for step in steps})
    by_sort = tuple((sort, _count([one for one in judged if one.step.sort == sort])) for sort in sorts)
    return _count(judged, by_sort if len(by_sort) > 1 else ())


@dataclass(frozen=True, slots=True)
class _Judged:
    step: Step
    outcome: Outcome
    is_attainable: bool
    verdict: str  # missed, right, wrong, stale


def _verdict(asked: Step, answered: Step | None) -> str:
    if answered is None:
        return "missed"
    if answered.truth != asked.truth:
        return "wrong"
    return "right" if answered.evidence == asked.evidence else "stale"


def _count(judged: Sequence[_Judged], by_sort: tuple[tuple[str, Tally], ...] = ()) -> Tally:
    verdicts = Counter(one.verdict for one in judged)
    outcomes = [one.outcome for one in judged]
    return Tally(
        requests=len(judged),
        attainable=sum(one.is_attainable for one in judged),
        hits=len(judged) - verdicts["missed"],
        wrong=verdicts["wrong"],
        stale=verdicts["stale"],
        missed=sum(one.is_attainable and one.verdict == "missed" for one in judged),
        saved_tokens=sum(one.step.tokens for one in judged if one.verdict == "right"),
        wrong_interval=clustered(_by_group(judged)),
        lookups_ms=tuple(one.lookup_ms for one in outcomes if one.lookup_ms is not None),
        embedded_ms=tuple(
            one.lookup_ms + one.embedding_ms
            for one in outcomes
            if one.lookup_ms is not None and one.embedding_ms is not None
        ),
        by_sort=by_sort,
    )


def _by_group(judged: Iterable[_Judged]) -> list[tuple[int, int]]:
    """(wrong, hits) of each group."""
    wrong, hits = Counter[str](), Counter[str]()
    for one in judged:
        hits[one.step.group] += one.verdict != "missed"
        wrong[one.step.group] += one.verdict == "wrong"
    return [(wrong[group], count) for group, count in hits.items()]


def share(count: int, whole: int) -> float | None:
    return count / whole if whole else None


def quantile(values: Sequence[float], at: float) -> float | None:
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-at * len(ordered) // 1) - 1)] if ordered else None
