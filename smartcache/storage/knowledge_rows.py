"""What updates told of, as rows of the database: written with each update, read by every process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from smartcache.knowledge import Fact, Growth, Knowledge
from smartcache.storage.columns import from_column, to_column


def write_knowledge(connection: sqlite3.Connection, knowledge: Knowledge, facts: Sequence[Fact]) -> None:
    """Writes `facts`, what grew in their sources, and all else that `knowledge` has; inside a transaction."""
    rows = [(*map(to_column, (f.source, f.id, f.version)), f.content, f.gone_since) for f in facts]
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", rows)
    chunks = [(to_column(fact.source), to_column(fact.id)) for fact in facts]
    connection.executemany("DELETE FROM heirs WHERE source = ? AND chunk = ?", chunks)
    heirs = [(*map(to_column, (f.source, f.id)), text, to_column(heir)) for f in facts for text, heir in f.heirs]
    connection.executemany("INSERT OR REPLACE INTO heirs VALUES (?, ?, ?, ?)", heirs)
    replaced = [(to_column(source), at) for source, at in knowledge.replaced.items()]
    connection.executemany("INSERT OR REPLACE INTO replaced VALUES (?, ?)", replaced)
    sources = {fact.source for fact in facts}
    connection.executemany("DELETE FROM growth WHERE source = ?", [(to_column(source),) for source in sources])
    spans = [(to_column(g.source), g.kind, g.since, g.until) for g in knowledge.growth if g.source in sources]
    connection.executemany("INSERT INTO growth VALUES (?, ?, ?, ?)", spans)
    connection.execute("INSERT OR REPLACE INTO counters VALUES ('knowledge', ?)", (knowledge.sequence,))


def load_knowledge(read: Callable[..., list[Any]], knowledge: Knowledge) -> None:
    """Takes in what any process wrote."""
    heirs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source, chunk, content, heir in read("SELECT source, chunk, content, heir FROM heirs"):
        heirs.setdefault((source, chunk), []).append((content, from_column(heir)))
    facts = [
        Fact(from_column(s), from_column(c), from_column(v), text, gone, tuple(sorted(heirs.get((s, c), ()))))
        for s, c, v, text, gone in read("SELECT source, chunk, version, content, gone_since FROM facts")
    ]
    growth = [Growth(from_column(s), *rest) for s, *rest in read("SELECT source, kind, since, until FROM growth")]
    counted = read("SELECT value FROM counters WHERE name = 'knowledge'")
    replaced = {from_column(source): at for source, at in read("SELECT source, sequence FROM replaced")}
    knowledge.load(facts, growth, int(counted[0][0]) if counted else 0, replaced)
