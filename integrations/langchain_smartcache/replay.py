"""What a caller gets: live answers and hits, each marked with what happened, hits without their old bill."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, UsageMetadata, message_chunk_to_message
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_smartcache.payload import Form, answer_of, result_of
from smartcache import Answer
from smartcache.paths import words

MARK = "smartcache"  # in response_metadata
# Where providers put what a call cost. Dashboards add these up, so a hit carries them under the mark only.
BILLS = ("token_usage", "usage")
LIVE: dict[str, Any] = {"served_by": "model", "hit": False}


def live_result(result: ChatResult) -> ChatResult:
    """The model's own result, marked: `response_metadata["smartcache"]` says that the model served it."""
    marked = [
        generation.model_copy(update={"message": _as_live(generation.message)}) for generation in result.generations
    ]
    return result.model_copy(update={"generations": marked})


def live_chunk(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    """A stream's first chunk with the mark; on a later one it would be added up with the first."""
    return ChatGenerationChunk(message=_as_live(chunk.message), generation_info=chunk.generation_info)


def hit_result(answer: Answer, form: Form | None = None) -> ChatResult:
    """A hit as the model's result was, but for its id (new for every hit), its bill (zero) and the mark.

    The mark holds `served_by`, `hit`, `similarity`, `age_seconds`, `entry_id`; `original_id`; `usage`, the tokens that
    were paid for when the model answered, and `bills`, the provider's own account of them.
    """
    result = result_of(answer, form)
    bills = _take_bills(result.llm_output or {})
    for generation in result.generations:
        info, message = generation.generation_info or {}, generation.message
        of_message = {**bills, **_take_bills(info), **_take_bills(message.response_metadata)}
        usage = getattr(message, "usage_metadata", None)
        _mark(message, _hit_mark(answer, message.id, usage, of_message))
        message.id = None  # LangChain gives each message without one an id of its run
        if isinstance(message, AIMessage) and usage is not None:
            message.usage_metadata = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
    return result


def hit_chunks(answer: Answer, form: Form | None = None) -> Iterator[ChatGenerationChunk]:
    """A hit as a stream that adds up to `hit_result`: text word by word, content blocks in one piece, and tool calls,
    finish reason and the mark in the last chunk, whose `chunk_position` is "last"."""
    result = hit_result(answer, form)
    return chunks_of(result.generations[0], result.llm_output)


def chunks_of(
    generation: ChatGeneration, llm_output: Mapping[str, Any] | None, *, split: Literal["words", "whole"] = "words"
) -> Iterator[ChatGenerationChunk]:
    """A message as the chunks of a stream."""
    message = generation.message
    assert isinstance(message, AIMessage)
    calls = [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(message.tool_calls)
    ] + [
        tool_call_chunk(name=call["name"], args=call["args"], id=call["id"], index=len(message.tool_calls) + index)
        for index, call in enumerate(message.invalid_tool_calls)
    ]
    first: dict[str, Any] = {"additional_kwargs": message.additional_kwargs}
    last: dict[str, Any] = {
        "tool_call_chunks": calls,
        "response_metadata": {**(llm_output or {}), **message.response_metadata},
        "usage_metadata": message.usage_metadata,
        "chunk_position": "last",
    }
    if "tool_calls" in message.additional_kwargs:  # apart from the parsed calls, LangChain would parse them again
        first, last = {}, first | last
    pieces = _pieces(message.content) if split == "words" else [message.content]
    for number, piece in enumerate(pieces, start=1):
        is_last = number == len(pieces)
        fields = (first if number == 1 else {}) | (last if is_last else {})
        yield ChatGenerationChunk(
            message=AIMessageChunk(content=piece, id=message.id, **fields),
            generation_info=generation.generation_info if is_last else None,
        )


def _pieces(content: str | list[str | dict[Any, Any]]) -> list[Any]:
    return (list(words(Answer(content))) if isinstance(content, str) else []) or [content]


def _hit_mark(answer: Answer, id: str | None, usage: Any, bills: dict[str, Any]) -> dict[str, Any]:
    mark = {
        "served_by": answer.served_by,
        "hit": True,
        "similarity": answer.similarity,
        "age_seconds": answer.age_seconds,
        "entry_id": answer.entry_id,
        "original_id": id,
        "usage": usage,
    }
    return mark | ({"bills": bills} if bills else {})


def _as_live(message: BaseMessage) -> Any:
    """A copy: the message itself may be the model's own, and given out again."""
    return message.model_copy(update={"response_metadata": {**message.response_metadata, MARK: dict(LIVE)}})


def _mark(message: Any, mark: dict[str, Any]) -> None:
    message.response_metadata = {**message.response_metadata, MARK: mark}


def _take_bills(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: metadata.pop(name) for name in BILLS if name in metadata}


class Seen:
    """A live stream as it passes: copies of its chunks, since the reader owns the chunks themselves."""

    def __init__(self) -> None:
        self._chunks: list[ChatGenerationChunk] = []
        self._is_whole = True

    def passed_on(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        try:
            self._chunks.append(copy.deepcopy(chunk))
        except Exception:  # a chunk may hold anything, a lock for one: such an answer is not kept, and that is counted
            self._chunks.append(chunk)
            self._is_whole = False
        return live_chunk(chunk) if len(self._chunks) == 1 else chunk

    def answer(self, form: Form | None) -> Answer:
        if not self._chunks:
            return Answer("")
        if not self._is_whole:
            return Answer("", payload=self)
        whole = self._chunks[0] + self._chunks[1:]
        message = message_chunk_to_message(whole.message)
        generation = ChatGeneration(message=message, generation_info=whole.generation_info)
        return answer_of(ChatResult(generations=[generation]), form)
