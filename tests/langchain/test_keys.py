"""What is one request and what are two: options, settings, tools and messages under ChatSmartCache."""

import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_smartcache import ChatSmartCache
from smartcache import SmartCache

QUESTION = "How do I reset the thermostat?"


@tool
def look_up(part: int) -> str:
    """Look a part up."""
    return str(part)


@tool
def order(part: int) -> str:
    """Order a part."""
    return str(part)


def calls_of(model: Any, cache: Any, *prompts: Any) -> int:
    chat = ChatSmartCache(model=model, cache=cache)
    for prompt in prompts:
        chat.invoke(prompt)
    return model.calls


OPTIONS = [
    ({"temperature": 0}, {"temperature": 0.0, "top_p": 0.5}),
    ({"max_tokens": 16}, {"max_tokens": 4000}),
    ({"stop": ["X"]}, {}),
    ({"seed": 1}, {"seed": 2}),
    ({"foo": 1}, {"foo": 2}),
    ({"tool_choice": "none"}, {"tool_choice": "auto"}),
    ({"parallel_tool_calls": True}, {"parallel_tool_calls": False}),
    ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
    ({"response_format": {"type": "json_object"}}, {}),
    ({"tools": [look_up]}, {"tools": [order]}),
]


@pytest.mark.parametrize(("one", "other"), OPTIONS, ids=str)
def test_every_option_of_a_call_is_in_the_key(model: Any, cache: Any, one: Any, other: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    answers = [chat.invoke(QUESTION, **options).content for options in (one, other, one, other)]
    assert answers == ["answer number 1", "answer number 2"] * 2


def test_neutral_options_are_not_in_the_key(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION, {"tags": ["a"], "metadata": {"run": 1}}, timeout=3)
    chat.invoke(QUESTION, {"tags": ["b"], "run_name": "other"}, timeout=4)
    assert model.calls == 1


def test_bound_tools_are_in_the_key_however_often_they_are_made(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    for tools in ([look_up], [order], [look_up], [look_up, order]):
        chat.bind_tools(tools).invoke(QUESTION)
    assert model.calls == 3
    chat.bind_tools([order], tool_choice="order").invoke(QUESTION)
    assert model.calls == 4


def test_tools_that_a_model_keeps_inside_are_in_the_key(model: Any, cache: Any) -> None:
    class Inside(type(model)):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    inside = Inside()
    chat = ChatSmartCache(model=inside, cache=cache)
    for tools in ([look_up], [order], [look_up]):
        chat.bind_tools(tools).invoke(QUESTION)
    assert inside.calls == 2


@pytest.mark.parametrize("setting", [{"seed": 7}, {"model_name": "other"}, {"finish_reason": "end_turn"}])
def test_the_models_settings_count_as_they_are_at_the_call(model: Any, cache: Any, setting: dict[str, Any]) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    before = {name: getattr(model, name) for name in setting}
    for settings in (before, setting, before, setting):
        for name, value in settings.items():
            setattr(model, name, value)
        chat.invoke(QUESTION)
    assert model.calls == 2


def test_a_model_made_anew_with_equal_settings_hits(model: Any, cache: Any) -> None:
    ChatSmartCache(model=model, cache=cache).invoke(QUESTION)
    again = type(model)()
    assert ChatSmartCache(model=again, cache=cache).invoke(QUESTION).content == "answer number 1"
    assert again.calls == 0


def test_a_secret_is_neither_in_the_key_nor_on_disk(model: Any, tmp_path: Any) -> None:
    with SmartCache.open(tmp_path, mode="exact") as cache:
        ChatSmartCache(model=model, cache=cache).invoke(QUESTION, api_key="sk-of-this-call")
        ChatSmartCache(model=type(model)(api_key="sk-rotated"), cache=cache).invoke(QUESTION)
        assert cache.stats().exact == 1
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert QUESTION.encode() in written
    assert b"sk-" not in written


def test_an_option_without_a_stable_form_passes_the_cache_by_and_is_counted(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    for _ in range(2):
        chat.invoke(QUESTION, hook=object())
    assert (model.calls, cache.stats().bypasses) == (2, {"unstable_key": 2})


SAME = [
    (HumanMessage("a", id="1"), HumanMessage("a", id="2")),
    (HumanMessage("a"), HumanMessage([{"type": "text", "text": "a"}])),
    (HumanMessage(["a"]), HumanMessage([{"type": "text", "text": "a", "index": 0, "id": "lc_1"}])),
    (ToolMessage("a", tool_call_id="1"), ToolMessage("a", tool_call_id="1", artifact=object())),
    (AIMessage("a"), AIMessage("a", response_metadata={"id": "x"}, additional_kwargs={"refusal": None})),
    (ChatMessage("a", role="user"), HumanMessage("a")),
    (ChatMessage("a", role="assistant"), AIMessage("a")),
    (AIMessage("a"), AIMessageChunk("a", chunk_position="last")),
]
DIFFERENT = [
    (ToolMessage("a", tool_call_id="1"), ToolMessage("a", tool_call_id="2")),
    (ToolMessage("a", tool_call_id="1"), ToolMessage("a", tool_call_id="1", status="error")),
    (AIMessage("a"), AIMessage("a", tool_calls=[{"name": "f", "args": {}, "id": "1"}])),
    (
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 2}, "id": "1"}]),
    ),
    (HumanMessage("a", name="ann"), HumanMessage("a", name="bo")),
    (HumanMessage(["ab", "c"]), HumanMessage(["a", "bc"])),
    (HumanMessage(["a", "b"]), HumanMessage("a\nb")),
    (HumanMessage("a"), SystemMessage("a")),
    (ChatMessage("a", role="critic"), ChatMessage("a", role="author")),
    (ChatMessage("a", role="developer"), SystemMessage("a")),
    (AIMessage("a"), AIMessage("a", additional_kwargs={"reasoning_content": "since b"})),
]


