"""What shadow mode recorded, on disk: ids and figures, and no text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from smartcache.shadow import ShadowRecord
from smartcache.storage.columns import from_column, to_column

MAX_SHADOW_RECORDS = 20_000


class ShadowRecords:
    """The last `MAX_SHADOW_RECORDS` of them. `read(statement, *values)` and `transaction()` are their store's."""

    def __init__(
        self, read: Callable[..., list[Any]], transaction: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._read, self._transaction = read, transaction

    def store(self, record: ShadowRecord) -> int:
        """Keeps what would have been served, and returns its id."""
        signals = json.dumps(dict(record.signals))
        kept = (record.seconds, to_column(record.scope), record.layer, record.entry_id, record.similarity)
        with self._transaction() as connection:
            row = (*kept, record.accepted, signals, record.same_text, record.answer_similarity)
            id = connection.execute("INSERT INTO shadow VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid or 0
            connection.execute("DELETE FROM shadow WHERE id <= ?", (id - MAX_SHADOW_RECORDS,))
        return id

    def end(self, id: int, same_text: bool, answer_similarity: float | None) -> None:
        """Notes how the model's own answer compares with the one that would have been served."""
        with self._transaction() as connection:
            compared = (same_text, answer_similarity, id)
            connection.execute("UPDATE shadow SET same_text = ?, answer_similarity = ? WHERE id = ?", compared)

    def all(self) -> list[ShadowRecord]:
        """What would have been served, the oldest first."""
        rows = self._read("SELECT * FROM shadow ORDER BY id")
        return [
            ShadowRecord(
                seconds, from_column(scope), layer, entry, similarity, bool(accepted), json.loads(signals),
                None if same is None else bool(same), near,
            )
            for _, seconds, scope, layer, entry, similarity, accepted, signals, same, near in rows
        ]  # fmt: skip

    def forget(self, scope: str | None, before: float | None, ids: Sequence[int] | None) -> None:
        """Removes those that meet every condition given: their scope, their age, the answer they tell of."""
        condition = (
            "(?1 IS NULL OR scope = ?1) AND (?2 IS NULL OR seconds <= ?2) "
            "AND (?3 IS NULL OR entry IN (SELECT value FROM json_each(?3)))"
        )
        values = (None if scope is None else to_column(scope), before, None if ids is None else json.dumps([*ids]))
        with self._transaction() as connection:
            connection.execute(f"DELETE FROM shadow WHERE {condition}", values)
