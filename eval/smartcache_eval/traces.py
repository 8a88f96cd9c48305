"""Request traces from files: what each request wanted, as a list of blocks, each of which stands on those before it.

A trace is either JSON lines with `hash_ids` (one request a line; the form of the Mooncake traces) or text with one key
a line (each a request for one block that stands alone; the form of the classic cache traces). Both may be gzipped.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from smartcache.errors import SmartCacheError
from smartcache_eval.folder import public_folder

Trace = Sequence[Sequence[int]]

MOONCAKE = Path("mooncake-traces", "raw", "traces", "synthetic_trace.jsonl")


class UnreadableTrace(SmartCacheError, ValueError):
    """A trace is not there, or not in a form that is known here."""


def mooncake_trace() -> Trace:
    """The Mooncake trace from the folder of public data: $SMARTCACHE_DATA, or ../shared/data beside the project."""
    path = public_folder() / MOONCAKE
    if not path.exists():
        raise UnreadableTrace(f"{MOONCAKE} is not there: name the folder of public data that has it in SMARTCACHE_DATA")
    return read_trace(path)


def read_trace(path: Path) -> Trace:
    """The requests in the order of the file, without the empty ones; a block that a request repeats counts once."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            kept = [line.strip() for line in lines]
    except (OSError, EOFError, UnicodeDecodeError) as cause:
        raise UnreadableTrace(f"{path} cannot be read as a trace: {cause}") from cause
    kept = [line for line in kept if line not in ("", "*")]
    requests = _block_lists(path, kept) if kept and kept[0].startswith("{") else _single_keys(kept)
    if not any(requests):
        raise UnreadableTrace(f"{path} holds no request")
    return [list(dict.fromkeys(request)) for request in requests if request]


def _block_lists(path: Path, lines: Sequence[str]) -> list[list[int]]:
    requests = []
    for number, line in enumerate(lines, 1):
        try:
            requests.append([int(block) for block in json.loads(line)["hash_ids"]])
        except (ValueError, KeyError, TypeError) as cause:
            raise UnreadableTrace(f"{path}: request {number} has no list of numbers `hash_ids`") from cause
    return requests


def _single_keys(lines: Sequence[str]) -> list[list[int]]:
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(line, len(numbers))] for line in lines]
