"""What tells of a speaker's case, and what is small talk: learned from dialogues that say what each turn does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smartcache.telling import Telling, statements
from smartcache_eval.steps import Step, part_of
from smartcache_eval.workloads.sgd_dialogues import Said, dialogues

OWN_WEIGHT = 4  # of a sentence that was written for this
STRENGTH = 10.0  # of the fit: the inverse of its regularisation
Labelled = tuple[str, bool]  # a sentence, and whether it tells of its speaker's case


def learn_telling(found: Sequence[Labelled], embed: Callable[[str], NDArray[np.float32]]) -> Telling:
    from sklearn.linear_model import LogisticRegression

    model: Any = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2_000)
    model.fit(np.stack([embed(text) for text, _ in found]), [tells for _, tells in found])
    return Telling(model.coef_[0].astype(np.float32), float(model.intercept_[0]))


def labelled(folder: Path | None, scenarios: Sequence[Step]) -> list[Labelled]:
    """Sentences of users of the task dialogues in a folder, of scenarios ("My car was destroyed in a flood"), and our
    own."""
    chosen = (turns for name, turns in dialogues(folder) if part_of(name) == "choose") if folder else ()
    found = [one for turns in chosen for said in turns[::2] for one in _of_turn(said)]
    told = {step.turns[2].text for step in scenarios if step.sort in ("told as a scenario", "beside a scenario")}
    found += [(text, True) for one in sorted(told) for text in statements(one)]
    return found + OWN_WEIGHT * [*_own("cases.txt", True), *_own("small_talk.txt", False)]


def _of_turn(said: Said) -> Iterator[Labelled]:
    """None of a turn that asks, nor of one whose several sentences do not all tell: nobody says which of them does."""
    tells, texts = bool(said.acts & {"INFORM", "INFORM_INTENT"}), [*statements(said.text)]
    if "REQUEST" not in said.acts and not (tells and len(texts) > 1):
        yield from ((text, tells) for text in texts)


def _own(name: str, tells: bool) -> Iterator[Labelled]:
    lines = files("smartcache_eval.training").joinpath(name).read_text(encoding="utf-8").splitlines()
    return ((line, tells) for line in lines)
