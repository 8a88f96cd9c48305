"""ChatSmartCache: every way of calling a chat model shares one cache, and a hit tells that it is one."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import ConfigurableField
from pydantic import BaseModel

from langchain_smartcache import ChatSmartCache
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder

QUESTION = "How do I reset the thermostat?"


async def _ainvoke(chat: Any) -> str:
    return (await chat.ainvoke(QUESTION)).content


async def _astream(chat: Any) -> str:
    return "".join([chunk.content async for chunk in chat.astream(QUESTION)])


WAYS = {
    "invoke": lambda chat: chat.invoke(QUESTION).content,
    "stream": lambda chat: "".join(chunk.content for chunk in chat.stream(QUESTION)),
    "batch": lambda chat: chat.batch([QUESTION])[0].content,
    "ainvoke": lambda chat: asyncio.run(_ainvoke(chat)),
    "astream": lambda chat: asyncio.run(_astream(chat)),
}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_any_way_of_calling_finds_what_any_other_stored(model: Any, cache: Any, first: str, second: str) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    assert WAYS[first](chat) == WAYS[second](chat) == "answer number 1"
    assert model.calls == 1


@pytest.mark.parametrize("way", WAYS)
def test_in_shadow_mode_every_way_of_calling_gets_the_model_s_answer(model: Any, way: str) -> None:
    with SmartCache.open(embedder=BagOfWordsEmbedder(), shadow=True, strict=True) as cache:
        chat = ChatSmartCache(model=model, cache=cache)
        assert [WAYS[way](chat) for _ in range(2)] == ["answer number 1", "answer number 2"]
        assert [record.layer for record in cache.shadow_records()] == ["exact"]


@pytest.mark.parametrize("way", WAYS)
def test_another_question_goes_to_the_model(model: Any, cache: Any, way: str) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke("Which colour has the cable?")
    assert WAYS[way](chat) == "answer number 2"


def test_a_stream_that_its_reader_leaves_is_not_stored(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    stream = chat.stream(QUESTION)
    next(stream)
    stream.close()
    assert chat.invoke(QUESTION).content == "answer number 2"


def test_a_model_that_cannot_stream_is_streamed_in_one_piece(cache: Any) -> None:
    from langchain_core.language_models.fake_chat_models import FakeChatModel

    chat = ChatSmartCache(model=FakeChatModel(), cache=cache)
    assert [chunk.content for chunk in chat.stream(QUESTION)] == ["fake response"]
    assert [chunk.content for chunk in chat.stream(QUESTION)] == ["fake", " response"]


def test_an_error_passes_through_and_is_not_stored(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    model.reply = lambda call, messages: (_ for _ in ()).throw(ConnectionError("provider down"))
    with pytest.raises(ConnectionError, match="provider down"):
        chat.invoke(QUESTION)
    model.reply = None
    assert chat.invoke(QUESTION).content == "answer number 2"


@pytest.mark.parametrize(
    "message",
    [
        {"content": ""},
        {"content": "I cannot", "response_metadata": {"finish_reason": "length"}},
        {"content": "I cannot", "response_metadata": {"finish_reason": "content_filter"}},
        {"content": "I cannot", "response_metadata": {"stop_reason": "max_tokens"}},
        {"content": "I cannot", "additional_kwargs": {"refusal": "I cannot"}},
        {"content": "", "invalid_tool_calls": [{"name": "f", "args": "{", "id": "1", "error": "broken"}]},
    ],
    ids=["empty", "length", "filtered", "stop_reason", "refusal", "invalid_tool_calls"],
)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_answer_that_did_not_end_well_is_not_stored(
    replying: Any, cache: Any, message: dict[str, Any], way: str
) -> None:
    model = replying(**message)
    chat = ChatSmartCache(model=model, cache=cache)
    WAYS[way](chat)
    WAYS[way](chat)
    assert (model.calls, cache.stats().stored) == (2, 0)


def test_a_hit_is_marked_with_layer_similarity_age_and_entry(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    assert chat.invoke(QUESTION).response_metadata["smartcache"] == {"served_by": "model", "hit": False}
    mark = chat.invoke(QUESTION).response_metadata["smartcache"]
    assert (mark["served_by"], mark["hit"], mark["similarity"]) == ("exact", True, 1.0)
    assert mark["age_seconds"] >= 0
    assert mark["entry_id"] > 0


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_is_marked_once(model: Any, cache: Any, way: str) -> None:
    chat = ChatSmartCache(model=model, cache=cache)

    def whole() -> AIMessageChunk:
        async def pieces() -> list[AIMessageChunk]:
            return [chunk async for chunk in chat.astream(QUESTION)]

        first, *rest = list(chat.stream(QUESTION)) if way == "stream" else asyncio.run(pieces())
        return first + rest

    assert whole().response_metadata["smartcache"]["served_by"] == "model"
    assert whole().response_metadata["smartcache"]["served_by"] == "exact"


def test_a_hit_bills_nothing_and_keeps_the_original_usage(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    answers = [chat.invoke(QUESTION) for _ in range(3)]
    assert sum(answer.usage_metadata["total_tokens"] for answer in answers) == 8
    assert ["token_usage" in answer.response_metadata for answer in answers] == [True, False, False]
    assert answers[2].response_metadata["smartcache"]["usage"]["total_tokens"] == 8


def test_every_hit_has_an_id_of_its_own_and_tells_the_original(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    answers = [chat.invoke(QUESTION) for _ in range(3)]
    assert len({answer.id for answer in answers}) == 3
    assert answers[2].response_metadata["smartcache"]["original_id"] == "provider-1"


class _Callbacks(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("start")

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("token")

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")


def test_callbacks_fire_once_a_call_live_and_on_a_hit(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    for _ in range(2):
        callbacks = _Callbacks()
        chat.invoke(QUESTION, {"callbacks": [callbacks]})
        assert callbacks.seen == ["start", "end"]


def test_callbacks_of_the_model_behind_fire_once_too(model: Any, cache: Any) -> None:
    model.callbacks = [_Callbacks()]
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    assert model.callbacks[0].seen == ["start", "end"]


def test_callbacks_of_both_fire_once_however_often_the_chat_is_made_anew(model: Any, cache: Any) -> None:
    ours, theirs = _Callbacks(), _Callbacks()
    model.callbacks = [theirs]
    chat = ChatSmartCache(model=model, cache=cache, callbacks=[ours])
    by_scope = chat.configurable_fields(scope=ConfigurableField(id="tenant"))
    by_scope.with_config(configurable={"tenant": "ann"}).invoke(QUESTION)
    assert (ours.seen, theirs.seen) == (["start", "end"], ["start", "end"])


def test_a_streamed_hit_gives_tokens_to_callbacks(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    callbacks = _Callbacks()
    list(chat.stream(QUESTION, {"callbacks": [callbacks]}))
    assert callbacks.seen == ["start", "token", "token", "token", "end"]


async def test_event_streams_tell_of_a_hit_as_of_a_live_answer(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)

    async def text() -> str:
        events = [event async for event in chat.astream_events(QUESTION, version="v2")]
        return "".join(event["data"]["chunk"].content for event in events if event["event"] == "on_chat_model_stream")

    assert await text() == await text() == "answer number 1"
    assert model.calls == 1


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_typed_event_streams_give_the_same_text_and_tool_calls(cache: Any, replying: Any) -> None:
    model = replying(content="Let me see", tool_calls=[{"name": "look_up", "args": {"part": 7}, "id": "1"}])
    chat = ChatSmartCache(model=model, cache=cache)
    outputs = [chat.stream_events(QUESTION, version="v3").output for _ in range(2)]
    assert outputs[0].content == outputs[1].content
    assert outputs[0].tool_calls == outputs[1].tool_calls
    assert model.calls == 1


def test_langchains_global_cache_does_not_answer_as_well(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    set_llm_cache(theirs := InMemoryCache())
    try:
        chat.invoke(QUESTION)
        assert not theirs._cache
        assert chat.invoke(QUESTION).response_metadata["smartcache"]["served_by"] == "exact"
    finally:
        set_llm_cache(None)


def test_a_call_can_pass_the_cache_by_or_refresh_it(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    assert chat.invoke(QUESTION, cache=False).content == "answer number 2"
    assert chat.invoke(QUESTION).content == "answer number 1"
    assert chat.invoke(QUESTION, cache="refresh").content == "answer number 3"
    assert chat.invoke(QUESTION).content == "answer number 3"
    assert all("cache" not in options for options in model.options)


def test_sampled_answers_are_drawn_anew_unless_the_draw_is_named(model: Any, cache: Any) -> None:
    model.temperature = 0.9
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.invoke(QUESTION).content for _ in range(2)] == ["answer number 1", "answer number 2"]
    draws = [chat.invoke(QUESTION, sample_index=index).content for index in (0, 1, 0, 1)]
    assert draws == ["answer number 3", "answer number 4"] * 2


def test_tenants_never_share_and_each_finds_its_own(model: Any, cache: Any) -> None:
    ours, theirs = (ChatSmartCache(model=model, cache=cache, scope=scope) for scope in ("ours", "theirs"))
    assert ours.invoke("What is my balance?").content == "answer number 1"
    assert theirs.invoke("What is my balance?").content == "answer number 2"
    assert theirs.invoke("what is my balance").content == "answer number 2"
    assert ours.invoke("what is my balance").content == "answer number 1"


def test_the_scope_of_a_call_cannot_be_set_by_its_options(model: Any, cache: Any) -> None:
    ChatSmartCache(model=model, cache=cache, scope="ours").invoke(QUESTION)
    theirs = ChatSmartCache(model=model, cache=cache, scope="theirs")
    with pytest.raises(TypeError, match="scope is no option of a call"):
        theirs.invoke(QUESTION, scope="ours")
    assert theirs.invoke(QUESTION).content == "answer number 2"


def test_langchains_configurable_fields_can_set_the_scope(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache).configurable_fields(scope=ConfigurableField(id="tenant"))
    answers = [
        chat.invoke(QUESTION, {"configurable": {"tenant": tenant}}).content for tenant in ("ours", "theirs", "ours")
    ]
    assert answers == ["answer number 1", "answer number 2", "answer number 1"]


def test_the_same_follow_up_about_another_person_misses(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    acme = [("user", "Who runs Acme?"), ("ai", "Ann runs Acme."), ("user", "How old is she?")]
    birk = [("user", "Who runs Birk?"), ("ai", "Bo runs Birk."), ("user", "How old is she?")]
    assert chat.invoke(acme).content == "answer number 1"
    assert chat.invoke(birk).content == "answer number 2"


def test_the_same_follow_up_in_an_equivalent_conversation_hits(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke([("user", "Who runs Acme?"), ("ai", "Ann runs Acme."), ("user", "How old is she?")])
    reworded = [("user", "who runs acme"), ("ai", "Ann runs Acme."), ("user", "how old is she")]
    assert chat.invoke(reworded).response_metadata["smartcache"]["served_by"] == "semantic"


LONG_TEMPLATE = (
    "You are the assistant of a hotel by the sea. Be kind, be short, answer in the language of the guest, never "
    "promise what you cannot keep, and do not speak of the weather unless asked. The guest says: {} Now answer."
)


def test_different_questions_under_one_long_template_miss(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    questions = ["tell a joke", "what is one plus one", "how is the weather"]
    assert len({chat.invoke(LONG_TEMPLATE.format(question)).content for question in questions}) == 3
    assert chat.invoke(LONG_TEMPLATE.format("tell a joke")).content == "answer number 1"


def test_structured_output_comes_back_the_same_and_costs_one_call(cache: Any, replying: Any) -> None:
    class Person(BaseModel):
        """A person."""

        name: str
        age: int

    call = {"name": "Person", "args": {"name": "Ann", "age": 44}, "id": "call-1"}
    model = replying(content="", tool_calls=[call])
    structured = ChatSmartCache(model=model, cache=cache).with_structured_output(Person)
    assert structured.invoke("Who?") == structured.invoke("Who?") == Person(name="Ann", age=44)
    assert model.calls == 1


def test_structured_output_of_the_models_own_kind_goes_through_the_cache(cache: Any, replying: Any) -> None:
    from langchain_core.output_parsers import JsonOutputParser

    class OwnWay(type(replying(content=""))):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return self.bind(response_format=schema) | JsonOutputParser()

    model = OwnWay(reply=lambda call, messages: AIMessage(json.dumps({"n": call})))
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.with_structured_output({"title": title}).invoke("n?") for title in "aab"] == [
        {"n": 1}, {"n": 1}, {"n": 2},
    ]  # fmt: skip


def test_sixteen_threads_get_answers_to_their_own_questions(cache: Any, replying: Any) -> None:
    model = type(replying(content=""))(reply=lambda call, messages: AIMessage(f"about {messages[-1].content}"))
    chat = ChatSmartCache(model=model, cache=cache)
    questions = [f"What is part number {number % 20}?" for number in range(320)]
    answers = chat.batch(questions, {"max_concurrency": 16})
    assert [answer.content for answer in answers] == [f"about {question}" for question in questions]
    assert model.calls == 20


def test_answers_survive_on_disk_with_their_tool_calls(tmp_path: Any, replying: Any) -> None:
    call = {"name": "look_up", "args": {"part": 7}, "id": "call-1", "type": "tool_call"}
    model = replying(content=[{"type": "text", "text": "Let me see"}], tool_calls=[call])
    for _ in range(2):
        with SmartCache.open(tmp_path, embedder=BagOfWordsEmbedder()) as cache:
            answer = ChatSmartCache(model=model, cache=cache).invoke(QUESTION)
    assert (answer.tool_calls, answer.content) == ([call], [{"type": "text", "text": "Let me see"}])
    assert model.calls == 1


def test_an_answer_that_calls_tools_is_not_served_to_a_near_question(cache: Any, replying: Any) -> None:
    model = replying(content="", tool_calls=[{"name": "look_up", "args": {}, "id": "1"}])
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke("How do I reset the thermostat")
    chat.invoke("how do i reset the thermostat?")
    assert model.calls == 2


def test_a_model_in_trouble_under_the_cache_still_answers_when_the_embedder_fails(model: Any) -> None:
    class Broken(BagOfWordsEmbedder):
        def __call__(self, texts: Any, /) -> Any:
            raise RuntimeError("embedder down")

    with SmartCache.open(embedder=Broken()) as cache:
        chat = ChatSmartCache(model=model, cache=cache)
        assert chat.invoke([HumanMessage(QUESTION)]).content == "answer number 1"
        assert sum(cache.stats().troubles.values()) > 0


@pytest.mark.parametrize("ask", [lambda chat: chat.invoke([]).content, lambda chat: next(chat.stream([])).content])
def test_no_messages_are_the_model_s_to_answer(model, cache, ask):
    chat = ChatSmartCache(model=model, cache=cache)
    ask(chat), ask(chat)
    assert model.calls == 2
    assert cache.stats().bypasses == {"requested": 2}
