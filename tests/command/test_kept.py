"""Looking into a cache file and emptying it from the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.command import app
from smartcache.testing import BagOfWordsEmbedder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cache file with one answer for Ann and two for Bo."""
    file = tmp_path / "answers.db"
    with SmartCache.open(file, embedder=BagOfWordsEmbedder()) as cache:
        for scope, question in (("ann", "What is it?"), ("bo", "What is it?"), ("bo", "Where is it?")):
            cache.store(Request([Turn("user", question)], scope=scope), Answer("Here."))
    return file


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_stats_says_how_many_answers_a_file_holds(file: Path) -> None:
    code, output = run("stats", file)
    assert code == 0
    assert output.startswith("3 stored answers, ")


def test_forget_empties_one_scope(file: Path) -> None:
    assert run("forget", file, "--scope", "bo") == (0, "2 answers forgotten\n")
    assert run("stats", file)[1].startswith("1 stored answers, ")


def test_forget_without_a_scope_empties_the_file(file: Path) -> None:
    assert run("forget", file) == (0, "3 answers forgotten\n")


@pytest.mark.parametrize("command", ["stats", "forget"])
def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path, command: str) -> None:
    code, output = run(command, tmp_path / "nowhere.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["stats", "forget"])
def test_a_file_of_another_kind_is_refused_and_left_as_it_was(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.db").write_text("my notes", encoding="utf-8")
    code, output = run(command, tmp_path / "notes.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert (tmp_path / "notes.db").read_text(encoding="utf-8") == "my notes"


@pytest.mark.parametrize("command", ["stats", "forget"])
def test_an_empty_file_or_folder_is_refused_and_stays_empty(tmp_path: Path, command: str) -> None:
    (tmp_path / "empty.db").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "empty.db", tmp_path / "folder"):
        code, output = run(command, path)
        assert (code, len(output.splitlines())) == (2, 1)
    assert (tmp_path / "empty.db").stat().st_size == 0
    assert list((tmp_path / "folder").iterdir()) == []


def test_stats_finds_the_file_in_its_folder(tmp_path: Path) -> None:
    SmartCache.open(tmp_path, embedder=BagOfWordsEmbedder()).close()
    assert run("stats", tmp_path)[0] == 0


@pytest.mark.parametrize("command", ["stats", "forget"])
def test_what_can_be_no_file_is_told_in_one_line(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), tmp_path / ("x" * 300)):
        code, output = run(command, path)
        assert (code, len(output.splitlines())) == (2, 1)
