"""Sort once by (key, time, order): one place for each row, shared by all windows and aggregates.

A row's `place` is its position after sorting. Values go to their places, and results come back, by running over the rows in
*input* order: with time-sorted input the places of a key's rows are next to each other, so both directions touch one stream a
key and stay in the cache; running in sorted order instead would miss on every row.

Input that is sorted needs no places at all; input sorted by time needs one counting sort by key; the rest is sorted by
radix, eleven bits at a time, over as many bits as the times differ in.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import open_arrays
from slidewise.engines.local.columns import ordered_categories
from slidewise.engines.local.keys import Keys
from slidewise.engines.local.threads import Workers
from slidewise.planner.inputs import is_ordered
from slidewise.planner.ranks import ranks_by_parts
from slidewise.windows.bounds import index_dtype


@dataclass(frozen=True)
class Ordered:
    """Rows in the order of (key, time, order)."""

    place: np.ndarray | None
    """Row -> place; None where the rows came sorted."""
    times: np.ndarray
    """Times by place."""
    offsets: np.ndarray
    """The place where each key begins, and the number of rows at the end."""
    workers: Workers
    distinct: bool | None = None
    """Whether no two rows of a key share a time; None where nobody has looked."""
    check: Callable[[int, int], bool] | None = None
    """Where all this is only assumed (`as_they_come`): whether it is so for the rows [lo, hi). Whoever reads rows asks first."""

    def sorted(self, values):
        """Values by row -> by place. Python lists for interpreted operators."""
        if self.place is None:
            return values
        if isinstance(values, list):
            out = [None] * len(values)
            for place, value in zip(self.place.tolist(), values):
                out[place] = value
            return out
        out = np.empty(len(values), values.dtype)
        self.workers.spread(lambda lo, hi: to_places(values, self.place, out, lo, hi), len(values))
        return out

    def restored(self, values):
        """Values by place -> by row."""
        if self.place is None:
            return values
        if isinstance(values, list):
            return [values[place] for place in self.place.tolist()]
        out = np.empty(len(values), values.dtype)
        self.workers.spread(lambda lo, hi: from_places(values, self.place, out, lo, hi), len(values))
        return out


class NotAsAssumed(Exception):
    """Rows are not in the order that was assumed, or not all of them count."""


def as_they_come(times: np.ndarray, whole: Callable[[int, int], bool] | None, workers: Workers) -> Ordered | None:
    """Rows of one key as if each were younger than the one before, and as if `whole` held: what most frames are, and a look at
    all of them beforehand would take as long as a good part of a sum. None where the first rows are not so."""
    check = lambda lo, hi: course(times, lo, hi) == RISING and (whole is None or whole(lo, hi))
    offsets = np.array([0, len(times)], np.int64)
    return Ordered(None, times, offsets, workers, True, check) if check(0, min(BLOCK, len(times))) else None


def arrange(times: np.ndarray, keys: Keys, ties: list[pa.ChunkedArray], workers: Workers) -> Ordered:
    """Sort by (key, time, ties ..., row). Only rows that share key and time with another are looked up in the tie columns."""
    ordered = _arrange(times, keys, workers)
    return _break_ties(ordered, ties) if ties else ordered


def _arrange(times: np.ndarray, keys: Keys, workers: Workers) -> Ordered:
    n = len(times)
    codes, count = keys.codes, keys.count
    by_time = None
    found: list[int] = [RISING]
    workers.spread(lambda lo, hi: found.append(int(course(times, lo, hi))), n)
    if min(found) == FALLING:
        if codes is not None and ascending_within(codes, times):
            return Ordered(None, times, key_offsets(codes, count), workers)
        by_time = radix_sort(as_unsigned(times), np.arange(n, dtype=index_dtype(n)))
    elif codes is None:
        return Ordered(None, times, np.array([0, n], np.int64), workers, min(found) == RISING)
    if codes is None:
        offsets = np.array([0, n], np.int64)
        place = np.empty(n, index_dtype(n))
        place[by_time] = np.arange(n, dtype=place.dtype)
    else:
        offsets = key_offsets(codes, count)
        place = np.empty(n, index_dtype(n))
        if by_time is None:
            places_by_key(codes, offsets[:-1].copy(), place)
        else:
            places_by_key_and_time(codes, by_time, offsets[:-1].copy(), place)
    ordered = Ordered(place, times, offsets, workers)
    return Ordered(place, ordered.sorted(times), offsets, workers)


def _break_ties(ordered: Ordered, ties: list[pa.ChunkedArray]) -> Ordered:
    """The same order, with rows of one key and time sorted by the tie columns, then by row."""
    n = len(ordered.times)
    groups = np.empty(n, np.int64)
    if not tied_groups(ordered.times, ordered.offsets, groups):
        return ordered
    places = np.flatnonzero(groups)
    place = np.arange(n, dtype=index_dtype(n)) if ordered.place is None else ordered.place
    rows = np.empty(n, place.dtype)
    rows[place] = np.arange(n, dtype=place.dtype)
    rows = rows[places]
    ranks = [ranks_of(column.take(pa.array(rows))) for column in ties]
    by_rank = np.lexsort((*ranks[::-1], groups[places]))
    place = place.copy()
    place[rows[by_rank]] = places
    return Ordered(place, ordered.times, ordered.offsets, ordered.workers)


def ranks_of(column: pa.ChunkedArray) -> np.ndarray:
    """The place of each value among the distinct ones, nulls first, then NaN last: for order= columns of any type."""
    if is_ordered(column.type):
        codes = ordered_categories(column, "order=").indices
        return pc.fill_null(pc.add(codes.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False).astype(np.uint64)
    try:
        ranks = (
            pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.uint64)
        )
    except pa.ArrowNotImplementedError:  # lists, structs, maps: by their parts, one value after the other
        return ranks_by_parts(column.to_pylist())
    if column.null_count:
        ranks[pc.is_null(column).to_numpy(zero_copy_only=False)] = 0
    return ranks


def as_unsigned(times: np.ndarray) -> np.ndarray:
    """Unsigned numbers in the same order, from zero on."""
    if times.dtype == np.float64:
        bits = (times + 0.0).view(np.int64)
        times = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return (times.view(np.uint64) - np.int64(times.min()).view(np.uint64)) if len(times) else times.view(np.uint64)


def radix_sort(numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows in the order of their numbers; rows of equal numbers stay as they are."""
    highest = int(numbers.max()) if len(numbers) else 0
    shift = 0
    while highest >> shift:
        other = np.empty_like(rows)
        radix_pass(numbers, rows, np.uint64(shift), other)
        rows = other
        shift += 11
    return rows


