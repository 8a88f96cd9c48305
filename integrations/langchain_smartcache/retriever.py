"""A LangChain retriever that remembers what it found, until an update could have changed it."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from types import MethodType
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, PrivateAttr, field_validator

from langchain_smartcache.arguments import checked_cache, refuse_scope
from langchain_smartcache.configuration import fields_of, stable
from langchain_smartcache.documents import chunk_of, document_of
from smartcache import Chunk, SmartCache
from smartcache.keys import digest

MAX_SETTINGS = 100


class SmartCacheRetriever(BaseRetriever):
    """Caches any retriever; what it finds is how `ChatSmartCache` knows what a prompt rests on.

    `source` names the knowledge base, as in `watch_vectorstore`; `scope` says who may share what is found. Without
    updates (`watch_vectorstore`, or `cache.update_knowledge`) the cache takes the documents as unchanged. Documents
    are the caller's own copies; `metadata["smartcache_ref"]` holds each one's [id, version, source].
    """

    model_config = ConfigDict(extra="forbid")

    retriever: BaseRetriever
    cache: SmartCache
    source: str = ""
    scope: str = ""
    _settings: _Settings = PrivateAttr(default_factory=lambda: _Settings())

    @field_validator("cache", mode="before")
    @classmethod
    def _check_cache(cls, value: object) -> SmartCache:
        return checked_cache(value)

    def search(self, query: str) -> tuple[Chunk, ...]:
        """What is found, as chunks: the `search=` of `ChatSmartCache` and of `SmartCache.answer`."""
        return self._found(query, None, {})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        refuse_scope(kwargs)
        return [document_of(chunk) for chunk in self._found(query, run_manager, kwargs)]

    def _found(
        self, query: str, run_manager: CallbackManagerForRetrieverRun | None, options: dict[str, Any]
    ) -> tuple[Chunk, ...]:
        config: Any = {"callbacks": run_manager.get_child()} if run_manager else None

        def search(setting: _Setting, query: str) -> tuple[Chunk, ...]:
            found = self.retriever.invoke(query, config, **options)
            return tuple(chunk_of(document, self.source) for document in found)

        return self.cache.retrieve(query, MethodType(search, self._setting(options)), scope=self.scope)

    def _setting(self, options: dict[str, Any]) -> _Setting:
        """The one object for a retriever as it is set now and called now: the cache tells searches apart by it. Where
        that cannot be told, an object of this call alone: nothing is remembered."""
        setting = _Setting()
        try:
            key = digest(
                setting.hold(self.retriever), fields_of(self.retriever, setting.hold), stable(options, setting.hold)
            )
        except Exception as error:
            self.cache._events.trouble("retriever", error)
            return _Setting()
        return self._settings.known(key, setting)


class _Settings:
    """Those that a retriever was asked with lately, by what tells them apart. A copied retriever has its own."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Setting] = OrderedDict()
        self._lock = Lock()

    def known(self, key: str, setting: _Setting) -> _Setting:
        with self._lock:
            known = self._known.setdefault(key, setting)
            self._known.move_to_end(key)
            while len(self._known) > MAX_SETTINGS:
                self._known.popitem(last=False)
            return known

    def __deepcopy__(self, memo: object) -> _Settings:
        return _Settings()


class _Setting:
    """Holds the objects that it was told apart by, so that no later object has the address of one of them."""

    def __init__(self) -> None:
        self._held: list[object] = []

    def hold(self, value: object) -> str:
        self._held.append(value)
        return f"{type(value).__qualname__} at {id(value)}"
