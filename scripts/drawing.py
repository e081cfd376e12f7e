"""Boxes, words and lines as SVG, in the colours of the documentation's pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"

INK, SOFT, EDGE, PAPER = "#1c2330", "#5d6675", "#c9cfd8", "#ffffff"
VALUE, SUFFIX, OTHER, GONE = "#eef2f7", "#cfe3f9", "#fbe3c0", "#f6f6f6"
BLUE, ORANGE, GREEN, RED, PURPLE = "#1f77d0", "#c9740f", "#16794c", "#cf3f4f", "#7a4fc4"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Drawing:
    """Boxes, words and lines on white paper (pages may be dark)."""

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def text(self, x, y, words: str, *, size=14, colour=INK, anchor="middle", bold=False, italic=False) -> None:
        style = (' font-weight="600"' if bold else "") + (' font-style="italic"' if italic else "")
        place = f'x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        self.parts.append(f"<text {place}{style}>{escape(words)}</text>")

    def box(self, x, y, width, height, words="", *, fill=VALUE, edge=EDGE, colour=INK, size=15, bold=False, round=5) -> None:
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}"'
        self.parts.append(f'<rect {place} fill="{fill}" stroke="{edge}"/>')
        if words:
            self.text(x + width / 2, y + height / 2 + size * 0.36, words, size=size, colour=colour, bold=bold)

    def line(self, *points: tuple[float, float], colour=SOFT, width=1.4, dashed=False, arrow=False) -> None:
        path = "L".join(f"{x:g},{y:g}" for x, y in points)
        more = (' stroke-dasharray="4 4"' if dashed else "") + (f' marker-end="url(#{self._head(colour)})"' if arrow else "")
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"{more}/>')

    def bracket(self, x0, x1, y, words: str, *, colour=SOFT, below=True, size=13) -> None:
        """A line over or under a stretch, with a word in its middle."""
        tip = -5 if below else 5
        self.line((x0 + 2, y + tip), (x0 + 2, y), (x1 - 2, y), (x1 - 2, y + tip), colour=colour)
        self.text((x0 + x1) / 2, y + (16 if below else -7), words, size=size, colour=colour)

    def write(self, name: str) -> None:
        marks = "".join(
            f'<marker id="{self._head(c)}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0,0L8,4L0,8z" fill="{c}"/></marker>'
            for c in (SOFT, BLUE, ORANGE, GREEN, RED, PURPLE)
        )
        (FOLDER / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="{escape(FONT, quote=True)}" role="img"><title>{escape(self.title)}</title>'
            f"<defs>{marks}</defs>"
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10" fill="{PAPER}" stroke="{EDGE}"/>'
            + "\n".join(self.parts)
            + "</svg>\n",
            encoding="utf-8",
        )

    @staticmethod
    def _head(colour: str) -> str:
        return f"head{colour[1:]}"


def cells(drawing: Drawing, x, y, values: Sequence, fills: Iterable[str], *, width=46, height=36) -> list[float]:
    """A row of boxes; gives the left edges, and the right edge of the last."""
    edges = [x + i * width for i in range(len(values) + 1)]
    for left, value, fill in zip(edges, values, fills):
        drawing.box(left, y, width - 3, height, str(value), fill=fill)
    return edges