# ---- compiled ----------------------------------------------------------------------------------------------------------


BLOCK = 4096
"""Rows looked at before a loop asks whether it can stop: inside a block nothing branches."""


FALLING, LEVEL, RISING = 0, 1, 2
"""How times go on: some row is older than the one before it; none is, but some share a time; each is younger."""


@entry
def course(times_, lo, hi):
    """How the times of [lo, hi) go on, each seen from the row before it."""
    times = open_arrays((times_,))[0]
    level = False
    for block in range(max(lo, 1), hi, BLOCK):
        back = False
        for i in range(block, min(block + BLOCK, hi)):
            back |= times[i] < times[i - 1]
            level |= times[i] == times[i - 1]
        if back:
            return FALLING
    return LEVEL if level else RISING


@entry
def ascending_within(codes_, times_):
    """Whether rows come sorted by (key, time)."""
    codes, times = open_arrays((codes_, times_))
    n = len(times_)
    for block in range(1, n, BLOCK):
        back = False
        for i in range(block, min(block + BLOCK, n)):
            back |= (codes[i] < codes[i - 1]) | ((codes[i] == codes[i - 1]) & (times[i] < times[i - 1]))
        if back:
            return False
    return True


@entry
def tied_groups(times, offsets, groups):
    """A number for each place that shares key and time with a neighbour, the same for all that share; 0 for the others."""
    number = 0
    for key in range(len(offsets) - 1):
        for i in range(offsets[key], offsets[key + 1]):
            if i > offsets[key] and times[i] == times[i - 1]:
                if groups[i - 1] == 0:
                    number += 1
                    groups[i - 1] = number
                groups[i] = number
            else:
                groups[i] = 0
    return number


@entry
def key_offsets(codes_, count):
    codes = open_arrays((codes_,))[0]
    offsets = np.zeros(count + 1, np.int64)
    for i in range(len(codes_)):
        offsets[codes[i] + 1] += 1
    for key in range(count):
        offsets[key + 1] += offsets[key]
    return offsets


@entry
def places_by_key(codes_, free_, place_):
    codes, free, place = open_arrays((codes_, free_, place_))
    for i in range(len(codes_)):
        key = codes[i]
        place[i] = free[key]
        free[key] += 1


@entry
def places_by_key_and_time(codes_, rows_, free_, place_):
    codes, rows, free, place = open_arrays((codes_, rows_, free_, place_))
    for r in range(len(rows_)):
        i = rows[r]
        key = codes[i]
        place[i] = free[key]
        free[key] += 1


@entry
def radix_pass(numbers_, rows_, shift, out_):
    """One stable pass over eleven bits."""
    numbers, rows, out = open_arrays((numbers_, rows_, out_))
    counts = np.zeros(2049, np.int64)
    mask = np.uint64(2047)
    for i in range(len(numbers_)):
        counts[((numbers[i] >> shift) & mask) + np.uint64(1)] += 1
    for digit in range(2048):
        counts[digit + 1] += counts[digit]
    for r in range(len(rows_)):
        digit = (numbers[rows[r]] >> shift) & mask
        out[counts[digit]] = rows[r]
        counts[digit] += 1


@entry
def to_places(values_, place_, out_, lo, hi):
    values, place, out = open_arrays((values_, place_, out_))
    for i in range(lo, hi):
        out[place[i]] = values[i]


@entry
def from_places(values_, place_, out_, lo, hi):
    values, place, out = open_arrays((values_, place_, out_))
    for i in range(lo, hi):
        out[i] = values[place[i]]
