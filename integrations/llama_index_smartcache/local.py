"""A local Hugging Face model as a LlamaIndex LLM: a known prompt prefix is never computed twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from pydantic import ConfigDict, Field

from llama_index_smartcache.messages import turn_of
from smartcache import Turn

COUNTS = ("prompt_tokens", "cached_tokens", "first_token_seconds", "finish_reason", "exact", "recomputed_share")


class LocalModelLLM(CustomLLM):
    """A LocalModel for LlamaIndex. Keywords of a call go to the model: max_tokens, stop, temperature, seed, ….

    `options` are the keywords of every call. Of each response, `additional_kwargs` hold prompt_tokens, cached_tokens
    (what was not computed anew), first_token_seconds, finish_reason, exact and recomputed_share; of a stream, those of
    its last piece. Text only: an image raises ValueError.
    """

    model_config = ConfigDict(extra="forbid")

    model: Any = Field(exclude=True)
    max_new_tokens: int = 256
    options: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, model: Any, max_new_tokens: int = 256, **fields: Any) -> None:
        if isinstance(model, str | Path):
            raise TypeError(f"model is a LocalModel: give LocalModel.load({str(model)!r})")
        super().__init__(model=model, max_new_tokens=max_new_tokens, **fields)

    @classmethod
    def class_name(cls) -> str:
        return "LocalModelLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=getattr(self.model, "context_tokens", None) or DEFAULT_CONTEXT_WINDOW,
            num_output=self.max_new_tokens,
            is_chat_model=True,
            model_name=self.model.name,
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        done = self._generated([_turn(message) for message in messages], kwargs)
        return ChatResponse(message=_message(done.text), additional_kwargs=done.additional_kwargs)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self._generated(self._prompt(prompt, formatted), kwargs)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        turns = [_turn(message) for message in messages]

        def pieces() -> ChatResponseGen:
            for done in self._streamed(turns, kwargs):
                more = done.additional_kwargs
                yield ChatResponse(message=_message(done.text), delta=done.delta, additional_kwargs=more)

        return pieces()

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return self._streamed(self._prompt(prompt, formatted), kwargs)

    def _generated(self, prompt: str | list[Turn], kwargs: dict[str, Any]) -> CompletionResponse:
        done = self.model.generate(prompt, **self._call(kwargs))
        return CompletionResponse(text=done.text, additional_kwargs=_account(done))

    def _streamed(self, prompt: str | list[Turn], kwargs: dict[str, Any]) -> CompletionResponseGen:
        text, ended = "", list[Any]()
        for piece in self.model.stream(prompt, **self._call(kwargs), on_end=ended.append):
            text += piece
            yield CompletionResponse(text=text, delta=piece)
        yield CompletionResponse(text=text, delta="", additional_kwargs=_account(ended[0]))

    def _prompt(self, prompt: str, formatted: bool) -> str:
        to_prompt = self.completion_to_prompt
        return prompt if formatted or to_prompt is None else to_prompt(prompt)

    def _call(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        call = {"max_new_tokens": self.max_new_tokens, **self.options, **kwargs}
        if (max_tokens := call.pop("max_tokens", None)) is not None:
            call["max_new_tokens"] = max_tokens
        return call


def _account(done: Any) -> dict[str, Any]:
    return {name: getattr(done, name) for name in COUNTS}


def _turn(message: ChatMessage) -> Turn:
    turn = turn_of(message)
    if "blocks" in (turn.data or {}):
        raise ValueError("this model reads text: give messages with one text each")
    return turn


def _message(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.ASSISTANT, content=text)
