"""B65, B12: the cache's own trouble is never the caller's, and a key made in one process is found in another."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage

from llama_index_smartcache import SmartCacheLLM, SmartCacheQueryEngine
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder

BACK = "How long may goods be sent back?"
ASKED = [ChatMessage(role="user", content=BACK)]


class Broken(BagOfWordsEmbedder):
    def __call__(self, texts, /):
        raise RuntimeError("the embedder is down")


def broken():
    return SmartCache.open(embedder=Broken())


def closed():
    cache = SmartCache.open(embedder=BagOfWordsEmbedder())
    cache.close()
    return cache


CALLS = {
    "chat": lambda llm, engine: llm.chat(ASKED).message.content,
    "achat": lambda llm, engine: asyncio.run(llm.achat(ASKED)).message.content,
    "stream": lambda llm, engine: list(llm.stream_chat(ASKED))[-1].message.content,
    "query": lambda llm, engine: str(engine.query(BACK)),
    "aquery": lambda llm, engine: str(asyncio.run(engine.aquery(BACK))),
}


@pytest.mark.parametrize("opened", [broken, closed])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_b65_the_model_answers_whatever_ails_the_cache(index, llm, opened, call):
    cache = opened()
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), cache)
    assert call(SmartCacheLLM(llm, cache), engine) == "answer 1 of the model"
    assert sum(cache.stats().troubles.values()) > 0


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_b65_a_sound_cache_counts_no_trouble(index, llm, cache, call):
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), cache)
    assert [call(SmartCacheLLM(llm, cache), engine) for _ in range(2)] == ["answer 1 of the model"] * 2
    assert (cache.stats().troubles, cache.stats().exact) == ({}, 1)


ELSEWHERE = """
import sys
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.llms import MockLLM
from llama_index.core.tools import FunctionTool
from llama_index_smartcache import SmartCacheLLM, SmartCacheQueryEngine
from smartcache import SmartCache

def add(a: int, b: int) -> int:
    return a + b

picture = [TextBlock(text="What is this?"), ImageBlock(image=b"a cat")]
with SmartCache.open(sys.argv[1], mode="exact", strict=True) as cache:
    llm = SmartCacheLLM(MockLLM(max_tokens=8), cache)
    llm.chat([ChatMessage(role="user", content="Where is it?")])
    llm.chat([ChatMessage(role="user", blocks=picture)])
    llm.chat([ChatMessage(role="user", content="Add.")], tools=[FunctionTool.from_defaults(add)], stop={"b", "a", "c"})
    index = VectorStoreIndex.from_documents([Document(text="A.", id_="a")], embed_model=MockEmbedding(4))
    SmartCacheQueryEngine(index.as_query_engine(llm=MockLLM(max_tokens=8)), cache, source="docs").query("Where is it?")
    print(cache.stats().exact, cache.stats().bypasses)
"""


def test_b12_a_second_process_finds_the_answers(tmp_path):
    said = []
    for seed in ("1", "2"):
        paths = os.pathsep.join(path for path in sys.path if path and Path(path).exists())
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "cache.db")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        said.append(done.stdout.splitlines()[-1])
    assert said == ["0 {}", "4 {}"]
