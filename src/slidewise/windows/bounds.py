"""The one boundary rule: for each row (or query, or boundary) the frame [start, end) of sorted rows that its window holds.

Rows are sorted by (key, time, order). `offsets` says where each key begins, with the number of rows at its end; times
are int64 ticks or float64 (clock.py). A frame is two positions, and both never go back from one row to the next, so every
frame of a window is found in one pass with two pointers, and every algorithm can slide over them.

    times      1    3    3    7    8           closed="right", range 5, at the row of time 7: (2, 7]
    rows       0    1    2    3    4
                    '----start=1 .. end=4

What `closed` and `ties` mean for each kind is drawn in docs/boundaries.md; the words below are the same as there:

    moment    the point in time a window ends at: the row's (or query's) time; with a slide, the last boundary at or
              before it; an offset moves it back
    seen      the rows up to the moment: at it too where the right end is closed, and then ties="arrival" sees those of the
              row's own time only up to the row itself
    start     time: moment - range; tumbling: the last edge (before the moment, or at it where the left end is closed);
              lifetime: the key's first row; session, delta, punctuation: where the run of the last row seen began

`frames` and `frames_as_of` are what engines call; the compiled loops under them are in positions.py.
"""

import numpy as np

from slidewise.errors import InputError
from slidewise.windows.clock import HIGHEST, LOWEST, Ticks
from slidewise.windows.positions import (
    delta_starts,
    key_starts,
    last_rows,
    mark_starts,
    own_ends,
    own_frames,
    positions,
    row_frames,
    run_starts,
    session_starts,
)

CLOSED = {"right": (False, True), "left": (True, False), "both": (True, True), "neither": (False, False)}
TIES = ("peers", "arrival")
_NONE = np.zeros(0, np.int64)


def sides(closed: str) -> tuple[bool, bool]:
    """(left end belongs to the window, right end does)"""
    if not isinstance(closed, str) or closed not in CLOSED:
        raise InputError(f"closed must be one of {', '.join(map(repr, CLOSED))}, not {closed!r}")
    return CLOSED[closed]


def index_dtype(rows: int) -> np.dtype:
    """The smallest integers that hold a position among that many rows."""
    return np.dtype(np.int32 if rows < 2**31 - 1 else np.int64)


def _at_once(part, count: int) -> None:
    part(0, count)


def end_rule(window: Ticks, ties: str = "peers", closed: str = "right") -> tuple:
    """What the ends of a window's frames depend on: windows with equal rules have the same ends."""
    if window.kind == "rows":
        return ("rows", window.slide, window.offset)
    moved = window.kind == "time" and (window.slide or window.offset)
    if window.by_position or (ties == "arrival" and sides(closed)[1] and not moved):
        return ("row",)
    return ("moment", window.slide, window.origin, window.offset) if moved else ("moment", 0, 0, 0)


def frames(
    window: Ticks, times, offsets, *, closed="right", ties="peers", column=None, ends=None, distinct=False, run=_at_once
):
    """(starts, ends): the frame of each row's window, among the same rows.

    column: (values, valid) of the column a delta or punctuation window goes by, sorted; valid is a byte for each row that says
    whether it is not null, or None. ends: those of a window with the same end_rule, to be used again. distinct: no two rows of
    a key share a time, so that rows have no peers. run(part, n): how to run part(lo, hi) over n rows, for engines with threads.
    """
    left, right = sides(closed)
    if ties not in TIES:
        raise InputError(f"ties must be one of {', '.join(map(repr, TIES))}, not {ties!r}")
    check_room(window, times)
    n = len(times)
    rule = end_rule(window, ties, closed)
    starts = np.empty(n, index_dtype(n))
    found = ends is not None
    ends = ends if found else np.empty(n, index_dtype(n))
    if rule[0] == "rows":
        numbers = (window.range, window.slide, window.offset)
        run(lambda lo, hi: row_frames(offsets, *numbers, left, right, starts, ends, lo, hi), n)
        return starts, ends
    if not found and (rule[0] == "row" or (distinct and rule == ("moment", 0, 0, 0))):
        run(lambda lo, hi: own_ends(right, ends, 0, lo, hi), n)
    elif not found:
        _ends(rule, times, offsets, times, offsets, right, ends, run)
    _starts(window, times, offsets, times, offsets, left, ends, starts, column, run)
    return starts, ends


