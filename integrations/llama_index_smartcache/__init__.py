"""SmartCache for LlamaIndex: cached query engines and LLMs, context in an order that prompts share, watched indexes."""

from smartcache.errors import MissingExtra

try:
    import llama_index.core  # noqa: F401 - only to see that it is there
except ImportError as missing:
    raise MissingExtra("llama-index-core", "llama-index") from missing

from llama_index_smartcache.context import CacheAwareContext
from llama_index_smartcache.llm import SmartCacheLLM
from llama_index_smartcache.local import LocalModelLLM
from llama_index_smartcache.nodes import CITATION, chunk_of
from llama_index_smartcache.query_engine import SmartCacheQueryEngine
from llama_index_smartcache.watching import Watch, watch_index

__all__ = [
    "CITATION",
    "CacheAwareContext",
    "LocalModelLLM",
    "SmartCacheLLM",
    "SmartCacheQueryEngine",
    "Watch",
    "chunk_of",
    "watch_index",
]
