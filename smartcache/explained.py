"""What there is to know of one stored question beside the one asked: served or not, why, and what weighed most."""

from __future__ import annotations

from dataclasses import dataclass

from smartcache.recalibrated import Bar


@dataclass(frozen=True, slots=True)
class Weighed:
    """A signal: its value, what it adds to the logit of the confidence, and in plain words what it is."""

    name: str
    value: float
    part: float
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """A stored question, the turns before it, and how its answer does for the question asked.

    `refusal`: why it would not be served, by the names that `stats().misses` counts, None where it would be; `reasons`:
    the same in words. `confidence`: how surely the two have one answer, None where rules decide; `bar`: what it must
    reach. `signals`: the weightiest first. `is_current`: whether its documents are as they were; where only a search
    could tell, it is taken for current as a lookup takes it. `question` is None, `entry_id` 0 and the rest empty where
    no stored question is compared.
    """

    question: str | None
    turns: tuple[tuple[str, str], ...]
    entry_id: int
    similarity: float
    refusal: str | None
    reasons: tuple[str, ...]
    confidence: float | None = None
    bar: Bar | None = None
    signals: tuple[Weighed, ...] = ()
    is_current: bool = True

    @property
    def is_served(self) -> bool:
        return self.refusal is None
