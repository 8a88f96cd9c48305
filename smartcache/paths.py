"""A request's path apart from how it is walked: the path asks for a search or an answer, a walker gets it, in plain
calls or coroutines, whole or as a stream."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from smartcache.types import Answer, Chunk, Request


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The path needs what the knowledge base holds for `query`."""

    query: str


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """The path needs an answer from the model over `chunks`."""

    chunks: tuple[Chunk, ...]


T = TypeVar("T")
Path = Generator[SearchStep | GenerateStep, Any, T]
Search = Callable[[str], Sequence[Chunk]]
AsyncSearch = Callable[[str], Awaitable[Sequence[Chunk]] | Sequence[Chunk]]
Generate = Callable[[Request, tuple[Chunk, ...]], str | Answer]
AsyncGenerate = Callable[[Request, tuple[Chunk, ...]], Awaitable[str | Answer]]
GenerateStream = Callable[[Request, tuple[Chunk, ...]], Iterator[Any]]
AsyncGenerateStream = Callable[[Request, tuple[Chunk, ...]], AsyncIterator[Any]]
Replay = Callable[[Answer], Iterator[Any]]
Restore = Callable[[Answer], object]


def walk(path: Path[T], search: Search | None, generate: Callable[[tuple[Chunk, ...]], str | Answer]) -> T:
    with closing(path):
        step = _advance(path, None)
        while isinstance(step, SearchStep | GenerateStep):
            step = _advance(path, _searched(search, step) if isinstance(step, SearchStep) else generate(step.chunks))
        return step


def walk_alone(path: Path[T], search: Search | None = None) -> T:
    """As `walk`, for a path that asks for no answer."""
    return walk(path, search, _no_answer)


async def awalk(
    path: Path[T], search: AsyncSearch | None, generate: Callable[[tuple[Chunk, ...]], Awaitable[str | Answer]]
) -> T:
    """As `walk`; the cache's own work runs in a thread, so that no embedding holds up the event loop."""
    step = await asyncio.to_thread(_advance, path, None)
    while isinstance(step, SearchStep | GenerateStep):
        with _closed_on_error(path):
            got = _searched(search, step) if isinstance(step, SearchStep) else generate(step.chunks)
            reply = await got if inspect.isawaitable(got) else got
        step = await asyncio.to_thread(_advance, path, reply)
    return step


def stream(
    path: Path[Answer],
    search: Search | None,
    generate: Callable[[tuple[Chunk, ...]], Iterator[Any]],
) -> Iterator[Any]:
    """Yields what the model yields as it comes; nothing of a hit."""
    step = _advance(path, None)
    while isinstance(step, SearchStep | GenerateStep):
        live = _Live()
        with _closed_on_error(path):
            for piece in () if isinstance(step, SearchStep) else generate(step.chunks):
                if live.keeps(piece):
                    yield piece
            reply = _searched(search, step) if isinstance(step, SearchStep) else live.answer()
        step = _advance(path, reply)


async def astream(
    path: Path[Answer],
    search: AsyncSearch | None,
    generate: Callable[[tuple[Chunk, ...]], AsyncIterator[Any]],
) -> AsyncIterator[Any]:
    step = await asyncio.to_thread(_advance, path, None)
    while isinstance(step, SearchStep | GenerateStep):
        live = _Live()
        with _closed_on_error(path):
            if isinstance(step, SearchStep):
                got = _searched(search, step)
                reply = await got if inspect.isawaitable(got) else got
            else:
                async with _closing(generate(step.chunks)) as pieces:
                    async for piece in pieces:
                        if live.keeps(piece):
                            yield piece
                reply = live.answer()
        step = await asyncio.to_thread(_advance, path, reply)


def words(answer: Answer) -> Iterator[str]:
    """An answer's text word by word, each with the space before it, as a model would stream it."""
    yield from re.findall(r"\s*\S+|\s+$", answer.text)


def with_evidence(reply: str | Answer, chunks: tuple[Chunk, ...] | None) -> Answer:
    """What the model gave, as an answer that rests on the chunks it was given, unless it says otherwise itself."""
    if not isinstance(reply, str | Answer):
        raise TypeError(f"generate gave {type(reply).__name__}: return a str or an Answer")
    answer = reply if isinstance(reply, Answer) else Answer(reply)
    if chunks is None:
        return answer
    refs = tuple(chunk.ref for chunk in chunks)
    evidence = frozenset(refs) if answer.evidence is None else answer.evidence
    return replace(answer, evidence=evidence, citations=answer.citations or refs)


def checked(found: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """What a search found. Raises TypeError where it is not chunks."""
    if not isinstance(found, Iterable):
        raise TypeError(
            f"search gave {type(found).__name__}: return a sequence of Chunks, empty where nothing is found"
        )
    chunks = tuple(found)
    if wrong := next((chunk for chunk in chunks if not isinstance(chunk, Chunk)), None):
        raise TypeError(f"search found {type(wrong).__name__}: return Chunks, as in Chunk(ChunkRef(id, version), text)")
    return chunks


@dataclass
class _Live:
    """A stream as it passes: its text, and the whole answer where the model's side yields one at the end."""

    pieces: list[str] = field(default_factory=list)
    whole: Answer | None = None

    def keeps(self, piece: Any) -> bool:
        """Takes note of a piece; True where the reader gets it too."""
        if isinstance(piece, Answer):
            self.whole = piece
        elif isinstance(piece, str):
            self.pieces.append(piece)
        return not isinstance(piece, Answer)

    def answer(self) -> Answer:
        return self.whole or Answer("".join(self.pieces))


@contextmanager
def _closed_on_error(path: Path[T]) -> Iterator[None]:
    """Ends the path where the caller's own function fails or its reader leaves, so that its outcome is counted now."""
    try:
        yield
    except BaseException:
        path.close()
        raise


def _closing(pieces: AsyncIterator[Any]) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
    return aclosing(pieces) if isinstance(pieces, AsyncGenerator) else nullcontext(pieces)


def _advance(path: Path[T], reply: Any) -> SearchStep | GenerateStep | T:
    """The next step, or what the path returns at its end (an end raised as StopIteration cannot cross a thread)."""
    try:
        return path.send(reply)
    except StopIteration as end:
        returned: T = end.value
        return returned


def _no_answer(chunks: tuple[Chunk, ...]) -> str:
    raise TypeError("this path asks for no answer")


def _searched(search: Callable[[str], Any] | None, step: SearchStep) -> Any:
    if search is None:
        raise TypeError("the path asked for a search and none was given")
    return search(step.query)
