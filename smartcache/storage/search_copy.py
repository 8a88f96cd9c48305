"""A copy of the lists to search in, on a device that is quicker at it and cannot remove: the lists stay the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import faiss
import numpy as np

from smartcache.embedding import Vector
from smartcache.storage.vector_lists import Found, Lists, Rows, pairs

MAX_GONE = 512  # with the most that is asked for, still under the 2,048 that a GPU finds at once

GPU_WORK_BYTES = 64 * 1024**2


class SearchCopy:
    """Lists, and what `to_device` makes of their FAISS index. What is removed from the lists is left out of what the
    copy finds, until more than `max_gone` have gathered: then the copy is made anew. Where none can be made, the lists
    are searched.
    """

    def __init__(self, lists: Lists, to_device: Callable[[Any], Any], *, max_gone: int = MAX_GONE) -> None:
        self._lists, self._to_device, self._max_gone = lists, to_device, max_gone
        self._copy: Any = None
        self._gone: set[int] = set()
        self._can_copy = True

    @property
    def size_bytes(self) -> int:
        return self._lists.size_bytes

    def add(self, ids: Sequence[int], rows: Rows) -> None:
        self._lists.add(ids, rows)
        if not self._gone.isdisjoint(ids):
            self._copy = None
        if self._copy is not None:
            self._try(lambda: self._copy.add_with_ids(rows, np.array(ids, dtype=np.int64)))

    def remove(self, ids: Sequence[int]) -> None:
        self._lists.remove(ids)
        self._gone.update(ids)
        if len(self._gone) > self._max_gone:
            self._copy = None

    def rows(self, ids: Sequence[int]) -> Rows:
        return self._lists.rows(ids)

    def search(self, vector: Vector, count: int) -> Found:
        if self._copy is None and self._can_copy:
            self._gone.clear()
            self._copy = self._try(lambda: self._to_device(self._lists.index))
        searched = self._copy and self._try(lambda: self._copy.search(vector[np.newaxis], count + len(self._gone)))
        found = [pair for pair in pairs(searched) if pair[0] not in self._gone][:count] if searched else []
        return found if len(found) == count else self._lists.search(vector, count)

    def _try(self, do: Callable[[], Any]) -> Any:
        """What `do` returns; None, and no copy any more, where the device is in trouble."""
        try:
            return do()
        except RuntimeError:
            self._copy, self._can_copy = None, False
            return None


def gpu_copier() -> Callable[[Any], Any] | None:
    """Copies an index to the first GPU; None where this build of FAISS has none."""
    if not faiss.get_num_gpus():
        return None
    resources = faiss.StandardGpuResources()
    resources.setTempMemory(GPU_WORK_BYTES)  # else a share of the whole device, for each index
    return lambda index: faiss.index_cpu_to_gpu(resources, 0, index)
