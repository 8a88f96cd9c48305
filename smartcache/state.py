"""The vectors of a dialogue: how it is found, and what of it is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smartcache.dialogue import Dialogue
from smartcache.digest import MAX_STANDING, Digest, kept_turns
from smartcache.embedding import RememberedVectors, Vector, unit

QUESTION_SHARE = 0.6  # of the state's vector, where the question leans on the dialogue and no digest was learned
LEARNED_ROWS = 5
MAX_EMBEDDED = 48  # turns whose mean is taken: of a longer dialogue the last ones


@dataclass(frozen=True)
class State:
    """The vectors of a dialogue: its `question`, and the mean of the `context` it leans on by the rules (None where it
    stands alone). With a digest also `meaning`, which is the digest, `said`, the mean of all that the user said before,
    `last`, the turn before the question, and `standing`, how surely the question stands alone.
    """

    question: Vector
    context: Vector | None = None
    meaning: Vector | None = None
    said: Vector | None = None
    last: Vector | None = None
    standing: float | None = None

    @classmethod
    def of(cls, dialogue: Dialogue, vectors: RememberedVectors, digest: Digest | None = None) -> State:
        """Embeds the question and each turn by itself, so that a turn is embedded once."""
        turns = [text for role, text in dialogue.context if role == "user"] or [text for _, text in dialogue.context]
        turns = turns if len(turns) <= MAX_EMBEDDED else [*turns[:2], *turns[2 - MAX_EMBEDDED :]]
        asked = dialogue.asking.text if dialogue.asking else dialogue.question
        is_read = digest and not dialogue.is_chinese and all(vectors.fits(text) for _, text in dialogue.history)
        spoken = (
            dialogue.spoken[-MAX_EMBEDDED:] if is_read else ()
        )  # a question that leans on what is too long never comes here
        read = kept_turns(dialogue.history) if spoken else []
        texts = [*turns, *(text for text, _ in read), *(text for _, text in spoken)]
        question, *rest = vectors([asked, *texts])
        known = dict(zip(texts, rest, strict=True))
        state = cls(question, _mean([known[text] for text in turns]))
        if digest is None:
            return state
        if dialogue.is_chinese:
            return cls(state.question, state.context, standing=MAX_STANDING)
        meaning, standing = digest(question, [known[text] for text, _ in read], [place for _, place in read])
        said = _mean([known[text] for role, text in spoken if role == "user"])
        return cls(question, state.context, meaning, said, known[spoken[-1][1]] if spoken else None, standing)

    @classmethod
    def from_bytes(cls, raw: bytes, dimension: int) -> State:
        """What `to_bytes` gave, for an embedder of the same dimension. Raises ValueError for anything else."""
        if len(raw) != _learned_bytes(dimension):
            question, *others = np.frombuffer(raw, dtype=np.float32).reshape(-1, dimension)
            return cls(question, others[0] if others else None)
        halves = np.frombuffer(raw, dtype=np.float16, count=LEARNED_ROWS * dimension)
        question, *others = halves.astype(np.float32).reshape(LEARNED_ROWS, dimension)
        context, meaning, said, last = (row if row.any() else None for row in others)
        return cls(question, context, meaning, said, last, float(np.frombuffer(raw[-4:], dtype=np.float32)[0]))

    def to_bytes(self) -> bytes:
        """In float32, or in float16 where there is a digest, five rows long."""
        if self.standing is None:
            return self.question.tobytes() + (b"" if self.context is None else self.context.tobytes())
        none = np.zeros_like(self.question)
        rows = [self.question, *(none if row is None else row for row in self._others)]
        return np.stack(rows).astype(np.float16).tobytes() + np.float32(self.standing).tobytes()

    @cached_property
    def vector(self) -> Vector:
        """By which the dialogue is found: one unit vector."""
        if self.meaning is not None:
            return unit(self.meaning)  # in float16 its length is only near one
        if self.context is None:
            return unit(self.question)
        return unit(QUESTION_SHARE * self.question + (1 - QUESTION_SHARE) * self.context)

    @property
    def _others(self) -> Sequence[Vector | None]:
        return self.context, self.meaning, self.said, self.last


def _learned_bytes(dimension: int) -> int:
    return 2 * LEARNED_ROWS * dimension + 4


def _mean(rows: Sequence[Vector]) -> Vector | None:
    return unit(np.mean(rows, axis=0)) if len(rows) else None
