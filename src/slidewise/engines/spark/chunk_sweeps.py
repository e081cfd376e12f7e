"""Compiled loops over a piece of a key: as the local engine's, but one of the rows may be a state.

    rows     r  r  r  r  S  r  r  r  r         S, at place `at`: the aggregate of all the rows that lie between

The algorithm comes as a tag from the plan (algorithms/protocol.py): these loops know none by name.
"""

import sys
from typing import Any

import numpy as np

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import (
    assign,
    combine,
    emit,
    get,
    lift,
    open_arrays,
    open_state,
    ptr,
    put,
    reset,
    row,
    twin,
)
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.drivers import answer
from slidewise.algorithms.protocol import SCRATCH, Algorithm, evict_, fresh_, insert_, query_, size_

_ALL: Any = np.zeros(0, np.uint8)


def sweep(alg: Algorithm, typed: TypedOperator, X: tuple, mask, state, at: int, starts, ends, behind=None):
    """(OUT, OK): the aggregate of each frame [starts[i], ends[i]), and of the one behind it where there are such.

    state: arrays (interpreted: a list) of one state, which stands at place `at`; at < 0: nowhere."""
    n = len(starts)
    state = slots(typed, 1) if state is None else state
    frames = (starts, ends) if behind is None else (starts, ends, *behind)
    stores = [_Store(alg, typed, int((frames[k + 1] - frames[k]).max(initial=0))) for k in range(0, len(frames), 2)]
    mask = _ALL if mask is None else mask
    OUT: Any
    OK: Any
    if typed.compiled:
        OUT, OK = typed.result.alloc(n), np.empty(n, np.uint8)
        run = slide_with if behind is None else slide_around_with
    else:
        OUT, OK = [None] * n, bytearray(n)
        mask, frames = mask.tolist(), tuple(part.tolist() for part in frames)
        run = getattr(twin(sys.modules[__name__]), "slide_with" if behind is None else "slide_around_with")
    stored = [part for store in stores for part in (store.W, store.V, store.m, store.scratch)]
    run(alg, typed, *stored, X, mask, state, at, *frames, OUT, OK)
    return OUT, OK if typed.compiled else np.frombuffer(OK, np.uint8)


def totals(typed: TypedOperator, X: tuple, mask, state, at: int, starts: np.ndarray, ends: np.ndarray):
    """(states, counts): the aggregate of the rows starts[k] .. ends[k] - 1 that count, and how many do."""
    count = len(starts)
    state = slots(typed, 1) if state is None else state
    mask = _ALL if mask is None else mask
    found, scratch = slots(typed, count), slots(typed, 2)
    if typed.compiled:
        counts = np.empty(count, np.int64)
        fold(typed, scratch, X, mask, state, at, starts, ends, found, counts)
        return found, counts
    listed = [0] * count
    twin(sys.modules[__name__]).fold(typed, scratch, X, mask.tolist(), state, at, starts.tolist(), ends.tolist(), found, listed)
    return found, np.array(listed, np.int64)


def joined(typed: TypedOperator, states, counts):
    """(states, counts): the aggregate of these aggregates, oldest first, in one slot."""
    found, scratch = slots(typed, 1), slots(typed, 2)
    if typed.compiled:
        join(typed, scratch, states, counts, found)
    else:
        twin(sys.modules[__name__]).join(typed, scratch, states, counts.tolist(), found)
    return found, np.array([counts.sum()], np.int64)


def slots(typed: TypedOperator, count: int):
    """Room for so many states."""
    return typed.state.alloc(count) if typed.compiled else [typed.identity] * count


class _Store:
    """An algorithm's work space for windows of at most `size` entries."""

    def __init__(self, alg: Algorithm, typed: TypedOperator, size: int):
        module = alg.module
        ring = 1 << (max(size, 1) - 1).bit_length()
        self.m = ring - 1
        self.scratch = module.RINGS * ring + module.EXTRAS
        words = max(module.WORDS * ring, 1)
        self.W = np.zeros(words, np.int64) if typed.compiled else [0] * words
        self.V = slots(typed, self.scratch + SCRATCH)


# ---- compiled, with an interpreted twin ----------------------------------------------------------------------------------


@inlined
def move_with(alg, op, W, V, m, st, scratch, first, last, start, end, X, MASK, masked, P, at):
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
            if last == at:
                st = insert_(alg, op, W, V, m, st, assign(op, get(op, V, scratch), get(op, P, 0)))
            else:
                st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, last)))
        last += 1
    return st, first, last


@entry
def slide_with(alg, op, W_, V_, m, scratch, X_, MASK_, P_, at, starts_, ends_, OUT_, OK_):
    """The result of each frame."""
    W, V, P, X, OUT, OK = ptr(W_), open_state(op, V_), open_state(op, P_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    MASK, starts, ends = open_arrays((MASK_, starts_, ends_))
    masked = len(MASK_) > 0
    st = fresh_(alg, op, W, V, m)
    first = last = 0
    for i in range(len(starts_)):
        st, first, last = move_with(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked, P, at)
        st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)


@entry
def slide_around_with(alg, op, W_, V_, m, scratch, W2_, V2_, m2, scratch2, X_, MASK_, P_, at, starts_, ends_, starts2_, ends2_,
                      OUT_, OK_):
    """The result of each frame and the one behind it, together: a row between them is left out."""
    W, V, P, X, OUT, OK = ptr(W_), open_state(op, V_), open_state(op, P_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    W2, V2 = ptr(W2_), open_state(op, V2_)
    MASK, starts, ends, starts2, ends2 = open_arrays((MASK_, starts_, ends_, starts2_, ends2_))
    masked = len(MASK_) > 0
    st = fresh_(alg, op, W, V, m)
    st2 = fresh_(alg, op, W2, V2, m2)
    first = last = first2 = last2 = 0
    for i in range(len(starts_)):
        st, first, last = move_with(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked, P, at)
        st2, first2, last2 = move_with(alg, op, W2, V2, m2, st2, scratch2, first2, last2, starts2[i], ends2[i], X, MASK, masked,
                                       P, at)
        if size_(alg, st) == 0:
            st2 = answer(alg, op, W2, V2, m2, st2, scratch2, OUT, OK, i)
        elif size_(alg, st2) == 0:
            st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
        else:
            st, older = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
            st2, newer = query_(alg, op, W2, V2, m2, st2, get(op, V2, scratch2 + 1))
            emit(op, OUT, OK, i, combine(op, get(op, V, scratch), older, newer))


@entry
def fold(op, S_, X_, MASK_, P_, at, starts, ends, T_, counts):
    S, P, T, X = open_state(op, S_), open_state(op, P_), open_state(op, T_), open_arrays(X_)
    masked = len(MASK_) > 0
    for k in range(len(counts)):
        count = 0
        total = reset(op, get(op, S, 0))
        for i in range(starts[k], ends[k]):
            if masked and not MASK_[i]:
                continue
            if i == at:
                total = combine(op, get(op, S, 0), total, get(op, P, 0))
            else:
                total = combine(op, get(op, S, 0), total, lift(op, get(op, S, 1), row(X, i)))
            count += 1
        put(op, T, k, total)
        counts[k] = count


@entry
def join(op, S_, V_, counts, T_):
    S, V, T = open_state(op, S_), open_state(op, V_), open_state(op, T_)
    total = reset(op, get(op, S, 0))
    for k in range(len(counts)):
        if counts[k] > 0:
            total = combine(op, get(op, S, 0), total, get(op, V, k))
    put(op, T, 0, total)
