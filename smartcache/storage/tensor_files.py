"""Blocks as safetensors files, written and read without that package: storage runs where no model does.

A file is 8 bytes of length, a JSON header with the place of each array, and the arrays. The header also says which
tokens the arrays belong to, and holds a checksum over everything else.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

from smartcache.storage.segments import Array, Packed

if TYPE_CHECKING:
    from smartcache.storage.chains import Block

FORMAT = "smartcache-kv-1"
_MAX_HEADER_BYTES = 100_000_000  # as the format's own readers have it
_OWN = "codec."

Buffer = bytes | bytearray | memoryview


def file_of(block: Block, tokens: tuple[int, ...], packed: Packed) -> list[Buffer]:
    """The pieces of a file, in order."""
    # the widest numbers first, so that each lies where a processor wants it
    named = sorted(packed.arrays.items(), key=lambda item: -len(item[1].content) // (_count(item[1].shape) or 1))
    header: dict[str, Any] = {}
    end = 0
    for name, array in named:
        begin, end = end, end + len(array.content)
        header[name] = {"dtype": array.dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
    label = {
        "format": FORMAT,
        "parent": block.parent,
        "tokens": " ".join(map(str, tokens)),
        "max_error": repr(packed.max_error),
        **{_OWN + key: value for key, value in packed.label.items()},
    }
    contents: list[Buffer] = [array.content for _, array in named]
    check = _check({**header, "__metadata__": label}, contents)
    text = json.dumps({"__metadata__": {**label, "check": check}, **header}).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *contents]


def read_tokens(file: BinaryIO, block: Block) -> tuple[int, ...]:
    """Which tokens a file says it holds. Raises ValueError where it is not the file of `block`."""
    size = int.from_bytes(_exactly(file.read(8), 8), "little")
    return _tokens(_header(_exactly(file.read(min(size, _MAX_HEADER_BYTES)), size))["__metadata__"], block)


def read_block(content: memoryview, block: Block, tokens: tuple[int, ...]) -> Packed:
    """What a file holds. Raises ValueError where it is damaged, of another version, or not of `block` and `tokens`."""
    start = 8 + int.from_bytes(_exactly(content[:8], 8), "little")
    header = _header(content[8:start])
    label = header.pop("__metadata__")
    body = content[start:]
    if _tokens(label, block) != tokens:
        raise ValueError("it holds other tokens")
    check = label.pop("check", None)
    if check != _check({**header, "__metadata__": label}, [body]):
        raise ValueError("its checksum is another one")
    try:
        arrays = {name: _array(place, body) for name, place in header.items()}
        own = {key.removeprefix(_OWN): value for key, value in label.items() if key.startswith(_OWN)}
        return Packed(arrays, own, float(label["max_error"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its header cannot be read: {error!r}") from error


def _header(text: Buffer) -> dict[str, Any]:
    try:
        header = json.loads(bytes(text))
    except RecursionError as error:
        raise ValueError("its header has no end") from error
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__"), dict):
        raise ValueError("it has no header of ours")
    return header


def _tokens(label: dict[str, Any], block: Block) -> tuple[int, ...]:
    if label.get("format") != FORMAT:
        raise ValueError("it is of another version")
    tokens = tuple(int(token) for token in str(label.get("tokens", "")).split())
    if label.get("parent") != block.parent or len(tokens) != block.count:
        raise ValueError("it belongs to another block")
    return tokens


def _array(place: dict[str, Any], body: memoryview) -> Array:
    begin, end = place["data_offsets"]
    return Array(str(place["dtype"]), tuple(place["shape"]), body[begin:end])


def _check(header: dict[str, Any], contents: list[Buffer]) -> str:
    """Against accidents, not against an enemy: who can write here could as well change the check."""
    check = zlib.crc32(json.dumps(header, sort_keys=True).encode())
    for content in contents:
        check = zlib.crc32(content, check)
    return f"{check:08x}"


def _exactly(content: Buffer, size: int) -> Buffer:
    if len(content) != size:
        raise ValueError("it is cut short")
    return content


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for width in shape:
        count *= width
    return count
