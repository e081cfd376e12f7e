"""Slides: which boundaries there are, for `emit="slide"`.

A slide S puts boundaries at multiples of S from the origin. A key's boundaries are those whose window holds at least one of
its rows; between two bursts far apart there are none, however small the slide. Windows that end with a row (rows with a slide,
sessions, punctuation) have that row as their boundary.
"""

import numpy as np

from slidewise.algebra.cache import entry
from slidewise.windows.bounds import boundary, sides
from slidewise.windows.clock import Ticks


def moments_of(
    windows: list[Ticks], times: np.ndarray, offsets: np.ndarray, closed: str
) -> tuple[np.ndarray, np.ndarray]:
    """(moments, moment_offsets): the boundaries of all these time windows, key by key, each once, in order."""
    left, right = sides(closed)
    found = []
    for window in windows:
        numbers = [times.dtype.type(x) for x in (window.range, window.slide, window.offset, window.origin)]
        counts = np.zeros(len(offsets), np.int64)
        list_boundaries(times, offsets, *numbers, left, right, np.empty(0, times.dtype), counts, False)
        np.cumsum(counts, out=counts)
        out = np.empty(int(counts[-1]), times.dtype)
        list_boundaries(times, offsets, *numbers, left, right, out, counts.copy(), True)
        found.append((out, counts))
    if len(found) == 1:
        return found[0]
    moments = np.concatenate([out for out, _ in found])
    keys = np.concatenate([np.repeat(np.arange(len(counts) - 1), np.diff(counts)) for _, counts in found])
    by_key_and_time = np.lexsort((moments, keys))
    moments, keys = moments[by_key_and_time], keys[by_key_and_time]
    first = np.ones(len(moments), bool)
    first[1:] = (moments[1:] != moments[:-1]) | (keys[1:] != keys[:-1])
    moments, keys = moments[first], keys[first]
    return moments, np.searchsorted(keys, np.arange(len(offsets))).astype(np.int64)


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
        last[:-1] |= times[:-1] < times[1:] - times.dtype.type(window.range)
    return np.flatnonzero(last)


# ---- compiled ----------------------------------------------------------------------------------------------------------


@entry
def list_boundaries(times, offsets, range_, slide, offset, origin, left, right, out, places, write):
    """Count the boundaries of each key into places[key + 1], or write them from places[key] on."""
    for key in range(len(offsets) - 1):
        count = places[key]
        started = False
        following = origin
        for i in range(offsets[key], offsets[key + 1]):
            t = times[i] + offset
            # the first boundary whose window reaches this row, and the last one
            b = boundary(t, slide, origin, False)
            if b < t or not right:
                b += slide
            if started and following > b:
                b = following
            highest = boundary(t + range_, slide, origin, not left)
            while b <= highest:
                if write:
                    out[count] = b
                count += 1
                b += slide
            if not started or b > following:
                following = b
            started = True
        if not write:
            places[key + 1] = count - places[key]


@entry
def on_boundary(moments, slide, origin, out):
    for i in range(len(moments)):
        out[i] = boundary(moments[i], slide, origin, False) == moments[i]
