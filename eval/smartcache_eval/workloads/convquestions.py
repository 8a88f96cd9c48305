"""Verbal-ConvQuestions: many users ask the same five questions in a row, each in words of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation

DOMAINS = ("books", "movies", "music", "soccer", "tv_series")


def steps(folder: Path) -> list[Step]:
    """Each of the 70 seed conversations comes in 32 wordings. The truth is the seed and the turn, the history the
    questions so far with their gold answers; the group is the entity, of which a few have two seeds."""
    return [step for domain in DOMAINS for record in _records(folder, domain) for step in _conversation(record)]


def _records(folder: Path, domain: str) -> list[dict[str, Any]]:
    path = file_in(folder, "verbal-convquestions", "raw", f"val_{domain}.json")
    records: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return records


def _conversation(record: dict[str, Any]) -> list[Step]:
    questions = record["questions"]
    seed = "|".join([record["seed_entity"], *(question["answer"] for question in questions)])
    said: list[str] = []
    found = []
    for turn, question in enumerate(questions):
        turns = conversation(said, question["question"].strip())
        found.append(Step(turns, f"{seed} {turn}", record["seed_entity"], f"turn {turn + 1}"))
        said += [question["question"].strip(), question["answer_text"]]
    return found
