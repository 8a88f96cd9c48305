"""`smartcache shadow`: thresholds over what was recorded, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartcache import Request, SmartCache, Turn
from smartcache.command import app
from smartcache.command.shadow import report_on
from smartcache.shadow import ShadowRecord
from smartcache.testing import FakeModel, TableEmbedder

RESET, NEAR = "How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The records of a near question and of the same one again."""
    file = tmp_path / "answers.db"
    with SmartCache.open(file, embedder=TableEmbedder({(RESET, NEAR): 0.93}), shadow=True, strict=True) as cache:
        for text in (RESET, NEAR, NEAR):
            cache.answer(Request([Turn("user", text)]), FakeModel(lambda request, chunks: "Hold the button."))
    return file


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["shadow", *map(str, arguments)])
    return result.exit_code, result.output


def near(count: int, similarity: float, same: bool) -> list[ShadowRecord]:
    kept = {"similarity": similarity}
    return [ShadowRecord(0.0, "", "semantic", 1, similarity, True, kept, same, 1.0 if same else 0.0)] * count


def test_it_prints_a_row_a_threshold(file: Path) -> None:
    code, output = run(file)
    rows = {line[:32].strip(): line[32:].split()[:3] for line in output.splitlines()}
    assert code == 0
    assert rows["the same request again"] == ["1", "1", "1"]
    assert rows["a near one, from 0.92 on"] == ["1", "1", "1"]
    assert rows["a near one, from 0.95 on"] == ["0", "0", "0"]


def test_it_prints_json(file: Path) -> None:
    found = json.loads(run(file, "--json")[1])
    assert found["records"] == 2
    assert found["settings"]["ThresholdPolicy(0.92)"] | {"interval": None} == {
        "served": 1, "agreed": 1, "differed": 0, "agreement": 1.0, "interval": None,
    }  # fmt: skip


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    code, output = run(tmp_path / "none.db")
    assert (code, output.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


def test_without_records_it_says_how_to_get_some() -> None:
    assert "shadow=True" in report_on(()).advice


def test_few_records_are_too_little_to_judge_by() -> None:
    assert report_on(tuple(near(49, 0.99, True))).advice.startswith("Too little")


def test_it_advises_the_loosest_threshold_that_agrees_for_sure() -> None:
    records = near(200, 0.96, True) + near(200, 0.91, True) + near(100, 0.86, False)
    assert "ThresholdPolicy(0.88)" in report_on(tuple(records)).advice


def test_it_advises_none_where_none_agrees_for_sure() -> None:
    assert report_on(tuple(near(100, 0.96, True) + near(20, 0.99, False))).advice.startswith("No setting")
