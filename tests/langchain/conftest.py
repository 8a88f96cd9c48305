"""A chat model that counts its calls, and caches over the deterministic embedder: shared by the LangChain tests."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder


class CountingChat(BaseChatModel):
    """Numbers its answers, so that a repeated one shows that no call was made."""

    reply: Callable[[int, list[BaseMessage]], AIMessage] | None = None
    model_name: str = "counting"
    temperature: float = 0.0
    seed: int = 0
    api_key: str = "sk-very-secret"
    finish_reason: str = "stop"
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _options: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self._prompts)

    @property
    def options(self) -> list[dict[str, Any]]:
        return self._options

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        self._prompts.append(messages)
        self._options.append(kwargs)
        if self.reply:
            return self.reply(self.calls, messages)
        return AIMessage(
            f"answer number {self.calls}",
            id=f"provider-{self.calls}",
            response_metadata={"finish_reason": self.finish_reason, "token_usage": {"total_tokens": 8}},
            usage_metadata={"input_tokens": 5, "output_tokens": 3, "total_tokens": 8},
        )

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, kwargs))])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._answer(messages, kwargs)
        pieces = re.findall(r"\s*\S+", message.content) if isinstance(message.content, str) else [message.content]
        for piece in pieces[:-1]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece, id=message.id))
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content=pieces[-1] if pieces else "",
                id=message.id,
                additional_kwargs=message.additional_kwargs,
                tool_call_chunks=[
                    {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
                    for n, c in enumerate(message.tool_calls)
                ],
                usage_metadata=message.usage_metadata,
                response_metadata=message.response_metadata,
            )
        )

    async def _astream(self, messages: list[BaseMessage], **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        kwargs.pop("run_manager", None)
        for chunk in self._stream(messages, **kwargs):
            yield chunk

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        from langchain_core.utils.function_calling import convert_to_openai_tool

        chosen = {"tool_choice": tool_choice} if tool_choice else {}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **chosen, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "counting"


@pytest.fixture
def model() -> CountingChat:
    return CountingChat()


@pytest.fixture
def replying() -> Callable[..., CountingChat]:
    """Makes a model that gives one message to every prompt."""

    def make(**message: Any) -> CountingChat:
        return CountingChat(reply=lambda call, messages: AIMessage(**message))

    return make


@pytest.fixture
def cache() -> Iterator[SmartCache]:
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True) as cache:
        yield cache
