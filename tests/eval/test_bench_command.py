"""`smartcache-eval bench`: every figure is a measured number that comes with its unit and its conditions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def _bench(part: str) -> list[dict[str, Any]]:
    code = "from smartcache_eval.command import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "bench", part, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures: list[dict[str, Any]] = json.loads(done.stdout)
    return figures


def test_the_answer_bench_measures_a_store_a_hit_and_a_miss() -> None:
    figures = _bench("answers")
    assert [figure["name"] for figure in figures] == ["answer stored", "exact hit", "exact miss"]
    assert all(figure["value"] > 0 and figure["conditions"] for figure in figures)


@pytest.mark.slow
@pytest.mark.model
def test_the_prefix_bench_measures_a_cold_and_a_warm_first_token() -> None:
    pytest.importorskip("torch", reason="needs the extra [local]")
    figures = {figure["name"]: figure["value"] for figure in _bench("prefix")}
    assert figures["warm / cold"] < 1
    assert figures["warm / cold"] == pytest.approx(figures["first token, warm"] / figures["first token, cold"])
