"""An engine over an index that nothing watches says so; over a watched one it is silent."""

from __future__ import annotations

import logging

import pytest
from llama_index.core import VectorStoreIndex

from llama_index_smartcache import SmartCacheQueryEngine, watch_index
from smartcache import Chunk, ChunkRef, KnowledgeUpdate, SmartCache

QUESTION = "How long may goods be sent back?"


@pytest.fixture
def warned(caplog):
    """What was warned of so far."""
    caplog.set_level(logging.WARNING, "smartcache")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "smartcache"]


@pytest.mark.parametrize("source", ["", "house"])
def test_an_index_that_nothing_watches_is_warned_of(index, engine_over, warned, source):
    engine_over(index, source=source).query(QUESTION)
    (message,) = warned()
    assert index.index_id in message
    assert "watch_index(index, cache" in message
    assert (f"source={source!r}" in message) == bool(source)


def test_it_is_warned_of_once_however_many_engines_ask(index, engine_over, warned):
    for scope in ("ann", "birk", "ann"):
        engine_over(index, scope=scope).query(QUESTION)
    assert len(warned()) == 1


async def test_a_coroutine_warns_too(index, engine_over, warned):
    await engine_over(index).aquery(QUESTION)
    assert len(warned()) == 1


@pytest.mark.parametrize(("watched", "asked"), [("", ""), ("house", "house"), ("", "house"), ("house", "")])
def test_a_watched_index_is_not(index, engine_over, cache, warned, watched, asked):
    watch_index(index, cache, source=watched)
    engine_over(index, source=asked).query(QUESTION)
    assert warned() == []


def test_a_watch_may_begin_after_the_engine_was_made(index, engine_over, cache, warned):
    engine = engine_over(index)
    watch_index(index, cache)
    engine.query(QUESTION)
    assert warned() == []


def test_a_watch_of_another_source_does_not_count(index, engine_over, cache, warned):
    watch_index(index, cache, source="annex")
    engine_over(index, source="house").query(QUESTION)
    assert len(warned()) == 1


def test_a_watch_for_another_cache_does_not_count(index, engine_over, warned):
    with SmartCache.open(mode="exact") as other:
        watch_index(index, other)
        engine_over(index).query(QUESTION)
    assert len(warned()) == 1


def test_a_watch_beneath_that_of_another_cache_counts(index, engine_over, cache, warned):
    watch_index(index, cache)
    with SmartCache.open(mode="exact") as other:
        watch_index(index, other)
        engine_over(index).query(QUESTION)
    assert warned() == []


def test_a_watch_that_was_closed_does_not_count(index, engine_over, cache, warned):
    watch_index(index, cache).close()
    engine_over(index).query(QUESTION)
    assert len(warned()) == 1


def test_a_watch_over_the_same_vector_store_counts(index, engine_over, cache, embedding, warned):
    watch_index(index, cache)
    other = VectorStoreIndex([], storage_context=index.storage_context, embed_model=embedding)
    engine_over(other).query(QUESTION)
    assert warned() == []


def test_a_source_that_the_cache_is_told_of_by_other_means_counts(index, engine_over, cache, warned):
    cache.update_knowledge(KnowledgeUpdate(added=[Chunk(ChunkRef("a", "1"), "text")], source="house"))
    engine_over(index, source="house").query(QUESTION)
    assert warned() == []


def test_so_does_a_watch_in_another_process_of_an_index_that_held_nothing(tmp_path, embedding, make_llm, warned):
    with SmartCache.open(tmp_path / "c.db", mode="exact") as theirs:
        watch_index(VectorStoreIndex([], embed_model=embedding), theirs, source="house")
    with SmartCache.open(tmp_path / "c.db", mode="exact") as ours:
        engine = VectorStoreIndex([], embed_model=embedding).as_query_engine(llm=make_llm())
        SmartCacheQueryEngine(engine, ours, source="house").query(QUESTION)
    assert warned() == []
