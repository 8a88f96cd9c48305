"""How near a chunk must come to change what a search found: which additions matter, and which do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from smartcache.embedding import Embedder, RememberedVectors, Vector
from smartcache.types import Chunk

MAX_SCORE_DIFFERENCE = 0.02  # of a retriever's score and our similarity; where it is more, they are not of one kind
ROUNDING = 1e-4
MAX_COMPARED = 4_000_000  # similarities held at a time


@dataclass(frozen=True, slots=True)
class RetrievalSimilarity:
    """How the application's search ranks: it finds the `count` chunks nearest to the query by `embedder`, whole texts
    compared with the whole query.

    With it, an addition leaves the answers that it lies too far from. Say it only of a search that is just so: one that
    filters, reranks, mixes in keywords or spreads its results may find what lies farther. What lies as near as the
    farthest found counts as nearer; but where a search breaks such ties by id, a text that only moved to another id
    may change what it finds, and a plain `lookup` serves its answers all the same. Where fewer than `count` were found,
    or with scores of another kind, nothing is compared: any addition to a source of the answer ends it for a plain
    `lookup`, which sees neither an edit nor an addition elsewhere.
    """

    embedder: Embedder
    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ValueError(f"count is how many chunks the search finds, 1 or more, not {self.count!r}")
        if not callable(self.embedder) or not hasattr(self.embedder, "name"):
            raise TypeError("embedder is the Embedder that the search compares by")

    @property
    def name(self) -> str:
        return f"{self.count} nearest by {self.embedder.name}"


def checked_reaches(similarity: RetrievalSimilarity | None) -> Reaches | None:
    """Raises TypeError for what is no RetrievalSimilarity."""
    if similarity is not None and not isinstance(similarity, RetrievalSimilarity):
        raise TypeError(f"retrieval_similarity is a RetrievalSimilarity(embedder, count), not {similarity!r}")
    return Reaches(similarity) if similarity else None


@dataclass(frozen=True, slots=True)
class Reach:
    """The similarity below which nothing comes before what a search found, and the vector of its query, by a similarity
    with a name."""

    similarity: str
    weakest: float
    query: Vector = field(compare=False)


@dataclass(frozen=True, slots=True)
class Farther:
    """The entries whose questions lie farther from each of `chunks` than all that their searches found."""

    chunks: frozenset[Chunk]
    entries: frozenset[int]


class Reaches:
    """Measures reaches by one similarity."""

    def __init__(self, similarity: RetrievalSimilarity) -> None:
        self.similarity = similarity
        self._vectors = RememberedVectors(similarity.embedder)

    def of(self, query: str, found: Sequence[Chunk]) -> Reach | None:
        """None where anything that comes in might be found: there were fewer chunks than the search asks for, or the
        scores it gave them are of another kind."""
        if len({chunk.ref for chunk in found}) < self.similarity.count:
            return None
        vector, *others = self._vectors([query, *map(_searched, found)])
        own = np.stack(others) @ vector
        scores = np.array([own[n] if chunk.score is None else chunk.score for n, chunk in enumerate(found)])
        if not (difference := np.abs(scores - own).max()) <= MAX_SCORE_DIFFERENCE:
            return None
        # what comes in has no score yet, and may be scored higher than we measure by as much as is let pass
        margin = MAX_SCORE_DIFFERENCE if difference > ROUNDING else 0.0
        return Reach(self.similarity.name, float(scores.min()) - margin, vector)

    def farther(self, chunks: frozenset[Chunk], reaches: Iterable[tuple[int, float, Vector]]) -> Farther:
        known = list(reaches)
        if any(not _searched(chunk).strip() for chunk in chunks):  # a watch's word for a text that may be any
            return Farther(chunks, frozenset())
        if not known or not chunks:
            return Farther(chunks, frozenset(id for id, _, _ in known))
        ids, weakest, queries = zip(*known, strict=True)
        texts = np.stack(self._vectors(sorted(set(map(_searched, chunks)))))
        nearest, step = list[float](), max(1, MAX_COMPARED // len(texts))
        for start in range(0, len(queries), step):
            nearest += (np.stack(queries[start : start + step]) @ texts.T).max(axis=1).tolist()
        compared = zip(ids, nearest, weakest, strict=True)
        return Farther(chunks, frozenset(id for id, near, bar in compared if near < bar - ROUNDING))

    def forget_texts(self) -> None:
        self._vectors.clear()


def _searched(chunk: Chunk) -> str:
    """The text that the search compares: an adapter's chunk may know it to be another than the prompt's."""
    return str(getattr(chunk, "searched_text", chunk.text))
