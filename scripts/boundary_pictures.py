"""The pictures of docs/boundaries.md. Which rows a window holds is asked of the library: what is drawn is what it does."""

from __future__ import annotations

import pyarrow as pa
from drawing import BLUE, EDGE, GONE, GREEN, INK, ORANGE, OTHER, PAPER, PURPLE, RED, SOFT, SUFFIX, Drawing

import slidewise as sw

LEFT, UNIT = 200, 62
"""Where time 0 is, and how wide a unit of time."""


def _at(time: float) -> float:
    return LEFT + UNIT * time


def _axis(drawing: Drawing, y: float, last: int) -> None:
    drawing.line((LEFT - 20, y), (_at(last) + 26, y), arrow=True)
    for time in range(last + 1):
        drawing.line((_at(time), y - 4), (_at(time), y + 4))
        drawing.text(_at(time), y + 20, str(time), size=12, colour=SOFT)


def _row(drawing: Drawing, time: float, y: float, name: str, *, lift: float = 0, fill: str = SUFFIX, edge: str = EDGE) -> None:
    drawing.box(_at(time) - 13, y - 13 - lift, 26, 26, name, fill=fill, edge=edge, size=14, bold=True, round=13)


def _end(drawing: Drawing, time: float, y: float, closed: bool, colour: str) -> None:
    """A full dot where the end belongs to the window, a hollow one where it does not."""
    place = f'cx="{_at(time):g}" cy="{y:g}" r="5.5"'
    drawing.parts.append(f'<circle {place} fill="{colour if closed else PAPER}" stroke="{colour}" stroke-width="2"/>')


def _seen(times: list[int], names: list[str], window, row: int, **more) -> list[str]:
    """The rows in the window of one row, by name."""
    table = pa.table({"t": times, "name": names, "mark": more.pop("mark", [False] * len(times))})
    found = sw.rolling(table, time="t", windows={"w": window}, aggs={"seen": sw.collect("name")}, order="name", **more)
    return found["seen_w"][row].as_py()


def closed() -> None:
    times, names, row = [1, 3, 3, 7, 8], ["a", "b", "c", "d", "e"], 3
    drawing = Drawing(900, 330, "A window of 4 at row d: which ends belong to it")
    for time, name, lift in zip(times, names, (0, 0, 30, 0, 0)):
        _row(drawing, time, 62, name, lift=lift, fill=OTHER if name == "d" else SUFFIX)
    _axis(drawing, 92, 9)
    drawing.line((_at(3), 100), (_at(3), 296), colour=EDGE, dashed=True)
    drawing.line((_at(7), 100), (_at(7), 296), colour=EDGE, dashed=True)
    drawing.text(_at(9) + 50, 118, "in it", size=13, colour=SOFT)
    for place, word in enumerate(("right", "left", "both", "neither")):
        y, colour = 150 + 44 * place, (BLUE, ORANGE, GREEN, PURPLE)[place]
        drawing.text(24, y + 5, f'closed="{word}"', size=14, colour=colour, anchor="start", bold=place == 0)
        drawing.line((_at(3), y), (_at(7), y), colour=colour, width=2.4)
        _end(drawing, 3, y, word in ("left", "both"), colour)
        _end(drawing, 7, y, word in ("right", "both"), colour)
        seen = _seen(times, names, sw.time(4), row, closed=word)
        drawing.text(_at(9) + 50, y + 5, " ".join(seen) or "nothing", size=15, colour=colour, bold=True)
    drawing.text(24, 316, "the row d, at 7; range 4", size=12, colour=SOFT, anchor="start")
    drawing.write("closed")


def slide() -> None:
    times, names = [0, 1, 2, 4, 5, 7], ["a", "b", "c", "d", "e", "f"]
    drawing = Drawing(900, 270, "A window of 5 that slides by 3")
    for time, name in zip(times, names):
        _row(drawing, time, 44, name, fill=OTHER if name == "f" else SUFFIX)
    _axis(drawing, 76, 9)
    for boundary in (0, 3, 6, 9):
        drawing.line((_at(boundary), 66), (_at(boundary), 84), colour=RED, width=2.4)
        drawing.line((_at(boundary), 102), (_at(boundary), 236), colour=RED, dashed=True)
    drawing.text(24, 80, "boundaries every 3", size=13, colour=RED, anchor="start")
    table = pa.table({"t": times, "name": names})
    window = {"w": sw.time(5, slide=3)}
    found = sw.rolling(table, time="t", windows=window, aggs={"seen": sw.collect("name")}, emit="slide")
    seen = dict(zip(found["t"].to_pylist(), found["seen_w"].to_pylist()))
    for place, boundary in enumerate((3, 6, 9)):
        y, colour = 128 + 40 * place, (BLUE, GREEN, PURPLE)[place]
        drawing.text(24, y + 5, f"the window of {boundary}", size=14, colour=colour, anchor="start")
        start = max(boundary - 5, -0.35)
        drawing.line((_at(start), y), (_at(boundary), y), colour=colour, width=2.4)
        if boundary - 5 >= 0:
            _end(drawing, boundary - 5, y, False, colour)
        _end(drawing, boundary, y, True, colour)
        drawing.text(_at(9) + 26, y + 5, " ".join(seen[boundary]), size=15, colour=colour, bold=True, anchor="start")
    last = _seen(times, names, sw.time(5, slide=3), 5)
    drawing.text(24, 254, f"row f, at 7, gets the window of 6, the last boundary: {' '.join(last)}", size=13, anchor="start")
    drawing.write("slide")


def runs() -> None:
    """Windows that begin where the rows say so."""
    times, names = [1, 2, 4, 7, 8, 9], ["a", "b", "c", "d", "e", "f"]
    mark = [False, False, True, False, True, False]
    drawing = Drawing(900, 286, "Sessions, punctuation and tumbling windows")
    for time, name, marked in zip(times, names, mark):
        _row(drawing, time, 44, name, fill=OTHER if marked else SUFFIX)
    _axis(drawing, 76, 9)
    drawing.text(24, 48, "orange: marked", size=12, colour=ORANGE, anchor="start")
    kinds = (
        ("session(2)", sw.session(2), "right", BLUE, "a silence of more than 2 begins the next"),
        ('punctuation("mark")', sw.punctuation("mark"), "right", ORANGE, "a marked row is the last of its window"),
        ("... closed=\"both\"", sw.punctuation("mark"), "both", ORANGE, "... or the first"),
        ("tumbling(3)", sw.tumbling(3), "right", GREEN, "side by side; a row on an edge ends the old one"),
    )
    for place, (word, window, ends, colour, why) in enumerate(kinds):
        y = 130 + 42 * place
        drawing.text(24, y + 5, word, size=14, colour=colour, anchor="start")
        begins: dict[str, str] = {}
        for row, name in enumerate(names):
            begins[name] = _seen(times, names, window, row, mark=mark, closed=ends)[0]
        for first in dict.fromkeys(begins.values()):
            members = [times[names.index(name)] for name in names if begins[name] == first]
            drawing.box(_at(members[0]) - 13, y - 9, UNIT * (members[-1] - members[0]) + 26, 18, fill=GONE, edge=colour, round=9)
            for member in members:
                drawing.text(_at(member), y + 4, names[times.index(member)], size=12, colour=INK)
        drawing.text(LEFT - 14, y + 24, why, size=11, colour=SOFT, anchor="start", italic=True)
    drawing.write("runs")


ALL = (closed, slide, runs)
