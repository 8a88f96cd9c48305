"""The calibrated policy after what its own hits showed: a bar may rise above what was measured, and never falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smartcache.calibrated import CalibratedPolicy
from smartcache.evidence import BY_RULES, KINDS, NOTHING, Evidence, kind_of, strength
from smartcache.policy import Candidate


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
        bound = self.policy.max_wrong_of(candidate)
        return strength(candidate) >= self._evidence().min_strength(kind_of(candidate), bound)

    def is_doubtful(self, candidate: Candidate) -> bool:
        """What the policy doubts, and what it would accept if its own hits had been right."""
        return self.policy.is_doubtful(candidate) or self.policy.accepts(candidate)

    def min_confidence(self, histories: int, max_wrong: float | None = None) -> float:
        """As the policy's, after the evidence."""
        bound = self.policy.max_wrong if max_wrong is None else max_wrong
        return max(self.policy.min_confidence(histories, max_wrong), self._evidence().min_strength(histories, bound))

    def bar(self, candidate: Candidate) -> Bar:
        """What was needed for a candidate, and why."""
        kind, evidence, bound = kind_of(candidate), self._evidence(), self.policy.max_wrong_of(candidate)
        by_rules = self.policy.otherwise.min_similarity if bound else NOTHING
        promised = by_rules if kind == BY_RULES else self.policy.min_confidence(kind, bound)
        needed = max(promised, evidence.min_strength(kind, bound))
        return Bar(promised, needed, *evidence.since(kind, promised), KINDS[kind])