def on_demand(window: Ticks, times, offsets, *, closed="right", ties="peers", distinct=False):
    """fill(lo, hi, starts, ends): the frames of rows lo .. hi - 1, from place 0 of the arrays on; what `frames` would give. None
    for windows whose frames must be found all at once."""
    if window.kind != "time" or window.slide or window.calendar:
        return None
    left, right = sides(closed)
    check_room(window, times)
    number, lowest = times.dtype.type, _lowest(times)
    rule = end_rule(window, ties, closed)
    own = rule[0] == "row" or (distinct and rule == ("moment", 0, 0, 0))
    end_numbers = () if own else (lowest, number(0), number(0), *end_reach(rule, number, right))
    start_numbers = (lowest, number(0), number(0), *start_reach(window, number, left))

    def fill(lo: int, hi: int, starts, ends) -> None:
        if own:
            own_frames(right, times, offsets, *start_numbers, starts, ends, lo, hi)
            return
        positions(times, offsets, times, offsets, *end_numbers, ends[:0], ends, lo, lo, hi)
        positions(times, offsets, times, offsets, *start_numbers, ends, starts, lo, lo, hi)

    return fill


def frames_as_of(
    window: Ticks, moments, moment_offsets, times, offsets, *, closed="left", column=None, ends=None, run=_at_once
):
    """(starts, ends): for each query the frame of its window among the sorted rows of the same key.

    Queries are sorted by (key, time), and key k's are moment_offsets[k] .. moment_offsets[k + 1]. The rest as in `frames`.
    """
    left, right = sides(closed)
    check_room(window, moments, times)
    n = len(moments)
    rule = end_rule(window)
    kind = index_dtype(len(times))
    starts = np.empty(n, kind)
    found = ends is not None
    ends = ends if found else np.empty(n, kind)
    if not found:
        _ends(
            rule if rule[0] == "moment" else ("moment", 0, 0, 0),
            moments,
            moment_offsets,
            times,
            offsets,
            right,
            ends,
            run,
        )
    if rule[0] == "rows":
        numbers = (window.range, window.slide, window.offset)
        run(lambda lo, hi: last_rows(moment_offsets, offsets, *numbers, found, starts, ends, lo, hi), n)
    else:
        _starts(window, moments, moment_offsets, times, offsets, left, ends, starts, column, run)
    return starts, ends


def seen_ends(moments, moment_offsets, times, offsets, *, closed="left", run=_at_once) -> np.ndarray:
    """For each query the end of the rows of its key that are seen at its moment: before it, and at it where `closed` says so."""
    ends = np.empty(len(moments), index_dtype(len(times)))
    _ends(("moment", 0, 0, 0), moments, moment_offsets, times, offsets, sides(closed)[1], ends, run)
    return ends


def _ends(rule, moments, moment_offsets, times, offsets, right, ends, run) -> None:
    number = times.dtype.type
    numbers = (_lowest(times), number(rule[1]), number(rule[2]), *end_reach(rule, number, right))
    most = np.empty(0, ends.dtype)
    run(
        lambda lo, hi: positions(moments, moment_offsets, times, offsets, *numbers, most, ends, 0, lo, hi), len(moments)
    )


def _starts(window, moments, moment_offsets, times, offsets, left, ends, starts, column, run) -> None:
    kind, number, lowest = window.kind, times.dtype.type, _lowest(times)
    n = len(moments)
    if window.calendar:
        from slidewise.windows.calendar import day_bounds

        bounds = day_bounds(window, moments, moment_offsets, left)
        rule = (lowest, number(0), number(0), number(0), False, not left)
        run(lambda lo, hi: positions(bounds, moment_offsets, times, offsets, *rule, ends, starts, 0, lo, hi), n)
        return
    if kind in ("time", "tumbling"):
        rule = (lowest, number(window.slide), number(window.origin), *start_reach(window, number, left))
        run(lambda lo, hi: positions(moments, moment_offsets, times, offsets, *rule, ends, starts, 0, lo, hi), n)
        return
    begun = np.empty(len(times), starts.dtype)
    gap = number(0)
    if kind == "session":
        gap = number(min(window.range, HIGHEST)) if number is np.int64 else number(window.range)
        session_starts(times, offsets, lowest, gap, begun)
    elif kind == "delta":
        values, valid = column
        width = values.dtype.type(window.range)
        delta_starts(values, _NONE.view(np.uint8) if valid is None else valid, offsets, width, begun)
    elif kind == "punctuation":
        mark_starts(column[0], offsets, left, begun)
    elif kind == "lifetime":
        key_starts(offsets, begun)
    else:
        raise InputError(f"no window kind {kind!r}")
    numbers = (lowest, begun, ends, kind == "session", gap)
    run(lambda lo, hi: run_starts(moments, moment_offsets, times, offsets, *numbers, starts, lo, hi), n)


