"""The context of a request: which chunks, remembered retrievals, and the order in which a prompt shares its prefix."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from smartcache.keys import digest
from smartcache.knowledge import Basis, Knowledge, Verdict
from smartcache.layers.recognition import Recognised, recognised
from smartcache.types import Chunk, ChunkRef

Order = Literal["given", "hash"]

RECENT_RETRIEVALS = 256  # looked through for what a prompt holds: what it was made from was found just now


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Chunks in the order in which they enter the prompt, each once.

    `numbers[ref]` is the chunk's rank in the order given, from 1: a citation number that follows the chunk, not its
    place.
    """

    chunks: tuple[Chunk, ...]
    numbers: Mapping[ChunkRef, int] = field(default_factory=dict)


def plan_context(chunks: Sequence[Chunk], *, order: Order = "hash") -> ContextPlan:
    """Puts chunks in an order that prompts can share; `chunks` itself is left as it is.

    "hash": by a hash of identity and content, so that the same set is the same prefix whatever the retriever's order.
    "given": as they come. A chunk that comes twice is kept once, the first time.
    """
    if order not in ("given", "hash"):
        raise ValueError(f"unknown order {order!r}: use 'hash' or 'given'")
    unique = list({chunk.ref: chunk for chunk in reversed(chunks)}.values())[::-1]
    numbers = {chunk.ref: number for number, chunk in enumerate(unique, start=1)}
    ordered = unique if order == "given" else sorted(unique, key=_hash_key)
    return ContextPlan(tuple(ordered), numbers)


def _hash_key(chunk: Chunk) -> str:
    return digest(chunk.ref.source, chunk.ref.id, chunk.ref.version, chunk.text)


@dataclass(frozen=True, slots=True)
class Retrieval:
    chunks: tuple[Chunk, ...]
    basis: Basis


class RetrievalCache:
    """What searches found, in memory, as long as nothing that could change it has changed.

    A search is known by its function object (or its method and the object behind it), so two retrievers never share;
    one that cannot be told from others is asked every time.
    """

    def __init__(self, knowledge: Knowledge, *, max_entries: int = 2_000) -> None:
        self._knowledge = knowledge
        self._max_entries = max_entries
        self._found: OrderedDict[tuple[int, str, str], Retrieval] = OrderedDict()
        self._names: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
        self._named = 0
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

    def _key(self, scope: str, query: str, search: object) -> tuple[int, str, str] | None:
        owner = getattr(search, "__self__", search)
        name = getattr(search, "__name__", "")
        try:
            names = self._names.setdefault(owner, {})
        except TypeError:
            return None
        if name not in names:
            self._named += 1
            names[name] = self._named
        return names[name], scope, query
