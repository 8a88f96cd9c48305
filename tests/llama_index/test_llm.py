"""A cached LLM: chat and completions, plain, streamed and async, restored field by field."""

from __future__ import annotations

import asyncio
import threading
from enum import Enum

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

from llama_index_smartcache import SmartCacheLLM
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder, TableEmbedder

RESET = "How do I reset the hub to factory settings?"
RESET_IN_OTHER_WORDS = "To factory settings, how do I reset the hub?"


def said(*texts: str) -> list[ChatMessage]:
    """A conversation, the user's and the assistant's turns in turn, the user's last."""
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    return [ChatMessage(role=roles[n % 2], content=text) for n, text in enumerate(texts)]


def served_by(response) -> str:
    return response.additional_kwargs["smartcache"]["served_by"]


def fields(response) -> dict:
    """Every field, without what says where the response came from."""
    more = {name: value for name, value in response.additional_kwargs.items() if name != "smartcache"}
    return {name: getattr(response, name) for name in type(response).model_fields} | {"additional_kwargs": more}


@pytest.fixture
def cached(llm, cache):
    return SmartCacheLLM(llm=llm, cache=cache)


# Chat.


def test_in_shadow_mode_the_model_answers_each_time(llm):
    with SmartCache.open(embedder=BagOfWordsEmbedder(), shadow=True, strict=True) as cache:
        shadowed = SmartCacheLLM(llm=llm, cache=cache)
        chats = [shadowed.chat(said(RESET)), asyncio.run(shadowed.achat(said(RESET)))]
        streams = [list(shadowed.stream_chat(said(RESET)))[-1] for _ in range(2)]
        assert [served_by(response) for response in (*chats, *streams)] == ["model"] * 4
        assert len({response.message.content for response in (*chats, *streams)}) == 4
        assert [record.layer for record in cache.shadow_records()] == ["exact"] * 3


def test_a_repeated_chat_is_the_same_response_field_by_field(cached, llm):
    first, again = cached.chat(said(RESET)), cached.chat(said(RESET))
    assert (served_by(first), served_by(again), llm.calls) == ("model", "exact", 1)
    assert fields(again) == fields(first)
    assert isinstance(again, ChatResponse)


def test_a_near_question_is_served_semantically(cached):
    cached.chat(said(RESET))
    again = cached.chat(said(RESET_IN_OTHER_WORDS))
    assert again.additional_kwargs["smartcache"]["similarity"] == pytest.approx(1.0)
    assert served_by(again) == "semantic"


async def test_chats_are_cached_in_coroutines_and_shared_with_plain_ones(cached, llm):
    first = await cached.achat(said(RESET))
    assert fields(await cached.achat(said(RESET))) == fields(first)
    assert served_by(cached.chat(said(RESET))) == "exact"
    assert llm.calls == 1


def test_the_metadata_is_the_models(cached, llm):
    assert cached.metadata == llm.metadata


def test_llama_indexs_own_mock_is_cached(cache):
    cached = SmartCacheLLM(llm=MockLLM(max_tokens=3), cache=cache)
    first = cached.complete("a prompt")
    assert (first.text, served_by(cached.complete("a prompt"))) == ("text text text", "exact")


def test_what_the_model_raises_is_raised(make_llm, cache):
    def fail(prompt, count):
        raise ConnectionError("no model today")

    cached = SmartCacheLLM(llm=make_llm(fail), cache=cache)
    with pytest.raises(ConnectionError, match="no model today"):
        cached.chat(said(RESET))
    assert cache.stats().stored == 0


# B01: the dialogue's state.


def test_b01_a_follow_up_about_another_person_misses(cached):
    cached.chat(said("who runs Acme", "Ann", "how old is she?"))
    assert served_by(cached.chat(said("who runs Birk", "Bo", "how old is she?"))) == "model"


def test_b01_the_follow_up_in_an_equivalent_conversation_hits(cached):
    cached.chat(said("who runs Acme", "Ann", "how old is she?"))
    assert served_by(cached.chat(said("Acme, who runs", "Ann", "how old is she?"))) == "semantic"


# B02: another system prompt.


def test_b02_another_system_prompt_misses(cached):
    french, json = (ChatMessage(role="system", content=text) for text in ("Answer in French", "Answer as JSON"))
    cached.chat([french, *said(RESET)])
    assert served_by(cached.chat([json, *said(RESET_IN_OTHER_WORDS)])) == "model"
    assert served_by(cached.chat([french, *said(RESET_IN_OTHER_WORDS)])) == "semantic"


