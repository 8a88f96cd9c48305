"""A run: every contestant on one stream, an oracle above and no cache below, thresholds chosen on the other part."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from smartcache.testing import BagOfWordsEmbedder
from smartcache_eval.contestants import contestants
from smartcache_eval.folder import UnreadableWorkload
from smartcache_eval.playing import Outcome, play
from smartcache_eval.protocol import Run, Settings, best_threshold, run
from smartcache_eval.steps import Step, conversation, part_of, stream
from smartcache_eval.tally import Tally, tally
from smartcache_eval.vectors import KnownVectors
from smartcache_eval.workloads import read_workload


@pytest.fixture(scope="module")
def support() -> Run:
    settings = Settings(part="all", curves=False)
    return run("support", read_workload("support"), KnownVectors(BagOfWordsEmbedder()), settings)


def counts(run: Run, name: str) -> Tally:
    return run.standings[name].tally


def test_the_contestants_are_these(support: Run) -> None:
    assert list(support.standings) == ["none", "exact", "last message", "whole prompt", "ours", "oracle"]


def test_the_oracle_hits_all_that_is_attainable_and_nothing_wrongly(support: Run) -> None:
    oracle = counts(support, "oracle")
    assert (oracle.wrong, oracle.stale, oracle.missed) == (0, 0, 0)
    assert oracle.hits == support.attainable > 40


def test_no_cache_hits_nothing(support: Run) -> None:
    none = counts(support, "none")
    assert (none.hits, none.missed) == (0, support.attainable)
    assert none.wrong_per_hit is None


def test_the_exact_cache_is_never_wrong(support: Run) -> None:
    assert counts(support, "exact").wrong == 0


def test_the_last_message_alone_is_wrong_on_traps_and_ours_less_often(support: Run) -> None:
    last, ours = counts(support, "last message"), counts(support, "ours")
    assert last.wrong_per_hit is not None
    assert last.wrong_per_hit > 0.3
    assert dict(last.by_sort)["detail swapped"].wrong > dict(ours.by_sort)["detail swapped"].wrong
    assert ours.saved_calls > 0


def test_nobody_serves_what_an_update_made_stale(support: Run) -> None:
    assert [name for name, one in support.standings.items() if one.tally.stale] == []


def test_lookups_are_timed_where_there_are_any(support: Run) -> None:
    ours = support.standings["ours"].as_json()
    assert ours["lookup_p50_ms"] <= ours["lookup_p99_ms"]
    assert ours["lookup_with_embedding_p99_ms"] > 0
    assert support.standings["none"].as_json()["lookup_p99_ms"] is None


def test_a_run_again_is_the_same_run(support: Run) -> None:
    again = run("support", read_workload("support"), KnownVectors(BagOfWordsEmbedder()), support.settings)
    assert [one.tally.hits for one in again.standings.values()] == [
        one.tally.hits for one in support.standings.values()
    ]


def test_a_threshold_is_chosen_on_the_part_for_choosing_alone() -> None:
    """On the one part the last message decides all; on the other it decides nothing."""
    choosing = [name for name in map(str, range(60)) if part_of(name) == "choose"][:10]
    reporting = [name for name in map(str, range(60)) if part_of(name) == "report"][:10]
    steps = [two_wordings(name, alike=True) for name in choosing]
    steps += [two_wordings(name, alike=False) for name in reporting]
    flat = [step for pair in steps for step in pair]
    settings = Settings(curves=False)
    standing = run("made up", flat, KnownVectors(BagOfWordsEmbedder()), settings).standings["last message"]
    assert standing.threshold is not None
    assert standing.threshold < 1.0
    assert standing.tally.wrong_per_hit is not None
    assert standing.tally.wrong_per_hit > settings.max_wrong


def two_wordings(name: str, *, alike: bool) -> tuple[Step, Step]:
    words = f"w{name} x{name} y{name} z{name} v{name}"
    first = Step(conversation([], words), name, name)
    return first, Step(conversation([], f"{words} please"), name if alike else f"not {name}", name, seconds=1.0)


def test_the_chosen_threshold_has_the_most_right_hits_within_the_bound() -> None:
    swept = [(0.7, a_tally(right=90, wrong=9)), (0.9, a_tally(right=50, wrong=0)), (0.8, a_tally(right=60, wrong=0))]
    assert best_threshold(swept, 0.01) == 0.8
    assert best_threshold(swept, 0.5) == 0.7


def test_where_no_threshold_keeps_the_bound_it_is_the_strictest() -> None:
    assert best_threshold([(0.7, a_tally(right=1, wrong=1)), (0.99, a_tally(right=1, wrong=1))], 0.01) == 0.99


def a_tally(right: int, wrong: int) -> Tally:
    steps = [Step(conversation([], "x"), truth, truth) for truth in ("A", "B")]
    asked = [*steps, *[steps[0]] * right, *[steps[1]] * wrong]
    return tally(asked, [Outcome(None), Outcome(None), *[Outcome(0)] * (right + wrong)])


def test_the_curve_has_a_point_for_each_threshold() -> None:
    steps = stream(read_workload("support"), limit=12)
    settings = Settings(part="all")
    standings = run("support", steps, KnownVectors(BagOfWordsEmbedder()), settings).standings
    assert [at for at, _ in standings["ours"].curve] == list(contestants(BagOfWordsEmbedder())[4].thresholds)
    assert standings["oracle"].curve == ()


def test_a_part_without_steps_is_said() -> None:
    alone = Step(conversation([], "x"), "x", "group")
    other = "report" if part_of("group") == "choose" else "choose"
    with pytest.raises(UnreadableWorkload, match="no step in the part"):
        run("one", [alone], KnownVectors(BagOfWordsEmbedder()), Settings(part=other))


def test_whole_prompts_are_compared_whole() -> None:
    """The same last words after another beginning: the last message is as near as can be, the whole prompt is not."""
    history = ["one two three four five six", "seven eight nine"]
    steps = [Step(conversation(history, "and how much"), "A", "g"), Step(conversation([], "and how much"), "B", "g")]
    assert served("last message", steps) == [None, 0]
    assert served("whole prompt", steps) == [None, None]


def served(name: str, steps: Sequence[Step]) -> list[int | None]:
    one = next(one for one in contestants(BagOfWordsEmbedder()) if one.name == name)
    return [outcome.served for outcome in play(steps, one, 0.9)]
