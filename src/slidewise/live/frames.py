"""Frames of single rows and moments among a key's events: the rule of windows/bounds.py, by search in place of a sweep.

A query is a row (its position in the arena) or a moment (a key and a time). Its frame is a range of positions of its
key's block, found in O(log w); `short` says that the window reaches back before what is known.

Sessions, delta and punctuation windows go by runs of rows. Where the run of each row began is kept in a column of ranks
beside the events and brought up to date behind the first event that changed.
"""

import numpy as np

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import twin
from slidewise.live.arena import CHANGED, FIRST, LAST, RANK0, START, Arena
from slidewise.windows import positions as positions_
from slidewise.windows.bounds import end_reach, end_rule, sides, start_reach
from slidewise.windows.clock import HIGHEST, LOWEST, Ticks
from slidewise.windows.deltas import delta_run
from slidewise.windows.positions import boundary, earlier, lower_position

RUNS = ("session", "delta", "punctuation")


def frames(
    window: Ticks, name: str, arena: Arena, slots, positions, moments, closed: str, ties: str, known, ends: dict
):
    """(starts, ends, short) of the queries: rows where `positions` has any, otherwise moments.

    known: the time from which on events are known, or None where everything is. ends: those of windows with the same rule,
    to be used again."""
    left, right = sides(closed)
    n = len(slots)
    los, his, short = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.uint8)
    times = arena["time"]
    number = times.dtype.type
    rows = len(positions) > 0
    all_known = known is None
    since = number(0 if all_known else known)
    if window.kind == "rows":
        if rows:
            row_frames(
                arena.keys,
                slots,
                positions,
                window.range,
                window.slide,
                window.offset,
                left,
                right,
                all_known,
                los,
                his,
                short,
            )
        else:
            _moment_ends(window, arena.keys, times, slots, positions, moments, right, his)
            last_rows(arena.keys, slots, window.range, window.slide, window.offset, all_known, los, his, short)
        return los, his, short
    rule = (
        end_rule(window, ties, closed)
        if rows
        else ("moment", *((window.slide, window.origin, window.offset) if window.kind == "time" else (0, 0, 0)))
    )
    if rule in ends:
        his = ends[rule]
    elif rule[0] == "row":
        his[:] = positions + (1 if right else 0)
    else:
        _moment_ends(window, arena.keys, times, slots, positions, moments, right, his)
    ends[rule] = his
    if window.kind in ("time", "tumbling"):
        rule = (number(window.slide), number(window.origin), *start_reach(window, number, left))
        known_rule = (all_known, since, number(number is np.int64))
        time_starts(arena.keys, times, lowest_of(times), slots, moments, *rule, *known_rule, his, los, short)
    elif window.kind == "lifetime":
        los[:] = np.minimum(arena.keys[slots, FIRST], his)
        short[:] = not all_known
    else:
        gap = number(min(window.range, HIGHEST) if window.kind == "session" else 0)
        rule = (window.kind == "session", gap, all_known, since)
        run_frames(arena.keys, times, lowest_of(times), arena[f"run:{name}"], slots, moments, *rule, his, los, short)
    return los, his, short


def stretch(window: Ticks, moment, dtype: np.dtype, closed: str) -> tuple:
    """(first, beyond, last, beyond): the times that the window ending at a moment holds, from `first` (beyond: behind it) and
    before `last` (beyond: up to it). For windows that are stretches of time: time, tumbling, lifetime."""
    left, right = sides(closed)
    number, steps = dtype.type, twin(positions_)
    lowest = dtype.type(-np.inf if dtype.kind == "f" else LOWEST)

    def counted(slide, origin, back, strict):
        at = steps.boundary(number(moment), number(slide), number(origin), strict) if slide > 0 else number(moment)
        return steps.earlier(at, back, lowest)

    rule = (window.slide, window.origin, window.offset) if window.kind == "time" else (0, 0, 0)
    back, strict, beyond = end_reach(("moment", *rule), number, right)
    last = counted(rule[0], rule[1], back, strict), beyond
    if window.kind == "lifetime":
        return lowest, False, *last
    back, strict, beyond = start_reach(window, number, left)
    return counted(window.slide, window.origin, back, strict), beyond, *last


def lowest_of(times: np.ndarray):
    """Below every time there is."""
    return times.dtype.type(-np.inf if times.dtype.kind == "f" else LOWEST)


def _moment_ends(window, keys, times, slots, positions, moments, right, his) -> None:
    number = times.dtype.type
    by_time = window.kind == "time"
    rule = ("moment", *((window.slide, window.origin, window.offset) if by_time else (0, 0, 0)))
    back, _, beyond = end_reach(rule, number, right)
    numbers = (number(rule[1]), number(rule[2]), back, beyond)
    moment_ends(keys, times, lowest_of(times), slots, positions, moments, *numbers, his)


@inlined
def search(times, first, last, hint, x, beyond):
    """lower_position(times, first, last, x, beyond), beginning near a position where the answer is expected."""
    if hint >= last or hint < first:
        return lower_position(times, first, last, x, beyond)
    step = 1
    if times[hint] < x or (beyond and times[hint] == x):
        low = hint + 1
        while low + step < last and (times[low + step] < x or (beyond and times[low + step] == x)):
            low += step
            step *= 2
        return lower_position(times, low, min(last, low + step), x, beyond)
    high = hint
    while high - step >= first and not (times[high - step] < x or (beyond and times[high - step] == x)):
        high -= step
        step *= 2
    return lower_position(times, max(first, high - step), high, x, beyond)


