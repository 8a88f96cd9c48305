"""Banking77: short questions of a bank's customers by what they want. Near intents, and many wordings of each."""

from __future__ import annotations

import csv
from pathlib import Path

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation

PER_INTENT = 26  # of some 130: 2,000 questions


def steps(folder: Path) -> list[Step]:
    """The first questions of each of the 77 intents; the truth, and the group, is the intent."""
    rows = csv.DictReader(file_in(folder, "banking77", "raw", "train.csv").read_text(encoding="utf-8").splitlines())
    by_intent: dict[str, list[str]] = {}
    for row in rows:
        by_intent.setdefault(row["category"], []).append(" ".join(row["text"].split()))
    return [
        Step(conversation([], text), intent, intent)
        for intent, texts in by_intent.items()
        for text in dict.fromkeys(texts[:PER_INTENT])
    ]
