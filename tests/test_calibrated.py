"""The policy that keeps a bound: what is served under which bound, and with the package's weights end to end."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="needs the `local` extra")

from safetensors.numpy import save_file

from smartcache import Answer, Candidate, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.calibrated import CalibratedPolicy
from smartcache.learned import BUNDLED, FORMAT, Curve, Learned
from smartcache.signals import MONOTONE
from smartcache.testing import BagOfWordsEmbedder

# From 0.9 on two thousand would have been served and none wrongly, from 0.8 on ten of four thousand, and so on.
CURVES = {
    0: [(0.9, 2_000, 0), (0.8, 4_000, 10), (0.7, 6_000, 300)],
    1: [(0.95, 500, 0), (0.85, 600, 12)],
    2: [(0.99, 200, 0)],
}


@pytest.fixture
def weights(tmp_path):
    """Weights for the bag of words: no digest to speak of, and trees that are 0.95 sure of everything."""
    width, inner = 512, 4
    shapes = {"key": (inner, width + 3), "query": (inner, width), "own": (inner, width), "mix": (inner, 2 * width)}
    shapes |= {"gate": (3, inner), "out": (width, inner)}
    tensors = {f"digest.{name}.weight": np.zeros(shape, np.float16) for name, shape in shapes.items()}
    tensors |= {f"digest.{name}.bias": np.zeros(shape[:1], np.float16) for name, shape in shapes.items()}
    tensors["digest.null"], tensors["telling.weight"] = np.zeros(2, np.float16), np.zeros(width, np.float32)
    tensors |= {f"trees.{name}": np.zeros((1, 1), np.int16) for name in ("feature", "left", "right")}
    tensors |= {f"trees.{name}": np.zeros((1, 1), np.float32) for name in ("threshold", "value")}
    tensors |= {f"curve.{kind}": np.array(points, np.float64) for kind, points in CURVES.items()}
    about = {
        "embedder": "bag-of-words",
        "start": "3.0",
        "depth": "0",
        "format": FORMAT,
        "name": "made up",
        "telling_bias": "1.0",
    }
    path = tmp_path / "made-up.safetensors"
    save_file(tensors, path, metadata=about | {"signals": json.dumps(list(MONOTONE))})
    return path


def pair(confidence: float | None, histories: int = 0, asked: str = "Who runs Acme?") -> Candidate:
    return Candidate(asked, "Who heads Acme?", 1.0, confidence=confidence, histories=histories)


@pytest.mark.parametrize(
    ("max_wrong", "histories", "from_confidence"),
    [(0.004, 0, 0.9), (0.012, 0, 0.8), (0.2, 0, 0.7), (0.012, 1, 0.95), (0.039, 1, 0.95), (0.04, 1, 0.85)],
)
def test_served_is_from_the_confidence_on_from_which_half_the_bound_was_wrong(
    weights, max_wrong, histories, from_confidence
):
    policy = CalibratedPolicy(max_wrong, weights=weights)
    assert policy.min_confidence(histories) == from_confidence
    assert policy.accepts(pair(from_confidence, histories))
    assert not policy.accepts(pair(from_confidence - 0.001, histories))


@pytest.mark.parametrize(("max_wrong", "histories"), [(0.001, 0), (0.0, 0)])
def test_where_all_kinds_together_do_not_show_the_bound_nothing_is_served(weights, max_wrong, histories):
    policy = CalibratedPolicy(max_wrong, weights=weights)
    assert policy.min_confidence(histories) > 1
    assert not policy.accepts(pair(1.0, histories))


def test_a_kind_of_which_little_was_measured_is_not_served(weights):
    assert CalibratedPolicy(0.5, weights=weights).min_confidence(2) > 1


@pytest.mark.parametrize(("max_wrong", "from_confidence"), [(0.005, 0.8), (0.004, 0.9)])
def test_where_half_the_bound_shows_too_little_less_is_served(max_wrong, from_confidence):
    """The interval of 4 of 2,100 ends at 0.0049, though that is half of 0.004."""
    kind, none = Curve((0.9, 0.8), (2_000, 2_100), (0, 4)), Curve((), (), ())
    assert replace(Learned.load(BUNDLED), curves=(kind, none, none)).min_confidence(0, max_wrong) == from_confidence


def test_a_looser_bound_never_serves_less():
    bounds = [0.0, 0.001, 0.004, 0.006, 0.012, 0.02, 0.05, 0.2, 0.9]
    for histories in range(3):
        needed = [CalibratedPolicy(bound).min_confidence(histories) for bound in bounds]
        assert needed == sorted(needed, reverse=True)
        assert needed[0] > 1 > needed[-1]


def test_the_bound_that_is_the_default_can_be_kept():
    assert [CalibratedPolicy().min_confidence(histories) <= 1 for histories in range(3)] == [True] * 3


def test_an_intent_may_have_a_bound_of_its_own(weights):
    policy = CalibratedPolicy(0.012, by_intent={"factual": 0.004, "creative": 0.0, "code": 0.2}, weights=weights)
    sure = {"factual": "Who runs Acme?", "creative": "Write a poem", "code": "Fix this regex", "general": "Hello there"}
    served = {name: [policy.accepts(pair(at, asked=text)) for at in (1.0, 0.85, 0.75)] for name, text in sure.items()}
    assert served == {
        "factual": [True, False, False],
        "creative": [False, False, False],
        "code": [True, True, True],
        "general": [True, True, False],
    }


@pytest.mark.parametrize("bound", [-0.1, 1.0, 7, True, "0.1", None, float("nan")])
def test_a_bound_that_is_no_share_is_refused(bound):
    with pytest.raises(ValueError, match="max_wrong is a share of the hits, from 0 to below 1"):
        CalibratedPolicy(bound)
    with pytest.raises(ValueError, match="max_wrong is a share of the hits, from 0 to below 1"):
        CalibratedPolicy(by_intent={"code": bound})


def test_an_intent_that_is_none_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="unknown intent 'coding': use one of code, translation, summary"):
        CalibratedPolicy(by_intent={"coding": 0.01})


def test_a_pair_without_a_confidence_is_judged_by_thresholds():
    near, far = Candidate("a", "b", 0.95), Candidate("a", "b", 0.85)
    assert CalibratedPolicy(0.001).accepts(near)
    assert not CalibratedPolicy(0.9).accepts(far)
    assert not CalibratedPolicy(0.0).accepts(near)


def ask(*said: str) -> Request:
    roles = ("user", "assistant")
    return Request([Turn(roles[n % 2], text) for n, text in enumerate(said)])


def served(stored: tuple[str, ...], asked: tuple[str, ...], **options: object) -> bool:
    with SmartCache.open(strict=True, **options) as cache:
        cache.store(ask(*stored), Answer("stored"))
        return cache.lookup(ask(*asked)) is not None


@pytest.mark.parametrize(("asked", "hits"), [("who is it that runs Acme", True), ("what does Acme sell", False)])
def test_with_an_embedder_without_weights_thresholds_decide(asked, hits):
    stored, options = "it is that who runs Acme", {"embedder": BagOfWordsEmbedder()}
    assert CalibratedPolicy().learned_for("bag-of-words") is None
    assert served((stored,), (asked,), policy=CalibratedPolicy(), **options) is hits
    assert served((stored,), (asked,), policy=ThresholdPolicy(), **options) is hits


@pytest.mark.parametrize(("max_wrong", "hits"), [(0.012, True), (0.001, False)])
def test_weights_of_ones_own_decide_for_the_embedder_they_are_for(weights, max_wrong, hits):
    stored, asked, embedder = ("Tell of that red car",), ("Tell of a red car now",), BagOfWordsEmbedder()
    assert served(stored, asked, embedder=embedder, policy=CalibratedPolicy(max_wrong, weights=weights)) is hits
    assert not served(stored, asked, embedder=embedder, policy=ThresholdPolicy())


def test_what_a_rule_refuses_is_not_served_however_sure(weights):
    options = {"embedder": BagOfWordsEmbedder(), "policy": CalibratedPolicy(0.2, weights=weights)}
    assert not served(("Is port 80 open?",), ("Is port 81 open?",), **options)
    assert served(("Is port 80 open?",), ("Is port 80 now open?",), **options)


def test_a_chinese_question_is_decided_by_the_rules(weights):
    options = {"embedder": BagOfWordsEmbedder(), "policy": CalibratedPolicy(0.2, weights=weights)}
    assert served(("如何从北京坐火车到上海?",), ("请问如何从北京坐火车到上海?",), **options)
    assert not served(("如何从北京坐火车到上海?",), ("如何从广州坐火车到上海?",), **options)


def test_weights_for_another_embedder_are_refused(weights):
    policy = CalibratedPolicy(weights=weights)
    with pytest.raises(ValueError, match=r"learned for 'bag-of-words', not for 'other': run  smartcache-eval train"):
        SmartCache.open(embedder=BagOfWordsEmbedder(name="other"), policy=policy)
    assert policy.learned_for("bag-of-words").name == "made up"


def test_a_file_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        CalibratedPolicy(weights=tmp_path / "none.safetensors")


def test_its_repr_is_how_it_is_made():
    assert repr(CalibratedPolicy()) == "CalibratedPolicy(max_wrong=0.012)"
    own = CalibratedPolicy(0.005, by_intent={"code": 0}, weights=BUNDLED)
    assert repr(own).startswith("CalibratedPolicy(max_wrong=0.005, by_intent={'code': 0.0}, weights='")
