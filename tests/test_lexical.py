"""Chinese by its letters, other text by the embedder that there is."""

from __future__ import annotations

import numpy as np
import pytest

from smartcache.lexical import ByScript, letters_vector
from smartcache.testing import BagOfWordsEmbedder, EmbedderContract


class TestByScript(EmbedderContract):
    def embedder(self):
        return ByScript(BagOfWordsEmbedder())


class English(BagOfWordsEmbedder):
    def reads(self, text: str) -> bool:
        return text.isascii()


def test_texts_in_both_scripts_keep_their_places():
    embedder = ByScript(BagOfWordsEmbedder())
    mixed = embedder(["opening hours", "开放时间", "tickets"])
    assert np.array_equal(mixed[0], BagOfWordsEmbedder()(["opening hours"])[0])
    assert np.array_equal(mixed[1], letters_vector("开放时间", embedder.dimension))


def test_more_letters_side_by_side_are_nearer():
    one, other, third = (letters_vector(text, 384) for text in ("故宫的开放时间", "故宫的开放时间？", "天坛门票多少钱"))
    assert float(one @ other) == pytest.approx(1.0)
    assert float(one @ third) < 0.3


def test_the_order_of_letters_counts():
    assert float(letters_vector("从北京到上海", 384) @ letters_vector("从上海到北京", 384)) < 0.9


def test_a_text_of_signs_alone_has_a_vector():
    assert float(np.linalg.norm(letters_vector("？！", 384))) == pytest.approx(1.0)


def test_chinese_is_read_and_fits_whatever_the_embedder_says():
    embedder = ByScript(English())
    assert embedder.reads("故宫" * 1000)
    assert embedder.count_tokens("故宫" * 1000) <= embedder.max_tokens
    assert embedder.reads("opening hours")
    assert not embedder.reads("часы работы")


def test_the_name_tells_of_both_and_never_of_one_alone():
    assert ByScript(BagOfWordsEmbedder()).name != BagOfWordsEmbedder().name


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("where is Rome", True),
        ("what is α decay", True),
        ("Где столица", False),
        ("ما هي عاصمة فرنسا", False),
        ("罗马在哪", True),
    ],
)
def test_words_of_letters_that_an_english_model_knows_one_by_one_are_not_read(text, is_read):
    class ReadsAll(English):
        def reads(self, text):
            return True

    assert ByScript(ReadsAll()).reads(text) is is_read
