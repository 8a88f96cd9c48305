"""What was recorded in shadow mode, over thresholds: which one to begin with, if any."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from smartcache import ThresholdPolicy
from smartcache.command.kept import counted, opened
from smartcache.shadow import ShadowRecord, ShadowTally, compare, tally

THRESHOLDS = (0.98, 0.95, 0.92, 0.90, 0.88, 0.85, 0.80, 0.75, 0.70)
MIN_COMPARED = 50  # answers, before any advice
MIN_AGREEMENT = 0.95  # that a threshold must have at least, by its interval


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """`exact`: the same request again. `accepted`: near questions, by the policy that the cache was opened with.
    `thresholds`: near questions by `ThresholdPolicy(threshold)`, the strictest first."""

    records: int
    exact: ShadowTally
    accepted: ShadowTally
    thresholds: dict[float, ShadowTally]

    def as_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "exact": _figures(self.exact),
            "accepted": _figures(self.accepted),
            "thresholds": {f"{threshold:.2f}": _figures(found) for threshold, found in self.thresholds.items()},
            "advice": self.advice,
        }

    def text(self) -> str:
        rows = [("the same request again", self.exact), ("a near one, the cache's policy", self.accepted)]
        rows += [(f"a near one, from {threshold:.2f} on", found) for threshold, found in self.thresholds.items()]
        head = f"{'':32}{'would be served':>16}{'compared':>10}{'agreed':>8}   share, 95 % interval"
        return "\n".join([counted(self.records, "record"), head, *(_row(*row) for row in rows), "", self.advice])

    @property
    def advice(self) -> str:
        """What to do next."""
        if not self.records:
            return "Nothing is recorded: open the cache with shadow=True, and let your traffic go by."
        known = [found for found in self.thresholds.values() if found.agreed + found.differed >= MIN_COMPARED]
        if not known:
            return f"Too little to judge by: let it run until a threshold has {MIN_COMPARED} answers compared."
        if loosest := self._loosest():
            threshold, found = loosest
            return (
                f"From {threshold:.2f} on, {_interval(found)} of the answers agree with the model's: open the cache "
                f"without shadow, with policy=ThresholdPolicy({threshold:.2f})."
            )
        return (
            f"No threshold has {MIN_AGREEMENT:.0%} of its answers agree for sure: let it run on, look at what differs, "
            'or serve the same requests only, with mode="exact".'
        )

    def _loosest(self) -> tuple[float, ShadowTally] | None:
        """The loosest threshold whose answers agree often enough for sure."""
        sure = [one for one in self.thresholds.items() if one[1].interval and one[1].interval[0] >= MIN_AGREEMENT]
        return min(sure, default=None, key=lambda one: one[0])


def read(file: Path) -> ShadowReport:
    """What a cache file has recorded. Raises NoCacheFile where there is none."""
    with opened(file) as cache:
        return report_on(cache.shadow_records())


def report_on(records: tuple[ShadowRecord, ...]) -> ShadowReport:
    policies = {f"{threshold:.2f}": ThresholdPolicy(threshold) for threshold in THRESHOLDS}
    found = compare(records, policies)
    return ShadowReport(
        len(records),
        tally(record for record in records if record.layer == "exact"),
        tally(record for record in records if record.layer == "semantic" and record.accepted),
        {threshold: found[f"{threshold:.2f}"] for threshold in THRESHOLDS},
    )


def _figures(found: ShadowTally) -> dict[str, Any]:
    return asdict(found) | {"agreement": found.agreement, "interval": found.interval}


def _row(name: str, found: ShadowTally) -> str:
    return f"{name:32}{found.served:16}{found.agreed + found.differed:10}{found.agreed:8}   {_interval(found)}"


def _interval(found: ShadowTally) -> str:
    if found.agreement is None or found.interval is None:
        return "n/a"
    low, high = found.interval
    return f"{100 * found.agreement:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
