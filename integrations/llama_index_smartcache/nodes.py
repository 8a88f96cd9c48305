"""LlamaIndex's nodes as chunks: which document a passage belongs to, and which text it is."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc

from smartcache import Chunk, ChunkRef
from smartcache.copies import own_copy
from smartcache.errors import UnstableKey
from smartcache.keys import digest

CITATION = "smartcache_citation"  # where CacheAwareContext keeps a node's citation number, in its metadata


@dataclass(frozen=True, slots=True)
class NodeChunk(Chunk):
    """A chunk that remembers the node it was made from."""

    node: NodeWithScore | None = field(default=None, compare=False, repr=False)

    @property
    def searched_text(self) -> str:
        """What LlamaIndex embeds of the node, and so compares with a question; `text` is what a prompt shows."""
        return self.node.node.get_content(metadata_mode=MetadataMode.EMBED) if self.node else self.text


def chunk_of(node: BaseNode | NodeWithScore, source: str = "") -> NodeChunk:
    """The chunk that a node is to the cache.

    Its id is the document's id and a hash of the content, its version that hash. Node ids are left out on purpose:
    LlamaIndex draws new ones whenever a document is ingested again, and the same text of the same document is the same
    evidence. Two documents with equal text are two chunks. The content is the text and all the metadata, what the
    prompt does not show included, since a filter may go by it.
    """
    scored = node if isinstance(node, NodeWithScore) else NodeWithScore(node=node)
    version = _version(scored.node)
    ref = ChunkRef(f"{document_of(scored.node)}#{version}", version, source)
    return NodeChunk(ref, scored.node.get_content(metadata_mode=MetadataMode.LLM), scored.score, scored)


def document_of(node: BaseNode) -> str:
    """The id of the document that a node was cut from, or the node's own where it stands for itself."""
    return node.ref_doc_id or node.node_id


def copied(chunks: Iterable[Chunk]) -> list[NodeWithScore]:
    """The nodes behind chunks, as the caller's own."""
    return [_own(chunk.node) for chunk in chunks if isinstance(chunk, NodeChunk) and chunk.node is not None]


def to_json(nodes: Iterable[NodeWithScore]) -> list[Any]:
    return [[doc_to_json(scored.node), scored.score] for scored in nodes]


def from_json(stored: Iterable[Any]) -> list[NodeWithScore]:
    """What `to_json` gave. Only LlamaIndex's own kinds of node come back; a class is never looked up by name."""
    return [NodeWithScore(node=json_to_doc(document), score=score) for document, score in stored]


def _own(scored: NodeWithScore) -> NodeWithScore:
    """A copy that shares nothing but what cannot be copied, and so is not stored either."""
    try:
        return deepcopy(scored)
    except Exception:  # whatever an object in the metadata raises when it is copied: a lock, a client
        node = scored.node
        fields = {name: own_copy(getattr(node, name)) for name in type(node).model_fields if name != "metadata"}
        metadata = {name: own_copy(value) for name, value in node.metadata.items()}
        return NodeWithScore(node=node.model_copy(update={**fields, "metadata": metadata}), score=scored.score)


def _version(node: BaseNode) -> str:
    metadata = {name: value for name, value in node.metadata.items() if name != CITATION}
    try:
        return digest(node.get_content(metadata_mode=MetadataMode.NONE), metadata, _media(node))[:24]
    except UnstableKey:
        return node.hash[:24]


def _media(node: BaseNode) -> list[Any]:
    """What a node holds beside its text, by LlamaIndex's own hash."""
    resources = [getattr(node, name, None) for name in ("image_resource", "audio_resource", "video_resource")]
    return [resource and resource.hash for resource in resources]
