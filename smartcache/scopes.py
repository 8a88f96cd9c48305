"""The scope of the request that is being answered, known to whatever works on its behalf: a local model keeps its state
apart by it, so that no tenant can tell from a quick answer what another has asked."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from smartcache.types import Answer, Chunk, Request

T = TypeVar("T")
_current: ContextVar[str] = ContextVar("smartcache_scope", default="")


def current_scope() -> str:
    """The scope of the request that the calling thread or task is answering, "" outside of one."""
    return _current.get()


def within(request: Request, generate: Callable[[Request, tuple[Chunk, ...]], T]) -> Callable[[tuple[Chunk, ...]], T]:
    """`generate` for this request, run in its scope."""

    def scoped(chunks: tuple[Chunk, ...]) -> T:
        with in_scope(request.scope):
            return generate(request, chunks)

    return scoped


def awithin(
    request: Request, generate: Callable[[Request, tuple[Chunk, ...]], Awaitable[str | Answer]]
) -> Callable[[tuple[Chunk, ...]], Awaitable[str | Answer]]:
    async def scoped(chunks: tuple[Chunk, ...]) -> str | Answer:
        with in_scope(request.scope):
            got = generate(request, chunks)
            return await got if inspect.isawaitable(got) else got

    return scoped


def stream_within(
    request: Request, generate: Callable[[Request, tuple[Chunk, ...]], Iterator[Any]]
) -> Callable[[tuple[Chunk, ...]], Iterator[Any]]:
    """The same for pieces: each is made in the scope, and the reader in between is not in it."""

    def scoped(chunks: tuple[Chunk, ...]) -> Iterator[Any]:
        with in_scope(request.scope):
            pieces = iter(generate(request, chunks))
        while True:
            with in_scope(request.scope):
                piece = next(pieces, _END)
            if piece is _END:
                return
            yield piece

    return scoped


def astream_within(
    request: Request, generate: Callable[[Request, tuple[Chunk, ...]], AsyncIterator[Any]]
) -> Callable[[tuple[Chunk, ...]], AsyncIterator[Any]]:
    async def scoped(chunks: tuple[Chunk, ...]) -> AsyncIterator[Any]:
        with in_scope(request.scope):
            pieces = aiter(generate(request, chunks))
        try:
            while True:
                with in_scope(request.scope):
                    piece = await anext(pieces, _END)
                if piece is _END:
                    return
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()

    return scoped


def search_within(scope: str, search: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    """`search`, run in a scope: it may ask a model to reword the query, or put what it finds in order by scope."""

    def scoped(query: str) -> Any:
        with in_scope(scope):
            return _gathered(search(query)) if search else None

    return scoped if search else None


def asearch_within(scope: str, search: Callable[[str], Any] | None) -> Callable[[str], Awaitable[Any]] | None:
    async def scoped(query: str) -> Any:
        with in_scope(scope):
            found = search(query) if search else None
            return _gathered(await found if inspect.isawaitable(found) else found)

    return scoped if search else None


def _gathered(found: Any) -> Any:
    """What a search found; one that finds piece by piece finds all of it now, in its scope."""
    return tuple(found) if isinstance(found, Iterable) else found


@contextmanager
def in_scope(scope: str) -> Iterator[None]:
    """The block works for a request of `scope`."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


_END = object()
