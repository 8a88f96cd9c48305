"""Questions that are near under their dialogue state: found by vectors, decided by hard facts and a policy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from smartcache.asked import Asked
from smartcache.dialogue import partition_key, unseen_reason
from smartcache.embedding import Embedder, RememberedVectors, Vector, cosine
from smartcache.facts import ReadTexts
from smartcache.layers.judging import ByConfidence, ByRules, Case, Judge, Ruling, near_signals, signals_of
from smartcache.learned import MIN_MEANING, Learned
from smartcache.policy import HitPolicy
from smartcache.signals import Signals, Told
from smartcache.state import State
from smartcache.storage.entries import Entries
from smartcache.storage.rows import dialogue_from
from smartcache.storage.vectors import VectorIndex

SEARCH_ROUNDS = (16, 256)  # candidates asked for: more only where some before them were out of date
READ_AHEAD = ((0, 1), (1, 4), (4, 16), (16, None))
MAX_JUDGED = 8  # of those with no fact against them: of 2,461 hits on the choosing parts one came later
MAX_OPEN_PARTITIONS = 1_000
MAX_CASES = 2_000  # of a partition, with all that was read from their texts


@dataclass
class _Partition:
    """The index over one partition, and the dialogues behind its vectors that were judged last."""

    index: VectorIndex
    last_id: int = 0
    writes: tuple[int, int] = (-1, -1)  # to the store, up to which it was brought up to date
    cases: OrderedDict[int, _Kept] = field(default_factory=OrderedDict)
    fact_stems: dict[int, str] = field(default_factory=dict)  # of the questions that have hard facts, a line each


@dataclass(slots=True)
class _Kept:
    """One of them, and what its entry says of it."""

    key: str
    partition: str
    created_at: float
    case: Case
    is_read: bool = False

    def reading(self) -> Case:
        """The case to judge. What is read from its texts stays from the second time on: most are judged once, and
        whatever stays costs each run of the garbage collector."""
        if self.is_read:
            return self.case
        self.is_read = True
        return Case(Told(replace(self.case.dialogue)), self.case.state)


class SemanticIndex:
    """The vectors of the stored questions, one index for each partition, derived from the entries as they are asked."""

    def __init__(
        self,
        entries: Entries,
        embedder: Embedder,
        policy: HitPolicy,
        read_text: ReadTexts,
        learned: Learned | None = None,
        on_trouble: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        """`on_trouble` hears of what went wrong beside every request."""
        self._entries, self._policy, self._learned = entries, policy, learned
        self._read_text, self._on_trouble = read_text, on_trouble
        self._vectors = RememberedVectors(embedder)
        self._rules = ByRules(self._vectors)
        self._judge: Judge = ByConfidence(self._vectors, learned) if learned else self._rules
        self._partitions: OrderedDict[str, _Partition] = OrderedDict()
        self._forgets = 0
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

    def near(self, partition: str, asked: Asked, state: State, refusals: list[str]) -> Iterator[int]:
        """The ids of what lies nearest, nearest first, without those that name what nobody did who asks now; more of
        them where the nearest were out of date."""
        seen: set[int] = set()
        for count in SEARCH_ROUNDS:
            with self._lock:
                known = self._open(partition)
                found = known.index.lookup(state.vector, count)
                facts = {id: known.fact_stems.get(id) for id, _ in found}
            floor = MIN_MEANING if self._learned and not asked.dialogue.is_chinese else -1.0
            new = [id for id, similarity in found if id not in seen and similarity >= floor]
            if found and not seen and not new:
                refusals.append("far")
            heard = [id for id in new if _is_heard(facts[id], asked)]
            nearest = heard[: MAX_JUDGED * count // SEARCH_ROUNDS[0]]
            yield from self._read_ahead(partition, nearest, len(state.question))
            unheard = set(new).difference(heard)
            refusals += ["facts"] * len(unheard)  # after the reasons of those that were judged
            seen |= unheard.union(nearest)
            if len(found) < count or refusals.count("stale") + refusals.count("expired") < count // 4:
                return

    def judge(
        self, partition: str, id: int, asked: Asked, state: State, now: float, policy: HitPolicy | None = None
    ) -> tuple[float, Ruling]:
        """The similarity of the two questions, and whether the stored answer is one for the one asked. `policy`:
        another than its own.

        What was judged lately is not read from the store again: the caller reads what is accepted, and sees whether it
        is still there.
        """
        kept = self._kept(partition, id, len(state.question))
        if isinstance(kept, str):
            return 0.0, Ruling(kept)
        similarity = cosine(state.question, kept.case.state.question)
        if kept.key == asked.key:
            return similarity, Ruling("same_key")
        ruling = self.rule(Case(asked.told, state), kept.reading(), max(0.0, now - kept.created_at), policy)
        if ruling.refusal is None and self._is_reported(kept, asked, state):
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
        known = (
            near_signals(asked.state, stored.state) | asked.told.shares(stored.told) | asked.told.agrees(stored.told)
        )
        return signals_of(asked, stored, known, self._vectors, self._learned.telling)

    def case(self, partition: str, id: int, dimension: int) -> Case | None:
        """A stored dialogue, None where it is not there."""
        kept = self._kept(partition, id, dimension)
        return None if isinstance(kept, str) else kept.case

    def _read_ahead(self, partition: str, ids: Sequence[int], dimension: int) -> Iterator[int]:
        """The ids, read from the store some at a time: the first alone, as it is mostly the last that is asked for."""
        for start, end in READ_AHEAD:
            self._read(partition, ids[start:end], dimension)
            yield from ids[start:end]

    def _kept(self, partition: str, id: int, dimension: int) -> _Kept | str:
        """A stored dialogue, with what was read from it when it was judged before; "gone" where it is not there."""
        if kept := self._read(partition, [id], dimension).get(id):
            return kept
        return "gone" if self._entries.by_id(id) is None else "exact_only"

    def _read(self, partition: str, ids: Sequence[int], dimension: int) -> dict[int, _Kept]:
        """Those of the stored dialogues that are there and whole."""
        with self._lock:
            cases = self._partitions[partition].cases if partition in self._partitions else self._open(partition).cases
            found = {id: cases[id] for id in ids if id in cases}
            for id in found:
                cases.move_to_end(id)
            forgets = self._forgets
        unknown = [id for id in ids if id not in found]
        if not unknown:
            return found
        for id, key, created_at, dialogue, raw in self._entries.dialogues(unknown):
            with suppress(ValueError):  # damaged: `by_id` sets it aside
                case = Case(Told(dialogue_from(dialogue, self._read_text)), State.from_bytes(raw, dimension))
                _ = case.state.vector
                found[id] = _Kept(key, partition, created_at, case)
        with self._lock:
            if forgets == self._forgets:  # else one of them may be forgotten by now
                cases.update((id, found[id]) for id in unknown if id in found)
            while len(cases) > MAX_CASES:
                cases.popitem(last=False)
        return found

    def forget(self, ids: Iterable[int]) -> None:
        ids = list(ids)
        with self._lock:
            self._forgets += 1
            for partition in self._partitions.values():
                partition.index.forget(ids)
                for id in ids:
                    partition.cases.pop(id, None)
                    partition.fact_stems.pop(id, None)

    def forget_texts(self) -> None:
        """Drops every text and vector that is in memory only to be quick."""
        with self._lock:
            self._forgets += 1
            self._partitions.clear()
        self._vectors.clear()
        self._read_text.clear()

    def _open(self, key: str) -> _Partition:
        """A partition's index, brought up to date with the store. The lock is held."""
        dimension = self._vectors.embedder.dimension
        if key not in self._partitions:
            self._partitions[key] = _Partition(VectorIndex(dimension, on_trouble=self._on_trouble))
        known, writes = self._partitions[key], self._entries.writes
        self._partitions.move_to_end(key)
        rows = self._entries.states(key, known.last_id) if writes != known.writes else []
        known.writes = writes
        if rows:
            whole = [(id, vector) for id, raw, _ in rows if (vector := _vector(raw, dimension)) is not None]
            known.index.store([id for id, _ in whole], [vector for _, vector in whole])
            known.fact_stems.update((id, stems) for id, _, stems in rows if stems)
            known.last_id = rows[-1][0]
        while len(self._partitions) > MAX_OPEN_PARTITIONS:
            self._partitions.popitem(last=False)
        return known

    def _is_reported(self, kept: _Kept, asked: Asked, state: State) -> bool:
        """Whether this answer was called wrong for this question, or for one nearer to it than the answer's own."""
        own = cosine(state.vector, kept.case.state.vector)
        for key, raw in self._entries.wrong_for(kept.key, kept.partition):
            near = raw and cosine(state.vector, State.from_bytes(raw, len(state.question)).vector) >= own
            if key == asked.key or near:
                return True
        return False


def _is_heard(fact_stems: str | None, asked: Asked) -> bool:
    """Whether all that a stored question names may be in what is asked, or was said before it."""
    return fact_stems is None or asked.dialogue.is_chinese or asked.told.heard_stems.issuperset(fact_stems.split("\n"))


def _vector(raw: bytes, dimension: int) -> Vector | None:
    """The vector of a kept state, None where it is damaged: then its entry is found by its key at most."""
    try:
        return State.from_bytes(raw, dimension).vector
    except ValueError:
        return None
