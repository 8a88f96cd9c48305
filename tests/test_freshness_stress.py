"""Asking and updating at once: no answer is served that its documents no longer held when its request began."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import pytest

from smartcache import Answer, Chunk, KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder, chunk

DOCUMENTS, ASKERS, UPDATERS = 12, 8, 2


@dataclass
class Documents:
    """What the application has: each updater writes its own half, tells the cache, and only then says that it has.

    Even documents alone are ever edited. An answer holds the text that it was made from.
    """

    cache: SmartCache
    texts: dict[int, str] = field(default_factory=lambda: {n: f"{n}:0" for n in range(DOCUMENTS)})
    told: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(DOCUMENTS), 0))

    def search(self, number: int) -> tuple[Chunk, ...]:
        return (self.chunk(number),)

    def chunk(self, number: int) -> Chunk:
        return chunk(f"document {number}", self.texts[number], source="kb")

    def edit(self, number: int, edition: int) -> None:
        self.texts[number] = f"{number}:{edition}"
        self.cache.update_knowledge(KnowledgeUpdate(changed=[self.chunk(number)], source="kb"))
        self.told[number] = edition


@dataclass
class Seen:
    stale: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    hits: int = 0
    edits: int = 0


def asked(documents: Documents, chance: random.Random, seen: Seen) -> None:
    number, with_search = chance.randrange(DOCUMENTS), chance.random() < 0.7
    request = Request([Turn("user", f"What does document number {number} say?")])
    current = documents.told[number]  # at the moment the request begins

    def generate(request: Request, chunks: tuple[Chunk, ...]) -> Answer:
        return Answer(chunks[0].text)

    if with_search:
        answer = documents.cache.answer(request, generate, search=lambda query: documents.search(number))
    else:
        answer = documents.cache.lookup(request)
    is_untouched = number % 2 == 1
    if is_untouched and (answer is None or not answer.is_hit):
        seen.lost.append(f"document {number}")
    if answer and int(answer.text.partition(":")[2]) < current:
        seen.stale.append(f"{answer.text}, though edition {current} was told of")
    seen.hits += bool(answer and answer.is_hit)


def stressed(seconds: float, **settings: object) -> Seen:
    seen, end = Seen(), time.monotonic() + seconds
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True, **settings) as cache:
        documents = Documents(cache)
        first = [documents.chunk(number) for number in range(DOCUMENTS)]
        cache.update_knowledge(KnowledgeUpdate.replace("kb", first))
        for number in range(DOCUMENTS):
            request = Request([Turn("user", f"What does document number {number} say?")])
            cache.answer(request, lambda r, c: Answer(c[0].text), search=lambda q, n=number: documents.search(n))

        def run(kind: str, seed: int) -> None:
            chance, edition = random.Random(seed), 0
            try:
                while time.monotonic() < end:
                    if kind == "ask":
                        asked(documents, chance, seen)
                    else:
                        edition += 1
                        documents.edit(2 * UPDATERS * chance.randrange(DOCUMENTS // 4) + 2 * seed, edition)
                        seen.edits += 1
                        time.sleep(0.002)
            except BaseException as error:
                seen.errors.append(error)

        work = [("ask", n) for n in range(ASKERS)] + [("update", n) for n in range(UPDATERS)]
        threads = [threading.Thread(target=run, args=one) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return seen


def check(seen: Seen) -> None:
    assert not seen.errors
    assert seen.stale == []
    assert seen.lost == []
    assert seen.hits > 0 < seen.edits


def test_nothing_stale_is_served_and_nothing_lost_while_documents_change():
    check(stressed(2.0))


@pytest.mark.slow
def test_nor_for_half_a_minute_over_a_file(tmp_path):
    check(stressed(30.0, path=tmp_path / "cache.db"))
