"""MQR: a question as it was typed on a forum, and the same well formed."""

from __future__ import annotations

import csv
from pathlib import Path

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation
from smartcache_eval.workloads.canard import plain


def steps(folder: Path) -> list[Step]:
    """Each question in both forms. Well-formed questions with the same words are one."""
    text = file_in(folder, "mqr", "raw", "data", "dev.tsv").read_text(encoding="utf-8")
    found = []
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        truth = plain(row["well formed"])
        found.append(Step(conversation([], row["well formed"].strip()), truth, truth, "well formed"))
        found.append(Step(conversation([], row["ill formed"].strip()), truth, truth, "ill formed"))
    return found
