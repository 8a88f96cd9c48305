"""Charts as inline SVG: bars that stand on their own in a page, light or dark, with every value as text on hover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 920, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 22, 26


@dataclass(frozen=True, slots=True)
class Part:
    """One coloured piece of a bar; `kind` is the CSS class that colours it."""

    value: float
    kind: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts on top of each other; `label` is shown on hover. `mark` draws a line before the bar, with that text."""

    parts: tuple[Part, ...]
    label: str
    mark: str = ""


def columns(bars: Sequence[Bar], *, unit: str, title: str) -> str:
    """Columns side by side, in order, over a common scale that begins at zero."""
    top = max((sum(part.value for part in bar.parts) for bar in bars), default=0)
    ticks = _ticks(top)
    height = HEIGHT - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    drawn = [_tick(value, HEIGHT - BOTTOM - value / ticks[-1] * height, unit) for value in ticks]
    for place, bar in enumerate(bars):
        x = LEFT + place * step
        if bar.mark:
            drawn.append(_mark(x, bar.mark))
        drawn.append(_column(bar, x + step * 0.12, step * 0.76, height / ticks[-1]))
        if (place + 1) % 5 == 0 or place == 0:
            drawn.append(_text("tick", x + step / 2, HEIGHT - 8, str(place + 1)))
    return _svg(drawn, HEIGHT, title)


def strip(parts: Sequence[Part], *, title: str) -> str:
    """One bar from left to right, each part with its value inside where there is room."""
    whole = sum(part.value for part in parts) or 1.0
    drawn, x = [], 0.0
    for part in parts:
        width = part.value / whole * WIDTH
        if not part.value:
            continue
        drawn.append(_rectangle(part.kind, x, 0, max(1.0, width - 2), 34))
        if width > 30:
            drawn.append(_text("inside", x + width / 2 - 1, 22, f"{part.value:,.0f}"))
        x += width
    return _svg(drawn, 34, title)


def _column(bar: Bar, x: float, width: float, scale: float) -> str:
    y = float(HEIGHT - BOTTOM)
    drawn = []
    for part in bar.parts:
        # A value that is there must be seen, however small.
        height = max(1.5, part.value * scale) if part.value else 0.0
        y -= height
        drawn.append(_rectangle(part.kind, x, y, width, height))
    # The whole column answers to the pointer, not only its visible part.
    drawn.append(_rectangle("hover", x, TOP, width, HEIGHT - TOP - BOTTOM))
    return f"<g><title>{escape(bar.label)}</title>{''.join(drawn)}</g>"


def _mark(x: float, text: str) -> str:
    line = f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{HEIGHT - BOTTOM}"/>'
    return line + _text("mark-text", x, TOP - 9, text)


def _tick(value: float, y: float, unit: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + _text("tick", LEFT - 6, y + 4, f"{value:,.0f} {unit}", anchor="end")


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'


def _text(kind: str, x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks(top: float) -> list[float]:
    """Zero and three or four round values, the last at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    rough = top / 3
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [step * number for number in range(ceil(top / step) + 1)]


def _svg(drawn: Sequence[str], height: int, title: str) -> str:
    label = escape(title, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'
