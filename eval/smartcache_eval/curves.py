"""A chart of hits against wrong answers as inline SVG: a curve for whoever has thresholds, a dot where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

WIDTH, HEIGHT = 920, 380
LEFT, RIGHT, TOP, BOTTOM = 58, 24, 16, 46
WRONG_TICKS = (0.0, 0.002, 0.006, 0.012, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Point:
    """Shares of all requests: served rightly, and served wrongly. `label` is shown on hover."""

    right: float
    wrong: float
    label: str


@dataclass(frozen=True, slots=True)
class Series:
    """One policy: `stands` is the point that it was reported at; `kind` the CSS class that colours it."""

    name: str
    kind: str
    stands: Point
    curve: tuple[Point, ...] = ()


def hits_against_wrong(series: Sequence[Series], title: str) -> str:
    """Wrong answers to the right, on a scale that spreads what is small; right ones upwards."""
    points = [point for one in series for point in (one.stands, *one.curve)]
    most = max([point.wrong for point in points], default=0.0)
    end = next((tick for tick in WRONG_TICKS if tick >= max(most, 0.012)), 1.0)
    drawn = [*_grid(end)]
    for one in series:
        places = [_place(point, end) for point in one.curve]
        if places:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            drawn.append(f'<polyline class="{one.kind}" points="{line}"/>')
            drawn += [_dot(one.kind, point, end, 3) for point in one.curve]
        drawn.append(_dot(one.kind, one.stands, end, 7))
    label = escape(title, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _place(point: Point, end: float) -> tuple[float, float]:
    x = LEFT + sqrt(point.wrong / end) * (WIDTH - LEFT - RIGHT)
    return x, HEIGHT - BOTTOM - point.right * (HEIGHT - TOP - BOTTOM)


def _dot(kind: str, point: Point, end: float, radius: int) -> str:
    x, y = _place(point, end)
    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{escape(point.label)}</title></circle>'
    )


def _grid(end: float) -> list[str]:
    drawn = []
    for tick in (tick for tick in WRONG_TICKS if tick <= end):
        x, _ = _place(Point(0.0, tick, ""), end)
        drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        drawn.append(_text(x, HEIGHT - BOTTOM + 18, f"{100 * tick:.3g}"))
    for right in (0.0, 0.25, 0.5, 0.75, 1.0):
        _, y = _place(Point(right, 0.0, ""), end)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(_text(LEFT - 8, y + 4, f"{100 * right:.0f} %", anchor="end"))
    drawn.append(_text(WIDTH - RIGHT, HEIGHT - 8, "wrong answers served, of 100 requests", anchor="end"))
    return drawn


def _text(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
