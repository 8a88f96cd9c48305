"""Any embedder's vectors, checked and remembered."""

from __future__ import annotations

import numpy as np
import pytest

from smartcache.embedding import RememberedVectors
from smartcache.testing import BagOfWordsEmbedder, EmbedderContract, TableEmbedder


class TestBagOfWordsEmbedder(EmbedderContract):
    def embedder(self):
        return BagOfWordsEmbedder()


def test_a_table_embedder_gives_the_similarity_it_was_told():
    one, other, third = TableEmbedder({("a", "b"): 0.98})(["a", "b", "c"])
    assert float(one @ other) == pytest.approx(0.98, abs=1e-6)
    assert float(one @ third) == 0.0


def test_a_text_is_embedded_once():
    embedder = BagOfWordsEmbedder()
    vectors = RememberedVectors(embedder)
    first = vectors(["a text", "another", "a text"])
    again = vectors(["another", "a text"])
    assert embedder.texts == ["a text", "another"]
    assert np.array_equal(first[0], again[1])


def test_only_so_many_texts_are_remembered():
    embedder = BagOfWordsEmbedder()
    vectors = RememberedVectors(embedder, max_texts=2)
    vectors(["one", "two", "three"])
    vectors(["one", "three"])
    assert embedder.texts == ["one", "two", "three", "one"]


class Fixed(BagOfWordsEmbedder):
    def __init__(self, row):
        super().__init__(dimension=2)
        self.row = row

    def __call__(self, texts):
        return np.array([self.row] * len(texts), dtype=np.float32)


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0], [1.0, 0.0, 0.0]])
def test_a_vector_without_direction_or_of_another_dimension_is_refused(row):
    with pytest.raises(ValueError, match=r"no direction|shape"):
        RememberedVectors(Fixed(row))(["text"])


def test_vectors_are_made_unit_length():
    (vector,) = RememberedVectors(Fixed([3.0, 4.0]))(["text"])
    assert vector.tolist() == pytest.approx([0.6, 0.8])


def test_a_text_longer_than_the_embedder_reads_does_not_fit():
    vectors = RememberedVectors(BagOfWordsEmbedder(max_tokens=3))
    assert vectors.fits("one two three")
    assert not vectors.fits("one two three four")


class Bytes(BagOfWordsEmbedder):
    """Counts one token a byte, and two of its own."""

    def count_tokens(self, text):
        return len(text.encode()) + 2


@pytest.mark.parametrize("text", ["!" * 15, "é" * 8, "汉" * 5])
def test_a_text_of_fewer_letters_than_tokens_is_counted_by_its_tokens(text):
    assert not RememberedVectors(Bytes(max_tokens=16)).fits(text)


@pytest.mark.parametrize("text", ["!" * 14, "é" * 7, "汉" * 4, ""])
def test_a_text_of_as_many_tokens_as_the_embedder_reads_fits(text):
    assert RememberedVectors(Bytes(max_tokens=16)).fits(text)


class Reading(BagOfWordsEmbedder):
    """Knows no word with an x, and notes what it is asked about."""

    def __init__(self):
        super().__init__(max_tokens=3)
        self.counted, self.read = [], []

    def count_tokens(self, text):
        self.counted.append(text)
        return super().count_tokens(text)

    def reads(self, text):
        self.read.append(text)
        return "x" not in text


def test_the_embedder_is_asked_once_how_long_a_text_is_and_whether_it_knows_its_words():
    embedder = Reading()
    vectors = RememberedVectors(embedder)
    for _ in range(2):
        assert vectors.fits("one two three")
        assert not vectors.fits("one two three four")
        assert vectors.reads("one two three")
        assert not vectors.reads("xyz")
    assert embedder.counted == ["one two three", "one two three four"]
    assert embedder.read == ["one two three", "xyz"]


def test_a_text_that_fits_may_still_not_be_read():
    vectors = RememberedVectors(Reading())
    assert vectors.fits("two xyz")
    assert not vectors.reads("two xyz")


def test_only_so_many_of_those_answers_are_remembered():
    embedder = Reading()
    vectors = RememberedVectors(embedder, max_texts=1)
    for text in ("a", "b", "c", "b", "a"):
        vectors.reads(text)
    assert embedder.read == ["a", "b", "c", "a"]


def test_what_was_cleared_is_asked_again():
    embedder = Reading()
    vectors = RememberedVectors(embedder)
    for _ in range(2):
        vectors(["a text"])
        vectors.fits("a longer text")
        vectors.reads("a text")
        vectors.clear()
    assert (embedder.texts, embedder.counted, embedder.read) == (["a text"] * 2, ["a longer text"] * 2, ["a text"] * 2)


def test_what_is_embedded_while_all_is_cleared_is_not_remembered():
    class Slow(BagOfWordsEmbedder):
        def __call__(self, texts):
            if len(self.texts) == 1:
                vectors.clear()
            return super().__call__(texts)

    embedder = Slow()
    vectors = RememberedVectors(embedder)
    for _ in range(3):
        vectors(["kept"])
        vectors(["a secret"])
    assert embedder.texts.count("a secret") == 2


def test_what_was_asked_last_is_remembered_longest():
    embedder = BagOfWordsEmbedder()
    vectors = RememberedVectors(embedder, max_texts=2)
    for text in ("a text", "another", "a text", "a third", "a text"):
        vectors([text])
    assert embedder.texts == ["a text", "another", "a third"]
