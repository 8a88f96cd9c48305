"""Which chunks an index holds, so that a deletion by document or by node can be told as one by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode

from llama_index_smartcache.nodes import chunk_of, document_of
from smartcache import Chunk


@dataclass
class Inventory:
    """The nodes of one index by id, as (document id, chunk id), and the chunks that the cache believes are there.

    `is_complete`: whether nothing can be in the index that is not in here. Not thread-safe: its owner holds the lock.
    """

    is_complete: bool
    nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    believed: set[str] = field(default_factory=set)

    @classmethod
    def empty_for(cls, index: BaseIndex[Any]) -> Inventory:
        """An empty one. A vector store that keeps the texts itself cannot be asked for all that it holds."""
        store, overridden = getattr(index, "vector_store", None), getattr(index, "_store_nodes_override", False)
        return cls(is_complete=store is None or not store.stores_text or bool(overridden))

    def add(self, nodes: Iterable[BaseNode], source: str) -> tuple[list[Chunk], list[str]]:
        """Takes nodes in. Returns the chunks that the cache does not know to be there, and the chunk ids that went
        because their node is another text now."""
        chunks: dict[str, Chunk] = {}
        replaced: list[str] = []
        for node in nodes:
            chunk, before = chunk_of(node, source), self.nodes.get(node.node_id)
            self.nodes[node.node_id] = (document_of(node), chunk.ref.id)
            replaced += [before[1]] if before and before[1] != chunk.ref.id else []
            chunks[chunk.ref.id] = chunk
        new = [chunk for id, chunk in chunks.items() if id not in self.believed]
        return new, self._no_longer_held(replaced)

    def held_by(self, *, documents: Iterable[str] = (), nodes: Iterable[str] = ()) -> list[str]:
        """The ids of the nodes of some documents, and of some nodes as far as they are here."""
        documents, wanted = set(documents), set(nodes)
        return [id for id, (document, _) in self.nodes.items() if document in documents or id in wanted]

    def going(self, node_ids: Iterable[str]) -> list[str]:
        """The ids of the chunks that the cache believes are there and that nothing but these nodes holds."""
        leaving = {id: self.nodes[id] for id in node_ids}
        staying = {chunk for id, (_, chunk) in self.nodes.items() if id not in leaving}
        return sorted({chunk for _, chunk in leaving.values()} & self.believed - staying)

    def remove(self, node_ids: Iterable[str]) -> None:
        """Takes out the nodes that are gone."""
        for id in node_ids:
            self.nodes.pop(id, None)

    def _no_longer_held(self, chunk_ids: list[str]) -> list[str]:
        held = {chunk for _, chunk in self.nodes.values()}
        return sorted({id for id in chunk_ids if id in self.believed and id not in held})
