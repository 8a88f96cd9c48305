"""The figures, against a stream counted by hand."""

from __future__ import annotations

import pytest

from smartcache import ChunkRef
from smartcache_eval.playing import Outcome
from smartcache_eval.steps import Step, conversation
from smartcache_eval.tally import quantile, tally

OLD, NEW = frozenset({ChunkRef("page", "1")}), frozenset({ChunkRef("page", "2")})


def a_step(truth: str, sort: str = "asked", evidence: frozenset[ChunkRef] = frozenset()) -> Step:
    return Step(conversation([], "x" * 39), truth, truth, sort, evidence=evidence)


# truth and what was served:      nothing yet · right · wrong, attainable · missed · wrong, not attainable · new
STEPS = [a_step("A"), a_step("A", "twin"), a_step("B"), a_step("A"), a_step("A"), a_step("C", "trap"), a_step("D")]
SERVED = [None, 0, None, 2, None, 0, None]
COUNTED = tally(STEPS, [Outcome(served) for served in SERVED])


def test_hits_are_all_that_was_served_and_wrong_those_with_another_truth() -> None:
    assert (COUNTED.requests, COUNTED.hits, COUNTED.wrong, COUNTED.stale) == (7, 3, 2, 0)


def test_attainable_is_what_had_been_answered_before_and_missed_what_of_it_got_nothing() -> None:
    assert (COUNTED.attainable, COUNTED.missed) == (3, 1)


def test_saved_are_the_right_hits_alone() -> None:
    assert COUNTED.saved_calls == 1
    assert COUNTED.saved_tokens == STEPS[1].tokens == 10


def test_the_shares_are_of_what_they_say() -> None:
    assert COUNTED.hit_rate == pytest.approx(3 / 7)
    assert COUNTED.hits_of_attainable == pytest.approx(1 / 3)
    assert COUNTED.wrong_per_hit == pytest.approx(2 / 3)
    assert COUNTED.wrong_per_request == pytest.approx(2 / 7)
    assert COUNTED.wrong_per_hit_upper95 is not None
    assert COUNTED.wrong_per_hit_upper95 > 2 / 3


def test_a_share_of_nothing_is_none() -> None:
    nothing = tally([a_step("A")], [Outcome(None)])
    assert nothing.hit_rate == 0.0
    assert nothing.wrong_per_hit is None
    assert nothing.wrong_per_hit_upper95 is None
    assert nothing.hits_of_attainable is None
    assert nothing.as_json()["lookup_p99_ms"] is None


def test_each_sort_has_figures_of_its_own_that_know_the_whole_stream() -> None:
    by_sort = dict(COUNTED.by_sort)
    assert {sort: (one.requests, one.hits, one.wrong) for sort, one in by_sort.items()} == {
        "asked": (5, 1, 1),
        "trap": (1, 1, 1),
        "twin": (1, 1, 0),
    }
    assert by_sort["twin"].attainable == 1


def test_an_answer_from_before_a_change_is_stale_and_not_wrong() -> None:
    steps = [a_step("A", evidence=OLD), a_step("A", evidence=NEW), a_step("A", evidence=NEW)]
    counted = tally(steps, [Outcome(None), Outcome(0), Outcome(1)])
    assert (counted.stale, counted.wrong, counted.saved_calls) == (1, 0, 1)
    assert counted.attainable == 1


def test_the_time_of_a_lookup_with_embedding_is_told_where_both_are_known() -> None:
    outcomes = [Outcome(None, 1.0, 8.0), Outcome(None, 3.0), Outcome(None)]
    told = tally([a_step("A"), a_step("B"), a_step("C")], outcomes).as_json()
    assert told["lookup_p99_ms"] == 3.0
    assert told["lookup_with_embedding_p99_ms"] == 9.0


@pytest.mark.parametrize(("at", "value"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)])
def test_a_quantile_is_the_smallest_value_that_covers_the_share(at: float, value: float) -> None:
    assert quantile([float(number) for number in range(100, 0, -1)], at) == value
