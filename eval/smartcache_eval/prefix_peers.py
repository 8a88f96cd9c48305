"""The peers that are installed, each in a process and, where it cannot share ours, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from smartcache.models import LocalModel
from smartcache.models.bundled import bundled_gguf_path, bundled_model_path
from smartcache_eval.peers import runs
from smartcache_eval.prefix_report import PeerCase, PeerReport, PrefixSizes
from smartcache_eval.word_prompts import WordPrompts

MAX_SECONDS = 1_200  # for one peer


def measured_peers(
    model: LocalModel, words: WordPrompts, sizes: PrefixSizes, pythons: Sequence[Path]
) -> Iterator[PeerReport]:
    """On the bundled model, with prompts of the sizes that ours gets; whatever the environments of `pythons` have."""
    order = None
    for python in pythons:
        for name in runs.PEERS:
            order = order or json.dumps(_order(model, words, sizes))
            if report := _run(python, name, order):
                yield report


def _run(python: Path, name: str, order: str) -> PeerReport | None:
    # -P: a peer must not find our files as its own modules
    command = [str(python), "-P", str(Path(runs.__file__).resolve()), name]
    try:
        done = subprocess.run(command, input=order, capture_output=True, text=True, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        return PeerReport(name, "", (), f"not done after {MAX_SECONDS} seconds")
    if done.returncode == runs.NOT_INSTALLED:
        return None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return PeerReport(name, "", (), f"ended with exit code {done.returncode}: {last}"[:200])
    told = json.loads(done.stdout)
    return PeerReport(told["name"], told["version"], tuple(PeerCase(**case) for case in told["cases"]), told["trouble"])


def _order(model: LocalModel, words: WordPrompts, sizes: PrefixSizes) -> dict[str, Any]:
    return {
        "model": str(bundled_model_path()),
        "gguf": str(bundled_gguf_path()),
        "context_tokens": max(sizes.shared) + sizes.new + 64,
        "cases": [
            {
                "shared": shared,
                "new": sizes.new,
                "rounds": [{"prompts": _prompts(model, words, shared, sizes)} for _ in range(sizes.rounds)],
            }
            for shared in sizes.shared
        ],
    }


def _prompts(model: LocalModel, words: WordPrompts, shared: int, sizes: PrefixSizes) -> list[dict[str, Any]]:
    beginning = words.text(shared - words.first_tokens)
    texts = [beginning + ending for ending in words.endings(2 + sizes.warm_runs, sizes.new)]
    return [{"text": text, "ids": model.tokens_of(text)} for text in texts]
