"""Alexa's query rewrites: a turn of a car assistant's dialogue, and ten people's wordings that stand alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation
from smartcache_eval.workloads.canard import plain

# What is wanted of a place, a day or a meeting; a wording with other wants asks something else.
WANTS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"address|locat|where",
        r"route|direction|\bway\b|navigat|\bgps\b|take me|drive|\bgo\b|get to",
        r"fast|quick|short",
        r"screen|show|display",
        r"traffic|jam",
        r"avoid|without",
        r"nearest|closest|closer",
        r"\bhow far|miles",
        r"\bwho\b|attend",
        r"\bwhen\b|what time|what day",
        r"remind",
        r"schedul|appointment|\badd\b|set",
        r"agenda|about",
        r"high",
        r"low",
    )
)


def steps(folder: Path) -> list[Step]:
    """A turn under its history, the reformulation of it, and those people's wordings that name every slot of it
    and want the same: the others left something out, and ask something else. The group is the set of slot values."""
    dialogues = json.loads(file_in(folder, "alexa-cqr", "raw", "cqr_kvret_dev_public.json").read_text(encoding="utf-8"))
    turns = [turn for dialogue in dialogues for turn in _reformulated(dialogue["dialogue"])]
    wordings = Counter(plain(text) for _, _, texts in turns for text in texts)
    found = []
    for group, turn, texts in turns:
        truth = plain(texts[0])
        found.append(Step(turn, truth, group, "under its history"))
        kept = [text for text in texts if wordings[plain(text)] == 1 or text == texts[0]]
        found += [Step(conversation([], text), truth, group, "rewritten") for text in kept]
    return found


def _reformulated(dialogue: list[dict[str, Any]]) -> list[tuple[str, Any, list[str]]]:
    """(group, the turns up to the question, the texts that stand for it) of each reformulated turn."""
    found = []
    said = [turn["data"]["utterance"].strip() for turn in dialogue]
    for place, turn in enumerate(dialogue):
        made = turn.get("reformulation") or {}
        slots, people = made.get("gold_slots"), made.get("mturk_reformulations", [])
        if not slots or not made.get("reformulated_utt") or place % 2 == 0:
            continue
        form = made["reformulated_utt"].strip()
        whole = [text.strip() for text in people if all(slot.lower().strip() in text.lower() for slot in slots)]
        texts = [form, *(text for text in whole if _wants(text) == _wants(form))]
        asked = conversation(said[: place - 1], said[place - 1])
        found.append(
            (" ".join(sorted(plain(slot) for slot in slots)), asked, list({plain(t): t for t in texts}.values()))
        )
    return found


def _wants(text: str) -> tuple[bool, ...]:
    return tuple(bool(pattern.search(text)) for pattern in WANTS)
