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
    kept, code, quotation = list[str](), "", ""
    for line in text.replace("\r\n", "\n").split("\n"):
        was_open = code or quotation
        if was_open or _OPENING.search(line):
            before, code = code, _code_after(line, code)
            quotation = _quotation_after(_outside(line, before, code), quotation)
        if was_open or code or quotation:
            kept.append(line if code or quotation else line.rstrip())
        elif line.strip() or any(kept[-1:]):
            kept.append(_line(line))
    return "\n".join(kept).strip("\n")


def _line(line: str) -> str:
    if "\t" in line:
        return line.rstrip(" ") if line.strip() else ""
    is_literal = line[:1] == " " or _QUOTES.search(line)
    return (line if is_literal else re.sub(" +", " ", line)).rstrip()


def _code_after(line: str, block: str) -> str:
    """What will end the code that is open after a line, "" where none is; `block`: the same before it. Before the fence
    of code in a block quotation stands ">"."""
    fence = _FENCE.match(line)
    opened = (">" if ">" in fence[1] else "") + fence[2] if fence else ""
    if not block and opened:
        return opened
    if (mark := block.lstrip(">"))[:1] in ("`", "~") and mark:
        is_within = block == mark or line.lstrip().startswith(">")
        if not is_within:  # the code ends with the quotation around it, if that ends here
            return opened or (block if line.strip() else "")
        said = line.strip() if block == mark else line.strip(" \t>")
        return "" if said.startswith(mark) and not said.strip(mark[0]) else block
    for tag in _TAG.findall(line.lower()):
        block = ("" if tag == block else block) if block else (f"</{tag[1:]}" if tag[1] != "/" else "")
    return block


def _outside(line: str, before: str, after: str) -> str:
    """The part of a line that is in no code, by what was open before it and what is after it."""
    if before:
        return "" if after else line.lower().rpartition(before)[2]
    return line.lower().partition("<" + after[2:])[0] if after else line


def _quotation_after(line: str, ends: str) -> str:
    """The marks that will end the quotation that is open after a line, "" where none is; `ends`: the same before it."""
    for found in _PAIRED.finditer(line):
        if found.lastgroup != ("begins" if ends else "ends"):
            ends = ("" if found[0] in ends else ends) if ends else _ENDS.get(found[0], "")
    return ends


_LAYOUT = re.compile(r"[^\S\n](?:\n|\Z)|(?<=[^ \n])  |\n\n\n")
_OPENING = re.compile('[`~<"“„«「『]')
# within block quotations and at the beginning of items of a list, too
_FENCE = re.compile(r"((?:\s|>|(?:[-*+]|\d{1,9}[.)])\s)*)(`{3,}(?=[^`]*$)|~{3,})")
_TAG = re.compile(r"</?(?:pre|script|style|textarea)\b")  # where HTML keeps white space, as Markdown has it
_ENDS = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』"}
# one that only ends a quotation, where any is open: else it stands for inches; one that only begins it; any other
_PAIRED = re.compile(r"""(?P<ends>(?<=\d)"|(?<=\w)"(?=[\s.,;:!?)\]]|$))|(?P<begins>(?<!\S)"(?=\w))|["“”„«»「」『』]""")
# "don't" holds no quotation mark: one between two letters is none
_QUOTES = re.compile(r"""["`‘“”„‟‚‛‹›«»「」『』]|(?<!\w)['’]|['’](?!\w)""")
