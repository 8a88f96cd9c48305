"""Documents that change under a cache: which answers were served that no longer held, and which were lost that did."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from smartcache import Answer, Chunk, ChunkRef, KnowledgeUpdate, Request, RetrievalSimilarity, SmartCache, Turn
from smartcache.keys import content_version
from smartcache.knowledge import Basis, Knowledge
from smartcache_eval.histories import History, Texts, Version
from smartcache_eval.vectors import KnownVectors

FOUND = 4
MODES = {  # by name: whether a search is at hand, and whether its similarity is known
    "lookup": (False, False),
    "lookup, similarity known": (False, True),
    "answer": (True, False),
    "answer, similarity known": (True, True),
}


@dataclass
class Count:
    """`stale`: served though an answer made anew would rest on other text. `surfaced`: of those that are not counted
    as stale, served though a document that was there before was edited and is found now; a plain lookup cannot see
    that where no similarity is known. `still_right`: those of all `asked` that an answer was kept for that would be
    made from the same text now; `wrongly_dropped`: of these, not served."""

    asked: int = 0
    served: int = 0
    stale: int = 0
    surfaced: int = 0
    still_right: int = 0
    wrongly_dropped: int = 0
    searches: int = 0

    def as_json(self) -> dict[str, Any]:
        share = self.wrongly_dropped / self.still_right if self.still_right else None
        return asdict(self) | {"wrongly_dropped_share": share}


@dataclass
class Played:
    """What one history came to, by mode, and by kind of change within it."""

    history: str
    versions: int
    questions: int
    modes: dict[str, dict[str, Count]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        shown = {mode: {kind: count.as_json() for kind, count in kinds.items()} for mode, kinds in self.modes.items()}
        return {"versions": self.versions, "questions": self.questions, "modes": shown}


def played(history: History, vectors: KnownVectors) -> Played:
    """Asks every question of every version, in each mode, from an empty cache."""
    vectors.learn([*history.questions, *(text for version in history.versions for text in version.texts.values())])
    result = Played(history.name, len(history.versions), len(history.questions))
    shelves = [_Shelf(version.texts, vectors) for version in history.versions]
    truths = [{question: shelf.search(question) for question in history.questions} for shelf in shelves]
    for mode, (searches, knows) in MODES.items():
        similarity = RetrievalSimilarity(vectors, FOUND) if knows else None
        with SmartCache.open(mode="exact", retrieval_similarity=similarity, strict=True) as cache:
            result.modes[mode] = _walk(cache, history, truths, with_search=searches, sees_edits=knows or searches)
    return result


def _walk(
    cache: SmartCache, history: History, truths: Sequence[dict[str, tuple[Chunk, ...]]], *, with_search: bool,
    sees_edits: bool,
) -> dict[str, Count]:  # fmt: skip
    counts, made, before = {"all": Count()}, dict[str, tuple[Chunk, ...]](), dict[str, str]()
    for version, truth in zip(history.versions, truths, strict=True):
        news = update_between(before, version.texts)
        if news.added or news.changed or news.removed:
            cache.update_knowledge(news)
        count = counts.setdefault(version.kind, Count())
        for question in history.questions:
            asked = _ask(cache, question, truth[question], with_search=with_search)
            for one in (counts["all"], count):
                _note(one, asked, made.get(question), truth[question], before if sees_edits is False else None)
            if not asked.is_served:
                made[question] = truth[question]
        before = dict(version.texts)
    return counts


@dataclass(frozen=True, slots=True)
class _Asked:
    is_served: bool
    searches: int


def _ask(cache: SmartCache, question: str, found: tuple[Chunk, ...], *, with_search: bool) -> _Asked:
    queries = list[str]()

    def search(query: str) -> tuple[Chunk, ...]:
        queries.append(query)
        return found

    request = Request([Turn("user", question)])
    hit = None if with_search else cache.lookup(request)
    answer = hit or cache.answer(request, lambda request, chunks: Answer("made anew"), search=search)
    return _Asked(answer.is_hit if with_search else hit is not None, len(queries))


def _note(
    count: Count, asked: _Asked, made: tuple[Chunk, ...] | None, now: tuple[Chunk, ...], known: Texts | None
) -> None:
    """`known`: what was there before this version, where an edit that surfaces is not counted as stale."""
    count.asked += 1
    count.searches += asked.searches
    count.served += asked.is_served
    if made is None:
        return
    is_right = _words(made) == _words(now)
    count.still_right += is_right
    count.wrongly_dropped += is_right and not asked.is_served
    if asked.is_served and not is_right:
        new = [chunk for chunk in now if chunk.text not in {other.text for other in made}]
        surfaced = known is not None and all(chunk.ref.id in known for chunk in new) and _are_there(made, now, new)
        count.surfaced += surfaced
        count.stale += not surfaced


def _are_there(made: Sequence[Chunk], now: Sequence[Chunk], new: Sequence[Chunk]) -> bool:
    """Whether only the ranking changed: no chunk of the answer has another text now."""
    texts = {chunk.ref.id: chunk.text for chunk in made}
    return not any(texts.get(chunk.ref.id, chunk.text) != chunk.text for chunk in new)


def _words(chunks: Iterable[Chunk]) -> list[str]:
    """What chunks say, whatever they are called and however they are laid out."""
    return sorted(" ".join(chunk.text.split()) for chunk in chunks)


def update_between(before: Texts, after: Texts) -> KnowledgeUpdate:
    """What an application that compares two versions by id would tell."""
    added = [_chunk(id, text) for id, text in after.items() if id not in before]
    changed = [_chunk(id, text) for id, text in after.items() if before.get(id, text) != text]
    return KnowledgeUpdate(added, changed, before.keys() - after.keys(), source="docs")


def check_share_of_hit(history: History, vectors: KnownVectors) -> float:
    """The median time in which freshness is judged, as a share of the median time of an exact hit, after every update
    of the history: the quickest kind of hit, so the largest share; and with an update since the answer was made."""
    last = Version(dict(history.versions[-1].texts))
    shelf, knowledge, before = _Shelf(last.texts, vectors), Knowledge(), dict[str, str]()
    with SmartCache.open(mode="exact", strict=True) as cache:
        for version in history.versions:
            for told in (cache.update_knowledge, knowledge.apply):
                told(update_between(before, version.texts))
            before = dict(version.texts)
        requests = [(Request([Turn("user", question)]), shelf.search(question)) for question in history.questions]
        for request, found in requests:
            _ask(cache, request.query, found, with_search=True)
        bases = [Basis.of(frozenset(c.ref for c in found), found, knowledge.sequence - 1) for _, found in requests]
        judged = statistics.median(_seconds(lambda basis=basis: knowledge.judge(basis)) for basis in bases * 5)
        hit = statistics.median(_seconds(lambda r=request: cache.lookup(r)) for request, _ in requests * 5)
    return judged / hit


def _seconds(call: Any) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


class _Shelf:
    """One version, to be searched: the texts nearest to the whole question; of equally near ones, those whose words
    come first, so that no name decides what is found."""

    def __init__(self, texts: Texts, vectors: KnownVectors) -> None:
        self._chunks = [_chunk(id, text) for id, text in sorted(texts.items(), key=_by_words)]
        self._rows = vectors([chunk.text for chunk in self._chunks])
        self._vectors = vectors

    def search(self, question: str) -> tuple[Chunk, ...]:
        scores = self._rows @ self._vectors([question])[0]
        return tuple(self._chunks[row] for row in np.argsort(-scores, kind="stable")[:FOUND])


def _by_words(named: tuple[str, str]) -> tuple[list[str], str]:
    return named[1].split(), named[0]


def _chunk(id: str, text: str) -> Chunk:
    return Chunk(ChunkRef(id, content_version(text), "docs"), text)
