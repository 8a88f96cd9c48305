"""A pair classifier as a verifier: both orders must hold, by a label or by a score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("sentence_transformers", reason="needs the `local` extra")

from smartcache import Answer, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.dialogue import Dialogue
from smartcache.errors import MissingModel
from smartcache.models import PairClassifier
from smartcache.testing import TableEmbedder

if TYPE_CHECKING:
    from pathlib import Path

ASKED, STORED = "how do i reset the hub", "how do i restart the hub"
NLI = {0: "contradiction", 1: "ENTAILMENT", 2: "neutral"}


def saved(folder: Path, bias: list[float], labels: dict[int, str] | None = None) -> Path:
    """A tiny model whose logits are `bias`, whatever it reads; of two labels without names it saves no names."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = sorted({*ASKED.split(), *STORED.split()})
    vocabulary = folder / "vocab.txt"
    folder.mkdir(exist_ok=True)
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    names: dict[str, Any] = {"id2label": labels} if labels else {"num_labels": len(bias)}
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertForSequenceClassification(BertConfig(vocab_size=32, max_position_embeddings=32, **sizes, **names))
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor(bias))
    model.save_pretrained(folder)
    BertTokenizerFast(str(vocabulary), model_max_length=32).save_pretrained(folder)
    return folder


def pair(one: str = ASKED, other: str = STORED) -> tuple[Dialogue, Dialogue]:
    return Dialogue((), one), Dialogue((), other)


def test_of_several_labels_the_probability_of_the_one_counts(tmp_path: Path) -> None:
    folder = saved(tmp_path, [math.log(2), math.log(6), math.log(2)], NLI)
    assert PairClassifier(folder).score(ASKED, STORED) == pytest.approx(0.6, abs=1e-4)
    assert PairClassifier(folder, label="neutral").score(ASKED, STORED) == pytest.approx(0.2, abs=1e-4)


def test_of_a_single_score_the_sigmoid_counts(tmp_path: Path) -> None:
    assert PairClassifier(saved(tmp_path, [math.log(3)])).score(ASKED, STORED) == pytest.approx(0.75, abs=1e-4)


def test_of_two_labels_without_a_name_one_is_named_by_its_column(tmp_path: Path) -> None:
    model = PairClassifier(saved(tmp_path, [0.0, math.log(3)]), label="label_1")
    assert model.score(ASKED, STORED) == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize(("min_score", "holds"), [(0.74, True), (0.76, False)])
def test_it_holds_from_min_score_on(tmp_path: Path, min_score: float, holds: bool) -> None:
    verify = PairClassifier(saved(tmp_path, [math.log(3)]), min_score=min_score)
    assert verify(*pair()) is holds


def test_the_lesser_of_both_orders_counts(tmp_path: Path) -> None:
    model = PairClassifier(saved(tmp_path, [0.0]))
    model.score(ASKED, STORED)

    class OneSided:
        tokenizer, max_seq_length = model._loaded.tokenizer, 32

        def predict(self, pairs: list[tuple[str, str]], **choices: object) -> list[float]:
            return [math.log(3) if one == ASKED else -math.log(3) for one, _ in pairs]

    model._loaded = OneSided()
    assert model.score(ASKED, STORED) == model.score(STORED, ASKED) == pytest.approx(0.25)


def test_a_pair_that_it_cannot_read_in_full_does_not_hold(tmp_path: Path) -> None:
    verify = PairClassifier(saved(tmp_path, [9.0]))
    assert verify(*pair())
    assert not verify(*pair(" ".join([ASKED] * 5)))


def test_what_a_question_leans_on_is_read_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    verify = PairClassifier(saved(tmp_path, [9.0]))
    monkeypatch.setattr(PairClassifier, "score", lambda self, one, other: float(bool(read.extend([one, other]))))
    verify(Dialogue((("user", "Tell me about Frank Zappa."),), "When was he born?"), Dialogue((), ASKED))
    assert read == ["Tell me about Frank Zappa.\nWhen was he born?", ASKED]


@pytest.mark.parametrize(("bias", "is_hit"), [(9.0, True), (-9.0, False)])
def test_it_verifies_for_a_cache(tmp_path: Path, bias: float, is_hit: bool) -> None:
    embedder = TableEmbedder({(ASKED, STORED): 0.84})
    policy = ThresholdPolicy(0.9)
    policy.is_doubtful = lambda candidate: True  # type: ignore[method-assign]  # doubts everything
    with SmartCache.open(embedder=embedder, policy=policy, verifier=PairClassifier(saved(tmp_path, [bias]))) as cache:
        cache.store(Request([Turn("user", STORED)]), Answer("Press it."))
        assert (cache.lookup(Request([Turn("user", ASKED)])) is not None) is is_hit


def test_mistakes_are_told_when_it_is_made(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", [0.0, 0.0, 0.0], NLI)
    with pytest.raises(ValueError, match="use label= one of contradiction, entailment, neutral"):
        PairClassifier(folder, label="same")
    with pytest.raises(ValueError, match="min_score is a probability"):
        PairClassifier(folder, min_score=80)
    with pytest.raises(MissingModel, match=r"no config\.json"):
        PairClassifier(tmp_path / "nothing")
