"""Whether anybody tells the cache what changes in an index, so that an engine over one left alone can say so once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from llama_index.core.indices.base import BaseIndex

from llama_index_smartcache.configuration import indexes_of
from smartcache import SmartCache

log = logging.getLogger("smartcache")
NOTE = "smartcache_watch"  # on the methods that a watch puts before an index's own: (the cache, the source) it tells
TOLD = "_smartcache_told_unwatched"  # on an index of which this was said


def noted(hook: Callable[..., Any], cache: SmartCache, source: str) -> Callable[..., Any]:
    """A watch's method, with a note of whom it tells of what."""
    vars(hook)[NOTE] = cache, source
    return hook


def warn_of_unwatched(retriever: Any, cache: SmartCache, source: str) -> None:
    """Warns, once for each index, of one that the retriever reads and whose changes nothing tells the cache. Of a named
    source another process may tell it: what it heard of that source, by a watch or by hand, counts too."""
    for index in (index for index in indexes_of(retriever) if isinstance(index, BaseIndex)):
        if TOLD in vars(index) or _is_watched(index, cache, source) or (source and cache.is_told_of(source)):
            continue
        setattr(index, TOLD, True)
        log.warning(
            "smartcache: nothing watches the index %s for this cache%s: after a change of it, answers would be stale. "
            "Call watch_index(index, cache%s), or cache.update_knowledge for each change",
            index.index_id,
            f" and source {source!r}" if source else "",
            f", source={source!r}" if source else "",
        )


def _is_watched(index: Any, cache: SmartCache, source: str) -> bool:
    """Whether a watch of this cache is on the index, or on its vector store, under this source or for every one."""
    owned = [vars(index), getattr(getattr(index, "vector_store", None), "__dict__", {})]
    told = [note for methods in owned for hook in methods.values() for note in _notes(hook)]
    return any(of is cache and (about == source or "" in (about, source)) for of, about in told)


def _notes(hook: Any) -> Iterator[tuple[SmartCache, str]]:
    """The notes of a method, and of those that other watches had put there before it."""
    while callable(hook) and (note := getattr(hook, NOTE, None)) is not None:
        yield note
        hook = getattr(hook, "__wrapped__", None)
