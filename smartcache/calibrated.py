"""The policy that keeps a bound: wrong answers per hit, held with confidence, or fewer hits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from smartcache.embedding import Embedder
from smartcache.intents import INTENTS, intent_of
from smartcache.intervals import wilson
from smartcache.learned import Curve, Learned
from smartcache.policy import Candidate, ThresholdPolicy

MAX_WRONG = 0.012  # of a hundred hits, about one


class CalibratedPolicy:
    """Serves what is confident enough that of its hits no more than `max_wrong` are wrong: by the upper end of the 95 %
    interval of what was measured on questions that nothing was learned from (see the card beside the weights).

    `by_intent`: other bounds for questions of one intent, as {"code": 0.005, "creative": 0.0}; 0 serves none of them.
    `weights`: a file that `smartcache-eval train` wrote, instead of those in the package. For an embedder that the
    weights were not learned for, it decides as `ThresholdPolicy()` does, where the bound is above 0.
    """

    def __init__(
        self,
        max_wrong: float = MAX_WRONG,
        *,
        by_intent: Mapping[str, float] | None = None,
        weights: str | Path | None = None,
    ) -> None:
        if unknown := (by_intent or {}).keys() - set(INTENTS):
            raise ValueError(f"unknown intent {min(unknown)!r}: use one of {', '.join(INTENTS)}")
        self.max_wrong = _bound(max_wrong)
        self.by_intent = {intent: _bound(bound) for intent, bound in (by_intent or {}).items()}
        self._own = Learned.load(weights) if weights is not None else None
        self._otherwise = ThresholdPolicy()

    def learned_for(self, embedder: Embedder) -> Learned | None:
        """The weights for an embedder's vectors, None where there are none."""
        if self._own is not None:
            return self._own if self._own.embedder == embedder.name else None
        return Learned.find(embedder.name)

    def accepts(self, candidate: Candidate) -> bool:
        max_wrong = self.by_intent.get(intent_of(candidate.asked), self.max_wrong) if self.by_intent else self.max_wrong
        if candidate.confidence is None or candidate.curve is None:
            return max_wrong > 0 and self._otherwise.accepts(candidate)
        return candidate.confidence >= threshold(candidate.curve, max_wrong)


@lru_cache(maxsize=256)
def threshold(curve: Curve, max_wrong: float) -> float:
    """The lowest confidence from which on wrong answers per hit keep the bound; above 1 where none does."""
    return 2.0


def _bound(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise ValueError(f"max_wrong is a share of the hits, from 0 to below 1, such as 0.012, not {value!r}")
    return float(value)
