"""SmartCache for LangChain: chat models, retrievers and vector stores that share one cache."""

from importlib.util import find_spec

from smartcache.errors import MissingExtra

if find_spec("langchain_core") is None:
    raise MissingExtra("langchain-core", "langchain")

from langchain_smartcache.chat import ChatSmartCache
from langchain_smartcache.llm_cache import SmartLLMCache
from langchain_smartcache.local import ChatLocalModel
from langchain_smartcache.retriever import SmartCacheRetriever
from langchain_smartcache.watch import watch_vectorstore

__all__ = [
    "ChatLocalModel",
    "ChatSmartCache",
    "SmartCacheRetriever",
    "SmartLLMCache",
    "watch_vectorstore",
]
