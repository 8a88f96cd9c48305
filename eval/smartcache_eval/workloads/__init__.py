"""The workloads by name. One more is a small file with `steps(folder)` beside these, and a line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from smartcache_eval.folder import UnreadableWorkload, public_folder
from smartcache_eval.steps import Step
from smartcache_eval.workloads import (
    alexa_cqr,
    banking,
    canard,
    cast,
    clinc,
    convquestions,
    disfl_qa,
    dstc9,
    kdconv,
    mqr,
    own,
    sgd,
    sharc,
    support,
)

Steps = Callable[[Path], list[Step]]


def workloads() -> Mapping[str, Steps]:
    """Name to the function that reads it from the folder of public data; `support` needs no folder."""
    return {
        "support": support.steps,
        "convquestions": convquestions.steps,
        "sgd": sgd.steps,
        "sharc": sharc.steps,
        "kdconv": kdconv.steps,
        "dstc9": dstc9.steps,
        "canard": canard.steps,
        "cast": cast.steps,
        "alexa-cqr": alexa_cqr.steps,
        "banking": banking.steps,
        "clinc": clinc.steps,
        "disfl-qa": disfl_qa.steps,
        "mqr": mqr.steps,
    }


def read_workload(name: str) -> list[Step]:
    """A workload by name, or one of your own from a file of JSON lines (`own.py` says which)."""
    known = workloads()
    if name in known:
        return known[name](public_folder())
    if Path(name).is_file():
        return own.steps(Path(name))
    raise UnreadableWorkload(
        f"{name!r} is no workload and no file: use one of {', '.join(known)}, or a file of your own"
    )
