"""Fakes for LlamaIndex: an LLM that counts its calls, an embedding by words, a small index. No network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from pydantic import PrivateAttr

from llama_index_smartcache import SmartCacheQueryEngine
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder


class WordEmbedding(BaseEmbedding):
    """Texts with the same words have the same vector; the last one that `fails_on` names raises."""

    fails_on: str = ""

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.fails_on and self.fails_on in text:
            raise RuntimeError("the embedding service is down")
        return BagOfWordsEmbedder(dimension=256)([text])[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class CountingLLM(CustomLLM):
    """Answers every call anew and keeps the prompts. `ending` is its finish reason; `reply` makes the text."""

    temperature: float = 0.0
    model: str = "counting"
    is_chat_model: bool = True
    ending: str | None = None
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _reply: Callable[[str, int], Any] | None = PrivateAttr(default=None)

    def __init__(self, reply: Callable[[str, int], Any] | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._reply = reply

    @property
    def calls(self) -> int:
        return len(self._prompts)

    @property
    def prompts(self) -> list[str]:
        return self._prompts

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model, is_chat_model=self.is_chat_model)

    def _answer(self, prompt: str) -> Any:
        self._prompts.append(prompt)
        return self._reply(prompt, self.calls) if self._reply else f"answer {self.calls} of the model"

    @property
    def _ending(self) -> dict[str, Any]:
        return {"finish_reason": self.ending} if self.ending else {}

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        said = self._answer("\n".join(str(message) for message in messages))
        message = said if isinstance(said, ChatMessage) else ChatMessage(role=MessageRole.ASSISTANT, content=said)
        return ChatResponse(message=message, raw={"usage": 7}, additional_kwargs=dict(self._ending))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._answer(prompt), raw={"usage": 7}, additional_kwargs=dict(self._ending))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        def pieces() -> Any:
            said = self._answer("\n".join(str(message) for message in messages))
            words = said.split(" ")
            for count, word in enumerate(words, start=1):
                last = count == len(words)
                message = ChatMessage(role=MessageRole.ASSISTANT, content=" ".join(words[:count]))
                delta = word if count == 1 else " " + word
                yield ChatResponse(message=message, delta=delta, additional_kwargs=self._ending if last else {})

        return pieces()

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        def pieces() -> Any:
            words = self._answer(prompt).split(" ")
            for count, word in enumerate(words, start=1):
                text, delta = " ".join(words[:count]), word if count == 1 else " " + word
                last = count == len(words)
                yield CompletionResponse(text=text, delta=delta, additional_kwargs=self._ending if last else {})

        return pieces()


@pytest.fixture(autouse=True)
def no_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """LlamaIndex's defaults would ask for a provider's key."""
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    monkeypatch.setattr(Settings, "_embed_model", WordEmbedding())


@pytest.fixture
def cache():
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True) as cache:
        yield cache


@pytest.fixture
def llm():
    return CountingLLM()


@pytest.fixture
def make_llm():
    return CountingLLM


@pytest.fixture
def embedding():
    return WordEmbedding()


RETURNS = "Returns: goods may be sent back within thirty days of delivery."
BATTERY = "Battery: the hub runs for ten hours on one charge."


@pytest.fixture
def index(embedding):
    """Two documents, one about returns and one about the battery."""
    documents = [Document(text=RETURNS, id_="returns", metadata={"page": 1}), Document(text=BATTERY, id_="battery")]
    return VectorStoreIndex.from_documents(documents, embed_model=embedding)


@pytest.fixture
def engine_over(cache, llm):
    """A cached query engine over an index: `engine_over(index, scope="acme", similarity_top_k=1)`."""

    def make(index: Any, *, scope: str = "", variant: str = "", source: str = "", **settings: Any) -> Any:
        inner = index.as_query_engine(**({"llm": llm, "similarity_top_k": 1} | settings))
        return SmartCacheQueryEngine(inner, cache, scope=scope, variant=variant, source=source)

    return make
