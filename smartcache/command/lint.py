"""The findings of `smartcache lint` as a table, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from smartcache.command.kept import counted
from smartcache.lint import REMEDIES, LintReport


def as_json_of(found: LintReport) -> dict[str, Any]:
    return {
        "source": found.source,
        "requests": found.requests,
        "findings": [asdict(one) | {"remedy": one.remedy} for one in found.findings],
        "sharing": asdict(found.sharing) if found.sharing else None,
    }


def show(found: LintReport, console: Console) -> None:
    """A row a finding, what to do for each code, and of a log what is shared."""
    if found.findings:
        table = Table("code", "where", "what", "lost")
        for one in found.findings:
            where = f"request {one.line}" if one.requests else f"line {one.line}"
            often = f"\nin {counted(one.requests, 'request')}" if one.requests else ""
            table.add_row(
                Text(one.code, "red"),
                Text(f"{where}, letter {one.place:,}{often}"),
                Text(one.what),
                f"{one.lost_share:.0%}",
            )
        console.print(table)
        for code in dict.fromkeys(one.code for one in found.findings):
            console.print(Text(f"{code}: {REMEDIES[code]}"), soft_wrap=True)
    if found.sharing:
        sharing = found.sharing
        console.print(
            f"{counted(found.requests, 'request')}: {sharing.now:.1%} of the letters begin an earlier prompt too"
        )
        for code, share in sharing.by_code.items():
            console.print(f"  with {code} alone mended: {share:.1%}")
        if sharing.by_code:
            console.print(f"  with everything mended: {sharing.mended:.1%}")
    console.print(f"{counted(len(found.findings), 'finding')} in {found.source}", highlight=False, soft_wrap=True)
