"""Answers by what was asked: the same request exactly, or a question that is near under its dialogue state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from smartcache.asked import Asked
from smartcache.begun import Forgets
from smartcache.events import Events
from smartcache.evidence import Place
from smartcache.keys import digest, parts
from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.layers.semantic import SemanticIndex
from smartcache.lifetimes import Lifetime, checked_lifetime, lifetime_seconds
from smartcache.policy import Candidate, HitPolicy, calls_tools, unstorable_reason
from smartcache.reach import Farther, Reach, Reaches
from smartcache.recalibrated import Everything, Recalibrated
from smartcache.shadow import ShadowRecord
from smartcache.state import State
from smartcache.storage.entries import Entries
from smartcache.storage.rows import Entry, restorable
from smartcache.types import Answer, Chunk, KnowledgeUpdate, ServedBy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept and how long: entries, bytes, and seconds by `clock` (None for ever)."""

    max_entries: int
    max_bytes: int
    ttl_seconds: Lifetime
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        if self.max_entries < 1 or self.max_bytes < 1:
            raise ValueError("max_entries and max_bytes are at least 1")
        object.__setattr__(self, "ttl_seconds", checked_lifetime(self.ttl_seconds))

    def is_expired(self, entry: Entry) -> bool:
        seconds = lifetime_seconds(self.ttl_seconds, entry.dialogue.question)
        return seconds is not None and not self.clock() - entry.created_at < seconds  # what no clock tells has expired


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored answer that may be served if the knowledge base still supports it, and, where it `is_doubtful`, a
    verifier."""

    entry: Entry
    layer: Literal["exact", "semantic"]
    similarity: float
    is_doubtful: bool = False
    candidate: Candidate | None = None


class AnswerLayer:
    """The exact and the semantic layer over one store; without `semantic` it is exact only."""

    def __init__(
        self,
        entries: Entries,
        knowledge: Knowledge,
        forgets: Forgets,
        events: Events,
        semantic: SemanticIndex | None,
        limits: Limits,
        own: Recalibrated | None = None,
        reaches: Reaches | None = None,
    ) -> None:
        """`own`: the policy that hits and reports of this cache count for. `reaches`: how the application's search
        ranks, where that is known."""
        self._reaches = reaches
        self._entries, self._knowledge, self._forgets, self._events = entries, knowledge, forgets, events
        self._semantic, self._limits, self._own = semantic, limits, own
        self._writing = threading.Lock()  # so that nothing is stored between what is forgotten and its trace

    def lookup(self, asked: Asked, refusals: list[str], policy: HitPolicy | None = None) -> Iterator[Hit]:
        """Answers that the knowledge base has yet to confirm: the exact one, then near ones, the nearest first.

        Adds to `refusals` why others are none. `policy`: another than the cache's own.
        """
        if asked.refresh:
            refusals.append("refresh")
            return
        exact = self._alive(self._entries.by_key(asked.key, self._knowledge), refusals)
        if exact and exact.request == asked.bytes:
            yield Hit(exact, "exact", 1.0)
        self.refresh()
        if self._semantic and not asked.exact_only and (state := self._semantic.state(asked, refusals)):
            partition, now = self._semantic.partition(asked), self._limits.clock()
            for id in self._semantic.near(partition, asked, state, refusals):
                similarity, ruling = self._semantic.judge(partition, id, asked, state, now, policy)
                reason = ruling.refusal
                entry = None if reason else self._alive(self._entries.by_id(id), refusals)
                if entry and self._is_reported(asked, entry.answer):
                    refusals.append("reported_wrong")
                elif entry:
                    yield Hit(entry, "semantic", similarity, candidate=ruling.candidate)
                elif reason in (None, "gone"):
                    self._semantic.forget([id])  # by our hand or another process's
                elif reason != "same_key":
                    refusals.append(reason)

    def refresh(self) -> None:
        """Takes in what other processes know by now."""
        self._entries.refresh_knowledge(self._knowledge)

    def judged(self, hit: Hit) -> tuple[Basis, Verdict]:
        """What a hit rests on, and whether it may be served. What was compared with an update that came in since the
        hit was read is read again, after that update: it may have left the hit as it was."""
        basis = hit.entry.basis
        while (verdict := self._knowledge.judge(basis)) is Verdict.DOUBTFUL and basis.checked is not None:
            entry = self._entries.by_id(hit.entry.id)  # waits for an update under way
            if entry is None or entry.basis == basis:
                break
            basis = entry.basis
        return basis, verdict

    def store(self, asked: Asked, answer: Answer, basis: Basis, found: Sequence[Chunk] | None = None) -> bool:
        """Keeps an answer that ended well and rests on what is still so, and on what was `found`. Otherwise False, and
        why is counted."""
        reason = asked.bypass or unstorable_reason(answer) or (None if restorable(answer) else "not_restorable")
        if reason is None and self._is_reported(asked, answer):
            reason = "reported_wrong"
        if reason is None and self._knowledge.judge(basis) in (Verdict.STALE, Verdict.DOUBTFUL):
            reason = "stale"
        if reason is None:
            reason = self._write(asked, self._entry(asked, answer, basis), self._reach(asked, found))
        self._events.emit("not_stored" if reason else "stored", reason or "")
        return reason is None

    def keep(self, asked: Asked, store: Callable[[], T]) -> T | None:
        """Stores what was made for a request, unless its scope was forgotten since; nothing is forgotten meanwhile."""
        with self._writing:
            return None if self.is_forgotten(asked) else store()

    def record(self, asked: Asked, record: ShadowRecord) -> int | None:
        """Keeps what would have been served; None where its scope was forgotten meanwhile."""
        return self.keep(asked, lambda: self._entries.shadows.store(record))

    def store_verified(self, asked: Asked, hit: Hit, verifier: str) -> None:
        """Keeps that a verifier found two requests to have one answer, unless their scope was forgotten meanwhile."""
        self.keep(asked, lambda: self._entries.verified.store(asked.key, hit.entry.key, verifier))

    def is_verified(self, asked: Asked, hit: Hit, verifier: str) -> bool:
        return self._entries.verified.has(asked.key, hit.entry.key, verifier)

    def is_forgotten(self, asked: Asked) -> bool:
        """Whether what was asked was to be forgotten since it was."""
        return self._forgets.count(asked.request.scope) != asked.began.forgets

    def _reach(self, asked: Asked, found: Sequence[Chunk] | None) -> Reach | None:
        with self._events.fail_open("reach"):
            return self._reaches.of(asked.dialogue.query, found) if self._reaches and found else None
        return None

    def _farther(self, update: KnowledgeUpdate) -> Farther | None:
        """Which answers an update brings nothing for, as far as it can be told."""
        with self._events.fail_open("reach"):
            if self._reaches:
                self.refresh()
                kept = self._entries.reaches.all(self._reaches.similarity.name)
                return self._reaches.farther(self._knowledge.news(update), kept)
        return None

    def _write(self, asked: Asked, entry: Entry, reach: Reach | None) -> str | None:
        """Keeps an entry; otherwise the reason."""
        if self._entries.bytes_of(entry) > self._limits.max_bytes:
            return "too_large"
        with self._writing:
            if self.is_forgotten(asked):
                return "forgotten"
            self._entries.store(entry, reach)
        self._evict()
        return None

    def note_served(self, hit: Hit, basis: Basis) -> None:
        """Counts a hit that its caller took, and keeps what it was found to rest on now. A trouble of that is told, and
        takes nothing back from the caller."""
        with self._events.fail_open("note_served"):
            place = Place.of(hit.candidate) if self._own and hit.candidate else None
            self._entries.use(hit.entry.id, self._limits.clock(), place)
            if basis != hit.entry.basis:
                self._entries.rebase(hit.entry.id, basis)

    def served(self, hit: Hit) -> Answer:
        """The caller's own copy of a hit."""
        layer: ServedBy = hit.layer
        return replace(
            hit.entry.answer,
            served_by=layer,
            similarity=hit.similarity,
            age_seconds=self._age_seconds(hit.entry),
            entry_id=hit.entry.id,
        )

    def report_wrong(self, asked: Asked, answer: Answer) -> bool:
        """Never again serves `answer` for what was asked, nor for what lies nearer to that than to its own question.
        False where no stored answer is that one, or it was never for a request of these settings."""
        entry = self._entries.by_id(answer.entry_id) if answer.entry_id else self._entries.by_key(asked.key)
        if entry is None or not _has_settings(entry, asked):
            return False
        if not answer.entry_id and not _says_the_same(entry.answer, answer):
            return False  # the model's own answer, which was never stored
        self._events.emit("reported_wrong")
        self._entries.store_wrong(asked.key, _content_key(asked, entry.answer), entry.partition, None)
        own = self._entries.by_key(asked.key)
        if own and _says_the_same(own.answer, entry.answer):
            self.forget([own.id])
        if entry.key != asked.key:
            # under another embedder its vectors say nothing of these
            is_near = self._semantic and self._semantic.partition(asked) == entry.partition
            state = self._semantic.state(asked, []) if self._semantic and is_near else None
            self._store_wrong(asked, entry, state)
        return True

    def _is_reported(self, asked: Asked, answer: Answer) -> bool:
        """Whether an answer of the same words was called wrong for this request, whatever it was stored for."""
        return bool(self._entries.wrong_for(_content_key(asked, answer), ""))

    def _store_wrong(self, asked: Asked, entry: Entry, state: State | None) -> None:
        """Notes it against the pair, and against the confidence that the pair was served with."""
        served = None
        if self._own and self._semantic and state and entry.state:
            now = self._limits.clock()
            _, ruling = self._semantic.judge(entry.partition, entry.id, asked, state, now, Everything())
            served = ruling.candidate if ruling.candidate and self._own.policy.accepts(ruling.candidate) else None
        before = self._own.bar(served).needed if self._own and served else 0.0
        place, raw = Place.of(served) if served else None, state.to_bytes() if state else None
        self._entries.store_wrong(asked.key, entry.key, entry.partition, raw, place, self._limits.clock())
        if self._own and served and (bar := self._own.bar(served)).needed > before:
            self._events.emit("bar_raised", bar.kind)

    def update_knowledge(self, update: KnowledgeUpdate) -> int:
        """Takes an update in and returns how many answers a plain lookup no longer serves because of it."""
        served: list[tuple[int, Basis]] = []
        with self._events.fail_open("invalidate"):  # what it makes stale may go uncounted, but never unheard
            touched = self._entries.bases(frozenset([""]) if self._reaches else _sources(update))
            served = [(id, basis) for id, basis in touched if _is_served(self._knowledge.judge(basis))]
        left = self._entries.update_knowledge(self._knowledge, update, self._farther(update))
        count = sum(id not in left and not _is_served(self._knowledge.judge(basis)) for id, basis in served)
        self._events.emit("invalidated", count=count)
        return count

    def forget_where(self, scope: str | None, chunk_ids: Sequence[str] | None, older_than: float | None) -> int:
        """Removes what meets every condition given, and every trace of its text. Raises StoreError where the file
        cannot be written, or where its log alone still holds the text."""
        if self._entries.is_gone:
            return 0
        # whatever is older than nothing is everything, also what was stored before the clock was set back
        before = self._limits.clock() - older_than if older_than else None
        try:
            with self._writing:
                if not older_than:
                    self._forgets.note(scope)  # what is under way now is not old
                if chunk_ids is not None:
                    chunk_ids = [*self._knowledge.with_former(chunk_ids)]
                ids = self._entries.ids(scope=scope, chunk_ids=chunk_ids, created_before=before)
                count = self.forget(ids)
                self._entries.shadows.forget(scope, before, None if chunk_ids is None else ids)
                if scope is None and chunk_ids is None and not older_than:
                    self._entries.forget_evidence()
                self._entries.scrub()
        finally:
            if self._semantic:
                self._semantic.forget_texts()
            if self._reaches:
                self._reaches.forget_texts()
        return count

    def forget(self, ids: Iterable[int]) -> int:
        ids = list(ids)
        gone = self._entries.forget(ids)
        if self._semantic:
            self._semantic.forget(ids)  # now: an index that is opened anew takes in what is there
        return gone

    def _entry(self, asked: Asked, answer: Answer, basis: Basis) -> Entry:
        exact_only = asked.exact_only or answer.exact_only or calls_tools(answer) or self._semantic is None
        state, partition = None, ""
        if self._semantic and not exact_only:
            with self._events.fail_open("embed"):
                state, partition = self._semantic.state(asked, []), self._semantic.partition(asked)
        return Entry(
            asked.key,
            asked.bytes,
            partition,
            asked.request.scope,
            asked.dialogue,
            state.to_bytes() if state else None,
            answer,
            basis,
            self._limits.clock(),
            fact_stems=asked.told.fact_stems if state else frozenset(),
        )

    def _alive(self, entry: Entry | None, refusals: list[str]) -> Entry | None:
        if entry and self._limits.is_expired(entry):
            self.forget([entry.id])
            refusals.append("expired")
            return None
        return entry

    def _age_seconds(self, entry: Entry) -> float:
        return max(0.0, self._limits.clock() - entry.created_at)

    def _evict(self) -> None:
        gone = self._entries.least_used(above_entries=self._limits.max_entries, above_bytes=self._limits.max_bytes)
        if gone:
            self._events.emit("evicted", count=self.forget(gone))


def _is_served(verdict: Verdict) -> bool:
    return verdict in (Verdict.CURRENT, Verdict.RECHECK)


def _sources(update: KnowledgeUpdate) -> frozenset[str]:
    return frozenset(chunk.ref.source for chunk in (*update.added, *update.changed)) | {update.source}


def _content_key(asked: Asked, answer: Answer) -> str:
    """The same for two answers to one request that say the same: the ids and counts beside a text tell of its call
    alone. Nobody finds a short answer by it who does not know the request."""
    return digest("answer", asked.bytes, answer.text or answer.payload)


def _says_the_same(stored: Answer, answer: Answer) -> bool:
    """Of two without a text, the calls of tools, as far as the application gives them."""
    return stored.text == answer.text and bool(stored.text or answer.payload in (None, stored.payload))


def _has_settings(entry: Entry, asked: Asked) -> bool:
    """Whether an entry is of the scope, the model and the options that are asked under, whatever made its vectors."""
    return bool(asked.bytes) and parts(entry.request)[:3] == parts(asked.bytes)[:3]
