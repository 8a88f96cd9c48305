"""Context that prompts share: nodes in the order of prompts before, whatever order a retriever found them in."""

from __future__ import annotations

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ConfigDict, PrivateAttr

from llama_index_smartcache.nodes import CITATION, NodeChunk, chunk_of, copied
from smartcache import PlannedContexts, plan_context
from smartcache.layers.orders import Order
from smartcache.scopes import current_scope


class CacheAwareContext(BaseNodePostprocessor):
    """Puts nodes in the order in which their prompts have the longest beginning in common with those before, by this
    object and in the same scope; or by `hash`, by `popularity`, or as `given`. No node comes more than `max_shift`
    places after the one it was found at. The last of the postprocessors.

    Gives a new list of new nodes with their scores; what comes twice is kept once, the first time. Each node keeps its
    citation number, its rank as the retriever gave it, from 1, in `node.metadata["smartcache_citation"]`; neither the
    prompt nor an embedding shows it.
    """

    model_config = ConfigDict(extra="forbid")

    order: Order = "cache-aware"
    max_shift: int | None = None
    _planned: PlannedContexts = PrivateAttr(default_factory=PlannedContexts)

    @classmethod
    def class_name(cls) -> str:
        return "CacheAwareContext"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        chunks, scope = [chunk_of(node) for node in nodes], current_scope()
        plan = plan_context(chunks, order=self.order, planned=self._planned, max_shift=self.max_shift, scope=scope)
        self._planned.record(plan.chunks, scope=scope)
        return [_numbered(chunk, plan.numbers[chunk.ref]) for chunk in plan.chunks if isinstance(chunk, NodeChunk)]


def _numbered(chunk: NodeChunk, number: int) -> NodeWithScore:
    (scored,) = copied([chunk])
    node = scored.node
    node.metadata[CITATION] = number
    node.excluded_llm_metadata_keys = sorted({*node.excluded_llm_metadata_keys, CITATION})
    node.excluded_embed_metadata_keys = sorted({*node.excluded_embed_metadata_keys, CITATION})
    return scored
