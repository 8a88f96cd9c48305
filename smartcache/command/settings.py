"""The settings that the requests of a cache file were asked under, read back: what a question must share with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from smartcache import Request, Turn
from smartcache.keys import parts


def settings_of(requests: Iterable[bytes], scope: str | None, limit: int) -> list[Request]:
    """A request for each setting (scope, model, options, the system turns it begins with), the first met first; of
    `scope` alone where it is not None. One whose options are no JSON values cannot be read back, and is left out."""
    found: dict[bytes, Request] = {}
    for raw in requests:
        try:
            key, request = _setting(raw)
        except (ValueError, TypeError):
            continue
        if scope in (None, request.scope):
            found.setdefault(key, request)
        if len(found) == limit:
            break
    return list(found.values())


def _setting(raw: bytes) -> tuple[bytes, Request]:
    scope, variant, options, spoken = parts(raw)
    turns = [Turn(*map(_value, parts(turn))) for turn in parts(spoken)]
    system = [*takewhile(lambda turn: turn.role == "system", turns)]
    key = b"\n".join([scope, variant, options, *parts(spoken)[: len(system)]])
    # with nothing but system turns it stands for the setting: a question is put after them
    return key, Request(system or [Turn("user", "")], _value(scope), _value(variant), _value(options))


def _value(frame: bytes) -> Any:
    """The JSON value that `canonical` framed. Raises ValueError for anything else."""
    inside = parts(frame)
    match frame[:1]:
        case b"n":
            return None
        case b"b":
            return inside[0] == b"1"
        case b"s":
            return inside[0].decode("utf-8", "surrogatepass")
        case b"i":
            return int(inside[0], 16)
        case b"f":
            return float(inside[0])
        case b"l":
            return [_value(one) for one in inside]
        case b"m":
            return {_value(name): _value(value) for name, value in map(parts, inside)}
    raise ValueError("no JSON value")
