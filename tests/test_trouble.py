"""The cache's own trouble: counted, never the caller's, and never a reason to serve what is stale."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading

import pytest

from smartcache import KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.errors import StoreError
from smartcache.layers import semantic
from smartcache.storage.vector_lists import Lists
from smartcache.storage.vectors import VectorIndex
from smartcache.testing import BagOfWordsEmbedder, FakeClock, FakeModel, FakeSearch, chunk

RESET, RESET_REWORDED = "How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?"
NAME, NAME_REWORDED = "How do I rename a room of the house?", "A room of the house, how do I rename?"


def ask(text: str, **parts: object) -> Request:
    return Request([Turn("user", text)], **parts)  # type: ignore[arg-type]  # keywords of several types


def open_cache(path, **settings) -> SmartCache:
    return SmartCache.open(path, **{"embedder": BagOfWordsEmbedder()} | settings)


def damage(path, column: str, value: object) -> None:
    with sqlite3.connect(path / "smartcache.db") as connection:
        connection.execute(f"UPDATE answers SET {column} = ? WHERE id = 1", (value,))


def two_answers(path) -> None:
    with open_cache(path) as cache:
        for question, found in ((RESET, chunk("a", "old")), (NAME, chunk("b", "old"))):
            cache.answer(ask(question), FakeModel(), search=FakeSearch([found]))


def test_a_damaged_entry_keeps_no_update_out(tmp_path):
    two_answers(tmp_path)
    damage(tmp_path, "basis", "[[")
    with open_cache(tmp_path) as cache:
        cache.update_knowledge(KnowledgeUpdate(changed=[chunk("b", "new")]))
        assert cache.lookup(ask(NAME)) is None
        assert cache.stats().troubles["invalidate"] == 1


def test_a_damaged_vector_hides_no_other_entry(tmp_path):
    two_answers(tmp_path)
    damage(tmp_path, "state", b"123")
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask(RESET_REWORDED)) is None
        assert cache.lookup(ask(NAME_REWORDED)).served_by == "semantic"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("dialogue", "[["),
        ("dialogue", "5"),
        ("dialogue", "[[], 5]"),
        ("dialogue", b"\xff\xfe"),
        ("dialogue", "[" * 100_000),
        ("dialogue", json.dumps([[], RESET_REWORDED])),
        ("answer", "[["),
        ("checksum", ""),
    ],
)
def test_a_near_entry_that_was_changed_on_disk_is_set_aside_and_hides_no_other(tmp_path, column, value):
    two_answers(tmp_path)
    damage(tmp_path, column, value)
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask(RESET_REWORDED)) is None
        assert set(cache.stats().troubles) == {"damaged"}
        assert cache.lookup(ask(NAME_REWORDED)).served_by == "semantic"


@pytest.mark.parametrize("dimension", [256, 500, 1024])
def test_an_embedder_of_another_dimension_finds_nothing_and_starts_anew(tmp_path, dimension):
    two_answers(tmp_path)
    with open_cache(tmp_path, embedder=BagOfWordsEmbedder(dimension), strict=True) as cache:
        assert cache.lookup(ask(RESET_REWORDED)) is None
        cache.answer(ask(RESET, scope="new"), FakeModel())
        assert cache.lookup(ask(RESET_REWORDED, scope="new")).served_by == "semantic"


@pytest.mark.parametrize(("trained", "troubles"), [(lambda *_: 1 / 0, {"index": 1}), (None, {})])
def test_lists_that_cannot_be_made_are_counted_and_everything_is_found(monkeypatch, trained, troubles):
    if trained:
        monkeypatch.setattr(Lists, "trained", classmethod(trained))
    monkeypatch.setattr(semantic, "VectorIndex", lambda dimension, **rest: VectorIndex(dimension, max_flat=3, **rest))
    with open_cache(None) as cache:
        for text in (RESET, NAME, "What is the hub made of?", "Which colours are there?"):
            cache.answer(ask(text), FakeModel())
        assert cache.lookup(ask(RESET_REWORDED)).served_by == "semantic"
        for partition in cache._answers._semantic._partitions.values():
            partition.index.wait()
        assert cache.lookup(ask(NAME_REWORDED)).served_by == "semantic"
        assert cache.stats().troubles == troubles


HALF_A_SIGN = RESET.replace("hub", "\ud83d hub")


@pytest.mark.parametrize(
    "turns",
    [
        [Turn("user", HALF_A_SIGN)],
        [Turn("user", HALF_A_SIGN), Turn("assistant", "Hold it."), Turn("user", RESET_REWORDED)],
        [Turn("user", "Hi."), Turn("assistant", "Hello \ud83d"), Turn("user", RESET_REWORDED)],
    ],
)
def test_half_a_sign_is_compared_exactly_and_is_no_trouble(turns):
    request = Request(turns)
    with open_cache(None, embedder=Particular(), strict=True) as cache:
        cache.answer(ask(RESET), FakeModel())
        assert cache.answer(request, FakeModel()).served_by == "model"
        assert cache.answer(request, FakeModel()).served_by == "exact"
        assert (dict(cache.stats().misses), cache.stats().troubles) == ({"new": 1, "broken_text": 1}, {})
        assert cache.explain(Request([Turn("user", HALF_A_SIGN + "?")]))[0].refusal == "broken_text"


def test_a_whole_sign_is_compared_by_its_meaning():
    with open_cache(None, embedder=Particular(), strict=True) as cache:
        cache.answer(ask(f"\N{GRINNING FACE} {RESET}"), FakeModel())
        assert cache.lookup(ask(f"\N{GRINNING FACE} {RESET_REWORDED}")).served_by == "semantic"


class Particular(BagOfWordsEmbedder):
    """As tokenizers are: what UTF-8 has no form for they refuse."""

    def __call__(self, texts):
        return super().__call__([text.encode().decode() for text in texts])


def test_a_closed_cache_raises_nothing_and_finds_nothing(tmp_path):
    cache, search = open_cache(tmp_path), FakeSearch([chunk("a", "text")])
    cache.retrieve(RESET, search)
    cache.close()
    cache.close()
    assert cache.answer(ask(RESET), FakeModel()).served_by == "model"
    assert cache.retrieve(RESET, search)
    assert len(search.queries) == 2
    assert (cache.stats().requests, cache.stats().entries) == (1, 0)


def test_a_full_disk_is_a_miss_and_nothing_is_lost(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.answer(ask(RESET), FakeModel())
        connection = cache._entries._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(5):
            cache.answer(ask(f"question {number}"), FakeModel(lambda request, chunks: "x" * 9_000))
        assert cache.stats().troubles == {"store": 5}
        connection.execute("PRAGMA max_page_count = 100000")
        assert cache.lookup(ask(RESET)).served_by == "exact"
        cache.answer(ask(NAME), FakeModel())
        assert cache.lookup(ask(NAME)).served_by == "exact"


def test_counts_may_be_read_while_requests_run():
    with SmartCache.open(mode="exact") as cache:
        threads = [threading.Thread(target=lambda: [cache.lookup(ask(RESET)) for _ in range(300)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert cache.stats().hits == 0
        assert cache.stats().requests == 1_200


def test_a_number_of_any_length_has_a_key():
    with SmartCache.open(mode="exact", strict=True) as cache:
        cache.answer(ask(RESET, options={"seed": 10**5_000}), FakeModel())
        assert cache.lookup(ask(RESET, options={"seed": 10**5_000})).served_by == "exact"
        assert cache.lookup(ask(RESET, options={"seed": 10**5_000 + 1})) is None


def test_an_update_in_another_process_reaches_retrievals(tmp_path):
    search = FakeSearch([chunk("a", "old")])
    with open_cache(tmp_path) as here, open_cache(tmp_path) as elsewhere:
        for _ in range(2):
            here.retrieve("a question", search)
        assert len(search.queries) == 1
        elsewhere.update_knowledge(KnowledgeUpdate(changed=[chunk("a", "new")]))
        search.chunks = [chunk("a", "new")]
        assert here.retrieve("a question", search) == (chunk("a", "new"),)


def test_a_clock_that_is_set_back_evicts_no_newcomer_and_hides_nothing_from_forget():
    clock = FakeClock()
    with SmartCache.open(mode="exact", max_entries=2, clock=clock, strict=True) as cache:
        cache.answer(ask("one"), FakeModel())
        cache.answer(ask("two"), FakeModel())
        clock.advance(-1_000)
        cache.answer(ask("three"), FakeModel())
        assert [cache.lookup(ask(text)) is not None for text in ("one", "two", "three")] == [False, True, True]
        assert cache.forget(older_than=10.0) == 0
        assert cache.forget(older_than=0) == 2


def test_a_request_that_is_cancelled_while_it_waits_is_counted_too():
    async def slowly(request, chunks):
        await asyncio.sleep(0.05)
        return "an answer"

    async def first_and_given_up(cache):
        tasks = [asyncio.create_task(cache.aanswer(ask(RESET), slowly)) for _ in range(3)]
        await asyncio.sleep(0.02)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with SmartCache.open(mode="exact", strict=True) as cache:
        asyncio.run(first_and_given_up(cache))
        stats = cache.stats()
        assert (stats.requests, stats.exact, dict(stats.misses)) == (3, 1, {"given_up": 1, "new": 1})


def test_what_was_read_of_a_text_goes_with_forget_in_exact_mode_too():
    cache = SmartCache.open(mode="exact")
    model, said = (
        FakeModel(),
        [Turn("user", "I live in Halden."), Turn("assistant", "Nice."), Turn("user", "Is it cold?")],
    )
    search = FakeSearch([])
    cache.answer(Request(said), model, search=search)
    assert any("Halden" in query for query in search.queries)
    cache.clear()
    assert not any("Halden" in text for text in cache._desk._read_text._facts)


@pytest.mark.parametrize(("troubled", "text", "searches"), [(True, "new", 2), (False, "old", 1)])
def test_where_news_cannot_be_read_nothing_that_was_found_before_reaches_the_model(
    monkeypatch, troubled, text, searches
):
    def locked(knowledge: object) -> None:
        raise StoreError("locked")

    texts, given = ["old"], []
    cache, search = open_cache(None), Searching(texts)
    cache.answer(ask(RESET), FakeModel(), search=search)
    texts[:] = ["new"]
    if troubled:
        monkeypatch.setattr(cache._entries, "refresh_knowledge", locked)
    again = ask(RESET, options={"cache": "exact", "more": 1})
    cache.answer(again, lambda request, chunks: given.append(chunks[0].text) or "", search=search)
    assert (given, search.queries) == ([text], searches)


class Searching:
    """Finds one chunk, as its text is now."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.queries = texts, 0

    def __call__(self, query: str) -> list:
        self.queries += 1
        return [chunk("a", self.texts[0])]
