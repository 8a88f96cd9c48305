"""TREC CAsT 2019 and 2020: questions of a search conversation, and their rewrites by hand that stand alone."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from smartcache import Turn
from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation
from smartcache_eval.workloads.canard import UNRESOLVED, plain

REWRITES = (("2019", "10_Human.tsv"), ("2020", "11_Human.tsv"))


def steps(folder: Path) -> list[Step]:
    """As CANARD, but the history holds the user's questions only: the answers are passages that nobody gave. The group
    is the topic. The outputs of automatic rewriters are left out: some are wrong, and nobody marked which."""
    rows = [(year, row) for year, name in REWRITES for row in _rows(folder, year, name)]
    rewrites = Counter(plain(row["query"]) for _, row in rows)
    said: dict[str, list[str]] = {}
    found = []
    for year, row in rows:
        topic, question, rewrite = row["conversation_id"], row["original"].strip(), row["query"].strip()
        history = said.setdefault(topic, [])
        if not UNRESOLVED.search(rewrite) and rewrites[plain(rewrite)] == 1:
            truth, group = f"{year} {row['id']}", f"cast {topic}"
            found.append(Step(_asked(history, question), truth, group, "under its history"))
            found.append(Step(_asked([], rewrite), truth, group, "rewritten"))
        history.append(question)
    return found


def _rows(folder: Path, year: str, name: str) -> list[dict[str, str]]:
    text = file_in(folder, "cast19-rewrites", "raw", year, name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def _asked(history: list[str], question: str) -> tuple[Turn, ...]:
    return conversation([text for said in history for text in (said, "Here is what I found.")], question)
