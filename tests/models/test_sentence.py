"""The sentence embedder: unit rows, an honest count of tokens, a name that changes with whatever shapes a vector."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the `local` extra")

from smartcache.errors import MissingModel
from smartcache.models import SentenceEmbedder, bundled_embedder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def embedder() -> SentenceEmbedder:
    try:
        return bundled_embedder()
    except MissingModel as missing:
        pytest.skip(str(missing))


def test_rows_are_of_length_one(embedder: SentenceEmbedder) -> None:
    rows = embedder(["a dog", "the quick brown fox", ""])
    assert (rows.shape, rows.dtype) == ((3, embedder.dimension), np.float32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_texts_of_one_meaning_are_nearer_than_others(embedder: SentenceEmbedder) -> None:
    asked, reworded, other = embedder(["How do I reset my password?", "I forgot my password", "Bake bread at 220 °C"])
    assert asked @ reworded > 0.5 > 0.3 > asked @ other


def test_no_texts_give_no_rows(embedder: SentenceEmbedder) -> None:
    assert embedder([]).shape == (0, 384)


def test_one_text_without_its_list_is_refused(embedder: SentenceEmbedder) -> None:
    with pytest.raises(TypeError, match=r"write embedder\(\[text\]\)"):
        embedder("hello")


def test_a_text_beyond_the_limit_is_counted_in_full(embedder: SentenceEmbedder) -> None:
    assert embedder.count_tokens("word " * 400) == 402 > embedder.max_tokens == 256


def test_the_name_of_the_bundled_embedder_is_that_of_its_weights(embedder: SentenceEmbedder) -> None:
    assert (embedder.name, bundled_embedder().name) == ("all-MiniLM-L6-v2@" + embedder.name[-12:], embedder.name)


def test_threads_get_the_rows_of_single_calls(embedder: SentenceEmbedder) -> None:
    texts = [f"question number {number}" for number in range(8)]
    rows: dict[str, Any] = {}

    def embed(text: str) -> None:
        embedder.count_tokens(text)
        rows[text] = embedder([text])[0]

    threads = [threading.Thread(target=embed, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.allclose([rows[text] for text in texts], embedder(texts), atol=1e-5)


def folder(path: Path, *, weights: bytes = b"weights", pooling: str = "mean", **steps: Any) -> Path:
    """A folder of the form that sentence-transformers writes, with weights that nobody loads."""
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    files: dict[str, Any] = {
        "config.json": {"max_position_embeddings": 512},
        "1_Pooling/config.json": {"word_embedding_dimension": 32, f"pooling_mode_{pooling}_tokens": True},
    }
    for name, config in steps.items():
        modules.append({"path": name, "type": f"sentence_transformers.models.{name}"})
        files[f"{name}/config.json"] = config
    for name, content in {**files, "modules.json": modules}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(json.dumps(content))
    (path / "model.safetensors").write_bytes(weights)
    return path


def test_the_same_files_have_the_same_name_anywhere(tmp_path: Path) -> None:
    names = [SentenceEmbedder(folder(tmp_path / place / "tiny")).name for place in ("here", "there")]
    assert names[0] == names[1]


@pytest.mark.parametrize("change", [{"weights": b"other"}, {"pooling": "max"}, {"Dense": {"out_features": 32}}])
def test_other_weights_or_pooling_have_another_name(tmp_path: Path, change: dict[str, Any]) -> None:
    names = [SentenceEmbedder(folder(tmp_path / str(at) / "tiny", **how)).name for at, how in enumerate(({}, change))]
    assert names[0] != names[1]


def test_another_prompt_has_another_name(tmp_path: Path) -> None:
    path = folder(tmp_path / "tiny")
    assert SentenceEmbedder(path).name != SentenceEmbedder(path, prompt="query: ").name


@pytest.mark.parametrize(("steps", "dimension"), [({}, 32), ({"Dense": {"out_features": 8}}, 8)])
def test_the_dimension_is_that_of_the_last_step(tmp_path: Path, steps: dict[str, Any], dimension: int) -> None:
    assert SentenceEmbedder(folder(tmp_path / "tiny", **steps)).dimension == dimension


def test_without_a_stated_limit_the_network_sets_it(tmp_path: Path) -> None:
    assert SentenceEmbedder(folder(tmp_path / "tiny")).max_tokens == 512


def test_an_embedder_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingModel, match=r"hf download nobody/nothing"):
        SentenceEmbedder("nobody/nothing")


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingModel, match=r"no sentence-transformers model: it has no modules\.json"):
        SentenceEmbedder(tmp_path)


def test_words_without_a_token_are_not_read(embedder: SentenceEmbedder) -> None:
    one, other = "什么是编程语言中的猫?", "什么是编程语言中的狗?"  # "cat" and "dog"
    assert embedder([one])[0] @ embedder([other])[0] > 0.999
    assert not embedder.reads(one)
    assert embedder.reads("What is a cat in a programming language?")


def test_its_layers_are_laid_out_for_few_rows_and_give_the_same_vectors(embedder: SentenceEmbedder) -> None:
    from sentence_transformers import SentenceTransformer

    from smartcache.models.packed import packs

    texts = ["a dog", "How do I reset my password, please?", "word " * 200]
    whole = SentenceTransformer(str(embedder._folder))
    expected = whole.encode(texts, normalize_embeddings=True)
    assert np.allclose(embedder(texts), expected, atol=1e-5)
    layers = {type(part).__name__ for part in embedder._model().modules()}
    assert ("PackedLinear" in layers) is packs(whole) is not ("Linear" in layers)
