"""A query engine's response as a stored answer, and back, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from pydantic import BaseModel

from llama_index_smartcache import nodes
from llama_index_smartcache.endings import worst
from smartcache import Answer, ChunkRef

MARK = "smartcache"  # where a response's metadata, or additional_kwargs, tells what happened

STREAMS = (StreamingResponse, AsyncStreamingResponse)
EMPTY = "Empty Response"  # what LlamaIndex says where a model said nothing
KINDS = (Response, PydanticResponse, *STREAMS)


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a response before its text: `response` without it, and the `hit` that it comes from, if any."""

    response: RESPONSE_TYPE
    hit: Answer | None = None

    def told(self) -> RESPONSE_TYPE:
        """The response, its metadata saying what happened."""
        if not isinstance(self.response, KINDS):
            return self.response
        return replace(self.response, metadata={**(self.response.metadata or {}), MARK: mark(self.hit)})


class Keeping:
    """Takes a response down as it is at the beginning, so that what its reader does to it is not stored."""

    def __init__(self, response: RESPONSE_TYPE, source: str, heard: list[str], *, searched: bool) -> None:
        self._searched, self._heard = searched, heard
        self._evidence = _evidence(response, source)
        self._response = response
        self._stored: Any
        try:
            self._stored = _taken_down(response)
        except Exception:  # whatever cannot be written down is not stored, and the cache counts it
            self._stored = response

    def answer(self, text: str | None = None) -> Answer:
        """The answer to store; `text` is what a stream amounted to. Without `searched` it rests on its source nodes."""
        if isinstance(self._response, Response):
            text = self._response.response
        if isinstance(self._response, PydanticResponse):
            text = str(self._response)
        text = "" if text is None or text == EMPTY else text
        payload = self._stored if text.strip() else None  # an empty text is no answer, whatever came with it
        evidence = None if self._searched else self._evidence
        return Answer(text, evidence, payload, finish_reason=worst(self._heard))


def restored(hit: Answer, output: type[BaseModel] | None) -> Response | PydanticResponse:
    """The response that a stored answer was, as the caller's own."""
    stored = hit.payload
    source_nodes, metadata = nodes.from_json(stored["nodes"]), json.loads(json.dumps(stored["metadata"]))
    if output is not None and stored["pydantic"] is not None:
        return PydanticResponse(output.model_validate_json(stored["pydantic"]), source_nodes, metadata)
    return Response(hit.text, source_nodes, metadata)


def was_stream(hit: Answer) -> bool:
    return bool(hit.payload["streamed"])


def passed_by(reason: str) -> Answer:
    """In place of an answer that cannot be stored: the cache counts `reason`."""
    return Answer("", finish_reason=reason)


def mark(hit: Answer | None) -> dict[str, Any]:
    """What happened, for the application: by what it was served and, on a hit, how near and how old that was."""
    if hit is None:
        return {"served_by": "model", "similarity": None, "age_seconds": None, "entry_id": None}
    return {name: getattr(hit, name) for name in ("served_by", "similarity", "age_seconds", "entry_id")}


def served(response: Any) -> Answer:
    """The answer that a response of an engine or an LLM was made of."""
    told = getattr(response, "metadata", None) or getattr(response, "additional_kwargs", None)
    told = told if isinstance(told, dict) else {}
    if not isinstance(told.get(MARK), dict):
        raise TypeError(f'pass the response that the cache gave, with its mark "{MARK}", not {type(response).__name__}')
    return Answer(_text_of(response), served_by=told[MARK]["served_by"], entry_id=told[MARK]["entry_id"])


def _text_of(response: Any) -> str:
    """What a response says, as it would be stored; of a stream, what is known of it by now."""
    if isinstance(response, ChatResponse):
        return response.message.content or ""
    if isinstance(response, PydanticResponse):
        return str(response)
    names = ("text", "response", "response_txt")
    return next((found for name in names if isinstance(found := getattr(response, name, None), str)), "")


def as_stream(response: RESPONSE_TYPE, pieces: Any) -> RESPONSE_TYPE:
    """The response with `pieces` as its stream."""
    assert isinstance(response, STREAMS)
    return replace(response, response_gen=pieces)


def _taken_down(response: RESPONSE_TYPE) -> dict[str, Any]:
    """Everything but the text, as JSON. Raises where it would not come back as it is."""
    pydantic = response.response if isinstance(response, PydanticResponse) else None
    streamed = isinstance(response, STREAMS)
    taken = {
        "nodes": nodes.to_json(response.source_nodes),
        "metadata": response.metadata,
        "pydantic": None if pydantic is None else pydantic.model_dump_json(),
        "streamed": streamed,
    }
    stored: dict[str, Any] = json.loads(json.dumps(taken, allow_nan=False))
    back = restored(Answer("", payload=stored), None if pydantic is None else type(pydantic))
    same = back.source_nodes == response.source_nodes and back.metadata == response.metadata
    if not same or (pydantic is not None and back.response != pydantic):
        raise ValueError("the response would not come back as it is")
    return stored


def _evidence(response: RESPONSE_TYPE, source: str) -> frozenset[ChunkRef] | None:
    refs: Iterator[ChunkRef] = (nodes.chunk_of(node, source).ref for node in response.source_nodes)
    return frozenset(refs) or None
