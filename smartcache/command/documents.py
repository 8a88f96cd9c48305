"""A folder of Markdown and text files as a knowledge base: passages to search, and what changed since the last look."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smartcache import Chunk, ChunkRef, Embedder, KnowledgeUpdate, SmartCacheError
from smartcache.command.sections import passages
from smartcache.keys import content_version
from smartcache.sameness import content_of

SUFFIXES = (".md", ".markdown", ".txt")
MAX_PASSAGE_TOKENS = 200
# A file that was written this recently may be written again without its stamp changing.
_STAMP_SETTLES_SECONDS = 2.0


class NoFolder(SmartCacheError, FileNotFoundError):
    """There is no folder at the path."""


class UnreadableDocument(SmartCacheError, ValueError):
    """A file of the folder is not text, or cannot be read; the message names it."""


class NoDocuments(SmartCacheError, ValueError):
    """The folder holds no file with text."""


class Documents:
    """The passages of all text files below `folder`, hidden ones apart.

    A passage is a `Chunk` with the id `path/in/folder.md#heading`, and as version a hash of its text; what of it is a
    change and what only layout is told as the cache tells it. Raises FileNotFoundError or NotADirectoryError where
    there is no folder, UnreadableDocument for a file that is not UTF-8 text, and NoDocuments where nothing is left to
    search.
    """

    def __init__(self, folder: str | Path, embedder: Embedder, *, source: str | None = None) -> None:
        self.folder = Path(folder)
        self.source = self.folder.resolve().name if source is None else source
        self._embedder = embedder
        self._max_tokens = min(MAX_PASSAGE_TOKENS, embedder.max_tokens)
        self._files: dict[str, _File] = {}
        self._chunks: dict[str, Chunk] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        check_folder(self.folder)
        self.refresh()

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All passages, by path and then in the order of the file."""
        return tuple(self._chunks.values())

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files within the folder."""
        return tuple(sorted(self._files))

    def search(self, query: str, k: int = 4) -> tuple[Chunk, ...]:
        """The `k` passages nearest to `query`, nearest first; `score` is the cosine similarity."""
        if k < 1:
            raise ValueError(f"k is the number of passages to find, at least 1, not {k}")
        if not self._chunks:
            return ()
        chunks = self.chunks
        rows = np.stack([self._vectors[chunk.ref.version] for chunk in chunks])
        scores = rows @ self._embedder([query])[0]
        best = sorted(range(len(chunks)), key=lambda row: (-scores[row], row))[:k]
        return tuple(Chunk(chunks[row].ref, chunks[row].text, float(scores[row])) for row in best)

    def refresh(self) -> KnowledgeUpdate | None:
        """Look at the folder again: what was added, changed and removed since the last look, or None.

        Where a file cannot be read, UnreadableDocument is raised and everything stays as it was.
        """
        files = self._look()
        if all(now is self._files.get(name) for name, now in files.items()) and len(files) == len(self._files):
            return None
        chunks = {chunk.ref.id: chunk for name in sorted(files) for chunk in files[name].chunks}
        before = self._chunks
        added = [chunk for key, chunk in chunks.items() if key not in before]
        changed = [c for key, c in chunks.items() if key in before and content_of(c) != content_of(before[key])]
        removed = before.keys() - chunks.keys()
        self._embed(list(chunks.values()))
        self._files, self._chunks = files, chunks
        self._forget_unused_vectors()
        if not added and not changed and not removed:
            return None
        return KnowledgeUpdate(added, changed, removed, self.source)

    def _look(self) -> dict[str, _File]:
        files = {}
        for name, path in _text_files(self.folder):
            known = self._files.get(name)
            files[name] = known if known is not None and known.is_settled(path) else self._read(name, path)
        return files

    def _read(self, name: str, path: Path) -> _File:
        read_at = time.time()
        stamp, text = _text(path)
        found = passages(text, count_tokens=self._embedder.count_tokens, max_tokens=self._max_tokens)
        chunks = tuple(
            Chunk(ChunkRef(f"{name}#{passage.slug}", content_version(passage.text), self.source), passage.text)
            for passage in found
        )
        return _File(stamp, read_at, chunks)

    def _embed(self, chunks: list[Chunk]) -> None:
        texts = {chunk.ref.version: chunk.text for chunk in chunks if chunk.ref.version not in self._vectors}
        if texts:
            self._vectors.update(zip(texts, self._embedder(list(texts.values())), strict=True))

    def _forget_unused_vectors(self) -> None:
        used = {chunk.ref.version for chunk in self._chunks.values()}
        self._vectors = {version: vector for version, vector in self._vectors.items() if version in used}


@dataclass(frozen=True, slots=True)
class _File:
    """One file as it was read."""

    stamp: tuple[int, int, int]
    read_at: float
    chunks: tuple[Chunk, ...]

    def is_settled(self, path: Path) -> bool:
        """Whether the file surely holds what was read, without reading it again."""
        written_at = max(self.stamp[0], self.stamp[1]) / 1e9
        try:
            return written_at < self.read_at - _STAMP_SETTLES_SECONDS and _stamp(path) == self.stamp
        except OSError:
            return False


def check_folder(folder: str | Path) -> None:
    """Read a folder once, so that a mistake is told before any model is loaded.

    Raises NoFolder where there is none, UnreadableDocument for a file that is not UTF-8 text, and NoDocuments where
    nothing is there to search.
    """
    folder = Path(folder)
    if not folder.exists():
        raise NoFolder(f"there is no folder {folder}")
    if not folder.is_dir():
        raise NoFolder(f"{folder} is a file: give the folder that holds your documents")
    texts = [_text(path)[1] for _, path in _text_files(folder)]
    if not any(passages(text, count_tokens=len, max_tokens=sys.maxsize) for text in texts):
        raise NoDocuments(f"no text in {folder}: put .md or .txt files with some text into it")


def _text(path: Path) -> tuple[tuple[int, int, int], str]:
    """The stamp and the text of a file."""
    try:
        stamp = _stamp(path)  # before the text: a write in between makes the stamp old, never the text
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableDocument(f"{path} is not UTF-8 text: convert it, or move it out of the folder") from None
    except OSError as error:
        raise UnreadableDocument(f"{path} cannot be read: {error.strerror or error}") from error
    if "\0" in text:
        raise UnreadableDocument(f"{path} is a binary file: move it out of the folder")
    return stamp, text


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def printable(name: str) -> str:
    """A name that any terminal takes: the bytes of a file's name need not be text."""
    return name.encode("utf-8", "backslashreplace").decode()


def _refuse(error: OSError) -> None:
    # A folder that cannot be listed must not look like one whose files were all deleted.
    raise UnreadableDocument(f"{error.filename} cannot be read: {error.strerror or error}") from error


def _text_files(folder: Path) -> list[tuple[str, Path]]:
    """The name within the folder and the path of every text file, hidden files and folders apart, sorted by name."""
    found = []
    for parent, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and name.lower().endswith(SUFFIXES):
                path = Path(parent, name)
                found.append((printable(path.relative_to(folder).as_posix()), path))
    return sorted(found)
