"""Partials of runs of events, per aggregate, and answers for frames: O(B log_B w) combines a window, O(1) an event.

Each key's events (arena.py) are grouped by rank into runs of B, those into runs of B^2, and so on; of every run that is complete
one partial is kept:

    rank     16      24      32      40      48      56      64      72         B = 8
    events    eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eee
    level 1   |--p---| |--p---| |--p---| |--p---| |--p---| |--p---| |--p---|
    level 2                                                         |------ p when 128 is reached

A frame [lo, hi) is answered in three parts:

    head (x) middle (x) tail      head    events up to the first border of a run, folded from the border back
                                  middle  whole runs: of growing level, then of falling level
                                  tail    events behind the last border, folded from the border on

It is FlatFAT (reactive-aggregator-2015) with B children a node in place of 2, no padding, and positions that are ranks. Which
partials are combined is decided by the ranks of lo and hi alone: not by the order of arrival, the cut into batches,
evictions, or a restart from stored events. So floats too come out the same to the last bit. And because heads and tails
are folded from borders, neighbours share them: of rows that follow each other, as corrections do, each takes one more step of the
head and of the tail (two stacks, in effect), and the middle changes only with a border.

An event that comes d places late makes the runs behind it stale: d + d/B + ... combines, once a batch and key, before the
next answer. It also has up to d results to give again, each dearer than these combines. (Where it has none, and events come one
by one: late.py.)

Nulls: MASK says which events count for this aggregate, COUNTS how many of a run do; runs without any are passed over, so that a
frame without values is seen as empty and identities are never combined in.
"""

import numpy as np

from slidewise.algebra.cache import entry, inlined, kernel
from slidewise.algebra.kernel import (
    assign,
    combine,
    emit,
    get,
    lift,
    null_when_empty,
    open_arrays,
    open_state,
    ptr,
    put,
    reset,
    row,
)
from slidewise.live.arena import ALIGN, CAP, CHANGED, FIRST, LAST, NEVER, RANK0, STALE, START

BITS = 3
"""log2 of B; START and RANK0 are multiples of B."""
LIFT, TOTAL, MIDDLE, TAIL, HEADS = range(5)
"""State slots in front of the runs': to lift into, for what is folded, and for the heads of one run."""
SCRATCH = HEADS + (1 << BITS)

assert 1 << BITS == ALIGN


def slots_for(positions: int) -> int:
    """State slots for an arena of that many positions: a block of C positions has less than 2 C / B runs."""
    return SCRATCH + (positions >> (BITS - 1))


@inlined
def base_of(start):
    """The first state slot of the block at `start`."""
    return SCRATCH + (start >> (BITS - 1))


@inlined
def level_base(cap, level):
    """Where a level's runs begin among a block's slots: C/B at level 1, then C/B^l + 1 each (the first may begin in front)."""
    base = 0
    for below in range(1, level):
        base += (cap >> (BITS * below)) + (1 if below > 1 else 0)
    return base


@inlined
def slot_of(start, cap, rank0, level, rank):
    """The state slot of the run of that level that begins at `rank`."""
    shift = BITS * level
    return base_of(start) + level_base(cap, level) + (rank >> shift) - (rank0 >> shift)


@entry
def refresh(op, X_, MASK_, V_, COUNTS_, keys, touched):
    """Compute the stale runs of these keys again, from the lowest level up."""
    V, X, MASK, COUNTS = open_state(op, V_), open_arrays(X_), ptr(MASK_), ptr(COUNTS_)
    masked = len(MASK_) > 0
    for j in range(len(touched)):
        k = touched[j]
        start, cap, rank0 = keys[k, START], keys[k, CAP], keys[k, RANK0]
        first, end = rank0 + keys[k, FIRST] - start, rank0 + keys[k, LAST] - start
        stale = max(keys[k, STALE], first)
        if stale >= end:
            continue
        level = 1
        while (1 << (BITS * level)) <= end - first:
            width = 1 << (BITS * level)
            rank = (stale >> (BITS * level)) << (BITS * level)
            if rank < first:
                rank += width
            while rank + width <= end:
                slot = slot_of(start, cap, rank0, level, rank)
                total = get(op, V, slot)
                count = 0
                for child in range(1 << BITS):
                    if level == 1:
                        position = start + rank + child - rank0
                        if masked and not MASK[position]:
                            continue
                        part = lift(op, get(op, V, LIFT), row(X, position))
                        weight = 1
                    else:
                        below = slot_of(start, cap, rank0, level - 1, rank + child * (width >> BITS))
                        weight = COUNTS[below] if masked else 1
                        if weight == 0:
                            continue
                        part = get(op, V, below)
                    total = combine(op, total, total, part) if count > 0 else assign(op, get(op, V, slot), part)
                    count += weight
                if count > 0:
                    put(op, V, slot, total)
                if masked:
                    COUNTS[slot] = count
                rank += width
            level += 1


@inlined
def append(op, V, slot, total, count, part, weight):
    """total (x) part, where either may be blank (no events in it); `slot` is total's own."""
    if weight == 0:
        return total, count
    total = combine(op, total, total, part) if count > 0 else assign(op, get(op, V, slot), part)
    return total, count + weight


@kernel
def whole_runs(op, V, COUNTS, masked, start, cap, rank0, rank, end):
    """The partial of ranks [rank, end), both on borders: runs of growing level, then of falling level."""
    total, count = reset(op, get(op, V, MIDDLE)), 0
    level, rising = 1, True
    while rank < end:
        shift = BITS * level
        width = 1 << shift
        above = width << BITS
        stop = end & -width
        if rising:
            stop = min(stop, (rank + above - 1) & -above)
        begin = slot_of(start, cap, rank0, level, rank)
        for slot in range(begin, begin + ((stop - rank) >> shift)):
            total, count = append(op, V, MIDDLE, total, count, get(op, V, slot), COUNTS[slot] if masked else 1)
        rank = stop
        if rising and rank + above <= end:
            level += 1
        elif rising:
            rising = False
        else:
            level -= 1
    return total, count


