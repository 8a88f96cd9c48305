"""Two processes over one file, and news that one of them cannot write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from smartcache import KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.errors import StoreError


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[SmartCache, SmartCache]]:
    """Two processes' caches over one file."""
    with SmartCache.open(tmp_path, mode="exact") as one, SmartCache.open(tmp_path, mode="exact") as other:
        yield one, other


@pytest.fixture
def ask() -> Callable[..., Request]:
    def ask(text: str = "Which buildings are there?") -> Request:
        return Request([Turn("user", text)])

    return ask


@pytest.fixture
def told() -> Callable[..., int]:
    """Tells a cache an update of the source "kb", or of another one."""

    def told(cache: SmartCache, **update) -> int:
        return cache.update_knowledge(KnowledgeUpdate(**{"source": "kb"} | update))

    return told


@pytest.fixture
def unwritable() -> Callable[[SmartCache], AbstractContextManager[None]]:
    @contextmanager
    def unwritable(cache: SmartCache) -> Iterator[None]:
        cache._entries._connection.execute("PRAGMA query_only = ON")
        yield
        cache._entries._connection.execute("PRAGMA query_only = OFF")

    return unwritable


@pytest.fixture
def could_not_tell(told, unwritable) -> Callable[..., None]:
    """Tells a cache an update that it cannot write, so many times."""

    def could_not_tell(cache: SmartCache, times: int = 1, **update) -> None:
        with unwritable(cache):
            for _ in range(times):
                with pytest.raises(StoreError, match="call it again"):
                    told(cache, **update)

    return could_not_tell
