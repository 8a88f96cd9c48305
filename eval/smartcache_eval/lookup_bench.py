"""How long a whole lookup of a question takes, all but embedding it, among as many stored ones as a cache holds."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from smartcache import Answer, Embedder, Request, SmartCache, Turn
from smartcache.dialogue import Dialogue
from smartcache.embedding import RememberedVectors
from smartcache.errors import MissingExtra, MissingModel
from smartcache.learned import Learned
from smartcache.models import default_embedder
from smartcache.state import State
from smartcache_eval.figures import Figure

SIZES = (1_000, 10_000, 100_000)
LOOKUPS = 1_000
EMBEDDINGS = 50
DIMENSION = 384

THINGS = "router camera printer lamp kettle tablet speaker heater drill scanner fridge laptop monitor battery".split()
ASKED = (
    "How do I reset the {thing} to its first settings?",
    "What does it cost to have the {thing} repaired?",
    "How long does the guarantee of the {thing} last?",
    "Where do I find the serial number of the {thing}?",
    "Which colours does the {thing} come in?",
    "Can the {thing} be used outdoors in winter?",
)
ASKED_AGAIN = (
    "How can I put the {thing} back to its first settings?",
    "How much is a repair of the {thing}?",
    "For how long is the {thing} under guarantee?",
    "Where is the serial number of the {thing}?",
    "In which colours can I get the {thing}?",
    "Is the {thing} fit for use outdoors in winter?",
)


class WordVectors:
    """Stands for the bundled embedder, at next to no cost: a text is the sum of its words, each a vector of its own."""

    def __init__(self, name: str) -> None:
        self.name, self.dimension, self.max_tokens = name, DIMENSION, 256
        self.seconds = 0.0  # spent embedding, all in all
        self._words: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        started = perf_counter()
        rows = np.stack([sum(map(self._word, text.lower().split()), np.zeros(DIMENSION, np.float32)) for text in texts])
        self.seconds += perf_counter() - started
        return rows

    def _word(self, word: str) -> NDArray[np.float32]:
        if word not in self._words:
            draws = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = draws.standard_normal(DIMENSION, dtype=np.float32)
        return self._words[word]

    def count_tokens(self, text: str, /) -> int:
        return len(text.split())


def lookup_figures(sizes: Sequence[int] = SIZES) -> Iterator[Figure]:
    """Of questions under two turns of history, half of them in the words they were stored with but for one."""
    learned = Learned.bundled()
    for size in sizes:
        embedder, others = WordVectors(learned.embedder if learned else "words"), {*threading.enumerate()}
        with SmartCache.open(embedder=embedder, max_entries=size, max_bytes=2**34) as cache:
            for number in range(size):
                cache.store(_request(number, ASKED), Answer(f"About {number}.", frozenset(), finish_reason="stop"))
            _seconds(cache, embedder, 0)
            for thread in {*threading.enumerate()} - others:
                thread.join()  # the first lookup has begun to sort the vectors into lists
            took = sorted(_seconds(cache, embedder, number * (size // LOOKUPS)) for number in range(LOOKUPS))
            hits, load = cache.stats().hits, os.getloadavg()[0]
        conditions = f"{LOOKUPS:,} lookups in turn, {hits} of them hits, embedding left out; load {load:.1f}"
        yield Figure(f"{size:,} stored: lookup p50", 1e3 * took[LOOKUPS // 2], "ms", conditions)
        yield Figure(f"{size:,} stored: lookup p99", 1e3 * took[LOOKUPS * 99 // 100], "ms", conditions)


def embedding_figures() -> Iterator[Figure]:
    """What a lookup leaves out above: the bundled embedder on one question, and its state; nothing where that embedder
    is not installed."""
    learned = Learned.bundled()
    with suppress(MissingExtra, MissingModel):
        embedder = default_embedder()
        for kind, is_known in (("its two turns known", True), ("its two turns new", False)):
            took = sorted(_embedding_seconds(embedder, learned, number, is_known) for number in range(EMBEDDINGS))
            conditions = f"median of {EMBEDDINGS} questions, {kind}; load {os.getloadavg()[0]:.1f}"
            yield Figure(f"question embedded, {kind}", 1e3 * took[EMBEDDINGS // 2], "ms", conditions)


def _embedding_seconds(embedder: Embedder, learned: Learned | None, number: int, is_known: bool) -> float:
    dialogue, vectors = Dialogue.of(_request(number, ASKED)), RememberedVectors(embedder)
    if is_known:
        vectors([text for _, text in dialogue.history])
    started = perf_counter()
    State.of(dialogue, vectors, learned.digest if learned else None)
    return perf_counter() - started


def _seconds(cache: SmartCache, embedder: WordVectors, number: int) -> float:
    request, embedding = _request(number, ASKED_AGAIN), embedder.seconds
    started = perf_counter()
    cache.lookup(request)
    return perf_counter() - started - (embedder.seconds - embedding)


def _request(number: int, wordings: Sequence[str]) -> Request:
    number, place = divmod(number, len(ASKED))
    model, kind = divmod(number, len(THINGS))
    thing = f"{THINGS[kind]} K{model}"
    said = (f"I have a question about the {thing}.", f"Of course, what about the {thing}?")
    turns = [Turn("user", said[0]), Turn("assistant", said[1]), Turn("user", wordings[place].format(thing=thing))]
    return Request(turns)
