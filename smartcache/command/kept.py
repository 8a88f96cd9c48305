"""Looking at and emptying a cache file from the command line, without loading any model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from smartcache import SmartCache, SmartCacheError
from smartcache.errors import DamagedStore
from smartcache.storage.database import file_in
from smartcache.storage.inventory import answers_by_scope, holds_nothing

MAX_NAMED_SCOPES = 10  # in a message of one line


class NoCacheFile(SmartCacheError, FileNotFoundError):
    """There is no cache at the path: opening it would make an empty one."""


class UnusableCache(SmartCacheError, OSError):
    """A cache file cannot be used; the message says why and what to do."""


class NothingToForget(SmartCacheError, ValueError):
    """It was not said whose answers to forget, or there are none; nothing was forgotten."""


def described(file: Path) -> str:
    """What a cache file holds: a line for the whole, then one for each scope."""
    with opened(file) as cache:
        stats, scopes = cache.stats(), answers_by_scope(file_in(file))
    whole = f"{counted(stats.entries, 'stored answer')}, {stats.bytes:,} bytes"
    return "\n".join([whole, *(f"  scope {scope!r}: {count}" for scope, count in scopes.items())])


def forgotten(file: Path, scope: str | None, *, everything: bool = False) -> int:
    """Remove the answers of `scope` ("" is a scope too), or all of them; how many there were.

    Raises NothingToForget unless one of the two is given, and where the scope has no answers: a mistyped name must not
    look like a deletion.
    """
    if everything == (scope is not None):
        raise NothingToForget("say what to forget: either --scope NAME ('' for the empty scope) or --all")
    with opened(file) as cache:
        scopes = answers_by_scope(file_in(file))
        if scope is not None and scope not in scopes:
            raise NothingToForget(no_answers_in(scope, scopes))
        cache.clear(scope)
        return sum(scopes.values()) if scope is None else scopes[scope]


@contextmanager
def trouble_told(file: Path, otherwise: str) -> Iterator[None]:
    """What is wrong with a cache file becomes one line; of a damaged one it says what to do, `otherwise` at last."""
    try:
        yield
    except DamagedStore as error:
        raise UnusableCache(f"{error}: delete or move it, or {otherwise}") from error
    except OSError as error:
        if isinstance(error, SmartCacheError):
            raise
        raise UnusableCache(f"{file} cannot be used as a cache: {error}") from error


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 answer", "2 answers"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@contextmanager
def opened(file: Path) -> Iterator[SmartCache]:
    """The cache of a file that has one; neither an empty nor a foreign file becomes one."""
    if holds_nothing(file_in(file)):
        where = f"in {file}" if file.exists() else f"at {file}"
        raise NoCacheFile(f"there is no cache file {where}")
    with trouble_told(file, "name another file"), SmartCache.open(file, mode="exact", strict=True) as cache:
        yield cache


def no_answers_in(scope: str, scopes: Mapping[str, int]) -> str:
    """That a scope has no answers, and which ones have."""
    return f"no answers in scope {scope!r}; {_named(scopes)}"


def _named(scopes: Mapping[str, int]) -> str:
    if not scopes:
        return "the file holds no answers"
    names = ", ".join(map(repr, list(scopes)[:MAX_NAMED_SCOPES]))
    more = len(scopes) - MAX_NAMED_SCOPES
    return f"there are: {names}" + (f" and {more} more" if more > 0 else "")
