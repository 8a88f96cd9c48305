"""Decisions apart from storage: is a stored question near enough, and may an answer be stored at all?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from smartcache.types import Answer

DOUBT = 0.10  # of similarity: so far below a threshold is worth verifying
NOTHING = 2.0  # no similarity and no confidence is as high
ROUNDING = 1e-5  # unit vectors in float32: the same text in another batch


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored question that might answer the one asked. Hard facts agree already; the rest is for a policy to judge.

    `similarity`: cosine of the two questions' vectors. `context_similarity`: the same for what the questions lean on,
    None where both stand alone; `same_names`: whether the user named the same things there, and named any.
    `focus_similarity`: the same for what two texts of like wording differ in, "students" and "teachers" in "Is it free
    for …?", None where they differ in wording alone.

    Where the cache has learned weights for its embedder and a policy that goes by them, `confidence` is how surely the
    two have one answer, from 0 to 1, with all of that weighed, and otherwise None; `histories`: how many of the two
    questions lean on what was said before them, 0 to 2; one too where only one was asked after anything, and all
    that the other says beside it was said there.
    """

    asked: str
    stored: str
    similarity: float
    context_similarity: float | None = None
    same_names: bool = False
    focus_similarity: float | None = None
    confidence: float | None = None
    histories: int = 0
    age_seconds: float = 0.0


class HitPolicy(Protocol):
    """Asked of the whole first; of one it accepts, again with a `focus_similarity` where there is one.

    With a verifier, its `is_doubtful(candidate)` says of what it does not accept whether that is worth verifying.
    """

    def accepts(self, candidate: Candidate, /) -> bool: ...


class ThresholdPolicy:
    """Accepts a question from `min_similarity` on, under a context from `min_context_similarity` on, or from
    `min_named_similarity` on where the user named the same things (cosine, equal is enough, 1.0 takes identical vectors
    only)."""

    def __init__(
        self,
        min_similarity: float = 0.90,
        min_context_similarity: float = 0.85,
        min_named_similarity: float | None = None,
    ) -> None:
        """Without `min_named_similarity` it is 0.20 below `min_context_similarity`."""
        self.min_similarity = _threshold("min_similarity", min_similarity)
        self.min_context_similarity = _threshold("min_context_similarity", min_context_similarity)
        named = max(0.0, self.min_context_similarity - 0.20) if min_named_similarity is None else min_named_similarity
        self.min_named_similarity = _threshold("min_named_similarity", named)

    def accepts(self, candidate: Candidate) -> bool:
        return self._reaches(candidate, ROUNDING)

    def is_doubtful(self, candidate: Candidate) -> bool:
        """Near by thresholds that are 0.10 lower."""
        return self._reaches(candidate, DOUBT + ROUNDING)

    def _reaches(self, candidate: Candidate, margin: float) -> bool:
        focus = candidate.similarity if candidate.focus_similarity is None else candidate.focus_similarity
        context = 1.0 if candidate.context_similarity is None else candidate.context_similarity
        near = min(candidate.similarity, focus) >= self.min_similarity - margin
        min_context = self.min_named_similarity if candidate.same_names else self.min_context_similarity
        return near and context >= min_context - margin


def _threshold(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is a cosine similarity from 0 to 1 (a hit if equal or above), not {value!r}")
    return float(value)


# How providers say that an answer ended by itself.
ENDED = frozenset(
    "stop end_turn stop_sequence eos eos_token tool_calls tool_call tool_use function_call complete completed finish "
    "finished end endoftext finish_reason_stop".split()
)
CALLS_TOOLS = frozenset("tool_calls tool_call tool_use function_call".split())


def unstorable_reason(answer: Answer) -> str | None:
    """Why an answer must not be stored, or None: it is empty and nothing else came with it, or it did not end by
    itself (cut at a length, filtered, refused, failed, or in a way that is not known to be an end)."""
    ended = answer.finish_reason is None or answer.finish_reason.casefold() in ENDED
    if not ended:
        return f"finish_{answer.finish_reason}"
    return "empty" if not answer.text.strip() and answer.payload is None else None


def calls_tools(answer: Answer) -> bool:
    return answer.finish_reason is not None and answer.finish_reason.casefold() in CALLS_TOOLS


def samples(options: Mapping[str, Any] | None) -> bool:
    """Whether a request asks for a draw rather than for the answer, and no `sample_index` names the draw.

    Where neither `do_sample` nor a temperature is given, a `top_p`, `top_k` or `min_p` that narrows the draw says so;
    nothing at all says nothing.
    """
    options = options or {}
    if options.get("sample_index") is not None:
        return False
    if _is_above(1, options.get("n")):
        return True
    if options.get("do_sample") is not None:
        return bool(options["do_sample"])
    if options.get("temperature") is not None:
        return _is_above(0, options["temperature"])
    top_p = options.get("top_p")
    narrowed = isinstance(top_p, int | float) and 0 < top_p < 1
    return narrowed or _is_above(1, options.get("top_k")) or _is_above(0, options.get("min_p"))


def _is_above(limit: int, value: Any) -> bool:
    return isinstance(value, int | float) and value > limit
