"""A prompt taken apart: the question that a template holds, and the passages it was filled with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langchain_smartcache.messages import turn_of
from smartcache import Chunk, SmartCache, Turn
from smartcache.keys import content_version

MAX_QUESTION_WORDS = 60  # what one line of a user may say and still be taken for a question
PASSAGE, QUESTION = "\ue000", "\ue001"  # stand in a template where they were: letters for private use


@dataclass(frozen=True, slots=True)
class Prompt:
    """The turns of a prompt, and the passages that it rests on; `passages` is None where they are not all known."""

    turns: tuple[Turn, ...]
    passages: tuple[Chunk, ...] | None

    @property
    def is_whole(self) -> bool:
        """Whether some question cannot be told from what surrounds it: what a user says has more than one line, as
        templates and pasted documents have, or is too long for a question. One word in it may change the answer."""
        said = [turn.text.strip() for turn in self.turns if turn.role == "user"]
        return any("\n" in text or len(text.split()) > MAX_QUESTION_WORDS for text in said)


@dataclass(frozen=True, slots=True)
class Found:
    """The search of a prompt that holds what was found: it finds that, whatever it is asked; never remembered."""

    passages: tuple[Chunk, ...]

    def __call__(self, query: str) -> tuple[Chunk, ...]:
        return self.passages


def prompt_of(messages: Sequence[BaseMessage], cache: SmartCache) -> Prompt:
    """Documents reach a model as text. What a `SmartCacheRetriever` found lately is recognised in it word for word.

    A user's message that holds such passages becomes two turns: a hard one with the template and the passages, which
    must be equal for an answer to be shared, and one with the question alone, which need only be near. Where the
    question cannot be told from the template, the second holds both. A document that was cut or rewritten on its way,
    or found by another retriever, is not recognised; the prompt then rests on everything, and is compared whole.
    """
    turns = [turn_of(message) for message in messages]
    questions = [turn for turn in turns if _is_question(turn, cache)]
    found = cache.recognise("\n".join(turn.text for turn in turns if turn not in questions))
    if not found.chunks:
        return Prompt(tuple(turns), None)
    parted = tuple(part for turn in turns for part in ([turn] if turn in questions else _parted(turn, cache)))
    return Prompt(parted, found.chunks if found.is_complete else None)


def _is_question(turn: Turn, cache: SmartCache) -> bool:
    """Whether a user only mentions passages, as the words of a heading, in a line that no search asked for."""
    if turn.role != "user" or "\n" in turn.text.strip():
        return False
    found = cache.recognise(turn.text)
    return bool(found.chunks) and found.query is None and all(c.text.strip() != turn.text.strip() for c in found.chunks)


def _parted(turn: Turn, cache: SmartCache) -> Iterator[Turn]:
    found = None if turn.role != "user" or turn.data else cache.recognise(turn.text)
    if not found or not found.chunks or PASSAGE in turn.text or QUESTION in turn.text:
        yield turn
        return
    frame, passages = _frame(turn.text, found.chunks, found.query)
    if found.query and QUESTION in frame:
        yield Turn("tool", frame, {"passages": passages})
        yield Turn("user", found.query)
    else:
        yield Turn("tool", "", {"passages": passages})
        yield Turn("user", frame)


def _frame(text: str, chunks: Sequence[Chunk], query: str | None) -> tuple[str, list[list[str]]]:
    """The text with a mark for the question and for each passage beside it, and which passages they are, in order."""
    refs: dict[str, list[list[str]]] = {}
    for chunk in chunks:
        ref = [chunk.ref.source, chunk.ref.id, chunk.ref.version, content_version(chunk.text)]
        refs.setdefault(chunk.text, []).append(ref)
    pieces = sorted({*refs, *([query] if query else [])}, key=len, reverse=True)
    matches = [*re.finditer("|".join(map(re.escape, pieces)), text)]
    asked = [match for match in matches if match.group() == query]
    if query in refs:
        asked = asked[-1:]  # the others are the passage
    frame, end = "", 0
    for match in matches:
        frame, end = frame + text[end : match.start()] + (QUESTION if match in asked else PASSAGE), match.end()
    passages = [ref for match in matches if match not in asked for ref in refs[match.group()]]
    return frame + text[end:], passages
