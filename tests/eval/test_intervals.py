"""How sure a share is: Wilson's interval against worked values, and wider where cases come in groups."""

from __future__ import annotations

import pytest

from smartcache_eval.intervals import clustered, wilson


@pytest.mark.parametrize(
    ("count", "cases", "low", "high"),
    [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)],
)
def test_wilson_has_its_known_values(count: int, cases: int, low: float, high: float) -> None:
    assert wilson(count, cases) == pytest.approx((low, high), abs=1e-4)


def test_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clustered([]) is None
    assert clustered([(0, 0)]) is None


def test_groups_of_one_are_independent_cases() -> None:
    assert clustered([(1, 1)] + [(0, 1)] * 9) == pytest.approx(wilson(1, 10), abs=0.03)


def test_groups_whose_cases_are_all_alike_count_as_one_case_each() -> None:
    """Ten groups of four, in five of which all is wrong: as sure as 20 of 40 would be of some ten cases, not forty."""
    alike = clustered([(4, 4)] * 5 + [(0, 4)] * 5)
    apart = clustered([(2, 4)] * 10)
    assert apart == wilson(20, 40)
    assert alike is not None
    # residuals 10 · 2², times 10/9, over 40 · ¼: a design effect of 4.444, so 9 cases
    assert alike == pytest.approx(wilson_of(0.5, 9.0), abs=1e-6)


def test_without_a_wrong_one_the_interval_is_that_of_all_cases() -> None:
    assert clustered([(0, 8)] * 50) == wilson(0, 400)


def wilson_of(share: float, cases: float) -> tuple[float, float]:
    z = 1.959964
    half = z * (share * (1 - share) / cases + z * z / (4 * cases * cases)) ** 0.5
    middle, whole = share + z * z / (2 * cases), 1 + z * z / cases
    return (middle - half) / whole, (middle + half) / whole
