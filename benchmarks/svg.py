"""Line charts as SVG, readable on light and dark pages; axes linear or logarithmic, each series with its own mark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 46, 56
LEGEND_LINE: Final = 20
LIGHT: Final = ("#0b63b0", "#c2410c", "#15803d", "#9333ea", "#b8860b", "#475569", "#be185d", "#0e7490")
DARK: Final = ("#6cb6ff", "#ff9e64", "#7ee787", "#d2a8ff", "#f2cc60", "#aab4c0", "#ff8fb3", "#67d5e8")
MARKS: Final = (
    '<circle cx="{x}" cy="{y}" r="3.6"/>',
    '<path d="M{x} {y}m-3.4 -3.4h6.8v6.8h-6.8z"/>',
    '<path d="M{x} {y}m0 -4.4l4.2 7.4h-8.4z"/>',
    '<path d="M{x} {y}m0 -4.8l4.4 4.8l-4.4 4.8l-4.4 -4.8z"/>',
)
MOST_MARKS: Final = 40


@dataclass(frozen=True, slots=True)
class Series:
    """A line through points (x, y), in order of x; broken where y is 0 on a logarithmic axis.

    ``colour``: its number in the palette; ``dashed``: for a rival.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """``label`` gives the unit. ``low`` and ``high`` widen the points' range."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture. ``note``: what it was measured on, under the title."""

    title: str
    note: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels; ``ticks`` are values. With ``log``, logarithmic: values below ``low`` are drawn at it."""

    low: float
    high: float
    start: float
    stop: float
    log: bool
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, at = self.low, self.high, max(value, self.low)
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return round(self.start + (at - low) / (high - low) * (self.stop - self.start), 1)


def scale(axis: Axis, values: Iterable[float], start: float, stop: float) -> Scale:
    """The scale that shows all values."""
    found = [v for v in (*values, axis.low, axis.high) if v is not None and (v > 0 or not axis.log)]
    low, high = min(found), max(found)
    if axis.log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        last = max(last, first + 1)
        return Scale(10.0**first, 10.0**last, start, stop, True, tuple(10.0**e for e in range(first, last + 1)))
    low = min(low, 0.0) if axis.low is None else low
    step = nice((high - low) / 8 or 1.0)
    last = math.ceil(high / step - 1e-9)
    first = math.floor(low / step + 1e-9)
    ticks = tuple(step * k for k in range(first, max(last, first + 1) + 1))
    return Scale(ticks[0], ticks[-1], start, stop, False, ticks)


def nice(step: float) -> float:
    """The least of 1, 2, 5 × a power of ten that is at least the step."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step - 1e-12)


def short(value: float) -> str:
    """A tick's text."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def style() -> str:
    """Colours by the page's mode."""

    def rules(ink: str, paper: str, grid: str, palette: Sequence[str]) -> str:
        lines = "".join(f".s{i}{{stroke:{c}}}.f{i}{{fill:{c}}}" for i, c in enumerate(palette))
        return f".paper{{fill:{paper}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}.axis{{stroke:{ink}}}{lines}"

    light, dark = rules("#1f2328", "#ffffff", "#d8dee4", LIGHT), rules("#e6edf3", "#0d1117", "#30363d", DARK)
    return (
        "<style>text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}.note{font-size:11px;"
        f"opacity:.8}}.line{{fill:none;stroke-width:1.8}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    )


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "", turn: bool = False) -> str:
    """One line of text."""
    turned = f' transform="rotate(-90 {x:g} {y:g})"' if turn else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{named}{turned}>{escape(content)}</text>'


def unbroken(points: Iterable[tuple[float, float]], log: bool) -> list[list[tuple[float, float]]]:
    """The points in runs: on a logarithmic axis a value of 0 ends one."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y > 0 or not log:
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def lined(series: Series, across: Scale, up: Scale, number: int) -> list[str]:
    """A series' lines and marks."""
    dash = ' stroke-dasharray="6 4"' if series.dashed else ""
    runs = [[(across(x), up(y)) for x, y in run] for run in unbroken(series.points, up.log)]
    lines = (" ".join(f"{x:g},{y:g}" for x, y in run) for run in runs if len(run) > 1)
    mark = MARKS[number % len(MARKS)]
    every = max(1, sum(map(len, runs)) // MOST_MARKS)
    marks = "".join(mark.format(x=x, y=y) for run in runs for x, y in run[::every])
    return [
        *(f'<polyline class="line s{series.colour}" points="{line}"{dash}/>' for line in lines),
        f'<g class="f{series.colour}">{marks}</g>',
    ]


def legend(chart: Chart, top: float) -> list[str]:
    """Names of the series, in two columns below the picture."""
    parts = []
    for i, series in enumerate(chart.series):
        x, y = LEFT + (i % 2) * (WIDTH - LEFT - RIGHT) / 2, top + LEGEND_LINE * (i // 2)
        dash = ' stroke-dasharray="6 4"' if series.dashed else ""
        mark = MARKS[i % len(MARKS)].format(x=f"{x + 13:g}", y=f"{y - 4:g}")
        parts.append(f'<path class="line s{series.colour}" d="M{x:g} {y - 4:g}h26"{dash}/>')
        parts.append(f'<g class="f{series.colour}">{mark}</g>')
        parts.append(text(x + 34, y, series.name))
    return parts


def draw(chart: Chart) -> str:
    """The chart as an SVG document."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across = scale(chart.x, (x for s in chart.series for x, _ in s.points), LEFT, right)
    up = scale(chart.y, (y for s in chart.series for _, y in s.points), bottom, TOP)
    height = HEIGHT + LEGEND_LINE * ((len(chart.series) + 1) // 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img"><title>{escape(chart.title)}</title>{style()}',
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>',
        text(LEFT, 19, chart.title, kind="title"),
        text(LEFT, 36, chart.note, kind="note"),
    ]
    for tick in across.ticks:
        x = across(tick)
        parts.append(f'<path class="grid" d="M{x:g} {TOP}V{bottom}"/>')
        parts.append(text(x, bottom + 17, short(tick), "middle"))
    for tick in up.ticks:
        y = up(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:g}H{right}"/>')
        parts.append(text(LEFT - 8, y + 4, short(tick), "end"))
    parts.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(text((LEFT + right) / 2, bottom + 38, chart.x.label, "middle"))
    parts.append(text(20, (TOP + bottom) / 2, chart.y.label, "middle", turn=True))
    for number, series in enumerate(chart.series):
        parts += lined(series, across, up, number)
    return "\n".join([*parts, *legend(chart, HEIGHT), "</svg>"]) + "\n"
