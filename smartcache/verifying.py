"""The grey zone of a policy: what it will not serve by itself, but would where somebody verifies it first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Literal, Protocol, cast

from smartcache.dialogue import Dialogue
from smartcache.policy import Candidate, HitPolicy
from smartcache.shadow import accepts

VerifyWhen = Literal["before", "after"]
Verifier = Callable[[Dialogue, Dialogue], bool]
"""Whether two conversations end in one question: `verify(asked, stored)`. It must not mind which is which.

A Dialogue has its `question`, its `history` of (role, text), its `transcript`, and as `query` the question after what
the user said before, if it leans on that. Compare questions, never a question with an answer. Any plain function will
do; what it raises is a miss. It is asked outside every lock, by several threads at once. Its `name` (a function's own)
goes with what it found: give it another one when it decides otherwise than before.
"""


class DoubtingPolicy(HitPolicy, Protocol):
    """A policy that also says, of what it does not accept, what is worth verifying."""

    def is_doubtful(self, candidate: Candidate, /) -> bool: ...


class Lenient:
    """The policy of one request that lets pass what is doubtful too, and knows of the last whether it is."""

    def __init__(self, policy: DoubtingPolicy) -> None:
        self._policy = policy
        self._last: Candidate | None = None

    def accepts(self, candidate: Candidate) -> bool:
        self._last = candidate
        return self._policy.accepts(candidate) or self._policy.is_doubtful(candidate)

    def doubted_last(self) -> bool:
        """Whether its own policy would not have accepted what passed last."""
        return self._last is not None and not accepts(self._policy, self._last)


def name_of(verifier: Verifier) -> str:
    return str(getattr(verifier, "name", None) or getattr(verifier, "__qualname__", type(verifier).__qualname__))


def checked_policy(policy: HitPolicy, verifier: Verifier, when: str) -> DoubtingPolicy:
    """The policy, where it, the verifier and the moment go together."""
    if when not in ("before", "after"):
        raise ValueError(f"unknown verify {when!r}: use 'before' or 'after'")
    call = verifier if inspect.isroutine(verifier) else getattr(verifier, "__call__", None)  # noqa: B004 - its kind is asked
    if call is None or inspect.iscoroutinefunction(call):
        raise TypeError("a verifier is a plain function (asked, stored) -> bool; it runs beside the event loop")
    if not hasattr(policy, "is_doubtful"):
        raise TypeError(
            "the policy has no is_doubtful(candidate): add one, or leave the verifier out, for it is asked nothing"
        )
    return cast(DoubtingPolicy, policy)
