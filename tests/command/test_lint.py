"""`smartcache lint`: a table or JSON, and the exit codes that CI goes by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartcache.command import app

RULES = "Answer politely, name the section of the handbook, and never guess. " * 3


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "prompt.txt"
    file.write_text(f"Today is {{date}}.\nYou help {{user_name}}. {RULES}\n{{question}}")
    return file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"It is 10:0{n}. {RULES}"}) + "\n" for n in range(3)))
    return file


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lint", *map(str, arguments)])
    return result.exit_code, result.output


def test_findings_are_shown_and_fail(template: Path) -> None:
    code, output = run(template)
    assert code == 1
    assert "timestamp: put the date" in output
    assert "2 findings in" in output


def test_without_findings_it_is_well(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text(RULES + "{date} {question}")
    code, output = run(tmp_path / "prompt.txt")
    assert code == 0
    assert "0 findings in" in output


@pytest.mark.parametrize(("options", "code"), [
    (["--ignore", "timestamp"], 1),
    (["--ignore", "timestamp", "--ignore", "user-value"], 0),
    (["--max-findings", "1"], 1),
    (["--max-findings", "2"], 0),
])  # fmt: skip
def test_what_is_allowed_does_not_fail(options: list[str], code: int, template: Path) -> None:
    assert run(template, *options)[0] == code


def test_a_log_is_measured(log: Path) -> None:
    code, output = run(log)
    assert code == 1
    assert "request 2" in output
    assert "with timestamp alone mended" in output


def test_it_prints_json(log: Path) -> None:
    code, output = run(log, "--json")
    (found,) = json.loads(output)["prompts"]
    assert (code, found["requests"]) == (1, 3)
    assert [(one["code"], one["line"], one["requests"]) for one in found["findings"]] == [("timestamp", 2, 2)]
    assert found["findings"][0]["remedy"]
    assert found["sharing"]["now"] < 0.2 < 0.6 < found["sharing"]["mended"]
    assert len(found["sharing"]["per_request"]) == 3


def test_several_are_counted_together(template: Path, log: Path) -> None:
    assert json.loads(run(template, log, "--json")[1])["findings"] == 3
    assert [run(template, log, "--max-findings", most)[0] for most in (2, 3)] == [1, 0]


@pytest.mark.parametrize("wrong", ["none.txt", "no_module_of_ours:prompt", "."])
def test_what_cannot_be_read_is_one_line(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run(wrong)
    assert (code, output.count("\n")) == (2, 1)


def test_an_unknown_code_is_told(template: Path) -> None:
    code, output = run(template, "--ignore", "times")
    assert code == 2
    assert "there is no code" in output