# B03: a question inside a template.

TEMPLATE = PromptTemplate("Context: {context} Answer the query from the context and nothing else. Query: {query}")
CONTEXT = "The hub resets with the button on its back. The lamp is dimmed in the app. The hub needs a plug."


def test_b03_prompts_made_from_a_template_are_compared_whole(cached, llm):
    for query in ("tell a joke", "1+1?", "weather?", "a joke, tell"):
        cached.predict(TEMPLATE, context=CONTEXT, query=query)
    assert llm.calls == 4
    cached.predict(TEMPLATE, context=CONTEXT, query="weather?")
    assert llm.calls == 4


def test_b03_the_same_with_a_model_that_completes(make_llm, cache):
    llm = make_llm(is_chat_model=False)
    cached = SmartCacheLLM(llm=llm, cache=cache)
    for query in ("tell a joke", "a joke, tell", "tell a joke"):
        cached.predict(TEMPLATE, context=CONTEXT, query=query)
    assert llm.calls == 2


def test_b03_a_message_of_several_lines_is_compared_whole(cached):
    cached.chat(said(f"Context:\n{CONTEXT}\nQuestion: {RESET}"))
    assert served_by(cached.chat(said(f"Context:\n{CONTEXT}\nQuestion: {RESET_IN_OTHER_WORDS}"))) == "model"
    assert served_by(cached.chat(said(f"Context:\n{CONTEXT}\nQuestion: {RESET}"))) == "exact"


def test_b03_a_completion_embeds_nothing(llm):
    embedder = BagOfWordsEmbedder()
    with SmartCache.open(embedder=embedder, strict=True) as cache:
        cached = SmartCacheLLM(llm=llm, cache=cache)
        assert [served_by(cached.complete(RESET)) for _ in range(2)] == ["model", "exact"]
        assert served_by(cached.complete(RESET_IN_OTHER_WORDS)) == "model"
    assert embedder.texts == []


# B10: every option, and the model's settings at the call.


@pytest.mark.parametrize(
    ("one", "other"),
    [({"max_tokens": 16}, {"max_tokens": 4000}), ({"stop": ["X"]}, {}), ({"seed": 1}, {"seed": 2}), ({"foo": 1}, {})],
)
def test_b10_another_option_misses(cached, one, other):
    for call in (
        lambda **options: cached.chat(said(RESET), **options),
        lambda **options: cached.complete(RESET, **options),
    ):
        assert [served_by(call(**options)) for options in (one, other, one)] == ["model", "model", "exact"]


def test_b10_another_setting_of_the_model_misses(cached, llm):
    cached.chat(said(RESET))
    llm.model = "another"
    assert served_by(cached.chat(said(RESET))) == "model"
    llm.model = "counting"
    assert served_by(cached.chat(said(RESET))) == "exact"


def test_b10_chat_and_completion_are_two_calls(cached):
    cached.chat(said(RESET))
    assert isinstance(cached.complete(RESET), CompletionResponse)


def test_b21_a_model_that_samples_is_asked_for_every_draw(make_llm, cache):
    cached = SmartCacheLLM(llm=make_llm(temperature=0.9), cache=cache)
    assert [served_by(cached.chat(said(RESET))) for _ in range(2)] == ["model", "model"]
    assert cache.stats().bypasses == {"sampling": 2}
    assert [served_by(cached.chat(said(RESET), sample_index=0)) for _ in range(2)] == ["model", "exact"]


def test_b21_a_call_may_pass_the_cache_by_or_refresh_it(cached, llm):
    answers = [
        cached.chat(said(RESET), **more).message.content for more in ({}, {"cache": False}, {"cache": "refresh"}, {})
    ]
    assert answers == [f"answer {count} of the model" for count in (1, 2, 3, 3)]


# B12: volatile values.


def test_b12_an_object_without_a_stable_form_is_passed_by_and_counted(cached, cache, caplog):
    cached.chat(said(RESET), tool=threading.Lock())
    cached.chat(said(RESET), tool=threading.Lock())
    assert cache.stats().bypasses == {"unstable_key": 2}
    assert caplog.text.count("unstable_key") == 1


