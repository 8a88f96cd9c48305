"""ShARC: may I, under this rule? The same question of the same rule; what was said of the case decides."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation
from smartcache_eval.workloads.canard import plain

Case = frozenset[tuple[str, str]]  # what is known: (question, yes or no)


def steps(folder: Path) -> list[Step]:
    """Of each rule one case for each answer: two cases with one answer would be right for each other, by chance. The
    case may be told in answers to questions, in a scenario, or beside a scenario that does not matter; it is the same.
    A case that leads to two answers is left out. The group is the page that the rule is from."""
    rows = json.loads(file_in(folder, "sharc", "raw", "dev.json").read_text(encoding="utf-8"))
    by_rule: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["answer"] != "Irrelevant":
            by_rule[row["tree_id"]].append(row)
    return [step for rule in by_rule.values() for step in _of_rule(rule)]


def _of_rule(rows: Sequence[dict[str, Any]]) -> Iterator[Step]:
    by_case: dict[Case, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_case[_case(row)].append(row)
    by_answer: dict[str, list[Case]] = defaultdict(list)
    for case, told in by_case.items():
        if len({row["answer"] for row in told}) == 1:
            by_answer[told[0]["answer"]].append(case)
    kept = [max(cases, key=lambda case: (len(by_case[case]), sorted(case))) for cases in by_answer.values()]
    first = kept[0] if kept else frozenset()
    for case in kept:
        told = by_case[case]
        truth = f"{told[0]['tree_id']} {told[0]['answer']}"
        for row in {_said(row): row for row in told}.values():
            said = _said(row)
            sort = "other case" if row is told[0] and case != first else _sort(row, is_first=row is told[0])
            yield Step(
                conversation(said, row["question"]), truth, row["source_url"], sort, 0.0 if row is told[0] else 1.0
            )


def _sort(row: dict[str, Any], *, is_first: bool) -> str:
    if is_first:
        return "asked"
    return "told as a scenario" if row["evidence"] else "beside a scenario" if row["scenario"] else "reworded history"


def _case(row: dict[str, Any]) -> Case:
    known = [*row["history"], *row["evidence"]]
    return frozenset((plain(one["follow_up_question"]), one["follow_up_answer"]) for one in known)


def _said(row: dict[str, Any]) -> tuple[str, ...]:
    """The rule, the scenario and the questions that were answered, as turns of a user and an assistant."""
    opening = [f"Here is a rule. {row['snippet'].strip()}", "Please tell me about your case."]
    opening += [row["scenario"].strip() or "There is not much to say."]
    answers = [text for one in row["history"] for text in (one["follow_up_question"], one["follow_up_answer"])]
    return (*opening, *answers, "Thank you. What do you want to know?")
