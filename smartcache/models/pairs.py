"""A verifier from any model that classifies pairs: entailment, duplicate questions, a cross-encoder's score."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from smartcache.dialogue import Dialogue
from smartcache.errors import MissingModel
from smartcache.models.sentence import loaded


class PairClassifier:
    """`SmartCache.open(verifier=PairClassifier(folder))`: two questions are one where the model says so of both orders,
    each question after what the user said before if it leans on that.

    `folder`: a sequence classifier with its tokenizer, as transformers saves it; torch is loaded at the first call. Of
    several labels the probability of `label` counts, in capitals or not, and the sigmoid of one that is alone: from
    `min_score` on. What a model is sure of is its own: choose `min_score` on pairs of yours. A pair that is longer than
    the model reads does not hold. Any number of threads may call; they take turns.
    """

    def __init__(
        self, folder: str | Path, *, label: str = "entailment", min_score: float = 0.5, device: str | None = None
    ) -> None:
        self._folder, self._min_score, self._device = Path(folder), min_score, device
        if not 0.0 < min_score <= 1.0:
            raise ValueError(f"min_score is a probability above 0 and up to 1, not {min_score!r}")
        labels = _labels(self._folder)
        if len(labels) > 1 and label.casefold() not in labels:
            raise ValueError(f"{folder} has no label {label!r}: use label= one of {', '.join(labels)}")
        self._column = labels.index(label.casefold()) if len(labels) > 1 else 0
        self._lock = Lock()
        self._loaded: Any = None
        self.name = f"{self._folder.name}, {label} from {min_score}"

    def __call__(self, asked: Dialogue, stored: Dialogue) -> bool:
        return self.score(asked.query, stored.query) >= self._min_score

    def score(self, one: str, other: str) -> float:
        """How surely the two texts are one, from 0 to 1: the lesser of both orders."""
        pairs = [(one, other), (other, one)]
        with self._lock:
            model = self._model()
            limit = getattr(model, "max_seq_length", None) or model.max_length
            if any(len(model.tokenizer(*pair, verbose=False)["input_ids"]) > limit for pair in pairs):
                return 0.0
            rows = model.predict(pairs, activation_fn=_as_it_is, show_progress_bar=False)
        return min(_probabilities(np.atleast_1d(row))[self._column] for row in rows)

    def _model(self) -> Any:
        """The model, loaded at the first call; the caller holds the lock."""
        if self._loaded is None:
            self._loaded = loaded("CrossEncoder", self._folder, device=self._device, local_files_only=True)
        return self._loaded


def _labels(folder: Path) -> list[str]:
    """The labels of a model by their columns; two without a name where its file tells of none."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingModel(f"{folder} is no folder of a sequence classifier: it has no config.json") from None
    named = config.get("id2label") or {"0": "label_0", "1": "label_1"}
    return [named[column].casefold() for column in sorted(named, key=int)]


def _probabilities(scores: Any) -> list[float]:
    if len(scores) == 1:
        return [float(1 / (1 + np.exp(-scores[0])))]
    shares = np.exp(scores - scores.max())
    return [float(share) for share in shares / shares.sum()]


def _as_it_is(scores: Any) -> Any:
    """In place of the model's own activation, which is not the same in all."""
    return scores
