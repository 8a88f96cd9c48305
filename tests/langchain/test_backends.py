"""Models that hold what answers in an object: two of them are two models, one made anew is the same."""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_smartcache import ChatSmartCache

QUESTION = "How do I reset the thermostat?"


class Client:
    """A provider's client, which notes what it was asked last."""

    def __init__(self, model: str) -> None:
        self.model, self.last_prompt, self.sent = model, "", 0

    def __call__(self, prompt: str) -> str:
        self.last_prompt, self.sent = f"{prompt} {self.sent}", self.sent + 1
        return f"by {self.model}"


@dataclass
class Settings:
    model: str

    def __call__(self, prompt: str) -> str:
        return f"by {self.model}"


class Backed(BaseChatModel):
    """Answers with what its backend says."""

    backend: Any = None

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.backend(messages[-1].content)))])

    @property
    def _llm_type(self) -> str:
        return "backed"


def by(model: str, prompt: str) -> str:
    return f"by {model}"


def with_default(model: str) -> Callable[[str], str]:
    def answer(prompt: str, model: str = model) -> str:
        return f"by {model}"

    return answer


def around(client: Client) -> Callable[[str], str]:
    return lambda prompt: client(prompt)


BACKENDS: dict[str, Callable[[str], Any]] = {
    "object": Client,
    "dataclass": Settings,
    "method": lambda model: Client(model).__call__,
    "partial": lambda model: functools.partial(by, model),
    "default": with_default,
    "closure": lambda model: around(Client(model)),
}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_another_backend_of_the_same_class_misses(cache: Any, backend: Any) -> None:
    models = [Backed(backend=backend(name)) for name in ("small", "large")]
    said = [ChatSmartCache(model=model, cache=cache).invoke(QUESTION).content for model in models]
    assert said == ["by small", "by large"]


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_an_equal_backend_made_anew_hits(cache: Any, backend: Any) -> None:
    for _ in range(3):
        ChatSmartCache(model=Backed(backend=backend("small")), cache=cache).invoke(QUESTION)
    assert cache.stats().exact == 2


def test_a_backend_in_use_stays_the_same(cache: Any) -> None:
    chat = ChatSmartCache(model=Backed(backend=Client("small")), cache=cache)
    for question in (QUESTION, "Which colour has the cable?", QUESTION):
        chat.invoke(question)
    assert cache.stats().exact == 1


def test_a_model_that_holds_itself_is_cached(cache: Any) -> None:
    model = Backed()
    model.backend = functools.partial(lambda itself, prompt: "yes", model)
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.invoke(QUESTION).content for _ in range(2)] == ["yes", "yes"]
    assert cache.stats().exact == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda chat: chat.model_copy(deep=True)])
def test_a_copy_of_a_chat_shares_its_cache(cache: Any, model: Any, copied: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    assert copied(chat).invoke(QUESTION).response_metadata["smartcache"]["served_by"] == "exact"


def test_a_copy_that_is_set_otherwise_is_another_model(cache: Any, model: Any) -> None:
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    other = copy.deepcopy(chat)
    other.model.seed = 7
    assert other.invoke(QUESTION).response_metadata["smartcache"]["served_by"] == "model"
