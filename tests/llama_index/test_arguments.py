"""What our classes are given: what they would have to ignore, or fail over later, raises and says what to do."""

from __future__ import annotations

import pytest
from llama_index.core.llms import ChatMessage
from pydantic import ValidationError

from llama_index_smartcache import CacheAwareContext, LocalModelLLM, SmartCacheLLM, SmartCacheQueryEngine, watch_index

QUESTION = "How long may goods be sent back?"
GIVEN = {
    "SmartCacheQueryEngine": lambda index, llm, cache: SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache),
    "SmartCacheLLM": lambda index, llm, cache: SmartCacheLLM(llm, cache),
    "watch_index": lambda index, llm, cache: watch_index(index, cache),
}


@pytest.mark.parametrize("other", ["a.db", None])
@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_what_is_no_cache_raises_and_the_error_says_how_to_open_one(index, llm, give, other):
    with pytest.raises(TypeError, match=r"cache= takes a SmartCache, not .*SmartCache\.open\("):
        give(index, llm, other)


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_a_cache_is_taken(index, llm, cache, give):
    assert give(index, llm, cache) is not None


def test_watch_index_says_which_argument_comes_first(index, cache):
    with pytest.raises(TypeError, match="takes an index first, not a SmartCache"):
        watch_index(cache, index)


def test_an_index_that_could_not_be_watched_is_left_as_it_was(index):
    before = dict(vars(index))
    with pytest.raises(TypeError):
        watch_index(index, "a.db")
    assert vars(index) == before


OTHERS = {
    "an index": lambda index, llm: index,
    "a chat engine": lambda index, llm: index.as_chat_engine(chat_mode="context", llm=llm),
    "a retriever": lambda index, llm: index.as_retriever(),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_no_query_engine_raises_and_the_error_says_how_to_get_one(index, llm, cache, other):
    with pytest.raises(TypeError, match=r"index\.as_query_engine\(\)"):
        SmartCacheQueryEngine(other(index, llm), cache)


def test_a_query_engine_is_taken(index, llm, cache):
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache)
    assert str(engine.query(QUESTION)) == "answer 1 of the model"


MADE = {
    "SmartCacheLLM": lambda llm, cache, **fields: SmartCacheLLM(llm, cache, **fields),
    "LocalModelLLM": lambda llm, cache, **fields: LocalModelLLM(object(), **fields),
    "CacheAwareContext": lambda llm, cache, **fields: CacheAwareContext(**fields),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_mistyped_field_raises_and_is_named(llm, cache, make):
    with pytest.raises(ValidationError, match="scopee"):
        make(llm, cache, scopee="ann")


@pytest.mark.parametrize(
    ("make", "field"), [("SmartCacheLLM", "scope"), ("SmartCacheLLM", "system_prompt"), ("CacheAwareContext", "order")]
)
def test_a_field_of_ours_or_of_llama_index_is_taken(llm, cache, make, field):
    assert getattr(MADE[make](llm, cache, **{field: "given"}), field) == "given"


CALLS = {
    "chat": lambda llm, **options: llm.chat([ChatMessage("Who?")], **options),
    "complete": lambda llm, **options: llm.complete("Who?", **options),
    "stream_chat": lambda llm, **options: list(llm.stream_chat([ChatMessage("Who?")], **options)),
    "stream_complete": lambda llm, **options: list(llm.stream_complete("Who?", **options)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_scope_among_a_calls_keywords_raises_and_says_how_it_is_set(llm, cache, call):
    with pytest.raises(TypeError, match="scope is no keyword of a call"):
        call(SmartCacheLLM(llm, cache), scope="ann")
    assert llm.calls == 0


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_another_keyword_goes_to_the_model(llm, cache, call):
    call(SmartCacheLLM(llm, cache, scope="ann"), top_p=0.5)
    assert llm.calls == 1
