"""From the parts for choosing of the workloads to a file of weights: nothing is learned from what is reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from smartcache.embedding import RememberedVectors
from smartcache.learned import FORMAT, Curve, checksum
from smartcache.lexical import BY_LETTERS
from smartcache.signals import MONOTONE
from smartcache_eval.steps import part_of
from smartcache_eval.training.attention import train
from smartcache_eval.training.boosting import curves, grow
from smartcache_eval.training.examples import FOLDS, examples
from smartcache_eval.training.pairs import Pairs, pairs
from smartcache_eval.training.telling import labelled, learn_telling
from smartcache_eval.vectors import KnownVectors
from smartcache_eval.workloads import workloads

# Chinese is decided by rules; what is small is measured, not learned from.
LEFT_OUT = ("kdconv", "support")


def learn(folder: Path, vectors: KnownVectors, target: Path, *, seed: int, tell: Callable[[str], object]) -> None:
    """Writes the weights for the vectors of one embedder."""
    steps = {
        name: [step for step in read(folder) if part_of(step.group) == "choose"]
        for name, read in workloads().items()
        if name not in LEFT_OUT
    }
    tell(f"{sum(map(len, steps.values())):,} steps of {len(steps)} workloads")
    vectors.learn(turn.text for of in steps.values() for step in of for turn in step.turns)
    found = examples(steps, folder, seed=seed)
    vectors.learn(side.question for example in found for side in (example.left, example.right))
    remembered = RememberedVectors(vectors, max_texts=1_000_000)

    def embed(text: str) -> Any:
        return remembered([text])[0]

    digests = {
        fold: train(examples(steps, folder, seed=seed, without=fold), embed, vectors.dimension, seed)
        for fold in range(FOLDS)
    }
    tell(f"{FOLDS} digests, each without a third of the groups")
    sentences = labelled(folder if "sgd" in steps else None, steps.get("sharc", ()))
    vectors.learn(text for text, _ in sentences)
    telling = learn_telling(sentences, embed)
    rows: dict[str, Pairs] = {}
    for name, of in steps.items():
        rows[name] = pairs(of, digests, telling, remembered, seed)
        tell(f"{name}: {len(rows[name].equal):,} pairs, {rows[name].equal.mean():.0%} of them with one answer")
    measured = curves(rows, seed)
    digest, trees = train(found, embed, vectors.dimension, seed), grow(list(rows.values()), seed)
    tensors: dict[str, Any] = {f"digest.{name}": weight.astype(np.float16) for name, weight in digest.weights.items()}
    tensors["telling.weight"] = telling.weight
    tensors |= {f"trees.{name}": getattr(trees, name) for name in ("feature", "threshold", "left", "right", "value")}
    tensors |= {f"curve.{kind}": _points(curve) for kind, curve in enumerate(measured)}
    _write(
        target,
        tensors,
        {
            "embedder": vectors.name.removesuffix(BY_LETTERS),
            "start": repr(trees.start),
            "depth": str(trees.depth),
            "telling_bias": repr(telling.bias),
        },
    )
    vectors.save()


def _points(curve: Curve) -> Any:
    return np.array([curve.confidence, curve.served, curve.wrong], np.float64).T.copy()


def _write(target: Path, tensors: Mapping[str, Any], about: Mapping[str, str]) -> None:
    from safetensors.numpy import save_file

    target.parent.mkdir(parents=True, exist_ok=True)
    stated = {
        "format": FORMAT,
        "name": f"digest {checksum(tensors)[:12]}",
        "checksum": checksum(tensors),
        "signals": json.dumps(list(MONOTONE)),
        "learned_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    save_file(dict(tensors), str(target), metadata={**about, **stated})
