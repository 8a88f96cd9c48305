"""Whatever works for a request works in its scope: the search as the model, in plain calls and coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from smartcache import Answer, Chunk, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.scopes import current_scope
from smartcache.testing import FakeModel, TableEmbedder, chunk

QUESTION = "Which buildings are there?"


class Seeing:
    """Searches that note the scope they run in."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def search(self, query: str) -> list[Chunk]:
        self.scopes.append(current_scope())
        return [chunk("1", "house")]

    async def asearch(self, query: str) -> list[Chunk]:
        await asyncio.sleep(0)
        return self.search(query)

    def by_pieces(self, query: str) -> Iterator[Chunk]:
        yield from self.search(query)

    def verifier(self, asked: object, stored: object) -> bool:
        return bool(self.search(""))


def ask(scope: str, text: str = QUESTION) -> Request:
    return Request([Turn("user", text)], scope)


async def _streamed(cache: SmartCache, seeing: Seeing, scope: str) -> None:
    async for _ in cache.astream(ask(scope), FakeModel().astream, search=seeing.asearch):
        seeing.scopes.append(f"its reader: {current_scope()!r}")


WAYS: dict[str, Callable[[SmartCache, Seeing, str], object]] = {
    "answer": lambda cache, seeing, scope: cache.answer(ask(scope), FakeModel(), search=seeing.search),
    "by pieces": lambda cache, seeing, scope: cache.answer(ask(scope), FakeModel(), search=seeing.by_pieces),
    "stream": lambda cache, seeing, scope: list(cache.stream(ask(scope), FakeModel().stream, search=seeing.search)),
    "aanswer": lambda cache, seeing, scope: asyncio.run(
        cache.aanswer(ask(scope), FakeModel().acall, search=seeing.asearch)
    ),
    "plain aanswer": lambda cache, seeing, scope: asyncio.run(
        cache.aanswer(ask(scope), FakeModel().acall, search=seeing.search)
    ),
    "astream": lambda cache, seeing, scope: asyncio.run(_streamed(cache, seeing, scope)),
    "retrieve": lambda cache, seeing, scope: cache.retrieve(QUESTION, seeing.search, scope=scope),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_search_runs_in_the_scope_of_its_request_and_nothing_after_it(way):
    seeing = Seeing()
    with SmartCache.open(mode="exact", strict=True) as cache:
        for scope in ("acme", "", "globex"):
            WAYS[way](cache, seeing, scope)
    seen = [scope for scope in seeing.scopes if not scope.startswith("its reader")]
    assert seen == ["acme", "", "globex"]
    assert set(seeing.scopes) - set(seen) <= {"its reader: ''"}
    assert current_scope() == ""


def test_a_verifier_runs_in_the_scope_of_the_request():
    seeing, embedder = Seeing(), TableEmbedder({("one is here", "one is there"): 0.84})
    cache = SmartCache.open(embedder=embedder, policy=ThresholdPolicy(), verifier=seeing.verifier)
    cache.store(ask("acme", "one is here"), Answer("yes"))
    assert cache.lookup(ask("acme", "one is there")) is not None
    assert seeing.scopes == ["acme"]
