"""LangChain's documents as chunks: which text a document is, in every place that tells of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from smartcache import Chunk, ChunkRef
from smartcache.copies import own_copy
from smartcache.keys import content_version

REF = "smartcache_ref"  # in a document's metadata: [id, version, source]
_IDS = ("id", "doc_id", "document_id", "chunk_id")


@dataclass(frozen=True, slots=True)
class DocumentChunk(Chunk):
    """A chunk that knows the document it was."""

    document: Document | None = field(default=None, compare=False, repr=False)


def chunk_of(document: Document, source: str, id: str | None = None) -> DocumentChunk:
    """The version is a hash of the text alone: stores give metadata back in other forms than they got it in.

    A document without an id, there or in its metadata, goes by a hash of its text.
    """
    version = content_version(document.page_content)
    named = id or document.id or next((document.metadata[name] for name in _IDS if document.metadata.get(name)), None)
    ref = ChunkRef(str(named) if named is not None else f"sha256:{version}", version, source)
    score = document.metadata.get("relevance_score")
    similarity = float(score) if isinstance(score, float) else None
    return DocumentChunk(ref, document.page_content, similarity, _own(document))


def document_of(chunk: Chunk) -> Document:
    """The caller's own copy of a chunk's document, with its reference in the metadata."""
    known = chunk.document if isinstance(chunk, DocumentChunk) else None
    document = _own(known) if known else Document(page_content=chunk.text, id=chunk.ref.id)
    ref: list[Any] = [chunk.ref.id, chunk.ref.version, chunk.ref.source]
    document.metadata = {**document.metadata, REF: ref}
    return document


def _own(document: Document) -> Document:
    """A copy that shares nothing but what cannot be copied."""
    try:
        return copy.deepcopy(document)
    except Exception:  # whatever an object in the metadata raises when it is copied: a lock, a client
        metadata = {name: own_copy(value) for name, value in document.metadata.items()}
        return document.model_copy(update={"metadata": metadata})
