"""Some providers parse an answer and put an object of the caller's class beside the text: it comes back as one."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_smartcache import ChatSmartCache
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder

QUESTION = "What does the return of one parcel cost?"


class Fee(BaseModel):
    amount: int
    reasons: list[str] = []


class Charge(BaseModel):
    amount: int
    reasons: list[str] = []


@pytest.fixture
def model(replying: Any) -> Any:
    made = type(replying(content=""))
    return made(reply=lambda call, _: AIMessage('{"amount": 3}', additional_kwargs={"parsed": Fee(amount=3)}))


def whole(chat: Any, **options: Any) -> Any:
    first, *rest = chat.stream(QUESTION, **options)
    return first + rest


@pytest.mark.parametrize("path", [None, "cache.db"], ids=["memory", "disk"])
def test_a_parsed_answer_comes_back_as_an_object_of_its_class(model: Any, tmp_path: Any, path: str | None) -> None:
    with SmartCache.open(path and tmp_path / path, embedder=BagOfWordsEmbedder(), strict=True) as cache:
        chat = ChatSmartCache(model=model, cache=cache)
        said = [chat.invoke(QUESTION, response_format=Fee) for _ in range(2)]
    assert [message.additional_kwargs for message in said] == [{"parsed": Fee(amount=3)}] * 2
    assert model.calls == 1


def test_a_streamed_answer_comes_back_so_too(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    said = [whole(chat, response_format=Fee), whole(chat, response_format=Fee)]
    assert [message.additional_kwargs for message in said] == [{"parsed": Fee(amount=3)}] * 2
    assert model.calls == 1


def test_what_is_done_to_the_object_is_not_stored(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    for _ in range(2):
        chat.invoke(QUESTION, response_format=Fee).additional_kwargs["parsed"].reasons.append("mine")
    assert cache.stats().exact == 1
    assert chat.invoke(QUESTION, response_format=Fee).additional_kwargs["parsed"].reasons == []


def test_another_class_misses(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    for form in (Fee, Charge):
        chat.invoke(QUESTION, response_format=form)
    assert model.calls == 2


def test_an_object_of_a_class_that_nobody_asked_for_is_not_stored_and_counted(model: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.invoke(QUESTION).additional_kwargs["parsed"] for _ in range(2)] == [Fee(amount=3)] * 2
    assert cache.stats().not_stored == {"not_restorable": 2}
