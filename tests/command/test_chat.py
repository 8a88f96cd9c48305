"""The chat: answers over a folder with their origin shown, edits noticed, and bad input told in one line."""

from __future__ import annotations

import os
import re
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import smartcache.command as command
from smartcache import SmartCache
from smartcache.command import app
from smartcache.command.documents import Documents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "price.md").write_text("# Price\n\nThe Plus plan costs 4 euros.\n", encoding="utf-8")
    (folder / "hours.md").write_text("# Hours\n\nThe office opens at nine.\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def faked(monkeypatch: pytest.MonkeyPatch, model, embedder) -> None:
    monkeypatch.setattr(command, "load_model", lambda name=None: model)
    monkeypatch.setattr(command, "load_embedder", lambda: embedder)


def chat(folder: Path, *questions: str, options: tuple[str, ...] = ()) -> Result:
    return CliRunner().invoke(app, ["chat", str(folder), *options], input="".join(f"{line}\n" for line in questions))


def origins(result: Result) -> list[str]:
    lines = [line.strip() for line in result.stdout.splitlines() if " · " in line]
    return [line.split()[0] for line in lines]


def reasons(result: Result) -> list[str]:
    """Why the model was asked, each time it was."""
    return re.findall(r"^  model \((.*?)\) · ", result.stdout, re.M)


def test_an_answer_is_shown_with_its_origin_and_its_documents(folder: Path) -> None:
    result = chat(folder, "What does the Plus plan cost?")
    assert result.exit_code == 0
    assert "The Plus plan costs 4 euros." in result.stdout
    assert "prompt tokens reused · first token after" in result.stdout
    assert "price.md" in result.stdout


def test_a_question_asked_again_in_a_new_conversation_comes_from_the_cache(folder: Path) -> None:
    result = chat(folder, "What does the Plus plan cost?", "/new", "What does the Plus plan cost?")
    assert origins(result) == ["model", "exact"]


def test_an_answer_that_ran_out_of_tokens_is_not_given_again(folder: Path, model) -> None:
    model.finish_reason = "length"
    result = chat(folder, "What does the Plus plan cost?", "/new", "What does the Plus plan cost?")
    assert origins(result) == ["model", "model"]


def test_a_question_within_a_conversation_is_asked_with_its_history(folder: Path, model) -> None:
    chat(folder, "What does the Plus plan cost?", "And when does it open?")
    assert [turn.role for turn in model.prompts[-1]] == ["system", "user", "assistant", "user"]


def test_answers_survive_in_the_cache_file(folder: Path, tmp_path: Path) -> None:
    options = ("--cache", str(tmp_path / "answers.db"))
    assert origins(chat(folder, "What does the Plus plan cost?", options=options)) == ["model"]
    assert origins(chat(folder, "What does the Plus plan cost?", options=options)) == ["exact"]


def test_an_edit_between_two_chats_makes_the_answer_stale(folder: Path, tmp_path: Path) -> None:
    options = ("--cache", str(tmp_path / "answers.db"))
    chat(folder, "What does the Plus plan cost?", options=options)
    (folder / "price.md").write_text("# Price\n\nThe Plus plan costs 5 euros.\n", encoding="utf-8")
    result = chat(folder, "What does the Plus plan cost?", options=options)
    assert origins(result) == ["model"]
    assert "costs 5 euros" in result.stdout


def test_a_deletion_between_two_chats_makes_the_answer_stale(folder: Path, tmp_path: Path) -> None:
    options = ("--cache", str(tmp_path / "answers.db"))
    chat(folder, "What does the Plus plan cost?", options=options)
    (folder / "price.md").unlink()
    result = chat(folder, "What does the Plus plan cost?", options=options)
    assert origins(result) == ["model"]
    assert "4 euros" not in result.stdout


def test_another_folder_shares_no_answers(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "price.md").write_text("# Price\n\nThe Plus plan costs 9 dollars.\n", encoding="utf-8")
    options = ("--cache", str(tmp_path / "answers.db"))
    chat(folder, "What does the Plus plan cost?", options=options)
    assert origins(chat(other, "What does the Plus plan cost?", options=options)) == ["model"]


def test_another_scope_shares_no_answers(folder: Path, tmp_path: Path) -> None:
    options = ("--cache", str(tmp_path / "answers.db"))
    chat(folder, "What does the Plus plan cost?", options=(*options, "--scope", "ann"))
    assert origins(chat(folder, "What does the Plus plan cost?", options=(*options, "--scope", "bo"))) == ["model"]


def test_an_edit_while_talking_is_announced_and_answered_from_the_new_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import smartcache.command.chat as chat_module

    def lines(*_):
        yield "What does the Plus plan cost?"
        (folder / "price.md").write_text("# Price\n\nThe Plus plan costs 5 euros.\n", encoding="utf-8")
        yield from ("/new", "What does the Plus plan cost?")

    monkeypatch.setattr(chat_module, "typed_lines", lines)
    result = chat(folder)
    assert "1 section changed; 1 stored answer stale" in result.stdout
    assert origins(result) == ["model", "model"]
    assert "costs 5 euros" in result.stdout


def edited_between(folder: Path, monkeypatch: pytest.MonkeyPatch, edit: str, *questions: str) -> Result:
    """A chat in which the price file gets the text `edit` after the first question."""
    import smartcache.command.chat as chat_module

    def lines(*_):
        yield questions[0]
        (folder / "price.md").write_text(edit, encoding="utf-8")
        yield from questions[1:]

    monkeypatch.setattr(chat_module, "typed_lines", lines)
    return chat(folder)


def test_an_edit_begins_a_new_conversation_that_does_not_repeat_the_old_text(
    folder: Path, model, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = "# Price\n\nThe Plus plan costs 5 euros.\n"
    result = edited_between(folder, monkeypatch, edit, *["What does the Plus plan cost?"] * 2)
    assert "stale or to be searched for again; a new conversation begins" in result.stdout
    assert [turn.role for turn in model.prompts[-1]] == ["system", "user"]
    assert "4 euros" not in " ".join(turn.text for turn in model.prompts[-1])


def test_white_space_in_a_file_leaves_the_conversation_as_it_is(
    folder: Path, model, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = "# Price\n\n\nThe Plus plan costs 4 euros.\n"
    result = edited_between(folder, monkeypatch, edit, "What does the Plus plan cost?", "And when does it open?")
    assert "a new conversation begins" not in result.stdout
    assert [turn.role for turn in model.prompts[-1]] == ["system", "user", "assistant", "user"]


def test_an_edit_before_the_first_question_ends_no_conversation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = "# Price\n\nThe Plus plan costs 5 euros.\n"
    result = edited_between(folder, monkeypatch, edit, "/stats", "What does the Plus plan cost?")
    assert "1 section changed" in result.stdout
    assert "a new conversation begins" not in result.stdout


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        (["What does the Plus plan cost?"], "new"),
        (["What does the Plus plan cost?", "/new", "What does the Basic plan cost?"], "facts"),
        (["What does the Plus plan cost?", "And what does it cost?"], "context"),
    ],
)
def test_why_the_model_was_asked_is_shown(folder: Path, questions: list[str], reason: str) -> None:
    assert reasons(chat(folder, *questions))[-1].endswith(reason)


def test_a_hit_needs_no_reason(folder: Path) -> None:
    result = chat(folder, "What does the Plus plan cost?", "/new", "What does the Plus plan cost?")
    assert reasons(result) == ["new"]


def test_the_reason_after_an_edit_is_that_the_answer_is_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = "# Price\n\nThe Plus plan costs 5 euros.\n"
    result = edited_between(folder, monkeypatch, edit, *["What does the Plus plan cost?"] * 2)
    assert reasons(result) == ["new", "a document changed: stale"]


def test_a_file_that_turns_binary_while_talking_ends_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import smartcache.command.chat as chat_module

    def lines(*_):
        (folder / "hours.md").write_bytes(b"\x00")
        yield "What does the Plus plan cost?"

    monkeypatch.setattr(chat_module, "typed_lines", lines)
    result = chat(folder)
    assert "hours.md is a binary file" in result.stdout
    assert origins(result) == ["model"]


@pytest.mark.parametrize("word", ["/quit", "/exit", "quit", "exit", "Exit"])
def test_quit_leaves(folder: Path, word: str) -> None:
    result = chat(folder, word, "What does the Plus plan cost?")
    assert (result.exit_code, origins(result)) == (0, [])


def test_a_question_about_quitting_is_a_question(folder: Path) -> None:
    assert origins(chat(folder, "quit the Plus plan")) == ["model"]


def test_a_conversion_is_announced_where_there_is_one_to_make(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMARTCACHE_HOME", str(tmp_path))
    monkeypatch.setattr(metadata, "version", lambda package: "0.1.2")
    converted = "Loading the language model (the first run converts it once"
    assert converted in chat(folder).stdout
    assert converted not in chat(folder, options=("--model", "my-model")).stdout
    (tmp_path / "models" / "SmolLM2-135M-Instruct-0.1.2-safetensors-1").mkdir(parents=True)
    assert "Loading the language model …" in chat(folder).stdout


def test_the_bundled_model_is_called_small_and_no_other(folder: Path) -> None:
    assert "The bundled model is small and makes things up" in chat(folder).stdout
    assert "small" not in chat(folder, options=("--model", "my-model")).stdout


def test_stats_shows_the_counts(folder: Path) -> None:
    result = chat(folder, "What does the Plus plan cost?", "/new", "What does the Plus plan cost?", "/stats")
    assert "2 requests: 1 exact, 0 semantic, 1 by the model; 1 stored answer" in result.stdout


def test_an_unknown_command_is_no_question(folder: Path) -> None:
    result = chat(folder, "/help me")
    assert "There is no command /help" in result.stdout
    assert origins(result) == []


def test_ctrl_c_while_the_model_writes_leaves_cleanly(folder: Path, model, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_, **__):
        yield "It s"
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "stream", interrupted)
    assert chat(folder, "What does the Plus plan cost?").exit_code == 0


def test_a_conversation_that_outgrows_the_model_can_begin_anew(folder: Path, model, monkeypatch) -> None:
    def outgrown(*_, **__):
        raise ValueError("the prompt has 9000 tokens; this model's context is 8192")

    with monkeypatch.context() as patch:
        patch.setattr(model, "stream", outgrown)
        result = chat(folder, "What does the Plus plan cost?")
    assert result.exit_code == 0
    assert "No answer: the prompt has 9000 tokens" in result.stdout


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in words)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused(chat(tmp_path / "nowhere", "Hello?"), "there is no folder", "nowhere")


