"""`smartcache-eval bench`: every figure is a measured number that comes with its unit and its conditions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from smartcache_eval.command import bench
from smartcache_eval.index_bench import Clusters, index_figures, nearest
from smartcache_eval.prefix_report import PrefixSizes

FIGURES_OF_AN_INDEX = ("lookup p50", "lookup p99", "lookup p99, CPU", "recall@16", "memory", "built")


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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["prefix", "--peer-python", "/nowhere/python"], "is no interpreter that can be run"),
        (["prefix", "--peer-python", "/"], "is no interpreter that can be run"),
        (["prefix", "--no-peers", "--peer-python", sys.executable], "exclude each other"),
        (["answers", "--quick"], "are options of `bench prefix`"),
        (["all", "--shared", "64"], "are options of `bench prefix`"),
        (["answers", "--million"], "is an option of `bench index`"),
    ],
)
def test_options_that_cannot_be_met_are_refused_before_anything_is_measured(arguments: list[str], told: str) -> None:
    commands = typer.Typer()
    commands.command()(bench)
    result = CliRunner().invoke(commands, arguments, env={"COLUMNS": "200"})
    assert (result.exit_code, told in " ".join(result.output.split())) == (2, True)


def test_more_than_the_model_reads_is_refused() -> None:
    pytest.importorskip("torch", reason="needs the extra [local]")
    from smartcache_eval.prefix_bench import TooLong, require_fit

    sizes = PrefixSizes(shared=(512, 8_161))
    require_fit(sizes, 8_193)
    require_fit(sizes, None)
    with pytest.raises(TooLong, match=r"8,193 tokens do not fit: this model reads 8,192, 32 of them new"):
        require_fit(sizes, 8_192)


def test_the_index_bench_measures_each_size() -> None:
    figures = {figure.name: figure for figure in index_figures(sizes=(100, 300))}
    assert [name.split(": ")[1] for name in figures] == [*FIGURES_OF_AN_INDEX, *FIGURES_OF_AN_INDEX]
    assert figures["300: recall@16"].value == 100  # so few are compared one by one
    assert figures["300: lookup p50"].value <= figures["300: lookup p99"].value


def test_what_is_nearest_is_found_by_comparing_each() -> None:
    rows = Clusters.seeded(60_000, seed=0).draw(60_000, seed=1)
    found = nearest(rows, rows[[5, 59_000]])
    assert [5 in found[0], 59_000 in found[1], {len(ids) for ids in found}] == [True, True, {16}]
