"""The findings of `smartcache lint` as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from smartcache.command.kept import counted
from smartcache.lint import REMEDIES, LintReport


def as_json_of(reports: Sequence[LintReport]) -> dict[str, Any]:
    return {"findings": sum(len(one.findings) for one in reports), "prompts": [_as_json(one) for one in reports]}


def show(reports: Sequence[LintReport], console: Console) -> None:
    """For each a table with a row a finding, and of a log what is shared; at last what to do for each code."""
    for one in reports:
        if one.findings:
            console.print(_table(one))
        for line in _shared(one):
            console.print(line, highlight=False)
        console.print(Text(f"{counted(len(one.findings), 'finding')} in {one.source}"), soft_wrap=True)
    for code in dict.fromkeys(finding.code for one in reports for finding in one.findings):
        console.print(Text(f"{code}: {REMEDIES[code]}"), soft_wrap=True)


def _table(found: LintReport) -> Table:
    table = Table("code", "where", "what", "lost")
    for one in found.findings:
        where = f"request {one.line}" if one.requests else f"line {one.line}"
        often = f"\nin {counted(one.requests, 'request')}" if one.requests else ""
        where = f"{where}, letter {one.place:,}{often}"
        table.add_row(Text(one.code, "red"), Text(where), Text(one.what), f"{one.lost_share:.0%}")
    return table


def _shared(found: LintReport) -> Iterator[str]:
    if sharing := found.sharing:
        yield f"{counted(found.requests, 'request')}: {sharing.now:.1%} of the letters begin an earlier prompt too"
        yield from (f"  with {code} alone mended: {share:.1%}" for code, share in sharing.by_code.items())
        if sharing.by_code:
            yield f"  with everything mended: {sharing.mended:.1%}"


def _as_json(found: LintReport) -> dict[str, Any]:
    return {
        "source": found.source,
        "requests": found.requests,
        "findings": [asdict(one) | {"remedy": one.remedy} for one in found.findings],
        "sharing": asdict(found.sharing) if found.sharing else None,
    }
