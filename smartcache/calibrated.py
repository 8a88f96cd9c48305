"""The policy that keeps a bound: wrong answers per hit, held with confidence, or fewer hits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from smartcache.intents import INTENTS, intent_of
from smartcache.learned import Learned
from smartcache.policy import NOTHING, Candidate, ThresholdPolicy

MAX_WRONG = 0.012  # of a hundred hits, about one
DOUBTFUL_WRONG = 0.10  # what a policy of that bound would serve is worth verifying


class CalibratedPolicy:
    """Serves what is confident enough that of its hits no more than `max_wrong` are wrong: by the upper end of the 95 %
    interval of what was measured on questions that nothing was learned from (see the card beside the weights).

    `by_intent`: other bounds for questions of one intent, as {"code": 0.005, "creative": 0.0}; 0 serves none of them.
    `weights`: a file that `smartcache-eval train` wrote, instead of those in the package. With an embedder that the
    package has none for it decides as `ThresholdPolicy()` does, where the bound is above 0.
    """

    def __init__(
        self,
        max_wrong: float = MAX_WRONG,
        *,
        by_intent: Mapping[str, float] | None = None,
        weights: str | Path | None = None,
    ) -> None:
        if by_intent is not None and not isinstance(by_intent, Mapping):
            raise TypeError('by_intent is a mapping of intents to bounds, as {"code": 0.005}')
        if unknown := [intent for intent in by_intent or {} if intent not in INTENTS]:
            raise ValueError(f"unknown intent {unknown[0]!r}: use one of {', '.join(INTENTS)}")
        self.max_wrong = _bound(max_wrong)
        self.by_intent = {intent: _bound(bound) for intent, bound in (by_intent or {}).items()}
        self._own = None if weights is None else Learned.load(weights)
        self.otherwise = ThresholdPolicy()

    def __repr__(self) -> str:
        given = [f"max_wrong={self.max_wrong}"]
        given += [f"by_intent={self.by_intent}"] if self.by_intent else []
        given += [f"weights={self._own.name!r}"] if self._own else []
        return f"CalibratedPolicy({', '.join(given)})"

    def learned_for(self, embedder: str) -> Learned | None:
        """The weights for the vectors of the embedder of that name, None where there are none. Raises ValueError where
        those it was given are for another."""
        if self._own and not self._own.fits(embedder):
            raise ValueError(
                f"the weights were learned for {self._own.embedder!r}, not for {embedder!r}: run  smartcache-eval train"
            )
        return self._own or Learned.find(embedder)

    def accepts(self, candidate: Candidate) -> bool:
        return self._accepts(candidate, self.max_wrong_of(candidate))

    def is_doubtful(self, candidate: Candidate) -> bool:
        """Confident enough for a bound of 0.10, where the bound is above 0."""
        max_wrong = self.max_wrong_of(candidate)
        if candidate.confidence is None:
            return max_wrong > 0 and self.otherwise.is_doubtful(candidate)
        return max_wrong > 0 and self._accepts(candidate, max(max_wrong, DOUBTFUL_WRONG))

    def _accepts(self, candidate: Candidate, max_wrong: float) -> bool:
        if candidate.confidence is None:
            return max_wrong > 0 and self.otherwise.accepts(candidate)
        return candidate.confidence >= self.min_confidence(candidate.histories, max_wrong)

    def min_confidence(self, histories: int, max_wrong: float | None = None) -> float:
        """From which confidence on a pair is served of which so many questions lean on what was said; above 1
        where none keeps the bound."""
        bound = self.max_wrong if max_wrong is None else max_wrong
        return self._learned.min_confidence(histories, bound) if self._learned else NOTHING

    def max_wrong_of(self, candidate: Candidate) -> float:
        """The bound that holds for what is asked."""
        return self.by_intent.get(intent_of(candidate.asked), self.max_wrong) if self.by_intent else self.max_wrong

    @cached_property
    def _learned(self) -> Learned | None:
        """Where the curves come from: its own weights, else those of the package."""
        return self._own or Learned.bundled()


def _bound(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise ValueError(f"max_wrong is a share of the hits, from 0 to below 1, such as 0.012, not {value!r}")
    return float(value)
