"""When two texts are one text: the hash that evidence is compared by, which the layout of a page does not move."""

from __future__ import annotations

import re
from collections.abc import Mapping

from smartcache.keys import content_version
from smartcache.types import Chunk

_OWN = "="  # before the hash of a text whose version was a hash of it as well, and so says nothing more


def content_of(chunk: Chunk) -> str:
    """The hash of a chunk's text as `settled`, marked where the chunk's version tells of nothing but that text."""
    is_own = chunk.ref.version == content_version(chunk.text)
    return (_OWN if is_own else "") + content_version(settled(chunk.text))


def agree(version: str, content: str | None, other_version: str, other_content: str | None) -> bool:
    """Whether two chunks hold the same: by their texts where their versions are hashes of these, otherwise by their
    versions too. A content of None was not seen."""
    if content is None or other_content is None:
        return version == other_version
    if content == other_content and content.startswith(_OWN):
        return True
    return version == other_version and content.removeprefix(_OWN) == other_content.removeprefix(_OWN)


def told_apart_by(version: str, content: str | None) -> str | None:
    """What two chunks that `agree` by their texts have in common, and no others; None where the text was not seen."""
    return content if content is None or content.startswith(_OWN) else f"{content} {version}"


def moves(
    left: Mapping[tuple[str, str], str | None], arriving: Mapping[tuple[str, str], str | None]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Which text that left one chunk of a source arrived in which other, one for one, by (source, id); each text as
    what it is `told_apart_by`."""
    waiting: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (source, id), text in sorted(arriving.items()):
        if text:
            waiting.setdefault((source, text), []).append((source, id))
    found = {}
    for (source, id), text in sorted(left.items()):
        if (free := waiting.get((source, text or ""))) and free[0] != (source, id):
            found[source, id] = free.pop(0)
    return found


def settled(text: str) -> str:
    """`text` without the white space that means nothing: at the ends of lines, between the words of prose, and all
    blank lines but one. Indentation and line breaks stay, for code and lists mean something by them, and so does what
    stands between quotation marks or backticks."""
    lines = [_line(line.rstrip()) for line in text.replace("\r\n", "\n").split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _line(line: str) -> str:
    is_literal = line[:1] in (" ", "\t") or '"' in line or "`" in line
    return line if is_literal else re.sub(r"[ \t]+", " ", line)
