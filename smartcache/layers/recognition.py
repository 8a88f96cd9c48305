"""What a prompt rests on, told from its text: a framework that fills a template leaves no other trace of the search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smartcache.types import Chunk, ChunkRef

Retrieved = tuple[str, tuple[Chunk, ...], bool]  # a query, what it found, whether it would find that now

_MASK = "\0"


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a prompt holds of what searches found lately.

    `chunks`: the passages that are in it word for word, by their places. `query`: the longest query that found one of
    them and is in the prompt beside them. `is_complete`: some passage is there, and no search for that query found one
    that is not.
    """

    chunks: tuple[Chunk, ...] = ()
    query: str | None = None
    is_complete: bool = False


def recognised(text: str, retrieved: Iterable[Retrieved]) -> Recognised:
    """A passage inside a longer one that is there as well, or inside the question, counts only where it stands by
    itself. Where documents with equal text were found, all of them count, but none that has changed since while another
    has not."""
    retrieved = list(retrieved)
    passages = {chunk.text for _, chunks, _ in retrieved for chunk in chunks}
    places, rest = _places(text, passages, {query for query, _, _ in retrieved})
    there: dict[str, dict[ChunkRef, tuple[Chunk, bool]]] = {passage: {} for passage in places}
    for _, chunks, is_current in sorted(retrieved, key=lambda one: not one[2]):
        for chunk in chunks:
            known = there.get(chunk.text, {})
            if is_current or not any(current for _, current in known.values()):
                known.setdefault(chunk.ref, (chunk, is_current))
    asked = [query for query, chunks, _ in retrieved if query and query in rest and _any_in(places, chunks)]
    query = max(asked, key=len, default=None)
    of_query = [chunk for q, chunks, is_current in retrieved if q == query and is_current for chunk in chunks]
    in_order = sorted(places, key=places.__getitem__)
    found = tuple(chunk for passage in in_order for chunk, _ in there[passage].values())
    return Recognised(found, query, bool(places) and all(chunk.text in places for chunk in of_query))


def _places(text: str, passages: set[str], queries: set[str]) -> tuple[dict[str, int], str]:
    """Where each passage begins, and the text with the passages blotted out; the longest are looked for first, and none
    inside a query. Of what is both, the last is the query."""
    places, rest = {}, text
    for piece in sorted(filter(str.strip, passages | queries), key=lambda piece: (-len(piece), piece)):
        mask = _MASK * len(piece)
        if piece in queries:
            text = mask.join(text.rsplit(piece, 1 if piece in passages else -1))
        place = text.find(piece) if piece in passages else -1
        if place >= 0:
            places[piece] = place
        while place >= 0:
            text, rest = (f"{one[:place]}{mask}{one[place + len(piece) :]}" for one in (text, rest))
            place = text.find(piece)
    return places, rest


def _any_in(places: dict[str, int], chunks: tuple[Chunk, ...]) -> bool:
    return any(chunk.text in places for chunk in chunks)