@entry
def answer(op, X_, MASK_, V_, COUNTS_, B_, BASED, keys, slots, los, his, skips, runs, OUT_, OK_):
    """For each i the aggregate of positions [los[i], his[i]) of key slots[i], without position skips[i] (if there are skips).

    runs: whether there are partials of runs; otherwise events are combined again, from the oldest on.

    B, BASED: for each key the partial of what was forgotten and how many events are in it; BASED is empty where that does not
    count.
    """
    V, B, X, OUT = open_state(op, V_), open_state(op, B_), open_arrays(X_), open_arrays(OUT_)
    MASK, COUNTS, OK = ptr(MASK_), ptr(COUNTS_), ptr(OK_)
    masked = len(MASK_) > 0
    skipping = len(skips) > 0
    based = len(BASED) > 0
    last_key = -1
    # What the last frames of the same key left to be used again: heads down to head_low of the run that ends at head_end,
    # the middle from middle_begin to middle_end, the tail from tail_begin to tail_end.
    head_end = head_low = middle_begin = middle_end = tail_begin = tail_end = -1
    head_counts = np.zeros(1 << BITS, np.int64)
    middle, middle_count = reset(op, get(op, V, MIDDLE)), 0
    tail, tail_count = reset(op, get(op, V, TAIL)), 0
    for i in range(len(slots)):
        k = slots[i]
        start, cap, rank0 = keys[k, START], keys[k, CAP], keys[k, RANK0]
        if k != last_key:
            last_key = k
            head_end = middle_begin = tail_begin = -1
        total, count = reset(op, get(op, V, TOTAL)), 0
        if based:
            total, count = append(op, V, TOTAL, total, count, get(op, B, k), BASED[k])
        lo, hi = los[i], his[i]
        stop = skips[i] if skipping and lo <= skips[i] < hi else hi
        while lo < hi:
            rank, end = rank0 + lo - start, rank0 + stop - start
            begin, border = (rank + (1 << BITS) - 1) & -(1 << BITS), end & -(1 << BITS)
            if not runs or begin > border:  # inside one run
                for position in range(lo, stop):
                    if not masked or MASK[position]:
                        part = lift(op, get(op, V, LIFT), row(X, position))
                        total, count = append(op, V, TOTAL, total, count, part, 1)
                lo, stop = stop + 1, hi
                continue
            if rank < begin:
                if head_end != begin:
                    head_end = head_low = begin
                while head_low > rank:
                    head_low -= 1
                    place = head_low & ((1 << BITS) - 1)
                    behind = 0 if head_low + 1 == begin else head_counts[place + 1]
                    if behind > 0:
                        put(op, V, HEADS + place, get(op, V, HEADS + place + 1))
                    head_counts[place] = behind
                    position = start + head_low - rank0
                    if not masked or MASK[position]:
                        part = lift(op, get(op, V, LIFT), row(X, position))
                        if behind > 0:
                            part = combine(op, get(op, V, HEADS + place), part, get(op, V, HEADS + place + 1))
                        put(op, V, HEADS + place, part)
                        head_counts[place] = behind + 1
                place = rank & ((1 << BITS) - 1)
                total, count = append(op, V, TOTAL, total, count, get(op, V, HEADS + place), head_counts[place])
            if begin < border:
                if middle_begin != begin or middle_end != border:
                    middle_begin, middle_end = begin, border
                    middle, middle_count = whole_runs(op, V, COUNTS, masked, start, cap, rank0, begin, border)
                total, count = append(op, V, TOTAL, total, count, middle, middle_count)
            if border < end:
                if tail_begin != border or tail_end > end:
                    tail_begin = tail_end = border
                    tail_count = 0
                for position in range(start + tail_end - rank0, start + end - rank0):
                    if not masked or MASK[position]:
                        part = lift(op, get(op, V, LIFT), row(X, position))
                        tail, tail_count = append(op, V, TAIL, tail, tail_count, part, 1)
                tail_end = end
                total, count = append(op, V, TOTAL, total, count, tail, tail_count)
            lo, stop = stop + 1, hi
        if count > 0 or not null_when_empty(op):
            emit(op, OUT, OK, i, total)
        else:
            OK[i] = 0


@entry
def collapse(op, X_, MASK_, V_, B_, BASED, slots, firsts, lasts):
    """Put the events of positions [firsts[j], lasts[j]) behind the partial of key slots[j], one by one."""
    V, B, X, MASK = open_state(op, V_), open_state(op, B_), open_arrays(X_), ptr(MASK_)
    masked = len(MASK_) > 0
    for j in range(len(slots)):
        k = slots[j]
        for position in range(firsts[j], lasts[j]):
            if masked and not MASK[position]:
                continue
            part = lift(op, get(op, V, LIFT), row(X, position))
            if BASED[k] > 0:
                put(op, B, k, combine(op, get(op, V, TOTAL), get(op, B, k), part))
            else:
                put(op, B, k, part)
            BASED[k] += 1


def mark_fresh(keys: np.ndarray, touched: np.ndarray) -> None:
    """Nothing of these keys is stale: every aggregate and every run has been brought up to date."""
    keys[touched, STALE] = NEVER
    keys[touched, CHANGED] = NEVER
