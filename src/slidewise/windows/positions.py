"""The compiled loops of the boundary rule (bounds.py): one thing each, over rows sorted by (key, time, order).

    boundary, earlier, lower_position     one moment, one search
    positions                             for each moment the first row that is young enough: the two pointers of time windows
    own_ends, row_frames, last_rows       frames by position
    ..._starts                            where the run began that each row belongs to: sessions, marks, keys, deltas
"""

import numpy as np

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import open_arrays
from slidewise.windows.deltas import delta_run

PROBE, BLOCK = 32, 224
"""On so many rows `positions` looks whether they leave at an even pace, and goes by it for so many more, or longer."""
ABREAST = 64
"""Rows that are looked at together where for each that comes one leaves."""


@inlined
def boundary_number(t, slide, origin, strict):
    """k of the last boundary origin + k * slide at or before t; before t where strict. Boundaries are counted, never added up:
    floats would drift."""
    k = (t - origin) // slide
    if origin + k * slide > t:  # floats: the product was rounded up
        k -= 1
    elif origin + (k + 1) * slide <= t:
        k += 1
    if strict and origin + k * slide == t:
        k -= 1
    return k


@inlined
def boundary(t, slide, origin, strict):
    """The last boundary at or before t; before t where strict."""
    return origin + boundary_number(t, slide, origin, strict) * slide


@inlined
def earlier(t, back, lowest):
    """t - back, or the lowest time where that leaves int64."""
    return max(t, lowest + back) - back


@inlined
def segment_of(offsets, i):
    """The key whose rows hold position i."""
    low, high = 0, len(offsets) - 1
    while low < high:
        middle = (low + high) >> 1
        if offsets[middle + 1] <= i:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def lower_position(times, a, b, x, beyond):
    """The first position in [a, b) with a time of at least x (beyond: more than x); b if there is none."""
    while a < b:
        middle = (a + b) >> 1
        if times[middle] < x or (beyond and times[middle] == x):
            a = middle + 1
        else:
            b = middle
    return a


@entry
def positions(
    moments_, moment_offsets, times_, offsets, lowest, slide, origin, back, strict, beyond, most_, out_, base, lo, hi
):
    """out[i - base]: the first row of i's key with a time of at least (beyond: more than) i's moment less `back`; at most
    most[i - base]."""
    if lo >= hi:
        return
    moments, times, most, out = open_arrays((moments_, times_, most_, out_))
    limited, count = len(most_) > 0, len(times_)
    ragged = False
    key = segment_of(moment_offsets, lo)
    while lo < hi:
        while moment_offsets[key + 1] <= lo:
            key += 1
        p, b = offsets[key], offsets[key + 1]
        stop = min(hi, moment_offsets[key + 1])
        if lo > moment_offsets[key]:  # a part that begins inside a key
            t = boundary(moments[lo], slide, origin, strict) if slide > 0 else moments[lo]
            p = lower_position(times, p, b, earlier(t, back, lowest), beyond)
        i, block = lo, BLOCK
        while i < stop:
            pace = uneven = 0
            first = p
            probed = min(stop, i + PROBE)
            hard = ragged or stop - lo < PROBE  # of a short key nothing can be foreseen
            for j in range(i, probed):
                t = boundary(moments[j], slide, origin, strict) if slide > 0 else moments[j]
                before = p
                p = further(times, p, b, count, earlier(t, back, lowest), beyond, hard)
                out[j - base] = min(p, most[j - base]) if limited else p
                uneven += p - before != pace
                pace = p - before
            if probed - i == PROBE and p > first:  # where no row left, nothing is known
                ragged = uneven > PROBE >> 3
                block = BLOCK if ragged else min(2 * block, 16 * BLOCK)
            i = min(stop, probed + block)
            if slide == 0 and pace == 1 and uneven <= 1:
                while probed + ABREAST <= i and p + ABREAST < b and abreast(
                    times, moments, p, probed, back, lowest, beyond
                ):
                    for j in range(probed, probed + ABREAST):
                        p += 1
                        out[j - base] = min(p, most[j - base]) if limited else p
                    probed += ABREAST
            for j in range(probed, i):
                t = boundary(moments[j], slide, origin, strict) if slide > 0 else moments[j]
                p = further(times, p, b, count, earlier(t, back, lowest), beyond, ragged)
                out[j - base] = min(p, most[j - base]) if limited else p
        lo = stop


@inlined
def abreast(times, moments, p, j, back, lowest, beyond):
    """Whether, p being the answer of the moment before j, those from j on are p + 1, p + 2 ...: nothing branches in here."""
    other = False
    for k in range(ABREAST):
        x = earlier(moments[j + k], back, lowest)
        if beyond:
            other |= (times[p + k] > x) | (times[p + k + 1] <= x)
        else:
            other |= (times[p + k] >= x) | (times[p + k + 1] < x)
    return not other


