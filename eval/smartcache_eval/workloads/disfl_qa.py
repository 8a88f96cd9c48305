"""Disfl-QA: a question, and the same with a speaker's slips and corrections in it."""

from __future__ import annotations

import json
from pathlib import Path

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation
from smartcache_eval.workloads.canard import plain


def steps(folder: Path) -> list[Step]:
    """Each question clean and disfluent. Clean questions with the same words are one."""
    rows = json.loads(file_in(folder, "disfl-qa", "raw", "dev.json").read_text(encoding="utf-8"))
    found = []
    for row in rows.values():
        if row["disfluent"].startswith("#"):
            continue  # what a spreadsheet left of it
        truth = plain(row["original"])
        found.append(Step(conversation([], row["original"].strip()), truth, truth, "clean"))
        found.append(Step(conversation([], row["disfluent"].strip()), truth, truth, "disfluent"))
    return found