@entry
def moment_ends(keys, times, lowest, slots, positions, moments, slide, origin, back, beyond, his):
    rows = len(positions) > 0
    hint = 0
    for i in range(len(slots)):
        k = slots[i]
        t = moments[i]
        if slide > 0:
            t = boundary(t, slide, origin, False)
        if rows:
            hint = positions[i]
        his[i] = hint = search(times, keys[k, FIRST], keys[k, LAST], hint, earlier(t, back, lowest), beyond)


@entry
def time_starts(
    keys, times, lowest, slots, moments, slide, origin, back, strict, beyond, all_known, since, tick, his, los, short
):
    """tick: the step from one time to the next; none between floats."""
    hint = 0
    for i in range(len(slots)):
        k = slots[i]
        t = moments[i]
        if slide > 0:
            t = boundary(t, slide, origin, strict)
        x = earlier(t, back, lowest)
        los[i] = hint = search(times, keys[k, FIRST], his[i], hint, x, beyond)
        if not all_known:
            short[i] = x < since and (not beyond or x + tick < since)


@entry
def row_frames(keys, slots, positions, n, slide, offset, left, right, all_known, los, his, short):
    for i in range(len(slots)):
        k = slots[i]
        origin = keys[k, START] - keys[k, RANK0]
        last = positions[i] - origin
        if slide > 0:
            last = ((last + 1) // slide) * slide - 1
        last -= offset
        end = max(0, last + 1 if right else last)
        begin = last - n if left else last - n + 1
        if begin < 0 and not all_known:
            short[i] = 1
        begin = min(end, max(0, begin))
        first = keys[k, FIRST]
        if origin + begin < first and begin < end:
            short[i] = 1
        los[i] = max(origin + begin, first)
        his[i] = max(origin + end, first)


@entry
def last_rows(keys, slots, n, slide, offset, all_known, los, his, short):
    for i in range(len(slots)):
        k = slots[i]
        origin = keys[k, START] - keys[k, RANK0]
        end = his[i] - origin
        if slide > 0:
            end = (end // slide) * slide
        end = max(0, end - offset)
        begin = end - n
        if begin < 0 and not all_known:
            short[i] = 1
        begin = max(0, begin)
        first = keys[k, FIRST]
        if origin + begin < first and begin < end:
            short[i] = 1
        los[i] = max(origin + begin, first)
        his[i] = max(origin + end, first)


@entry
def run_frames(keys, times, lowest, begun, slots, moments, session, gap, all_known, since, his, los, short):
    for i in range(len(slots)):
        k = slots[i]
        first, end = keys[k, FIRST], his[i]
        if end <= first or (session and times[end - 1] < earlier(moments[i], gap, lowest)):
            los[i] = end
            continue
        start = begun[end - 1] - keys[k, RANK0] + keys[k, START]
        los[i] = max(start, first)
        if start < first:
            short[i] = 1
        elif not all_known:
            if session:
                short[i] = earlier(times[los[i]], gap, lowest) < since
            else:
                short[i] = begun[end - 1] == 0


# ---- where runs begin --------------------------------------------------------------------------------------------------


def refresh_runs(window: Ticks, name: str, arena: Arena, touched, closed: str) -> None:
    """Bring the beginnings of runs up to date for these keys."""
    begun = arena[f"run:{name}"]
    if window.kind == "session":
        times = arena["time"]
        session_runs(arena.keys, times, lowest_of(times), touched, times.dtype.type(min(window.range, HIGHEST)), begun)
    elif window.kind == "punctuation":
        mark_runs(arena.keys, arena[f"by:{window.column}"], touched, sides(closed)[0], begun)
    elif window.kind == "delta":
        values = arena[f"by:{window.column}"]
        delta_runs(arena.keys, values, arena[f"valid:{window.column}"], touched, values.dtype.type(window.range), begun)


@inlined
def _stale(keys, k):
    """The first position whose run is not known."""
    origin = keys[k, START] - keys[k, RANK0]
    if keys[k, CHANGED] >= keys[k, LAST] - origin:
        return keys[k, LAST]
    return max(keys[k, FIRST], keys[k, CHANGED] + origin)


@entry
def session_runs(keys, times, lowest, touched, gap, begun):
    for j in range(len(touched)):
        k = touched[j]
        rank = keys[k, RANK0] - keys[k, START]
        first = keys[k, FIRST]
        for p in range(_stale(keys, k), keys[k, LAST]):
            if p > first and times[p - 1] >= earlier(times[p], gap, lowest):
                begun[p] = begun[p - 1]
            else:
                begun[p] = rank + p


@entry
def mark_runs(keys, marks, touched, left, begun):
    for j in range(len(touched)):
        k = touched[j]
        rank = keys[k, RANK0] - keys[k, START]
        first = keys[k, FIRST]
        for p in range(_stale(keys, k), keys[k, LAST]):
            if p == first or (marks[p] if left else marks[p - 1]):
                begun[p] = rank + p
            else:
                begun[p] = begun[p - 1]


@entry
def delta_runs(keys, values, valid, touched, width, begun):
    """The longest run ending at each row within `width`, from where the last known run began."""
    for j in range(len(touched)):
        k = touched[j]
        rank = keys[k, RANK0] - keys[k, START]
        first, last = keys[k, FIRST], keys[k, LAST]
        stale = _stale(keys, k)
        if stale >= last:
            continue
        start = first if stale == first else max(first, begun[stale - 1] - rank)
        largest, smallest = np.empty(last - start, np.int64), np.empty(last - start, np.int64)
        delta_run(values, valid, start, last, stale, rank, width, largest, smallest, begun)
