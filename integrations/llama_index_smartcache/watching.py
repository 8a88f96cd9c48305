"""Watches what an index writes, so that answers die with the documents they rest on."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import uuid4

from llama_index.core.indices.base import BaseIndex

from llama_index_smartcache.arguments import check_index, checked_cache
from llama_index_smartcache.coverage import noted
from llama_index_smartcache.inventory import Inventory
from smartcache import Chunk, ChunkRef, KnowledgeUpdate, SmartCache
from smartcache.knowledge import UNNAMED

# What writes, by the name of the method or of its async twin.
INDEX_WRITES = {
    "insert_nodes": "add", "ainsert_nodes": "add",
    "delete_nodes": "delete_nodes", "adelete_nodes": "delete_nodes",
    "delete_ref_doc": "delete_document", "adelete_ref_doc": "delete_document",
}  # fmt: skip
VECTOR_STORE_WRITES = {
    "add": "add", "async_add": "add",
    "delete_nodes": "delete_nodes", "adelete_nodes": "delete_nodes",
    "delete": "delete_document", "adelete": "delete_document",
    "clear": "clear", "aclear": "clear",
}  # fmt: skip


def watch_index(index: BaseIndex[Any], cache: SmartCache, source: str = "") -> Watch:
    """Tells `cache` of every change that comes through `index` from now on: insert, insert_nodes, update_ref_doc,
    delete_ref_doc, delete_nodes, refresh_ref_docs and their async twins; and, for a vector store index, of whatever
    writes into its vector store object, such as an ingestion pipeline.

    `source` names the knowledge base, as in SmartCacheQueryEngine; unnamed, a change goes for every source. What
    happened before is unknown: answers that the cache holds already are confirmed by a search when next asked for.
    A text that is deleted and comes back is the same text: its answers hold again. Where the vector store keeps the
    texts itself, a deletion puts every answer of the source to such a search. With `retrieval_similarity=` of the
    cache, a node is compared by the text that LlamaIndex embeds (`MetadataMode.EMBED`).

    A write raises OSError where the cache's file cannot be written; nothing stale is served by this process then, and
    the write may be repeated.
    """
    return Watch(index, cache, source)


class Watch:
    """The watch over one index, until `close()`; also a context manager.

    Each write is told twice. Before it: what goes, and what comes, under a version that no search finds; so that
    nothing that rests on the old text, or that the new would change, is served once the store has changed. After it:
    what came, under its own version; an answer begun in between may have seen either state of the store, and is in
    doubt as if the text came then. Text that the cache was told of before is told after it alone: coming back, it puts
    in doubt only what was begun without it. If the write fails, what should have come is told gone, so that a retry is
    news again; so is what another write beside it took.
    """

    def __init__(self, index: BaseIndex[Any], cache: SmartCache, source: str = "") -> None:
        check_index(index)
        self._cache, self._source = checked_cache(cache), source
        self._lock = threading.RLock()  # who hears of the news may write, too
        self._under_way: list[_Write] = []
        self._inside: ContextVar[bool] = ContextVar("llama_index_smartcache_inside", default=False)
        self._inventory = Inventory.empty_for(index)
        held = _held(index) if self._inventory.is_complete else []
        new, _ = self._inventory.add(held, source)
        self._inventory.believed.update(chunk.ref.id for chunk in new)
        self._inventory.known = self._inventory.believed | self._cache.known_chunks(source)
        self._hooks = self._hook(index, INDEX_WRITES)
        if (store := getattr(index, "vector_store", None)) is not None:
            self._hooks += self._hook(store, VECTOR_STORE_WRITES)
        self._tell(added=[*new, self._anything()])

    def close(self) -> None:
        """Ends the watch; what changes from now on goes unseen."""
        for owner, name, hook in self._hooks:
            if vars(owner).get(name) is hook:
                object.__delattr__(owner, name)
        self._hooks = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _hook(self, owner: Any, writes: dict[str, str]) -> list[tuple[Any, str, Any]]:
        """Puts a method of the same name before each of the owner's, on this one object."""
        hooks = []
        for name, kind in writes.items():
            method = getattr(owner, name, None)
            if method is not None:
                make = self._awatched if asyncio.iscoroutinefunction(method) else self._watched
                hooks.append((owner, name, noted(make(method, kind), self._cache, self._source)))
                object.__setattr__(owner, name, hooks[-1][2])  # vector stores are pydantic models
        return hooks

    def _watched(self, method: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside.get():
                return method(*args, **kwargs)
            write = self._before(kind, args, kwargs)
            token = self._inside.set(True)
            try:
                write.done = method(*args, **kwargs), True
            finally:
                self._inside.reset(token)
                self._after(write)
            return write.done[0]

        return watched

    def _awatched(self, method: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(method)
        async def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside.get():
                return await method(*args, **kwargs)
            write = await asyncio.to_thread(self._before, kind, args, kwargs)
            token = self._inside.set(True)
            try:
                write.done = await method(*args, **kwargs), True
            finally:
                self._inside.reset(token)
                await asyncio.shield(asyncio.to_thread(self._after, write))
            return write.done[0]

        return watched

    def _before(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Write:
        subject = args[0] if args else next((kwargs[name] for name in _SUBJECTS if name in kwargs), None)
        with self._lock:
            write = self._planned(kind, subject, is_plain=args[1:2] == () and "filters" not in kwargs)
            for other in self._under_way:
                other.meet(write)
            self._under_way.append(write)
            coming = [_coming(chunk) for chunk in write.new if chunk.ref.id not in self._inventory.known]
            self._inventory.believed.difference_update(write.gone)
        try:
            self._tell(added=[*coming, *self._doubt(write)], removed=write.gone)
        except BaseException:
            with self._lock:
                self._under_way.remove(write)
            raise
        return write

    def _after(self, write: _Write) -> None:
        """Tells within the lock, though the cache may embed what it is told of: were the next write told of in between,
        what it takes would be told to have come last."""
        with self._lock:
            self._under_way.remove(write)
            came = [chunk for chunk in write.new if write.done[1] and chunk.ref.id not in write.contested]
            failed = [chunk for chunk in write.new if chunk not in came]
            if write.done[1]:
                self._inventory.remove(write.node_ids)
            self._inventory.believed.difference_update(chunk.ref.id for chunk in failed)
            self._inventory.believed.update(chunk.ref.id for chunk in came)
            self._inventory.known.update(chunk.ref.id for chunk in came)
            self._tell(added=[*came, *map(_coming, failed), *self._doubt(write)])
            self._tell(removed=[chunk.ref.id for chunk in failed])

    def _planned(self, kind: str, subject: Any, *, is_plain: bool) -> _Write:
        """What a write will do, as far as the inventory tells."""
        inventory = self._inventory
        if kind == "add":
            new, gone = inventory.add(subject or (), self._source)
            return _Write(new, gone, brings={node.node_id: inventory.nodes[node.node_id] for node in subject or ()})
        documents = {"delete_document": [subject], "clear": None}.get(kind, ())
        if kind == "delete_document":
            node_ids = inventory.held_by(documents=[subject])
        else:
            node_ids = list(inventory.nodes) if kind == "clear" else inventory.held_by(nodes=subject or ())
        unknown = not inventory.is_complete or (kind == "delete_nodes" and not is_plain)
        return _Write([], inventory.going(node_ids), node_ids, unknown, documents=documents)

    def _tell(self, added: Sequence[Chunk] = (), removed: Sequence[str] = ()) -> None:
        if added or removed:
            self._cache.update_knowledge(KnowledgeUpdate(added, removed=removed, source=self._source))

    def _doubt(self, write: _Write) -> list[Chunk]:
        return [self._anything()] if write.is_in_doubt else []

    def _anything(self) -> Chunk:
        """Text that might be any, and is another each time: whatever was found in this source is in doubt."""
        return Chunk(ChunkRef(UNNAMED, uuid4().hex, self._source), "")


@dataclass(eq=False)
class _Write:
    """A write under way: the chunks it brings and takes, the nodes it deletes, whether more may go than is known; by
    node, the document and the chunk of what it brings; the documents it deletes, None for all; and the ids of chunks of
    nodes that two writes at once leave in two ways: nobody can tell which came last."""

    new: list[Chunk]
    gone: list[str]
    node_ids: list[str] | tuple[str, ...] = ()
    is_in_doubt: bool = False
    brings: dict[str, tuple[str, str]] = field(default_factory=dict)
    documents: list[str] | tuple[str, ...] | None = ()
    done: tuple[Any, bool] = (None, False)
    contested: set[str] = field(default_factory=set)

    def meet(self, other: _Write) -> None:
        for one, two in ((self, other), (other, self)):
            both = {chunk.ref.id for chunk in one.new} & set(two.gone)
            both |= {chunk for node, (document, chunk) in one.brings.items() if two._contests(node, document, chunk)}
            one.contested |= both
            two.contested |= both

    def _contests(self, node: str, document: str, chunk: str) -> bool:
        """Whether a node, of a document, would be another chunk by this write, or go."""
        is_other = node in self.brings and self.brings[node][1] != chunk
        return is_other or node in self.node_ids or self.documents is None or document in self.documents


def _coming(chunk: Chunk) -> Chunk:
    """A chunk that is on its way: its text is known, and no search finds this version of it."""
    return replace(chunk, ref=replace(chunk.ref, version=f"coming:{uuid4().hex}"))


_SUBJECTS = ("nodes", "node_ids", "ref_doc_id")


def _held(index: Any) -> list[Any]:
    """The nodes in an index whose docstore keeps them."""
    nodes = getattr(index.index_struct, "nodes_dict", None)
    known = None if nodes is None else set(nodes.values())
    return [node for id, node in index.docstore.docs.items() if known is None or id in known]
