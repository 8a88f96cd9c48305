"""Which chunks an index holds, so that a deletion by document or by node can be told as one by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode

from llama_index_smartcache.nodes import chunk_of, document_of
from smartcache import Chunk


@dataclass
class Inventory:
    """The nodes of one index by id, as (document id, chunk id); the chunks that the cache believes are there, and those
    that it was told of at some time, so that it knows what comes back.

    `is_complete`: whether nothing can be in the index that is not in here. Not thread-safe: its owner holds the lock.
    """

    is_complete: bool
    nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    believed: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    _of_document: dict[str, dict[str, None]] = field(default_factory=dict)  # node ids
    _holders: Counter[str] = field(default_factory=Counter)  # how many nodes each chunk has

    @classmethod
    def empty_for(cls, index: BaseIndex[Any]) -> Inventory:
        """An empty one. A vector store that keeps the texts itself cannot be asked for all that it holds."""
        store, overridden = getattr(index, "vector_store", None), getattr(index, "_store_nodes_override", False)
        return cls(is_complete=store is None or not store.stores_text or bool(overridden))

    def add(self, nodes: Iterable[BaseNode], source: str) -> tuple[list[Chunk], list[str]]:
        """Takes nodes in. Returns the chunks that the cache does not know to be there, and the chunk ids that went
        because their node is another text now."""
        chunks: dict[str, Chunk] = {}
        replaced = set[str]()
        for node in nodes:
            chunk, before = chunk_of(node, source), self.nodes.get(node.node_id)
            self._take_out(node.node_id)
            self._take_in(node.node_id, document_of(node), chunk.ref.id)
            replaced |= {before[1]} if before else set()
            chunks[chunk.ref.id] = chunk
        new = [chunk for id, chunk in chunks.items() if id not in self.believed]
        return new, sorted(id for id in replaced & self.believed if not self._holders[id])

    def held_by(self, *, documents: Iterable[str] = (), nodes: Iterable[str] = ()) -> list[str]:
        """The ids of the nodes of some documents, and of some nodes as far as they are here."""
        found = [id for document in documents for id in self._of_document.get(document, ())]
        return [*dict.fromkeys([*found, *(id for id in nodes if id in self.nodes)])]

    def going(self, node_ids: Iterable[str]) -> list[str]:
        """The ids of the chunks that the cache believes are there and that nothing but these nodes holds."""
        leaving = Counter(self.nodes[id][1] for id in node_ids)
        return sorted(id for id, count in leaving.items() if id in self.believed and count == self._holders[id])

    def remove(self, node_ids: Iterable[str]) -> None:
        """Takes out the nodes that are gone."""
        for id in node_ids:
            self._take_out(id)

    def _take_in(self, node_id: str, document: str, chunk_id: str) -> None:
        self.nodes[node_id] = document, chunk_id
        self._of_document.setdefault(document, {})[node_id] = None
        self._holders[chunk_id] += 1

    def _take_out(self, node_id: str) -> None:
        if known := self.nodes.pop(node_id, None):
            document, chunk_id = known
            self._of_document[document].pop(node_id)
            self._holders[chunk_id] -= 1
            if not self._of_document[document]:
                del self._of_document[document]
            if not self._holders[chunk_id]:
                del self._holders[chunk_id]
