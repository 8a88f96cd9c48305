"""Remembered retrievals: which chunks a search found, as long as nothing that could change that has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.layers.recognition import Recognised, recognised
from smartcache.layers.searches import Searches
from smartcache.types import Chunk

_Key = tuple[tuple[int, str], str, str]  # search, scope, query

RECENT_RETRIEVALS = 256  # looked through for what a prompt holds: what it was made from was found just now


@dataclass(frozen=True, slots=True)
class Retrieval:
    chunks: tuple[Chunk, ...]
    basis: Basis


class RetrievalCache:
    """What searches found, in memory, as long as nothing that could change it has changed.

    A search is known by its function object (or its method and the object behind it) and by how that object is set
    (`k`, `filters`, … and what a `functools.partial` adds), so two retrievers never share, nor does one with itself
    where its settings changed; one that cannot be told from others is asked every time.
    """

    def __init__(self, knowledge: Knowledge, *, max_entries: int = 2_000) -> None:
        self._knowledge = knowledge
        self._max_entries = max_entries
        self._found: OrderedDict[_Key, Retrieval] = OrderedDict()
        self._searches = Searches()
        self._lock = threading.Lock()

    def lookup(self, scope: str, query: str, search: object) -> tuple[Chunk, ...] | None:
        with self._lock:
            key = self._key(scope, query, search)
            known = self._found.get(key) if key else None
            if key and known and self._is_current(known):
                self._found.move_to_end(key)
                return known.chunks
            return None

    def store(self, scope: str, query: str, search: object, chunks: tuple[Chunk, ...], sequence: int) -> None:
        """Remembers `chunks`, found by a search that began when `sequence` updates were known."""
        basis = Basis.of(frozenset(chunk.ref for chunk in chunks), chunks, sequence)
        with self._lock:
            if key := self._key(scope, query, search):
                self._found[key] = Retrieval(chunks, basis)
                self._found.move_to_end(key)
                while len(self._found) > self._max_entries:
                    self._found.popitem(last=False)

    def recognise(self, text: str) -> Recognised:
        """Which of the passages found by the last searches `text` holds."""
        with self._lock:
            recent = list(islice(reversed(self._found.items()), RECENT_RETRIEVALS))
        return recognised(text, [(query, known.chunks, self._is_current(known)) for (_, _, query), known in recent])

    def _is_current(self, known: Retrieval) -> bool:
        return self._knowledge.judge(known.basis) is Verdict.CURRENT

    def forget(self, scope: str | None = None, chunk_ids: Sequence[str] | None = None) -> None:
        """Forgets the retrievals that meet every condition given: of `scope`, or that found one of `chunk_ids`."""
        ids = None if chunk_ids is None else set(chunk_ids)
        with self._lock:
            for key, known in list(self._found.items()):
                in_scope = scope is None or key[1] == scope
                if in_scope and (ids is None or any(chunk.ref.id in ids for chunk in known.chunks)):
                    del self._found[key]

    def _key(self, scope: str, query: str, search: object) -> _Key | None:
        known = self._searches.key(search)
        return (known, scope, query) if known else None