@inlined
def further(times, p, b, count, x, beyond, ragged):
    """The first position from p on, at most b, with a time of at least x (beyond: more than x). count: rows of all keys.

    Where rows leave at an even pace, the loop's end is foreseen by the processor. Where they do not (ragged), four rows are looked
    at without a branch: times are sorted, so as many as are too old are passed."""
    if ragged and p + 4 <= count:
        if beyond:
            steps = (
                ((p < b) & (times[p] <= x))
                + ((p + 1 < b) & (times[p + 1] <= x))
                + ((p + 2 < b) & (times[p + 2] <= x))
                + ((p + 3 < b) & (times[p + 3] <= x))
            )
        else:
            steps = (
                ((p < b) & (times[p] < x))
                + ((p + 1 < b) & (times[p + 1] < x))
                + ((p + 2 < b) & (times[p + 2] < x))
                + ((p + 3 < b) & (times[p + 3] < x))
            )
        p += steps
        if steps < 4:
            return p
    if beyond:
        while p < b and times[p] <= x:
            p += 1
    else:
        while p < b and times[p] < x:
            p += 1
    return p


@entry
def without_ties(times_, offsets):
    """Whether no two rows of a key share a time."""
    times = open_arrays((times_,))[0]
    for key in range(len(offsets) - 1):
        tie = False
        for i in range(offsets[key] + 1, offsets[key + 1]):
            tie |= times[i] == times[i - 1]
        if tie:
            return False
    return True


@entry
def own_ends(right, ends_, base, lo, hi):
    """Row by row: the end is just behind the row, or just before it where the right end is open."""
    ends = open_arrays((ends_,))[0]
    for i in range(lo, hi):
        ends[i - base] = i + 1 if right else i


@entry
def own_frames(right, times, offsets, lowest, slide, origin, back, strict, beyond, starts, ends, lo, hi):
    """Ends as `own_ends` and starts as `positions` give them, from place 0 on; in one call: at each, threads may have to wait."""
    own_ends(right, ends, lo, lo, hi)
    positions(times, offsets, times, offsets, lowest, slide, origin, back, strict, beyond, ends, starts, lo, lo, hi)


@entry
def row_frames(offsets, n, slide, offset, left, right, starts, ends, lo, hi):
    """The last n rows by position: (i - n, i], with `closed` adding or leaving out either end, as pandas does."""
    if lo >= hi:
        return
    key = segment_of(offsets, lo)
    for i in range(lo, hi):
        while offsets[key + 1] <= i:
            key += 1
        a = offsets[key]
        last = i
        if slide > 0:
            last = a + ((i + 1 - a) // slide) * slide - 1
        last -= offset
        end = max(a, last + 1 if right else last)
        starts[i] = min(end, max(a, last - n if left else last - n + 1))
        ends[i] = end


@entry
def last_rows(moment_offsets, offsets, n, slide, offset, ends_known, starts, ends, lo, hi):
    """The last n rows of the key among those seen; a query is no row, so `closed` only says what is seen."""
    if lo >= hi:
        return
    key = segment_of(moment_offsets, lo)
    for i in range(lo, hi):
        while moment_offsets[key + 1] <= i:
            key += 1
        a = offsets[key]
        end = ends[i]
        if not ends_known:
            if slide > 0:
                end = a + ((end - a) // slide) * slide
            end = max(a, end - offset)
            ends[i] = end
        starts[i] = max(a, end - n)


@entry
def run_starts(moments, moment_offsets, times, offsets, lowest, begun, ends, session, gap, starts, lo, hi):
    """starts[i]: where the run of the last row seen began; a session that ended before the moment is empty."""
    if lo >= hi:
        return
    key = segment_of(moment_offsets, lo)
    for i in range(lo, hi):
        while moment_offsets[key + 1] <= i:
            key += 1
        end = ends[i]
        if end <= offsets[key] or (session and times[end - 1] < earlier(moments[i], gap, lowest)):
            starts[i] = end
        else:
            starts[i] = begun[end - 1]


@entry
def session_starts(times, offsets, lowest, gap, begun):
    for key in range(len(offsets) - 1):
        start = offsets[key]
        for i in range(offsets[key], offsets[key + 1]):
            if i > offsets[key] and times[i - 1] < earlier(times[i], gap, lowest):
                start = i
            begun[i] = start


@entry
def mark_starts(marks, offsets, left, begun):
    """A marked row ends its window; where the left end is closed it begins one."""
    for key in range(len(offsets) - 1):
        start = offsets[key]
        for i in range(offsets[key], offsets[key + 1]):
            if left and marks[i]:
                start = i
            begun[i] = start
            if not left and marks[i]:
                start = i + 1


@entry
def key_starts(offsets, begun):
    for key in range(len(offsets) - 1):
        for i in range(offsets[key], offsets[key + 1]):
            begun[i] = offsets[key]


@entry
def delta_starts(values, valid, offsets, width, begun):
    """Where the longest run ending at each row began: largest less smallest stays within `width`."""
    largest, smallest = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    for key in range(len(offsets) - 1):
        first, last = offsets[key], offsets[key + 1]
        delta_run(values, valid, first, last, first, 0, width, largest, smallest, begun)
