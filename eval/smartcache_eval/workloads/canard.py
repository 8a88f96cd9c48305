"""CANARD: a question that leans on its conversation, and a person's rewrite of it that stands alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation

# A rewrite with one of these was not made to stand alone: nobody can say what it asks.
UNRESOLVED = re.compile(
    r"\b(?:he|she|it|they|him|her|his|hers|its|them|their|this|that|these|those)\b|^\W*(?:what|how) about\b", re.I
)


def steps(folder: Path) -> list[Step]:
    """Each question twice, in either order: under its history, and rewritten under none. Left out are rewrites that do
    not stand alone, and those that are the rewrite of two questions. The group is the article."""
    rows = json.loads(file_in(folder, "canard", "raw", "dev.json").read_text(encoding="utf-8"))
    rewrites = Counter(plain(row["Rewrite"]) for row in rows)
    found = []
    for row in rows:
        title, section, *said = row["History"]
        rewrite = plain(row["Rewrite"])
        if UNRESOLVED.search(row["Rewrite"]) or rewrites[rewrite] > 1 or len(said) % 2:
            continue
        opening = [f"Tell me about {title}: {section}.", "What do you want to know?"]
        turns = conversation([*opening, *said], row["Question"].strip())
        truth = f"{row['QuAC_dialog_id']} {row['Question_no']}"
        found.append(Step(turns, truth, title, "under its history"))
        found.append(Step(conversation([], row["Rewrite"].strip()), truth, title, "rewritten"))
    return found


def plain(text: str) -> str:
    """The words of a question alone, to see whether two are the same."""
    return " ".join(re.findall(r"\w+", text.lower()))
