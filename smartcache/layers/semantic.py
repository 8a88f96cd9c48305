"""Questions that are near under their dialogue state: found by vectors, decided by hard facts and a policy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from smartcache import chinese
from smartcache.asked import Asked
from smartcache.dialogue import Dialogue, State, partition_key, unseen_reason
from smartcache.embedding import Embedder, RememberedVectors, Vector, cosine
from smartcache.focus import focus, unnamed
from smartcache.policy import Candidate, HitPolicy
from smartcache.storage.entries import Entries
from smartcache.storage.rows import Entry
from smartcache.storage.vectors import VectorIndex

SEARCH_ROUNDS = (16, 256)  # candidates asked for: more only where some before them were out of date
MAX_OPEN_PARTITIONS = 1_000


@dataclass
class _Partition:
    """The index over one partition, and the dialogues behind its vectors with the facts that were read from them."""

    index: VectorIndex
    last_id: int = 0
    dialogues: dict[int, Dialogue] = field(default_factory=dict)


class SemanticIndex:
    """The vectors of the stored questions, one index for each partition, derived from the entries as they are asked."""

    def __init__(self, entries: Entries, embedder: Embedder, policy: HitPolicy) -> None:
        self._entries, self._policy = entries, policy
        self._vectors = RememberedVectors(embedder)
        self._partitions: OrderedDict[str, _Partition] = OrderedDict()
        self._lock = threading.RLock()

    def partition(self, asked: Asked) -> str:
        return partition_key(asked.request, self._vectors.embedder)

    def state(self, asked: Asked, refusals: list[str]) -> State | None:
        """The vectors of what is asked, or None, the reason added to `refusals`, where they cannot stand for it."""
        unseen = unseen_reason(asked.dialogue, asked.request.turns, self._vectors)
        if unseen:
            refusals.append(unseen)
            return None
        return State.of(asked.dialogue, self._vectors)

    def near(self, asked: Asked, state: State, refusals: list[str]) -> Iterator[int]:
        """The ids of what lies nearest, nearest first; more of them where the nearest were out of date."""
        seen: set[int] = set()
        for count in SEARCH_ROUNDS:
            with self._lock:
                found = self._open(self.partition(asked)).index.lookup(state.vector, count)
            new = [id for id, _ in found if id not in seen]
            yield from new
            seen.update(new)
            if len(found) < count or refusals.count("stale") + refusals.count("expired") < count // 4:
                return

    def judge(
        self, entry: Entry, asked: Asked, state: State, age_seconds: float, policy: HitPolicy | None = None
    ) -> tuple[float, str | None]:
        """The similarity of the two questions, and why the stored answer is none for the one asked, or None.

        `policy`: another than its own.
        """
        policy = policy or self._policy
        if entry.state is None:
            return 0.0, "exact_only"
        stored = State.from_bytes(entry.state, len(state.question))
        similarity = cosine(state.question, stored.question)
        with self._lock:
            dialogue = self._open(entry.partition).dialogues.setdefault(entry.id, entry.dialogue)
        if conflict := asked.dialogue.conflict(dialogue):
            return similarity, conflict
        if (state.context is None) != (stored.context is None):  # kept when another rule told what stands alone
            return similarity, "context"
        candidate = Candidate(
            asked.dialogue.question,
            dialogue.question,
            similarity,
            # the turns before a Chinese question were compared as they are: their vectors only find it
            context_similarity=None if asked.dialogue.is_chinese else _context_similarity(state, stored),
            same_names=asked.dialogue.names_the_same(dialogue),
            age_seconds=age_seconds,
        )
        if not policy.accepts(candidate) or not self._accepts_focus(policy, candidate, asked.dialogue, dialogue):
            return similarity, "far"
        return similarity, "reported_wrong" if self._is_reported(entry, asked, state, stored) else None

    def forget(self, ids: Iterable[int]) -> None:
        ids = list(ids)
        with self._lock:
            for partition in self._partitions.values():
                partition.index.forget(ids)
                for id in ids:
                    partition.dialogues.pop(id, None)

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

    def _accepts_focus(self, policy: HitPolicy, candidate: Candidate, asked: Dialogue, stored: Dialogue) -> bool:
        """Whether what the two differ in is near enough too; embedded for what is near as a whole only."""
        similarity = self._focus_similarity(asked, stored)
        return similarity is None or policy.accepts(replace(candidate, focus_similarity=similarity))

    def _focus_similarity(self, asked: Dialogue, stored: Dialogue) -> float | None:
        """How alike what the two differ in is, in the question and in what the user stated before; None where they
        differ in nothing but their wording."""
        if asked.asking:
            return None
        names = asked.question_facts.names & stored.question_facts.names
        pairs = [
            focus(asked.question, stored.question),
            focus(asked.stated, stored.stated),
            unnamed(asked.question, stored.question, names),
        ]
        if asked.is_chinese:
            pairs = [chinese.focus(asked.question, stored.question)]
        similarities = [cosine(*self._vectors(pair)) if all(pair) else 0.0 for pair in pairs if pair]
        return min(similarities, default=None)


def _vector(raw: bytes, dimension: int) -> Vector | None:
    """The vector of a kept state, None where it is damaged: then its entry is found by its key at most."""
    try:
        return State.from_bytes(raw, dimension).vector
    except ValueError:
        return None


def _context_similarity(one: State, other: State) -> float | None:
    if one.context is None or other.context is None:
        return None
    return cosine(one.context, other.context)
