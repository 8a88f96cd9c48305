"""Vectors under own ids: whatever is stored and forgotten, a search gives what a plain dictionary would."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartcache.embedding import unit
from smartcache.storage.vector_lists import Lists
from smartcache.storage.vectors import VectorIndex

DIMENSION = 8
steps = st.lists(st.tuples(st.sampled_from(["store", "forget"]), st.integers(1, 12)), max_size=40)


def vector(id: int) -> np.ndarray:
    return unit(np.random.default_rng(id).normal(size=DIMENSION).astype(np.float32))


@given(steps, st.integers(100, 120))
def test_a_search_gives_what_a_dictionary_would(steps, asked):
    index, oracle = VectorIndex(DIMENSION), {}
    for what, id in steps:
        if what == "store":
            index.store([id], [vector(id)])
            oracle[id] = vector(id)
        else:
            index.forget([id])
            oracle.pop(id, None)
    expected = sorted(oracle, key=lambda id: -float(oracle[id] @ vector(asked)))[:3]
    found = index.lookup(vector(asked), 3)
    assert len(index) == len(oracle)
    assert [id for id, _ in found] == expected
    assert all(abs(similarity - float(oracle[id] @ vector(asked))) < 1e-5 for id, similarity in found)


def test_an_empty_index_finds_nothing():
    assert VectorIndex(DIMENSION).lookup(vector(1), 5) == []


def test_more_neighbours_than_there_are_are_not_made_up():
    index = VectorIndex(DIMENSION)
    index.store([7], [vector(7)])
    assert [id for id, _ in index.lookup(vector(7), 5)] == [7]


def test_a_similarity_never_exceeds_one():
    index = VectorIndex(384)
    rows = [unit(row) for row in np.random.default_rng(0).normal(size=(500, 384)).astype(np.float32)]
    index.store(list(range(500)), rows)
    assert max(index.lookup(row, 1)[0][1] for row in rows) <= 1.0


# Many vectors lie in lists, which a thread makes.


def many(ids: range, *, max_flat: int = 50) -> VectorIndex:
    """An index over the vectors of `ids`, in lists."""
    index = VectorIndex(DIMENSION, max_flat=max_flat)
    index.store(ids, [vector(id) for id in ids])
    index.wait()
    return index


def ids_found(index: VectorIndex, asked: np.ndarray, count: int) -> list[int]:
    return [id for id, _ in index.lookup(asked, count)]


growing = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.sets(st.integers(1, 60), min_size=1, max_size=20)),
        st.tuples(st.just("forget"), st.sets(st.integers(1, 60), min_size=1, max_size=20)),
        st.tuples(st.just("wait"), st.just(set())),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(growing, st.integers(100, 120), st.integers(1, 70))
def test_across_every_limit_nothing_is_lost_and_nothing_comes_back(steps, asked, count):
    index, oracle = VectorIndex(DIMENSION, max_flat=5), {}
    for what, ids in steps:
        if what == "store":
            index.store(sorted(ids), [vector(id) for id in sorted(ids)])
            oracle.update((id, float(vector(id) @ vector(asked))) for id in ids)
        elif what == "forget":
            index.forget(sorted(ids))
            oracle = {id: similarity for id, similarity in oracle.items() if id not in ids}
        else:
            index.wait()
        found = index.lookup(vector(asked), count)
        assert len({id for id, _ in found}) == len(found) == min(count, len(oracle))
        assert dict(found) == pytest.approx({id: oracle[id] for id, _ in found}, abs=2e-3)
        assert set(ids_found(index, vector(asked), len(oracle))) == set(oracle)
    index.wait()
    assert len(index) == len(oracle)


def test_nearly_all_of_what_is_nearest_is_found():
    draws = np.random.default_rng(0)
    middles = draws.normal(size=(100, 32))
    rows = [unit(row) for row in (middles[draws.integers(100, size=3_100)] + 0.5 * draws.normal(size=(3_100, 32)))]
    stored, asked = np.stack(rows[:3_000]).astype(np.float32), rows[3_000:]
    index = VectorIndex(32, max_flat=500)
    index.store(range(3_000), list(stored))
    index.wait()
    shares = [len(set(np.argsort(stored @ one)[-16:]) & set(ids_found(index, one, 16))) / 16 for one in asked]
    assert np.mean(shares) >= 0.99
    assert index.size_bytes < stored.nbytes  # so the lists were searched, not each vector


def test_as_many_living_ones_are_found_as_are_asked_for_however_many_were_forgotten():
    index = many(range(200))
    index.forget(range(190))
    assert sorted(ids_found(index, vector(5), 10)) == list(range(190, 200))


def test_what_is_forgotten_leaves_its_memory():
    index = many(range(200))
    before = index.size_bytes
    index.forget(range(100))
    assert index.size_bytes - before == -100 * (2 * DIMENSION + 8)


def test_lists_that_are_outgrown_while_they_are_made_are_made_anew(monkeypatch):
    made, trained = [], Lists.trained.__func__

    def slowly(cls, sample, size):
        made.append(size)
        if len(made) == 1:
            index.store(range(100, 1_000), [*map(vector, range(100, 1_000))])
        return trained(cls, sample, size)

    monkeypatch.setattr(Lists, "trained", classmethod(slowly))
    index = VectorIndex(DIMENSION, max_flat=50)
    index.store(range(100), [*map(vector, range(100))])
    index.wait()
    assert made == [100, 1_000]


def test_everything_can_be_forgotten_and_stored_again():
    index = many(range(200))
    index.forget(range(200))
    assert index.lookup(vector(5), 10) == []
    index.store([5], [vector(5)])
    assert ids_found(index, vector(5), 10) == [5]


def test_many_equal_vectors_hide_no_others():
    index = many(range(100))
    index.store(range(1_000, 1_500), [vector(5)] * 500)
    index.wait()
    assert ids_found(index, vector(7), 1) == [7]
    assert len(ids_found(index, vector(5), 501)) == 501


@pytest.mark.parametrize("size", [3, 200])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_vector_that_is_none_finds_nothing(size, broken):
    asked = vector(1)
    asked[0] = broken
    assert many(range(size)).lookup(asked, 5) == []


def test_what_comes_and_goes_while_lists_are_made_is_neither_lost_nor_found_again(monkeypatch):
    index, places, done = VectorIndex(DIMENSION, max_flat=50), Lists.places, []

    def meanwhile(lists, rows):
        if not done:
            done.append(True)
            index.store([1_000, 1_001], [vector(1_000), vector(1_001)])
            index.forget([3, 180, 1_001])
            index.store([3], [vector(4)])
        return places(lists, rows)

    monkeypatch.setattr(Lists, "places", meanwhile)
    index.store(range(200), [vector(id) for id in range(200)])
    index.wait()
    assert done
    assert set(ids_found(index, vector(1), 300)) == {*range(200), 1_000} - {180}
    assert set(ids_found(index, vector(4), 2)) == {3, 4}


def test_lists_that_cannot_be_made_leave_everything_as_it_was(monkeypatch):
    told, unheard = [], []
    monkeypatch.setattr(threading, "excepthook", unheard.append)
    monkeypatch.setattr(Lists, "trained", classmethod(lambda *_: 1 / 0))
    index = VectorIndex(DIMENSION, max_flat=50, on_trouble=told.append)
    index.store(range(200), [vector(id) for id in range(200)])
    index.wait()
    assert ids_found(index, vector(7), 1) == [7]
    assert ([type(error) for error in told], unheard) == ([ZeroDivisionError], [])


def test_lists_that_can_be_made_are_no_trouble():
    told = []
    index = VectorIndex(DIMENSION, max_flat=50, on_trouble=told.append)
    index.store(range(200), [vector(id) for id in range(200)])
    index.wait()
    assert (ids_found(index, vector(7), 1), told) == ([7], [])


def test_an_index_that_is_emptied_while_lists_are_made_has_lists_later(monkeypatch):
    index, trained, sizes = VectorIndex(DIMENSION, max_flat=50), Lists.trained, []

    def emptied(cls, sample, size):
        index.forget(range(200))
        sizes.append(size)
        return trained(sample, size)

    monkeypatch.setattr(Lists, "trained", classmethod(emptied))
    index.store(range(200), [vector(id) for id in range(200)])
    index.wait()
    assert index.lookup(vector(1), 5) == []
    index.store(range(2_000), [vector(id) for id in range(2_000)])
    index.wait()
    assert sizes == [200, 2_000]
    assert sorted(ids_found(index, vector(1), 3_000)) == list(range(200, 2_000))


def test_an_index_that_nobody_holds_ends_its_thread(monkeypatch):
    trained, go_on = Lists.trained, threading.Event()
    monkeypatch.setattr(Lists, "trained", classmethod(lambda cls, *given: go_on.wait() and trained(*given)))
    index = VectorIndex(DIMENSION, max_flat=50)
    index.store(range(200), [vector(id) for id in range(200)])
    thread = index._thread
    del index
    go_on.set()
    thread.join()
