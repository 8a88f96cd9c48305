"""What shadow mode recorded, and what a policy would have made of it: thresholds are judged on real traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Literal

from smartcache.intervals import wilson
from smartcache.policy import Candidate, HitPolicy

Signal = bool | int | float | None
MIN_ANSWER_SIMILARITY = 0.90  # from which on two answers are taken to say the same


@dataclass(frozen=True, slots=True)
class ShadowRecord:
    """A stored answer that would have been served in place of the model's own, at `seconds` by the cache's clock.

    `accepted`: whether the cache's policy would have; where not, nothing but the policy stood against it. `signals`:
    what the policy went by, without any text. `same_text`: whether the model's own answer then was the stored one but
    for white space, None where it never came; `answer_similarity`: how alike the two are, None where that is not known.
    """

    seconds: float
    scope: str
    layer: Literal["exact", "semantic"]
    entry_id: int
    similarity: float
    accepted: bool
    signals: Mapping[str, Signal]
    same_text: bool | None = None
    answer_similarity: float | None = None

    @property
    def candidate(self) -> Candidate:
        """What the policy was asked about, but for its texts."""
        unknown = {f.name: "" for f in fields(Candidate) if f.default is MISSING and f.default_factory is MISSING}
        known = {f.name: self.signals[f.name] for f in fields(Candidate) if f.name in self.signals}
        return Candidate(**{**unknown, **known})  # type: ignore[arg-type]  # its fields of several types

    def agrees(self, min_answer_similarity: float = MIN_ANSWER_SIMILARITY) -> bool | None:
        """Whether the model said the same; None where that is not known."""
        if self.same_text or self.answer_similarity is None:
            return self.same_text or None
        return self.answer_similarity >= min_answer_similarity


@dataclass(frozen=True, slots=True)
class ShadowTally:
    """Of `served` answers that would have come from the cache, `agreed` said what the model said, `differed` did not;
    of the rest it is not known."""

    served: int
    agreed: int
    differed: int

    @property
    def agreement(self) -> float | None:
        """The share that agreed, of those of which it is known; None without any."""
        return self.agreed / (self.agreed + self.differed) if self.agreed + self.differed else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `agreement`."""
        return wilson(self.agreed, self.agreed + self.differed)


def compare(
    records: Iterable[ShadowRecord],
    policies: Mapping[str, HitPolicy],
    *,
    min_answer_similarity: float = MIN_ANSWER_SIMILARITY,
) -> dict[str, ShadowTally]:
    """What each policy would have served of the near questions that were recorded, by its name.

    The same request again is left out: every policy serves it. A request has one record, of the answer that would have
    been served, or of the nearest: which other one a policy would have taken in its place is not known. A policy that
    reads the texts of a candidate cannot be judged so, for they are not kept; nor can one that goes by similarities by
    records with a confidence, which have that in place of the similarity of contexts.
    """
    near = [record for record in records if record.layer == "semantic"]
    return {
        name: tally((record for record in near if accepts(policy, record.candidate)), min_answer_similarity)
        for name, policy in policies.items()
    }


def tally(records: Iterable[ShadowRecord], min_answer_similarity: float = MIN_ANSWER_SIMILARITY) -> ShadowTally:
    """How many there are, and of how many it is known that the model agreed."""
    known = [record.agrees(min_answer_similarity) for record in records]
    return ShadowTally(len(known), known.count(True), known.count(False))


def accepts(policy: HitPolicy, candidate: Candidate) -> bool:
    """What a policy says that is asked as a cache asks it: of the whole first, then of the part that differs."""
    whole = policy.accepts(replace(candidate, focus_similarity=None))
    return whole and (candidate.focus_similarity is None or policy.accepts(candidate))


def signals_of(candidate: Candidate) -> dict[str, Signal]:
    """The figures of a candidate, whichever it has, and none of its texts."""
    values = {field.name: getattr(candidate, field.name) for field in fields(candidate)}
    return {name: value for name, value in values.items() if value is None or isinstance(value, bool | int | float)}