def test_a_file_is_no_folder(folder: Path) -> None:
    refused(chat(folder / "price.md", "Hello?"), "price.md is a file")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    refused(chat(tmp_path, "Hello?"), "no text in")


def test_a_folder_of_empty_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("\n", encoding="utf-8")
    refused(chat(tmp_path, "Hello?"), "no text in")


@pytest.mark.parametrize(
    ("content", "reason"), [(b"text\x00\x01", "is a binary file"), (b"Gr\xf6\xdfe", "is not UTF-8 text")]
)
def test_a_file_that_is_not_text_is_named_among_good_ones(folder: Path, content: bytes, reason: str) -> None:
    (folder / "bad.txt").write_bytes(content)
    refused(chat(folder, "Hello?"), f"bad.txt {reason}")


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"this is no database", "choose another path"),
        (b"SQLite format 3\x00" + b"\xff" * 4096, "delete or move it, or pass another --cache"),
    ],
)
def test_a_broken_cache_file_is_refused_and_left_as_it_was(
    folder: Path, tmp_path: Path, content: bytes, advice: str
) -> None:
    file = tmp_path / "answers.db"
    file.write_bytes(content)
    refused(chat(folder, "Hello?", options=("--cache", str(file))), "answers.db", advice)
    assert file.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.db", "docs"]


