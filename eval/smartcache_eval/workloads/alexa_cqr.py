"""Alexa's query rewrites: a turn of a car assistant's dialogue, and ten people's wordings that stand alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smartcache import Turn
from smartcache.stems import stem
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


@dataclass(frozen=True, slots=True)
class Reformulated:
    """A turn with the texts that stand for it, the form that its annotators made first."""

    turns: tuple[Turn, ...]
    slots: str
    texts: tuple[str, ...]

    @property
    def key(self) -> tuple[str, tuple[bool, ...]]:
        return self.slots, _wants(self.texts[0])


def steps(folder: Path) -> list[Step]:
    """A turn under its history, the reformulation of it, and those people's wordings that name every slot of it
    and want the same: the others left something out, and ask something else. Of turns with the same slots and wants the
    first is kept: whether they ask the same, nobody marked. The group is the set of slots."""
    dialogues = json.loads(file_in(folder, "alexa-cqr", "raw", "cqr_kvret_dev_public.json").read_text(encoding="utf-8"))
    all_turns = [turn for dialogue in dialogues for turn in _reformulated(dialogue["dialogue"])]
    kept = {turn.key: turn for turn in reversed(all_turns)}.values()
    wordings = Counter(plain(text) for turn in kept for text in turn.texts)
    found = []
    for turn in kept:
        truth = plain(turn.texts[0])
        found.append(Step(turn.turns, truth, turn.slots, "under its history"))
        texts = [text for text in turn.texts if wordings[plain(text)] == 1 or text == turn.texts[0]]
        found += [Step(conversation([], text), truth, turn.slots, "rewritten") for text in texts]
    return found


def _reformulated(dialogue: list[dict[str, Any]]) -> Iterator[Reformulated]:
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
        different = tuple({plain(text): text for text in reversed(texts)}.values())
        yield Reformulated(asked, _stems(slots), tuple(reversed(different)))


def _stems(slots: list[str]) -> str:
    return " ".join(sorted({stem(word) for slot in slots for word in plain(slot).split()}))


def _wants(text: str) -> tuple[bool, ...]:
    return tuple(bool(pattern.search(text)) for pattern in WANTS)
