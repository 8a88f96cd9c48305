"""Keys that mean one thing: equal requests have equal bytes in every process, different requests never do."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

from smartcache.errors import UnstableKey

SCHEMA = "smartcache-key-1"


def canonical(value: Any) -> bytes:
    """The one byte string of a value built from None, bool, int, float, str, bytes, lists, mappings and sets.

    Every part is tagged with its kind and framed by its length, so `["ab", "c"]` and `["a", "bc"]`, `None` and `""`,
    `1` and `"1"` differ. A whole float equals the int (`0.0` and `0` mean the same to a model); mappings and sets have
    no order; enums and pydantic models count as their values under the name of their class, a pydantic class as its
    schema. Any other object raises UnstableKey: its `repr` may hold an address.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise UnstableKey("a request holds a value that contains itself") from None


def digest(*parts: Any) -> str:
    """SHA-256 over the canonical bytes of `parts`, in hexadecimal, under the schema's name."""
    return hashlib.sha256(canonical([SCHEMA, *parts])).hexdigest()


def parts(frame: bytes) -> list[bytes]:
    """What `canonical` framed together, one level down: of a list its items, of a text its letters in UTF-8.

    Raises ValueError where the bytes are no frame.
    """
    found, at = list[bytes](), 1
    while at < len(frame):
        begin = frame.index(b":", at) + 1
        at = begin + int(frame[at : begin - 1])
        if at > len(frame):
            raise ValueError("the bytes end inside a frame")
        found.append(frame[begin:at])
    return found


def content_version(text: str) -> str:
    """The version of a text that has no other: a hash of its content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _encode(value: Any) -> bytes:
    if type(value) is str:  # most of a request is this or a list: a shorter way to the same
        raw = value.encode("utf-8", "surrogatepass")
        return b"s%d:%b" % (len(raw), raw)
    if type(value) is list:
        return _frame(b"l", *map(_encode, value))
    match value:
        case None:
            return _frame(b"n")
        case bool():
            return _frame(b"b", b"1" if value else b"0")
        case Enum():
            return _frame(b"e", _encode(type(value).__qualname__), _encode(value.value))
        case str():
            return _frame(b"s", str(value).encode("utf-8", "surrogatepass"))
        case int():
            return _frame(b"i", format(int(value), "x").encode())  # no limit of digits
        case float():
            return _encode_float(value)
        case bytes() | bytearray() | memoryview():
            return _frame(b"y", bytes(value))
        case Mapping():
            return _frame(b"m", *sorted(_frame(b"p", _encode(k), _encode(v)) for k, v in value.items()))
        case AbstractSet():
            return _frame(b"u", *sorted(map(_encode, value)))
        case list() | tuple():
            return _frame(b"l", *map(_encode, value))
    return _encode_model(value)


def _encode_float(value: float) -> bytes:
    if math.isnan(value):
        raise UnstableKey("a request holds NaN, which is not equal to itself")
    return _encode(int(value)) if value.is_integer() else _frame(b"f", repr(float(value)).encode())


def _encode_model(value: Any) -> bytes:
    """A pydantic model or class, known by its methods, so that no version of pydantic is asked for."""
    kind = type(value).__qualname__
    try:
        if isinstance(value, type) and hasattr(value, "model_json_schema"):
            return _frame(b"c", _encode(value.model_json_schema()))
        if not isinstance(value, type) and hasattr(value, "model_dump"):
            return _frame(b"o", _encode(kind), _encode(value.model_dump(mode="json")))
    except Exception as error:  # what a model holds may have no JSON form, and pydantic has many words for that
        raise UnstableKey(f"{kind} has no JSON form: {error}") from error
    raise UnstableKey(
        f"{kind} has no form that is the same in every process; pass JSON values, or leave it out of the options"
    )


def _frame(tag: bytes, *parts: bytes) -> bytes:
    return tag + b"".join([b"%d:%b" % (len(part), part) for part in parts])
