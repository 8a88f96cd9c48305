"""When requests began whose answers are made elsewhere, and what was forgotten since."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace

MAX_KEYS = 10_000
MAX_SECONDS = 600.0  # a lookup that no store has followed by then was given up


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """How many knowledge updates were known, and how often its scope was forgotten, when a request began."""

    updates: int
    forgets: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    """So many lookups that began at one moment, the last of them `at` seconds."""

    moment: Moment
    count: int
    at: float


class Begun:
    """Lookups that found nothing, by key, until a `store` of the same key follows.

    Nothing tells which of several equal lookups a store belongs to: each counts as begun with the oldest of them.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, list[_Waiting]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, key: str, moment: Moment) -> None:
        with self._lock:
            before = self._live(key)
            count = before.pop().count if before and before[-1].moment == moment else 0
            self._keep(key, [*before, _Waiting(moment, count + 1, time.monotonic())])
            while len(self._waiting) > MAX_KEYS:
                self._waiting.popitem(last=False)

    def end(self, key: str, now: Moment) -> Moment:
        """When the answer to be stored under `key` began: `now` where no lookup is waiting for it."""
        with self._lock:
            *before, last = self._live(key) or [_Waiting(now, 0, 0.0)]
            self._keep(key, [*before, replace(last, count=last.count - 1)] if last.count > 1 else before)
            return min(waiting.moment for waiting in (*before, last))

    def _live(self, key: str) -> list[_Waiting]:
        since = time.monotonic() - MAX_SECONDS
        return [waiting for waiting in self._waiting.get(key, ()) if waiting.at > since]

    def _keep(self, key: str, waiting: list[_Waiting]) -> None:
        self._waiting.pop(key, None)
        if waiting:
            self._waiting[key] = waiting


class Forgets:
    """How often each scope was forgotten: an answer that was under way then must not bring back what is gone."""

    def __init__(self) -> None:
        self._counts: Counter[str | None] = Counter()

    def note(self, scope: str | None) -> None:
        self._counts[scope] += 1

    def count(self, scope: str) -> int:
        return self._counts[scope] + self._counts[None]
