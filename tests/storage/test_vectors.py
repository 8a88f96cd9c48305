"""Vectors under own ids: whatever is stored and forgotten, a search gives what a plain dictionary would."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smartcache.embedding import unit
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
