"""Documents that change under a cache: which answers were served that no longer held, and which were lost that did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from smartcache import Answer, Chunk, ChunkRef, KnowledgeUpdate, Request, RetrievalSimilarity, SmartCache, Turn
from smartcache.keys import content_version
from smartcache.knowledge import Basis, Verdict
from smartcache_eval.histories import LITERAL, History, Texts, Version
from smartcache_eval.vectors import KnownVectors

FOUND = 4
# by name: whether a search is at hand, whether its similarity is known, and whether questions come in other words
MODES = {
    "lookup": (False, False, False),
    "lookup, similarity known": (False, True, False),
    "lookup, reworded": (False, False, True),
    "answer": (True, False, False),
    "answer, similarity known": (True, True, False),
    "answer, reworded": (True, False, True),
}
WORDINGS = ("{}", "Please tell me: {}", "{} Thanks a lot.", "Hello! {}", "Could you please tell me: {}")


@dataclass
class Count:
    """`stale`: served, or given to the model from a remembered search, though what is found for the question that it
    was made for is other text now. `surfaced`: of those that are not counted as stale, served though a document that
    was there when the answer was made was edited and is found now, while all text that it was made from is still there;
    a plain lookup cannot see that where no similarity is known.
    `still_right`: those of all `asked` that an answer was kept for that would be made from the same text now;
    `wrongly_dropped`: of these, not served, which for questions in other words may also be that they are not near
    enough."""

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
    wordings = [wording.format(question) for question in history.questions for wording in WORDINGS]
    vectors.learn([*wordings, *(text for version in history.versions for text in version.texts.values())])
    result = Played(history.name, len(history.versions), len(history.questions))
    shelves = [_Shelf(version.texts, vectors) for version in history.versions]
    truths = [{question: shelf.search(question) for question in history.questions} for shelf in shelves]
    for mode, (searches, knows, rewords) in MODES.items():
        similarity = RetrievalSimilarity(vectors, FOUND) if knows else None
        how: Literal["semantic", "exact"] = "semantic" if rewords else "exact"
        with SmartCache.open(embedder=vectors, mode=how, retrieval_similarity=similarity, strict=True) as cache:
            walk = _Walk(cache, _Search(history.questions), with_search=searches, rewords=rewords)
            result.modes[mode] = walk.over(history, truths, sees_edits=knows or searches)
    return result


class _Search:
    """What is found in one version after the other, by any wording of a question: one object, as an application has,
    so that what it found is remembered."""

    def __init__(self, questions: Sequence[str]) -> None:
        self._meant = {wording.format(question): question for question in questions for wording in WORDINGS}
        self.now: Mapping[str, tuple[Chunk, ...]] = {}
        self.count = 0

    def __call__(self, query: str) -> tuple[Chunk, ...]:
        self.count += 1
        return self.now[self._meant[query]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """`question` and `made`: what the answer was made for, and from; `version`: by number, the one that it was made of.
    `is_served`: it is no new one."""

    question: str
    made: tuple[Chunk, ...]
    version: int
    is_served: bool
    searches: int


class _Walk:
    """One cache, asked everything of every version."""

    def __init__(self, cache: SmartCache, search: _Search, *, with_search: bool, rewords: bool) -> None:
        self._cache, self._search = cache, search
        self._with_search, self._rewords = with_search, rewords
        self._version = 0
        self._answers: list[tuple[str, tuple[Chunk, ...], int]] = []  # by number, which is the answer's text

    def over(
        self, history: History, truths: Sequence[dict[str, tuple[Chunk, ...]]], *, sees_edits: bool
    ) -> dict[str, Count]:
        counts, last = {"all": Count()}, dict[str, tuple[Chunk, ...]]()
        before, came = dict[str, str](), dict[str, int]()
        for number, (version, truth) in enumerate(zip(history.versions, truths, strict=True)):
            news, self._search.now, self._version = update_between(before, version.texts), truth, number
            if news.added or news.changed or news.removed:
                self._cache.update_knowledge(news)
            came = _came(came, before, version.texts, number)
            wording = WORDINGS[number % len(WORDINGS)] if self._rewords else WORDINGS[0]
            count = counts.setdefault(version.kind, Count())
            for question in history.questions:
                asked = self._ask(question, wording.format(question))
                for one in (counts["all"], count):
                    _note(one, asked, last.get(question), truth[question], truth[asked.question],
                          None if sees_edits else (version.texts, came))  # fmt: skip
                if not asked.is_served:
                    last[question] = asked.made
            before = dict(version.texts)
        return counts

    def _ask(self, question: str, wording: str) -> _Asked:
        def generate(request: Request, chunks: tuple[Chunk, ...]) -> Answer:
            self._answers.append((question, chunks, self._version))
            return Answer(str(len(self._answers) - 1))

        request, before = Request([Turn("user", wording)]), self._search.count
        hit = None if self._with_search else self._cache.lookup(request)
        answer = hit or self._cache.answer(request, generate, search=self._search)
        made_for, made, number = self._answers[int(answer.text)]
        is_served = answer.is_hit if self._with_search else hit is not None
        return _Asked(made_for, made, number, is_served, self._search.count - before)


def _note(
    count: Count,
    asked: _Asked,
    kept: tuple[Chunk, ...] | None,
    now: tuple[Chunk, ...],
    found: tuple[Chunk, ...],
    there: tuple[Texts, Mapping[str, int]] | None,
) -> None:
    """`kept`: what the last answer to the question was made from; `now`: what is found for it; `found`: what for the
    question that the answer was made for; `there`: all that is there, and since when, where an edit that surfaces is
    not counted as stale."""
    count.asked += 1
    count.searches += asked.searches
    count.served += asked.is_served
    if kept is not None:
        is_right = _words(kept) == _words(now)
        count.still_right += is_right
        count.wrongly_dropped += is_right and not asked.is_served
    if _words(asked.made) != _words(found):
        surfaced = asked.is_served and there is not None and _only_surfaced(asked, found, *there)
        count.surfaced += surfaced
        count.stale += not surfaced


def _only_surfaced(asked: _Asked, found: Sequence[Chunk], there: Texts, came: Mapping[str, int]) -> bool:
    """Whether only the ranking changed, by an edit: all that the answer was made from is there in the same words, and
    whatever else is found now is a document that was there when it was made."""
    made = _words(asked.made)
    new = [chunk for chunk in found if _words_of(chunk.text) not in made]
    return {_words_of(text) for text in there.values()}.issuperset(made) and all(
        came[chunk.ref.id] <= asked.version for chunk in new
    )


def _came(came: Mapping[str, int], before: Texts, after: Texts, number: int) -> dict[str, int]:
    """By id, the version with which each document of `after` came, `number` for what is new but for its name."""
    former = {_words_of(text): came[id] for id, text in before.items() if id not in after}
    return {id: came[id] if id in before else former.get(_words_of(text), number) for id, text in after.items()}


def _words(chunks: Iterable[Chunk]) -> list[str]:
    """What chunks say, whatever they are called and however they are laid out: in code and between quotation marks
    white space says something."""
    return sorted(_words_of(chunk.text) for chunk in chunks)


def _words_of(text: str) -> str:
    return " ".join(map(_said, LITERAL.split(text)))


def _said(part: str) -> str:
    return part if LITERAL.fullmatch(part) else " ".join(part.split())


def update_between(before: Texts, after: Texts) -> KnowledgeUpdate:
    """What an application that compares two versions by id would tell."""
    added = [_chunk(id, text) for id, text in after.items() if id not in before]
    changed = [_chunk(id, text) for id, text in after.items() if before.get(id, text) != text]
    return KnowledgeUpdate(added, changed, before.keys() - after.keys(), source="docs")


def check_share_of_hit(history: History, vectors: KnownVectors) -> float:
    """The time that an exact hit over a file takes to hear what other processes told and to judge freshness, as a share
    of its own: the quickest kind of hit, so the largest share; with an update since the answer was made, after every
    update of the history. Of medians: what a read takes with the news, beyond one without, and a judge within a hit.
    """
    last = Version(dict(history.versions[-1].texts))
    shelf, before = _Shelf(last.texts, vectors), dict[str, str]()
    with TemporaryDirectory() as folder, SmartCache.open(folder, mode="exact", strict=True) as cache:
        for version in history.versions:
            cache.update_knowledge(update_between(before, version.texts))
            before = dict(version.texts)
        requests = [Request([Turn("user", question)]) for question in history.questions]
        for request in requests:
            cache.answer(request, lambda request, chunks: Answer("made anew"), search=shelf.search)
        cache.update_knowledge(KnowledgeUpdate(changed=[_chunk("elsewhere", "an edit")], source="docs"))
        return _check_share(cache, requests * 5)


def _check_share(cache: SmartCache, requests: Sequence[Request]) -> float:
    alone, told, judged, hits = (list[float]() for _ in range(4))
    knowledge, read, judge = cache._knowledge, cache._entries.by_key, cache._knowledge.judge

    def timed(basis: Basis) -> Verdict:
        started = perf_counter()
        verdict = judge(basis)
        judged.append(perf_counter() - started)
        return verdict

    for turn, request in enumerate(requests):
        key = cache._desk.read(request).key
        hits.append(_seconds(partial(cache.lookup, request)))
        read(key)  # so that neither of the two is the first after other work
        reads = [(alone, partial(read, key)), (told, partial(read, key, knowledge))]
        for times, call in reads if turn % 2 else reversed(reads):
            times.append(_seconds(call))
        with patch.object(knowledge, "judge", timed):
            cache.lookup(request)
    return (median(told) - median(alone) + median(judged)) / median(hits)


def _seconds(call: Callable[[], object]) -> float:
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
