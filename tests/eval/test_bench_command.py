"""`smartcache-eval bench`: every figure is a measured number that comes with its unit and its conditions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def _told(part: str, *options: str) -> Any:
    code = "from smartcache_eval.command import main; main()"
    command = [sys.executable, "-c", code, "bench", part, *options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_answer_bench_measures_a_store_a_hit_and_a_miss() -> None:
    figures = _told("answers")
    assert [figure["name"] for figure in figures] == ["answer stored", "exact hit", "exact miss"]
    assert all(figure["value"] > 0 and figure["conditions"] for figure in figures)


@pytest.mark.slow
@pytest.mark.model
def test_the_prefix_bench_measures_the_bundled_model() -> None:
    pytest.importorskip("torch", reason="needs the extra [local]")
    report = _told("prefix", "--quick", "--shared", "256", "--no-peers")
    [case] = report["cases"]
    assert (case["shared"], case["new"], case["cached_tokens"], case["equals_cold"]) == (256, 32, 256, True)
    assert case["ratio"] < 1
    assert report["peers"] == []
