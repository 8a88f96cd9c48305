"""LangChain's own suites against our classes."""

from typing import Any

import pytest

pytest.importorskip("langchain_tests")

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import AsyncCacheTestSuite, SyncCacheTestSuite
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_smartcache import ChatLocalModel, ChatSmartCache, SmartLLMCache
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder


def llm_cache() -> SmartLLMCache:
    return SmartLLMCache(SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True))


class TestSyncCache(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self) -> BaseCache:
        return llm_cache()


class TestAsyncCache(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self) -> BaseCache:
        return llm_cache()


class ChatWithTools(BaseChatModel):
    """A chat model as LangChain's suite expects one: it has a name, takes tools and the standard parameters."""

    model: str = "with-tools"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        raise AssertionError("the unit suite calls no model")

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @property
    def _llm_type(self) -> str:
        return "with-tools"


class ChatOfTheSuite(ChatSmartCache):
    """The suite gives every chat model a limit and stop words; where one wraps another, they are the inner one's."""

    def __init__(self, *, max_tokens: int | None = None, stop: list[str] | None = None, **fields: Any) -> None:
        super().__init__(**fields)


class TestChatSmartCache(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOfTheSuite

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": ChatWithTools(), "cache": SmartCache.open(mode="exact")}

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        """A temperature, a timeout, a key are set on the model behind: here they would be ignored, so they raise."""
        return {}


class NamedModel:
    """As much of a LocalModel as the suite looks at."""

    name = "tiny@0123"


class TestChatLocalModel(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatLocalModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": NamedModel()}

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        """Those that mean something for a model on this machine."""
        return {"temperature": 0, "max_tokens": 100, "stop": []}
