"""A prompt taken apart: the question that a template holds, and the passages it was filled with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from langchain_core.messages import BaseMessage

from langchain_smartcache.messages import turn_of
from smartcache import Chunk, ChunkRef, SmartCache, Turn
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
    or found by another retriever, is not recognised; the prompt then rests on everything, and is compared whole. So it
    does where a user's line holds a passage that stands nowhere else: nobody knows whether it is a document.
    """
    turns = [turn_of(message) for message in messages]
    mentions = [_mentioned(turn, cache) for turn in turns]
    found = cache.recognise("\n".join(turn.text for turn, refs in zip(turns, mentions, strict=True) if not refs))
    if not found.chunks:
        return Prompt(tuple(turns), None)
    parts = [[turn] if refs else _parted(turn, cache) for turn, refs in zip(turns, mentions, strict=True)]
    is_known = found.is_complete and frozenset().union(*mentions) <= {chunk.ref for chunk in found.chunks}
    return Prompt(tuple(chain.from_iterable(parts)), found.chunks if is_known else None)


def _mentioned(turn: Turn, cache: SmartCache) -> frozenset[ChunkRef]:
    """The passages that a user may only mention, as the words of a heading, in a line that no search asked for."""
    if turn.role != "user" or "\n" in turn.text.strip():
        return frozenset()
    found = cache.recognise(turn.text)
    is_one = any(chunk.text.strip() == turn.text.strip() for chunk in found.chunks)
    return frozenset() if found.query is not None or is_one else frozenset(chunk.ref for chunk in found.chunks)


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
