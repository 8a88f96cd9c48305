"""Looking at and emptying a cache file from the command line, without loading any model."""

from __future__ import annotations

from pathlib import Path

from smartcache import SmartCache, SmartCacheError
from smartcache.storage.database import file_in


class NoCacheFile(SmartCacheError, FileNotFoundError):
    """There is no file at the path: opening it would make an empty one."""


def described(file: Path) -> str:
    """One line about what a cache file holds."""
    with _opened(file) as cache:
        stats = cache.stats()
        return f"{stats.entries} stored answers, {stats.bytes:,} bytes"


def forgotten(file: Path, scope: str | None) -> int:
    """Remove the answers of one scope, or all; how many there were."""
    with _opened(file) as cache:
        before = cache.stats().entries
        cache.clear(scope)
        return before - cache.stats().entries


def _opened(file: Path) -> SmartCache:
    if not file_in(file).exists() or file_in(file).stat().st_size == 0:
        raise NoCacheFile(f"there is no cache file {file_in(file)}, or it is empty")
    return SmartCache.open(file, mode="exact", strict=True)
