"""A wrong answer is reported with what is at hand: the messages, and the message that came back."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField

from langchain_smartcache import ChatSmartCache
from smartcache import CalibratedPolicy

RESET = "How do I reset the thermostat?"
OTHER = "Which colour has the cable?"
NEAR_TWICE = ("How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?")


def is_hit(message: Any) -> bool:
    return message.response_metadata["smartcache"]["hit"]


def order(item: str) -> str:
    """Orders."""
    return item


def streamed(chat: Any) -> AIMessageChunk:
    first, *rest = chat.stream(RESET)
    return first + rest if rest else first


WAYS = {
    "invoke": lambda chat: chat.invoke(RESET),
    "stream": streamed,
    "ainvoke": lambda chat: asyncio.run(chat.ainvoke(RESET)),
}


@pytest.fixture
def chat(model: Any, cache: Any) -> ChatSmartCache:
    return ChatSmartCache(model=model, cache=cache, scope="acme")


@pytest.mark.parametrize("way", WAYS)
def test_what_was_reported_is_asked_anew(chat: Any, way: str) -> None:
    chat.invoke(OTHER)
    chat.invoke(RESET)
    hit = WAYS[way](chat)
    assert is_hit(hit)
    chat.report_wrong(RESET, hit)
    assert not is_hit(chat.invoke(RESET))
    assert is_hit(chat.invoke(OTHER))


def test_a_near_answer_is_wrong_for_what_was_asked_alone(chat: Any) -> None:
    stored, near = NEAR_TWICE
    chat.invoke(stored)
    hit = chat.invoke([HumanMessage(near)])
    assert hit.response_metadata["smartcache"]["served_by"] == "semantic"
    chat.report_wrong([HumanMessage(near)], hit)
    assert not is_hit(chat.invoke(near))
    assert is_hit(chat.invoke(stored))


def test_the_model_s_own_answer_is_reported_alike(chat: Any) -> None:
    chat.report_wrong(RESET, chat.invoke(RESET))
    assert not is_hit(chat.invoke(RESET))


def test_what_a_prompt_was_made_of_will_do(chat: Any) -> None:
    prompt = ChatPromptTemplate([("user", "{question}")])
    (prompt | chat).invoke({"question": RESET})
    hit = (prompt | chat).invoke({"question": RESET})
    assert is_hit(hit)
    chat.report_wrong(prompt.invoke({"question": RESET}), hit)
    assert not is_hit((prompt | chat).invoke({"question": RESET}))


@pytest.mark.parametrize(
    "bound",
    [
        lambda chat: chat.bind_tools([order]),
        lambda chat: chat.bind(top_p=0.5),
        lambda chat: chat.bind_tools([order]).bind(top_p=0.5).with_config(tags=["a"]),
        lambda chat: chat.with_config(tags=["a"]),
    ],
)
def test_what_is_bound_is_part_of_what_was_asked(chat: Any, bound: Any) -> None:
    bound = bound(chat)
    bound.invoke(RESET)
    hit = bound.invoke(RESET)
    assert is_hit(hit)
    bound.report_wrong(RESET, hit)
    assert not is_hit(bound.invoke(RESET))


def test_the_options_of_a_call_are_told_again(chat: Any) -> None:
    for _ in range(2):
        hit = chat.invoke(RESET, stop=["\n"], top_p=0.5)
    chat.report_wrong(RESET, hit, stop=["\n"], top_p=0.5)
    assert not is_hit(chat.invoke(RESET, stop=["\n"], top_p=0.5))


def test_a_scope_that_comes_with_the_call_does_so_again(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache).configurable_fields(scope=ConfigurableField("tenant"))
    ann, ben = ({"configurable": {"tenant": name}} for name in ("ann", "ben"))
    for config in (ann, ann, ben):
        chat.invoke(RESET, config)
    chat.report_wrong(RESET, chat.invoke(RESET, ann), config=ann)
    assert not is_hit(chat.invoke(RESET, ann))
    assert is_hit(chat.invoke(RESET, ben))


@pytest.mark.parametrize("message", [AIMessage("made elsewhere"), "a text"])
def test_a_message_from_elsewhere_is_a_mistake(chat: Any, message: Any) -> None:
    with pytest.raises(TypeError, match="pass the message that the model gave"):
        chat.report_wrong(RESET, message)


def test_it_says_whether_it_found_the_answer(chat: Any, caplog: Any) -> None:
    bound = chat.bind(top_p=0.5)
    bound.invoke(RESET)
    hit = bound.invoke(RESET)
    assert not chat.report_wrong(RESET, hit)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "what is bound" in caplog.text
    assert is_hit(bound.invoke(RESET))
    assert bound.report_wrong(RESET, hit)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("bound", [lambda chat: chat, lambda chat: chat.bind(top_p=0.5)], ids=["chat", "bound"])
def test_why_is_told_of_the_request_that_the_call_would_make(chat: Any, model: Any, bound: Any) -> None:
    stored, near = NEAR_TWICE
    bound(chat).invoke(stored)
    [one] = bound(chat).explain([HumanMessage(near)])
    assert (one.question, one.is_served) == (stored, True)
    assert not bound(chat).explain(near, policy=CalibratedPolicy(0.0))[0].is_served
    assert [other.refusal for other in bound(chat).explain(near, top_p=0.25)] == ["new"]
    assert model.calls == 1
