"""What happened, told once: one hook for the application, and the counts that are made from the same events."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

log = logging.getLogger("smartcache")

Kind = Literal[
    "hit", "miss", "bypass", "stored", "not_stored", "evicted", "invalidated", "reported_wrong", "bar_raised",
    "verified", "trouble",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `reason` is the layer of a hit, or why it was a miss, a bypass, not stored, trouble;
    of `verified`, how it ended: same, different, failed, dropped; of `bar_raised`, for which kind of pair.

    `seconds`: what the lookup took. `count`: entries concerned. `error`: what went wrong, for trouble.
    """

    kind: Kind
    reason: str = ""
    seconds: float = 0.0
    count: int = 1
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the cache was opened: `requests` is the sum of `exact`, `semantic`, all `misses` and all
    `bypasses`. Latencies are of the last thousand lookups, in seconds, None before the first."""

    requests: int
    exact: int
    semantic: int
    misses: Mapping[str, int]
    bypasses: Mapping[str, int]
    stored: int
    not_stored: Mapping[str, int]
    evicted: int
    invalidated: int
    reported_wrong: int
    verified: Mapping[str, int]
    bar_raised: Mapping[str, int]
    troubles: Mapping[str, int]
    entries: int
    bytes: int
    mode: str
    lookup_p50_seconds: float | None
    lookup_p99_seconds: float | None

    @property
    def hits(self) -> int:
        return self.exact + self.semantic

    @property
    def hit_rate(self) -> float | None:
        """Hits of all requests, None where there were none."""
        return self.hits / self.requests if self.requests else None


@dataclass
class Outcome:
    """How a lookup ends: the layer of its hit, or why there was none, the first reason first."""

    layer: str | None = None
    refusals: list[str] = field(default_factory=list)


@dataclass
class Events:
    """Counts events and hands each on to `listener`, whose own failure stops nothing."""

    listener: Callable[[Event], object] | None = None
    strict: bool = False
    _counts: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    # one that its holder may take again: a stream may end, and be counted, in the garbage collector
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def emit(
        self, kind: Kind, reason: str = "", *, seconds: float = 0.0, count: int = 1, error: Exception | None = None
    ) -> None:
        event = Event(kind, reason, seconds, count, error)
        with self._lock:
            first = not self._counts[kind, reason]
            self._counts[kind, reason] += count
            if kind in ("hit", "miss"):
                self._seconds.append(seconds)
        if kind == "trouble" and first:
            log.warning("smartcache: trouble in %s, counted and told once: %s: %s", reason, type(error).__name__, error)
        self._tell(event)

    def trouble(self, where: str, error: Exception) -> None:
        """The cache's own trouble, beside every request."""
        self.emit("trouble", where, error=error)

    @contextmanager
    def fail_open(self, where: str) -> Iterator[None]:
        """The cache's own trouble ends the block and is counted; the caller's request goes on. Raised when strict."""
        try:
            yield
        except Exception as error:
            self.emit("trouble", where, error=error)
            if self.strict:
                raise

    @contextmanager
    def lookup(self) -> Iterator[Outcome]:
        """Counts the block as one hit or one miss, however it ends; its own trouble is a miss."""
        outcome, started = Outcome(), perf_counter()
        try:
            with self.fail_open("lookup"):
                yield outcome
        finally:
            seconds = perf_counter() - started
            if outcome.layer:
                self.emit("hit", outcome.layer, seconds=seconds)
            else:
                self.emit("miss", next(iter(outcome.refusals), "new"), seconds=seconds)

    def counts(self, kind: Kind) -> dict[str, int]:
        with self._lock:
            return {reason: count for (of, reason), count in sorted(self._counts.items()) if of == kind}

    def stats(self, entries: int, bytes: int, mode: str) -> Stats:
        hits = self.counts("hit")
        misses, bypasses = self.counts("miss"), self.counts("bypass")
        with self._lock:
            seconds = sorted(self._seconds)
        return Stats(
            requests=sum(hits.values()) + sum(misses.values()) + sum(bypasses.values()),
            exact=hits.get("exact", 0),
            semantic=hits.get("semantic", 0),
            misses=misses,
            bypasses=bypasses,
            stored=sum(self.counts("stored").values()),
            not_stored=self.counts("not_stored"),
            evicted=sum(self.counts("evicted").values()),
            invalidated=sum(self.counts("invalidated").values()),
            reported_wrong=sum(self.counts("reported_wrong").values()),
            verified=self.counts("verified"),
            bar_raised=self.counts("bar_raised"),
            troubles=self.counts("trouble"),
            entries=entries,
            bytes=bytes,
            mode=mode,
            lookup_p50_seconds=_quantile(seconds, 0.50),
            lookup_p99_seconds=_quantile(seconds, 0.99),
        )

    def _tell(self, event: Event) -> None:
        if self.listener is None:
            return
        try:
            self.listener(event)
        except Exception:  # the application's own function: its failure is told, and stops no request
            log.exception("smartcache: the on_event hook failed; the request goes on")


def _quantile(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
