"""The figures of a demo run: what every turn came to, and the sums that are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from smartcache.command.assistant import Reply
from smartcache.command.scenario import Ask, Change
from smartcache.command.truth import Verdict

# A prompt of which less than this share was reused counts as cold: the system text alone is less.
COLD_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one turn. `verdict` judges a hit by the script's labels; `could_share` says whether an earlier
    answer would have been right."""

    ask: Ask
    reply: Reply
    verdict: Verdict
    could_share: bool

    @property
    def served_by(self) -> str:
        return self.reply.answer.served_by

    @property
    def reused_share(self) -> float:
        return self.reply.cached_tokens / self.reply.prompt_tokens if self.reply.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class KnowledgeChange:
    """What became of one change of the knowledge base: sections by kind, and stored answers it made stale or put in
    doubt until they are searched for again."""

    change: Change
    added: int
    changed: int
    removed: int
    invalidated: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, in the order in which it happened."""

    rows: tuple[Outcome | KnowledgeChange, ...]
    seconds: float

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(row for row in self.rows if isinstance(row, Outcome))

    @property
    def invalidated(self) -> int:
        return sum(row.invalidated for row in self.rows if isinstance(row, KnowledgeChange))

    def count(self, *, served_by: str = "", verdict: str = "") -> int:
        """How many turns were served so, and judged so."""
        counted = [o for o in self.outcomes if served_by in ("", o.served_by) and verdict in ("", o.verdict)]
        return len(counted)

    @property
    def hits(self) -> int:
        return len(self.outcomes) - self.count(served_by="model")

    @property
    def shareable(self) -> int:
        """How many turns an earlier answer was right for: what a perfect cache would have served."""
        return sum(outcome.could_share for outcome in self.outcomes)

    @property
    def prompt_tokens(self) -> int:
        return sum(outcome.reply.prompt_tokens for outcome in self.outcomes)

    @property
    def reused_tokens(self) -> int:
        return sum(outcome.reply.cached_tokens for outcome in self.outcomes)

    @property
    def first_token_cold_ms(self) -> float | None:
        """Median over the model's turns that reused little of their prompt."""
        return _median_ms([o for o in self._written if o.reused_share < COLD_SHARE])

    @property
    def first_token_warm_ms(self) -> float | None:
        """Median over the model's other turns."""
        return _median_ms([o for o in self._written if o.reused_share >= COLD_SHARE])

    @property
    def hit_ms(self) -> float | None:
        """Median time of a hit."""
        return _median_ms([o for o in self.outcomes if o.served_by != "model"])

    @property
    def is_faultless(self) -> bool:
        return self.count(verdict="right") == len(self.outcomes)

    def as_json(self) -> dict[str, int | float | None]:
        """The object that `smartcache demo --json` prints."""
        return {
            "requests": len(self.outcomes),
            "exact": self.count(served_by="exact"),
            "semantic": self.count(served_by="semantic"),
            "model": self.count(served_by="model"),
            "wrong": self.count(verdict="wrong"),
            "stale": self.count(verdict="stale"),
            "invalidated": self.invalidated,
            "tokens_prompt": self.prompt_tokens,
            "tokens_reused": self.reused_tokens,
            "first_token_cold_ms": _rounded(self.first_token_cold_ms),
            "first_token_warm_ms": _rounded(self.first_token_warm_ms),
            "seconds": round(self.seconds, 2),
        }

    @property
    def _written(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.served_by == "model"]


def _median_ms(outcomes: Sequence[Outcome]) -> float | None:
    return median(o.reply.first_token_seconds for o in outcomes) * 1000 if outcomes else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
