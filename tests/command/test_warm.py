"""`smartcache warm`: the system prompts seen most are computed ahead of time, each under its own scope."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pytest
from typer.testing import CliRunner

from smartcache import Answer, Request, SmartCache, Turn
from smartcache import command as commands
from smartcache.command import app
from smartcache.storage.tiers import TierUsage


class Disk:
    """A prefix cache with a disk tier: a token a letter, written when it is closed."""

    written: dict[Path, list[tuple[str, str]]]

    def __init__(self, disk_path: Path) -> None:
        self.path, self.held = disk_path, list[tuple[str, str]]()
        self.reasons = dict[str, int]()

    def keeps_below(self, fingerprint: str) -> bool:
        return fingerprint == "whole"

    def flush(self) -> None:
        if self.path.name == "full":
            self.reasons = {"could not be written": len(self.held), "not loaded: computing is sooner": 3}

    def tiers(self) -> TierUsage:
        return TierUsage(reasons=self.reasons)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.written[self.path] = self.held


class Model:
    """Takes prompts of up to 30 letters."""

    def __init__(self, prefix_cache: Any) -> None:
        self.prefix_cache, self.fingerprint = prefix_cache, "whole"

    def warm(self, prefixes: Sequence[Sequence[Turn]], *, scope: str = "") -> int:
        computed = 0
        for turns in prefixes:
            text = " ".join(turn.text for turn in turns)
            if len(text) > 30:
                raise ValueError("too long")
            computed += 0 if (scope, text) in self.prefix_cache.held else len(text)
            self.prefix_cache.held.append((scope, text))
        return computed


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[Path, list[tuple[str, str]]]:
    """What is on disk after a command: (scope, text) by folder."""
    disks: dict[Path, list[tuple[str, str]]] = {}
    monkeypatch.setattr(Disk, "written", disks, raising=False)
    monkeypatch.setattr(import_module("smartcache.command.warm"), "PrefixCache", Disk)
    monkeypatch.setattr(commands, "load_warm_model", lambda name, prefix_cache: Model(prefix_cache))
    return disks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cache file in which Bo's assistant was asked twice, Ann's once, and one question had no system prompt."""
    file = tmp_path / "answers.db"
    with SmartCache.open(file, mode="exact") as cache:
        for scope, system, question in (
            ("ann", "Be kind.", "What is it?"),
            ("bo", "Be brief.", "What is it?"),
            ("bo", "Be brief.", "Where is it?"),
        ):
            cache.store(Request([Turn("system", system), Turn("user", question)], scope=scope), Answer("Here."))
        cache.store(Request([Turn("user", "Who?")]), Answer("Me."))
    return file


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["warm", *map(str, arguments)])
    return result.exit_code, result.output


def test_the_prompts_of_a_cache_file_are_warmed_for_the_scope_they_were_seen_in(
    written: dict[Path, Any], file: Path, tmp_path: Path
) -> None:
    code, output = run(file, "--kv", tmp_path / "kv")
    assert (code, written) == (0, {tmp_path / "kv": [("bo", "Be brief."), ("ann", "Be kind.")]})
    assert "9 new tokens in" in output
    assert "'Be brief.' for scope 'bo', seen in 2 requests" in output
    assert "2 system prompts warmed in" in output


def test_the_limit_keeps_the_most_frequent(written: dict[Path, Any], file: Path, tmp_path: Path) -> None:
    assert run(file, "--kv", tmp_path, "--limit", 1)[0] == 0
    assert written == {tmp_path: [("bo", "Be brief.")]}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("prompt.txt", "Be\nbrief.", ["Be\nbrief."]),
        ("prompts.jsonl", '"Be brief."\n\n{"system": "Be kind."}\n', ["Be brief.", "Be kind."]),
    ],
)
def test_prompts_come_from_a_file_too(
    written: dict[Path, Any], tmp_path: Path, name: str, content: str, expected: list[str]
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert run("--file", tmp_path / name, "--kv", tmp_path)[0] == 0
    assert run("--file", tmp_path / name, "--kv", tmp_path / "acme", "--scope", "acme")[0] == 0
    assert written == {tmp_path / part: [(part, text) for text in expected] for part in ("", "acme")}


def test_a_prompt_that_the_model_cannot_take_is_left_out(written: dict[Path, Any], tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text(f'"{"long " * 9}"\n"Be brief."\n', encoding="utf-8")
    code, output = run("--file", tmp_path / "prompts.jsonl", "--kv", tmp_path)
    assert (code, written[tmp_path]) == (0, [("", "Be brief.")])
    assert "left out, too long: 'long" in output


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (None, "", "say where system prompts are"),
        ("prompts.txt", " \n", "no system prompt in"),
        ("prompts.jsonl", '"Be kind."\nBe brief.', "line 2: a line is a string in JSON"),
        ("prompts.jsonl", '{"prompt": "x"}', "line 1: a line is a string in JSON"),
        ("prompts.jsonl", "3", "line 1: a line is a string in JSON"),
        ("prompts.jsonl", f'"{"long " * 9}"', "none of the system prompts fits the model"),
    ],
)
def test_what_cannot_be_warmed_is_one_line_and_exit_code_2(
    written: dict[Path, Any], tmp_path: Path, name: str | None, content: str, told: str
) -> None:
    if name:
        (tmp_path / name).write_text(content, encoding="utf-8")
    code, output = run("--kv", tmp_path, *(["--file", tmp_path / name] if name else []))
    assert code == 2
    assert told in output.splitlines()[-1]


def test_what_is_there_already_is_not_counted_as_new(written: dict[Path, Any], tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('"Be brief."\n"Be brief."\n', encoding="utf-8")
    _, output = run("--file", tmp_path / "prompts.jsonl", "--kv", tmp_path)
    assert [line.split(" in ")[0] for line in output.splitlines()[:2]] == ["9 new tokens", "0 new tokens"]


def test_what_did_not_reach_the_disk_is_a_failure(written: dict[Path, Any], file: Path, tmp_path: Path) -> None:
    code, output = run(file, "--kv", tmp_path / "full")
    assert code == 2
    assert output.splitlines()[-1] == "smartcache: not all of it is on disk: could not be written (2)"


def test_a_model_whose_state_is_not_written_is_refused_before_it_works(
    written: dict[Path, Any], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "keeps_below", lambda self, fingerprint: False)
    code, output = run(file, "--kv", tmp_path / "kv")
    assert (code, written) == (2, {tmp_path / "kv": []})
    assert "only that of models whose layers all see every token is kept" in output


def test_a_cache_file_that_is_not_there_is_refused_and_not_made(written: dict[Path, Any], tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere.db", "--kv", tmp_path / "kv") == (
        2,
        f"smartcache: there is no cache file at {tmp_path / 'nowhere.db'}\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["", "."])
def test_state_is_not_strewn_where_no_folder_was_named(written: dict[Path, Any], file: Path, folder: str) -> None:
    code, output = run(file, "--kv", folder)
    assert (code, written, "name a folder of its own" in output) == (2, {}, True)


def test_state_is_not_kept_in_a_file(written: dict[Path, Any], tmp_path: Path) -> None:
    prompts, kv = tmp_path / "prompts.txt", tmp_path / "kv"
    prompts.write_text("Be brief.")
    kv.write_text("mine")
    result = CliRunner().invoke(app, ["warm", "--kv", str(kv), "--file", str(prompts)])
    assert (result.exit_code, "is a file" in result.output, kv.read_text(), written) == (2, True, "mine", {})
