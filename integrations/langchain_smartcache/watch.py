"""Changes of a LangChain vector store, told to the cache as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from threading import RLock
from typing import Any, TypeVar
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_smartcache.arguments import check_store, checked_cache
from langchain_smartcache.documents import chunk_of
from smartcache import Chunk, ChunkRef, KnowledgeUpdate, SmartCache
from smartcache.knowledge import UNNAMED

Store = TypeVar("Store", bound=VectorStore)

WRITES = ("add_documents", "add_texts", "delete", "aadd_documents", "aadd_texts", "adelete")
# What else stores write by, in methods of their own. Those of the first line say by id what they change.
UPDATES = ("update_document", "update_documents", "aupdate_document", "aupdate_documents")
OTHER_WRITES = tuple(
    "upsert aupsert add_embeddings aadd_embeddings add_images merge_from delete_collection adelete_collection "
    "reset_collection drop drop_tables adrop_tables delete_by_filter adelete_by_filter".split()
)


def watch_vectorstore(vectorstore: Store, cache: SmartCache, source: str = "") -> Store:
    """Tells `cache` of every add and delete on this very object from now on, and returns it. LangChain's `index()`
    needs no more: what it deletes and adds again unchanged keeps its answers.

    An update is told in two parts. **Before** the store changes, the ids concerned are gone for the cache: an answer
    under way that was given their old text is not stored as current, and a process that dies half way has promised
    nothing. **After** it, what is there now is told: text that came back as it was is known again, and whatever was
    searched in between is in doubt. Telling only before would miss the search that ran after the news and ahead of the
    change; telling only after would lose the news if the change failed half way. Where the change raises, or the store
    says that it did not delete, or another change of the same document ran beside it, the store itself is asked what it
    holds (`get_by_ids`); what it cannot say stays gone, the safe side, until the change is made again. What is new is
    told after it was added: of documents that a process wrote and died over, nothing is known until the next change.

    A change that names no ids (a filter, or all; a method of the store's own, as in `OTHER_WRITES`) puts everything
    found in `source` in doubt, before and after; one that is on no list here is not seen. New metadata is no new text:
    what was found with the old is searched again, and an answer whose text is still found stays. A source that vanishes
    without a delete is not seen: LangChain's incremental cleanup does not report it; call `cache.update_knowledge`.
    Raises OSError where the cache cannot write the news down, before the store is changed or after.
    """
    check_store(vectorstore)
    _Watch(vectorstore, checked_cache(cache), source).begin()
    return vectorstore


@dataclass(eq=False)
class _Change:
    """One change under way. `ids`: the documents concerned, as far as they are named. `before`: those among them that
    the store held; `after`: those that it was given. `has_rival`: another change of one of them ran beside it;
    `is_behind`: such a one ended since the store was asked last."""

    ids: list[str]
    before: dict[str, Document] = field(default_factory=dict)
    after: dict[str, Document] = field(default_factory=dict)
    names_all: bool = True
    is_done: bool = False
    has_rival: bool = False
    is_behind: bool = False


class _Watch:
    """One store under watch. The lock is never held while the store is asked, nor while the cache is told before a
    change. After one it is, though the cache may embed what it is told of: were the next change of a document told of
    in between, the older news would come last."""

    def __init__(self, store: VectorStore, cache: SmartCache, source: str) -> None:
        self._store, self._cache, self._source = store, cache, source
        self._under_way: list[_Change] = []
        self._inside: ContextVar[tuple[_Change, ...]] = ContextVar("langchain_smartcache_inside", default=())
        self._lock = RLock()  # who hears of the news may write, too

    def begin(self) -> None:
        """Puts our methods before the store's, on this object only."""
        for name in WRITES:
            setattr(self._store, name, getattr(self, f"_{name}")(getattr(self._store, name)))
        for name in (*UPDATES, *OTHER_WRITES):
            method = getattr(self._store, name, None)
            if callable(method):
                wrapped = self._aother if iscoroutinefunction(method) else self._other
                setattr(self._store, name, wrapped(method, names_ids=name in UPDATES))

    def _add_documents(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        def add_documents(documents: Iterable[Document], *args: Any, **kwargs: Any) -> Any:
            documents = list(documents)
            with self._told(_addition(documents, _ids(args, kwargs, 0))) as change:
                ids = change_store(documents, *args, **kwargs)
                _note(change, documents, ids)
                return ids

        return add_documents

    def _aadd_documents(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        async def aadd_documents(documents: Iterable[Document], *args: Any, **kwargs: Any) -> Any:
            documents = list(documents)
            async with self._atold(_addition(documents, _ids(args, kwargs, 0))) as change:
                ids = await change_store(documents, *args, **kwargs)
                _note(change, documents, ids)
                return ids

        return aadd_documents

    def _add_texts(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        def add_texts(texts: Iterable[str], *args: Any, **kwargs: Any) -> Any:
            texts = list(texts)
            documents = _documents(texts, _argument("metadatas", args, kwargs, 0))
            with self._told(_addition(documents, _ids(args, kwargs, 1))) as change:
                ids = change_store(texts, *args, **kwargs)
                _note(change, documents, ids)
                return ids

        return add_texts

    def _aadd_texts(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        async def aadd_texts(texts: Iterable[str], *args: Any, **kwargs: Any) -> Any:
            texts = list(texts)
            documents = _documents(texts, _argument("metadatas", args, kwargs, 0))
            async with self._atold(_addition(documents, _ids(args, kwargs, 1))) as change:
                ids = await change_store(texts, *args, **kwargs)
                _note(change, documents, ids)
                return ids

        return aadd_texts

    def _delete(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        def delete(*args: Any, **kwargs: Any) -> Any:
            with self._told(_deletion(_ids(args, kwargs, 0))) as change:
                said = change_store(*args, **kwargs)
                change.is_done = said is not False
                return said

        return delete

    def _adelete(self, change_store: Callable[..., Any]) -> Callable[..., Any]:
        async def adelete(*args: Any, **kwargs: Any) -> Any:
            async with self._atold(_deletion(_ids(args, kwargs, 0))) as change:
                said = await change_store(*args, **kwargs)
                change.is_done = said is not False
                return said

        return adelete

    def _other(self, change_store: Callable[..., Any], *, names_ids: bool) -> Callable[..., Any]:
        def other(*args: Any, **kwargs: Any) -> Any:
            with self._told(_update(args, kwargs) if names_ids else _deletion(None)):
                return change_store(*args, **kwargs)

        return other

    def _aother(self, change_store: Callable[..., Any], *, names_ids: bool) -> Callable[..., Any]:
        async def other(*args: Any, **kwargs: Any) -> Any:
            async with self._atold(_update(args, kwargs) if names_ids else _deletion(None)):
                return await change_store(*args, **kwargs)

        return other

    @contextmanager
    def _told(self, change: _Change) -> Iterator[_Change]:
        self._tell_before(change)
        token = self._inside.set((*self._inside.get(), change))
        try:
            yield change
        finally:
            self._inside.reset(token)
            self._tell_after(change)

    @asynccontextmanager
    async def _atold(self, change: _Change) -> AsyncIterator[_Change]:
        await run_in_executor(None, self._tell_before, change)
        token = self._inside.set((*self._inside.get(), change))
        try:
            yield change
        finally:
            self._inside.reset(token)
            await run_in_executor(None, self._tell_after, change)

    def _tell_before(self, change: _Change) -> None:
        change.before = self._held(change.ids)
        with self._lock:
            ours = self._inside.get()  # a store may write by another write of its own
            for rival in self._beside(change):
                if rival not in ours:
                    rival.has_rival = change.has_rival = True
            self._under_way.append(change)
        try:
            self._tell(added=self._doubt(change), removed=change.ids)
        except BaseException:
            self._end(change)
            raise

    def _tell_after(self, change: _Change) -> None:
        is_told = False
        try:
            while not is_told:
                change.is_behind = False
                there = self._there(change)
                is_told = self._tell_there(change, there, self._relabelled(change, there))
        except BaseException:
            self._end(change)
            raise

    def _tell_there(self, change: _Change, there: dict[str, Document], relabelled: set[str]) -> bool:
        """Tells what was read after a change, and ends it. False where that is behind, and is to be read again."""
        with self._lock:
            if change.is_behind:
                return False
            self._end_locked(change)
            changing = {id for other in self._under_way for id in other.ids}  # whoever ends last tells of these
            chunks = {id: chunk_of(doc, self._source, id) for id, doc in there.items() if id not in changing}
            relabelled = relabelled & chunks.keys()
            self._tell(changed=[_relabelled(chunks[id]) for id in sorted(relabelled)])
            text_before = {id: document.page_content for id, document in change.before.items()}
            new_text = {id for id, chunk in chunks.items() if text_before.get(id, chunk.text) != chunk.text}
            added = [chunk for id, chunk in chunks.items() if id not in relabelled | new_text]
            changed = [chunk for id, chunk in chunks.items() if id in relabelled | new_text]
            self._tell([*added, *self._doubt(change)], changed)
            return True

    def _end(self, change: _Change) -> None:
        with self._lock:
            self._end_locked(change)

    def _end_locked(self, change: _Change) -> None:
        if change in self._under_way:
            self._under_way.remove(change)
        for rival in self._beside(change):
            rival.is_behind = True

    def _beside(self, change: _Change) -> list[_Change]:
        """The changes under way that concern a document of this one."""
        return [other for other in self._under_way if not set(other.ids).isdisjoint(change.ids)]

    def _tell(self, added: Sequence[Chunk] = (), changed: Sequence[Chunk] = (), removed: Sequence[str] = ()) -> None:
        if added or changed or removed:
            self._cache.update_knowledge(KnowledgeUpdate(added, changed, removed, source=self._source))

    def _there(self, change: _Change) -> dict[str, Document]:
        """What there is after a change of the documents concerned."""
        if change.is_done and not (change.has_rival and self._tells_ids):
            return change.after
        return self._held([*dict.fromkeys([*change.ids, *change.after])])

    def _relabelled(self, change: _Change, there: dict[str, Document]) -> set[str]:
        """Those that have other metadata now, by what the store itself says before and after: it may add its own."""
        other = [id for id, document in there.items() if _only_metadata_differs(change.before.get(id), document)]
        now = self._held(other)
        return {id for id in other if id not in now or _only_metadata_differs(change.before[id], now[id])}

    def _doubt(self, change: _Change) -> list[Chunk]:
        """Where a change may concern any document: text that might be any, and is another each time. Whatever was
        found in this source is in doubt."""
        if change.names_all and self._tells_ids:
            return []
        return [Chunk(ChunkRef(UNNAMED, uuid4().hex, self._source), "")]

    def _held(self, ids: Sequence[str]) -> dict[str, Document]:
        """Which of `ids` the store holds, as far as it can say."""
        if not ids or not self._tells_ids:
            return {}
        try:
            return {str(document.id): document for document in self._store.get_by_ids(list(ids)) if document.id}
        except Exception:  # a store in trouble says nothing, and what it does not say stays gone
            return {}

    @property
    def _tells_ids(self) -> bool:
        """Whether the store knows its documents by id. Where it does not, those that it finds carry none either, and
        which of them a change concerned cannot be told."""
        return type(self._store).get_by_ids is not VectorStore.get_by_ids


def _addition(documents: Sequence[Document], ids: list[str | None] | None) -> _Change:
    named = ids or [document.id for document in documents]
    return _Change([id for id in named if id])


def _deletion(ids: list[str | None] | None) -> _Change:
    """Of no ids, or of an empty list of them: some stores take either as all."""
    return _Change([id for id in ids or [] if id], names_all=bool(ids))


def _update(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Change:
    """A change of the documents whose ids come first; what is there afterwards, the store itself is asked."""
    return _deletion(_ids(args, {"ids": kwargs["document_id"]} if "document_id" in kwargs else kwargs, 0))


def _note(change: _Change, documents: Sequence[Document], ids: Any) -> None:
    """Takes down what a store said it added: the ids that it gave, in order."""
    given = [str(id) for id in ids] if isinstance(ids, list | tuple) else []
    change.after = dict(zip(given, documents, strict=False))
    change.names_all = len(given) == len(documents)
    change.is_done = True


def _documents(texts: Sequence[str], metadatas: Any) -> list[Document]:
    return [Document(page_content=text, metadata=(metadatas or [{}] * len(texts))[n]) for n, text in enumerate(texts)]


def _ids(args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> list[str | None] | None:
    ids = _argument("ids", args, kwargs, place)
    if ids is None:
        return None
    return [None if id is None else str(id) for id in ([ids] if isinstance(ids, str) else ids)]


def _argument(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
    return kwargs[name] if name in kwargs else args[place] if len(args) > place else None


def _relabelled(chunk: Chunk) -> Chunk:
    """A chunk as another version of it, so that its own, told next, is a change."""
    return Chunk(replace(chunk.ref, version="relabelled"), chunk.text)


def _only_metadata_differs(before: Document | None, after: Document) -> bool:
    return before is not None and before.page_content == after.page_content and before.metadata != after.metadata
