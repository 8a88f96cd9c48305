"""`smartcache-eval run`, `report` and `gate`, as a user and a build call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from smartcache.testing import BagOfWordsEmbedder
from smartcache_eval import evaluation_command

POLICIES = ["none", "exact", "last message", "whole prompt", "ours", "oracle"]
KEYS = {
    "hits",
    "wrong",
    "hit_rate",
    "wrong_per_hit",
    "wrong_per_hit_upper95",
    "missed",
    "stale",
    "lookup_p99_ms",
}


@pytest.fixture(autouse=True)
def small_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_command, "load_embedder", BagOfWordsEmbedder)


def command(*arguments: str) -> Result:
    commands = typer.Typer()
    evaluation_command.register(commands)
    return CliRunner().invoke(commands, list(arguments))


def lines_of(path: Path, *steps: dict[str, Any]) -> str:
    path.write_text("\n".join(json.dumps(step) for step in steps), encoding="utf-8")
    return str(path)


def repeated(tmp_path: Path, *, truth: str, times: int = 40) -> str:
    """One question again and again, after small talk that differs; every truth but the first is `truth`."""
    steps = [
        {
            "turns": [
                f"This is day {number}.",
                "Enjoy it.",
                "What does the Falcon router cost in France?",
            ],
            "truth": truth if number else "first",
            "seconds": number,
            "group": "g",
        }
        for number in range(times)
    ]
    return lines_of(tmp_path / "mine.jsonl", *steps)


def test_run_tells_every_figure_as_json() -> None:
    done = command("run", "support", "--json", "--limit", "20")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["workload"] == "support"
    assert told["requests"] >= told["attainable"] > 0
    assert list(told["policies"]) == POLICIES
    assert all(policy.keys() >= KEYS for policy in told["policies"].values())
    assert told["policies"]["none"]["wrong_per_hit"] is None


def test_run_prints_a_table_with_na_for_nothing() -> None:
    done = command("run", "support", "--limit", "20")
    assert done.exit_code == 0, done.output
    assert [name for name in POLICIES if name not in done.output] == []
    assert "n/a" in done.output


def ours_of(*arguments: str) -> dict[str, Any]:
    done = command("run", *arguments, "--part", "all", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["policies"]["ours"]


@pytest.mark.parametrize(("max_wrong", "hits"), [("0.05", 1), ("0", 0)])
def test_the_bound_is_that_of_our_policy_too(tmp_path: Path, max_wrong: str, hits: int) -> None:
    mine = repeated(tmp_path, truth="first", times=2)
    assert ours_of(mine, "--max-wrong", max_wrong)["hits"] == hits


def test_wrong_pairs_are_told_with_what_the_cache_made_of_them(tmp_path: Path) -> None:
    mine = repeated(tmp_path, truth="second", times=2)
    [pair] = ours_of(mine)["wrong_pairs"]
    assert (pair["asked_truth"], pair["stored_truth"]) == ("second", "first")
    assert pair["asked"].startswith("user: This is day 1.")
    assert pair["stored"].startswith("user: This is day 0.")
    assert any("enough" in reason for reason in pair["why"])
    shown = command("run", mine, "--part", "all", "--wrong-pairs").stdout
    assert "asked (second):" in shown
    assert "user: This is day 0." in shown
    assert all(f"why: {reason}" in shown for reason in pair["why"])


def test_right_hits_are_no_wrong_pairs(tmp_path: Path) -> None:
    mine = repeated(tmp_path, truth="first", times=2)
    ours = ours_of(mine)
    assert (ours["hits"], "wrong_pairs" in ours) == (1, False)
    assert "asked (" not in command("run", mine, "--part", "all", "--wrong-pairs").stdout


def test_wrong_pairs_are_shown_where_they_are_asked_for_alone(tmp_path: Path) -> None:
    mine = repeated(tmp_path, truth="second", times=2)
    assert "asked (" not in command("run", mine, "--part", "all").stdout


def test_report_draws_every_policy_of_every_run_without_a_network(tmp_path: Path) -> None:
    assert command("run", "support", "--limit", "20", "--out", str(tmp_path)).exit_code == 0
    done = command("report", str(tmp_path))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [name for name in POLICIES if f"<title>{name}" not in page] == []
    assert page.count("<polyline") == 3
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page


def test_report_of_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    done = command("report", str(tmp_path))
    assert done.exit_code == 2
    assert "smartcache-eval run" in done.output


def test_the_gate_opens_where_hits_are_right_and_many(tmp_path: Path) -> None:
    done = command("gate", repeated(tmp_path, truth="first"), "--max-wrong", "0.1", "--part", "all")
    assert done.exit_code == 0, done.output
    assert "0 of 39 hits were wrong" in done.output


def test_the_gate_shuts_where_too_few_right_hits_could_be_luck(tmp_path: Path) -> None:
    done = command("gate", repeated(tmp_path, truth="first"), "--max-wrong", "0.012", "--part", "all")
    assert done.exit_code == 1, done.output
    assert "it takes 317 hits" in done.output


def test_the_gate_shuts_where_hits_are_wrong(tmp_path: Path) -> None:
    done = command("gate", repeated(tmp_path, truth="second"), "--max-wrong", "0.5", "--part", "all")
    assert done.exit_code == 1, done.output


def test_the_gate_cannot_judge_without_a_hit(tmp_path: Path) -> None:
    alone = lines_of(tmp_path / "mine.jsonl", {"turns": ["How do I reset my password?"], "truth": "reset"})
    done = command("gate", alone, "--part", "all")
    assert done.exit_code == 2, done.output
    assert "nothing to judge by" in done.output


@pytest.mark.parametrize(
    "content", ["not json", '{"turns": []}', '{"turns": ["x"]}', '{"turns": [{"role": "nobody"}], "truth": "x"}']
)
def test_a_file_that_holds_no_steps_is_one_line_and_exit_2(tmp_path: Path, content: str) -> None:
    good = '{"turns": ["x"], "truth": "x"}'
    (tmp_path / "mine.jsonl").write_text(f"{good}\n\n{content}\n{good}\n", encoding="utf-8")
    for name in ("run", "gate"):
        done = command(name, str(tmp_path / "mine.jsonl"))
        assert done.exit_code == 2
        assert "mine.jsonl, line 3, cannot be read as a step" in done.output


def test_an_unknown_workload_names_those_there_are() -> None:
    done = command("run", "nothing-like-it")
    assert done.exit_code == 2
    assert "convquestions" in done.output
