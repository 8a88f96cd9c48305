"""Images, sounds and files in a message, as what they hold: a path, or an open file, is not yet its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from io import IOBase
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from llama_index_smartcache.configuration import Unstable


def block_form(block: BaseModel) -> Any:
    """A content block as the model is told of it: every field, and the content of each file that it names. What cannot
    be written or read has no stable form, and the cache passes the request by."""
    try:
        places = [(media, media.tell()) for media in _open_files(block)]
        told = block.model_dump(mode="python")
        for media, place in places:  # the caller's own, which the dump has read to its end
            media.seek(place)
        return [_plain(told), *map(file_version, _paths(told))]
    except Exception:  # a closed or a missing file is the model's to report
        return Unstable()


def file_version(path: str | Path) -> str:
    """A hash of what the file at `path` holds now. Raises OSError where it cannot be read."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _open_files(block: BaseModel) -> Iterator[IOBase]:
    values = (getattr(block, name) for name in type(block).model_fields)
    for value in values:
        if isinstance(value, IOBase):
            yield value
        for part in value if isinstance(value, list) else ():
            yield from _open_files(part) if isinstance(part, BaseModel) else ()


def _paths(told: dict[str, Any]) -> Iterator[Path]:
    """The paths in a block's fields, those of the blocks inside it included."""
    for value in told.values():
        if isinstance(value, Path):
            yield value
        for part in value if isinstance(value, list) else ():
            yield from _paths(part) if isinstance(part, dict) else ()


def _plain(value: Any) -> Any:
    """Paths and addresses as their texts; what else there is has a form of its own."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, str | bytes | bool | int | float) else str(value)
