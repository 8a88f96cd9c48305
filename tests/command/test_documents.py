"""A folder as a knowledge base: what becomes a passage, what counts as a change, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from smartcache import KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.command.documents import Documents, NoDocuments, NoFolder, UnreadableDocument
from smartcache.testing import BagOfWordsEmbedder, FakeModel

GUIDE = "# Guide\n\nHello.\n\n## Setup\n\nPlug it in.\n\n## Reset\n\nPress the button for ten seconds.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guide.md").write_text(GUIDE, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("The office opens at nine.", encoding="utf-8")
    return tmp_path


@pytest.fixture
def embedder() -> BagOfWordsEmbedder:
    return BagOfWordsEmbedder()


@pytest.fixture
def documents(folder: Path, embedder: BagOfWordsEmbedder) -> Documents:
    return Documents(folder, embedder, source="handbook")


def ids(documents: Documents) -> list[str]:
    return [chunk.ref.id for chunk in documents.chunks]


def test_every_section_is_a_passage_named_by_file_and_heading(documents: Documents) -> None:
    assert ids(documents) == ["guide.md#guide", "guide.md#setup", "guide.md#reset", "notes.txt#text"]


def test_a_passage_keeps_the_path_of_its_headings(documents: Documents) -> None:
    assert documents.chunks[1].text == "Guide > Setup\nPlug it in."


def test_a_passage_carries_the_label_of_its_folder(documents: Documents) -> None:
    assert {chunk.ref.source for chunk in documents.chunks} == {"handbook"}


def test_equal_headings_in_one_file_are_told_apart(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    (tmp_path / "a.md").write_text("# Price\n\nOne.\n\n# Price\n\nTwo.\n", encoding="utf-8")
    assert ids(Documents(tmp_path, embedder)) == ["a.md#price", "a.md#price-2"]


def test_a_number_sign_inside_a_code_block_is_no_heading(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    (tmp_path / "a.md").write_text("# Shell\n\n```\n# a comment\nls\n```\n", encoding="utf-8")
    assert ids(Documents(tmp_path, embedder)) == ["a.md#shell"]


def test_a_long_section_is_cut_at_paragraphs_within_the_limit(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    paragraphs = [f"{name} {'word ' * 80}".strip() for name in ("first", "second", "third", "fourth")]
    (tmp_path / "a.md").write_text("# Long\n\n" + "\n\n".join(paragraphs), encoding="utf-8")
    chunks = Documents(tmp_path, embedder).chunks
    assert [chunk.ref.id for chunk in chunks] == ["a.md#long", "a.md#long-2"]
    assert all(embedder.count_tokens(chunk.text) <= 200 for chunk in chunks)
    assert all(any(paragraph in chunk.text for chunk in chunks) for paragraph in paragraphs)


def test_one_endless_paragraph_is_cut_as_well(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    (tmp_path / "a.txt").write_text("word " * 1000, encoding="utf-8")
    chunks = Documents(tmp_path, embedder).chunks
    assert all(embedder.count_tokens(chunk.text) <= 200 for chunk in chunks)
    assert sum(chunk.text.split().count("word") for chunk in chunks) == 1000


def test_text_in_other_scripts_is_read_and_named(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    (tmp_path / "手册.md").write_text("# 价格\n\n每月十元。\n", encoding="utf-8")
    (chunk,) = Documents(tmp_path, embedder).chunks
    assert chunk.ref.id == "手册.md#价格"
    assert "每月十元。" in chunk.text


def test_hidden_files_and_other_formats_are_left_out(folder: Path, embedder: BagOfWordsEmbedder) -> None:
    (folder / ".secret.md").write_text("hidden", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "readme.md").write_text("hidden", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG\x00")
    assert {name.partition("#")[0] for name in ids(Documents(folder, embedder))} == {"guide.md", "notes.txt"}


def test_a_search_finds_the_nearest_passages_first(documents: Documents) -> None:
    found = documents.search("how long to press the button for a reset", k=2)
    assert found[0].ref.id == "guide.md#reset"
    assert [chunk.score for chunk in found] == sorted((chunk.score or 0.0 for chunk in found), reverse=True)


def test_a_search_for_fewer_than_one_passage_is_refused(documents: Documents) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        documents.search("reset", k=0)


def test_an_untouched_folder_has_no_update(documents: Documents) -> None:
    assert documents.refresh() is None


def test_an_edit_changes_its_own_section_only(folder: Path, documents: Documents) -> None:
    (folder / "guide.md").write_text(GUIDE.replace("ten seconds", "six seconds"), encoding="utf-8")
    update = documents.refresh()
    assert update is not None
    assert [chunk.ref.id for chunk in update.changed] == ["guide.md#reset"]
    assert (update.added, update.removed, update.source) == ((), frozenset(), "handbook")
    assert documents.search("press the button")[0].text.endswith("six seconds.")


def test_white_space_is_no_change(folder: Path, documents: Documents) -> None:
    (folder / "guide.md").write_text(GUIDE.replace("\n\n", "\n\n\n").replace("\n", "\r\n") + "  \n", encoding="utf-8")
    assert documents.refresh() is None


SETTINGS = "# Config\n\n```yaml\nuser:\n  admin: true\n```\n"


@pytest.mark.parametrize(
    "after", [SETTINGS.replace("  admin", "admin"), SETTINGS.replace("user:\n  admin", "user: admin")]
)
def test_white_space_that_may_mean_something_is_a_change(
    tmp_path: Path, embedder: BagOfWordsEmbedder, after: str
) -> None:
    (tmp_path / "config.md").write_text(SETTINGS, encoding="utf-8")
    documents = Documents(tmp_path, embedder)
    (tmp_path / "config.md").write_text(after, encoding="utf-8")
    update = documents.refresh()
    assert update is not None
    assert [chunk.ref.id for chunk in update.changed] == ["config.md#config"]


def test_text_that_was_laid_out_anew_is_found_as_it_is_now(folder: Path, documents: Documents) -> None:
    (folder / "notes.txt").write_text("The office  opens at nine.", encoding="utf-8")
    assert documents.refresh() is None
    assert documents.search("office opens at nine")[0].text == "The office  opens at nine."


def test_an_edit_of_equal_length_right_after_reading_is_noticed(folder: Path, documents: Documents) -> None:
    before = (folder / "notes.txt").stat()
    (folder / "notes.txt").write_text("The office opens at five.", encoding="utf-8")
    os.utime(folder / "notes.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    update = documents.refresh()
    assert update is not None
    assert [chunk.ref.id for chunk in update.changed] == ["notes.txt#text"]


def test_a_new_file_adds_its_sections(folder: Path, documents: Documents) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "new.md").write_text("# New\n\nText.\n", encoding="utf-8")
    update = documents.refresh()
    assert update is not None
    assert [chunk.ref.id for chunk in update.added] == ["sub/new.md#new"]
    assert (update.changed, update.removed) == ((), frozenset())


def test_a_deleted_file_removes_its_sections(folder: Path, documents: Documents) -> None:
    (folder / "notes.txt").unlink()
    update = documents.refresh()
    assert update is not None
    assert update.removed == {"notes.txt#text"}
    assert "notes.txt#text" not in [chunk.ref.id for chunk in documents.search("office opens at nine")]


def test_a_renamed_file_is_another_document(folder: Path, documents: Documents) -> None:
    (folder / "notes.txt").rename(folder / "hours.txt")
    update = documents.refresh()
    assert update is not None
    assert [chunk.ref.id for chunk in update.added] == ["hours.txt#text"]
    assert update.removed == {"notes.txt#text"}


BUTTON = Request([Turn("user", "For how long do I press the button?")])


@pytest.fixture
def answered(documents: Documents) -> SmartCache:
    """An answer from the guide alone."""
    cache = SmartCache.open(mode="exact", strict=True)
    cache.update_knowledge(KnowledgeUpdate.replace("handbook", documents.chunks))
    cache.answer(BUTTON, FakeModel(), search=lambda query: documents.search("press the button", 1))
    return cache


def renamed(folder: Path) -> None:
    (folder / "guide.md").rename(folder / "manual.md")


def swapped(folder: Path) -> None:
    (folder / "guide.md").write_text("# Guide\n\nAnother.\n\n## Reset\n\nNever do.\n", encoding="utf-8")
    (folder / "second.md").write_text(GUIDE, encoding="utf-8")


@pytest.mark.parametrize("change", [renamed, swapped])
def test_a_text_that_is_in_another_file_now_keeps_its_answers(
    folder: Path, documents: Documents, answered: SmartCache, change: Callable[[Path], None]
) -> None:
    (folder / "second.md").write_text("# Guide\n\nAnother.\n\n## Reset\n\nNever do.\n", encoding="utf-8")
    told = documents.refresh()
    assert told is not None
    answered.update_knowledge(told)
    again = answered.answer(BUTTON, FakeModel(), search=lambda query: documents.search("press the button", 1))
    assert again.is_hit
    change(folder)
    told = documents.refresh()
    assert told is not None
    assert answered.update_knowledge(told) == 0
    assert answered.lookup(BUTTON) is not None
    again = answered.answer(BUTTON, FakeModel(), search=lambda query: documents.search("press the button", 1))
    assert again.is_hit


def test_a_text_that_was_edited_in_another_file_does_not(
    folder: Path, documents: Documents, answered: SmartCache
) -> None:
    renamed(folder)
    (folder / "manual.md").write_text(GUIDE.replace("ten", "six"), encoding="utf-8")
    told = documents.refresh()
    assert told is not None
    assert answered.update_knowledge(told) == 1
    assert answered.lookup(BUTTON) is None


def test_only_new_texts_are_embedded(folder: Path, documents: Documents, embedder: BagOfWordsEmbedder) -> None:
    embedder.texts.clear()
    (folder / "guide.md").write_text(GUIDE.replace("ten seconds", "six seconds"), encoding="utf-8")
    documents.refresh()
    assert embedder.texts == ["Guide > Reset\nPress the button for six seconds."]


def test_an_update_is_told_once(folder: Path, documents: Documents) -> None:
    (folder / "notes.txt").unlink()
    assert documents.refresh() is not None
    assert documents.refresh() is None


def test_a_file_that_turns_binary_is_named_and_its_last_text_stays(folder: Path, documents: Documents) -> None:
    (folder / "notes.txt").write_bytes(b"\x00\x01\x02")
    with pytest.raises(UnreadableDocument, match=r"notes\.txt is a binary file"):
        documents.refresh()
    assert documents.search("office opens at nine")[0].ref.id == "notes.txt#text"


def test_a_file_that_is_not_utf8_is_refused_by_name(folder: Path, embedder: BagOfWordsEmbedder) -> None:
    (folder / "latin.txt").write_bytes("Größe".encode("latin-1"))
    with pytest.raises(UnreadableDocument, match=r"latin\.txt is not UTF-8"):
        Documents(folder, embedder)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    with pytest.raises(NoFolder, match="there is no folder"):
        Documents(tmp_path / "nowhere", embedder)


def test_a_file_in_place_of_a_folder_is_refused(folder: Path, embedder: BagOfWordsEmbedder) -> None:
    with pytest.raises(NoFolder, match="is a file"):
        Documents(folder / "guide.md", embedder)


@pytest.mark.parametrize("files", [{}, {"a.md": ""}, {"a.md": " \n\n"}, {"a.md": "# Only a heading\n"}])
def test_a_folder_without_text_is_refused(tmp_path: Path, embedder: BagOfWordsEmbedder, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(NoDocuments, match="no text in"):
        Documents(tmp_path, embedder)
