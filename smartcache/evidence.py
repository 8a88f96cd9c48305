"""What a cache's own traffic says of its near hits: how many were served and how many reported wrong, by how sure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from smartcache.intervals import interval_of
from smartcache.policy import NOTHING, Candidate

KINDS = ("neither has turns before it", "one has turns before it", "both have turns before them", "decided by rules")
BY_RULES = 3  # the kinds before it are those of `Candidate.histories`
STEPS, TOP = 2, 40  # two bins to each halving of the doubt, down to one in a million
HALF_LIFE_SECONDS = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hit stands: its kind (an index of KINDS), and the bin of its confidence."""

    kind: int
    bin: int

    @classmethod
    def of(cls, candidate: Candidate) -> Place:
        """By the confidence, or by the similarity that the rules went by where there is none."""
        return cls(kind_of(candidate), _bin(strength(candidate)))


def kind_of(candidate: Candidate) -> int:
    return BY_RULES if candidate.confidence is None else candidate.histories


def strength(candidate: Candidate) -> float:
    """What a bar is compared with."""
    if candidate.confidence is not None:
        return candidate.confidence
    focus = candidate.focus_similarity
    return candidate.similarity if focus is None else min(candidate.similarity, focus)


@dataclass(frozen=True, slots=True)
class Evidence:
    """`counts`: hits served, and those of them reported wrong, by their places; older ones count for less, so that they
    need not be whole. A hit that nobody reported was served, and is not proved right."""

    counts: Mapping[Place, tuple[float, float]] = field(default_factory=dict)
    _bars: dict[tuple[int, float, int], float] = field(default_factory=dict, compare=False, repr=False)

    def min_strength(self, kind: int, max_wrong: float, promised: float) -> float:
        """The lowest confidence, of those about `promised` and above, from which on more wrong hits than `max_wrong`
        are not shown: at most `promised` where they are shown nowhere, above 1 where they are shown up to the highest.

        What lies lower (verified, or served under a looser bound) neither proves nor disproves the promise.
        """
        first = _bin(promised)
        if (bar := self._bars.get((kind, max_wrong, first))) is None:
            bar = self._bars[kind, max_wrong, first] = self._lowest(kind, max_wrong, first)
        return bar

    def since(self, kind: int, confidence: float) -> tuple[float, float]:
        """How many were served and how many of them reported, from the bin of a confidence on."""
        return self._sums(kind)[_bin(confidence)]

    def _lowest(self, kind: int, max_wrong: float, first: int) -> float:
        sums = self._sums(kind)
        return next((_edge(bin) for bin in range(first, TOP + 1) if not _is_shown(*sums[bin], max_wrong)), NOTHING)

    def _sums(self, kind: int) -> dict[int, tuple[float, float]]:
        """What was served and reported from each bin on."""
        sums, served, reported = dict[int, tuple[float, float]](), 0.0, 0.0
        for bin in range(TOP, -1, -1):
            here = self.counts.get(Place(kind, bin), (0.0, 0.0))
            served, reported = served + here[0], reported + here[1]
            sums[bin] = (served, reported)
        return sums


def faded(count: float, age_seconds: float) -> float:
    """What a count is worth after a while: half after HALF_LIFE_SECONDS."""
    return float(count * 2.0 ** (-max(0.0, age_seconds) / HALF_LIFE_SECONDS))


def _is_shown(served: float, reported: float, max_wrong: float) -> bool:
    """Whether more than `max_wrong` are wrong, by the lower end of the 95 % interval. One report is no rate yet."""
    if reported <= 1.0:
        return False
    served = max(served, reported)
    return interval_of(reported / served, served)[0] > max_wrong


def _bin(confidence: float) -> int:
    doubt = max(2.0 ** (-TOP / STEPS), 1.0 - confidence)
    return min(TOP, max(0, math.floor(-STEPS * math.log2(doubt) + 1e-9)))


def _edge(bin: int) -> float:
    """The lowest confidence of a bin."""
    return float(1.0 - 2.0 ** (-bin / STEPS))
