"""How sure a share of few cases is: Wilson's interval, widened where cases come in groups that resemble each other."""

from __future__ import annotations

from collections.abc import Iterable

from smartcache.intervals import interval_of, wilson

__all__ = ["clustered", "wilson"]


def clustered(groups: Iterable[tuple[int, int]]) -> tuple[float, float] | None:
    """The 95 % interval of a share, from (count, cases) of each group: Wilson's, over as many cases as would tell as
    much if they were independent. The design effect is that of a ratio over groups, never below 1; where no case
    counts, or all do, nothing tells how much groups resemble each other, and it is 1."""
    kept = [(count, cases) for count, cases in groups if cases]
    cases = sum(cases for _, cases in kept)
    if not cases:
        return None
    share = sum(count for count, _ in kept) / cases
    return interval_of(share, cases / _design_effect(kept, share, cases))


def _design_effect(groups: list[tuple[int, int]], share: float, cases: int) -> float:
    if len(groups) < 2 or not 0 < share < 1:
        return 1.0
    residuals = sum((count - share * size) ** 2 for count, size in groups)
    of_groups = residuals * len(groups) / (len(groups) - 1)
    return max(1.0, of_groups / (cases * share * (1 - share)))
