"""Blocks as files that outlive the process: a file appears whole or not at all, and nothing damaged is ever read.

A folder for each tree of prefixes, in it one file a block, named `<parent>-<key>-<tokens>`: the names alone say what is
there, and how one block follows another. Processes may share the folder, and a file that vanished is a block less.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from smartcache.storage.chains import Block, is_other_form
from smartcache.storage.shelf import Shelf
from smartcache.storage.tensor_files import file_of, read_block, read_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from smartcache.storage.chains import Chain
    from smartcache.storage.segments import Packed

_NAME = re.compile(r"([0-9a-f]{32}|[0-9a-f]{40})-([0-9a-f]{32})-(\d{1,9})\.safetensors")
_TREE = re.compile(r"[0-9a-f]{40}")
_BEING_WRITTEN, _ASIDE = ".tmp", ".aside"
_DRAFT = re.compile(rf"[0-9a-f]{{32}}-\d+-\d+{re.escape(_BEING_WRITTEN)}")
_ABANDONED_SECONDS = 3600  # a file this long under its temporary name was left by a process that is gone
_LOOKS_PER_BUDGET = 16  # how often to see what other processes wrote while this one writes its budget once


class BlockFiles(Shelf):
    """The blocks under `path`, for their owner's eyes only.

    `count` is told what went wrong. Raises OSError where `path` cannot be made a folder.
    """

    def __init__(self, path: Path, max_bytes: int, count: Callable[[str], None]) -> None:
        super().__init__(max_bytes)
        self._path = path
        self._count = count
        self._written_bytes = 0
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._look()
        self.remove_unreachable()
        self.make_room()

    def find(self, block: Block) -> Block | None:
        return super().find(block) or self._written_by_others(block)

    def holds(self, block: Block, tokens: tuple[int, ...]) -> bool:
        """As everywhere, and not what another process deleted: what is written after that could not be found."""
        longer = [other for other in self.after(block.parent) if other.count > block.count]
        known = [other for other in (super().find(block), *longer) if other is not None]
        self.remove([other.key for other in known if not self._file(other).exists()])
        return super().holds(block, tokens)

    def read(self, block: Block, tokens: tuple[int, ...]) -> Packed | None:
        try:
            with self._file(block).open("rb") as file:
                content = np.empty(os.fstat(file.fileno()).st_size, np.uint8).data
                packed = read_block(content[: file.readinto(content)], block, tokens)
        except (OSError, ValueError) as error:
            self._trouble(block, error)
            return None
        with self._lock:
            if block.key in self._blocks:
                self._tokens[block.key] = tokens
        return packed

    def tokens_of(self, block: Block) -> tuple[int, ...]:
        with self._lock:
            known = self._tokens.get(block.key)
        if known is not None or not block.count:
            return known or ()
        try:
            with self._file(block).open("rb") as file:
                tokens = read_tokens(file, block)
        except (OSError, ValueError) as error:
            self._trouble(block, error)
            return ()
        with self._lock:
            if block.key in self._blocks:
                self._tokens[block.key] = tokens
        return tokens

    def put(self, block: Block, tokens: tuple[int, ...], packed: Packed) -> None:
        """Raises OSError where there is no writing: a full disk, a folder without permission."""
        pieces = file_of(block, tokens, packed)
        path = self._file(block)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{block.key}-{os.getpid()}-{time.monotonic_ns()}{_BEING_WRITTEN}")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines(pieces)
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        size = sum(len(piece) for piece in pieces)
        with self._lock:
            self._add(Block(block.root, block.parent, block.key, block.count, size), tokens)
        self._written_bytes += size

    def used(self, keys: Sequence[str]) -> None:
        """As everywhere, and in the files' times, so that a restart knows it too."""
        super().used(keys)
        now = time.time_ns()
        for number, key in enumerate(keys):
            with self._lock:
                block = self._blocks.get(key)
            if block is not None:
                with suppress(OSError):
                    os.utime(self._file(block), ns=(now, now - number))

    def make_room(self) -> None:
        if self._written_bytes * _LOOKS_PER_BUDGET > self.max_bytes:
            self._written_bytes = 0
            self._look()
        super().make_room()

    def set_aside(self, block: Block, reason: str) -> None:
        """Rename the file, so that nobody reads it and somebody may look into it."""
        self._count(f"set aside: {reason}")
        path = self._file(block)
        aside = path.with_name(path.name + _ASIDE)
        with self._lock:  # first of all out of the index: what follows it goes, it stays for a look
            gone = self._drop([block.key])
        with suppress(OSError):
            os.rename(path, aside)
            with self._lock:
                self._add(Block(block.root, "", aside.name, 0, aside.lstat().st_size))
        self._delete([other for other in gone if other.key != block.key])

    def forget(self, chain: Chain) -> None:
        """Also what other processes wrote, whatever lies there that cannot be read, and all of this tree that was kept
        in another form: nothing tells what begins with these tokens there."""
        self._look(self._path / chain.root)
        self.remove([block.key for block in self._of_tree(chain.root) if not block.count])
        super().forget(chain)
        folder = self._path / chain.root
        if not chain.tokens:
            _empty(folder)
        with suppress(OSError):
            for draft in folder.glob(f"*{_BEING_WRITTEN}"):
                if _is_ours(draft.name) and f"-{os.getpid()}-" not in draft.name:  # what this process writes goes on
                    draft.unlink(missing_ok=True)
        with suppress(OSError):
            for other in self._folders():
                if is_other_form(chain.root, other.name):
                    self.remove([block.key for block in self._of_tree(other.name)])
                    _empty(other)

    def clear(self) -> None:
        super().clear()
        with suppress(OSError):
            for folder in self._folders():
                _empty(folder)

    def _delete(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            path = self._file(block)
            try:
                path.unlink(missing_ok=True)
            except OSError:  # a folder in a file's place, or one that is not ours to change
                shutil.rmtree(path, ignore_errors=True)
                if path.exists():
                    self._count("could not be deleted")

    def _file(self, block: Block) -> Path:
        name = f"{block.parent}-{block.key}-{block.count}.safetensors" if block.count else block.key
        return self._path / block.root / name

    def _trouble(self, block: Block, error: OSError | ValueError) -> None:
        if isinstance(error, FileNotFoundError):
            self._count("vanished from disk")
            self.remove([block.key])
        elif isinstance(error, ValueError | IsADirectoryError):
            self.set_aside(block, "damaged or foreign")
        else:  # too many open files, a disk that fails: says nothing against the file
            self._count("could not be read")

    def _written_by_others(self, block: Block) -> Block | None:
        try:
            size = self._file(block).lstat().st_size
        except OSError:
            return None
        found = Block(block.root, block.parent, block.key, block.count, size)
        with self._lock:
            self._add(found)
        return found

    def _folders(self) -> list[Path]:
        with os.scandir(self._path) as entries:
            return [Path(e.path) for e in entries if _TREE.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]

    def _look(self, folder: Path | None = None) -> None:
        """Bring the index in line with what is there, in `folder` or in all. What cannot be listed now (too many files
        are open, say) stays as it is known."""
        with self._lock:
            before = {key for key, block in self._blocks.items() if folder in (None, self._path / block.root)}
        found: list[tuple[int, Block]] = []
        try:
            for tree in self._folders() if folder is None else [folder]:
                with suppress(FileNotFoundError):
                    found += _listed(tree)
        except OSError:
            return
        there = {block.key for _, block in found}
        with self._lock:
            self._drop(before - there)
            for _, block in sorted(found, key=lambda item: item[0]):
                if block.key not in self._blocks:
                    self._add(block)


def _listed(folder: Path) -> Iterator[tuple[int, Block]]:
    """What lies in the folder of one tree, and when each was used last."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if _is_ours(entry.name):
                with suppress(OSError):  # it vanished meanwhile: another process deleted it
                    state = entry.stat(follow_symlinks=False)
                    if not entry.name.endswith(_BEING_WRITTEN):
                        name = _NAME.fullmatch(entry.name)
                        parent, key, count = (name[1], name[2], int(name[3])) if name else ("", entry.name, 0)
                        yield state.st_mtime_ns, Block(folder.name, parent, key, count, state.st_size)
                    elif time.time() - state.st_mtime > _ABANDONED_SECONDS:
                        os.unlink(entry.path)


def _is_ours(name: str) -> bool:
    """Others may keep folders whose names look like a tree's: what we did not name, we neither count nor delete."""
    return bool(_NAME.fullmatch(name.removesuffix(_ASIDE)) or _DRAFT.fullmatch(name))


def _empty(folder: Path) -> None:
    """Delete all that is ours, and the folder if nothing else is in it."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if _is_ours(path.name):
                with suppress(OSError):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()
