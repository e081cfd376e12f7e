"""Algorithms over rows that are all at hand: the same combines on the same states, without keeping what can be read again.

A live window must store what it is given. A loop over a whole column need not: a row that leaves, or that goes from the back to the
front, is lifted again from the column. So there is no ring of values, and a frame's start is looked up in place of being reached by
single evictions: what is left is one pass without unpredictable branches.

    two_stacks_lite      s[p] only, for p from the last turn's start up to its border; the back part is one partial
    subtract_on_evict    the running aggregate only

`form(algorithm, op)` gives the loop for an algorithm, or None where it has no such form: drivers then slide the algorithm itself.
Results are those of the algorithm to the last bit: turns happen at the same rows, and states are combined in the same order.

A loop's arguments: V, states (`slots` of them for frames of at most `size` rows); carry, four words that take it from one piece to
the next; X, columns in which every row counts; starts and ends, frames that never go back; OUT and OK as everywhere.
"""

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import (
    combine,
    emit,
    get,
    inverse,
    lift,
    null_when_empty,
    open_arrays,
    open_state,
    ptr,
    put,
    reset,
    row,
)

CARRY = 4
STRIDE = 16
"""Frames that are answered together where for each row that comes one leaves."""
EXTRAS = 3
"""Slots in front of a loop's own: the partial it carries, one to lift into, one to answer into."""


def slots(size: int) -> int:
    """State slots for frames of at most so many rows."""
    return size + EXTRAS


def form(name: str, op):
    """The loop for the algorithm of that name and a typed operator, or None. Wide and interpreted states are lifted but once:
    lifting one again costs more than keeping it."""
    return FORMS.get(name) if op.kind in ("scalar", "struct") else None


@inlined
def nothing(op, V, OUT, OK, i):
    """The answer of an empty frame."""
    if null_when_empty(op):
        OK[i] = 0
    else:
        emit(op, OUT, OK, i, reset(op, get(op, V, 2)))


@inlined
def in_step(starts, ends, i, start, end):
    """Whether the frames from i on begin at start, start + 1 ... and end at end, end + 1 ...: nothing branches in here."""
    other = False
    for k in range(STRIDE):
        other |= (starts[i + k] != start + k) | (ends[i + k] != end + k)
    return not other


@entry
def front_and_back(op, V_, carry, X_, starts_, ends_, OUT_, OK_, lo, hi):
    """Two-Stacks Lite (daba-2015 section 4). carry: the row in the first slot of the front, the border between front and back,
    the row behind the last.

          base      start    border     last
          |   s  s  s  s  s  |  v v v v |       s[p] = v[p] (x) ... (x) v[border - 1]
                                                back = v[border] (x) ... (x) v[last - 1]
    """
    V, X, OUT, OK = open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    starts, ends = open_arrays((starts_, ends_))
    base, border, last = carry[0], carry[1], carry[2]
    back = get(op, V, 0)
    i, again = lo, lo
    while i < hi:
        start, end = starts[i], ends[i]
        if start >= last:  # nothing of the old frame is left
            base = border = last = start
            back = reset(op, back)
        elif start > border:  # a row of the back part leaves: what is left of it becomes the front
            base = start
            total = lift(op, get(op, V, EXTRAS + last - 1 - base), row(X, last - 1))
            put(op, V, EXTRAS + last - 1 - base, total)
            for position in range(last - 2, start - 1, -1):
                slot = EXTRAS + position - base
                total = combine(op, get(op, V, slot), lift(op, get(op, V, 1), row(X, position)), total)
                put(op, V, slot, total)
            border = last
            back = reset(op, back)
        while last < end:
            back = combine(op, back, back, lift(op, get(op, V, 1), row(X, last)))
            last += 1
        if start < border:
            emit(op, OUT, OK, i, combine(op, get(op, V, 2), get(op, V, EXTRAS + start - base), back))
        elif start < end:
            emit(op, OUT, OK, i, back)
        else:
            nothing(op, V, OUT, OK, i)
        i += 1
        while i >= again and i + STRIDE <= hi and start + STRIDE < border:
            if not in_step(starts, ends, i, start + 1, last + 1):
                again = i + STRIDE
                break
            for k in range(STRIDE):  # as above, where it is known what comes
                back = combine(op, back, back, lift(op, get(op, V, 1), row(X, last + k)))
                front = get(op, V, EXTRAS + start + 1 + k - base)
                emit(op, OUT, OK, i + k, combine(op, get(op, V, 2), front, back))
            start += STRIDE
            last += STRIDE
            i += STRIDE
    carry[0] = base
    carry[1] = border
    carry[2] = last
    put(op, V, 0, back)


@entry
def running(op, V_, carry, X_, starts_, ends_, OUT_, OK_, lo, hi):
    """Subtract-on-Evict (daba-2015 section 8). carry: the first row of the frame, (nothing), the row behind the last."""
    V, X, OUT, OK = open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    starts, ends = open_arrays((starts_, ends_))
    first, last = carry[0], carry[2]
    total = get(op, V, 0)
    for i in range(lo, hi):
        start, end = starts[i], ends[i]
        if start >= last:
            first = last = start
            total = reset(op, total)
        while first < start:
            total = inverse(op, total, total, lift(op, get(op, V, 1), row(X, first)))
            first += 1
        while last < end:
            total = combine(op, total, total, lift(op, get(op, V, 1), row(X, last)))
            last += 1
        if start < end:
            emit(op, OUT, OK, i, total)
        else:
            nothing(op, V, OUT, OK, i)
    carry[0] = first
    carry[2] = last
    put(op, V, 0, total)


FORMS = {"two_stacks_lite": front_and_back, "subtract_on_evict": running}
