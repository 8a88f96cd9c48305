"""The reaches of what the stored answers' searches found, on disk, and up to which update they were compared."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from smartcache.embedding import Vector
from smartcache.reach import Reach


class KeptReaches:
    """One for each entry that has any; it goes with its entry. `read(statement, *values)` is their store's."""

    def __init__(self, read: Callable[..., list[Any]]) -> None:
        self._read = read

    def store(self, connection: sqlite3.Connection, entry: int, reach: Reach, sequence: int) -> None:
        """Keeps that of a search that began after `sequence` updates."""
        row = (entry, reach.similarity, reach.weakest, np.asarray(reach.query, "<f4").tobytes(), sequence)
        connection.execute("INSERT OR REPLACE INTO reaches VALUES (?, ?, ?, ?, ?)", row)

    def all(self, similarity: str) -> list[tuple[int, float, Vector]]:
        """(entry, weakest similarity, query) of those by one similarity."""
        rows = self._read("SELECT entry, weakest, query FROM reaches WHERE similarity = ?", similarity)
        return [(entry, weakest, np.frombuffer(query, "<f4")) for entry, weakest, query in rows]

    def advance(self, connection: sqlite3.Connection, entries: Iterable[int], sequence: int) -> None:
        """Notes that all that came in up to update `sequence` lies farther."""
        rows = [(sequence, entry) for entry in entries]
        connection.executemany("UPDATE reaches SET checked = ? WHERE entry = ?", rows)
