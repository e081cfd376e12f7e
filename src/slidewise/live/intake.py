"""A batch of events on its way in: grouped by key, sorted by time, ties in their own order, doubles taken out.

Nothing here depends on the order of rows in the batch: events of one key and time are ordered by the values of the tie
columns, together with the stored events of the same moment.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import entry
from slidewise.live.arena import Arena, locate, ranges
from slidewise.live.columns import order_words


@dataclass
class Intake:
    """New events by sorted place: `rows` of the batch, their times, the places they go to; touched keys with their bounds."""

    rows: np.ndarray
    times: np.ndarray
    places: np.ndarray
    lows: np.ndarray
    touched: np.ndarray
    bounds: np.ndarray

    def keep(self, chosen: np.ndarray) -> None:
        """Only these events (a byte for each)."""
        if chosen.all():
            return
        counts = (
            np.add.reduceat(chosen.astype(np.int64), self.bounds[:-1]) if len(self.touched) else np.zeros(0, np.int64)
        )
        which = np.flatnonzero(chosen)
        self.rows, self.times = self.rows[which], self.times[which]
        self.places, self.lows = self.places[which], self.lows[which]
        some = counts > 0
        self.touched = self.touched[some]
        self.bounds = np.concatenate([[0], np.cumsum(counts[some])])


def take_in(arena: Arena, codes, slots, times, tie_table, stored_ties, arrival: bool = False) -> Intake:
    """Sort a batch and find the places of its events.

    codes: a number of the key for each row, slots[code] its slot; tie_table(rows): the tie columns of rows of the batch;
    stored_ties(positions): the same columns of stored events; arrival: whether it decides what those leave open."""
    rows, bounds = group(codes, len(slots), times)
    sort_groups(times, rows, bounds)
    found = Intake(rows, times[rows], np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), slots, bounds)
    locate(arena.keys, arena["time"], slots, bounds, found.times, found.lows, found.places)
    tied = np.zeros(len(rows), np.uint8)
    if mark_ties(bounds, found.times, found.lows, found.places, tied):
        _order_ties(found, np.flatnonzero(tied), tie_table, stored_ties, arrival)
    return found


def _order_ties(found: Intake, which: np.ndarray, tie_table, stored_ties, arrival: bool) -> None:
    """Order the events at `which` among themselves and among the stored events of their moments."""
    times = found.times[which]
    keys = np.searchsorted(found.bounds, which, side="right")
    begins = np.concatenate([[True], (times[1:] != times[:-1]) | (keys[1:] != keys[:-1])])
    groups = np.cumsum(begins) - 1
    lows, highs = found.lows[which[begins]], found.places[which[begins]]
    stored = ranges(lows, highs - lows)
    table = pa.concat_tables([stored_ties(stored), tie_table(found.rows[which])])
    group_of = np.concatenate([np.repeat(np.arange(len(lows)), highs - lows), groups])
    is_new = np.concatenate([np.zeros(len(stored), np.int64), np.ones(len(which), np.int64)])
    order = np.lexsort((is_new, *reversed(order_words(table, arrival)), group_of))
    new = is_new[order] == 1
    before = np.cumsum(~new)
    start = np.concatenate([[0], np.cumsum(highs - lows)])
    sorted_groups = group_of[order]
    found.places[which] = (lows[sorted_groups] + before - start[sorted_groups])[new]
    found.rows[which] = found.rows[which][order[new] - len(stored)]


def sort_groups(times, rows, bounds) -> None:
    """Sort each group's rows by time, stable. (NumPy sorts what is far out of order: a sort of our own compiles for seconds.)"""
    left = np.zeros(len(bounds) - 1, np.uint8)
    if insert_in_order(times, rows, bounds, left):
        groups = np.flatnonzero(left)
        counts = np.diff(bounds)[groups]
        places = ranges(bounds[groups], counts)
        part = rows[places]  # what was inserted so far kept its order among equals
        rows[places] = part[np.lexsort((times[part], np.repeat(groups, counts)))]


@entry
def group(codes, count, times):
    """(rows by code, stable; where each code begins)"""
    bounds = np.zeros(count + 1, np.int64)
    for i in range(len(codes)):
        bounds[codes[i] + 1] += 1
    for k in range(count):
        bounds[k + 1] += bounds[k]
    at = bounds[:-1].copy()
    rows = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        rows[at[codes[i]]] = i
        at[codes[i]] += 1
    return rows, bounds


@entry
def insert_in_order(times, rows, bounds, left):
    """Sort each group's rows by time, by insertion while little is out of place; 1 in `left` for groups where much is."""
    some = False
    for k in range(len(bounds) - 1):
        lo, hi = bounds[k], bounds[k + 1]
        budget = 8 * (hi - lo)
        for i in range(lo + 1, hi):
            r = rows[i]
            t = times[r]
            j = i
            while j > lo and times[rows[j - 1]] > t:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = r
            budget -= i - j
            if budget < 0:
                left[k] = 1
                some = True
                break
    return some


@entry
def mark_ties(bounds, times, lows, highs, tied):
    """1 for each new event that shares its key and time with another event; whether there is any."""
    some = False
    for k in range(len(bounds) - 1):
        for i in range(bounds[k], bounds[k + 1]):
            if highs[i] > lows[i]:
                tied[i] = 1
                some = True
            if i > bounds[k] and times[i] == times[i - 1]:
                tied[i] = tied[i - 1] = 1
                some = True
    return some
