"""Opening the one file on disk: ours or not, whole or damaged, in memory where there is no path."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from smartcache.errors import DamagedStore, ForeignStore, StoreError
from smartcache.storage.columns import name_in

APPLICATION_ID = 0x534D4331  # "SMC1"
SCHEMA_VERSION = 1
_HEADER = b"SQLite format 3\x00"


def file_in(path: str | Path) -> Path:
    """The database's file: `path` itself, or `smartcache.db` inside it where it is a folder."""
    path = Path(path)
    return path / "smartcache.db" if path.is_dir() else path


def connect(path: Path | None) -> sqlite3.Connection:
    """A connection in WAL mode, schema in place, deleted text overwritten.

    Raises ForeignStore for a file that is not ours, DamagedStore for one of ours that is broken; neither is touched.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_header(path)
    try:
        connection = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=10.0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise OSError(f"cannot open {path}: {error}") from error
    connection.create_function("name_in", 1, name_in, deterministic=True)
    try:
        _check_content(connection, path)
        _prepare(connection)
    except (sqlite3.DatabaseError, DamagedStore, ForeignStore) as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError):  # locked, read-only, full: not damage
            raise OSError(f"cannot use {path} as a cache: {error}") from error
        if isinstance(error, sqlite3.DatabaseError):
            raise DamagedStore(f"{path} is damaged: {error}") from error
        raise
    return connection


@contextmanager
def usable(path: Path | None) -> Iterator[None]:
    """Raises StoreError where SQLite fails inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise unusable(path, error) from error


def unusable(path: Path | None, error: sqlite3.Error) -> StoreError:
    return StoreError(f"{path or 'the cache in memory'} cannot be used now: {error}")


def set_aside(path: Path) -> Path:
    """Moves a damaged database and its log out of the way, under a name that is free. Returns the new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        log = path.with_name(path.name + suffix)
        if log.exists():
            log.rename(aside.with_name(aside.name + suffix))
    return path.rename(aside)


def _check_header(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_file():
        raise ForeignStore(f"{path} is no file that could hold a database: choose another path")
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    if header and header != _HEADER:
        raise ForeignStore(f"{path} is not a SmartCache database; it was left as it is: choose another path")


def _check_content(connection: sqlite3.Connection, path: Path | None) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    is_new = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if is_new:
        return
    if application != APPLICATION_ID:
        raise ForeignStore(f"{path} is another program's database; it was left as it is: choose another path")
    if version > SCHEMA_VERSION:
        raise ForeignStore(
            f"{path} was written by a newer SmartCache (schema {version}): upgrade, or choose another path"
        )
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise DamagedStore(f"{path} is damaged: {found}")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.executescript(
        f"BEGIN IMMEDIATE; {files('smartcache.storage').joinpath('schema.sql').read_text('utf-8')} "
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )
