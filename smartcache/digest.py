"""The learned dialogue state: what a question means after what was said, in the space of the embedder's vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smartcache.embedding import Vector, unit

MAX_TURNS = 8  # of a dialogue: the first two, and the last ones
MAX_STANDING = 8.0  # a logit: beyond that it makes no difference

Rows = NDArray[np.float32]
Place = tuple[float, float, float]  # who said it (0 the user, 1 the assistant), how long ago (0 to 1), an opening (1)


@dataclass(frozen=True, slots=True)
class Digest:
    """A small attention of the question over the vectors of the turns before it, trained to predict the vector of the
    question's rewrite that stands alone.

    `weights`: by name, of vectors of dimension w, d inner units and h heads: `key.weight` (d, w + 3), `query.weight`
    (d, w), `null` (h,), `own.weight` (d, w), `mix.weight` (d, h w), `gate.weight` (h + 1, d), `out.weight` (w, d), and
    a `.bias` for each but `null`.
    """

    weights: Mapping[str, Rows]

    def __call__(self, question: Vector, turns: Sequence[Vector], places: Sequence[Place]) -> tuple[Vector, float]:
        """The unit vector of what `question` means after `turns`, and how surely it stands alone: a logit, at most
        MAX_STANDING, which it is where nothing was said before."""
        if not turns:
            return question, MAX_STANDING
        said, null = np.stack(turns), self.weights["null"]
        keys = self._layer("key", np.concatenate([said, np.array(places, np.float32)], axis=1))
        keys = keys.reshape(len(said), len(null), -1)
        asks = self._layer("query", question).reshape(len(null), -1)
        scores = np.einsum("thd,hd->ht", keys, asks) / np.sqrt(np.float32(keys.shape[-1]))
        leaned_on = _softmax(np.concatenate([scores, null[:, np.newaxis]], axis=1))[:, :-1] @ said
        inner = _gelu(self._layer("own", question) + self._layer("mix", leaned_on.ravel()))
        *gates, standing = self._layer("gate", inner)
        shares = 1 / (1 + np.exp(-np.array(gates, np.float32)))
        meaning = question + shares @ leaned_on + self._layer("out", inner)
        return unit(meaning), float(np.clip(standing, -MAX_STANDING, MAX_STANDING))

    def _layer(self, name: str, rows: Rows) -> Rows:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        if rows.ndim == 1:
            return weight @ rows + bias
        # row by row: the threads of a matrix product wait for each other longer than so little takes
        return np.stack([weight @ row for row in rows]) + bias


def kept_turns(history: Sequence[tuple[str, str]]) -> list[tuple[str, Place]]:
    """The turns that are read, of (role, text): the first two and the last ones, each text with its place."""
    count = len(history)
    kept = range(count) if count <= MAX_TURNS else [0, 1, *range(count - MAX_TURNS + 2, count)]
    return [(history[n][1], _place(n, count, history[n][0])) for n in kept]


def _place(number: int, count: int, role: str) -> Place:
    return 0.0 if role == "user" else 1.0, min(1.0, (count - number) / 10), float(number < 2)


def _softmax(scores: Rows) -> Rows:
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)


def _gelu(rows: Rows) -> Rows:
    """By its usual approximation, which numpy has no error function for; the training uses the same."""
    return np.asarray(0.5 * rows * (1 + np.tanh(np.sqrt(2 / np.pi) * (rows + 0.044715 * rows**3))), np.float32)
