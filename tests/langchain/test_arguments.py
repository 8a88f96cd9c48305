"""What our classes are given: what they would have to ignore raises, what they know is taken."""

import asyncio
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from langchain_smartcache import ChatLocalModel, ChatSmartCache, SmartCacheRetriever, SmartLLMCache, watch_vectorstore

QUESTION = "When did the mission launch?"


class OneDocument(BaseRetriever):
    """Finds the same document whatever is asked."""

    def _get_relevant_documents(self, query: str, **options: Any) -> list[Document]:
        return [Document(page_content="It launched in May.")]


@pytest.fixture
def make(model: Any, cache: Any) -> Any:
    """Makes one of ours by its class, with more fields."""
    fields: dict[type, dict[str, Any]] = {
        ChatSmartCache: {"model": model, "cache": cache},
        ChatLocalModel: {"model": object()},
        SmartCacheRetriever: {"retriever": OneDocument(), "cache": cache},
    }
    return lambda kind, **more: kind(**{**fields[kind], **more})


@pytest.mark.parametrize("kind", [ChatSmartCache, ChatLocalModel, SmartCacheRetriever])
def test_a_mistyped_field_raises_and_is_named(make: Any, kind: Any) -> None:
    with pytest.raises(ValidationError, match="scopee"):
        make(kind, scopee="ann")


@pytest.mark.parametrize(
    ("kind", "field"),
    [(ChatSmartCache, "scope"), (ChatLocalModel, "name"), (SmartCacheRetriever, "scope"), (ChatSmartCache, "name")],
)
def test_a_field_of_ours_or_of_langchain_is_taken(make: Any, kind: Any, field: str) -> None:
    assert getattr(make(kind, **{field: "ann"}), field) == "ann"


CALLS = {
    "an option": lambda runnable: runnable.invoke(QUESTION, scope="ann"),
    "a bound option": lambda runnable: runnable.bind(scope="ann").invoke(QUESTION),
    "an option of a batch": lambda runnable: runnable.batch([QUESTION], scope="ann"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", [ChatSmartCache, SmartCacheRetriever])
def test_a_scope_among_a_calls_options_raises_and_says_how_it_is_set(
    make: Any, model: Any, kind: Any, call: Any
) -> None:
    with pytest.raises(TypeError, match=r"scope=.*configurable_fields"):
        call(make(kind, scope="birk"))
    assert model.calls == 0


def test_a_scope_among_the_options_of_a_stream_raises_too(make: Any) -> None:
    with pytest.raises(TypeError, match="configurable_fields"):
        list(make(ChatSmartCache).stream(QUESTION, scope="ann"))


async def test_a_scope_among_the_options_of_a_coroutine_raises_too(make: Any) -> None:
    with pytest.raises(TypeError, match="configurable_fields"):
        await make(ChatSmartCache).ainvoke(QUESTION, scope="ann")


def test_another_option_of_a_call_goes_to_the_model(make: Any, model: Any) -> None:
    make(ChatSmartCache).bind(top_p=0.5).invoke(QUESTION)
    assert model.options == [{"top_p": 0.5}]


@pytest.mark.parametrize("key", ["tenant", "scope"])
def test_a_configurable_scope_keeps_tenants_apart_and_gives_each_its_own(make: Any, key: str) -> None:
    chat = make(ChatSmartCache).configurable_fields(scope=ConfigurableField(id=key))
    said = [chat.invoke(QUESTION, {"configurable": {key: tenant}}).content for tenant in ("ann", "birk", "ann")]
    assert said == ["answer number 1", "answer number 2", "answer number 1"]


async def read(chunks: Any) -> list[Any]:
    return [chunk async for chunk in chunks]


TOLD = {
    "invoke": lambda chat, config: chat.invoke(QUESTION, config),
    "stream": lambda chat, config: list(chat.stream(QUESTION, config)),
    "batch": lambda chat, config: chat.batch([QUESTION], config),
    "with_config": lambda chat, config: chat.with_config(config).invoke(QUESTION),
    "a chain": lambda chat, config: (RunnableLambda(lambda text: text) | chat).invoke(QUESTION, config),
    "ainvoke": lambda chat, config: asyncio.run(chat.ainvoke(QUESTION, config)),
    "astream": lambda chat, config: asyncio.run(read(chat.astream(QUESTION, config))),
    "explain": lambda chat, config: chat.explain(QUESTION, config=config),
}
BY_TENANT = {"configurable": {"scope": "ann"}}


@pytest.mark.parametrize("call", TOLD.values(), ids=TOLD)
def test_a_scope_that_nobody_made_configurable_is_warned_of(make: Any, call: Any) -> None:
    with pytest.warns(UserWarning, match=r"scope .* is not read.*configurable_fields"):
        call(make(ChatSmartCache), BY_TENANT)


@pytest.mark.parametrize("call", TOLD.values(), ids=TOLD)
def test_one_that_is_configurable_is_not(make: Any, call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        call(make(ChatSmartCache).configurable_fields(scope=ConfigurableField(id="scope")), BY_TENANT)


def test_what_else_is_configurable_is_none_of_ours(make: Any) -> None:
    chat = make(ChatSmartCache)
    said = [chat.invoke(QUESTION, {"configurable": {"thread_id": thread}}).content for thread in "ab"]
    assert said == ["answer number 1"] * 2


def test_its_repr_shows_the_cache_that_it_was_given(make: Any, cache: Any) -> None:
    shown = repr(make(ChatSmartCache, scope="ann"))
    assert f"cache={cache!r}" in shown
    assert "scope='ann'" in shown
    assert "cache=False" not in shown


def test_a_chat_that_is_set_to_stream_shares_what_is_stored(make: Any, model: Any) -> None:
    assert make(ChatSmartCache, streaming=True).invoke(QUESTION).content == "answer number 1"
    assert make(ChatSmartCache).invoke(QUESTION).content == "answer number 1"
    assert model.calls == 1


GIVEN = {
    "ChatSmartCache": lambda model, cache: ChatSmartCache(model=model, cache=cache),
    "SmartLLMCache": lambda model, cache: SmartLLMCache(cache),
    "SmartCacheRetriever": lambda model, cache: SmartCacheRetriever(retriever=OneDocument(), cache=cache),
    "watch_vectorstore": lambda model, cache: watch_vectorstore(a_store(), cache),
}


def a_store() -> InMemoryVectorStore:
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=8))


@pytest.mark.parametrize("other", ["a.db", None, a_store()], ids=["a path", "None", "a store"])
@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_what_is_no_cache_raises_and_the_error_says_how_to_open_one(model: Any, give: Any, other: Any) -> None:
    with pytest.raises(TypeError, match=r"cache= takes a SmartCache, not .*SmartCache\.open\("):
        give(model, other)


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_a_cache_is_taken(model: Any, cache: Any, give: Any) -> None:
    assert give(model, cache) is not None


def test_a_chat_without_a_cache_raises_the_same(model: Any) -> None:
    with pytest.raises(TypeError, match="cache= takes a SmartCache, not None"):
        ChatSmartCache(model=model)


def test_watch_vectorstore_says_which_argument_comes_first(cache: Any) -> None:
    with pytest.raises(TypeError, match="takes a vector store first, not a SmartCache"):
        watch_vectorstore(cache, a_store())  # type: ignore[type-var, arg-type]  # the mistake
