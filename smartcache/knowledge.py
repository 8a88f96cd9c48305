"""What is known now, and whether an answer made from what was known then may still be served."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from smartcache.sameness import agree, content_of, moves, told_apart_by
from smartcache.stated import Fact, Growth, Kind, Replaced, Stated, believed, brought, fewest, of_one
from smartcache.types import Chunk, ChunkRef, KnowledgeUpdate

UNNAMED = "smartcache:unnamed"  # the id of a chunk of no document: it stands for all that a change does not name


class Verdict(Enum):
    """What the updates since say about something derived from documents."""

    CURRENT = "current"
    RECHECK = "recheck"  # all it rests on is current; what a search finds may be other than was found
    DOUBTFUL = "doubtful"  # a chunk came in where it was searched: only a search can tell
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on.

    `evidence`: the chunks, or None where that is unknown. `found`: what its search found, or None where none was made
    for it. `sequence`: how many updates were known before that search began. `contents`: content hashes of evidence
    whose text was seen. `checked`: up to which update all that came in was found to lie farther from the question than
    what was found; None where it cannot be compared.
    """

    evidence: frozenset[ChunkRef] | None
    found: frozenset[ChunkRef] | None
    sequence: int
    contents: dict[ChunkRef, str] = field(default_factory=dict, hash=False)
    checked: int | None = None

    def __post_init__(self) -> None:
        if self.found == self.evidence:  # most often: one set then, which is seen to be one at once
            object.__setattr__(self, "found", self.evidence)

    @classmethod
    def of(cls, evidence: frozenset[ChunkRef] | None, found: tuple[Chunk, ...] | None, sequence: int) -> Basis:
        contents = {chunk.ref: content_of(chunk) for chunk in found or ()}
        return cls(evidence, None if found is None else frozenset(c.ref for c in found), sequence, contents)

    @property
    def sources(self) -> frozenset[str]:
        evidence, found = self.evidence or frozenset(), self.found or frozenset()
        return frozenset([ref.source for ref in (evidence if found is evidence else evidence | found)])


