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


@dataclass(eq=False)  # one search, whatever it holds
class Documents:
    """What the application has: each updater writes its own half, tells the cache, and only then says that it has.

    Even documents alone are ever edited, or removed and added. An answer holds the text that it was made from.
    """

    cache: SmartCache
    texts: dict[int, str | None] = field(default_factory=lambda: {n: f"{n}:0" for n in range(DOCUMENTS)})
    told: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(DOCUMENTS), 0))

    def search(self, query: str) -> tuple[Chunk, ...]:
        """One object for all, so that what it finds is remembered; a question is of the document that it names."""
        number = int(query.rstrip("?").split()[-2])
        return () if self.texts[number] is None else (self.chunk(number),)

    def chunk(self, number: int) -> Chunk:
        return chunk(f"document {number}", self.texts[number] or "", source=f"kb {number}")

    def edit(self, number: int, edition: int, chance: random.Random) -> None:
        """One document a source, so that what comes in puts no other document's answers in doubt."""
        source = f"kb {number}"
        if chance.random() < 0.3:
            self.texts[number] = None
            self.cache.update_knowledge(KnowledgeUpdate(removed=[f"document {number}"], source=source))
            self.told[number] = edition
            edition += 1
            self.texts[number] = f"{number}:{edition}"
            self.cache.update_knowledge(KnowledgeUpdate(added=[self.chunk(number)], source=source))
        else:
            self.texts[number] = f"{number}:{edition}"
            self.cache.update_knowledge(KnowledgeUpdate(changed=[self.chunk(number)], source=source))
        self.told[number] = edition


@dataclass
class Seen:
    stale: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    hits: int = 0
    edits: int = 0


NONE = "there is none"


def said(request: Request, chunks: tuple[Chunk, ...]) -> Answer:
    return Answer(chunks[0].text if chunks else NONE)


def asked(documents: Documents, chance: random.Random, seen: Seen) -> None:
    number, way = chance.randrange(DOCUMENTS), chance.choice(("answer", "answer", "lookup", "retrieve"))
    question = f"What does document number {number} say?"
    request = Request([Turn("user", question)], options={"draw": chance.randrange(2)})
    current = documents.told[number]  # at the moment the request begins
    is_untouched = number % 2 == 1
    if way == "retrieve":
        text = "".join(chunk.text for chunk in documents.cache.retrieve(question, documents.search)) or NONE
        seen.lost += [question] if is_untouched and text == NONE else []
    else:
        answer = (
            documents.cache.answer(request, said, search=documents.search)
            if way == "answer"
            else documents.cache.lookup(request)
        )
        if is_untouched and (answer is None or not answer.is_hit):
            seen.lost.append(question)
        seen.hits += bool(answer and answer.is_hit)
        text = answer.text if answer else NONE
    if text != NONE and int(text.partition(":")[2]) < current:
        seen.stale.append(f"{text}, though edition {current} was told of")


def stressed(seconds: float, **settings: object) -> Seen:
    seen, end = Seen(), time.monotonic() + seconds
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True, **settings) as cache:
        documents = Documents(cache)
        for number in range(DOCUMENTS):
            cache.update_knowledge(KnowledgeUpdate.replace(f"kb {number}", [documents.chunk(number)]))
            for draw in range(2):
                turns = [Turn("user", f"What does document number {number} say?")]
                cache.answer(Request(turns, options={"draw": draw}), said, search=documents.search)

        def run(kind: str, seed: int) -> None:
            chance, edition = random.Random(seed), 0
            try:
                while time.monotonic() < end:
                    if kind == "ask":
                        asked(documents, chance, seen)
                    else:
                        edition += 2
                        documents.edit(2 * UPDATERS * chance.randrange(DOCUMENTS // 4) + 2 * seed, edition, chance)
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
