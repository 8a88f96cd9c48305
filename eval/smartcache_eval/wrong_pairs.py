"""The pairs that a contestant took for one question and that are two: for a reader to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from smartcache_eval.playing import Outcome
from smartcache_eval.steps import Step


@dataclass(frozen=True, slots=True)
class WrongPair:
    """A request, and the one whose answer it got, each as lines of "role: text", with their truths. `why`: what the
    cache says of the pair, the verdict first; empty where it was not asked."""

    asked: str
    stored: str
    asked_truth: str
    stored_truth: str
    sort: str
    why: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"asked ({self.asked_truth}):", *_indented(self.asked), f"stored ({self.stored_truth}):"]
        return "\n".join([*lines, *_indented(self.stored), *(f"why: {reason}" for reason in self.why)])


def wrong_pairs(steps: Sequence[Step], outcomes: Sequence[Outcome]) -> tuple[WrongPair, ...]:
    """Of a stream, every hit with another question's answer, in order."""
    pairs = []
    for asked, outcome in zip(steps, outcomes, strict=True):
        stored = None if outcome.served is None else steps[outcome.served]
        if stored and stored.truth != asked.truth:
            pairs.append(WrongPair(_lines(asked), _lines(stored), asked.truth, stored.truth, asked.sort, outcome.why))
    return tuple(pairs)


def _lines(step: Step) -> str:
    return "\n".join(f"{turn.role}: {turn.text}" for turn in step.turns)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
