"""An entry that this version of LlamaIndex cannot rebuild is a miss and an event, whichever way it is asked for."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse

from llama_index_smartcache import SmartCacheLLM, SmartCacheQueryEngine, nodes
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder

RESET = "How do I reset the hub to factory settings?"
BACK = "Within how many days may goods be sent back?"


@pytest.fixture
def lenient():
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        yield cache


async def last_of(stream):
    return [piece async for piece in await stream][-1]


CHAT = [ChatMessage(role="user", content=RESET)]
WAYS = {
    "chat": lambda llm: llm.chat(CHAT).message.content,
    "achat": lambda llm: asyncio.run(llm.achat(CHAT)).message.content,
    "stream_chat": lambda llm: list(llm.stream_chat(CHAT))[-1].message.content,
    "astream_chat": lambda llm: asyncio.run(last_of(llm.astream_chat(CHAT))).message.content,
    "complete": lambda llm: llm.complete(RESET).text,
    "stream_complete": lambda llm: list(llm.stream_complete(RESET))[-1].text,
}


def cannot_be_read(*args, **kwargs):
    raise ValueError("written by another version")


@pytest.mark.parametrize("way", WAYS)
def test_a_response_that_cannot_be_rebuilt_is_answered_anew(llm, lenient, monkeypatch, way):
    cached = SmartCacheLLM(llm=llm, cache=lenient)
    first = WAYS[way](cached)
    with monkeypatch.context() as later_version:
        later_version.setattr(ChatResponse, "model_validate", cannot_be_read)
        later_version.setattr(CompletionResponse, "model_validate", cannot_be_read)
        assert (WAYS[way](cached), llm.calls) == ("answer 2 of the model", 2)
    assert first == "answer 1 of the model"
    assert lenient.stats().misses == {"new": 1, "not_restorable": 1}
    assert lenient.stats().troubles == {"restore": 1}


@pytest.mark.parametrize("way", WAYS)
def test_a_response_that_can_be_rebuilt_is_served(llm, lenient, way):
    cached = SmartCacheLLM(llm=llm, cache=lenient)
    assert (WAYS[way](cached), WAYS[way](cached), llm.calls) == (*["answer 1 of the model"] * 2, 1)


QUERIES = {"query": lambda engine: engine.query(BACK), "aquery": lambda engine: asyncio.run(engine.aquery(BACK))}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("way", QUERIES)
def test_nodes_that_cannot_be_rebuilt_are_searched_and_answered_anew(index, llm, lenient, monkeypatch, way, streaming):
    inner = index.as_query_engine(llm=llm, similarity_top_k=1, streaming=streaming and way == "query")
    engine = SmartCacheQueryEngine(inner, lenient)
    first = str(QUERIES[way](engine))
    with monkeypatch.context() as later_version:
        later_version.setattr(nodes, "json_to_doc", cannot_be_read)
        again = QUERIES[way](engine)
    assert (again.metadata["smartcache"]["served_by"], first) == ("model", "answer 1 of the model")
    assert lenient.stats().misses == {"new": 1, "not_restorable": 1}


@pytest.mark.parametrize("way", QUERIES)
def test_nodes_that_can_be_rebuilt_are_served(index, llm, lenient, way):
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), lenient)
    QUERIES[way](engine)
    assert QUERIES[way](engine).metadata["smartcache"]["served_by"] == "exact"
