"""What the digest is trained on: questions under their history, each beside another wording of the same question."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from smartcache.dialogue import Dialogue
from smartcache_eval.steps import Step

REWRITTEN = ("canard", "cast", "alexa-cqr")  # workloads with rewrites that stand alone
WORDED = ("convquestions",)  # workloads whose conversations come in many wordings
FOLDS = 3
AUTOMATIC = 400  # rewrites by machines, each pass


@dataclass(frozen=True, slots=True)
class Side:
    """A question, and the turns before it as (role, text)."""

    history: tuple[tuple[str, str], ...]
    question: str

    @classmethod
    def of(cls, step: Step) -> Side:
        dialogue = Dialogue.of(step.request)
        return cls(dialogue.history if dialogue.spoken else (), dialogue.question)


@dataclass(frozen=True, slots=True)
class Example:
    """Two sides that mean the same. `truth`: other examples of the same mean it too."""

    left: Side
    right: Side
    truth: str


def fold_of(group: str) -> int:
    """Which fold a group is in: what is learned without it is measured on it."""
    return int.from_bytes(sha256(f"fold {group}".encode()).digest()[:4], "big") % FOLDS


def examples(
    steps: Mapping[str, Sequence[Step]], folder: Path, *, seed: int, without: int | None = None
) -> list[Example]:
    """Of the workloads that have rewrites or many wordings, all but the fold `without`."""
    random = Random(seed)
    kept = {name: [step for step in of if fold_of(step.group) != without] for name, of in steps.items()}
    found = [example for name in REWRITTEN for example in _rewritten(name, kept.get(name, ()), random)]
    found += [example for name in WORDED for example in _worded(name, kept.get(name, ()), random)]
    automatic = list(_automatic(kept.get("cast", ()), folder))
    return found + random.sample(automatic, min(AUTOMATIC, len(automatic)))


def _rewritten(name: str, steps: Sequence[Step], random: Random) -> Iterator[Example]:
    for truth, (alone, leaning) in _by_truth(steps).items():
        yield from (Example(one, random.choice(alone), f"{name} {truth}") for one in leaning if alone)


def _worded(name: str, steps: Sequence[Step], random: Random) -> Iterator[Example]:
    for truth, (_, leaning) in _by_truth(steps).items():
        if len(leaning) > 1:
            one, other = random.sample(leaning, 2)
            yield Example(one, other, f"{name} {truth}")


def _automatic(steps: Sequence[Step], folder: Path) -> Iterator[Example]:
    """Rewrites by machines of the same questions: noisy, but more of them."""
    asked = {step.truth: Side.of(step) for step in steps if len(step.turns) > 1}
    for path in sorted((folder / "cast19-rewrites" / "raw" / "2019").glob("*.tsv")):
        if "Human" not in path.name:
            for row in csv.DictReader(path.read_text("utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
                truth = f"2019 {row.get('id')}"
                if truth in asked and row.get("query"):
                    yield Example(asked[truth], Side((), row["query"].strip()), f"cast {truth}")


def _by_truth(steps: Sequence[Step]) -> dict[str, tuple[list[Side], list[Side]]]:
    """Those that stand alone, and those under a history."""
    found: dict[str, tuple[list[Side], list[Side]]] = defaultdict(lambda: ([], []))
    for step in steps:
        side = Side.of(step)
        found[step.truth][bool(side.history)].append(side)
    return found
