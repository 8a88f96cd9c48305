"""What is refused where it is given, each with what to do instead."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.vectorstores import VectorStore

from smartcache import SmartCache


def refuse_scope(options: Mapping[str, Any]) -> None:
    """Raises TypeError where a call brings a `scope`: who may share is not for a call's options to say."""
    if "scope" in options:
        raise TypeError(
            "scope is no option of a call: set it where the object is made (scope=...), or, where the tenant comes "
            'with the call, make it configurable: .configurable_fields(scope=ConfigurableField(id="scope"))'
        )


def warn_of_unread_scope(config: RunnableConfig | None, scope: str) -> None:
    """Warns where a call's config names another scope than the one that answers are shared in: nobody made it
    configurable, or it is another part's."""
    if ensure_config(config).get("configurable", {}).get("scope", scope) != scope:
        warnings.warn(
            f'a scope in config["configurable"] is not read, and all share the answers of scope {scope!r}: to have it '
            'read, use chat.configurable_fields(scope=ConfigurableField(id="scope"))',
            stacklevel=3,
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
