"""`smartcache explain`: why a question hits or misses, over a file or of two texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import smartcache.command
from smartcache import Answer, Request, SmartCache, Turn
from smartcache.command import app
from smartcache.command.explain import turns_of
from smartcache.testing import BagOfWordsEmbedder

RESET, NEAR = "How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?"


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smartcache.command, "load_embedder", BagOfWordsEmbedder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with an answer under a system prompt, a model and options, as applications have them."""
    file = tmp_path / "answers.db"
    with SmartCache.open(file, embedder=BagOfWordsEmbedder(), strict=True) as cache:
        turns = [Turn("system", "Be brief."), Turn("user", RESET)]
        options = {"temperature": 0, "top_p": 0.5, "stop": ["a", None], "seed": True}
        cache.store(Request(turns, "acme", "m1", options), Answer("Hold the button."))
    return file


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def found(*arguments: object) -> list[dict]:
    code, output = run(*arguments, "--json")
    assert code == 0
    return json.loads(output)["explained"]


def test_a_file_is_asked_under_the_settings_that_it_was_filled_under(file: Path) -> None:
    [one] = found(file, "--ask", NEAR)
    assert (one["question"], one["is_served"], one["refusal"]) == (RESET, True, None)


def test_turns_before_the_question_count(file: Path) -> None:
    [one] = found(file, "--ask", "And how do I reset it?", "--turn", "user: I have a Halden hub.")
    assert not one["is_served"]
    assert any("Halden is not mentioned" in reason for reason in one["reasons"])


def test_another_scope_is_not_looked_into(file: Path) -> None:
    with SmartCache.open(file, embedder=BagOfWordsEmbedder()) as cache:
        cache.store(Request([Turn("user", "Which colours are there?")], "other"), Answer("Red."))
    assert found(file, "--ask", NEAR, "--scope", "acme")[0]["is_served"]
    assert [one["question"] for one in found(file, "--ask", NEAR, "--scope", "other")] == ["Which colours are there?"]


def test_a_scope_without_answers_is_told_in_one_line(file: Path) -> None:
    code, output = run(file, "--ask", NEAR, "--scope", "nope")
    assert (code, output) == (1, "smartcache: no answers in scope 'nope'; there are: 'acme'\n")
    assert run(file, "--ask", NEAR, "--scope", "acme")[0] == 0


def test_a_bound_of_ones_own_decides(file: Path) -> None:
    pair = ("--pair", NEAR, RESET)
    for texts in ((file, "--ask", NEAR), pair):
        assert found(*texts, "--max-wrong", "0.05")[0]["is_served"]
        [none] = found(*texts, "--max-wrong", "0")
        assert (none["is_served"], none["refusal"]) == (False, "far")
    assert run(*pair, "--max-wrong", "2")[0] == 2


def test_the_file_stays_as_it_was(file: Path) -> None:
    with SmartCache.open(file, mode="exact") as cache:
        before = cache.stats().entries, cache.stats().bytes
    found(file, "--ask", NEAR)
    with SmartCache.open(file, mode="exact") as cache:
        assert (cache.stats().entries, cache.stats().bytes) == before


def test_two_texts_need_no_file(tmp_path: Path) -> None:
    assert found("--pair", NEAR, RESET)[0]["is_served"]
    [one] = found("--pair", "When did Frank Zappa die?", "Where did Frank Zappa die?")
    assert "one asks when, the other where" in one["reasons"]


def test_a_table_says_the_same(file: Path) -> None:
    code, output = run(file, "--ask", NEAR)
    assert code == 0
    assert "served" in output
    assert RESET in output


@pytest.mark.parametrize("between", ["\n", " | "])
def test_turns_before_a_question_stand_before_a_break(between: str) -> None:
    stored = between.join(["I take the Plus plan.", "Good choice!", "What does it cost?"])
    [one] = found("--pair", "What does it cost?", stored)
    assert one["turns"] == [["user", "I take the Plus plan."], ["assistant", "Good choice!"]]


def test_turns_alternate_unless_they_say_whose_they_are() -> None:
    assert turns_of(["a", "b", "c"]) == [Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c")]
    assert turns_of(["a", "b"]) == [Turn("user", "a"), Turn("user", "b")]
    assert turns_of(["Assistant: a", "user: b", "c"]) == [Turn("assistant", "a"), Turn("user", "b"), Turn("user", "c")]


@pytest.mark.parametrize("arguments", [(), ("--ask", "a"), ("--pair", "a", "b", "--ask", "c")])
def test_it_must_be_told_what(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "say what to explain" in " ".join(output.replace("│", " ").split())


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    code, output = run(tmp_path / "none.db", "--ask", "a")
    assert (code, output.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


def test_a_turn_of_who_does_not_speak_is_told_in_one_line(file: Path) -> None:
    code, output = run(file, "--ask", NEAR, "--turn", "bot: hi")
    assert (code, output) == (2, 'smartcache: a turn is "user: …" or "assistant: …", not "bot: …"\n')
    for turn in ("assistant: hi", "Hello", "at 12:30 then", "https://example.org"):
        assert run(file, "--ask", NEAR, "--turn", turn)[0] == 0


def test_a_bar_that_nothing_reaches_is_never_reached(file: Path) -> None:
    [one] = found(file, "--ask", NEAR, "--max-wrong", "0")
    assert (one["bar"]["promised"], one["bar"]["needed"]) == ("never", "never")
    assert "it is never enough" in run(file, "--ask", NEAR, "--max-wrong", "0")[1]
    assert found(file, "--ask", NEAR)[0]["bar"]["needed"] == 0.9
