"""Compiled loops that slide an algorithm over frames, and how they are cut for threads.

The algorithm comes as a tag from the plan (algorithms/protocol.py): these loops know none by name.
"""

import numpy as np

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import combine, emit, get, lift, open_arrays, open_state, ptr, row, twin
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.drivers import answer
from slidewise.algorithms.protocol import SCRATCH, Algorithm, evict_, fresh_, insert_, load_, query_, save_, size_
from slidewise.engines.local.threads import Workers

_ALL = np.zeros(0, np.uint8)
PARTS = 16
ROWS_A_PART = 1 << 15
_ORIGIN = 2
"""Words of the carry: the first row in the window and the one behind the last."""


def sweep(workers: Workers, alg: Algorithm, typed: TypedOperator, X: tuple, mask, starts, ends, offsets):
    """(OUT, OK): the aggregate of the rows that count in each frame [starts[i], ends[i])."""
    return _run(workers, alg, typed, X, mask, starts, ends, None, offsets)


def sweep_around(workers: Workers, alg: Algorithm, typed: TypedOperator, X: tuple, mask, before, behind, offsets):
    """(OUT, OK): the aggregate of two frames, one before and one behind a row that is left out."""
    return _run(workers, alg, typed, X, mask, *before, behind, offsets)


def _run(workers, alg, typed, X, mask, starts, ends, behind, offsets):
    n = len(starts)
    mask = _ALL if mask is None else mask
    if not typed.compiled:
        return _interpreted(workers, alg, typed, X, mask, starts, ends, behind)
    OUT, OK = typed.result.alloc(n), np.empty(n, np.uint8)
    rooms = [room(starts, ends)] + ([room(*behind)] if behind else [])

    def part(lo, hi):
        if lo >= hi:
            return
        stores = [Store(alg, typed, size) for size in rooms]
        stores[0].carry[:] = starts[lo]
        if behind is None:
            a = stores[0]
            workers.pieces(
                lambda i, j: slide(alg, typed, a.H, a.W, a.V, a.m, a.scratch, a.carry, X, mask, starts, ends, OUT, OK, i, j), lo, hi
            )
        else:
            a, b = stores
            b.carry[:] = behind[0][lo]
            workers.pieces(
                lambda i, j: slide_around(alg, typed, a.H, a.W, a.V, a.m, a.scratch, a.carry, b.H, b.W, b.V, b.m, b.scratch, b.carry,
                                          X, mask, starts, ends, behind[0], behind[1], OUT, OK, i, j), lo, hi
            )

    cuts = cut(starts, ends, offsets)
    workers.each([lambda lo=lo, hi=hi: part(lo, hi) for lo, hi in zip(cuts, cuts[1:])])
    return OUT, OK


def _interpreted(workers, alg, typed, X, mask, starts, ends, behind):
    kernels = twin(_this_module())
    n = len(starts)
    OUT, OK = [None] * n, bytearray(n)
    mask = mask.tolist()
    lists = [starts.tolist(), ends.tolist()]
    a = Store(alg, typed, room(starts, ends))
    if n:
        a.carry[:] = [lists[0][0]] * _ORIGIN
    if behind is None:
        step = lambda i, j: kernels.slide(alg, typed, a.H, a.W, a.V, a.m, a.scratch, a.carry, X, mask, *lists, OUT, OK, i, j)
    else:
        b = Store(alg, typed, room(*behind))
        lists += [behind[0].tolist(), behind[1].tolist()]
        if n:
            b.carry[:] = [lists[2][0]] * _ORIGIN
        step = lambda i, j: kernels.slide_around(alg, typed, a.H, a.W, a.V, a.m, a.scratch, a.carry, b.H, b.W, b.V, b.m, b.scratch, b.carry,
                                                 X, mask, *lists, OUT, OK, i, j)
    workers.pieces(step, 0, n)
    return OUT, np.frombuffer(OK, np.uint8)


def _this_module():
    import sys

    return sys.modules[__name__]


class Store:
    """An algorithm's arrays for windows of at most `size` entries, as an empty window."""

    def __init__(self, alg: Algorithm, typed: TypedOperator, size: int):
        module = alg.module
        ring = 1 << (max(size, 1) - 1).bit_length()
        self.m = ring - 1
        self.scratch = module.RINGS * ring + module.EXTRAS
        slots = self.scratch + SCRATCH
        words = max(module.WORDS * ring, 1)
        if typed.compiled:
            self.H, self.W = np.zeros(max(module.HEADER, 1), np.int64), np.zeros(words, np.int64)
            self.V, self.carry = typed.state.alloc(slots), np.zeros(_ORIGIN, np.int64)
            begin(alg, typed, self.H, self.W, self.V, self.m)
        else:
            self.H, self.W, self.V, self.carry = [0] * module.HEADER, [0] * words, [None] * slots, [0] * _ORIGIN
            twin(_this_module()).begin(alg, typed, self.H, self.W, self.V, self.m)


