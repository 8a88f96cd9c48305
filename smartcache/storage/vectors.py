"""Nearest vectors by cosine similarity under own ids: exact while they are few, sorted into lists when they are many;
derived from the entries and rebuilt at will."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import sleep
from typing import Any, TypeVar

import faiss
import numpy as np

from smartcache.embedding import Vector
from smartcache.storage.search_copy import SearchCopy, gpu_copier
from smartcache.storage.vector_lists import Flat, Lists, Rows

MAX_FLAT = (
    4_000  # a fifth of a millisecond for one search on one core, and exact; more of them drive all else from its caches
)
GROWTH = 2  # so many times the vectors that the lists were made for, and lists are made anew
SLICE_ROWS = 256  # read at once, so that nobody waits for it
MEASURED_QUERIES = 512
PAUSE_SECONDS = 0.0005

Step = TypeVar("Step")


class VectorIndex:
    """Unit vectors of one dimension under ids that are never given twice. Safe to share between threads.

    Up to `max_flat` vectors, each is compared. From then on a thread sorts them into lists of what is alike, and again
    whenever enough new ones have come; while it works, everything is found as before, and so it is where it fails:
    that is told to `on_trouble`. `to_device` makes a copy of the lists to search in, by default on the GPU where FAISS
    has one.
    """

    def __init__(
        self,
        dimension: int,
        *,
        max_flat: int = MAX_FLAT,
        to_device: Callable[[Any], Any] | None = None,
        on_trouble: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        self._max_flat = self._room = max_flat
        self._to_device, self._on_trouble = to_device, on_trouble
        self._index: Flat | Lists | SearchCopy = Flat(dimension)
        self._next: Lists | None = None  # being filled
        self._unlisted: set[int] = set()  # to be copied into the next lists
        self._ids: set[int] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def size_bytes(self) -> int:
        """What the vectors take in memory, without what is being built."""
        return self._index.size_bytes

    def store(self, ids: Sequence[int], vectors: Sequence[Vector]) -> None:
        """Adds vectors; an id that is there already keeps its own."""
        with self._lock:
            new = {id: vector for id, vector in zip(ids, vectors, strict=True) if id not in self._ids}
            if not new:
                return
            rows = np.stack(list(new.values())).astype(np.float32)
            self._index.add(list(new), rows)
            if self._next:
                self._next.add(list(new), rows)
            self._ids.update(new)
            self._room -= len(new)
            self._sort_where_outgrown()

    def forget(self, ids: Sequence[int]) -> None:
        with self._lock:
            gone = [id for id in dict.fromkeys(ids) if id in self._ids]
            self._ids.difference_update(gone)
            self._index.remove(gone)
            if self._next:
                self._next.remove([id for id in gone if id not in self._unlisted])
                self._unlisted.difference_update(gone)

    def lookup(self, vector: Vector, count: int) -> list[tuple[int, float]]:
        """At most `count` (id, similarity) pairs, nearest first, similarities in [-1, 1]."""
        with self._lock:
            count = min(count, len(self._ids))
            if not count or not np.isfinite(vector).all():
                return []
            with one_thread():
                found = self._index.search(vector, count)
        return [(id, min(1.0, max(-1.0, similarity))) for id, similarity in found]

    def wait(self) -> None:
        """Returns when no lists are being made any more."""
        while thread := self._thread:
            thread.join()

    # What the thread calls; the lock is held for a slice at most.

    def _sample(self, count: int) -> list[int]:
        with self._lock:
            ids = np.fromiter(self._ids, dtype=np.int64, count=len(self._ids))
        return [int(id) for id in np.random.default_rng(len(ids)).permutation(ids)[:count]]

    def _living(self, ids: Iterable[int]) -> tuple[list[int], Rows]:
        with self._lock:
            living = [id for id in ids if id in self._ids]
            return living, self._index.rows(living)

    def _begin(self, lists: Lists) -> list[int]:
        """From now on what is stored goes into `lists` too; returns what was there before."""
        with self._lock:
            self._next, self._unlisted = lists, set(self._ids)
            return list(self._unlisted)

    def _copy(self, lists: Lists, ids: Sequence[int], rows: Rows, places: Any) -> None:
        with self._lock:
            living = [at for at, id in enumerate(ids) if id in self._unlisted]
            lists.add([ids[at] for at in living], rows[living], places[living])
            self._unlisted.difference_update(ids)

    def _measure(self, lists: Lists, row: Vector) -> list[int]:
        with self._lock:
            return lists.lists_needed(row)

    def _adopt(self, lists: Lists, needed: Sequence[int]) -> None:
        with self._lock:
            lists.search_for(needed)
            to_device = self._to_device or gpu_copier()
            self._index, self._next = SearchCopy(lists, to_device) if to_device else lists, None

    def _end(self, error: Exception | None) -> None:
        with self._lock:
            self._next, self._thread, self._unlisted = None, None, set()
            if error is None:
                self._sort_where_outgrown()  # by what came while these lists were made
        if error:
            self._on_trouble(error)

    def _sort_where_outgrown(self) -> None:
        """The lock is held."""
        if self._room < 0 and len(self) > self._max_flat and self._thread is None:
            self._room = (GROWTH - 1) * len(self)
            self._thread = threading.Thread(target=_sort, args=(weakref.ref(self),), daemon=True)
            self._thread.start()


def _sort(ref: weakref.ref[VectorIndex]) -> None:
    """Makes the lists of an index that lives on, with one core: the other ones are the application's."""
    faiss.omp_set_num_threads(1)  # counts for this thread alone
    trouble = None
    try:
        rows, size = _sampled(ref)
        if len(rows):
            _fill(ref, Lists.trained(rows, size), rows[:MEASURED_QUERIES])
    except Exception as error:  # of nobody's request
        trouble = error
    finally:
        index = ref()
        if index is not None:
            index._end(trouble)


def _sampled(ref: weakref.ref[VectorIndex]) -> tuple[Rows, int]:
    """Vectors to learn from, and how many there are in all."""
    index = ref()
    size = 0 if index is None else len(index)
    if index is None or not size:
        return np.empty((0, 0), dtype=np.float32), 0
    sample = index._sample(Lists.sample_rows(size))
    return np.concatenate([index._living(ids)[1] for ids in _gently(_slices(sample))]), size


def _fill(ref: weakref.ref[VectorIndex], lists: Lists, queries: Rows) -> None:
    index = ref()
    ids = [] if index is None else index._begin(lists)
    for part in _gently(_slices(ids)):
        index = None
        index = ref()
        if index is None:
            return
        living, rows = index._living(part)
        index._copy(lists, living, rows, lists.places(rows))
    if index is not None:
        index._adopt(lists, [rank for row in _gently(queries) for rank in index._measure(lists, row)])


def _slices(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + SLICE_ROWS] for start in range(0, len(ids), SLICE_ROWS))


def _gently(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, the lock left in between to those who wait for it: who takes it again at once would keep it."""
    for step in steps:
        yield step
        sleep(PAUSE_SECONDS)


@contextmanager
def one_thread() -> Iterator[None]:
    """FAISS within works in the calling thread alone: others compute too, and waiting for each other takes longer than
    so little work."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
