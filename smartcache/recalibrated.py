"""The calibrated policy after what its own hits showed: a bar may rise above what was measured, and never falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smartcache.calibrated import CalibratedPolicy
from smartcache.evidence import BY_RULES, KINDS, Evidence, kind_of, strength
from smartcache.policy import NOTHING, Candidate


@dataclass(frozen=True, slots=True)
class Bar:
    """What a confidence must reach. `promised`: by what was measured when the weights were learned; `needed`: after
    `reported` of `served` own hits of that kind, from the promised one on, were reported wrong."""

    promised: float
    needed: float
    served: float
    reported: float
    kind: str

    @property
    def is_raised(self) -> bool:
        return self.needed > self.promised


class Everything:
    """A policy that accepts whatever nothing else stands against: so that a pair is judged to the end."""

    def accepts(self, candidate: Candidate) -> bool:
        return True


class Recalibrated:
    """What `policy` accepts, less what `evidence()` disproves: the weights' promise holds until own traffic shows more
    wrong answers per hit than the policy's bound. It keeps nothing itself."""

    def __init__(self, policy: CalibratedPolicy, evidence: Callable[[], Evidence]) -> None:
        self.policy, self._evidence = policy, evidence

    def accepts(self, candidate: Candidate) -> bool:
        if not self.policy.accepts(candidate):
            return False
        return strength(candidate) >= self._shown(kind_of(candidate), self.policy.max_wrong_of(candidate))

    def is_doubtful(self, candidate: Candidate) -> bool:
        """What the policy doubts, and what it would accept if its own hits had been right."""
        return self.policy.is_doubtful(candidate) or self.policy.accepts(candidate)

    def min_confidence(self, histories: int, max_wrong: float | None = None) -> float:
        """As the policy's, after the evidence."""
        bound = self.policy.max_wrong if max_wrong is None else max_wrong
        return max(self._promised(histories, bound), self._shown(histories, bound))

    def bar(self, candidate: Candidate) -> Bar:
        """What was needed for a candidate, and why."""
        kind, bound = kind_of(candidate), self.policy.max_wrong_of(candidate)
        promised = self._promised(kind, bound)
        needed = max(promised, self._shown(kind, bound))
        return Bar(promised, needed, *self._evidence().since(kind, promised), KINDS[kind])

    def _shown(self, kind: int, bound: float) -> float:
        """What own hits show to be needed."""
        return self._evidence().min_strength(kind, bound, self._promised(kind, bound))

    def _promised(self, kind: int, bound: float) -> float:
        if kind == BY_RULES:
            return self.policy.otherwise.min_similarity if bound else NOTHING
        return self.policy.min_confidence(kind, bound)
