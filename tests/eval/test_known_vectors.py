"""Vectors are computed once, and kept where a folder is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smartcache.testing import BagOfWordsEmbedder
from smartcache_eval.vectors import KnownVectors


def test_a_text_is_embedded_once() -> None:
    embedder = BagOfWordsEmbedder()
    vectors = KnownVectors(embedder)
    first = vectors(["one text", "another"])
    assert np.array_equal(vectors(["another", "one text"]), first[::-1])
    assert sorted(embedder.texts) == ["another", "one text"]


def test_vectors_come_back_from_the_folder(tmp_path: Path) -> None:
    vectors = KnownVectors(BagOfWordsEmbedder(), tmp_path)
    kept = vectors(["one text"])
    vectors.save()
    embedder = BagOfWordsEmbedder()
    assert np.array_equal(KnownVectors(embedder, tmp_path)(["one text"]), kept)
    assert embedder.texts == []


def test_vectors_of_another_embedder_are_not_taken(tmp_path: Path) -> None:
    vectors = KnownVectors(BagOfWordsEmbedder(), tmp_path)
    vectors.learn(["one text"])
    vectors.save()
    other = BagOfWordsEmbedder(name="another")
    KnownVectors(other, tmp_path)(["one text"])
    assert other.texts == ["one text"]
