"""Prompt templates, read without filling them in: which placeholder stands before text that is always the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from smartcache.lint.findings import Finding
from smartcache.lint.volatile import class_of

Style = Literal["braces", "double"]

MIN_STABLE_LETTERS = 64  # behind a placeholder, for it to be in their way
MIN_STABLE_SHARE = 0.1  # of the text that is always the same

_DOUBLE = re.compile(r"\{#.*?#\}|\{\{!.*?\}\}|\{%-?(.*?)-?%\}|\{\{\{?(.*?)\}?\}\}", re.S)
_BRACES = re.compile(  # a name, and what an f-string may have behind it: no JSON, no code
    r"\{\{|\}\}|\{(\s*[A-Za-z_][\w.]*(?:(?:[\[(!]|:(?!\s))(?:[^{}\n]|\{[^{}\n]*\})*)?\s*)\}"
)
_OPENING = re.compile(r"\s*(?:for|if|unless)\b|\s*[#^]")
_CLOSING = re.compile(r"\s*end(?:for|if)\b|\s*/")
_COMMANDS = re.compile(r"\b(?:for\s+\S+\s+in|if|elif|set|else|not|and|or|is|defined|none|unless|each|with)\b|[#^&/]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is always the same, or what a placeholder's name says; `line` is in the template, `place` in letters.
    Text in a loop or under a condition is not always the same, and left out."""

    line: int
    place: int
    text: str = ""
    expression: str | None = None


def pieces(text: str, style: Style | None = None, line: int = 1, place: int = 0) -> list[Piece]:
    """What a template is made of. A style that is not given is told by the text: with {% … %} or {{ … }} alone it is
    Jinja or mustache, else the braces of an f-string."""
    style = style or style_of(text)
    found, depth, done = list[Piece](), 0, 0
    for hit in (_DOUBLE if style == "double" else _BRACES).finditer(text):
        found += _literal(text, done, hit.start(), line, place) if not depth else []
        done = hit.end()
        tag, value = (hit[1], hit[2]) if style == "double" else (None, hit[1])
        told = tag if tag is not None else value
        if told is None:
            continue  # a comment, or a doubled brace
        depth -= bool(depth and _CLOSING.match(told))
        if not depth and not _CLOSING.match(told):
            expression = " ".join(_COMMANDS.sub(" ", told).split())
            at = (line + text.count("\n", 0, hit.start()), place + hit.start())
            found += [Piece(*at, expression=expression)] if expression else []
        depth += bool(_OPENING.match(told))
    return [*found, *_literal(text, done, len(text), line, place)]


def style_of(text: str) -> Style:
    if re.search(r"\{%|\{\{\s*[#/^&!{]", text):
        return "double"
    singles = [hit for hit in _BRACES.finditer(text) if hit[1]]
    doubled = re.search(r"\{\{-?\s*[A-Za-z_]", text)
    return "double" if doubled and all(text[hit.start() - 1 : hit.start()] == "{" for hit in singles) else "braces"


def findings_in(found: Sequence[Piece], source: str) -> Iterator[Finding]:
    """What stands before stable text in a template, at its first place each."""
    stable = sum(len(piece.text.strip()) for piece in found)
    behind, told = stable, set[tuple[str, str]]()
    for piece in found:
        behind -= len(piece.text.strip())
        code = class_of(piece.expression) if piece.expression else None
        is_in_the_way = behind >= max(MIN_STABLE_LETTERS, MIN_STABLE_SHARE * stable)
        if code is None or (code, piece.expression or "") in told or not (is_in_the_way or code == "json-order"):
            continue
        told.add((code, piece.expression or ""))
        what = f"the placeholder {piece.expression!r} before {behind:,} letters that are always the same"
        yield Finding(code, source, piece.line, piece.place, what, behind / max(1, stable))


def written_findings(text: str, source: str) -> Iterator[Finding]:
    """How the file of a template is written: what another editor or machine would write with other bytes."""
    forms = (
        ("a byte order mark", text.find("\ufeff")),
        ("two kinds of line ends", text.find("\r\n") if re.search(r"(?<!\r)\n", text) else -1),
        ("letters that are not in the Unicode form NFC", _first_not_composed(text)),
    )
    for what, place in forms:
        if place >= 0:
            share = (len(text) - place) / len(text)
            yield Finding("whitespace", source, text.count("\n", 0, place) + 1, place, what, share)


def _literal(text: str, start: int, end: int, line: int, place: int) -> list[Piece]:
    if not text[start:end].strip():
        return []
    return [Piece(line + text.count("\n", 0, start), place + start, text[start:end])]


def _first_not_composed(text: str) -> int:
    composed = unicodedata.normalize("NFC", text)
    if composed == text:
        return -1
    return next((n for n, (a, b) in enumerate(zip(text, composed, strict=False)) if a != b), len(composed))
