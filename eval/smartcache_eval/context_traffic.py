"""Requests of retrieval with several hops, made from public data: questions that need some of the same documents."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from smartcache import Chunk, ChunkRef
from smartcache.keys import content_version
from smartcache_eval.folder import UnreadableWorkload, file_in

BANK = ("tau2-banking-kb", "raw", "banking_knowledge")
MUSIQUE = ("cacheblend-inputs", "raw", "musique_s.json")
ZIPF = 0.7
SPREAD = 0.2  # of a retriever's scores, whose steps from one rank to the next are 0.1


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A question and what a retriever found for it, the best first; `answers` are the right ones, where known."""

    question: str
    chunks: tuple[Chunk, ...]
    answers: tuple[str, ...] = ()


def bank_traffic(folder: Path, requests: int, *, found: int = 5, noise: int = 1, seed: int = 0) -> list[Retrieved]:
    """Each request belongs to one of the 97 tasks, the first by Zipf: some of the documents that the task names, and as
    `noise` others of the same products."""
    documents = {d["id"]: _chunk(d["id"], f"{d['title']}\n{d['content']}") for d in _all_of(folder, "documents")}
    tasks = [[documents[id] for id in dict.fromkeys(task["required_documents"])] for task in _all_of(folder, "tasks")]
    draw, requested = random.Random(seed), list[Retrieved]()
    for number, task in _by_zipf(list(enumerate(tasks)), requests, draw):
        right = draw.sample(task, min(found - noise, len(task)))
        products = {_product(chunk) for chunk in right}
        others = [chunk for chunk in documents.values() if _product(chunk) in products and chunk not in right]
        got = [*right, *draw.sample(others, min(found - len(right), len(others)))]
        requested.append(Retrieved(f"What does customer {number} need?", _ranked(got, draw)))
    return requested


def musique_traffic(folder: Path, requests: int, *, found: int = 4, seed: int = 0) -> list[Retrieved]:
    """Each request is one of the 150 questions, the first by Zipf, with those of its ten passages that a retriever
    finds first: by words in common with the question, and noise."""
    asked = json.loads(file_in(folder, *MUSIQUE).read_text(encoding="utf-8"))
    draw, requested = random.Random(seed), list[Retrieved]()
    for one in _by_zipf(asked, requests, draw):
        words = _words(one["question"])
        texts = sorted((passage["text"] for passage in one["ctxs"]), key=lambda text: -len(words & _words(text)))
        chunks = _ranked([_chunk(content_version(text), text) for text in texts], draw)
        requested.append(Retrieved(one["question"], chunks[:found], tuple(one["answers"])))
    return requested


T = TypeVar("T")


def _by_zipf(things: Sequence[T], count: int, draw: random.Random) -> list[T]:
    ranked = draw.sample(things, len(things))
    return draw.choices(ranked, [1 / (rank + 1) ** ZIPF for rank in range(len(ranked))], k=count)


def _ranked(chunks: Sequence[Chunk], draw: random.Random) -> tuple[Chunk, ...]:
    """As a retriever ranks them that is not sure: the best first, by scores with noise."""
    scores = {chunk.ref: 1 - 0.1 * rank + draw.gauss(0, SPREAD) for rank, chunk in enumerate(chunks)}
    return tuple(sorted(chunks, key=lambda chunk: -scores[chunk.ref]))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _all_of(folder: Path, kind: str) -> list[Any]:
    paths = sorted(folder.joinpath(*BANK, kind).glob("*.json"))
    if not paths:
        raise UnreadableWorkload(f"{Path(*BANK, kind)} is not there: name the folder of public data in SMARTCACHE_DATA")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _chunk(id: str, text: str) -> Chunk:
    return Chunk(ChunkRef(id, content_version(text)), text)


def _product(chunk: Chunk) -> str:
    return chunk.ref.id.rpartition("_")[0]
