"""The demo's report: one HTML page with the figures as charts, readable without network, scripts or this package."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template

from smartcache.command.charts import Bar, Part, columns, strip
from smartcache.command.figures import COLD_SHARE, Figures, KnowledgeChange, Outcome
from smartcache.command.live import described, milliseconds

LAYERS = {"exact": "same dialogue", "semantic": "same question, other words", "model": "language model"}


def report(figures: Figures) -> str:
    """The whole page."""
    page = Template((files("smartcache.command") / "report.html").read_text(encoding="utf-8"))
    return page.substitute(
        summary=_summary(figures),
        tiles=_tiles(figures),
        outcomes=_outcomes(figures),
        first_tokens=columns(_first_tokens(figures), unit="ms", title="Time to first token by turn"),
        tokens=columns(_tokens(figures), unit="", title="Prompt tokens by turn"),
        turns="\n".join(map(_row, figures.rows)),
    )


def _summary(figures: Figures) -> str:
    served = f"{figures.hits} of {len(figures.outcomes)} answers came from the cache"
    if figures.is_faultless:
        return f"{served}, none of them wrong, none stale."
    faults = f"{figures.count(verdict='wrong')} wrong and {figures.count(verdict='stale')} stale"
    return f"{served}; <strong>{faults}</strong> among them."


def _tiles(figures: Figures) -> str:
    share = figures.reused_tokens / figures.prompt_tokens if figures.prompt_tokens else 0.0
    tiles = (
        ("wrong answers", str(figures.count(verdict="wrong")), f"of {figures.hits} served from the cache"),
        ("stale answers", str(figures.count(verdict="stale")), f"{figures.invalidated} invalidated in time"),
        ("prompt tokens reused", f"{share:.0%}", f"{figures.reused_tokens:,} of {figures.prompt_tokens:,}"),
        ("first token, cold", milliseconds(figures.first_token_cold_ms), f"under {COLD_SHARE:.0%} reused"),
        ("first token, warm", milliseconds(figures.first_token_warm_ms), "the model's other answers"),
        ("answer from the cache", milliseconds(figures.hit_ms), "median, as the two before"),
    )
    return "\n".join(
        f'<div class="tile"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>'
        for name, value, note in tiles
    )


def _outcomes(figures: Figures) -> str:
    counts = {layer: figures.count(served_by=layer) for layer in LAYERS}
    legend = "".join(
        f'<span class="key"><i class="{layer}"></i>{layer} <b>{counts[layer]}</b> '
        f'<span class="note">{meaning}</span></span>'
        for layer, meaning in LAYERS.items()
    )
    bar = strip([Part(count, layer) for layer, count in counts.items()], title="Requests by outcome")
    return f'{bar}<p class="legend">{legend}</p>'


def _first_tokens(figures: Figures) -> list[Bar]:
    return [
        Bar((Part(o.reply.first_token_seconds * 1000, o.served_by),), _label(number, o), mark)
        for number, o, mark in _numbered(figures)
    ]


def _tokens(figures: Figures) -> list[Bar]:
    bars = []
    for number, outcome, mark in _numbered(figures):
        reused, whole = outcome.reply.cached_tokens, outcome.reply.prompt_tokens
        parts = (Part(reused, "reused"), Part(whole - reused, "computed"))
        bars.append(Bar(parts, f"{_label(number, outcome)}, {reused} of {whole} tokens reused", mark))
    return bars


def _numbered(figures: Figures) -> list[tuple[int, Outcome, str]]:
    """Every turn with its number, and a mark where the knowledge base changed just before it."""
    numbered: list[tuple[int, Outcome, str]] = []
    mark = ""
    for row in figures.rows:
        if isinstance(row, KnowledgeChange):
            mark = "documents change"
            continue
        numbered.append((len(numbered) + 1, row, mark))
        mark = ""
    return numbered


def _label(number: int, outcome: Outcome) -> str:
    after = milliseconds(outcome.reply.first_token_seconds * 1000)
    return f"{number}. {outcome.ask.user}: {outcome.ask.text} ({outcome.served_by}, {after})"


def _row(row: Outcome | KnowledgeChange) -> str:
    if isinstance(row, KnowledgeChange):
        return f'<tr class="change"><td colspan="5">▲ {escape(described(row))}</td></tr>'
    ask, reply = row.ask, row.reply
    tokens = f"{reply.cached_tokens} / {reply.prompt_tokens}" if reply.prompt_tokens else "0 / 0"
    fault = "" if row.verdict == "right" else f' <strong class="fault">{row.verdict}</strong>'
    return (
        f"<tr><td>{escape(ask.user)}<br><span class=note>{escape(ask.tenant)}</span></td>"
        f"<td>{escape(ask.text)}<br><span class=note>{escape(reply.answer.text)}</span></td>"
        f'<td><span class="key"><i class="{row.served_by}"></i>{row.served_by}</span>{fault}<br>'
        f"<span class=note>{escape(ask.situation)}</span></td>"
        f'<td class="number">{tokens}</td>'
        f'<td class="number">{milliseconds(reply.first_token_seconds * 1000)}</td></tr>'
    )
