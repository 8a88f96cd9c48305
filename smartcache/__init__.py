"""SmartCache: one cache for LLM applications that knows the conversation, the knowledge base and the KV state."""

from smartcache.cache import SmartCache
from smartcache.calibrated import CalibratedPolicy
from smartcache.embedding import Embedder
from smartcache.errors import SmartCacheError
from smartcache.events import Event, Stats
from smartcache.layers.orders import ContextOrder, ContextPlan, plan_context
from smartcache.layers.planned import PlannedContexts
from smartcache.layers.prefixes import PrefixCache
from smartcache.policy import Candidate, HitPolicy, ThresholdPolicy
from smartcache.reach import RetrievalSimilarity
from smartcache.types import Answer, Chunk, ChunkRef, KnowledgeUpdate, Request, Turn

__all__ = [
    "Answer",
    "CalibratedPolicy",
    "Candidate",
    "Chunk",
    "ChunkRef",
    "ContextOrder",
    "ContextPlan",
    "Embedder",
    "Event",
    "HitPolicy",
    "KnowledgeUpdate",
    "PlannedContexts",
    "PrefixCache",
    "Request",
    "RetrievalSimilarity",
    "SmartCache",
    "SmartCacheError",
    "Stats",
    "ThresholdPolicy",
    "Turn",
    "plan_context",
]
