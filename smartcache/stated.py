"""What updates state: which text each chunk holds, and where text came in."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Literal

from smartcache.sameness import agree

_DOUBTED = "?"  # in place of a version and of a content hash: neither looks so
MAX_SPANS = 64  # of text that was gone for a time, by kind: of one source, and of all


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one chunk: its version and content hash, and since which update it is gone (None: it is there).
    A chunk that is gone keeps its last version, so that the same text coming back is known as the same. `heirs`: the
    content hashes of texts that left it, and the chunk of the source that came with that text in the same update.
    `told`: the update that told of it last."""

    source: str
    id: str
    version: str
    content: str | None
    gone_since: int | None = None
    heirs: tuple[tuple[str, str], ...] = ()
    told: int = 0

    @classmethod
    def doubted(cls, source: str, id: str, heirs: tuple[tuple[str, str], ...], told: int) -> Fact:
        """That of a chunk of which two processes told otherwise, nobody knows which of them last: what was searched
        before update `told` is not believed, what is searched after it is."""
        return cls(source, id, _DOUBTED, _DOUBTED, None, heirs, told)

    @property
    def is_doubted(self) -> bool:
        return self.content == _DOUBTED and self.gone_since is None

    @property
    def absent_since(self) -> int | None:
        """Since which update the chunk is gone, or may be."""
        return self.told if self.is_doubted else self.gone_since

    @property
    def is_unseen(self) -> bool:
        """Whether all that was told of the chunk is that it is gone."""
        return self.gone_since is not None and self.content is None and not self.version

    def holds(self, version: str, content: str | None) -> bool:
        """Whether the chunk is there, with that version or text."""
        if self.gone_since is None and self.version == version and self.content == content:
            return True
        return self.gone_since is None and agree(self.version, self.content, version, content)


Kind = Literal["added", "changed", "moved"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Text that came in with update `until`: whatever was searched after update `since` and before it is in doubt.

    What "moved" was there before, under another id or in another layout: no text is new.
    """

    source: str
    kind: Kind
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Stated:
    """What an update states, as number `sequence`; `growth`: all that is known of growth of these sources and kinds."""

    sequence: int
    facts: tuple[Fact, ...]
    growth: tuple[Growth, ...]
    replaced: Mapping[str, int]


class Replaced(dict[str, int]):
    """By source: the update that told all that it holds, the last of them."""

    def __init__(self) -> None:
        super().__init__()
        self._in_order = list[tuple[int, str]]()

    def note(self, source: str, at: int) -> None:
        """Knows the source to be told whole by update `at`, where no later one did."""
        before = self.get(source, 0)
        if at > before:
            if before:
                del self._in_order[bisect(self._in_order, (before, source)) - 1]
            insort(self._in_order, (at, source))
            self[source] = at

    def at(self, source: str) -> int:
        """The update that told it last, 0 where none did."""
        return self.get(source, 0)

    def after(self, sequence: int) -> Iterator[str]:
        """The sources that were told whole after update `sequence`, in that order."""
        start = bisect(self._in_order, sequence, key=itemgetter(0))
        return (self._in_order[place][1] for place in range(start, len(self._in_order)))


def of_one(known: Mapping[str, Fact], source: str) -> Iterable[Fact]:
    """Of the facts known under an id, by source, those that may be of its chunk in one source: all where that has no
    name; otherwise its own, and the one without a source where that is newer: what names the source knows better."""
    if not source:
        return known.values()
    own, any = known.get(source), known.get("")
    return [fact for fact in (own, None if own and any and 0 < own.told >= any.told else any) if fact]


def believed(
    known: Mapping[str, Fact], replaced: Replaced, source: str, id: str, since: int | None = None
) -> list[Fact]:
    """Of the facts known under an id, by source: that of its chunk in one source, and what was told since that may be
    of it, where one of the two names no source, or a whole set (`replaced`) left it out: the first that did, which says
    since when it is gone. `since`: another update than the one that told the fact."""
    own = known.get(source)
    told = since if since is not None else own.told if own else 0
    others = [any for any in (known.get(""),) if any] if source else [*known.values()]
    newer = [fact for fact in others if fact is not own and (fact.told > told or not told)]
    wholes = sorted((source, ""), key=replaced.at) if source else replaced.after(told)
    left_out = (at for whole in wholes if (at := replaced.at(whole)) > told and whole not in known)
    gone = [Fact(source, id, "", None, at, told=at) for at in islice(left_out, 1)]
    return [*([own] if own else []), *newer, *gone]


def brought(
    fact: Fact, before: Fact | None, told: list[Fact], sequence: int, is_told_changed: bool, replaces: bool
) -> Iterator[Growth]:
    """The growth that new text of a chunk means; `told`: what was `believed` of it, the fact `before` among that. Text
    that came back as it was is new only to what was made without it, and so is an edit of what was gone: to a search
    made meanwhile it is an addition."""
    gone_since = min((one.absent_since for one in told if one.absent_since), default=None)
    seen = [replace(one, gone_since=None) for one in told if not one.is_unseen]
    is_the_same = all(one.holds(fact.version, fact.content) for one in seen)
    came_back = is_the_same and before is not None and not before.is_unseen
    is_edit = is_told_changed or bool(replaces and before and not gone_since)
    if is_edit and not came_back:
        yield Growth(fact.source, "changed", 0, sequence)
    if gone_since or not is_edit:
        yield Growth(fact.source, "added", (gone_since or 0) if came_back or is_edit else 0, sequence)


def fewest(known: list[Growth]) -> list[Growth]:
    """The same growth in few spans: what is new to all, and what is new only to what was made since. Of more than
    `MAX_SPANS` of these, the oldest are taken together."""
    ever = max((grown for grown in known if grown.since == 0), key=lambda grown: grown.until, default=None)
    spans = list[Growth]()
    for grown in sorted((g for g in known if g.since and not (ever and g.until <= ever.until)), key=lambda g: g.since):
        if spans and grown.since <= spans[-1].until:
            spans[-1] = replace(spans[-1], until=max(grown.until, spans[-1].until))
        else:
            spans.append(grown)
    if surplus := max(0, len(spans) - MAX_SPANS):
        spans = [replace(spans[0], until=spans[surplus].until), *spans[surplus + 1 :]]
    return [*([ever] if ever else []), *spans]
