"""Cutting a text into passages that a search can find: one for each Markdown section, long ones cut at paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one document: `slug` names it within the document, `text` opens with the path of its headings."""

    slug: str
    text: str


def passages(document: str, *, count_tokens: Callable[[str], int], max_tokens: int) -> list[Passage]:
    """The passages of a Markdown or plain text, in its order, each within `max_tokens` as far as single words allow.

    A section without text of its own gives none. Equal headings, and the pieces of one long section, are told apart by
    a number: `price`, `price-2`, …
    """
    seen: dict[str, int] = {}
    found = []
    for path, body in _sections(document):
        title = " > ".join(path)
        room = max(1, max_tokens - count_tokens(title))
        for piece in _pieces(body, count_tokens, room):
            slug = _slug(path[-1]) if path else "text"
            seen[slug] = seen.get(slug, 0) + 1
            name = slug if seen[slug] == 1 else f"{slug}-{seen[slug]}"
            found.append(Passage(name, f"{title}\n{piece}" if title else piece))
    return found


def _sections(document: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each section with text of its own: the path of headings above it, and that text."""
    path: list[tuple[int, str]] = []
    body: list[str] = []
    fence = ""
    for line in document.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading is None:
            body.append(line.rstrip())
            continue
        yield from _with_text(path, body)
        body = []
        depth = len(heading[1])
        path = [(level, title) for level, title in path if level < depth]
        path.append((depth, heading[2]))
    yield from _with_text(path, body)


def _with_text(path: list[tuple[int, str]], body: list[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    if text := "\n".join(body).strip():
        yield tuple(title for _, title in path), text


def _pieces(body: str, count_tokens: Callable[[str], int], room: int) -> list[str]:
    if count_tokens(body) <= room:
        return [body]
    parts: list[tuple[str, str]] = []  # (what stands before it, the part)
    for paragraph in re.split(r"\n\s*\n", body):
        if count_tokens(paragraph) <= room:
            parts.append(("\n\n", paragraph))
            continue
        sentences = [part for part in _SENTENCE_END.split(paragraph) if part]
        for place, sentence in enumerate(sentences):
            words = [sentence] if count_tokens(sentence) <= room else sentence.split()
            parts += [("\n\n" if place == number == 0 else " ", word) for number, word in enumerate(words)]
    return _packed(parts, count_tokens, room)


def _packed(parts: list[tuple[str, str]], count_tokens: Callable[[str], int], room: int) -> list[str]:
    """Join neighbouring parts for as long as they fit; counting each part once keeps this linear."""
    pieces = [parts[0][1]]
    used = count_tokens(parts[0][1])
    for glue, part in parts[1:]:
        size = count_tokens(part)
        if used + size <= room:
            pieces[-1] += glue + part
            used += size
        else:
            pieces.append(part)
            used = size
    return pieces


def _slug(heading: str) -> str:
    return re.sub(r"[\W_]+", "-", heading.casefold()).strip("-") or "section"
