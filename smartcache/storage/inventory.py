"""A look at a cache file that opens it to read only: whether there is a cache in it, and whose answers it holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def holds_nothing(path: Path) -> bool:
    """Whether no cache was ever kept at `path`: no file, an empty one, or a database without a table.

    A file that cannot be read as a database holds something: what is wrong with it is said where it is opened.
    """
    if not path.is_file():
        return True
    try:
        return bool(_read(path, "SELECT count(*) FROM sqlite_master")[0][0] == 0)
    except sqlite3.Error:
        return False


def answers_by_scope(path: Path) -> dict[str, int]:
    """How many answers each scope has in the cache at `path`, by name. Raises OSError where it cannot be read."""
    try:
        return dict(_read(path, "SELECT scope, count(*) FROM answers GROUP BY scope ORDER BY scope"))
    except sqlite3.Error as error:
        raise OSError(f"cannot read {path}: {error}") from error


def _read(path: Path, statement: str) -> list[Any]:
    # without a log beside it the file is all there is; to say so keeps SQLite from making a log
    has_log = path.with_name(f"{path.name}-wal").exists()
    address = f"{path.resolve().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        return connection.execute(statement).fetchall()
