"""The report of one or more runs: one HTML page with curves and tables that needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from smartcache_eval.curves import Point, Series, hits_against_wrong

KINDS = 6  # colours there are
HEADS = (
    "",
    "threshold",
    "hits",
    "wrong",
    "stale",
    "missed",
    "hits of attainable",
    "wrong per hit",
    "≤ (95 %)",
    "p99, ms",
)
SORT_HEADS = ("", "requests", "attainable", "hits of attainable", "wrong per request")


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The whole page, from the JSON of runs."""
    template = Template((files("smartcache_eval") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(sections="\n".join(map(_section, runs)))


def _section(run: Mapping[str, Any]) -> str:
    series = [_series(name, policy, place) for place, (name, policy) in enumerate(run["policies"].items())]
    legend = "".join(f'<span class="{one.kind}"><i></i><b>{escape(one.name)}</b></span>' for one in series)
    asked = f"{run['requests']:,} requests, {run['attainable']:,} attainable"
    settings = f"part {run.get('part')}, seed {run.get('seed')}, {run.get('groups')} groups, {run.get('embedder')}"
    rows = [_row(name, policy) for name, policy in run["policies"].items()]
    return (
        f"<section><h2>{escape(run['workload'])}</h2><p>{escape(asked)}; {escape(settings)}</p>"
        f"{hits_against_wrong(series, 'Hits against wrong answers, ' + run['workload'])}"
        f'<div class="legend">{legend}</div>{_table(HEADS, rows)}{_by_sort(run)}</section>'
    )


def _series(name: str, policy: Mapping[str, Any], place: int) -> Series:
    curve = tuple(_point(name, point) for point in policy.get("curve", ()))
    return Series(name, f"s{place % KINDS}", _point(name, policy), curve)


def _point(name: str, point: Mapping[str, Any]) -> Point:
    requests = point["requests"] or 1
    right = point["hits"] - point["wrong"] - point["stale"]
    threshold = "" if point.get("threshold") is None else f" at {point['threshold']:.3g}"
    label = f"{name}{threshold}: {right:,} right, {point['wrong']:,} wrong of {point['requests']:,}"
    return Point(right / requests, point["wrong"] / requests, label)


def _row(name: str, policy: Mapping[str, Any]) -> list[str]:
    counts = [f"{policy[key]:,}" for key in ("hits", "wrong", "stale", "missed")]
    shares = [_percent(policy.get(key)) for key in ("hits_of_attainable", "wrong_per_hit", "wrong_per_hit_upper95")]
    return [name, _number(policy.get("threshold")), *counts, *shares, _number(policy.get("lookup_p99_ms"))]


def _by_sort(run: Mapping[str, Any]) -> str:
    """What each policy that embeds did with each sort of step."""
    tables = ""
    for name, policy in run["policies"].items():
        sorts = policy.get("by_sort", {}) if policy.get("curve") else {}
        rows = [
            [
                sort,
                f"{tally['requests']:,}",
                f"{tally['attainable']:,}",
                _percent(tally["hits_of_attainable"]),
                _percent(tally["wrong_per_request"]),
            ]
            for sort, tally in sorts.items()
        ]
        tables += f"<h3>{escape(name)}, by sort</h3>{_table(SORT_HEADS, rows)}" if rows else ""
    return tables


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3g}"
