"""Plots as SVG text: axes, lines, dots and bars, no more than the report needs. Colours are the page's (report.css)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

Point = tuple[float, float]
Tick = tuple[float, str]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two ends: steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """12, 1.5, 3k: as short as an axis wants it."""
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


class Plot:
    """One drawing. x and y are the ends of the axes, in the units of the data."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        size: tuple[int, int] = (880, 300),
        margins: tuple[int, int, int, int] = (28, 16, 34, 52),
        label: str = "",
    ):
        self.x, self.y = x, y if y[1] > y[0] else (y[0], y[0] + 1)
        self.width, self.height = size
        self.top, self.right, self.bottom, self.left = margins
        self.label = label
        self._parts: list[str] = []

    # ---- places ---------------------------------------------------------------------------------------------------------

    def at_x(self, value: float) -> float:
        span = self.x[1] - self.x[0] or 1
        return self.left + (value - self.x[0]) / span * (self.width - self.left - self.right)

    def at_y(self, value: float) -> float:
        value = min(max(value, self.y[0]), self.y[1])
        return self.height - self.bottom - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - self.top - self.bottom)

    # ---- axes -----------------------------------------------------------------------------------------------------------

    def x_axis(self, ticks: Iterable[Tick], title: str = "") -> Plot:
        floor = self.height - self.bottom
        self._add(f'<line class="axis" x1="{self.left}" y1="{floor}" x2="{self.width - self.right}" y2="{floor}"/>')
        for value, text in ticks:
            place = self.at_x(value)
            self._add(f'<line class="axis" x1="{place:.1f}" y1="{floor}" x2="{place:.1f}" y2="{floor + 4}"/>')
            self.text(place, floor + 17, text, "tick middle")
        if title:
            self.text(self.width - self.right, floor + 31, title, "axis-title end")
        return self

    def y_axis(self, ticks: Iterable[Tick] | None = None, title: str = "") -> Plot:
        for value, text in ticks if ticks is not None else [(v, number(v)) for v in nice_ticks(*self.y)]:
            place = self.at_y(value)
            self._add(f'<line class="grid" x1="{self.left}" y1="{place:.1f}" x2="{self.width - self.right}" y2="{place:.1f}"/>')
            self.text(self.left - 7, place + 4, text, "tick end")
        if title:
            self.text(self.left - 7, self.top - 14, title, "axis-title")
        return self

    # ---- marks ----------------------------------------------------------------------------------------------------------

    def line(self, points: Sequence[Point], kind: str, *, steps: bool = False) -> Plot:
        path, before = [], None
        for x, y in points:
            if math.isnan(y):
                before = None
                continue
            place = f"{self.at_x(x):.1f},{self.at_y(y):.1f}"
            if before is None:
                path.append(f"M{place}")
            elif steps:
                path.append(f"H{self.at_x(x):.1f}V{self.at_y(y):.1f}")
            else:
                path.append(f"L{place}")
            before = place
        self._add(f'<path class="line {kind}" d="{"".join(path)}"/>')
        return self

    def dots(self, points: Iterable[tuple[float, float, str]], kind: str, radius: float = 2.2) -> Plot:
        for x, y, title in points:
            mark = f'<circle class="dot {kind}" cx="{self.at_x(x):.1f}" cy="{self.at_y(y):.1f}" r="{radius}"'
            self._add(f"{mark}><title>{escape(title)}</title></circle>" if title else f"{mark}/>")
        return self

    def bars(self, bars: Iterable[tuple[float, float, float, float, str]], kind: str, gap: float = 1.0) -> Plot:
        """(from x, to x, from y, to y, title) each."""
        for x0, x1, y0, y1, title in bars:
            left, right = self.at_x(x0), self.at_x(x1)
            top, floor = self.at_y(y1), self.at_y(y0)
            if floor - top < 0.05:
                continue
            room = min(gap, (right - left) / 4)
            place = f'x="{left + room / 2:.2f}" y="{top:.2f}" width="{right - left - room:.2f}" height="{floor - top:.2f}"'
            self._add(f'<rect class="bar {kind}" {place}><title>{escape(title)}</title></rect>')
        return self

    def rule(self, x: float, text: str = "", kind: str = "") -> Plot:
        """A line straight up, with a word beside it."""
        place = self.at_x(x)
        self._add(
            f'<line class="rule {kind}" x1="{place:.1f}" y1="{self.top}" x2="{place:.1f}" y2="{self.height - self.bottom}"/>'
        )
        if text:
            near_end = place > self.width * 0.8
            self.text(place + (-6 if near_end else 6), self.top + 12, text, f"note {'end' if near_end else ''} {kind}")
        return self

    def bracket(self, x0: float, x1: float, row: int, text: str, kind: str) -> Plot:
        """A window drawn as a bar from where it begins to where it ends; cut off at the left edge of the plot."""
        left, right = max(self.at_x(x0), self.left), self.at_x(x1)
        place = self.top + 8 + row * 15
        cut = self.at_x(x0) < self.left
        start = f"M{left + 5:.1f},{place - 4}L{left:.1f},{place}L{left + 5:.1f},{place + 4}M{left:.1f},{place}" if cut else (
            f"M{left:.1f},{place - 4}V{place + 4}M{left:.1f},{place}"
        )
        self._add(f'<path class="bracket {kind}" d="{start}H{right:.1f}M{right:.1f},{place - 4}V{place + 4}"/>')
        self.text(right + 6, place + 4, text, f"note {kind}")
        return self

    def text(self, x: float, y: float, text: str, kind: str) -> Plot:
        self._add(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')
        return self

    def svg(self) -> str:
        label = f' role="img" aria-label="{escape(self.label, quote=True)}"' if self.label else ""
        return f'<div class="wide"><svg viewBox="0 0 {self.width} {self.height}"{label}>{"".join(self._parts)}</svg></div>'

    def _add(self, part: str) -> None:
        self._parts.append(part)


def legend(*entries: tuple[str, str]) -> str:
    """(kind, text) each: a coloured mark and a word."""
    marks = "".join(f'<span class="entry"><i class="mark {kind}"></i>{escape(text)}</span>' for kind, text in entries)
    return f'<div class="legend">{marks}</div>'
