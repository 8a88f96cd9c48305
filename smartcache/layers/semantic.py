"""Questions that are near under their dialogue state: found by vectors, decided by hard facts and a policy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from smartcache.asked import Asked
from smartcache.dialogue import partition_key, unseen_reason
from smartcache.embedding import Embedder, RememberedVectors, Vector, cosine
from smartcache.layers.judging import ByConfidence, ByRules, Case, Judge, Ruling, near_signals, signals_of
from smartcache.learned import MIN_MEANING, Learned
from smartcache.policy import HitPolicy
from smartcache.signals import Signals, Told
from smartcache.state import State
from smartcache.storage.entries import Entries
from smartcache.storage.rows import Entry
from smartcache.storage.vectors import VectorIndex

SEARCH_ROUNDS = (16, 256)  # candidates asked for: more only where some before them were out of date
MAX_OPEN_PARTITIONS = 1_000
MAX_CASES = 2_000  # of a partition, with all that was read from their texts


@dataclass
class _Partition:
    """The index over one partition, and the dialogues behind its vectors that were judged last."""

    index: VectorIndex
    last_id: int = 0
    cases: OrderedDict[int, Case] = field(default_factory=OrderedDict)


class SemanticIndex:
    """The vectors of the stored questions, one index for each partition, derived from the entries as they are asked."""

    def __init__(self, entries: Entries, embedder: Embedder, policy: HitPolicy, learned: Learned | None = None) -> None:
        self._entries, self._policy, self._learned = entries, policy, learned
        self._vectors = RememberedVectors(embedder)
        self._rules = ByRules(self._vectors)
        self._judge: Judge = ByConfidence(self._vectors, learned) if learned else self._rules
        self._partitions: OrderedDict[str, _Partition] = OrderedDict()
        self._lock = threading.RLock()

    def partition(self, asked: Asked) -> str:
        return partition_key(asked.request, self._vectors.embedder, self._learned.name if self._learned else "")

    def state(self, asked: Asked, refusals: list[str]) -> State | None:
        """The vectors of what is asked, or None, the reason added to `refusals`, where they cannot stand for it."""
        unseen = unseen_reason(asked.dialogue, asked.request.turns, self._vectors)
        if unseen:
            refusals.append(unseen)
            return None
        return State.of(asked.dialogue, self._vectors, self._learned.digest if self._learned else None)

    def near(self, asked: Asked, state: State, refusals: list[str]) -> Iterator[int]:
        """The ids of what lies nearest, nearest first; more of them where the nearest were out of date."""
        seen: set[int] = set()
        for count in SEARCH_ROUNDS:
            with self._lock:
                found = self._open(self.partition(asked)).index.lookup(state.vector, count)
            floor = MIN_MEANING if self._learned and not asked.dialogue.is_chinese else -1.0
            new = [id for id, similarity in found if id not in seen and similarity >= floor]
            if found and not seen and not new:
                refusals.append("far")
            yield from new
            seen.update(new)
            if len(found) < count or refusals.count("stale") + refusals.count("expired") < count // 4:
                return

    def judge(
        self, entry: Entry, asked: Asked, state: State, age_seconds: float, policy: HitPolicy | None = None
    ) -> tuple[float, Ruling]:
        """The similarity of the two questions, and whether the stored answer is one for the one asked.

        `policy`: another than its own.
        """
        if entry.state is None:
            return 0.0, Ruling("exact_only")
        stored = self.case(entry, len(state.question))
        similarity = cosine(state.question, stored.state.question)
        ruling = self.rule(Case(asked.told, state), stored, age_seconds, policy)
        if ruling.refusal is None and self._is_reported(entry, asked, state, stored.state):
            ruling = replace(ruling, refusal="reported_wrong")
        return similarity, ruling

    def rule(self, asked: Case, stored: Case, age_seconds: float, policy: HitPolicy | None = None) -> Ruling:
        """Whether one has the answer to the other, but for what was reported."""
        is_chinese = asked.dialogue.is_chinese or stored.dialogue.is_chinese
        return (self._rules if is_chinese else self._judge).judge(asked, stored, age_seconds, policy or self._policy)

    def nearest(self, asked: Asked, state: State, count: int) -> list[int]:
        """The ids of what lies nearest, however far."""
        with self._lock:
            return [id for id, _ in self._open(self.partition(asked)).index.lookup(state.vector, count)]

    def signals(self, asked: Case, stored: Case) -> Signals | None:
        """All that is weighed of a pair; None where rules decide."""
        if self._learned is None or asked.dialogue.is_chinese or stored.dialogue.is_chinese:
            return None
        known = near_signals(asked.state, stored.state) | asked.told.shares(stored.told)
        return signals_of(asked, stored, known, self._vectors)

    def case(self, entry: Entry, dimension: int) -> Case:
        """A stored dialogue, with what was read from it when it was judged before."""
        with self._lock:
            cases = self._open(entry.partition).cases
            if entry.id not in cases:
                cases[entry.id] = Case(Told(entry.dialogue), State.from_bytes(entry.state or b"", dimension))
            cases.move_to_end(entry.id)
            if len(cases) > MAX_CASES:
                cases.popitem(last=False)
            return cases[entry.id]

    def forget(self, ids: Iterable[int]) -> None:
        ids = list(ids)
        with self._lock:
            for partition in self._partitions.values():
                partition.index.forget(ids)
                for id in ids:
                    partition.cases.pop(id, None)

    def forget_texts(self) -> None:
        """Drops every text and vector that is in memory only to be quick."""
        with self._lock:
            self._partitions.clear()
        self._vectors.clear()

    def _open(self, key: str) -> _Partition:
        """A partition's index, brought up to date with the store. The lock is held."""
        dimension = self._vectors.embedder.dimension
        known = self._partitions.setdefault(key, _Partition(VectorIndex(dimension)))
        self._partitions.move_to_end(key)
        rows = self._entries.states(key, known.last_id)
        if rows:
            whole = [(id, vector) for id, raw in rows if (vector := _vector(raw, dimension)) is not None]
            known.index.store([id for id, _ in whole], [vector for _, vector in whole])
            known.last_id = rows[-1][0]
        while len(self._partitions) > MAX_OPEN_PARTITIONS:
            self._partitions.popitem(last=False)
        return known

    def _is_reported(self, entry: Entry, asked: Asked, state: State, stored: State) -> bool:
        """Whether this answer was called wrong for this question, or for one nearer to it than the answer's own."""
        own = cosine(state.vector, stored.vector)
        for key, raw in self._entries.wrong_for(entry.key, entry.partition):
            near = raw and cosine(state.vector, State.from_bytes(raw, len(state.question)).vector) >= own
            if key == asked.key or near:
                return True
        return False


def _vector(raw: bytes, dimension: int) -> Vector | None:
    """The vector of a kept state, None where it is damaged: then its entry is found by its key at most."""
    try:
        return State.from_bytes(raw, dimension).vector
    except ValueError:
        return None
