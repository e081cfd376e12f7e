"""`rolling` and `as_of` by loops over all rows, and random frames to try them on.

A frame is a dict of lists. Results are the rows of each window, as lists of row numbers in the order of (time, order, row): an
operator that collects row numbers must give exactly these, whatever the window.
"""

import itertools

from hypothesis import strategies as st
from tests.windows.naive import Rows, floor_to, members, members_at

import slidewise as sw
from slidewise.windows.clock import Clock
from slidewise.windows.spec import named_windows

ROWS_OF = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, lower=list, identity=(), name="rows_of").with_(
    object_only=True
)
"""Collects what it sees, in order: neither commutative nor invertible."""

CLOCK = Clock("whole")


def ticks_of(windows, origin=None):
    return {name: CLOCK.ticks(window) for name, window in named_windows(windows, origin).items()}


class Sorted:
    """The rows of a frame in the order of (key, time, order, row)."""

    def __init__(self, frame, by, order=()):
        n = len(frame["t"])
        self.frame = frame
        self.key = [tuple(frame[k][i] for k in by) for i in range(n)]
        codes = {key: code for code, key in enumerate(dict.fromkeys(self.key))}
        self.code = [codes[key] for key in self.key]
        ranks = [[(frame[c][i] is not None, frame[c][i]) for c in order] for i in range(n)]
        self.rows = sorted(range(n), key=lambda i: (self.code[i], frame["t"][i], ranks[i], i))
        self.place = {row: place for place, row in enumerate(self.rows)}

    def for_window(self, ticks):
        column = []
        if ticks.column is not None:
            column = [self.frame[ticks.column][row] for row in self.rows]
            if ticks.kind == "punctuation":
                column = [bool(x) for x in column]
        return Rows([self.code[row] for row in self.rows], [self.frame["t"][row] for row in self.rows], column)


def windows_of_rows(frame, windows, by=(), closed="right", ties="peers", order=(), exclude_current=False, origin=None):
    """{window: [rows in the window of row 0, of row 1, ...]}"""
    ordered = Sorted(frame, by, order)
    found = {}
    for name, ticks in ticks_of(windows, origin).items():
        rows = ordered.for_window(ticks)
        found[name] = [
            [
                ordered.rows[j]
                for j in members(ticks, rows, ordered.place[row], closed, ties)
                if not (exclude_current and ordered.rows[j] == row)
            ]
            for row in range(len(frame["t"]))
        ]
    return found


def windows_of_queries(queries, frame, windows, by=(), closed="left", order=(), origin=None):
    ordered = Sorted(frame, by, order)
    codes = {ordered.key[row]: ordered.code[row] for row in range(len(frame["t"]))}
    found = {}
    for name, ticks in ticks_of(windows, origin).items():
        rows = ordered.for_window(ticks)
        found[name] = [
            [
                ordered.rows[j]
                for j in members_at(
                    ticks, rows, codes.get(tuple(queries[k][q] for k in by), -1), queries["t"][q], closed
                )
            ]
            for q in range(len(queries["t"]))
        ]
    return found


def windows_of_keys(frame, windows, by=(), **arguments):
    """emit="latest": (keys, times, {window: rows})"""
    ordered = Sorted(frame, by, arguments.get("order", ()))
    every = windows_of_rows(frame, windows, by, **arguments)
    last = {}
    for row in ordered.rows:
        last[ordered.code[row]] = row
    picked = [last[code] for code in sorted(last)]
    return (
        [ordered.key[row] for row in picked],
        [frame["t"][row] for row in picked],
        {name: [lists[row] for row in picked] for name, lists in every.items()},
    )


def windows_of_boundaries(frame, windows, by=(), closed="right", order=(), origin=None):
    """emit="slide" for time windows: every boundary within reach is tried; {(key code, boundary): {window: rows}}"""
    ordered = Sorted(frame, by, order)
    found = {}
    for name, ticks in ticks_of(windows, origin).items():
        rows = ordered.for_window(ticks)
        plain = type(ticks)("time", ticks.range, 0, ticks.offset)
        for code in set(ordered.code):
            own = [t for t, c in zip(rows.times, rows.keys) if c == code]
            b = floor_to(min(own) - 1, ticks.slide, ticks.origin)
            while b <= max(own) + ticks.range + ticks.offset + ticks.slide:
                inside = members_at(plain, rows, code, b, closed)
                if inside:
                    found.setdefault((code, b), {})[name] = [ordered.rows[j] for j in inside]
                b += ticks.slide
    return ordered, found


@st.composite
def frames(draw, max_size=14):
    """Unsorted rows with ties, several keys (a null among them), nulls and NaN."""
    n = draw(st.integers(0, max_size))
    times = draw(st.lists(st.integers(-6, 14), min_size=n, max_size=n))
    if draw(st.booleans()):
        times.sort()
    lists = lambda values: draw(st.lists(values, min_size=n, max_size=n))
    return {
        "row": list(range(n)),
        "t": times,
        "k": lists(st.sampled_from(["a", "b", None])),
        "k2": lists(st.integers(0, 1)),
        "x": lists(st.sampled_from([None, 0.0, 1.0, 2.5, -3.0, float("nan"), float("inf")])),
        "n": lists(st.one_of(st.none(), st.integers(-3, 3))),
        "flag": lists(st.sampled_from([True, False, False, None])),
        "name": lists(st.sampled_from(["x", "y", "zz", None])),
    }


def each(*choices):
    """All combinations, as pytest parameters."""
    return list(itertools.product(*choices))