def prompt(message: Any) -> list[Any]:
    return [HumanMessage("before"), message, HumanMessage(QUESTION)]


@pytest.mark.parametrize(("one", "other"), SAME, ids=str)
def test_messages_that_mean_the_same_to_a_model_are_one(model: Any, cache: Any, one: Any, other: Any) -> None:
    assert calls_of(model, cache, prompt(one), prompt(other)) == 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=str)
def test_messages_that_differ_for_a_model_are_two(model: Any, cache: Any, one: Any, other: Any) -> None:
    assert calls_of(model, cache, prompt(one), prompt(other), prompt(one)) == 2


def test_a_user_who_writes_like_a_transcript_is_not_a_transcript(model: Any, cache: Any) -> None:
    assert calls_of(model, cache, [("user", "x\nai:y")], [("user", "x"), ("ai", "y"), ("user", "")]) == 2


def picture(**block: Any) -> list[HumanMessage]:
    return [HumanMessage([{"type": "text", "text": "What is this?"}, {"mime_type": "image/png", **block}])]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "image", "base64": "A" * 3000}, {"type": "image", "base64": "A" * 2999 + "B"}),
        (
            {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        ),
    ],
    ids=["bytes", "url"],
)
def test_another_image_under_the_same_text_misses_and_the_same_image_hits(
    model: Any, cache: Any, one: Any, other: Any
) -> None:
    assert calls_of(model, cache, picture(**one), picture(**other), picture(**one), picture(**other)) == 2


def test_a_question_about_an_image_is_never_embedded(model: Any, cache: Any) -> None:
    calls_of(model, cache, picture(type="image", base64="QQ=="))
    assert cache.embedder.texts == []


def test_live_streamed_and_replayed_answers_lead_to_the_same_next_key(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    live, hit = chat.invoke(QUESTION), chat.invoke(QUESTION)
    first, *rest = chat.stream(QUESTION)
    streamed = first + rest
    for answer in (live, hit, streamed, message_chunk_to_message(streamed)):
        chat.invoke([HumanMessage(QUESTION), answer, HumanMessage("And then, with the cable off?")])
    assert model.calls == 2


def test_a_replayed_tool_call_leads_to_the_same_next_key(replying: Any, cache: Any) -> None:
    call = {"name": "look_up", "args": {"part": 7}, "id": "call-1"}
    model = replying(content="", tool_calls=[call])
    chat = ChatSmartCache(model=model, cache=cache)
    for _ in range(2):
        answer = chat.invoke(QUESTION)
        chat.invoke([HumanMessage(QUESTION), answer, ToolMessage("in stock", tool_call_id=answer.tool_calls[0]["id"])])
    assert model.calls == 2


def test_a_second_process_finds_the_answer(tmp_path: Any) -> None:
    script = """
import sys
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_smartcache import ChatSmartCache
from smartcache import SmartCache
with SmartCache.open(sys.argv[1], mode="exact") as cache:
    chat = ChatSmartCache(model=FakeListChatModel(responses=["yes"]), cache=cache)
    chat.invoke([HumanMessage("Is it on?")], foo={"b": {1, 2}, "a": None})
    print(cache.stats().exact)
"""
    printed = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in "12"
    ]  # fmt: skip
    assert printed == ["0", "1"]


def test_counts_that_a_model_keeps_of_itself_are_not_settings(cache: Any) -> None:
    from langchain_core.language_models import FakeListChatModel

    model = FakeListChatModel(responses=["one", "two", "three"])
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.invoke(QUESTION).content for _ in range(2)] == ["one", "one"]
    model.responses = ["other", "other"]
    assert chat.invoke(QUESTION).content == "other"


def test_a_function_in_a_model_counts_by_what_it_does(model: Any, cache: Any) -> None:
    for reply in (lambda call, messages: AIMessage("yes"), lambda call, messages: AIMessage("no")):
        assert ChatSmartCache(model=type(model)(reply=reply), cache=cache).invoke(QUESTION).content == (
            reply(1, []).content
        )
    assert cache.stats().exact == 0


def test_an_object_in_a_model_counts_by_its_class_and_name(model: Any, cache: Any) -> None:
    class Client:
        def __init__(self, name: str) -> None:
            self.name, self.lock = name, threading.Lock()

    class WithClient(type(model)):
        backend: Any = None

    answers = [
        ChatSmartCache(model=WithClient(backend=Client(name)), cache=cache).invoke(QUESTION) for name in ("a", "b", "a")
    ]
    assert [answer.response_metadata["smartcache"]["hit"] for answer in answers] == [False, False, True]


def test_an_option_whose_model_has_no_json_form_passes_the_cache_by_too(model: Any, cache: Any) -> None:
    class Hook(BaseModel):
        function: Any

    chat = ChatSmartCache(model=model, cache=cache)
    assert chat.invoke(QUESTION, hook=Hook(function=lambda: 1)).content == "answer number 1"
    assert cache.stats().bypasses == {"unstable_key": 1}
