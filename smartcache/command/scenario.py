"""The script of the demo: who asks what, what becomes of the knowledge base, and which answers may be shared."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

Situation = Literal[
    "new",
    "follow-up",
    "reworded",
    "repeated",
    "history irrelevant",
    "near miss",
    "same words elsewhere",
    "other tenant",
    "changed",
    "untouched",
]


@dataclass(frozen=True, slots=True)
class Ask:
    """A user asks. Only `tenant`, `conversation` and `text` reach the cache; the rest is for judging it."""

    user: str
    tenant: str
    conversation: str
    text: str
    answer_class: str
    situation: Situation


@dataclass(frozen=True, slots=True)
class Edit:
    """A document gets another text: `old`, which it holds once, becomes `new`."""

    path: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        file = folder / self.path
        text = file.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path} does not hold {self.old!r} once")
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Add:
    """A document is new."""

    path: str
    text: str

    def apply(self, folder: Path) -> None:
        (folder / self.path).write_text(self.text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Delete:
    """A document is gone."""

    path: str

    def apply(self, folder: Path) -> None:
        (folder / self.path).unlink()


Change: TypeAlias = Edit | Add | Delete
Step: TypeAlias = Ask | Change


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps in order; `classes` names for each class of answers the sections that such an answer rests on."""

    system: str
    classes: Mapping[str, frozenset[str]]
    steps: tuple[Step, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        return tuple(step for step in self.steps if isinstance(step, Ask))

    def arranged(self, seed: int) -> Scenario:
        """The same conversations interleaved in another way: each keeps its order and its side of every change.

        Seed 0 is the order as written.
        """
        if seed == 0:
            return self
        chance = random.Random(seed)
        steps: list[Step] = []
        stretch: list[Ask] = []
        for step in self.steps:
            if isinstance(step, Ask):
                stretch.append(step)
                continue
            steps += _interleaved(stretch, chance)
            steps.append(step)
            stretch = []
        return Scenario(self.system, self.classes, (*steps, *_interleaved(stretch, chance)))


def shipped_scenario() -> Scenario:
    """The scenario that comes with the package."""
    script = tomllib.loads((files("smartcache.command") / "scenario.toml").read_text(encoding="utf-8"))
    classes = {name: frozenset(sections) for name, sections in script["classes"].items()}
    return Scenario(script["system"], classes, tuple(map(_step, script["steps"])))


def copy_knowledge_base(folder: Path) -> None:
    """Write the documents that come with the package into `folder`, where the demo may change them."""
    for document in (files("smartcache.command") / "knowledge_base").iterdir():
        if document.name.endswith(".md"):
            (folder / document.name).write_text(document.read_text(encoding="utf-8"), encoding="utf-8")


def _step(entry: Mapping[str, Any]) -> Step:
    if "edit" in entry:
        return Edit(entry["edit"], entry["old"], entry["new"])
    if "add" in entry:
        return Add(entry["add"], entry["text"])
    if "delete" in entry:
        return Delete(entry["delete"])
    return Ask(entry["user"], entry["tenant"], entry["conversation"], entry["text"], entry["class"], entry["situation"])


def _interleaved(asks: Sequence[Ask], chance: random.Random) -> list[Ask]:
    """A random order that keeps the order within each conversation."""
    order = [ask.conversation for ask in asks]
    chance.shuffle(order)
    waiting = {name: iter([ask for ask in asks if ask.conversation == name]) for name in order}
    return [next(waiting[name]) for name in order]
