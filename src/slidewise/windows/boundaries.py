"""Slides: which boundaries there are, for `emit="slide"`.

A slide S puts boundaries at multiples of S from the origin. A key's boundaries are those whose window holds at least one of
its rows; between two bursts far apart there are none, however small the slide. Windows that end with a row (rows with a slide,
sessions, punctuation) have that row as their boundary.
"""

from dataclasses import replace

import numpy as np

from slidewise.algebra.cache import entry, inlined
from slidewise.errors import InputError
from slidewise.windows.bounds import check_room, sides
from slidewise.windows.clock import HIGHEST, LOWEST, Ticks
from slidewise.windows.positions import boundary, boundary_number

MOST = 2**33
"""Boundaries that are listed, at most: more would fill any memory, and nobody reads them."""


def moments_by_key(
    windows: list[Ticks], times: np.ndarray, offsets: np.ndarray, closed: str
) -> tuple[np.ndarray, np.ndarray]:
    """(moments, moment_offsets): the boundaries of all these time windows, key by key, each once, in order."""
    for window in windows:
        check_room(window, times, listed=True)
    moments, keys = moments_of(windows, times, offsets[:-1], offsets[1:], closed)
    return moments, np.searchsorted(keys, np.arange(len(offsets))).astype(np.int64)


def moments_of(
    windows: list[Ticks], times: np.ndarray, begins: np.ndarray, ends: np.ndarray, closed: str, since=None, until=None
) -> tuple[np.ndarray, np.ndarray]:
    """(moments, segments): for each segment [begins[j], ends[j]) of sorted times the boundaries of all these time windows that
    hold one of them, from `since` up to but not including `until`; each once, in order."""
    left, right = sides(closed)
    number = times.dtype.type
    found, segments = [], []
    for window in windows:
        rule = (*map(number, (window.range, window.slide, window.offset, window.origin)), left, right)
        rule += (number is np.float64, window.kind == "tumbling")
        rule += (number(_first(window, since, LOWEST)), number(_first(window, until, HIGHEST)))
        counts = np.zeros(len(begins) + 1, np.int64)
        list_boundaries(times, begins, ends, *rule, np.empty(0, times.dtype), counts, False)
        total = int(counts.astype(object).sum())
        if total > MOST:
            raise InputError(
                f"the window {window.range} has {total:,} boundaries, {window.slide} apart; give a longer slide, or a shorter range"
            )
        np.cumsum(counts, out=counts)
        out = np.empty(total, times.dtype)
        list_boundaries(times, begins, ends, *rule, out, counts.copy(), True)
        found.append(out)
        segments.append(np.repeat(np.arange(len(begins)), np.diff(counts)))
    moments, which = np.concatenate(found), np.concatenate(segments)
    if len(found) > 1:
        order = np.lexsort((moments, which))
        moments, which = moments[order], which[order]
        first = np.ones(len(moments), bool)
        first[1:] = (moments[1:] != moments[:-1]) | (which[1:] != which[:-1])
        moments, which = moments[first], which[first]
    return moments, which


def _first(window: Ticks, t, otherwise: int):
    """The number of the first boundary at or after t; otherwise: where t is None, or without end."""
    if t is None or t in (float("-inf"), float("inf")):
        return otherwise
    t = t.item() if isinstance(t, np.generic) else t
    k = (t - window.origin) // window.slide - 1
    while window.origin + k * window.slide < t:
        k += 1
    return k


def ending_there(window: Ticks) -> Ticks:
    """The window that ends at a boundary, to be asked for at that moment."""
    if window.kind == "tumbling" and isinstance(window.slide, float):
        return replace(window, whole=True)  # from edge to edge: a difference would be rounded, and rows lost or counted twice
    return Ticks("time", window.range, 0, window.offset)


def answers(window: Ticks, moments: np.ndarray) -> np.ndarray:
    """A byte for each moment: whether it is a boundary of this window."""
    out = np.empty(len(moments), np.uint8)
    on_boundary(moments, moments.dtype.type(window.slide), moments.dtype.type(window.origin), out)
    return out


def ending_rows(window: Ticks, times: np.ndarray, offsets: np.ndarray, marks: np.ndarray | None = None) -> np.ndarray:
    """Rows (sorted places) at which windows end: each slide-th row of a key, the last of a session, marked rows."""
    n = len(times)
    key_start = np.repeat(offsets[:-1], np.diff(offsets))
    if window.kind == "rows":
        return np.flatnonzero((np.arange(n) + 1 - key_start) % window.slide == 0)
    if window.kind == "punctuation":
        return np.flatnonzero(marks)
    last = np.zeros(n, bool)
    last[offsets[1:][np.diff(offsets) > 0] - 1] = True
    if n:
        last[:-1] |= apart(times[:-1], times[1:], window.range)
    return np.flatnonzero(last)


def apart(times: np.ndarray, later: np.ndarray, gap) -> np.ndarray:
    """Whether the later times are more than `gap` later; the difference of two int64 may leave int64, but not uint64."""
    difference = later - times
    return (difference if difference.dtype.kind == "f" else difference.view(np.uint64)) > gap


# ---- compiled ----------------------------------------------------------------------------------------------------------


@inlined
def _since(t, x, beyond):
    """Whether t is at or after x; beyond: after it."""
    return t > x or (t == x and not beyond)


@inlined
def _begin(k, range_, slide, offset, origin, edges):
    """Where the window of boundary k begins; edges: at the boundary before."""
    return origin + (k - 1) * slide if edges else origin + k * slide - (range_ + offset)


@entry
def list_boundaries(
    times, begins, ends, range_, slide, offset, origin, left, right, real, edges, first, behind, out, places, write
):
    """Count the boundaries of each segment, numbers `first` .. `behind` - 1 only, into places[j + 1]; or write them from places[j]
    on."""
    for j in range(len(begins)):
        count = places[j]
        following = first
        for i in range(begins[j], ends[j]):
            # the first boundary whose window reaches this row, and the last one
            t = times[i] + offset
            k = boundary_number(t, slide, origin, False)
            if origin + k * slide < t or not right:
                k += 1
            last = boundary_number(t + range_, slide, origin, not left)
            if real:  # sums of floats are rounded: what counts is where the frames of these boundaries begin and end
                while _since(times[i], origin + k * slide - offset, right):
                    k += 1
                while not _since(times[i], origin + (k - 1) * slide - offset, right):
                    k -= 1
                while _since(times[i], _begin(last + 1, range_, slide, offset, origin, edges), not left):
                    last += 1
                while not _since(times[i], _begin(last, range_, slide, offset, origin, edges), not left):
                    last -= 1
            k, last = max(k, following), min(last, behind - 1)
            if last < k:
                continue
            if write:
                for step in range(int(last - k) + 1):
                    out[count + step] = origin + (k + step) * slide
            count += int(last - k) + 1
            following = last + 1
        if not write:
            places[j + 1] = count - places[j]


@entry
def on_boundary(moments, slide, origin, out):
    for i in range(len(moments)):
        out[i] = boundary(moments[i], slide, origin, False) == moments[i]
