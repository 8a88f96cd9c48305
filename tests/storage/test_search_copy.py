"""The copy that is searched on a device: what it finds is what the lists hold, whatever it cannot do itself."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from smartcache.embedding import unit
from smartcache.storage.search_copy import SearchCopy, gpu_copier
from smartcache.storage.vector_lists import Lists
from smartcache.storage.vectors import VectorIndex

DIMENSION = 8


def rows(*ids: int) -> np.ndarray:
    return np.stack([unit(np.random.default_rng(id).normal(size=DIMENSION).astype(np.float32)) for id in ids])


class Device:
    """Copies as a GPU does: what it made can be searched and added to, nothing can be removed from it."""

    def __init__(self) -> None:
        self.made: list[object] = []
        self.is_broken = False

    def __call__(self, index: object) -> object:
        if self.is_broken:
            raise RuntimeError("out of memory")
        self.made.append(faiss.clone_index(index))
        self.made[-1].set_direct_map_type(faiss.DirectMap.NoMap)
        self.made[-1].remove_ids = None
        return self.made[-1]


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def lists() -> Lists:
    lists = Lists.trained(rows(*range(100)), 100)
    lists.add(list(range(100)), rows(*range(100)))
    return lists


def found(copy: SearchCopy, id: int, count: int) -> list[int]:
    return [id for id, _ in copy.search(rows(id)[0], count)]


def test_one_copy_serves_many_searches(lists, device):
    copy = SearchCopy(lists, device)
    assert [found(copy, id, 1) for id in (3, 4)] == [[3], [4]]
    assert len(device.made) == 1


def test_what_is_stored_later_is_found_in_the_same_copy(lists, device):
    copy = SearchCopy(lists, device)
    found(copy, 3, 1)
    copy.add([200], rows(200))
    assert (found(copy, 200, 1), len(device.made), device.made[0].ntotal) == ([200], 1, 101)


def test_what_is_forgotten_is_not_served_and_takes_nobodys_place(lists, device):
    copy = SearchCopy(lists, device)
    nearest = found(copy, 3, 10)
    copy.remove(nearest[:5])
    lists.search = None  # the copy finds them alone
    assert found(copy, 3, 5) == nearest[5:]
    assert len(device.made) == 1


def test_a_copy_that_holds_too_much_of_what_is_gone_is_made_anew(lists, device):
    copy = SearchCopy(lists, device, max_gone=4)
    copy.remove(found(copy, 3, 5))
    found(copy, 3, 1)
    assert [made.ntotal for made in device.made] == [100, 95]


def test_an_id_that_comes_back_comes_with_its_new_vector(lists, device):
    copy = SearchCopy(lists, device)
    found(copy, 3, 1)
    copy.remove([3])
    copy.add([3], rows(300))
    assert (found(copy, 300, 1), found(copy, 3, 1) == [3]) == ([3], False)


def test_a_device_in_trouble_leaves_the_search_to_the_lists(lists, device):
    device.is_broken = True
    copy = SearchCopy(lists, device)
    assert (found(copy, 3, 1), found(copy, 4, 1)) == ([3], [4])


def test_an_index_searches_the_copy_once_there_are_lists(device):
    index = VectorIndex(DIMENSION, max_flat=50, to_device=device)
    index.store(range(100), list(rows(*range(100))))
    index.wait()
    index.forget([3])
    assert [id for id, _ in index.lookup(rows(3)[0], 100)].count(3) == 0
    assert [id for id, _ in index.lookup(rows(4)[0], 1)] == [4]
    assert len(device.made) == 1


@pytest.mark.gpu
@pytest.mark.skipif(gpu_copier() is None, reason="needs a FAISS that sees a GPU (faiss-gpu-cu12)")
def test_a_gpu_finds_what_the_lists_hold():
    to_device = gpu_copier()
    copies = []
    index = VectorIndex(DIMENSION, max_flat=50, to_device=lambda lists: copies.append(to_device(lists)) or copies[-1])
    index.store(range(2_000), list(rows(*range(2_000))))
    index.wait()
    assert [[id for id, _ in index.lookup(rows(id)[0], 1)] for id in range(50)] == [[id] for id in range(50)]
    index.forget(range(25))
    index.store([5_000], list(rows(5_000)))
    assert [id for id, _ in index.lookup(rows(5_000)[0], 1)] == [5_000]
    assert not {id for id, _ in index.lookup(rows(3)[0], 200)} & set(range(25))
    assert len(copies) == 1
