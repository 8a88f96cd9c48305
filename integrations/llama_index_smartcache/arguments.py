"""What is refused where it is given, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.base import BaseIndex

from smartcache import SmartCache


def checked_cache(value: object) -> SmartCache:
    """The cache that was given, or TypeError."""
    if isinstance(value, SmartCache):
        return value
    raise TypeError(
        f'cache= takes a SmartCache, not {_named(value)}: open one first, as in cache=SmartCache.open("answers.db")'
    )


def check_engine(value: object) -> None:
    """Raises TypeError for what is no query engine: an index, a chat engine, a retriever."""
    if not isinstance(value, BaseQueryEngine):
        raise TypeError(
            f"SmartCacheQueryEngine(query_engine, cache) takes a query engine first, not {_named(value)}: "
            "pass index.as_query_engine()"
        )


def check_index(value: object) -> None:
    """Raises TypeError for what is no index."""
    if not isinstance(value, BaseIndex):
        raise TypeError(f"watch_index(index, cache) takes an index first, not {_named(value)}")


def refuse_scope(options: Mapping[str, Any]) -> None:
    """Raises TypeError where a call brings a `scope`: who may share is not for a call's options to say."""
    if "scope" in options:
        raise TypeError("scope is no keyword of a call: set it where the LLM is made, SmartCacheLLM(llm, cache, scope)")


def _named(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
