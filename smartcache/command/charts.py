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
            drawn.append(f'<text class="tick" x="{x + step / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{place + 1}</text>')
    return _svg(drawn, HEIGHT, title)


def strip(parts: Sequence[Part], *, title: str) -> str:
    """One bar from left to right, each part with its value inside where there is room."""
    whole = sum(part.value for part in parts) or 1.0
    drawn, x = [], 0.0
    for part in parts:
        width = part.value / whole * WIDTH
        if not part.value:
            continue
        drawn.append(f'<rect class="{part.kind}" x="{x:.1f}" y="0" width="{max(1.0, width - 2):.1f}" height="34" rx="4"/>')
        if width > 30:
            drawn.append(f'<text class="inside" x="{x + width / 2 - 1:.1f}" y="22" text-anchor="middle">{part.value:,.0f}</text>')
        x += width
    return _svg(drawn, 34, title)


def _column(bar: Bar, x: float, width: float, scale: float) -> str:
    y = float(HEIGHT - BOTTOM)
    drawn = []
    for part in bar.parts:
        # A value that is there must be seen, however small.
        height = max(1.5, part.value * scale) if part.value else 0.0
        y -= height
        drawn.append(f'<rect class="{part.kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>')
    # The whole column answers to the pointer, not only its visible part.
    drawn.append(f'<rect class="hover" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>')
    return f"<g><title>{escape(bar.label)}</title>{''.join(drawn)}</g>"


def _mark(x: float, text: str) -> str:
    line = f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{HEIGHT - BOTTOM}"/>'
    return f'{line}<text class="mark-text" x="{x:.1f}" y="{TOP - 9}" text-anchor="middle">{escape(text)}</text>'


def _tick(value: float, y: float, unit: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f} {unit}</text>'


def _ticks(top: float) -> list[float]:
    """Zero and three or four round values, the last at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    rough = top / 3
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [step * number for number in range(ceil(top / step) + 1)]


def _svg(drawn: Sequence[str], height: int, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">{"".join(drawn)}</svg>'
    )
