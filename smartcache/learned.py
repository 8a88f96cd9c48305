"""What was learned for one embedder: the dialogue state, and how surely two dialogues have one answer."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from smartcache.digest import Digest
from smartcache.errors import MissingExtra
from smartcache.intervals import wilson
from smartcache.lexical import BY_LETTERS
from smartcache.policy import NOTHING
from smartcache.signals import MONOTONE, Signals
from smartcache.telling import Telling
from smartcache.trees import Trees

log = logging.getLogger("smartcache")

MIN_MEANING = 0.5  # pairs that lie farther apart were not learned from, and are none
MIN_MEASURED = 300  # hits of a kind, for its share to tell anything
PARTS = (2, 3, 4, 6, 8, 12, 16)  # of the bound, that a kind's share may come to: the largest that shows the bound
FORMAT = "smartcache-learned-1"
BUNDLED = Path(__file__).with_name("weights") / "all-MiniLM-L6-v2.safetensors"


@dataclass(frozen=True)
class Curve:
    """What was measured on questions that nothing was learned from, for one kind of pair: how many would have been
    served from a confidence on, and how many of them wrongly. Falling confidences, so the counts rise."""

    confidence: tuple[float, ...]
    served: tuple[int, ...]
    wrong: tuple[int, ...]

    def lowest(self, share: float) -> tuple[float, int, int]:
        """The lowest confidence from which on no more than a `share` was wrong, with how many would have been served
        and how many of them wrongly; above 1, and none, where there is none."""
        points = zip(self.confidence, self.served, self.wrong, strict=True)
        kept = [point for point in points if point[1] >= MIN_MEASURED and point[2] <= share * point[1]]
        return min(kept, default=(NOTHING, 0, 0))


@dataclass(frozen=True)
class Learned:
    """Weights for the vectors of the embedder named `embedder`. `curves`: by how many of the two questions
    lean on what was said before them, 0 to 2 (see `kind_of`)."""

    embedder: str
    digest: Digest
    telling: Telling
    trees: Trees
    curves: tuple[Curve, Curve, Curve]
    name: str

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `smartcache-eval train` wrote. Raises ValueError where the file is something else."""
        try:
            from safetensors import SafetensorError, safe_open
        except ModuleNotFoundError as missing:
            raise MissingExtra("safetensors", "local") from missing
        try:
            with safe_open(str(path), framework="numpy") as file:
                about: dict[str, str] = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        except FileNotFoundError:
            raise
        except (SafetensorError, OSError) as other:
            raise ValueError(f"{path} holds no weights: run  smartcache-eval train") from other
        if about.get("format") != FORMAT or about.get("signals") != json.dumps([*MONOTONE]):
            raise ValueError(f"{path} was not made for this version: run  smartcache-eval train")
        if "checksum" in about and about["checksum"] != checksum(tensors):
            raise ValueError(f"{path} is damaged: install smartcache-llm anew, or run  smartcache-eval train")
        digest = {name: np.asarray(rows, np.float32) for name, rows in _under("digest.", tensors)}
        trees = dict(_under("trees.", tensors))
        curves = [_curve(tensors[f"curve.{kind}"]) for kind in range(3)]
        return cls(
            about["embedder"],
            Digest(digest),
            Telling(tensors["telling.weight"].astype(np.float32), float(about["telling_bias"])),
            Trees(**trees, start=float(about["start"]), depth=int(about["depth"])),
            (curves[0], curves[1], curves[2]),
            about["name"],
        )

    @classmethod
    def find(cls, embedder: str) -> Self | None:
        """What comes with the package for the embedder of that name; None where nothing fits it."""
        found = cls.bundled() if embedder.startswith(BUNDLED.stem) else None
        return found if found and found.fits(embedder) else None

    @classmethod
    def bundled(cls) -> Self | None:
        """What comes with the package, for its bundled embedder; None where it cannot be read here."""
        try:
            return cls.load(BUNDLED)
        except MissingExtra:
            return None
        except (ValueError, OSError) as damaged:
            log.warning("near questions are judged by their similarity alone: %s", damaged)
            return None

    def fits(self, embedder: str) -> bool:
        """Whether the weights were learned from the vectors of the embedder of that name, whatever it makes of Chinese,
        about which they are not asked."""
        return embedder.removesuffix(BY_LETTERS) == self.embedder

    def confidence(self, signals: Signals) -> float:
        """How surely two dialogues have one answer, from 0 to 1."""
        return self._sure(_row(signals))

    def sure(self, signals: Signals) -> float:
        """The confidence, and 1 where the two are the same question."""
        return 1.0 if is_same(signals.by_name()) else self.confidence(signals)

    def min_confidence(self, kind: int, max_wrong: float) -> float:
        """From which confidence on a kind of pair is served; above 1 where none is.

        All kinds together show the bound by the upper end of their 95 % interval, and of each no more than half of it
        was wrong, so that none lives on the others.
        """
        if max_wrong not in self._needed:
            self._needed[max_wrong] = self._min_confidences(max_wrong)
        return self._needed[max_wrong][kind]

    def _min_confidences(self, max_wrong: float) -> tuple[float, ...]:
        for part in PARTS:
            points = [curve.lowest(max_wrong / part) for curve in self.curves]
            if _upper(sum(wrong for _, _, wrong in points), sum(served for _, served, _ in points)) <= max_wrong:
                return tuple(at for at, _, _ in points)
        return (NOTHING,) * len(self.curves)

    @cached_property
    def _needed(self) -> dict[float, tuple[float, ...]]:
        return {}

    def at_best(self, known: Mapping[str, float]) -> float:
        """The confidence where all signals but the known ones were as good as can be: none is above it."""
        row = self._best.copy()
        for name, value in known.items():
            row[_PLACES[name]] = value
        return self._sure(row)

    def _sure(self, row: NDArray[np.float32]) -> float:
        return 1 / (1 + math.exp(-self.trees.score(row)))

    def parts(self, signals: Signals) -> dict[str, float]:
        """What each signal adds to the logit of the confidence, the weightiest first."""
        parts = dict(zip(MONOTONE, self.trees.parts(_row(signals)).tolist(), strict=True))
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))

    @cached_property
    def _best(self) -> NDArray[np.float32]:
        return np.array([math.inf * sign if sign else 0.0 for sign in MONOTONE.values()], np.float32)


