"""Partials of runs of events, per aggregate, and answers for frames: O(B log_B w) combines a window, O(1) an event.

Each key's events (arena.py) are grouped by rank into runs of B, those into runs of B^2, and so on; of every run that is complete
one partial is kept:

    rank     16      24      32      40      48      56      64      72         B = 8
    events    eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eeeeeeee eee
    level 1   |--p---| |--p---| |--p---| |--p---| |--p---| |--p---| |--p---|
    level 2                                                         |------ p when 128 is reached

A frame [lo, hi) is folded from left to right: events up to the first run's border, runs of growing level, then of falling
level, then events. It is FlatFAT (reactive-aggregator-2015) with B children a node in place of 2, no padding, and positions
that are ranks. Which partials are combined is decided by the ranks of lo and hi alone: not by the order of
arrival, the cut into batches, evictions, or a restart from stored events. So floats too come out the same to the last bit.

An event that comes d places late makes the runs behind it stale: d + d/B + ... combines, once a batch and key, before the
next answer. It also has up to d results to give again, each dearer than these combines.

Nulls: MASK says which events count for this aggregate, COUNTS how many of a run do; runs without any are passed over, so that a
frame without values is seen as empty and identities are never combined in.
"""

import numpy as np

from slidewise.algebra.cache import entry, inlined
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
SCRATCH = 3
"""State slots in front of the runs': one to lift into, two to fold into."""

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
                        part = lift(op, get(op, V, 0), row(X, position))
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
def fold(op, X, MASK, V, COUNTS, masked, start, cap, rank0, lo, hi, total, count):
    """total, and behind it the events of positions [lo, hi) of one block; count: how many are in it (0: total is blank)."""
    rank = rank0 + lo - start
    end = rank0 + hi - start
    level, rising = 0, True
    while rank < end:
        shift = BITS * level
        width = 1 << shift
        above = width << BITS
        stop = end & -width
        if rising:
            stop = min(stop, (rank + above - 1) & -above)
        if level == 0:
            for position in range(start + rank - rank0, start + stop - rank0):
                if not masked or MASK[position]:
                    part = lift(op, get(op, V, 0), row(X, position))
                    total = combine(op, total, total, part) if count > 0 else assign(op, get(op, V, 1), part)
                    count += 1
        else:
            begin = slot_of(start, cap, rank0, level, rank)
            for slot in range(begin, begin + ((stop - rank) >> shift)):
                weight = COUNTS[slot] if masked else 1
                if weight > 0:
                    part = get(op, V, slot)
                    total = combine(op, total, total, part) if count > 0 else assign(op, get(op, V, 1), part)
                    count += weight
        rank = stop
        if rising and rank + above <= end:
            level += 1
        elif rising:
            rising = False
        else:
            level -= 1
    return total, count


@entry
def answer(op, X_, MASK_, V_, COUNTS_, B_, BASED, keys, slots, los, his, skips, OUT_, OK_):
    """For each i the aggregate of positions [los[i], his[i]) of key slots[i], without position skips[i] (if there are skips).

    B, BASED: for each key the partial of what was forgotten and how many events are in it; BASED is empty where that does not
    count.
    """
    V, B, X, OUT = open_state(op, V_), open_state(op, B_), open_arrays(X_), open_arrays(OUT_)
    MASK, COUNTS, OK = ptr(MASK_), ptr(COUNTS_), ptr(OK_)
    masked = len(MASK_) > 0
    skipping = len(skips) > 0
    based = len(BASED) > 0
    for i in range(len(slots)):
        k = slots[i]
        start, cap, rank0 = keys[k, START], keys[k, CAP], keys[k, RANK0]
        total = get(op, V, 1)
        total = reset(op, total)
        count = 0
        if based and BASED[k] > 0:
            total = assign(op, get(op, V, 1), get(op, B, k))
            count = BASED[k]
        lo, hi = los[i], his[i]
        stop = skips[i] if skipping and lo <= skips[i] < hi else hi
        while lo < hi:
            total, count = fold(op, X, MASK, V, COUNTS, masked, start, cap, rank0, lo, stop, total, count)
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
            part = lift(op, get(op, V, 0), row(X, position))
            if BASED[k] > 0:
                put(op, B, k, combine(op, get(op, V, 1), get(op, B, k), part))
            else:
                put(op, B, k, part)
            BASED[k] += 1


def mark_fresh(keys: np.ndarray, touched: np.ndarray) -> None:
    """Nothing of these keys is stale: every aggregate and every run has been brought up to date."""
    keys[touched, STALE] = NEVER
    keys[touched, CHANGED] = NEVER
