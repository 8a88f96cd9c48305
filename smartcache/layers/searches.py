"""Which search is asked: its function, the object behind it, and how that object is set at this moment."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from smartcache.errors import UnstableKey
from smartcache.keys import digest

# what retrievers call the settings that decide what they find; with or without a "_" before
SETTINGS = frozenset(
    "k top_k similarity_top_k sparse_top_k hybrid_top_k n_results limit fetch_k filter filters where where_document "
    "search_kwargs search_type score_threshold similarity_cutoff threshold lambda_mult alpha vector_store_query_mode "
    "namespace tenant collection collection_name index_name node_ids doc_ids".split()
)
CARRIERS = frozenset("retriever base_retriever engine query_engine vectorstore vector_store".split())
MAX_DEPTH = 4  # carriers in carriers


class Searches:
    """Tells searches apart: equal keys mean the same function of the same object, set in the same way.

    A `functools.partial` counts as its function under its arguments. Not safe to share between threads.
    """

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
        self._named = 0

    def key(self, search: object) -> tuple[int, str] | None:
        """None where the search cannot be told from others."""
        given = list[object]()
        while isinstance(search, partial):
            given.append([search.args, search.keywords])
            search = search.func
        owner = getattr(search, "__self__", search)
        try:
            number = self._number(owner, getattr(search, "__name__", ""))
            return number, digest(self._plain([given, list(_settings(owner))]))
        except (TypeError, UnstableKey, RecursionError):
            return None

    def _number(self, owner: object, name: str) -> int:
        names = self._names.setdefault(owner, {})
        if name not in names:
            self._named += 1
            names[name] = self._named
        return names[name]

    def _plain(self, value: Any) -> Any:
        """The value with a number for each object in it that has no form of its own, such as a function."""
        if isinstance(value, Mapping):
            return {self._plain(name): self._plain(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(part) for part in value]
        try:
            digest(value)
        except UnstableKey:
            return f"object {self._number(value, '')}"
        return value


def _settings(owner: object, depth: int = 0) -> Iterator[tuple[int, str, Any]]:
    for name, value in sorted(getattr(owner, "__dict__", {}).items()):
        plain = name.lstrip("_")
        if plain in SETTINGS:
            yield depth, name, value
        elif plain in CARRIERS and depth < MAX_DEPTH:
            yield from _settings(value, depth + 1)
