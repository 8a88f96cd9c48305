"""Context that prompts share: the same nodes in the same order, whatever order a retriever found them in."""

from __future__ import annotations

from typing import Literal

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ConfigDict

from llama_index_smartcache.nodes import CITATION, NodeChunk, chunk_of, copied
from smartcache import plan_context


class CacheAwareContext(BaseNodePostprocessor):
    """Puts nodes in the order in which their prompts have the longest common beginning: by a hash of identity and
    content, or as `given`. The last of the postprocessors.

    Gives a new list of new nodes with their scores; what comes twice is kept once, the first time. Each node keeps its
    citation number, its rank as the retriever gave it, from 1, in `node.metadata["smartcache_citation"]`; neither the
    prompt nor an embedding shows it.
    """

    model_config = ConfigDict(extra="forbid")

    order: Literal["given", "hash"] = "hash"

    @classmethod
    def class_name(cls) -> str:
        return "CacheAwareContext"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        plan = plan_context([chunk_of(node) for node in nodes], order=self.order)
        return [_numbered(chunk, plan.numbers[chunk.ref]) for chunk in plan.chunks if isinstance(chunk, NodeChunk)]


def _numbered(chunk: NodeChunk, number: int) -> NodeWithScore:
    (scored,) = copied([chunk])
    node = scored.node
    node.metadata[CITATION] = number
    node.excluded_llm_metadata_keys = sorted({*node.excluded_llm_metadata_keys, CITATION})
    node.excluded_embed_metadata_keys = sorted({*node.excluded_embed_metadata_keys, CITATION})
    return scored
