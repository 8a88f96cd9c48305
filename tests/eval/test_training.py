"""How the weights are made: from the part for choosing alone, the same for the same seed, used as they were grown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("sklearn", reason="needs the `eval` extra")

from sklearn import ensemble

from smartcache.learned import Learned
from smartcache.signals import MONOTONE
from smartcache.testing import BagOfWordsEmbedder
from smartcache_eval.steps import Step, conversation, part_of
from smartcache_eval.training import boosting, learning
from smartcache_eval.training.boosting import curves, grow
from smartcache_eval.training.examples import FOLDS, Side, examples, fold_of
from smartcache_eval.training.pairs import Pairs
from smartcache_eval.vectors import KnownVectors

THINGS = "boats cars trains drums".split()


def steps_of(group: str) -> list[Step]:
    """About each thing a question under its history, its rewrite, and another wording of that."""
    found = []
    for thing in THINGS:
        truth, leaning = f"{group} {thing}", conversation([f"Tell me of {group} {thing}", "Well."], "How old are they?")
        found.append(Step(leaning, truth, group, "under its history"))
        found.append(Step(conversation([], f"How old are the {group} {thing}?"), truth, group, "rewritten"))
        found.append(Step(conversation([], f"What age have the {group} {thing}?"), truth, group, "rewritten"))
    return found


GROUPS = [f"town{n}" for n in range(16)]
CHOSEN = [group for group in GROUPS if part_of(group) == "choose"]
ALL = [step for group in GROUPS for step in steps_of(group)]


@pytest.fixture
def learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Learned, KnownVectors]]:
    monkeypatch.setattr("smartcache_eval.training.attention.PASSES", 2)
    monkeypatch.setattr("smartcache_eval.training.boosting.TREES", 3)

    def make(steps: list[Step], seed: int = 0) -> tuple[Learned, KnownVectors]:
        monkeypatch.setattr(learning, "workloads", lambda: {"canard": lambda folder: steps})
        vectors, target = KnownVectors(BagOfWordsEmbedder(dimension=64)), tmp_path / "weights" / "w.safetensors"
        learning.learn(tmp_path, vectors, target, seed=seed, tell=lambda line: None)
        return Learned.load(target), vectors

    return make


def test_the_weights_are_the_same_for_the_same_seed_whatever_is_reported_on(learn):
    """The name holds a hash of all weights. Of the part for reporting nothing is as much as embedded."""
    first, vectors = learn(ALL)
    again, _ = learn([step for step in ALL if step.group in CHOSEN])
    other, _ = learn(ALL, seed=1)
    assert first.name == again.name != other.name
    assert first.embedder == "bag-of-words"
    read = " ".join(vectors.asked)
    assert {group for group in GROUPS if f"{group} " in read} == set(CHOSEN)
    assert 0 < len(CHOSEN) < len(GROUPS)


def test_a_fold_is_left_out_of_what_is_learned_for_it():
    steps = {"canard": ALL}
    groups = {fold: {group for group in GROUPS if fold_of(group) == fold} for fold in range(FOLDS)}
    for fold in range(FOLDS):
        asked = {example.truth.split()[1] for example in examples(steps, Path(), seed=0, without=fold)}
        assert asked == set(GROUPS) - groups[fold]
    assert {example.truth.split()[1] for example in examples(steps, Path(), seed=0)} == set(GROUPS)
    assert all(groups.values())


def test_an_example_is_a_question_under_its_history_beside_a_rewrite_of_it():
    (example,) = examples({"canard": steps_of("town0")[:2]}, Path(), seed=0)
    assert example.left == Side((("user", "Tell me of town0 boats"), ("assistant", "Well.")), "How old are they?")
    assert example.right == Side((), "How old are the town0 boats?")


def test_of_a_conversation_in_many_wordings_two_are_one_example():
    wordings = [Step(conversation(["Of boats", text], "When?"), "truth", "g") for text in ("A.", "B.")]
    (example,) = examples({"convquestions": wordings}, Path(), seed=0)
    assert {side.history[1][1] for side in (example.left, example.right)} == {"A.", "B."}
    assert examples({"convquestions": wordings[:1]}, Path(), seed=0) == []


def test_a_rewrite_by_a_machine_is_of_a_question_of_the_chosen_part_and_not_by_a_person(tmp_path: Path):
    folder = tmp_path / "cast19-rewrites" / "raw" / "2019"
    folder.mkdir(parents=True)
    rows = "id\tquery\n1_2\t  How tall is the tower? \n9_9\tWho asked?\n"
    (folder / "3_machine.tsv").write_text(rows)
    (folder / "10_Human.tsv").write_text(rows)
    step = Step(conversation(["Of it", "Fine."], "How tall?"), "2019 1_2", "cast 1")
    (example,) = examples({"cast": [step]}, tmp_path, seed=0)
    assert (example.left.question, example.right.question) == ("How tall?", "How tall is the tower?")


def rows(count: int, seed: int, asked_by: int = 4) -> Pairs:
    """Pairs of which wording and clashes tell, for the most part, whether they are equal; four for each that asks."""
    draw = np.random.default_rng(seed)
    signals = draw.integers(0, 100, (count, len(MONOTONE))).astype(np.float32) / 100  # few values: grown quickly
    signals[:, names("histories")] = draw.integers(0, 3, count)
    logit = 8 * (signals[:, names("wording")] - signals[:, names("clashes")]) + draw.normal(0, 1, count)
    asked = np.arange(count) // asked_by
    return Pairs(signals, logit > 0, asked.astype(np.int64), (asked % FOLDS).astype(np.int64))


def names(name: str) -> int:
    return list(MONOTONE).index(name)


def test_a_row_counts_for_the_curve_of_its_kind():
    given = rows(100, 0)
    columns = [names(name) for name in ("histories", "one_after", "told_there", "shared_there")]
    given.signals[:, columns] = 0, 1, 0.5, 0.5
    assert set(rows(100, 0).kinds) == {0, 1, 2}
    assert set(given.kinds) == {0}
    given.signals[:, names("told_there")] = 1
    assert set(given.kinds) == {1}


def test_the_trees_score_as_they_were_grown(monkeypatch: pytest.MonkeyPatch):
    grown: list[Any] = []

    class Kept(ensemble.HistGradientBoostingClassifier):
        def fit(self, *given: Any, **named: Any) -> Any:
            grown.append(self)
            return super().fit(*given, **named)

    monkeypatch.setattr(ensemble, "HistGradientBoostingClassifier", Kept)
    given = rows(1_000, 1)
    trees = grow([given], seed=0)
    own = [trees.score(row) for row in given.signals]
    assert np.allclose(own, np.mean([one.decision_function(given.signals) for one in grown], axis=0), atol=1e-4)
    assert trees.value[:, 0].std() > 0


def test_the_trees_are_monotone_where_the_signals_are():
    trees = grow([rows(1_000, 1)], seed=0)
    row = rows(1, 2).signals[0]
    for name, sign in (("wording", 1), ("clashes", -1)):
        scores = []
        for value in np.linspace(0, 1, 50, dtype=np.float32):
            row[names(name)] = value
            scores.append(sign * trees.score(row))
        assert scores == sorted(scores)
        assert scores[-1] > scores[0] + 1


def test_a_small_workload_weighs_more_than_its_rows(monkeypatch: pytest.MonkeyPatch):
    """Every row of the large one says the opposite: what the small one says is heard."""
    monkeypatch.setattr(boosting, "TREES", 1)
    small, large = rows(400, 1), rows(4_000, 2)
    turned = Pairs(large.signals, ~large.equal, large.asked, large.fold)
    start = grow([small, turned], seed=0).start
    share = 1 / (1 + np.exp(-start))
    weights = [len(small.equal) ** 0.5, len(turned.equal) ** 0.5]
    assert share == pytest.approx(np.average([small.equal.mean(), turned.equal.mean()], weights=weights), abs=0.01)


def test_a_curve_counts_each_asked_question_once_by_its_surest_pair(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(boosting, "TREES", 5)
    given = rows(1_200, 1)
    measured = curves({"one": given}, seed=0)
    for kind, curve in enumerate(measured):
        assert curve.served[0] == 20
        assert curve.served[-1] == len(set(given.asked[given.kinds == kind]))
        assert list(curve.confidence) == sorted(curve.confidence, reverse=True)
        assert curve.wrong[0] / curve.served[0] < curve.wrong[-1] / curve.served[-1]
        assert curve.wrong[-1] < curve.served[-1] / 2


def test_a_curve_is_measured_on_groups_that_were_not_seen(monkeypatch: pytest.MonkeyPatch):
    """What is equal was drawn by lot: seen, most of it is known by heart, unseen, none."""
    monkeypatch.setattr(boosting, "TREES", 30)
    draw = np.random.default_rng(5)
    lots = rows(1_200, 1)
    lots = Pairs(lots.signals, draw.random(1_200) < 0.5, np.arange(1_200), lots.fold)
    for curve in curves({"one": lots}, seed=0):
        half = len(curve.served) // 2
        assert 0.3 < curve.wrong[half] / curve.served[half] < 0.7
