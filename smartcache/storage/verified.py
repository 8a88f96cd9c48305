"""Which pairs of requests a verifier found to have one answer, on disk: their keys, and no text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

MAX_VERIFIED_PAIRS = 20_000


class VerifiedPairs:
    """The last `MAX_VERIFIED_PAIRS` of them. `read(statement, *values)` and `transaction()` are their store's."""

    def __init__(
        self, read: Callable[..., list[Any]], transaction: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._read, self._transaction = read, transaction

    def store(self, asked: str, answer: str, verifier: str) -> None:
        """Keeps that the requests with these keys have one answer."""
        with self._transaction() as connection:
            pair = (*sorted((asked, answer)), verifier)
            id = connection.execute("INSERT OR REPLACE INTO verified VALUES (?, ?, ?)", pair).lastrowid or 0
            connection.execute("DELETE FROM verified WHERE rowid <= ?", (id - MAX_VERIFIED_PAIRS,))

    def has(self, asked: str, answer: str, verifier: str) -> bool:
        pair = (*sorted((asked, answer)), verifier)
        return bool(self._read("SELECT 1 FROM verified WHERE one = ? AND other = ? AND verifier = ?", *pair))

    def forget(self, connection: sqlite3.Connection, asked: str, answer: str) -> None:
        """Takes back what any verifier said of a pair."""
        connection.execute("DELETE FROM verified WHERE one = ? AND other = ?", sorted((asked, answer)))

    def scrub(self, connection: sqlite3.Connection) -> None:
        """Drops the pairs whose answers are gone."""
        gone = "one NOT IN (SELECT key FROM answers) AND other NOT IN (SELECT key FROM answers)"
        connection.execute(f"DELETE FROM verified WHERE {gone}")
