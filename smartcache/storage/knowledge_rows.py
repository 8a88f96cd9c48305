"""What updates told of, as rows of the database: written with each update, read by every process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from smartcache.errors import StoreError
from smartcache.knowledge import Knowledge, Verdict
from smartcache.reach import Farther
from smartcache.stated import Fact, Growth, Stated
from smartcache.storage.columns import basis_from, from_column, to_column
from smartcache.storage.reaches import KeptReaches
from smartcache.types import KnowledgeUpdate

WRITTEN = "coalesce((SELECT value FROM counters WHERE name = 'knowledge'), 0)"  # how many updates are


class KeptKnowledge:
    """The knowledge of all processes over one file. `read(statement, *values)` and `transaction()` are their store's;
    its holder locks."""

    def __init__(
        self,
        read: Callable[..., list[Any]],
        transaction: Callable[[], AbstractContextManager[sqlite3.Connection]],
        reaches: KeptReaches,
    ) -> None:
        self._read, self._transaction, self._reaches = read, transaction, reaches
        # known to this process alone, on top of all that is written; each with how many of these it was told after
        self._unwritten: list[tuple[KnowledgeUpdate, int]] = []

    def refresh(self, knowledge: Knowledge) -> None:
        """Takes in what any process wrote since, and what this one could not write, on top of it."""
        if not self._unwritten:
            _load(self._read, knowledge)
        else:
            now = self._written()
            for update, doubted in self._contested(now):
                now.apply(update, doubted, is_shared=False)
            knowledge.become(now)

    def update(self, knowledge: Knowledge, update: KnowledgeUpdate, farther: Farther | None) -> frozenset[int]:
        """Takes an update in and writes it, on top of what was not written before. Returns the ids of those `farther`
        that it leaves as current as they were.

        Where the write fails, StoreError is raised and `knowledge` has it all the same.
        """
        # told again after a failure, it is as old as it was then
        since = min((since for waiting, since in self._unwritten if waiting == update), default=None)
        try:
            with self._transaction() as connection:
                if not self._unwritten:
                    _load(self._read, knowledge)
                left = self._left_current(knowledge, update, farther)
                now = self._written() if self._unwritten else knowledge
                doubted = frozenset() if since is None else now.contested(update, since)
                for waiting, contested in self._contested(now):
                    _write(connection, now.apply(waiting, contested))
                stated = now.stated(update, doubted)  # taken in when it is written: it may fail, and has no number then
                _write(connection, stated)
                self._reaches.advance(connection, left, stated.sequence)
        except StoreError:
            self._keep(knowledge, update, knowledge.sequence if since is None else since)
            raise
        now.take(stated)
        if self._unwritten:
            knowledge.become(now)
            self._unwritten.clear()
        return left

    def _keep(self, knowledge: Knowledge, update: KnowledgeUpdate, since: int) -> None:
        """Has this process know what could not be written, on top of what others wrote if that can be read."""
        self._unwritten.append((update, since))
        try:
            self.refresh(knowledge)
        except StoreError:
            knowledge.apply(update, is_shared=False)

    def _contested(self, written: Knowledge) -> list[tuple[KnowledgeUpdate, frozenset[tuple[str, str]]]]:
        """What was not written, each with the chunks of which others told since, and otherwise."""
        return [(update, written.contested(update, since)) for update, since in self._unwritten]

    def _written(self) -> Knowledge:
        knowledge = Knowledge()
        _load(self._read, knowledge)
        return knowledge

    def _left_current(self, knowledge: Knowledge, update: KnowledgeUpdate, farther: Farther | None) -> frozenset[int]:
        """Those of the entries compared that are current before an update, if all that it brings was compared."""
        if farther is None or self._unwritten or not knowledge.news(update) <= farther.chunks:
            return frozenset()
        within = "id IN (SELECT value FROM json_each(?))"
        statement = f"SELECT id, basis, checked FROM answers LEFT JOIN reaches ON entry = id WHERE {within}"
        bases = [(id, basis_from(*rest)) for id, *rest in self._read(statement, json.dumps(sorted(farther.entries)))]
        return frozenset(id for id, basis in bases if knowledge.judge(basis) is Verdict.CURRENT)


def _write(connection: sqlite3.Connection, stated: Stated) -> None:
    """Writes what an update states; inside a transaction."""
    facts = stated.facts
    rows = [(*map(to_column, (f.source, f.id, f.version)), f.content, f.gone_since) for f in facts]
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", rows)
    chunks = [(to_column(fact.source), to_column(fact.id)) for fact in facts]
    connection.executemany("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", [(*c, stated.sequence) for c in chunks])
    connection.executemany("DELETE FROM heirs WHERE source = ? AND chunk = ?", chunks)
    heirs = [(*map(to_column, (f.source, f.id)), text, to_column(heir)) for f in facts for text, heir in f.heirs]
    connection.executemany("INSERT OR REPLACE INTO heirs VALUES (?, ?, ?, ?)", heirs)
    replaced = [(to_column(source), at) for source, at in stated.replaced.items()]
    connection.executemany("INSERT OR REPLACE INTO replaced VALUES (?, ?)", replaced)
    spans = [(to_column(g.source), g.kind, g.since, g.until) for g in stated.growth]
    connection.executemany("DELETE FROM growth WHERE source = ? AND kind = ?", [span[:2] for span in spans])
    connection.executemany("INSERT INTO growth VALUES (?, ?, ?, ?)", spans)
    connection.execute("INSERT OR REPLACE INTO counters VALUES ('knowledge', ?)", (stated.sequence,))


def _load(read: Callable[..., list[Any]], knowledge: Knowledge) -> None:
    """Takes in what was written since the last update that `knowledge` knows; one that knows none, everything."""
    # read first: what follows may have a part of an update written meanwhile, which is read again by its number
    sequence, known = int(read(f"SELECT {WRITTEN}")[0][0]), knowledge.sequence
    if sequence == known:
        return
    since = "" if known == 0 else "WHERE told.sequence > ?"
    values = () if known == 0 else (known,)
    heirs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source, chunk, content, heir in read(f"SELECT heirs.* FROM heirs {_TOLD} {since}", *values):
        heirs.setdefault((source, chunk), []).append((content, from_column(heir)))
    rows = read(f"SELECT facts.*, told.sequence FROM facts {_TOLD} {since}", *values)
    facts = [
        Fact(from_column(s), from_column(c), from_column(v), text, gone, tuple(sorted(heirs.get((s, c), ()))), at or 0)
        for s, c, v, text, gone, at in rows
    ]
    growth = read("SELECT source, kind, since, until FROM growth WHERE until > ?", known)
    replaced = read("SELECT source, sequence FROM replaced WHERE sequence > ?", known)
    spans = [Growth(from_column(source), *rest) for source, *rest in growth]
    knowledge.load(facts, spans, sequence, {from_column(source): at for source, at in replaced})


_TOLD = "LEFT JOIN told USING (source, chunk)"