def test_a_place_where_no_cache_can_be_is_refused(folder: Path) -> None:
    file = folder / "price.md" / "answers.db"
    refused(chat(folder, "Hello?", options=("--cache", str(file))), "answers.db cannot be used as a cache")


def test_a_cache_file_that_is_a_folder_holds_the_cache_inside(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    options = ("--cache", str(tmp_path / "kept"))
    chat(folder, "What does the Plus plan cost?", options=options)
    assert origins(chat(folder, "What does the Plus plan cost?", options=options)) == ["exact"]


def test_a_file_whose_name_is_no_text_is_used_like_any_other(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / os.fsdecode(b"pr\xeeces.md")).write_text("The Plus plan costs 4 euros.", encoding="utf-8")
    question = "What does the Plus plan cost?"
    result = chat(folder, question, "/new", question, options=("--cache", str(tmp_path / "answers.db")))
    assert (result.exit_code, origins(result)) == (0, ["model", "exact"])
    assert "pr\\udceeces.md" in result.stdout


@pytest.mark.parametrize("place", ["docs/price.md/answers.db", "x" * 300])
def test_a_cache_that_can_be_no_file_is_told_in_one_line(folder: Path, place: str) -> None:
    result = chat(folder, "What?", options=("--cache", str(folder.parent / place)))
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_bytes_that_are_no_text_do_not_end_the_chat(folder: Path) -> None:
    typed = b"\xff\xfe what?\nWhat does the Plus plan cost?\n"
    result = CliRunner().invoke(app, ["chat", str(folder)], input=typed)
    assert (result.exit_code, len(origins(result))) == (0, 2)


def test_an_edit_that_cannot_be_written_down_does_not_end_the_chat(folder: Path, monkeypatch) -> None:
    update, calls = SmartCache.update_knowledge, []

    def full_disk(cache, change):
        calls.append(change)
        if len(calls) > 1:
            raise OSError("the disk is full")
        return update(cache, change)

    monkeypatch.setattr(SmartCache, "update_knowledge", full_disk)
    monkeypatch.setattr(Documents, "refresh", edited(Documents.refresh, folder / "price.md"))
    result = chat(folder, "What does the Plus plan cost?")
    assert (result.exit_code, origins(result)) == (0, ["model"])
    assert "the disk is full" in result.stdout


def edited(refresh, path: Path):
    """`refresh`, after an edit of `path` from its second call on."""
    calls = []

    def after_edit(documents):
        calls.append(path)
        if len(calls) > 1:
            path.write_text("The Plus plan costs 5 euros.", encoding="utf-8")
        return refresh(documents)

    return after_edit
