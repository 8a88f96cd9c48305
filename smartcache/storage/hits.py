"""The counts of near hits on disk: gathered in memory, written in bulk, shared by the processes over one file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any

from smartcache.evidence import Evidence, Place, faded

REREAD_SECONDS = 86_400.0  # what was read fades meanwhile


class HitCounts:
    """The evidence under one `scale` (what the confidences are of), and what is not written yet. Its holder locks."""

    def __init__(self) -> None:
        self.scale = ""
        self._served: Counter[Place] = Counter()
        self._read: Evidence | None = None
        self._read_at = self._at = 0.0

    def note(self, place: Place, at: float) -> None:
        """A hit was served."""
        self._served[place] += 1
        self._at = at

    def write(self, connection: sqlite3.Connection, reported: Place | None = None, at: float = 0.0) -> None:
        """Adds what was noted to what any process wrote, and a hit that was reported wrong. It is noted until it
        `is_written`: the transaction may fail."""
        for place in self._served.keys() | ({reported} if reported else set()):
            self._add(connection, place, self._served[place], int(place == reported), max(self._at, at))

    def is_written(self) -> None:
        """The transaction of the last `write` has ended well."""
        self._served.clear()
        self._read = None

    def evidence(self, read: Callable[..., list[Any]], now: float) -> Evidence:
        """What is written, as of `now`; `read(statement, *values)` reads it."""
        if self._read is None or now - self._read_at >= REREAD_SECONDS:
            rows = read("SELECT kind, bin, served, reported, at FROM hits WHERE scale = ?", self.scale)
            counts = {Place(k, b): (faded(s, now - at), faded(r, now - at)) for k, b, s, r, at in rows}
            self._read, self._read_at = Evidence(counts), now
        return self._read

    def forget(self, connection: sqlite3.Connection) -> None:
        """Begins anew, under every scale."""
        connection.execute("DELETE FROM hits")
        self._served.clear()
        self._read = None

    def expire(self) -> None:
        """Another process has written."""
        self._read = None

    def _add(self, connection: sqlite3.Connection, place: Place, served: int, reported: int, at: float) -> None:
        key = (self.scale, place.kind, place.bin)
        found = connection.execute(
            "SELECT served, reported, at FROM hits WHERE scale = ? AND kind = ? AND bin = ?", key
        ).fetchone()
        before, wrong, since = found or (0.0, 0.0, at)
        at = max(at, since)  # a clock set back makes nothing younger
        counts = (faded(before, at - since) + served, faded(wrong, at - since) + reported)
        connection.execute("INSERT OR REPLACE INTO hits VALUES (?, ?, ?, ?, ?, ?)", (*key, *counts, at))
