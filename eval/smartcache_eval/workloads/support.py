"""A support desk of our own: every sort of trap, each with the twin that must hit. It ships, and needs no folder."""

from __future__ import annotations

from pathlib import Path

from smartcache_eval.steps import Step
from smartcache_eval.workloads import own


def steps(folder: Path) -> list[Step]:
    """`folder` is not used."""
    return own.steps(Path(__file__).with_name("support.jsonl"))
