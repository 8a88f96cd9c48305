"""The benchmark of blending: what it asks, and what it says of a full prefill and of what was blended."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the `local` extra")

from smartcache.models import Generation
from smartcache.testing import chunk
from smartcache_eval.blend_bench import SHARES, Compared, compare, figures_of, xquad_questions
from smartcache_eval.context_traffic import Retrieved
from smartcache_eval.folder import UnreadableWorkload


def written(text: str, seconds: float, cached: int = 0) -> Generation:
    return Generation(text, tuple(map(ord, text)), 100, cached, seconds, 0.0, seconds, "stop")


def test_the_figures_compare_each_share_with_full_prefill():
    blended = {share: written("in Oslo", 0.5, 60) for share in SHARES} | {0.0: written("in Bern", 0.25, 80)}
    figures = {one.name: one for one in figures_of("made up", [Compared(written("in Oslo", 1.0), blended, ("Oslo",))])}
    none, some = "made up, blend 0% anew", "made up, blend 15% anew"
    assert (figures[f"{none}: time to first token"].value, figures[f"{none}: tokens reused"].value) == (250, 80)
    assert "4.00 x as fast" in figures[f"{none}: time to first token"].conditions
    assert [figures[f"{one}: the answer of full prefill"].value for one in (none, some)] == [0, 100]
    assert "43% of the tokens" in figures[f"{none}: the answer of full prefill"].conditions
    assert figures[f"{none}: F1"].value < figures[f"{some}: F1"].value == figures["made up, full prefill: F1"].value


def test_a_paragraph_is_asked_about_among_others_of_its_article(tmp_path):
    paragraphs = [{"context": name, "qas": [{"question": f"{name}?", "answers": [{"text": name}]}]} for name in "abcde"]
    (tmp_path / "xquad" / "raw").mkdir(parents=True)
    (tmp_path / "xquad" / "raw" / "xquad.en.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    (asked,) = xquad_questions(tmp_path, 3)
    assert (len(asked.chunks), asked.question) == (4, f"{asked.answers[0]}?")
    assert asked.answers[0] in [one.text for one in asked.chunks]


def test_data_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnreadableWorkload, match="xquad"):
        xquad_questions(tmp_path, 1)


@pytest.mark.slow
def test_the_bundled_model_is_compared():
    from smartcache.models import LocalModel

    made = compare(LocalModel.load(), Retrieved("Who?", (chunk("a", "It was Ann. " * 9), chunk("b", "Bob left. " * 9))))
    assert made.full.cached_tokens == 0
    assert made.blended[1.0].token_ids == made.full.token_ids
    assert made.blended[0.0].cached_tokens > made.blended[0.3].cached_tokens > made.blended[1.0].cached_tokens
