"""What is known now, and whether an answer made from what was known then may still be served."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from smartcache.keys import content_version
from smartcache.types import Chunk, ChunkRef, KnowledgeUpdate


class Verdict(Enum):
    """What the updates since say about something derived from documents."""

    CURRENT = "current"
    RECHECK = "recheck"  # all it rests on is current; a search at hand should still say the same
    DOUBTFUL = "doubtful"  # a chunk came in where it was searched: only a search can tell
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on.

    `evidence`: the chunks, or None where that is unknown. `found`: what its search found, or None where none was made
    for it. `sequence`: how many updates were known before that search began. `contents`: content hashes of evidence
    whose text was seen.
    """

    evidence: frozenset[ChunkRef] | None
    found: frozenset[ChunkRef] | None
    sequence: int
    contents: frozenset[tuple[ChunkRef, str]] = frozenset()

    @classmethod
    def of(cls, evidence: frozenset[ChunkRef] | None, found: tuple[Chunk, ...] | None, sequence: int) -> Basis:
        contents = frozenset((chunk.ref, content_version(chunk.text)) for chunk in found or ())
        return cls(evidence, None if found is None else frozenset(c.ref for c in found), sequence, contents)

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(ref.source for ref in (self.evidence or frozenset()) | (self.found or frozenset()))


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one chunk: its version and content hash, and since which update it is gone (None: it is there).
    A chunk that is gone keeps its last version, so that the same text coming back is known as the same."""

    source: str
    id: str
    version: str
    content: str | None
    gone_since: int | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """Text that came in with update `until`: whatever was searched after update `since` and before it is in doubt."""

    source: str
    kind: Literal["added", "changed"]
    since: int
    until: int


class Knowledge:
    """The versions that updates told of. A chunk no update spoke of counts as unchanged since it was cached.

    A source that is not named, in an update or in evidence, may be any: such an update goes for every source.
    """

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, Fact]] = {}  # by id, then source
        self._growth: dict[tuple[str, str], list[Growth]] = {}
        self._sequence = 0
        self._lock = threading.RLock()

    @property
    def sequence(self) -> int:
        """How many updates are known: taken before a search begins, compared when its outcome is stored or served."""
        return self._sequence

    @property
    def growth(self) -> list[Growth]:
        with self._lock:
            return [grown for known in self._growth.values() for grown in known]

    def apply(self, update: KnowledgeUpdate) -> list[Fact]:
        """Takes an update in, whole or not at all. Returns the facts it states."""
        with self._lock:
            sequence = self._sequence + 1
            there = {(fact.source, fact.id): fact for fact in _versions(update)}
            gone = {(update.source, id) for id in update.removed} - there.keys()
            growth = [self._grown(fact, update, sequence) for key, fact in there.items() if self._fact(*key) != fact]
            facts = [*there.values(), *(self._gone(source, id, sequence) for source, id in sorted(gone))]
            self.load(facts, growth, sequence)
        return facts

    def there(self, source: str) -> frozenset[str]:
        """The ids of the chunks of `source` that updates told of and that are not gone."""
        with self._lock:
            return frozenset(
                id for id, facts in self._facts.items() if source in facts and facts[source].gone_since is None
            )

    def load(self, facts: Iterable[Fact], growth: Iterable[Growth], sequence: int) -> None:
        """Takes in what a store kept."""
        with self._lock:
            for fact in facts:
                self._facts.setdefault(fact.id, {})[fact.source] = fact
            for grown in growth:
                known = self._growth.setdefault((grown.source, grown.kind), [])
                self._growth[grown.source, grown.kind] = _widest([*known, grown])
            self._sequence = max(sequence, self._sequence)

    def judge(self, basis: Basis) -> Verdict:
        """Whether what rests on `basis` may be served, now."""
        with self._lock:
            if basis.evidence is None:
                return Verdict.CURRENT if self._sequence <= basis.sequence else Verdict.STALE
            contents = dict(basis.contents)
            if not all(self._is_current(ref, contents.get(ref)) for ref in basis.evidence):
                return Verdict.STALE
            if self._grew(basis, "added", basis.sources) or (basis.found == frozenset() and self._grew(basis, "added")):
                return Verdict.DOUBTFUL
            searched = basis.found is not None
            recheck = searched and (self._grew(basis, "added") or self._grew(basis, "changed"))
            return Verdict.RECHECK if recheck else Verdict.CURRENT

    def _is_current(self, ref: ChunkRef, content: str | None) -> bool:
        return all(
            fact.gone_since is None
            and fact.version == ref.version
            and (None in (fact.content, content) or fact.content == content)
            for source, fact in self._facts.get(ref.id, {}).items()
            if _may_be_one(source, ref.source)
        )

    def _grew(self, basis: Basis, kind: str, sources: frozenset[str] | None = None) -> bool:
        """Whether text came in, in one of `sources` (None: in any), after the search of `basis` began."""
        return any(
            grown.since <= basis.sequence < grown.until
            for (source, of_kind), known in self._growth.items()
            if of_kind == kind and (sources is None or any(_may_be_one(source, other) for other in sources))
            for grown in known
        )

    def _grown(self, fact: Fact, update: KnowledgeUpdate, sequence: int) -> Growth:
        """The growth that a new fact means: text that came back as it was is new only to what was made without it."""
        before = self._fact(fact.source, fact.id)
        came_back = before is not None and replace(before, gone_since=None) == fact
        since = before.gone_since if came_back and before and before.gone_since else 0
        kind: Literal["added", "changed"] = "changed" if any(c.ref.id == fact.id for c in update.changed) else "added"
        return Growth(fact.source, kind, since, sequence)

    def _gone(self, source: str, id: str, sequence: int) -> Fact:
        known = self._fact(source, id) or Fact(source, id, "", None)
        return known if known.gone_since else replace(known, gone_since=sequence)

    def _fact(self, source: str, id: str) -> Fact | None:
        return self._facts.get(id, {}).get(source)


def _may_be_one(source: str, other: str) -> bool:
    return source == other or "" in (source, other)


def _versions(update: KnowledgeUpdate) -> Iterator[Fact]:
    for chunk in (*update.changed, *update.added):
        source = chunk.ref.source or update.source
        yield Fact(source, chunk.ref.id, chunk.ref.version, content_version(chunk.text))


def _widest(known: list[Growth]) -> list[Growth]:
    """The same growth in at most two spans: what is new to all, and what is new only to what was made since."""
    ever = [grown for grown in known if grown.since == 0]
    since = [grown for grown in known if grown.since > 0]
    newest = max(ever, key=lambda grown: grown.until, default=None)
    union = since and replace(since[0], since=min(g.since for g in since), until=max(g.until for g in since))
    return [grown for grown in (newest, union) if grown]