class Knowledge:
    """The versions that updates told of. A chunk no update spoke of counts as unchanged since it was cached.

    A source that is not named, in an update or in evidence, may be any: such an update goes for every source.
    """

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, Fact]] = {}  # by id, then source
        self._growth: dict[tuple[str, Kind], list[Growth]] = {}
        self._anywhere: dict[Kind, list[Growth]] = {}  # of all sources together
        self._replaced = Replaced()
        self._last: dict[Kind, int] = {}  # of all: the update with which text came in last
        self._sequence = 0
        self._shared: int | None = None  # where later updates are known to this process alone
        self._lock = threading.RLock()

    @property
    def sequence(self) -> int:
        """How many updates are known, as all processes count them: taken before a search begins, compared when its
        outcome is stored or served. What this process alone knows has a higher number: it is new to any search."""
        return self._sequence if self._shared is None else self._shared

    def apply(self, update: KnowledgeUpdate, doubted: _Keys = frozenset(), *, is_shared: bool = True) -> Stated:
        """Takes an update in, whole or not at all; not `is_shared`: it has no number that other processes know."""
        with self._lock:
            stated = self.stated(update, doubted)
            if not is_shared:
                self._shared = self.sequence
            self.take(stated)
        return stated

    def stated(self, update: KnowledgeUpdate, doubted: _Keys = frozenset()) -> Stated:
        """What an update states on top of what is known; it is not taken in. `doubted`: the chunks of which neither it
        nor what is known is believed."""
        with self._lock:
            sequence = self._sequence + 1
            there, leaving, moved = self._read(update)
            facts = [self._after(fact, moved) for fact in there.values()]
            facts += [self._after(self._gone(*key, sequence), moved) for key in leaving if key not in there]
            arrived, changed = frozenset(moved.values()), frozenset(chunk.ref.id for chunk in update.changed)
            growth = dict[tuple[str, Kind], list[Growth]]()
            for key, fact in there.items():
                for grown in self._grown(fact, sequence, key in arrived, fact.id in changed, update.replaces):
                    place = (grown.source, grown.kind)
                    growth[place] = fewest([*growth.get(place, self._growth.get(place, ())), grown])
            facts = [replace(fact, told=sequence) for fact in facts if (fact.source, fact.id) not in doubted]
            heirs = {key: known.heirs if (known := self._fact(*key)) else () for key in doubted}
            told = (*facts, *(Fact.doubted(*key, heirs[key], sequence) for key in sorted(doubted)))
            spans = tuple(grown for known in growth.values() for grown in known)
            return Stated(sequence, told, spans, {update.source: sequence} if update.replaces else {})

    def contested(self, update: KnowledgeUpdate, since: int) -> _Keys:
        """The chunks of which others told after `since` updates, and otherwise than `update`, which knew only these: it
        may be older or newer than what they told."""
        with self._lock:
            there, leaving, _ = self._read(update)
            found = set[_Key]()
            for key in {*there, *leaving}:
                later = [fact for fact in self._believed(*key, since) if fact.told > since]
                told = there.get(key)
                if not all(fact.holds(told.version, told.content) if told else fact.gone_since for fact in later):
                    found |= {key, *((fact.source, fact.id) for fact in later)}
        return frozenset(found)

    def take(self, stated: Stated) -> None:
        self.load(stated.facts, stated.growth, stated.sequence, stated.replaced)

    def become(self, other: Knowledge) -> None:
        """Knows what another one does, and nothing else."""
        with self._lock:
            self._facts, self._growth, self._anywhere = other._facts, other._growth, other._anywhere
            self._replaced, self._sequence, self._shared = other._replaced, other._sequence, other._shared
            self._last = other._last

    def news(self, update: KnowledgeUpdate) -> frozenset[Chunk]:
        """The chunks of an update whose text its source does not hold yet."""
        with self._lock:
            there, _, moved = self._read(update)
            new = {key for key, fact in there.items() if not self._has(fact)} - {*moved.values()}
            return frozenset(c for c in (*update.added, *update.changed) if _key(c.ref, update) in new)

    def there(self, source: str) -> frozenset[str]:
        """The ids of the chunks of `source` that updates told of and that are not gone."""
        with self._lock:
            told = ((id, facts.get(source)) for id, facts in self._facts.items() if id != UNNAMED)
            return frozenset(id for id, fact in told if fact and fact.gone_since is None)

    def hears_of(self, source: str) -> bool:
        """Whether any update told of `source`, be it of what is gone."""
        with self._lock:
            return source in self._replaced or any(source in facts for facts in self._facts.values())

    def with_former(self, ids: Iterable[str]) -> frozenset[str]:
        """`ids`, and those under which text of theirs was known before it moved to them."""
        with self._lock:
            former: dict[str, set[str]] = {}
            for fact in (fact for facts in self._facts.values() for fact in facts.values()):
                for _, heir in fact.heirs:
                    former.setdefault(heir, set()).add(fact.id)
        found, new = set[str](), set(ids)
        while new:
            found |= new
            new = {id for heir in new for id in former.get(heir, ())} - found
        return frozenset(found)

    def load(
        self, facts: Iterable[Fact], growth: Iterable[Growth], sequence: int, replaced: Mapping[str, int] | None = None
    ) -> None:
        """Takes in what a store kept."""
        with self._lock:
            for fact in facts:
                self._facts.setdefault(fact.id, {})[fact.source] = fact
            for grown in growth:
                known = self._growth.setdefault((grown.source, grown.kind), [])
                self._growth[grown.source, grown.kind] = fewest([*known, grown])
                self._anywhere[grown.kind] = fewest([*self._anywhere.get(grown.kind, ()), grown])
                self._last[grown.kind] = max(grown.until, self._last.get(grown.kind, 0))
            for source, at in (replaced or {}).items():
                self._replaced.note(source, at)
            self._sequence = max(sequence, self._sequence)

    def judge(self, basis: Basis) -> Verdict:
        """Whether what rests on `basis` may be served, now."""
        with self._lock:
            evidence, found, since = basis.evidence, basis.found, basis.sequence
            if evidence is None:
                return Verdict.CURRENT if self._sequence <= since else Verdict.STALE
            if not self._are_current(evidence, basis):
                return Verdict.STALE
            is_found = not found or found is evidence or self._are_current(found - evidence, basis)
            if basis.checked and is_found:
                since = max(since, basis.checked)
            if self._sequence <= since:  # most often: nothing can have come in
                return Verdict.CURRENT if is_found else Verdict.RECHECK
            place = basis if basis.checked is None else None  # one search may span sources that it found nothing of
            if self._grew("added", since, place) or (not found and found is not None and self._grew("added", since)):
                return Verdict.DOUBTFUL
            if basis.checked is not None and self._grew("changed", since):
                return Verdict.DOUBTFUL
            if found is None:
                return Verdict.CURRENT
            is_same = is_found and not (
                self._grew("changed", since) or self._grew("added", since) or self._grew("moved", since)
            )
            return Verdict.CURRENT if is_same else Verdict.RECHECK

    def confirms(self, basis: Basis, found: Iterable[Chunk]) -> bool:
        """Whether a search found again what `basis` rests on: the same chunks, or the same texts where they are now."""
        expected = (basis.evidence if basis.found is None else basis.found) or frozenset()
        chunks = {chunk.ref: chunk for chunk in found}
        if chunks.keys() == expected:
            return True
        contents = basis.contents
        with self._lock:
            ids = {ref: self._id_now(ref, contents.get(ref), basis.sequence) for ref in expected}
        now = {(ref.source, id): (ref, contents.get(ref)) for ref, id in ids.items()}
        keys = {(ref.source, ref.id): chunk for ref, chunk in chunks.items()}
        return keys.keys() == now.keys() and all(
            agree(now[key][0].version, now[key][1], chunk.ref.version, content_of(chunk)) for key, chunk in keys.items()
        )

    def _are_current(self, refs: Iterable[ChunkRef], basis: Basis) -> bool:
        """Whether all of `refs` are as they were for the search of `basis`."""
        for ref in refs:
            content, known = basis.contents.get(ref), self._facts.get(ref.id)
            if known and len(known) == 1 and ref.source and (fact := known.get(ref.source)):
                # the one fact of this id is of this source: no other, and no whole set, tells of it
                if fact.gone_since is None and fact.content == content and fact.version == ref.version:
                    continue
            elif not known and not self._replaced:
                continue
            if not self._is_current(ref, content, basis.sequence):
                return False
        return True

    def _is_current(self, ref: ChunkRef, content: str | None, sequence: int) -> bool:
        """Whether a chunk is as it was for a search that began after `sequence` updates."""
        known = self._facts.get(ref.id) or {}
        if not all(self._id_of(fact, ref.version, content, sequence) for fact in of_one(known, ref.source)):
            return False
        sources = (ref.source, "") if ref.source else self._replaced.after(sequence)
        return not self._replaced or not any(
            self._replaced.at(source) > sequence and not (source in known if source else known) for source in sources
        )

    def _id_now(self, ref: ChunkRef, content: str | None, sequence: int) -> str:
        fact = self._fact(ref.source, ref.id)
        return (fact and self._id_of(fact, ref.version, content, sequence)) or ref.id

    def _id_of(self, fact: Fact, version: str, content: str | None, sequence: int) -> str | None:
        """The id under which a text is there that was known under that of `fact`, to a search that began after
        `sequence` updates."""
        while not fact.holds(version, content):
            if fact.is_doubted:
                return fact.id if sequence >= fact.told else None
            heir = dict(fact.heirs).get(content or "")
            if heir is None or (next := self._fact(fact.source, heir)) is None:
                return None
            fact = next
        return fact.id

    def _grew(self, kind: Kind, since: int, basis: Basis | None = None) -> bool:
        """Whether text came in after a search that began at `since`, where `basis` rests on any (None: anywhere)."""
        if self._last.get(kind, 0) <= since:
            return False
        if basis is None or "" in (sources := basis.sources):
            known = [self._anywhere.get(kind, ())]
        else:
            known = [self._growth.get((source, kind), ()) for source in (*sources, "") if sources]
        for spans in known:
            for grown in spans:
                if grown.since <= since < grown.until:
                    return True
        return False

    def _read(self, update: KnowledgeUpdate) -> tuple[dict[_Key, Fact], dict[_Key, str | None], dict[_Key, _Key]]:
        """What an update says is there; the chunks whose text leaves them, with that text; and where it went, one for
        one: equal texts are two chunks all the same."""
        there = {(fact.source, fact.id): fact for fact in _versions(update)}
        others = self.there(update.source) if update.replaces else frozenset()
        gone = {(update.source, id) for id in update.removed | others}
        leaving = dict.fromkeys(sorted(gone - there.keys()))
        held = {key: known for key in (*leaving, *there) if (known := self._fact(*key)) and known.gone_since is None}
        left = {key: _text(fact) for key, fact in held.items() if key in leaving or not self._has(there[key])}
        arriving = {key: _text(fact) for key, fact in there.items() if not self._has(fact)}
        return there, leaving | left, moves(left, arriving)

    def _has(self, fact: Fact) -> bool:
        """Whether the chunk is known to hold that text, and nothing that may be of it was told otherwise since."""
        known = self._fact(fact.source, fact.id)
        if known is None or not known.holds(fact.version, fact.content):
            return False
        return all(other.holds(fact.version, fact.content) for other in self._believed(fact.source, fact.id))

    def _believed(self, source: str, id: str, since: int | None = None) -> list[Fact]:
        return believed(self._facts.get(id) or {}, self._replaced, source, id, since)

    def _after(self, fact: Fact, moved: dict[_Key, _Key]) -> Fact:
        """A fact with the heirs of what left its chunk; a text that is there, or left for nowhere, has none."""
        before = self._fact(fact.source, fact.id)
        heirs = {} if before is None else dict(before.heirs)
        heirs.pop(fact.content or "", None)
        if before and before.gone_since is None and not (fact.gone_since is None and self._has(fact)):
            heirs.pop(before.content or "", None)
            if heir := moved.get((fact.source, fact.id)):
                heirs[before.content or ""] = heir[1]
        elif before and before.gone_since and fact.gone_since:
            return before
        return replace(fact, heirs=tuple(sorted(heirs.items())))

    def _grown(
        self, fact: Fact, sequence: int, has_moved: bool, is_told_changed: bool, replaces: bool
    ) -> Iterable[Growth]:
        """The growth that a fact means: none where it says nothing new."""
        before, is_known = self._fact(fact.source, fact.id), self._has(fact)
        if is_known and before and before.version == fact.version:
            return ()
        if is_known or has_moved:
            return [Growth(fact.source, "moved", 0, sequence)]
        return brought(fact, before, self._believed(fact.source, fact.id), sequence, is_told_changed, replaces)

    def _gone(self, source: str, id: str, sequence: int) -> Fact:
        known = self._fact(source, id)
        if known is None or known.gone_since:
            return known or Fact(source, id, "", None, sequence)
        otherwise = [fact for fact in self._believed(source, id) if not fact.holds(known.version, known.content)]
        since = [fact.absent_since or fact.told or sequence for fact in otherwise]  # its text left then, or may have
        return replace(known, gone_since=min([*since, sequence]))

    def _fact(self, source: str, id: str) -> Fact | None:
        return self._facts.get(id, {}).get(source)


_Key = tuple[str, str]  # source and id
_Keys = frozenset[_Key]


def _key(ref: ChunkRef, update: KnowledgeUpdate) -> _Key:
    return ref.source or update.source, ref.id


def _text(fact: Fact) -> str | None:
    return told_apart_by(fact.version, fact.content)


def _versions(update: KnowledgeUpdate) -> Iterator[Fact]:
    for chunk in (*update.changed, *update.added):
        yield Fact(*_key(chunk.ref, update), chunk.ref.version, content_of(chunk))
