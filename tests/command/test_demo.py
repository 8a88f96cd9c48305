"""The demo: what it prints and writes, and that nothing wrong or stale is served."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import smartcache.command as command
from smartcache import Answer
from smartcache.command import app
from smartcache.command.assistant import Reply
from smartcache.command.figures import Figures, KnowledgeChange, Outcome
from smartcache.command.report import report
from smartcache.command.scenario import Ask, Delete

KEYS = {
    "requests": int,
    "exact": int,
    "semantic": int,
    "model": int,
    "wrong": int,
    "stale": int,
    "invalidated": int,
    "tokens_prompt": int,
    "tokens_reused": int,
    "first_token_cold_ms": float,
    "first_token_warm_ms": float,
    "seconds": float,
}


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model, embedder) -> Path:
    """The command with a small model and embedder, in an empty working directory."""
    monkeypatch.setattr(command, "load_model", lambda name=None: model)
    monkeypatch.setattr(command, "load_embedder", lambda: embedder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_is_one_object_with_the_agreed_keys_and_nothing_else(faked: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--json"])
    figures = json.loads(result.stdout)
    assert {key: type(value) for key, value in figures.items()} == KEYS


def test_every_request_has_one_outcome(faked: Path) -> None:
    figures = json.loads(CliRunner().invoke(app, ["demo", "--json"]).stdout)
    assert figures["exact"] + figures["semantic"] + figures["model"] == figures["requests"] == 40


def test_a_run_without_faults_has_hits_and_exits_with_0(faked: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--json"])
    figures = json.loads(result.stdout)
    assert (figures["wrong"], figures["stale"], result.exit_code) == (0, 0, 0)
    assert figures["exact"] >= 3
    assert figures["invalidated"] > 0


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_another_order_of_the_conversations_is_faultless_too(faked: Path, seed: str) -> None:
    assert CliRunner().invoke(app, ["demo", "--json", "--seed", seed]).exit_code == 0


def test_the_live_view_shows_every_turn_and_change_as_plain_lines(faked: Path) -> None:
    output = CliRunner().invoke(app, ["demo"]).stdout
    assert output.count("prompt tokens reused, first token after") + output.count("no token computed") == 40
    assert output.count("▲") == 3
    assert "\x1b" not in output


def test_the_report_is_written_where_it_was_asked_for(faked: Path) -> None:
    output = CliRunner().invoke(app, ["demo", "--html", "out.html"]).stdout
    assert "out.html" in output
    assert (faked / "out.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_report_has_a_usual_name(faked: Path) -> None:
    CliRunner().invoke(app, ["demo"])
    assert (faked / "smartcache-demo.html").exists()


def test_a_cache_that_serves_wrong_answers_makes_the_demo_fail(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smartcache import SmartCache

    real, first = SmartCache.answer, []

    def careless(self, request, generate, **rest):
        if not first:
            first.append(real(self, request, generate, **rest))
        return replace(first[0], served_by="semantic", similarity=0.99)

    monkeypatch.setattr(SmartCache, "answer", careless)
    result = CliRunner().invoke(app, ["demo", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["wrong"] > 0
    assert json.loads(result.stdout)["stale"] > 0


def outcome(
    served_by: str = "model", *, verdict: str = "right", text: str = "An answer.", tokens=(100, 0), seconds: float = 0.5
) -> Outcome:
    ask = Ask("Ann", "a", "ann-1", "Is 1 < 2?", "class", "new")
    answer = Answer(text, served_by=served_by, similarity=None if served_by == "model" else 0.93)
    is_hit = served_by != "model"
    return Outcome(ask, Reply(answer, seconds, *((0, 0) if is_hit else tokens)), verdict, could_share=is_hit)


def test_figures_that_have_nothing_to_count_are_null() -> None:
    figures = Figures((outcome("exact"),), 1.0).as_json()
    assert (figures["first_token_cold_ms"], figures["first_token_warm_ms"]) == (None, None)


def test_a_first_token_is_warm_where_a_good_part_of_the_prompt_was_reused() -> None:
    rows = (outcome(tokens=(100, 24), seconds=0.9), outcome(tokens=(100, 25), seconds=0.1), outcome("exact"))
    figures = Figures(rows, 1.0)
    assert (figures.first_token_cold_ms, figures.first_token_warm_ms) == (900.0, 100.0)


def test_the_report_holds_the_figures() -> None:
    rows = (outcome(tokens=(1000, 250)), outcome("exact"), outcome("semantic", verdict="stale"))
    page = report(Figures(rows, 1.0))
    assert "2 of 3 answers came from the cache" in page
    assert "0 wrong and 1 stale" in page
    assert "250 of 1,000" in page


def test_the_report_shows_changes_of_the_knowledge_base() -> None:
    page = report(Figures((outcome(), KnowledgeChange(Delete("old.md"), 0, 0, 2, 5), outcome("exact")), 1.0))
    assert "old.md was deleted: 2 sections removed; 5 stored answers stale" in page
    assert "documents change" in page


def test_the_report_needs_nothing_from_outside() -> None:
    page = report(Figures((outcome(),), 1.0))
    assert re.findall(r"<script|<link|<img|url\(|https?:", page) == []


def test_text_in_the_report_is_text() -> None:
    page = report(Figures((outcome(text="<b>bold</b> & 'more'"),), 1.0))
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page
    assert "Is 1 &lt; 2?" in page


def test_a_report_of_no_turns_is_a_page_too() -> None:
    assert "0 of 0 answers" in report(Figures((), 0.0))


@pytest.mark.model
@pytest.mark.slow
def test_the_real_demo_serves_nothing_wrong_and_nothing_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["demo", "--json"])
    figures = json.loads(result.stdout)
    assert (result.exit_code, figures["wrong"], figures["stale"]) == (0, 0, 0)
    assert figures["exact"] >= 3
    assert figures["semantic"] >= 5
    assert figures["tokens_reused"] > 0
