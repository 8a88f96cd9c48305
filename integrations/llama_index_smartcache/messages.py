"""LlamaIndex's messages as turns, and a model's responses as stored answers and back, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from pydantic import BaseModel

from llama_index_smartcache.endings import worst
from llama_index_smartcache.media import block_form
from llama_index_smartcache.responses import MARK, mark
from smartcache import Answer, Turn
from smartcache.paths import words
from smartcache.types import Role

R = TypeVar("R", ChatResponse, CompletionResponse)

ROLES: dict[MessageRole, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}
PLAIN = frozenset({MessageRole.SYSTEM, MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL})


class Rendered(ChatMessage):
    """A message that was made from a prompt template."""


def turn_of(message: ChatMessage) -> Turn:
    """A message as a turn; whatever is not its one text goes into the turn's data, where it must be equal."""
    more: dict[str, Any] = {}
    if len(message.blocks) != 1 or not isinstance(message.blocks[0], TextBlock):
        more["blocks"] = list(map(block_form, message.blocks))
    if message.additional_kwargs:
        more["additional_kwargs"] = message.additional_kwargs
    if message.role not in PLAIN:
        more["role"] = message.role.value
    return Turn(ROLES[message.role], message.content or "", more or None)


def is_rendered(messages: Sequence[ChatMessage]) -> bool:
    """Whether the question cannot be told from what surrounds it: what the user says comes from a template, or has
    more than one line, as pasted documents have."""
    said = [message for message in messages if message.role == MessageRole.USER]
    return any(isinstance(message, Rendered) or "\n" in (message.content or "").strip() for message in said)


class Form(Generic[R]):
    """One kind of response of a model: how it is stored, how it comes back, how it streams. `output` is the class of
    the objects that a structured model gives in `raw`."""

    def __init__(self, kind: type[R], output: type[BaseModel] | None = None) -> None:
        self._kind: type[R] = kind
        self._output = output

    def streamed(self, last: R, heard: list[str], said: str) -> Answer:
        """The answer to store after a stream: its last piece, where that is what the pieces amount to."""
        if said and said != self.text(last):
            return Answer("", finish_reason="stream_differs")
        return self.answer(last.model_copy(update={"delta": None}), heard)

    def answer(self, response: R, heard: list[str]) -> Answer:
        """The answer to store.

        It rests on no document but those in the prompt, which is compared as it is.
        """
        text = self.text(response)
        try:
            payload: Any = self._taken_down(response)
        except Exception:  # whatever cannot be written down is not stored, and the cache counts it
            payload = response
        calls = _calls_tools(response)
        kept = payload if text.strip() or calls else None
        return Answer(text, frozenset(), kept, finish_reason=worst(heard), exact_only=calls)

    def restored(self, hit: Answer) -> R:
        """The response that a stored answer was, as the caller's own, saying what happened."""
        response = self._kind.model_validate(hit.payload["response"])
        if (parsed := hit.payload.get("parsed")) is not None:
            response = response.model_copy(update={"raw": self._parsed(parsed)})
        return self.marked(response, hit)

    def replay(self, hit: Answer) -> Iterator[R]:
        """A hit as a stream: word by word, each piece with the text so far, the last one the whole response."""
        whole = self.restored(hit)
        pieces = list(words(hit)) if self._is_plain(whole) else [hit.text]
        for count, piece in enumerate(pieces[:-1], start=1):
            yield self.marked(self._part("".join(pieces[:count]), piece), hit)
        yield whole.model_copy(update={"delta": pieces[-1] if pieces else ""})

    def marked(self, response: R, hit: Answer | None) -> R:
        """A copy whose additional_kwargs say what happened."""
        told = mark(hit)
        if hit is not None and hit.payload["raw_dropped"]:
            told["raw_dropped"] = True
        return response.model_copy(update={"additional_kwargs": {**response.additional_kwargs, MARK: told}})

    @staticmethod
    def text(response: R) -> str:
        return (response.message.content or "") if isinstance(response, ChatResponse) else response.text

    def _taken_down(self, response: R) -> dict[str, Any]:
        """Every field as JSON, except a `raw` that is a provider's own object: that is dropped, and a hit says so.
        Raises where any other field would not come back as it is."""
        is_parsed = self._output is not None and type(response.raw) is self._output
        raw_dropped = not is_parsed and not _is_json(response.raw)
        kept = response.model_copy(update={"raw": None} if raw_dropped or is_parsed else {})
        stored = json.loads(json.dumps(kept.model_dump(mode="json"), allow_nan=False))
        parsed = json.loads(response.raw.model_dump_json()) if is_parsed and response.raw else None
        if self._kind.model_validate(stored) != kept or (is_parsed and self._parsed(parsed) != response.raw):
            raise ValueError("the response would not come back as it is")
        return {"response": stored, "raw_dropped": raw_dropped, "parsed": parsed}

    def _parsed(self, parsed: Any) -> BaseModel:
        if self._output is None:
            raise ValueError("the class of a structured answer is not known")
        return self._output.model_validate(parsed)

    @staticmethod
    def _is_plain(response: R) -> bool:
        if isinstance(response, CompletionResponse):
            return True
        return len(response.message.blocks) == 1 and isinstance(response.message.blocks[0], TextBlock)

    def _part(self, text: str, delta: str) -> R:
        message = {"role": MessageRole.ASSISTANT, "blocks": [{"block_type": "text", "text": text}]}
        said = {"message": message} if issubclass(self._kind, ChatResponse) else {"text": text}
        return self._kind.model_validate({**said, "delta": delta})


def _calls_tools(response: ChatResponse | CompletionResponse) -> bool:
    places = [response.additional_kwargs]
    if isinstance(response, ChatResponse):
        places.append(response.message.additional_kwargs)
        if any(isinstance(block, ToolCallBlock) for block in response.message.blocks):
            return True
    return any(place.get(name) for place in places for name in ("tool_calls", "function_call"))


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
