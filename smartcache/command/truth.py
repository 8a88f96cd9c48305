"""Judging the demo's hits by the script's labels, which the cache never sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from smartcache.command.scenario import Ask

Verdict = Literal["right", "wrong", "stale"]


class Truth:
    """Knows who asked what and which sections changed when; judges an answer by the turn that it was made in."""

    def __init__(self, classes: Mapping[str, frozenset[str]]) -> None:
        self._classes = classes
        self._asked: dict[int, Ask] = {}
        self._changes: list[tuple[int, frozenset[str]]] = []  # (number of the turn it came before, sections)

    def asked(self, ask: Ask) -> int:
        """Takes down a turn; its number, from 1 on."""
        self._asked[len(self._asked) + 1] = ask
        return len(self._asked)

    def changed(self, sections: Iterable[str]) -> None:
        """Sections of the knowledge base are other ones from now on, or are new, or gone."""
        self._changes.append((len(self._asked) + 1, frozenset(sections)))

    def may_share(self, number: int) -> bool:
        """Whether an earlier turn's answer would be right for this turn."""
        return any(self.judge(number, earlier) == "right" for earlier in self._asked if earlier < number)

    def judge(self, number: int, made_by: int) -> Verdict:
        """What it means to answer turn `number` with the answer that the model gave in turn `made_by`."""
        asked, answered = self._asked[number], self._asked[made_by]
        if (asked.answer_class, asked.tenant) != (answered.answer_class, answered.tenant):
            return "wrong"
        rests_on = self._classes[asked.answer_class]
        touched = any(made_by < turn <= number and rests_on & sections for turn, sections in self._changes)
        return "stale" if touched else "right"
