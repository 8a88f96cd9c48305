"""What was learned for an embedder: which files are taken, and that the confidence keeps its promises."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("safetensors", reason="needs the `local` extra")

from safetensors import safe_open
from safetensors.numpy import save_file

from smartcache.errors import MissingExtra
from smartcache.learned import BUNDLED, FORMAT, Learned, kind_of
from smartcache.signals import MONOTONE, Signals

LEARNED = Learned.load(BUNDLED)
EMBEDDER = LEARNED.embedder

COSINES = {"meaning", "wording", "last_turns", "said", "leaned_on", "focus"}
SHARES = {"shared_here", "shared_there", "shared", "told_here", "told_there", "words_shared"}
YES_OR_NO = {"states_opposite", "same_words", "facts_agree", "same_names"}
NEAR = (
    "meaning",
    "wording",
    "stands_least",
    "stands_most",
    "histories",
    "one_after",
    "last_turns",
    "said",
    "leaned_on",
)


def range_of(name: str) -> st.SearchStrategy[float]:
    if name in COSINES:
        return st.floats(-1, 1, width=32)
    if name in SHARES:
        return st.floats(0, 1, width=32)
    if name.startswith("stands"):
        return st.floats(-8, 8, width=32)
    return st.integers(0, 1 if name in YES_OR_NO else 2 if name == "histories" else 12).map(float)


signals = st.builds(Signals, **{name: range_of(name) for name in MONOTONE})
quick = settings(deadline=None, max_examples=150)


def values(row: Signals) -> dict[str, float]:
    return dict(zip(MONOTONE, row.values(), strict=True))


@given(row=signals, known=st.sets(st.sampled_from([name for name in MONOTONE if name not in NEAR])))
@quick
def test_no_confidence_is_above_the_best_of_what_is_known_of_it(row, known):
    told = {name: value for name, value in values(row).items() if name in NEAR or name in known}
    assert LEARNED.at_best(told) >= LEARNED.confidence(row)


@pytest.mark.parametrize(
    ("histories", "one_after", "told_there", "shared_there", "kind"),
    [(0, 0, 1, 0.5, 0), (0, 1, 1, 0.5, 1), (0, 1, 0.9, 0.5, 0), (0, 1, 1, 1, 0), (1, 1, 1, 1, 1), (2, 0, 1, 1, 2)],
)
def test_a_pair_of_which_one_was_told_all_that_the_other_says_counts_as_one_that_leans(
    histories, one_after, told_there, shared_there, kind
):
    known = {
        "histories": histories,
        "one_after": one_after,
        "told_there": told_there,
        "shared_there": shared_there,
    }
    assert kind_of(known) == kind


@given(row=signals)
@quick
def test_where_all_is_known_the_best_is_the_confidence(row):
    assert LEARNED.at_best(values(row)) == LEARNED.confidence(row)


@given(row=signals, data=st.data())
@quick
def test_more_of_what_speaks_for_one_answer_never_lowers_the_confidence(row, data):
    name = data.draw(st.sampled_from([name for name, sign in MONOTONE.items() if sign]))
    more = values(row) | {name: data.draw(range_of(name))}
    before, after = LEARNED.confidence(row), LEARNED.confidence(Signals(**more))
    if (more[name] - values(row)[name]) * MONOTONE[name] >= 0:
        assert after >= before
    else:
        assert after <= before


@given(row=signals)
@quick
def test_the_parts_and_the_mean_add_up_to_the_logit_of_the_confidence(row):
    mean = LEARNED.trees.start + float(LEARNED.trees.value[:, 0].sum())
    confidence = LEARNED.confidence(row)
    assert sum(LEARNED.parts(row).values()) + mean == pytest.approx(np.log(confidence / (1 - confidence)), abs=1e-3)


@given(row=signals)
@quick
def test_the_weightiest_part_comes_first(row):
    parts = LEARNED.parts(row)
    assert set(parts) == set(MONOTONE)
    assert list(map(abs, parts.values())) == sorted(map(abs, parts.values()), reverse=True)


def test_the_confidence_tells_the_like_from_the_unlike():
    best = {name: float(sign > 0) for name, sign in MONOTONE.items()} | {"stands_least": 4.0, "stands_most": 4.0}
    worst = {name: 3.0 * (sign < 0) for name, sign in MONOTONE.items()} | {"meaning": 0.5, "wording": 0.3}
    assert LEARNED.confidence(Signals(**best)) > 0.9
    assert LEARNED.confidence(Signals(**worst)) < 0.1


def test_the_weights_in_the_package_are_for_these_signals():
    """Red where the signals changed: then the weights must be learned anew, with `smartcache-eval train`."""
    with safe_open(str(BUNDLED), framework="numpy") as file:
        about = file.metadata()
    assert (about["format"], json.loads(about["signals"])) == (FORMAT, list(MONOTONE))


def test_the_curves_in_the_package_rise_as_the_confidence_falls():
    for curve in LEARNED.curves:
        assert len(curve.confidence) == len(curve.served) == len(curve.wrong) > 100
        assert list(curve.confidence) == sorted(curve.confidence, reverse=True)
        assert list(curve.served) == sorted(set(curve.served))
        assert list(curve.wrong) == sorted(curve.wrong)
        assert all(wrong <= served for wrong, served in zip(curve.wrong, curve.served, strict=True))


@pytest.mark.parametrize(
    ("embedder", "fits"),
    [
        (EMBEDDER, True),
        (f"{EMBEDDER}, Chinese by letters 1", True),
        (f"{EMBEDDER}, in small letters", False),
        (f"{EMBEDDER}0", False),
        (EMBEDDER[:-1], False),
        (EMBEDDER.partition("@")[0], False),
        ("bag-of-words", False),
    ],
)
def test_weights_fit_the_vectors_that_they_were_learned_from_only(embedder, fits):
    assert LEARNED.fits(embedder) is fits
    assert (Learned.find(embedder) is not None) is fits


def kept(**about: str | None):
    """The package's weights, and what their file says of them with some of it said otherwise, or not at all."""
    with safe_open(str(BUNDLED), framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        stated = file.metadata() | about
    return tensors, {name: said for name, said in stated.items() if said is not None}


def test_a_file_of_weights_is_read_as_it_was_written(tmp_path):
    tensors, about = kept(embedder="another", name="digest of mine")
    save_file(tensors, tmp_path / "w.safetensors", metadata=about)
    learned = Learned.load(tmp_path / "w.safetensors")
    assert (learned.embedder, learned.name) == ("another", "digest of mine")
    assert np.array_equal(learned.trees.value, LEARNED.trees.value)
    assert learned.curves == LEARNED.curves


@pytest.mark.parametrize(
    "about",
    [
        {"format": "smartcache-learned-0"},
        {"format": None},
        {"signals": json.dumps([*MONOTONE, "another"])},
        {"signals": json.dumps(sorted(MONOTONE))},
    ],
    ids=["another format", "no format", "another signal", "another order"],
)
def test_weights_of_another_version_are_refused(tmp_path, about):
    tensors, stated = kept(**about)
    save_file(tensors, tmp_path / "w.safetensors", metadata=stated)
    with pytest.raises(ValueError, match=r"w\.safetensors was not made for this version: run  smartcache-eval train"):
        Learned.load(tmp_path / "w.safetensors")


@pytest.mark.parametrize("content", [b"", b"no weights", BUNDLED.read_bytes()[:100_000]], ids=["empty", "text", "cut"])
def test_a_file_that_is_none_of_weights_is_refused(tmp_path, content):
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"w\.safetensors holds no weights: run  smartcache-eval train"):
        Learned.load(tmp_path / "w.safetensors")


def test_without_the_package_that_reads_them_there_are_no_weights(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert Learned.bundled() is None
    assert Learned.find(EMBEDDER) is None
    with pytest.raises(MissingExtra, match="safetensors"):
        Learned.load(BUNDLED)
