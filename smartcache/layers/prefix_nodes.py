"""The nodes of the tree of prefixes: tokens, and the state that belongs to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

from smartcache.storage.segments import SegmentT


@dataclass(slots=True, eq=False)
class Node(Generic[SegmentT]):
    """A run of tokens and the state that belongs to exactly them; the root of a tree has neither."""

    tokens: tuple[int, ...] = ()
    segment: SegmentT | None = None
    parent: Node[SegmentT] | None = None
    children: dict[int, Node[SegmentT]] = field(default_factory=dict)
    pins: int = 0
    name: int = 0


def path_to(node: Node[SegmentT]) -> list[Node[SegmentT]]:
    """The nodes with state from the top to `node`."""
    path: list[Node[SegmentT]] = []
    while node.parent is not None:
        path.append(node)
        node = node.parent
    return path[::-1]
