"""Looking into a cache file and emptying it from the command line."""

from __future__ import annotations

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
