"""`smartcache-eval run updates`: the histories played, as JSON or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from smartcache_eval.folder import public_folder
from smartcache_eval.histories import histories
from smartcache_eval.updates import MODES, Count, check_share_of_hit, played
from smartcache_eval.vectors import KnownVectors

UPDATES = "updates"


def run_updates(vectors: KnownVectors, seed: int, limit: int | None) -> dict[str, Any]:
    """Every history, and the cost of the check over the last one."""
    found = histories(public_folder(), seed, limit)
    results = []
    for number, history in enumerate(found, start=1):
        results.append(played(history, vectors))
        Console(stderr=True).print(f"{number} of {len(found)} histories: {history.name}", style="dim")
    longest = max(found, key=lambda history: len(history.versions))
    return {
        "workload": UPDATES,
        "seed": seed,
        "stale": sum(kinds["all"].stale for one in results for kinds in one.modes.values()),
        "surfaced": sum(kinds["all"].surfaced for one in results for kinds in one.modes.values()),
        "surfaced_by_mode": {mode: sum(one.modes[mode]["all"].surfaced for one in results) for mode in MODES},
        "wrongly_dropped_share": {mode: _dropped([one.modes[mode]["all"] for one in results]) for mode in MODES},
        "check_share_of_hit": check_share_of_hit(longest, vectors),
        "histories": {one.history: one.as_json() for one in results},
    }


def _dropped(counts: Sequence[Count]) -> float | None:
    right = sum(count.still_right for count in counts)
    return sum(count.wrongly_dropped for count in counts) / right if right else None


def print_updates(result: dict[str, Any]) -> None:
    console = Console()
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("history", "mode", "change", "asked", "served", "stale", "surfaced", "right", "dropped", "searches"):
        table.add_column(title, no_wrap=True)
    for name, one in result["histories"].items():
        for mode, kinds in one["modes"].items():
            for kind, count in kinds.items():
                table.add_row(name, mode, kind, *_row(count))
    console.print(table)
    console.print("right: kept, and made from what a search finds now; dropped: of these, not served", style="dim")
    told = "answers that an edit elsewhere, of a document that was there before, would change: no search was at hand"
    console.print(f"the check takes {result['check_share_of_hit']:.1%} of an exact hit")
    console.print(f"{result['stale']} stale; {result['surfaced']} surfaced ({told})")


def _row(count: dict[str, Any]) -> Sequence[str]:
    share = count["wrongly_dropped_share"]
    shown = [f"{count[name]:,}" for name in ("asked", "served", "stale", "surfaced", "still_right")]
    return [*shown, "n/a" if share is None else f"{share:.1%}", f"{count['searches']:,}"]
