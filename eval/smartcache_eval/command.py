"""The command `smartcache-eval`: runs the benchmarks and prints every figure with its conditions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smartcache.errors import SmartCacheError
from smartcache.layers.eviction import POLICIES
from smartcache_eval import evaluation_command, train_command
from smartcache_eval.advice import Advice, advice_on
from smartcache_eval.figures import Figure
from smartcache_eval.prefix_report import PrefixSizes
from smartcache_eval.prefix_tables import tables
from smartcache_eval.traces import read_trace


class Part(StrEnum):
    """What can be measured."""

    all = "all"
    answers = "answers"
    prefix = "prefix"
    eviction = "eviction"
    vectors = "index"
    lookup = "lookup"
    context = "context"


def bench(
    part: Annotated[Part, typer.Argument(help="What to measure.")] = Part.all,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables: an array of figures.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="prefix: fewer and smaller runs, one or two minutes.")] = False,
    shared: Annotated[list[int] | None, typer.Option(min=1, help="prefix: tokens that are shared; repeatable.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="prefix: how often to measure.")] = None,
    million: Annotated[bool, typer.Option("--million", help="index: 1,000,000 vectors too, some minutes.")] = False,
    peers: Annotated[bool, typer.Option(help="prefix: measure the peers that are installed, too.")] = True,
    peer_python: Annotated[
        list[Path] | None, typer.Option(help="prefix: the Python of an environment that has peers; repeatable.")
    ] = None,
) -> None:
    """Measure on this machine. `all` is quick, and leaves out index, lookup, and eviction and context, which need
    public data ($SMARTCACHE_DATA).
    `prefix` takes some minutes; its JSON is one object."""
    if part is not Part.prefix and (quick or shared or rounds or peer_python or not peers):
        raise typer.BadParameter("--quick, --shared, --rounds and the peers are options of `bench prefix`")
    if part is not Part.vectors and million:
        raise typer.BadParameter("--million is an option of `bench index`")
    if peer_python and not peers:
        raise typer.BadParameter("--no-peers and --peer-python exclude each other")
    try:
        if part is Part.prefix:
            pythons = [_interpreter(python) for python in peer_python or [Path(sys.executable)]]
            _bench_prefix(as_json, _sizes(quick, shared, rounds), pythons if peers else [])
        else:
            _bench_figures(as_json, list(_measured(part, million)))
    except SmartCacheError as missing:
        print(missing, file=sys.stderr)
        raise typer.Exit(2) from missing


def advise(
    trace: Annotated[Path, typer.Argument(help="JSON lines with `hash_ids`, or one key a line; may be gzipped.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Say which eviction policy and size a trace of requests wants."""
    try:
        advice = advice_on(read_trace(trace))
    except SmartCacheError as unreadable:
        print(unreadable, file=sys.stderr)
        raise typer.Exit(2) from unreadable
    if as_json:
        print(json.dumps(asdict(advice), ensure_ascii=False))
    else:
        Console().print(_rates_table(advice))
        print(advice)


def main() -> None:
    commands = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)
    commands.callback()(_measure)
    commands.command()(bench)
    commands.command()(advise)
    evaluation_command.register(commands)
    train_command.register(commands)
    commands()


def _measure() -> None:
    """Measure SmartCache."""


def _measured(part: Part, million: bool) -> Iterator[Figure]:
    """Each benchmark is imported when it runs: one without a model needs no torch."""
    if part in (Part.all, Part.answers):
        from smartcache_eval.answers_bench import answer_figures

        yield from answer_figures()
    if part is Part.all:
        from smartcache_eval.prefix_bench import prefix_figures

        yield from prefix_figures(PrefixSizes.reduced())
    if part is Part.eviction:
        from smartcache_eval.eviction_bench import eviction_figures

        yield from eviction_figures()
    if part is Part.vectors:
        from smartcache_eval.index_bench import MILLION, SIZES, index_figures

        yield from index_figures((*SIZES, MILLION) if million else SIZES)
    if part is Part.lookup:
        from smartcache_eval.lookup_bench import embedding_figures, lookup_figures

        yield from embedding_figures()
        yield from lookup_figures()
    if part is Part.context:
        from smartcache_eval.blend_bench import blend_figures
        from smartcache_eval.context_bench import context_figures

        yield from context_figures()
        yield from blend_figures()


def _bench_figures(as_json: bool, figures: list[Figure]) -> None:
    if as_json:
        print(json.dumps([asdict(figure) for figure in figures], ensure_ascii=False))
    else:
        Console().print(_table(figures))


def _bench_prefix(as_json: bool, sizes: PrefixSizes, pythons: Sequence[Path]) -> None:
    from smartcache_eval.prefix_bench import prefix_report

    report = prefix_report(sizes, pythons)
    if as_json:
        print(json.dumps(asdict(report), ensure_ascii=False))
    else:
        Console().print(*tables(report), sep="\n")


def _interpreter(python: Path) -> Path:
    if not os.access(python, os.X_OK) or python.is_dir():
        raise typer.BadParameter(f"{python} is no interpreter that can be run")
    return python


def _sizes(quick: bool, shared: list[int] | None, rounds: int | None) -> PrefixSizes:
    sizes = PrefixSizes.reduced() if quick else PrefixSizes()
    return replace(sizes, shared=tuple(shared or sizes.shared), rounds=rounds or sizes.rounds)


def _table(figures: list[Figure]) -> Table:
    table = Table("figure", "value", "unit", "conditions")
    table.columns[1].justify = "right"
    for figure in figures:
        table.add_row(figure.name, _rounded(figure.value), figure.unit, figure.conditions)
    return table


def _rates_table(advice: Advice) -> Table:
    table = Table("blocks", *POLICIES)
    for blocks, rates in advice.hit_rates.items():
        table.add_row(f"{blocks:,}", *(f"{rates[policy]:.1%}" for policy in POLICIES))
    return table


def _rounded(value: float) -> str:
    """Three digits that mean something; whole numbers from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