def _lowest(times: np.ndarray):
    """Below every time there is."""
    return times.dtype.type(-np.inf if times.dtype.kind == "f" else LOWEST)


def start_reach(window: Ticks, number, left: bool) -> tuple:
    """(back, strict, beyond): a window begins with the first row at or after (beyond: after) its moment less `back`; strict: the
    moment is the boundary before it. Of whole numbers "after x" is "at or after x + 1": then a row at the lowest int64 is found
    where x would lie below it."""
    if window.kind == "tumbling":
        return number(0), window.whole or not left, not left
    if number is np.float64:
        return number(window.range + window.offset), False, not left
    return number(min(window.range + window.offset - (not left), HIGHEST)), False, False


def end_reach(rule: tuple, number, right: bool) -> tuple:
    """The same for where it ends: behind the rows up to its moment less the offset."""
    offset = rule[3]
    if number is np.float64 or not offset:
        return number(offset), False, right
    return number(min(offset - right, HIGHEST)), False, False


def check_room(window: Ticks, *times: np.ndarray, listed: bool = False) -> None:
    """Refuse times so near the ends of int64, or floats so large, that the window's bounds cannot be counted there. listed: its
    boundaries are, too."""
    reach = window.range + window.offset if window.kind in ("time", "tumbling", "session") else 0
    if not window.slide and not window.calendar and reach <= HIGHEST:
        return
    low, high = room(window, times[0].dtype, listed)
    some = [values for values in times if len(values)]
    if not some:
        return
    first, last = min(values.min().item() for values in some), max(values.max().item() for values in some)
    fits = low <= first and last <= high
    if not window.slide and not window.calendar:  # it reaches everything, as long as all lies within its reach
        fits = last - first <= HIGHEST
    if not fits:
        raise InputError(
            f"the times go from {first} to {last}, and {_said(window)} can be counted from {low} to {high} only"
            + (": floats beyond lie too far apart" if some[0].dtype.kind == "f" else " in int64")
        )


def room(window: Ticks, dtype: np.dtype, listed: bool = False) -> tuple:
    """(lowest, highest) time at which the window's bounds can be counted; an error where there is none at all."""
    low, high = _room(window, dtype, listed)
    whole = dtype.kind != "f"
    slides = listed and window.slide and window.kind in ("time", "tumbling")
    if low > high or (slides and whole and window.range + window.offset > HIGHEST):
        raise InputError(
            f"{_said(window)} leaves no time that {'int64' if whole else 'floats'} could count; take a shorter one, or a time "
            "column with a coarser unit"
        )
    return low, high


def _said(window: Ticks) -> str:
    said = [f" with {what} {n}" for what, n in (("a slide of", window.slide), ("an offset of", window.offset)) if n]
    return f"a window of {window.range}{' and'.join(said)}"


def _room(window: Ticks, dtype: np.dtype, listed: bool) -> tuple:
    reach = window.range + window.offset if window.kind in ("time", "tumbling", "session") else 0
    slide = window.slide if window.kind in ("time", "tumbling") else 0
    if dtype.kind == "f":
        most = float("inf") if not slide else slide * 2.0**52 - abs(window.origin) - (reach if listed else 0)
        return -most, most
    if window.calendar:
        return LOWEST + reach, HIGHEST
    if slide:
        return LOWEST + slide, HIGHEST - slide - window.offset - (window.range if listed else 0)
    return (LOWEST, HIGHEST) if reach <= HIGHEST else (-(2**62), 2**62)
