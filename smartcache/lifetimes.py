"""How long an answer lives: one time for all, or one for each kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real

from smartcache.intents import INTENTS, intent_of

Lifetime = float | Mapping[str, float | None] | Callable[[str], float | None] | None


def checked_lifetime(ttl_seconds: Lifetime) -> Lifetime:
    """Raises TypeError for what is no number of seconds, and ValueError for seconds that are not above 0, or an intent
    that there is none of."""
    if not isinstance(ttl_seconds, Mapping):
        if not callable(ttl_seconds):
            _checked(ttl_seconds)
        return ttl_seconds
    if unknown := ttl_seconds.keys() - {*INTENTS}:
        raise ValueError(f"ttl_seconds names {sorted(unknown)[0]!r}, which is no intent: use {', '.join(INTENTS)}")
    return {intent: _checked(seconds) for intent, seconds in ttl_seconds.items()}


def lifetime_seconds(ttl_seconds: Lifetime, question: str) -> float | None:
    """How long the answer to `question` lives, None for ever. An intent that a mapping does not name lives for ever."""
    if isinstance(ttl_seconds, Mapping):
        return ttl_seconds.get(intent_of(question))
    return _checked(ttl_seconds(question)) if callable(ttl_seconds) else ttl_seconds


def _checked(seconds: float | None) -> float | None:
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, Real)):
        raise TypeError(f"ttl_seconds is a number of seconds, or None for ever, not {seconds!r}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"ttl_seconds is above 0, or None for ever, not {seconds!r}")
    return seconds
