"""An entry that this version of LangChain cannot rebuild is a miss and an event, whichever way it is asked for."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.outputs import Generation

from langchain_smartcache import ChatSmartCache, SmartLLMCache, payload
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder

QUESTION = "How do I reset the thermostat?"


async def _astream(chat: Any) -> str:
    return "".join([chunk.content async for chunk in chat.astream(QUESTION)])


WAYS = {
    "invoke": lambda chat: chat.invoke(QUESTION).content,
    "stream": lambda chat: "".join(chunk.content for chunk in chat.stream(QUESTION)),
    "ainvoke": lambda chat: asyncio.run(chat.ainvoke(QUESTION)).content,
    "astream": lambda chat: asyncio.run(_astream(chat)),
}


@pytest.fixture
def lenient() -> Iterator[SmartCache]:
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        yield cache


@pytest.mark.parametrize("way", WAYS)
def test_a_message_that_cannot_be_rebuilt_is_answered_anew(
    model: Any, lenient: SmartCache, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    chat = ChatSmartCache(model=model, cache=lenient)
    chat.invoke(QUESTION)
    with monkeypatch.context() as later_version:
        later_version.setattr(payload, "_MESSAGES", {})
        assert WAYS[way](chat) == "answer number 2"
    assert lenient.stats().misses == {"new": 1, "not_restorable": 1}
    assert lenient.stats().troubles == {"restore": 1}


@pytest.mark.parametrize("way", WAYS)
def test_a_message_that_can_be_rebuilt_is_served(model: Any, lenient: SmartCache, way: str) -> None:
    chat = ChatSmartCache(model=model, cache=lenient)
    chat.invoke(QUESTION)
    assert WAYS[way](chat) == "answer number 1"
    assert lenient.stats().troubles == {}


def test_langchains_own_hook_finds_nothing_that_cannot_be_rebuilt(
    lenient: SmartCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = SmartLLMCache(lenient)
    hook.update("Is it on?", "settings", [Generation(text="yes")])
    assert hook.lookup("Is it on?", "settings") == [Generation(text="yes")]
    monkeypatch.setattr(payload, "Generation", None)
    assert hook.lookup("Is it on?", "settings") is None
