"""How an answer ended, in the provider's own word: a query engine drops it, so it is read where the LLM tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
)
from llama_index_instrumentation import get_dispatcher

from smartcache.policy import ENDED

_NAMES = ("finish_reason", "stop_reason", "done_reason")
_WITH_RESPONSES = (LLMChatEndEvent, LLMChatInProgressEvent, LLMCompletionEndEvent, LLMCompletionInProgressEvent)
_heard: ContextVar[list[str] | None] = ContextVar("llama_index_smartcache_endings", default=None)


class FinishReasons(BaseEventHandler):
    """Listens to every LLM call and notes how it ended, for whoever is hearing in this context."""

    @classmethod
    def class_name(cls) -> str:
        return "SmartCacheFinishReasons"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        heard = _heard.get()
        if heard is not None and isinstance(event, _WITH_RESPONSES) and (reason := finish_reason(event.response)):
            heard.append(reason)


def listen() -> None:
    """Puts one listener at LlamaIndex's root dispatcher, where there is none yet."""
    root = get_dispatcher("root")
    if not any(isinstance(handler, FinishReasons) for handler in root.event_handlers):
        root.add_event_handler(FinishReasons())


@contextmanager
def hearing(heard: list[str]) -> Iterator[None]:
    """Adds to `heard` how every LLM call inside the block ends."""
    token = _heard.set(heard)
    try:
        yield
    finally:
        _heard.reset(token)


def worst(heard: list[str]) -> str | None:
    """The first reason that is no end, "stop" where all ended by themselves, None where none was told."""
    return next((reason for reason in heard if reason.casefold() not in ENDED), "stop" if heard else None)


def finish_reason(response: Any) -> str | None:
    """How a ChatResponse or CompletionResponse ended, where the provider says so in one of the usual places."""
    message = getattr(response, "message", None)
    raw = getattr(response, "raw", None)
    places = [getattr(response, "additional_kwargs", None), getattr(message, "additional_kwargs", None), raw]
    for many in ("choices", "candidates"):
        listed = _get(raw, many)
        places += [listed[0]] if isinstance(listed, list | tuple) and listed else []
    found = (_get(place, name) for place in places for name in _NAMES)
    return next((reason for reason in map(_word, found) if reason), None)


def _get(place: Any, name: str) -> Any:
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)


def _word(value: Any) -> str | None:
    if isinstance(value, Enum):
        value = value.value if isinstance(value.value, str) else value.name
    return value.removeprefix("FinishReason.") if isinstance(value, str) else None