def room(starts: np.ndarray, ends: np.ndarray) -> int:
    """Rows in the longest frame."""
    return int(longest(starts, ends))


def cut(starts: np.ndarray, ends: np.ndarray, offsets: np.ndarray | None) -> list[int]:
    """Where to cut the frames into parts, for the data alone: at the start of a key where one is near, and only as often
    as what must be read twice (the frames at the cuts) stays small."""
    n = len(starts)
    parts = min(PARTS, n // ROWS_A_PART)
    while parts > 1:
        cuts = [0]
        twice = 0
        for k in range(1, parts):
            place = n * k // parts
            if offsets is not None:
                near = int(offsets[np.searchsorted(offsets, place)])
                if near - place <= n // (4 * parts):
                    place = near
            if cuts[-1] < place < n:
                cuts.append(place)
                twice += int(ends[place - 1]) - int(starts[place]) if int(starts[place]) < int(ends[place - 1]) else 0
        if twice <= n // 4:
            return [*cuts, n]
        parts = parts // 2
    return [0, n]


# ---- compiled, with an interpreted twin ----------------------------------------------------------------------------------


@entry
def longest(starts, ends):
    most = 0
    for i in range(len(starts)):
        most = max(most, ends[i] - starts[i])
    return most


@entry
def begin(alg, op, H, W, V_, m):
    V = open_state(op, V_)
    save_(alg, op, H, W, V, m, fresh_(alg, op, W, V, m))


@inlined
def move_to(alg, op, W, V, m, st, scratch, first, last, start, end, X, MASK, masked):
    """Slide the window from rows [first, last) to [start, end)."""
    if start >= last:  # nothing of the old frame is left
        if last > first:
            st = fresh_(alg, op, W, V, m)
        first = last = start
    while first < start:
        if not masked or MASK[first]:
            st = evict_(alg, op, W, V, m, st)
        first += 1
    while last < end:
        if not masked or MASK[last]:
            st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, last)))
        last += 1
    return st, first, last


@entry
def slide(alg, op, H, W_, V_, m, scratch, carry, X_, MASK_, starts_, ends_, OUT_, OK_, lo, hi):
    """Results of the frames lo .. hi - 1; the window is left where the next piece goes on."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    MASK, starts, ends = open_arrays((MASK_, starts_, ends_))
    masked = len(MASK_) > 0
    st = load_(alg, op, H, W, V, m)
    first, last = carry[0], carry[1]
    for i in range(lo, hi):
        st, first, last = move_to(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked)
        st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
    carry[0] = first
    carry[1] = last
    save_(alg, op, H, W, V, m, st)


@entry
def slide_around(alg, op, H, W_, V_, m, scratch, carry, H2, W2_, V2_, m2, scratch2, carry2, X_, MASK_, starts_, ends_, starts2_,
                 ends2_, OUT_, OK_, lo, hi):
    """Two windows side by side, and the results of both together."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    W2, V2 = ptr(W2_), open_state(op, V2_)
    MASK, starts, ends, starts2, ends2 = open_arrays((MASK_, starts_, ends_, starts2_, ends2_))
    masked = len(MASK_) > 0
    st = load_(alg, op, H, W, V, m)
    st2 = load_(alg, op, H2, W2, V2, m2)
    first, last, first2, last2 = carry[0], carry[1], carry2[0], carry2[1]
    for i in range(lo, hi):
        st, first, last = move_to(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked)
        st2, first2, last2 = move_to(alg, op, W2, V2, m2, st2, scratch2, first2, last2, starts2[i], ends2[i], X, MASK,
                                      masked)
        if size_(alg, st) == 0:
            st2 = answer(alg, op, W2, V2, m2, st2, scratch2, OUT, OK, i)
        elif size_(alg, st2) == 0:
            st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
        else:
            st, older = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
            st2, newer = query_(alg, op, W2, V2, m2, st2, get(op, V2, scratch2 + 1))
            emit(op, OUT, OK, i, combine(op, get(op, V, scratch), older, newer))
    carry[0] = first
    carry[1] = last
    carry2[0] = first2
    carry2[1] = last2
    save_(alg, op, H, W, V, m, st)
    save_(alg, op, H2, W2, V2, m2, st2)
