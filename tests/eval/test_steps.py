"""A stream: the same order for the same seed, no group in two parts, and no step before those it comes after."""

from __future__ import annotations

from smartcache_eval.steps import Step, conversation, part_of, stream


def a_step(group: str, name: str = "", *, seconds: float = 0.0) -> Step:
    return Step(conversation([], name or group), name or group, group, seconds=seconds)


STEPS = [a_step(f"group {number}", f"{number} {turn}") for number in range(40) for turn in range(3)]


def test_no_group_is_in_two_parts_and_none_is_lost() -> None:
    choose, report = stream(STEPS, "choose"), stream(STEPS, "report")
    assert {step.group for step in choose}.isdisjoint(step.group for step in report)
    assert sorted(step.truth for step in (*choose, *report)) == sorted(step.truth for step in STEPS)
    assert choose
    assert report


def test_the_part_of_a_group_does_not_depend_on_the_seed_or_on_the_other_groups() -> None:
    alone = stream([a_step("group 7")], part_of("group 7"), seed=5)
    assert [step.group for step in alone] == ["group 7"]


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    assert stream(STEPS, seed=3) == stream(STEPS, seed=3)
    assert stream(STEPS, seed=3) != stream(STEPS, seed=4)


def test_the_order_within_a_group_is_that_of_arrival() -> None:
    steps = [a_step("group", f"step {number}", seconds=number) for number in range(9)]
    among = stream([*reversed(steps), *STEPS], seed=1)
    assert [step.truth for step in among if step.group == "group"] == [step.truth for step in steps]


def test_a_limit_takes_whole_groups() -> None:
    kept = stream(STEPS, limit=10)
    assert len(kept) == 9
    assert all(sum(step.group == each.group for step in kept) == 3 for each in kept)


def test_a_limit_below_the_first_group_takes_that_group() -> None:
    assert len(stream(STEPS, limit=1)) == 3


def test_in_a_conversation_the_assistant_has_the_turn_before_the_question() -> None:
    assert [turn.role for turn in conversation(["one", "two"], "three")] == ["user", "assistant", "user"]
    assert [turn.role for turn in conversation(["one"], "two")] == ["assistant", "user"]


def test_tokens_are_about_a_quarter_of_english_letters_and_all_of_chinese_ones() -> None:
    assert a_step("g", "a" * 400).tokens == 101
    assert a_step("g", "多" * 400).tokens == 401