def test_b12_equal_options_made_anew_hit(cached):
    class Format(BaseModel):
        answer: str

    for expected in ("model", "exact"):
        assert served_by(cached.chat(said(RESET), response_format=Format, extra={"b": 2, "a": 1})) == expected


# B15, B17: framing, and what is not text.


def user(*blocks):
    return [ChatMessage(role="user", blocks=list(blocks))]


def tool_result(call_id):
    return [ChatMessage(role="tool", content="5", additional_kwargs={"tool_call_id": call_id})]


A, B, AB = TextBlock(text="a"), TextBlock(text="b"), TextBlock(text="a\nb")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (said("x\nassistant: y", "z", "q"), said("x", "y\nz", "q")),
        (user(AB), user(A, B)),
        (tool_result("a"), tool_result("b")),
        (user(A, ImageBlock(image=b"A")), user(A, ImageBlock(image=b"B"))),
    ],
    ids=["turns", "blocks", "tool call ids", "images"],
)
def test_b15_conversations_that_only_look_alike_are_two(cached, one, other):
    assert [served_by(cached.chat(messages)) for messages in (one, other, one)] == ["model", "model", "exact"]


# B22: tenants.


def test_b22_another_scope_misses(llm):
    with SmartCache.open(embedder=TableEmbedder({("my balance", "what is my balance"): 0.99}), strict=True) as cache:
        ann, bo = (SmartCacheLLM(llm=llm, cache=cache, scope=scope) for scope in ("ann", "bo"))
        ann.chat(said("my balance"))
        assert served_by(bo.chat(said("my balance"))) == "model"
        assert served_by(ann.chat(said("what is my balance"))) == "semantic"


# B35: tool calls and other shapes.

CALL = ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="c1", tool_name="add", tool_kwargs={"a": 1})])
THOUGHT = ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="yes")])


@pytest.mark.parametrize("path", [None, "cache.db"], ids=["memory", "disk"])
@pytest.mark.parametrize("message", [CALL, THOUGHT], ids=["tool call", "thinking"])
def test_b35_messages_of_every_shape_come_back(tmp_path, make_llm, message, path):
    llm = make_llm(lambda prompt, count: message)
    first = None
    for expected in ("model", "exact"):
        with SmartCache.open(path and tmp_path / path, embedder=BagOfWordsEmbedder(), strict=True) as cache:
            cached = SmartCacheLLM(llm=llm, cache=cache)
            first = first or cached.chat(said(RESET))
            again = cached.chat(said(RESET)) if path else [cached.chat(said(RESET)) for _ in range(2)][-1]
        assert fields(again) == fields(first)
        assert served_by(again) == "exact" or (expected, path) == ("model", None)


def test_b35_an_answer_that_calls_tools_is_served_exactly_only(make_llm, cache):
    cached = SmartCacheLLM(llm=make_llm(lambda prompt, count: CALL), cache=cache)
    cached.chat(said(RESET))
    assert served_by(cached.chat(said(RESET_IN_OTHER_WORDS))) == "model"
    assert served_by(cached.chat(said(RESET))) == "exact"


def test_b35_a_model_that_calls_tools_may_be_wrapped(cache):
    cached = SmartCacheLLM(llm=MockFunctionCallingLLM(), cache=cache)
    tool = FunctionTool.from_defaults(lambda a: a, name="echo", description="says it again")
    first = cached.chat_with_tools([tool], user_msg="echo 5")
    again = cached.chat_with_tools([tool], user_msg="echo 5")
    assert (served_by(first), served_by(again)) == ("model", "exact")
    assert fields(again) == fields(first)


class Provider:
    """A provider's own response object."""

    class Reason(Enum):
        STOP = "stop"

    finish_reason = Reason.STOP


def test_a_raw_object_of_a_provider_is_dropped_and_the_hit_says_so(llm, cache, monkeypatch):
    chat = type(llm).chat
    monkeypatch.setattr(
        type(llm), "chat", lambda self, messages, **more: chat(self, messages).model_copy(update={"raw": Provider()})
    )
    cached = SmartCacheLLM(llm=llm, cache=cache)
    assert isinstance(cached.chat(said(RESET)).raw, Provider)
    again = cached.chat(said(RESET))
    assert (again.raw, again.additional_kwargs["smartcache"]["raw_dropped"]) == (None, True)


# B36: what the caller does to a response stays with the caller.


