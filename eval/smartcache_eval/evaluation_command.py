"""The commands that measure answers: `run` a workload, `report` what was run, and a `gate` for a build to stop at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from smartcache import Embedder, SmartCacheError
from smartcache.calibrated import MAX_WRONG
from smartcache_eval.contestants import ours
from smartcache_eval.page import page
from smartcache_eval.protocol import Run, Settings
from smartcache_eval.protocol import run as play_run
from smartcache_eval.tally import Tally
from smartcache_eval.updates_command import UPDATES, print_updates, run_updates
from smartcache_eval.vectors import KnownVectors
from smartcache_eval.workloads import read_workload

WORKLOAD = "A workload by name, or a file of your own with one step a line."


class PartName(StrEnum):
    """Which groups of a workload are asked: those for choosing, those for reporting, or all."""

    report = "report"
    choose = "choose"
    all = "all"


Seed = Annotated[int, typer.Option(help="Shuffles the order of arrival.")]
PartOption = Annotated[PartName, typer.Option("--part", help="Choose settings of your own on `choose`.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many steps of a part, in whole groups.")]
MaxWrong = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.99,
        help="Wrong answers per hit: `run` keeps our policy and the others' thresholds to it, "
        "`gate` the default policy.",
    ),
]
Vectors = Annotated[Path | None, typer.Option(help="A folder that keeps vectors from one run to the next.")]


def register(commands: typer.Typer) -> None:
    """Adds these commands to the others."""
    commands.command()(run)
    commands.command()(report)
    commands.command()(gate)


def run(
    workload: Annotated[str, typer.Argument(help=WORKLOAD)] = "support",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    seed: Seed = 0,
    part: PartOption = PartName.report,
    limit: Limit = None,
    max_wrong: MaxWrong = MAX_WRONG,
    wrong_pairs: Annotated[
        bool, typer.Option("--wrong-pairs", help="Show what we took for one and is two, and why.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for the JSON of this run, curves and all.")] = None,
    vectors: Vectors = None,
) -> None:
    """Ask a workload of SmartCache, of the baselines and of an oracle, and count what was right. `updates` asks again
    and again while the documents change, and counts what was stale."""
    if workload == UPDATES:
        _run_updates(as_json, seed, limit, out, vectors)
        return
    settings = Settings(seed, part.value, limit, max_wrong, curves=out is not None)
    with _one_line_errors():
        result = _played(workload, settings, vectors)
        if out:
            out.mkdir(parents=True, exist_ok=True)
            file = out / f"{Path(workload).stem}-{part.value}-{seed}.json"
            file.write_text(json.dumps(result.as_json(), ensure_ascii=False, indent=1), encoding="utf-8")
    if as_json:
        print(json.dumps(result.as_json(), ensure_ascii=False))
    else:
        _print(result)
    if wrong_pairs and not as_json:  # which has them
        for number, pair in enumerate(result.standings["ours"].wrong_pairs, start=1):
            print(f"\n{number}. {pair.sort}\n{pair}")


def _run_updates(as_json: bool, seed: int, limit: int | None, out: Path | None, folder: Path | None) -> None:
    with _one_line_errors():
        vectors = KnownVectors(load_embedder(), folder)
        result = run_updates(vectors, seed, limit)
        vectors.save()
        if out:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{UPDATES}-{seed}.json").write_text(json.dumps(result, ensure_ascii=False, indent=1), "utf-8")
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print_updates(result)


def report(
    folder: Annotated[Path, typer.Argument(help="Where `run --out` left its JSON files.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page; else report.html in the folder.")] = None,
) -> None:
    """Draw what was run as one page that needs no network: hits against wrong answers."""
    with _one_line_errors():
        runs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
        runs = [one for one in runs if isinstance(one, dict) and "policies" in one]
        if not runs:
            raise typer.BadParameter(
                f"{folder} holds no run: make one with  smartcache-eval run support --out {folder}"
            )
        target = html or folder / "report.html"
        target.write_text(page(runs), encoding="utf-8")
    print(target)


def gate(
    workload: Annotated[str, typer.Argument(help=WORKLOAD)] = "support",
    max_wrong: MaxWrong = MAX_WRONG,
    seed: Seed = 0,
    part: PartOption = PartName.report,
    limit: Limit = None,
    vectors: Vectors = None,
) -> None:
    """Exit with 1 where wrong answers per hit may be above the bound (upper end of the 95 % interval), with 2 where
    there was no hit to judge by."""
    with _one_line_errors():
        settings = Settings(seed, part.value, limit, max_wrong, curves=False)
        tally = _played(workload, settings, vectors, only_ours=True).standings["ours"].tally
    upper = tally.wrong_per_hit_upper95
    told = (
        f"{tally.wrong} of {tally.hits} hits were wrong, at most {_percent(upper)} (95 %); the bound is {max_wrong:.2%}"
    )
    if upper is None:
        print(f"no hit of {tally.requests} requests: nothing to judge by")
        raise typer.Exit(2)
    if upper <= max_wrong:
        print(f"passed: {told}")
        return
    print(f"not shown: {told}{_too_few(tally, max_wrong, part)}" if not tally.wrong else f"above: {told}")
    raise typer.Exit(1)


def load_embedder() -> Embedder:
    """The bundled sentence embedder."""
    from smartcache.models import default_embedder

    return default_embedder()


def _played(workload: str, settings: Settings, folder: Path | None, *, only_ours: bool = False) -> Run:
    steps = read_workload(workload)
    vectors = KnownVectors(load_embedder(), folder)
    result = play_run(workload, steps, vectors, settings, (ours(vectors),) if only_ours else None)
    vectors.save()
    return result


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (SmartCacheError, OSError, ValueError) as error:
        typer.echo(f"smartcache-eval: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from error


def _too_few(tally: Tally, max_wrong: float, part: PartName) -> str:
    """How many hits without a wrong one would show that the bound is kept, where there were fewer."""
    if not max_wrong:
        return ""
    needed = int(3.8415 * (1 - max_wrong) / max_wrong) + 1
    instead = "a larger workload" if part is PartName.all else "a larger workload, or --part all"
    return f". With none wrong it takes {needed:,} hits to show it: {instead}"


def _print(result: Run) -> None:
    console, policies = Console(), result.as_json()["policies"]
    console.print(_title(result))
    table = _table("policy", *(title for title, _ in COLUMNS))
    for name, policy in policies.items():
        table.add_row(name, *(shown(policy) for _, shown in COLUMNS))
    console.print(table)
    console.print("attained: right hits, of what had been asked before; ≤ 95 %: upper end of wrong/hit", style="dim")
    if chosen := [f"{name} {one.threshold:.3g}" for name, one in result.standings.items() if one.threshold is not None]:
        console.print(f"thresholds chosen on the part for choosing: {', '.join(chosen)}", highlight=False)
    if sorts := policies.get("ours", {}).get("by_sort", {}):
        table = _table("ours, by sort", "requests", "attainable", "attained", "wrong/request")
        for sort, tally in sorts.items():
            counts = (str(tally["requests"]), str(tally["attainable"]))
            table.add_row(sort, *counts, _percent(tally["hits_of_attainable"]), _percent(tally["wrong_per_request"]))
        console.print(table)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _title(result: Run) -> str:
    settings = result.settings
    asked = f"{result.requests:,} requests, {result.attainable:,} attainable"
    return f"{result.workload}, {settings.part}, seed {settings.seed}: {asked}"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3g}"


COLUMNS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("hits", lambda policy: f"{policy['hits']:,}"),
    ("wrong", lambda policy: f"{policy['wrong']:,}"),
    ("stale", lambda policy: f"{policy['stale']:,}"),
    ("missed", lambda policy: f"{policy['missed']:,}"),
    ("hit rate", lambda policy: _percent(policy["hit_rate"])),
    ("attained", lambda policy: _percent(policy["hits_of_attainable"])),
    ("wrong/hit", lambda policy: _percent(policy["wrong_per_hit"])),
    ("≤ 95 %", lambda policy: _percent(policy["wrong_per_hit_upper95"])),
    ("p99 ms", lambda policy: _number(policy["lookup_p99_ms"])),
)
