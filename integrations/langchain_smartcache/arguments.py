"""What is refused where it is given, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.vectorstores import VectorStore

from smartcache import SmartCache


def refuse_scope(options: Mapping[str, Any]) -> None:
    """Raises TypeError where a call brings a `scope`: who may share is not for a call's options to say."""
    if "scope" in options:
        raise TypeError(
            "scope is no option of a call: set it where the object is made (scope=...), or, where the tenant comes "
            'with the call, make it configurable: .configurable_fields(scope=ConfigurableField(id="scope"))'
        )


def checked_cache(value: object) -> SmartCache:
    """The cache that was given, or TypeError."""
    if isinstance(value, SmartCache):
        return value
    raise TypeError(
        f'cache= takes a SmartCache, not {_named(value)}: open one first, as in cache=SmartCache.open("answers.db")'
    )


def check_store(value: object) -> None:
    """Raises TypeError for what is no vector store."""
    if not isinstance(value, VectorStore):
        raise TypeError(f"watch_vectorstore(vectorstore, cache) takes a vector store first, not {_named(value)}")


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