_PLACES = {name: place for place, name in enumerate(MONOTONE)}


def is_same(signals: Mapping[str, Any]) -> Any:
    """Whether two questions have the same words and stand alone, no rule is against it, and neither user told more of
    their case, as far as known. On arrays row by row."""
    is_one = (signals["same_words"] == 1) & (signals["histories"] == 0) & (signals["facts_agree"] == 1)
    return is_one & (signals.get("told_beside", 0.0) == 0)


def kind_of(signals: Mapping[str, Any]) -> Any:
    """By which a pair has its curve: how many of the two questions lean on what was said before them. One of two does
    too where only one was asked after anything, and the other says more, all of which was said there: "Which are free?"
    after "What is worth seeing in Rome?" is "Which sights in Rome are free?". On arrays row by row."""
    is_told = (signals["told_there"] == 1) & (signals["shared_there"] < 1)
    return signals["histories"] + ((signals["histories"] == 0) & (signals["one_after"] == 1) & is_told)


def _upper(wrong: int, served: int) -> float:
    """The upper end of the 95 % interval of wrong answers per hit."""
    interval = wilson(wrong, served)
    return interval[1] if interval else 1.0


def _row(signals: Signals) -> Any:
    return np.array(signals.values(), np.float32)


def checksum(tensors: Mapping[str, Any]) -> str:
    """By which weights are told apart, and damage is seen: of their names and bytes."""
    content = hashlib.sha256()
    for name in sorted(tensors):
        content.update(name.encode() + b"\0" + np.ascontiguousarray(tensors[name]).tobytes())
    return content.hexdigest()


def _under(start: str, tensors: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name.removeprefix(start), rows) for name, rows in tensors.items() if name.startswith(start))


def _curve(rows: Any) -> Curve:
    confidence, served, wrong = rows.T.tolist()
    return Curve(tuple(confidence), tuple(map(int, served)), tuple(map(int, wrong)))
