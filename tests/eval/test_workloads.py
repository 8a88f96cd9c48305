"""The workloads: whatever they are read from, no step has two truths, and what is read is what the files say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from smartcache_eval.folder import UnreadableWorkload, public_folder
from smartcache_eval.steps import Step, part_of, stream
from smartcache_eval.workloads import read_workload, workloads

PUBLIC = [name for name in workloads() if name != "support"]
SUPPORT = read_workload("support")


def written(folder: Path, path: str, content: Any) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def read(name: str, folder: Path) -> list[Step]:
    return workloads()[name](folder)


def asked(steps: list[Step]) -> list[tuple[str, str, str]]:
    """(what was said before, the question, the truth) of each."""
    return [(" / ".join(t.text for t in step.turns[:-1]), step.turns[-1].text, step.truth) for step in steps]


def test_the_support_desk_has_every_sort_of_trap_and_twin() -> None:
    assert len(SUPPORT) >= 60
    traps = {"context swapped", "detail swapped", "intent flipped"}
    twins = {"reworded question", "reworded history", "chattier history", "history irrelevant", "in full", "corrected"}
    assert traps | twins <= {step.sort for step in SUPPORT}


def test_a_trap_has_another_truth_than_what_it_is_like_and_a_twin_the_same() -> None:
    for group in {step.group for step in SUPPORT}:
        members = [step for step in SUPPORT if step.group == group]
        first = next(step for step in members if step.sort == "asked")
        twins = [step for step in members if step.sort in ("reworded question", "reworded history", "chattier history")]
        traps = [step for step in members if step.sort in ("context swapped", "detail swapped", "intent flipped")]
        assert [step.turns[-1].text for step in twins if step.truth != first.truth] == []
        assert [step.turns[-1].text for step in traps if step.truth == first.truth] == []
        assert twins
        assert traps


def test_the_support_desk_has_steps_for_both_parts() -> None:
    assert min(len(stream(SUPPORT, "choose")), len(stream(SUPPORT, "report"))) >= 30


def test_a_conversation_in_another_wording_has_the_same_truth(tmp_path: Path) -> None:
    def record(first: str, second: str) -> dict[str, Any]:
        questions = [{"question": first, "answer": "Q1", "answer_text": "Ann"}]
        questions.append({"question": second, "answer": "Q2", "answer_text": "1969"})
        return {"seed_entity": "E", "questions": questions}

    for domain in ("books", "movies", "music", "soccer", "tv_series"):
        records = [record("Who wrote it?", "When?"), record("Whose book is it?", "In which year?")]
        written(
            tmp_path,
            f"verbal-convquestions/raw/val_{domain}.json",
            records if domain == "books" else [],
        )
    steps = read("convquestions", tmp_path)
    assert asked(steps)[1] == ("Who wrote it? / Ann", "When?", steps[3].truth)
    assert steps[1].truth == steps[3].truth != steps[0].truth


def test_a_canard_question_and_its_rewrite_are_one_and_a_rewrite_that_leans_is_left_out(tmp_path: Path) -> None:
    row = {"History": ["Frank Zappa", "Disbandment"], "QuAC_dialog_id": "C_1", "Question_no": 1}
    rows = [
        {**row, "Question": "When did they disband?", "Rewrite": "When did the Mothers of Invention disband?"},
        {**row, "Question": "Why?", "Rewrite": "Why did they disband?", "Question_no": 2},
    ]
    written(tmp_path, "canard/raw/dev.json", rows)
    steps = read("canard", tmp_path)
    assert [step.turns[-1].text for step in steps] == [
        "When did they disband?",
        "When did the Mothers of Invention disband?",
    ]
    assert steps[0].truth == steps[1].truth


def test_a_sharc_case_told_otherwise_is_the_same_and_another_answer_another(tmp_path: Path) -> None:
    def row(history: list[tuple[str, str]], evidence: list[tuple[str, str]], answer: str) -> dict[str, Any]:
        facts = [[{"follow_up_question": q, "follow_up_answer": a} for q, a in pairs] for pairs in (history, evidence)]
        return {
            "tree_id": "t",
            "source_url": "page",
            "snippet": "Rule.",
            "question": "May I?",
            "scenario": "I am old." if evidence else "",
            "history": facts[0],
            "evidence": facts[1],
            "answer": answer,
        }

    rows = [row([("Old?", "Yes")], [], "Yes"), row([], [("Old?", "Yes")], "Yes"), row([("Old?", "No")], [], "No")]
    written(tmp_path, "sharc/raw/dev.json", [*rows, row([], [], "Irrelevant")])
    steps = read("sharc", tmp_path)
    assert {step.turns[-1].text for step in steps} == {"May I?"}
    assert sorted(Counter(step.truth for step in steps).values()) == [1, 2]


def test_a_disfluent_question_is_its_clean_one(tmp_path: Path) -> None:
    rows = {
        "1": {"original": "Who was first?", "disfluent": "Who was last no first?"},
        "2": {"original": "Why?", "disfluent": "#VALUE!"},
    }
    written(tmp_path, "disfl-qa/raw/dev.json", rows)
    steps = read("disfl-qa", tmp_path)
    assert [step.turns[0].text for step in steps] == ["Who was first?", "Who was last no first?"]
    assert steps[0].truth == steps[1].truth


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    for name in PUBLIC:
        with pytest.raises(UnreadableWorkload, match="SMARTCACHE_DATA"):
            read(name, tmp_path)


@pytest.fixture(scope="module", params=PUBLIC)
def public(request: pytest.FixtureRequest) -> list[Step]:
    name: str = request.param
    try:
        return read_workload(name)
    except UnreadableWorkload:
        pytest.skip(f"needs the folder of public data, and {public_folder()} has no {name}")


def test_the_same_turns_never_have_two_truths(public: list[Step]) -> None:
    truths = defaultdict(set)
    for step in public:
        truths[step.turns].add(step.truth)
    assert [turns[-1].text for turns, found in truths.items() if len(found) > 1] == []


def test_there_is_something_to_find_in_both_parts(public: list[Step]) -> None:
    for part in ("choose", "report"):
        truths = Counter(step.truth for step in public if part_of(step.group) == part)
        assert sum(count - 1 for count in truths.values()) >= 200


def test_every_question_is_the_users_and_says_something(public: list[Step]) -> None:
    assert [step.truth for step in public if step.turns[-1].role != "user" or not step.turns[-1].text.strip()] == []


@pytest.mark.parametrize("name", ["sgd", "kdconv"])
def test_what_is_made_around_a_question_is_a_twin_or_a_trap_of_it(name: str) -> None:
    try:
        steps = read_workload(name)
    except UnreadableWorkload:
        pytest.skip(f"needs {name} in the folder of public data")
    first = defaultdict(set)
    for step in steps:
        if step.sort == "asked":
            first[step.group].add(step.truth)
    twins = ("reworded history", "chattier history", "history irrelevant", "in full")
    assert [step.truth for step in steps if step.sort in twins and step.truth not in first[step.group]] == []
    traps = [step for step in steps if step.sort in ("context swapped", "detail swapped")]
    alone = [step for step in traps if len(first[step.group]) == 1]
    assert len(alone) > 200
    assert [step.truth for step in alone if step.truth in first[step.group]] == []