def test_b36_a_response_is_the_callers_own(cached):
    first = cached.chat(said(RESET))
    kept = fields(cached.chat(said(RESET)))
    for response in (first, cached.chat(said(RESET))):
        response.message.content = "tampered"
        response.message.additional_kwargs["tampered"] = True
        response.raw["usage"] = 0
    assert fields(cached.chat(said(RESET))) == kept


def test_b36_what_cannot_be_written_is_not_stored_and_counted(make_llm, cache):
    locked = ChatMessage(role="assistant", content="yes", additional_kwargs={"lock": threading.Lock()})
    cached = SmartCacheLLM(llm=make_llm(lambda prompt, count: locked), cache=cache)
    assert [served_by(cached.chat(said(RESET))) for _ in range(2)] == ["model", "model"]
    assert cache.stats().not_stored == {"not_restorable": 2}


def test_b36_a_piece_of_a_stream_is_the_callers_own(cached):
    for piece in cached.stream_chat(said(RESET)):
        piece.message.content = "tampered"
    assert cached.chat(said(RESET)).message.content == "answer 1 of the model"


# B41: streams.


async def everything(stream):
    return [piece async for piece in await stream]


@pytest.mark.parametrize("first", ["stream", "astream", "plain"])
@pytest.mark.parametrize("second", ["stream", "astream", "plain"])
@pytest.mark.parametrize("kind", ["chat", "complete"])
def test_b41_streamed_and_plain_calls_share_answers(cached, llm, first, second, kind):
    prompt = said(RESET) if kind == "chat" else RESET

    def last(how):
        if how == "plain":
            return getattr(cached, kind)(prompt)
        if how == "stream":
            return list(getattr(cached, f"stream_{kind}")(prompt))[-1]
        return asyncio.run(everything(getattr(cached, f"astream_{kind}")(prompt)))[-1]

    one, other = last(first), last(second)
    assert (served_by(one), served_by(other), llm.calls) == ("model", "exact", 1)
    assert str(other) == str(one)


def test_b42_a_replay_adds_up_to_the_answer(cached):
    list(cached.stream_chat(said(RESET)))
    pieces = list(cached.stream_chat(said(RESET)))
    assert "".join(piece.delta for piece in pieces) == "answer 1 of the model"
    assert [piece.message.content for piece in pieces[:2]] == ["answer", "answer 1"]
    assert len(pieces) > 1


def test_b41_a_stream_left_half_read_is_not_stored(cached, cache):
    pieces = cached.stream_chat(said(RESET))
    next(pieces)
    pieces.close()
    assert served_by(cached.chat(said(RESET))) == "model"


# B43: poisoned entries.


@pytest.mark.parametrize("ending", ["length", "content_filter"])
def test_b43_an_answer_that_was_cut_is_not_stored(make_llm, cache, ending):
    cached = SmartCacheLLM(llm=make_llm(ending=ending), cache=cache)
    cached.chat(said(RESET))
    list(cached.stream_complete(RESET))
    assert cache.stats().not_stored == {f"finish_{ending}": 2}


def test_b43_an_empty_answer_is_not_stored(make_llm, cache):
    cached = SmartCacheLLM(llm=make_llm(lambda prompt, count: ""), cache=cache)
    cached.complete(RESET)
    assert cache.stats().not_stored == {"empty": 1}


# B57, B59.


def test_b57_another_embedder_finds_nothing_of_the_first_ones(tmp_path, llm):
    for name, question, expected in (
        ("a", RESET, "model"),
        ("b", RESET_IN_OTHER_WORDS, "model"),
        ("a", RESET, "exact"),
    ):
        with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(name=name), strict=True) as cache:
            assert served_by(SmartCacheLLM(llm=llm, cache=cache).chat(said(question))) == expected


def test_b59_threads_may_share_a_model(make_llm, cache):
    llm = make_llm(lambda prompt, count: prompt.removeprefix("user: "))
    cached, wrong = SmartCacheLLM(llm=llm, cache=cache), []

    def ask(name):
        for n in range(10):
            question = f"What does the {name} do on day {n}?"
            if cached.chat(said(question)).message.content != question:
                wrong.append(question)

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("hub", "lamp", "plug", "lock") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert llm.calls == 40


async def test_b60_tasks_that_ask_the_same_at_once_make_one_call(cached, llm):
    responses = await asyncio.gather(*(cached.achat(said(RESET)) for _ in range(8)))
    assert {response.message.content for response in responses} == {"answer 1 of the model"}
    assert llm.calls == 1
