"""How sure a share of few cases is: Wilson's interval."""

from __future__ import annotations

from math import sqrt

Z = 1.959964  # 95 %, two-sided


def wilson(count: int, cases: int) -> tuple[float, float] | None:
    """The 95 % interval of the share `count` of `cases` independent cases; None where there are none."""
    return interval_of(count / cases, cases) if cases else None


def interval_of(share: float, cases: float) -> tuple[float, float]:
    """The same for a share of so many cases, which need not be whole."""
    centre = share + Z * Z / (2 * cases)
    half = Z * sqrt(share * (1 - share) / cases + Z * Z / (4 * cases * cases))
    whole = 1 + Z * Z / cases
    return max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole)
