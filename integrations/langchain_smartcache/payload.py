"""LangChain's answers as JSON and back, field by field. Two message classes are known here; nothing else is revived."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatResult, Generation
from pydantic import BaseModel

from smartcache import Answer
from smartcache.policy import ENDED

Form = type[BaseModel]
PARSED = "parsed"  # where providers that parse an answer themselves put the object, in additional_kwargs
_MESSAGES: dict[str, type[AIMessage]] = {"ai": AIMessage, "AIMessageChunk": AIMessageChunk}
_FINISH = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")


def answer_of(result: ChatResult, form: Form | None = None) -> Answer:
    """A chat model's result as an answer that can be kept."""
    return answer_of_generations(result.generations, result.llm_output, form)


def answer_of_generations(
    generations: Sequence[Generation], llm_output: Mapping[str, Any] | None = None, form: Form | None = None
) -> Answer:
    """Generations as one answer. What would not come back the same has a payload that the cache refuses and counts,
    and a broken tool call or a refusal is no good end. `form`: the class that the call asked for, whose objects some
    providers put beside the text; no other class is written or revived."""
    if not generations:
        return Answer("", finish_reason="nothing")
    first = generations[0]
    message = getattr(first, "message", None)
    text = first.text if message is None else str(message.text)
    return Answer(
        text,
        payload=None if _is_empty(first) else _payload(generations, llm_output, form),
        finish_reason=_finish_reason(generations),
        exact_only=any(calls_tools(generation) for generation in generations),
    )


def generations_of(answer: Answer, form: Form | None = None) -> list[Generation]:
    """The generations that an answer was made of, each a new object."""
    return [_generation_from(fields, form) for fields in copy.deepcopy(answer.payload["generations"])]


def result_of(answer: Answer, form: Form | None = None) -> ChatResult:
    """The chat model's result that an answer was made of, as new objects."""
    generations = [g for g in generations_of(answer, form) if isinstance(g, ChatGeneration)]
    return ChatResult(generations=generations, llm_output=copy.deepcopy(answer.payload["llm_output"]))


def calls_tools(generation: Generation) -> bool:
    message = getattr(generation, "message", None)
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.additional_kwargs.get("function_call"))


def _payload(generations: Sequence[Generation], llm_output: Mapping[str, Any] | None, form: Form | None) -> Any:
    fields = [_fields(generation, form) for generation in generations]
    payload = {"generations": fields, "llm_output": None if llm_output is None else dict(llm_output)}
    try:
        snapshot = json.loads(json.dumps(payload, allow_nan=False))
        restored = [_generation_from(generation, form) for generation in copy.deepcopy(snapshot["generations"])]
    except (TypeError, ValueError, KeyError, RecursionError):
        return generations
    same = snapshot == payload and restored == list(generations)
    return snapshot if same and all(map(_is_known, generations)) else generations


def _fields(generation: Generation, form: Form | None) -> dict[str, Any]:
    if not isinstance(generation, ChatGeneration):
        return {"text": generation.text, "generation_info": generation.generation_info}
    message, given = dict(generation.message), generation.message.additional_kwargs
    fields = {"message": message, "generation_info": generation.generation_info}
    if form is None or type(given.get(PARSED)) is not form:
        return fields
    message["additional_kwargs"] = {name: value for name, value in given.items() if name != PARSED}
    return fields | {PARSED: given[PARSED].model_dump(mode="json")}


def _generation_from(fields: dict[str, Any], form: Form | None) -> Generation:
    if "text" in fields:
        return Generation(text=fields["text"], generation_info=fields["generation_info"])
    message = _MESSAGES[fields["message"]["type"]](**fields["message"])
    if PARSED in fields:
        if form is None:
            raise ValueError("the class of a parsed answer is not known")
        message.additional_kwargs[PARSED] = form.model_validate(fields[PARSED])
    return ChatGeneration(message=message, generation_info=fields["generation_info"])


def _is_known(generation: Generation) -> bool:
    if type(generation) is ChatGeneration:
        return type(generation.message) in _MESSAGES.values()
    return type(generation) is Generation


def _is_empty(generation: Generation) -> bool:
    message = getattr(generation, "message", None)
    if message is None:
        return not generation.text.strip()
    content = message.content
    blank = not content.strip() if isinstance(content, str) else not content
    return blank and not calls_tools(generation) and not getattr(message, "invalid_tool_calls", None)


def _finish_reason(generations: Sequence[Generation]) -> str | None:
    """The provider's word for the end; of several, the first that is not a good end, since all are kept as one."""
    reasons = [reason for generation in generations if (reason := _one_finish_reason(generation)) is not None]
    return next((reason for reason in reasons if reason.casefold() not in ENDED), next(iter(reasons), None))


def _one_finish_reason(generation: Generation) -> str | None:
    message = getattr(generation, "message", None)
    said: dict[str, Any] = dict(generation.generation_info or {})
    if isinstance(message, AIMessage):
        if message.invalid_tool_calls:
            return "invalid_tool_calls"
        if message.additional_kwargs.get("refusal"):
            return "refusal"
        said |= message.response_metadata
    reason = next((said[name] for name in _FINISH if said.get(name)), None)
    if reason is None and isinstance(said.get("incomplete_details"), Mapping):
        return "incomplete"
    return reason.name if isinstance(reason, Enum) else None if reason is None else str(reason)
