"""Whether fetching state is worth it: how long a load takes against how long computing would, both as measured."""

from __future__ import annotations

from dataclasses import dataclass

_KEPT = 0.8  # of what earlier measurements weigh, at each new one


@dataclass(slots=True)
class Pace:
    """Seconds per unit, the last measurements before all; unknown until there is one."""

    units: float = 0.0
    seconds: float = 0.0

    def add(self, units: float, seconds: float) -> None:
        self.units = _KEPT * self.units + units
        self.seconds = _KEPT * self.seconds + seconds

    def expected_seconds(self, units: float) -> float | None:
        return units * self.seconds / self.units if self.units else None

    def doubt(self) -> None:
        """Think a little better of it: one slow moment must not rule for ever, where nothing is measured any more."""
        self.seconds *= _KEPT


def is_slower(load: Pace, nbytes: int, compute: Pace, tokens: int) -> bool:
    """Whether loading would take longer than computing; where either is unknown it is tried."""
    loading, computing = load.expected_seconds(nbytes), compute.expected_seconds(tokens)
    return loading is not None and computing is not None and loading > computing
