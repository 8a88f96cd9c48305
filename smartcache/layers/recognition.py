"""What a prompt rests on, told from its text: a framework that fills a template leaves no other trace of the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from smartcache.types import Chunk, ChunkRef

Retrieved = tuple[str, tuple[Chunk, ...], bool]  # a query, what it found, whether it would find that now


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
    places, passing = _places(text, passages, {query for query, _, _ in retrieved})
    there: dict[str, dict[ChunkRef, tuple[Chunk, bool]]] = {passage: {} for passage in places}
    for _, chunks, is_current in sorted(retrieved, key=lambda one: not one[2]):
        for chunk in chunks:
            known = there.get(chunk.text, {})
            if is_current or not any(current for _, current in known.values()):
                known.setdefault(chunk.ref, (chunk, is_current))
    asked = [
        query for query, chunks, _ in retrieved if query and _any_in(places, chunks) and _stands(text, query, passing)
    ]
    query = max(asked, key=len, default=None)
    questions = {query} if query else places.keys()  # where none stands by itself, a passage may be the question
    of_query = [chunk for q, chunks, is_current in retrieved if q in questions and is_current for chunk in chunks]
    in_order = sorted(places, key=places.__getitem__)
    found = tuple(chunk for passage in in_order for chunk, _ in there[passage].values())
    return Recognised(found, query, bool(places) and all(chunk.text in places for chunk in of_query))


def _places(text: str, passages: set[str], queries: set[str]) -> tuple[dict[str, int], bytearray]:
    """Where each passage begins, and for each character whether it is of one; the longest are looked for first, and
    none inside a query. Of what is both, the last is the query where it stands twice or ends the text: a heading that
    was searched for once stands before its text."""
    taken, passing, places = bytearray(len(text)), bytearray(len(text)), dict[str, int]()
    for piece in sorted(filter(str.strip, passages | queries), key=lambda piece: (-len(piece), piece)):
        free = [*_free(text, piece, taken)]
        is_last_asked = piece in queries and free and (len(free) > 1 or not text[free[-1] + len(piece) :].strip())
        found = free[: -1 if is_last_asked else None] if piece in passages else []
        for place in free:
            taken[place : place + len(piece)] = b"\1" * len(piece)
        for place in found:
            passing[place : place + len(piece)] = b"\1" * len(piece)
        if found:
            places[piece] = found[0]
    return places, passing


def _stands(text: str, piece: str, taken: bytearray) -> bool:
    return next(_free(text, piece, taken), None) is not None


def _free(text: str, piece: str, taken: bytearray) -> Iterator[int]:
    """Where a piece stands in what is not taken, one after the other."""
    place = text.find(piece)
    while place >= 0:
        end = place + len(piece)
        if (last := taken.rfind(1, place, end)) < 0:
            yield place
        place = text.find(piece, end if last < 0 else last + 1)


def _any_in(places: dict[str, int], chunks: tuple[Chunk, ...]) -> bool:
    return any(chunk.text in places for chunk in chunks)
