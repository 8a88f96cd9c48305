"""What a workload is: requests with their truth, and the order in which a stream from a cold start asks them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from smartcache import ChunkRef, Request, Turn

Part = Literal["choose", "report", "all"]


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a workload, and what would be right.

    `truth`: two steps may share an answer if, and only if, theirs are equal. `group`: what is never divided between the
    part for choosing and the part for reporting (a conversation's seed). `sort`: what the step tries, as in "detail
    swapped". `seconds`: when it arrives within its group; equal ones come in any order. `evidence`: the versions of the
    documents that the right answer rests on; a step with a newer one tells that the document changed.
    """

    turns: tuple[Turn, ...]
    truth: str
    group: str
    sort: str = "asked"
    seconds: float = 0.0
    evidence: frozenset[ChunkRef] = frozenset()

    @property
    def request(self) -> Request:
        return Request(self.turns)

    @property
    def tokens(self) -> int:
        """What a model would read to answer, roughly: a token for four ASCII letters, one for each other letter."""
        text = "".join(turn.text for turn in self.turns)
        ascii_letters = sum(letter.isascii() for letter in text)
        return ascii_letters // 4 + len(text) - ascii_letters + 1


def conversation(history: Sequence[str], question: str) -> tuple[Turn, ...]:
    """Turns whose last is the user's question; the turns before it alternate, the last of them the assistant's."""
    first_role = len(history) % 2
    roles = ("user", "assistant") if first_role == 0 else ("assistant", "user")
    said = [Turn("user" if roles[place % 2] == "user" else "assistant", text) for place, text in enumerate(history)]
    return (*said, Turn("user", question))


def part_of(group: str) -> Part:
    """The part that a group belongs to: by its name alone, whatever else the workload holds."""
    return "choose" if hashlib.sha256(group.encode()).digest()[0] % 2 else "report"


def stream(steps: Sequence[Step], part: Part = "all", *, seed: int = 0, limit: int | None = None) -> list[Step]:
    """The steps of one part in the order in which they arrive: shuffled by `seed`, but in order within each group.

    With a `limit`, whole groups are taken until there are that many steps, or as many as possible below it.
    """
    random = Random(seed)
    groups: dict[str, list[Step]] = {}
    for step in steps:
        if part in ("all", part_of(step.group)):
            groups.setdefault(step.group, []).append(step)
    kept = list(groups.values())
    random.shuffle(kept)
    for members in kept:
        random.shuffle(members)
        members.sort(key=lambda step: -step.seconds)  # the first to come is the last, to be popped
    kept = _within(kept, limit)
    places = [members for members in kept for _ in members]
    random.shuffle(places)
    return [members.pop() for members in places]


def _within(groups: list[list[Step]], limit: int | None) -> list[list[Step]]:
    """Groups from the front, each that still fits; at least one."""
    if limit is None:
        return groups
    kept, count = groups[:1], len(groups[0]) if groups else 0
    for members in groups[1:]:
        if count + len(members) <= limit:
            kept.append(members)
            count += len(members)
    return kept
