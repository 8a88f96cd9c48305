"""Answers on disk: the one truth, in SQLite. Everything else is derived from it and rebuilt at will."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from smartcache.errors import DamagedStore, StoreError
from smartcache.evidence import Evidence, Place
from smartcache.knowledge import Basis, Knowledge
from smartcache.reach import Farther, Reach
from smartcache.storage.columns import basis_from, to_column
from smartcache.storage.database import connect, file_in, set_aside, unusable, usable
from smartcache.storage.hits import HitCounts
from smartcache.storage.knowledge_rows import WRITTEN, KeptKnowledge
from smartcache.storage.reaches import KeptReaches
from smartcache.storage.rows import Entry, entry_from, fields_of, size_bytes
from smartcache.storage.shadow_records import ShadowRecords
from smartcache.storage.verified import VerifiedPairs
from smartcache.types import KnowledgeUpdate

MAX_UNWRITTEN_USES = 500
_OF_CHUNKS = (  # found, rested on, or cited; json_valid: one that was damaged is not read
    "(id IN (SELECT entry FROM evidence WHERE chunk IN (SELECT name_in(value) FROM json_each(?))) "
    "OR CASE WHEN json_valid(basis) AND json_valid(answer) THEN json_extract(basis, '$[0]') IS NULL OR EXISTS "
    "(SELECT 1 FROM json_each(answer, '$[3]') AS cited "
    "WHERE name_in(cited.value) IN (SELECT name_in(value) FROM json_each(?))) ELSE TRUE END)"
)
_ANSWERS = "answers LEFT JOIN reaches ON reaches.entry = answers.id"


class Entries:
    """Entries by id, key and partition. One connection, one lock; safe to share between threads, and the file between
    processes.

    What is damaged is told to `on_damage`, kept aside and never served: a file is renamed (with `strict` DamagedStore
    is raised instead), an entry loses its key and partition.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        on_damage: Callable[[DamagedStore], object] = lambda error: None,
        strict: bool = False,
    ) -> None:
        self.path = None if path is None else file_in(path)
        self._on_damage = on_damage
        self._lock = threading.RLock()
        self._uses, self._max_uses = dict[int, float](), MAX_UNWRITTEN_USES
        self.hits = HitCounts()
        self._has_traces = False  # of what was forgotten, in the log
        self._is_closed, self._last_count, self._last_bytes = False, 0, 0
        self.is_gone = False  # closed, and in no file
        try:
            self._connection = connect(self.path)
        except DamagedStore as error:
            if strict or self.path is None:
                raise
            aside = set_aside(self.path)
            on_damage(DamagedStore(f"{error}; it is kept as {aside}, which forget and clear leave: delete it yourself"))
            self._connection = connect(self.path)
        self.shadows = ShadowRecords(self._all, self._transaction)
        self.reaches = KeptReaches(self._all)
        self._knowledge = KeptKnowledge(self._all, self._transaction, self.reaches)
        self.verified = VerifiedPairs(self._all, self._transaction)
        self._version = self._read_version()

    def store(self, entry: Entry, reach: Reach | None = None) -> int:
        """Adds an entry, in place of the one with its key, and returns its id."""
        fields = fields_of(entry)
        row: dict[str, Any] = fields | {"created_at": entry.created_at, "bytes": size_bytes(fields)}
        with self._transaction() as connection:
            latest = connection.execute("SELECT max(used_at) FROM answers").fetchone()[0]
            row["used_at"] = max(entry.created_at, latest or entry.created_at)  # a clock set back makes it no older
            connection.execute("DELETE FROM answers WHERE key = ?", (entry.key,))
            names = ", ".join(row)
            marks = ", ".join("?" * len(row))
            id = connection.execute(f"INSERT INTO answers ({names}) VALUES ({marks})", tuple(row.values())).lastrowid
            if entry.fact_stems and id:
                connection.execute(
                    "INSERT INTO question_facts VALUES (?, ?)", (id, "\n".join(sorted(entry.fact_stems)))
                )
            rests_on = (entry.basis.evidence or frozenset()) | (entry.basis.found or frozenset())
            rows = [(id, to_column(ref.source), to_column(ref.id)) for ref in rests_on]
            connection.executemany("INSERT INTO evidence VALUES (?, ?, ?)", rows)
            if reach and id:
                self.reaches.store(connection, id, reach, entry.basis.sequence)
        return int(id or 0)

    def bytes_of(self, entry: Entry) -> int:
        """How many bytes an entry counts for."""
        return size_bytes(fields_of(entry))

    def by_key(self, key: str, knowledge: Knowledge | None = None) -> Entry | None:
        """The entry under `key`, if any. With one, `knowledge` takes in all that was written when it was read: it may
        be judged by that without `refresh_knowledge`, which costs as much as the reading."""
        return self._one("key = ?", key, knowledge)

    def by_id(self, id: int) -> Entry | None:
        """The entry, or None where there is none that can be trusted."""
        return self._one("id = ?", id)

    def requests(self, limit: int) -> list[bytes]:
        """The requests of the entries that can be served, the last used first."""
        statement = "SELECT request FROM answers WHERE partition != 'damaged' ORDER BY used_at DESC, id DESC LIMIT ?"
        return [request for (request,) in self._all(statement, limit)]

    def states(self, partition: str, after: int = 0) -> list[tuple[int, bytes, str | None]]:
        """(id, state, the stems of its question's hard facts, a line each) of the partition's entries with an id above
        `after`, in order of their ids."""
        which = "partition = ? AND id > ? AND state IS NOT NULL"
        joined = "answers LEFT JOIN question_facts ON entry = id"
        return self._all(f"SELECT id, state, stems FROM {joined} WHERE {which} ORDER BY id", partition, after)

    @property
    def writes(self) -> tuple[int, int]:
        """Changes with each write to the store: by us, and by others as far as a refresh has seen."""
        with self._lock, usable(self.path):
            return self._version, self._connection.total_changes

    def dialogues(self, ids: Sequence[int]) -> list[tuple[int, str, float, bytes, bytes]]:
        """(id, key, creation, dialogue, state) of those that are there with a state. They may be damaged:
        what is served is read by `by_id`."""
        names, marks = "id, key, created_at, CAST(dialogue AS BLOB), state", ", ".join("?" * len(ids))
        return self._all(f"SELECT {names} FROM answers WHERE id IN ({marks}) AND state IS NOT NULL", *ids)

    def rebase(self, id: int, basis: Basis) -> None:
        """Replaces what an entry rests on, after a search has said the same again."""
        entry = self.by_id(id)
        if entry:
            fields = fields_of(replace(entry, basis=basis))
            with self._transaction() as connection:
                changed = (fields["basis"], fields["checksum"], id)
                connection.execute("UPDATE answers SET basis = ?, checksum = ? WHERE id = ?", changed)

    def use(self, id: int, at: float, place: Place | None = None) -> None:
        """Notes that an entry was served, and how surely where it was a near one; written in bulk."""
        with self._lock:
            self._uses[id] = at
            if place:
                self.hits.note(place, at)
            if len(self._uses) >= self._max_uses:
                self._write_uses()

    def forget(self, ids: Iterable[int]) -> int:
        """Removes entries, their text overwritten on disk. Returns how many were there."""
        with self._transaction() as connection:
            gone = [connection.execute("DELETE FROM answers WHERE id = ?", (id,)).rowcount for id in ids]
        return sum(gone)

    def scrub(self) -> None:
        """Leaves no trace of what was forgotten: not in the write-ahead log, nor the vectors of its wrong questions.

        Raises StoreError where the log cannot be emptied now; the next `scrub` tries again, and so does `close`.
        """
        with self._transaction() as connection:
            connection.execute("UPDATE wrong SET state = NULL WHERE answer NOT IN (SELECT key FROM answers)")
            self.verified.scrub(connection)
        self._empty_log()

    def _empty_log(self) -> None:
        self._has_traces = bool(self._all("PRAGMA wal_checkpoint(TRUNCATE)")[0][0])
        if self._has_traces:
            log = f"{self.path}-wal"
            raise StoreError(f"what was forgotten is gone, but for {log}, which another reader holds: forget it again")

    def ids(
        self, *, scope: str | None = None, chunk_ids: Sequence[str] | None = None, created_before: float | None = None
    ) -> list[int]:
        """Ids of the entries that meet every condition given; what rests on nobody knows what meets any `chunk_ids`."""
        conditions, values = ["TRUE"], list[Any]()
        if scope is not None:
            conditions, values = [*conditions, "scope = ?"], [*values, to_column(scope)]
        if created_before is not None:
            conditions, values = [*conditions, "created_at <= ?"], [*values, created_before]
        if chunk_ids is not None:
            ids = json.dumps([[id] for id in chunk_ids])
            conditions, values = [*conditions, _OF_CHUNKS], [*values, ids, ids]
        return [id for (id,) in self._all(f"SELECT id FROM answers WHERE {' AND '.join(conditions)}", *values)]

    def least_used(self, *, above_entries: int, above_bytes: int) -> list[int]:
        """The ids to evict, longest unused first, so that no more than so many entries and bytes stay."""
        with self._lock:
            self._write_uses()
        count, size = self.count(), self.size_bytes()
        if count <= above_entries and size <= above_bytes:
            return []
        gone = []
        for id, own in self._all("SELECT id, bytes FROM answers ORDER BY used_at, id LIMIT ?", max(64, count // 8)):
            if count <= above_entries and size <= above_bytes:
                break
            gone.append(id)
            count, size = count - 1, size - own
        return gone

    def bases(self, sources: frozenset[str]) -> list[tuple[int, Basis]]:
        """(id, basis) of the entries that an update of `sources` may concern ("" among them: all)."""
        named = json.dumps([[source] for source in sorted(sources)]) if "" not in sources else "[]"
        condition = (
            "json_array_length(?1) = 0 OR id NOT IN (SELECT entry FROM evidence) OR id IN "
            "(SELECT entry FROM evidence WHERE source = '' OR source IN (SELECT name_in(value) FROM json_each(?1)))"
        )
        rows = self._all(f"SELECT id, basis, checked FROM {_ANSWERS} WHERE {condition}", named)
        return [(id, basis_from(text, checked)) for id, text, checked in rows]

    def count(self) -> int:
        return self._last_count if self._is_closed else int(self._all("SELECT count(*) FROM answers")[0][0])

    def size_bytes(self) -> int:
        return (
            self._last_bytes if self._is_closed else int(self._all("SELECT coalesce(sum(bytes), 0) FROM answers")[0][0])
        )

    def update_knowledge(
        self, knowledge: Knowledge, update: KnowledgeUpdate, farther: Farther | None = None
    ) -> frozenset[int]:
        """Applies an update on top of what other processes wrote, and writes it, in one transaction. Returns the ids of
        those `farther` that it leaves as current as they were.

        Where the write fails, StoreError is raised, `knowledge` has it all the same, and the next one writes both.
        Without a file there is nothing that could outlive the news: it is not raised.
        """
        with self._lock:
            try:
                return self._knowledge.update(knowledge, update, farther)
            except StoreError as error:
                if self.path is None:
                    return frozenset()
                raise StoreError(f"the knowledge update was not written: {error}; call it again") from error

    def load_knowledge(self, knowledge: Knowledge) -> None:
        """Takes in what any process wrote, below what this one could not write."""
        with self._lock:
            self._knowledge.refresh(knowledge)

    def store_wrong(
        self, asked: str, answer: str, partition: str, state: bytes | None, place: Place | None = None, at: float = 0.0
    ) -> None:
        """Notes that the answer under key `answer` is wrong for the request with key and state `asked`; a near hit
        (`place`) is counted once."""
        with self._hits_written() as connection:
            pair = connection.execute("SELECT 1 FROM wrong WHERE asked = ? AND answer = ?", (asked, answer))
            self.hits.write(connection, None if pair.fetchone() else place, at)
            connection.execute("INSERT OR REPLACE INTO wrong VALUES (?, ?, ?, ?)", (asked, answer, partition, state))
            self.verified.forget(connection, asked, answer)

    def evidence(self, now: float) -> Evidence:
        """What the near hits of every process came to."""
        with self._lock:
            return self.hits.evidence(self._all, now)

    def forget_evidence(self) -> None:
        with self._transaction() as connection:
            self.hits.forget(connection)

    def wrong_for(self, answer: str, partition: str) -> list[tuple[str, bytes | None]]:
        """(key, state) of the requests that the answer was wrong for; a state of another partition is None."""
        state = "CASE WHEN partition = ? THEN state END"  # its vectors may be another embedder's
        return self._all(f"SELECT asked, {state} FROM wrong WHERE answer = ?", partition, answer)

    def refresh_knowledge(self, knowledge: Knowledge) -> None:
        """As `load_knowledge`, where another process has written since. Who asks meanwhile waits for it."""
        with self._lock:
            version = self._read_version()
            if version != self._version:
                self.load_knowledge(knowledge)
                self.hits.expire()
                self._version = version

    def close(self) -> None:
        """Ends it; what `count` and `size_bytes` say stays."""
        with self._lock:
            if self._is_closed:
                return
            try:
                self._write_uses()
                self._last_count, self._last_bytes = self.count(), self.size_bytes()
                if self._has_traces:
                    self._empty_log()
            finally:
                self._is_closed, self.is_gone = True, self.path is None
                self._connection.close()

    def _one(self, condition: str, value: Any, knowledge: Knowledge | None = None) -> Entry | None:
        names = "id, key, request, partition, scope, dialogue, state, answer, basis, created_at, checksum, checked"
        news = WRITTEN if knowledge else "NULL"
        rows = self._all(f"SELECT {news}, {names} FROM {_ANSWERS} WHERE {condition}", value)
        if not rows:
            return None
        written, *row = rows[0]
        if knowledge and written != knowledge.sequence:
            self.load_knowledge(knowledge)
        try:
            return entry_from(*row)
        except DamagedStore as error:
            with self._transaction() as connection:
                aside = "UPDATE answers SET key = 'damaged ' || id, partition = 'damaged', state = NULL WHERE id = ?"
                connection.execute(aside, (row[0],))
            self._on_damage(error)
            return None

    def _all(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            try:  # by hand: this is most of what there is to a hit
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise unusable(self.path, error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, usable(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite may have ended it itself: the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    def _write_uses(self) -> None:
        """Writes what was noted of uses, or keeps it for a later time: not the next, which would fail as well."""
        self._max_uses = len(self._uses) + MAX_UNWRITTEN_USES
        if self._uses:
            with self._hits_written() as connection:
                rows = [(at, id) for id, at in self._uses.items()]
                connection.executemany("UPDATE answers SET used_at = max(used_at, ?) WHERE id = ?", rows)
                self.hits.write(connection)
        self._uses, self._max_uses = {}, MAX_UNWRITTEN_USES

    @contextmanager
    def _hits_written(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            with self._transaction() as connection:
                yield connection
            self.hits.is_written()

    def _read_version(self) -> int:
        return int(self._all("PRAGMA data_version")[0][0])
