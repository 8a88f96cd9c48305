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
    blank lines but one. Indentation and line breaks stay, for code and lists mean something by them, and so do lines
    with a tab, a backtick or a quotation mark in them, code blocks, and what a quotation holds over several lines."""
    if not _LAYOUT.search(text):  # a shorter way to the same
        return text.strip("\n")
    kept, block = list[str](), ""
    for line in text.replace("\r\n", "\n").split("\n"):
        before, block = block, _open_after(line, block) if block or _OPENING.search(line) else ""
        if before or block:
            kept.append(line if block else line.rstrip())
        elif line.strip() or any(kept[-1:]):
            kept.append(_line(line))
    return "\n".join(kept).strip("\n")


def _line(line: str) -> str:
    if "\t" in line:
        return line.rstrip(" ") if line.strip() else ""
    is_literal = line[:1] == " " or _QUOTES.search(line)
    return (line if is_literal else re.sub(" +", " ", line)).rstrip()


def _open_after(line: str, block: str) -> str:
    """What will end the block that is open after a line, "" where none is; `block`: the same before it."""
    if block[:1] in ("`", "~") and block:
        return "" if line.strip().startswith(block) and not line.strip().strip(block[0]) else block
    if not block and (fence := _FENCE.match(line)):
        return fence[1]
    for mark in _PAIRED.findall(line):
        block = ("" if mark in block else block) if block else _ENDS.get(mark, "")
    return block


_LAYOUT = re.compile(r"[^\S\n](?:\n|\Z)|(?<=[^ \n])  |\n\n\n")
_OPENING = re.compile('[`~<"“„«「『]')
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_ENDS = {"<pre": "</pre>", '"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』"}
_PAIRED = re.compile(r'<pre\b|</pre>|["“”„«»「」『』]')
# "don't" holds no quotation mark: one between two letters is none
_QUOTES = re.compile(r"""["`‘“”„‟‚‛‹›«»「」『』]|(?<!\w)['’]|['’](?!\w)""")
