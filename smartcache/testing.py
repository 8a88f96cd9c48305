"""Fakes and contract suites: what our own tests use, and what a third-party embedder can be held against."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smartcache.embedding import Embedder
from smartcache.keys import content_version
from smartcache.paths import words
from smartcache.types import Answer, Chunk, ChunkRef, Request


class BagOfWordsEmbedder:
    """Texts with the same words, in any order and case, have the same vector. Deterministic; nothing is loaded."""

    def __init__(self, dimension: int = 512, max_tokens: int = 256, name: str = "bag-of-words") -> None:
        self.name, self.dimension, self.max_tokens = name, dimension, max_tokens
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        self.texts.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def count_tokens(self, text: str, /) -> int:
        return len(text.split())

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimension, np.float32)
        for word in re.findall(r"\w", text.lower()) if not text.isascii() else re.findall(r"\w+", text.lower()):
            vector[_number(word) % self.dimension] += 1
        if not vector.any():
            vector[_number(text) % self.dimension] = 1
        return vector / np.float32(np.linalg.norm(vector))


class TableEmbedder:
    """Pairs of texts at stated similarities; every other two texts are at 0 (up to `max_texts` of them)."""

    def __init__(self, similarities: Mapping[tuple[str, str], float], *, max_texts: int = 512) -> None:
        self.name, self.dimension, self.max_tokens = "table", max_texts, 256
        self.texts: list[str] = []
        self._vectors: dict[str, NDArray[np.float32]] = {}
        for (one, other), similarity in similarities.items():
            first = self._vector(one)
            own = self._axis(len(self._vectors))
            self._vectors[other] = np.float32(similarity) * first + np.float32(math.sqrt(1 - similarity**2)) * own

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        self.texts.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def count_tokens(self, text: str, /) -> int:
        return len(text.split())

    def _vector(self, text: str) -> NDArray[np.float32]:
        if text not in self._vectors:
            self._vectors[text] = self._axis(len(self._vectors))
        return self._vectors[text]

    def _axis(self, number: int) -> NDArray[np.float32]:
        axis = np.zeros(self.dimension, np.float32)
        axis[number] = 1
        return axis


@dataclass
class FakeModel:
    """Answers every request anew and remembers each: a repeated text shows that nothing was computed.

    `reply(request, chunks)` makes the answer; by default it names the question, the call's number and the chunks.
    """

    reply: Callable[[Request, tuple[Chunk, ...]], str | Answer] | None = None
    requests: list[Request] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.requests)

    def __call__(self, request: Request, chunks: tuple[Chunk, ...]) -> str | Answer:
        self.requests.append(request)
        if self.reply:
            return self.reply(request, chunks)
        over = f" over {', '.join(chunk.text for chunk in chunks)}" if chunks else ""
        return f"answer {self.calls} to {request.query!r}{over}"

    async def acall(self, request: Request, chunks: tuple[Chunk, ...]) -> str | Answer:
        return self(request, chunks)

    def stream(self, request: Request, chunks: tuple[Chunk, ...]) -> Iterator[str]:
        yield from _words(self(request, chunks))

    async def astream(self, request: Request, chunks: tuple[Chunk, ...]) -> AsyncIterator[str]:
        for piece in _words(self(request, chunks)):
            yield piece


@dataclass
class FakeSearch:
    """A knowledge base whose every chunk is found by every query; counts its calls."""

    chunks: list[Chunk] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def __call__(self, query: str) -> tuple[Chunk, ...]:
        self.queries.append(query)
        return tuple(self.chunks)

    __hash__ = object.__hash__


@dataclass
class FakeClock:
    """Seconds that pass only when told to."""

    seconds: float = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


def chunk(id: str, text: str, *, version: str | None = None, source: str = "", score: float | None = None) -> Chunk:
    """A chunk whose version is a hash of its text, unless one is given."""
    return Chunk(ChunkRef(id, version or content_version(text), source), text, score)


class EmbedderContract:
    """What SmartCache expects of an embedder. Subclass it as `Test…` and define `embedder`."""

    def embedder(self) -> Embedder:
        raise NotImplementedError("return the embedder under test")

    def test_it_gives_a_float32_row_a_text(self) -> None:
        embedder = self.embedder()
        rows = embedder(["one text", "another text"])
        assert rows.shape == (2, embedder.dimension)
        assert rows.dtype == np.float32

    def test_rows_have_length_one(self) -> None:
        lengths = np.linalg.norm(self.embedder()(["one text", "a much longer text than the one before it"]), axis=1)
        assert np.allclose(lengths, 1.0, atol=1e-3)

    def test_the_same_text_has_the_same_row_in_any_batch(self) -> None:
        embedder = self.embedder()
        alone, among = embedder(["the same"])[0], embedder(["a longer text beside it", "the same"])[1]
        assert float(alone @ among) > 0.9999

    def test_different_texts_have_different_rows(self) -> None:
        one, other = self.embedder()(["how do I reset it", "what is the weather like"])
        assert float(one @ other) < 0.99

    def test_it_counts_tokens_beyond_its_limit(self) -> None:
        embedder = self.embedder()
        assert embedder.count_tokens("word " * (embedder.max_tokens + 10)) > embedder.max_tokens

    def test_its_name_stays(self) -> None:
        assert self.embedder().name
        assert self.embedder().name == self.embedder().name


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def _words(answer: str | Answer) -> Iterator[str]:
    return words(answer if isinstance(answer, Answer) else Answer(answer))
