"""Looking into a cache file and emptying it from the command line."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.command import app
from smartcache.testing import BagOfWordsEmbedder

COMMANDS = [("stats",), ("forget", "--all"), ("forget", "--scope", "bo")]


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


def test_stats_lists_the_scopes_with_their_answers(file: Path) -> None:
    assert run("stats", file)[1].splitlines()[1:] == ["  scope 'ann': 1", "  scope 'bo': 2"]


def test_forget_empties_one_scope(file: Path) -> None:
    assert run("forget", file, "--scope", "bo") == (0, "2 answers forgotten\n")
    assert run("stats", file)[1].startswith("1 stored answer, ")


def test_forget_empties_the_empty_scope_alone(file: Path) -> None:
    with SmartCache.open(file, mode="exact") as cache:
        cache.store(Request([Turn("user", "What is it?")]), Answer("Here."))
    assert run("forget", file, "--scope", "") == (0, "1 answer forgotten\n")
    assert run("stats", file)[1].startswith("3 stored answers, ")


def test_forget_all_empties_the_file(file: Path) -> None:
    assert run("forget", file, "--all") == (0, "3 answers forgotten\n")
    assert run("stats", file)[1].startswith("0 stored answers, ")


@pytest.mark.parametrize("options", [(), ("--scope", "bo", "--all")])
def test_forget_must_be_told_what(file: Path, options: tuple[str, ...]) -> None:
    code, output = run("forget", file, *options)
    assert (code, len(output.splitlines())) == (2, 1)
    assert "either --scope NAME ('' for the empty scope) or --all" in output
    assert run("stats", file)[1].startswith("3 stored answers, ")


def test_forgetting_a_scope_without_answers_names_those_there_are(file: Path) -> None:
    assert run("forget", file, "--scope", "typo") == (
        2,
        "smartcache: no answers in scope 'typo'; there are: 'ann', 'bo'\n",
    )
    assert run("stats", file)[1].startswith("3 stored answers, ")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path, command: tuple[str, ...]) -> None:
    code, output = run(*command, tmp_path / "nowhere.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind_is_refused_and_left_as_it_was(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "notes.db").write_text("my notes", encoding="utf-8")
    code, output = run(*command, tmp_path / "notes.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert (tmp_path / "notes.db").read_text(encoding="utf-8") == "my notes"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_a_cache_is_refused_and_gets_none(tmp_path: Path, command: tuple[str, ...]) -> None:
    code, output = run(*command, tmp_path)
    assert (code, output) == (2, f"smartcache: there is no cache file in {tmp_path}\n")
    assert contents(tmp_path) == {}


def test_a_folder_with_a_cache_is_looked_into(file: Path) -> None:
    file.rename(file.with_name("smartcache.db"))
    assert run("stats", file.parent)[1].startswith("3 stored answers, ")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("with_header", [False, True])
def test_a_file_without_a_cache_in_it_is_left_as_it_was(
    tmp_path: Path, command: tuple[str, ...], with_header: bool
) -> None:
    (tmp_path / "answers.db").touch()
    if with_header:
        connection = sqlite3.connect(tmp_path / "answers.db")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    before = contents(tmp_path)
    code, output = run(*command, tmp_path / "answers.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert "there is no cache file in" in output
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_another_programs_database_is_left_as_it_was(tmp_path: Path, command: tuple[str, ...], journal: str) -> None:
    connection = sqlite3.connect(tmp_path / "theirs.db")
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE answers (scope TEXT)")
    connection.close()
    before = contents(tmp_path)
    code, output = run(*command, tmp_path / "theirs.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert "another program's database" in output
    assert contents(tmp_path) == before


def test_a_cache_in_use_elsewhere_is_looked_into(file: Path) -> None:
    with SmartCache.open(file, mode="exact") as cache:
        cache.store(Request([Turn("user", "Who is it?")], scope="cy"), Answer("Here."))
        assert run("stats", file)[1].splitlines()[1:] == ["  scope 'ann': 1", "  scope 'bo': 2", "  scope 'cy': 1"]


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_damaged_file_it_is_said_what_to_do(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "answers.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    before = contents(tmp_path)
    code, output = run(*command, tmp_path / "answers.db")
    assert (code, len(output.splitlines())) == (2, 1)
    assert "delete or move it, or name another file" in output
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_what_can_be_no_file_is_told_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), tmp_path / ("x" * 300)):
        code, output = run(*command, path)
        assert (code, len(output.splitlines())) == (2, 1)
