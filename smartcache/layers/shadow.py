"""Shadow mode: the whole way of a request, but the answer is the model's, and what would have been served a record."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcache.asked import Asked
from smartcache.embedding import Embedder, RememberedVectors, Vector, cosine, unit
from smartcache.events import Events
from smartcache.facts import Facts
from smartcache.layers.answers import AnswerLayer, Hit
from smartcache.policy import Candidate, HitPolicy, unstorable_reason
from smartcache.shadow import ShadowRecord, accepts, signals_of
from smartcache.storage.entries import Entries
from smartcache.types import Answer

MAX_WAITING = 1_000
MAX_TEXTS = 256  # answers whose vectors are remembered


class Shadow:
    """Records what would have been served, and compares it with the model's own answer once that is there."""

    def __init__(
        self,
        answers: AnswerLayer,
        entries: Entries,
        events: Events,
        embedder: Embedder | None,
        policy: HitPolicy,
        clock: Callable[[], float],
    ) -> None:
        self._answers, self._entries, self._events = answers, entries, events
        self._policy, self._clock = policy, clock
        self._vectors = RememberedVectors(embedder, max_texts=MAX_TEXTS) if embedder else None
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()  # by the ids of their records
        self._lock = threading.Lock()

    def watch(self) -> Watch:
        """The policy of one request."""
        return Watch(self._policy)

    def record(self, asked: Asked, watch: Watch) -> None:
        """Keeps what a request's watch has seen, if anything."""
        if (seen := watch.seen) is None:
            return
        with self._events.fail_open("shadow"):
            entry, signals = seen.hit.entry, signals_of(seen.candidate) if seen.candidate else {}
            similarity, accepted = seen.hit.similarity, seen.accepted
            record = ShadowRecord(self._clock(), entry.scope, seen.hit.layer, entry.id, similarity, accepted, signals)
            id = self._answers.record(asked, record)
            if id is not None:
                self._wait(id, _Waiting(asked.key, entry.answer.text))

    def compare(self, asked: Asked, answer: Answer) -> None:
        """Notes whether the model said what would have been served for that request.

        Nothing tells which of several equal requests an answer belongs to: it is compared for the last of them.
        """
        if (found := self._end(asked.key)) and unstorable_reason(answer) is None:
            id, stored = found
            with self._events.fail_open("shadow"):
                is_same = answer.text.split() == stored.split()
                self._entries.shadows.end(id, is_same, 1.0 if is_same else self._similarity(answer.text, stored))

    def forget_texts(self) -> None:
        """Drops what is in memory until the model has answered."""
        with self._lock:
            self._waiting.clear()
        if self._vectors:
            self._vectors.clear()

    def _wait(self, id: int, waiting: _Waiting) -> None:
        with self._lock:
            self._waiting[id] = waiting
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)

    def _end(self, key: str) -> tuple[int, str] | None:
        with self._lock:
            id = next((id for id, waiting in reversed(self._waiting.items()) if waiting.key == key), None)
            return None if id is None else (id, self._waiting.pop(id).text)

    def _similarity(self, one: str, other: str) -> float | None:
        """How alike two answers are; 0 where both are short and differ in a number, or one denies the other."""
        if self._vectors is None or not one.strip() or not other.strip():
            return None
        pieces = [_pieces(text, self._vectors) for text in (one, other)]
        if len(pieces[0]) == len(pieces[1]) == 1 and _contradict(Facts.of(one), Facts.of(other)):
            return 0.0
        return cosine(*(_mean(piece, self._vectors) for piece in pieces))


class Watch:
    """A policy that lets the nearest question pass which nothing else stands against, so that the rest of the way is
    gone with it as well, and after that what the cache's own policy accepts."""

    def __init__(self, policy: HitPolicy) -> None:
        self._policy = policy
        self._candidate: Candidate | None = None
        self.seen: Seen | None = None

    def accepts(self, candidate: Candidate) -> bool:
        self._candidate = candidate
        return self.seen is None or self._policy.accepts(candidate)

    def would_serve(self, hit: Hit) -> bool:
        """Whether the hit that it was asked about last would have been served. Remembers it if so, or if it is the
        first."""
        candidate = self._candidate if hit.layer == "semantic" else None
        accepted = candidate is None or accepts(self._policy, candidate)
        if accepted or self.seen is None:
            self.seen = Seen(hit, candidate, accepted)
        return accepted


@dataclass(frozen=True, slots=True)
class Seen:
    """A stored answer, with what the policy was asked about it and would have said; None for the same request again."""

    hit: Hit
    candidate: Candidate | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The text that would have been served to the request with `key`."""

    key: str
    text: str


def _pieces(text: str, vectors: RememberedVectors) -> list[str]:
    """A text in pieces that the embedder reads in full, halved between words where there are any."""
    if vectors.fits(text) or len(text) < 2:
        return [text]
    middle = text.rfind(" ", 1, len(text) // 2 + 1)
    middle = middle if middle > 0 else len(text) // 2
    halves = (text[:middle], text[middle:])
    return [piece for half in halves if half.strip() for piece in _pieces(half, vectors)]


def _mean(pieces: list[str], vectors: RememberedVectors) -> Vector:
    return unit(np.mean(vectors(pieces), axis=0))


def _contradict(one: Facts, other: Facts) -> bool:
    numbers, others = one.hard - one.names, other.hard - other.names
    return one.opposes(other) or bool(numbers and others and numbers != others)
