"""What was recorded in shadow mode, over settings of a policy: which one to begin with, if any."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from smartcache import CalibratedPolicy, HitPolicy, ThresholdPolicy
from smartcache.command.kept import counted, opened
from smartcache.shadow import ShadowRecord, ShadowTally, compare, tally

THRESHOLDS = (0.98, 0.95, 0.92, 0.90, 0.88, 0.85, 0.80, 0.75, 0.70)
BOUNDS = (0.003, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.10, 0.20)
MIN_COMPARED = 50  # answers, before any advice
MIN_AGREEMENT = 0.95  # that a setting must have at least, by its interval


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the kind of policy that the records were made for: a `threshold` of `ThresholdPolicy`, or where
    they have a confidence, a `max_wrong` of `CalibratedPolicy`."""

    value: float
    is_bound: bool

    @property
    def policy(self) -> HitPolicy:
        return CalibratedPolicy(self.value) if self.is_bound else ThresholdPolicy(self.value)

    @property
    def name(self) -> str:
        return f"{self.value:.3f}" if self.is_bound else f"{self.value:.2f}"

    @property
    def row(self) -> str:
        return f"a near one, max_wrong {self.name}" if self.is_bound else f"a near one, from {self.name} on"

    @property
    def written(self) -> str:
        return f"CalibratedPolicy({self.name})" if self.is_bound else f"ThresholdPolicy({self.name})"


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """`exact`: the same request again. `accepted`: near questions, by the policy that the cache was opened with.
    `settings`: near questions by each setting, the strictest first."""

    records: int
    exact: ShadowTally
    accepted: ShadowTally
    settings: dict[Setting, ShadowTally]

    def as_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "exact": _figures(self.exact),
            "accepted": _figures(self.accepted),
            "settings": {setting.written: _figures(found) for setting, found in self.settings.items()},
            "advice": self.advice,
        }

    def text(self) -> str:
        rows = [("the same request again", self.exact), ("a near one, the cache's policy", self.accepted)]
        rows += [(setting.row, found) for setting, found in self.settings.items()]
        head = f"{'':32}{'would be served':>16}{'compared':>10}{'agreed':>8}   share, 95 % interval"
        return "\n".join([counted(self.records, "record"), head, *(_row(*row) for row in rows), "", self.advice])

    @property
    def advice(self) -> str:
        """What to do next."""
        if not self.records:
            return "Nothing is recorded: open the cache with shadow=True, and let your traffic go by."
        known = [found for found in self.settings.values() if found.agreed + found.differed >= MIN_COMPARED]
        if not known:
            return f"Too little to judge by: let it run until a setting has {MIN_COMPARED} answers compared."
        if loosest := self._loosest():
            setting, found = loosest
            return (
                f"With {setting.written}, {_interval(found)} of the answers agree with the model's: open the cache "
                "without shadow, with this policy."
            )
        return (
            f"No setting has {MIN_AGREEMENT:.0%} of its answers agree for sure: let it run on, look at what differs, "
            'or serve the same requests only, with mode="exact".'
        )

    def _loosest(self) -> tuple[Setting, ShadowTally] | None:
        """The loosest setting whose answers agree often enough for sure."""
        sure = [one for one in self.settings.items() if one[1].interval and one[1].interval[0] >= MIN_AGREEMENT]
        return sure[-1] if sure else None


def read(file: Path) -> ShadowReport:
    """What a cache file has recorded. Raises NoCacheFile where there is none."""
    with opened(file) as cache:
        return report_on(cache.shadow_records())


def report_on(records: tuple[ShadowRecord, ...]) -> ShadowReport:
    near = [record for record in records if record.layer == "semantic"]
    is_bound = any(record.candidate.confidence is not None for record in near)
    judged = [record for record in near if (record.candidate.confidence is not None) == is_bound]
    settings = {one.name: one for one in (Setting(value, is_bound) for value in (BOUNDS if is_bound else THRESHOLDS))}
    found = compare(judged, {name: setting.policy for name, setting in settings.items()})
    return ShadowReport(
        len(records),
        tally(record for record in records if record.layer == "exact"),
        tally(record for record in near if record.accepted),
        {setting: found[name] for name, setting in settings.items()},
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
