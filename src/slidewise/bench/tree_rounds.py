"""The papers' loops over a tree: rounds of evict, insert, query at a fixed distance from the young end, single and in bulk.

fiba-2019 section 5.1.1: the window is filled with n - d low times and d high ones. From then on low times come, each younger
than the low ones before: every insert is d places from the young end, every evict takes the oldest.

    low times                     high times, never evicted
    [ evict ->  ...  <- insert ]  [ d of them ]                with d = n: no low times, insert and evict at the old end

bulk-fiba-2023 section 7: a round evicts the m oldest, inserts m, and queries; either step one by one or in bulk.
"""

import numpy as np

from slidewise.algebra.cache import entry, kernel
from slidewise.algebra.kernel import get, lift, open_arrays, open_state, ptr, put, row, shift
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.fiba import evict, insert, oldest
from slidewise.algorithms.fiba_bulk_evict import bulk_evict
from slidewise.algorithms.fiba_bulk_insert import WORDS as BATCH_WORDS
from slidewise.algorithms.fiba_bulk_insert import bulk_insert
from slidewise.algorithms.fiba_drivers import LIFTED, answer, answer_range
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import (
    BUMP,
    DROPPED,
    PARENT,
    SIZE,
    TREE_WORDS,
    UNITS,
    drop_children,
    free_node,
    has_room,
    hi_of,
    lo_of,
)
from slidewise.algorithms.fiba_nodes import row as node_row
from slidewise.bench import clock

BATCH = 2**14
"""Rounds for one call: inputs and results stay in the cache, as they would in a stream."""
HIGH = 2**40
"""The first of the high times."""
FOREVER = 2**62

WHOLE, EVICT, INSERT = range(3)
"""Which part of a round is timed."""
SINGLY, BULK, EAGER, NOT = range(4)
"""How a round evicts and inserts: EAGER takes dropped subtrees apart at once, NOT leaves the step out."""

UNTIMED = np.empty(0, np.int64)


@entry
def rounds(k, op, A_, H_, N_, V_, tree, X_, first, fill, OUT_, OK_, TICKS, lo, hi):
    """Rounds of evict, insert, query; round i inserts at first + i. Where TICKS is not empty: the least time so far of each.

    `fill`: insert and do nothing else."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    timed = len(TICKS) > 0
    began = clock.ticks()
    for i in range(lo, hi):
        if not has_room(k, A, H):
            return i
        if not fill and H[SIZE] > 0:
            evict(k, op, A, H, N, V)
        insert(k, op, A, H, N, V, first + i, lift(op, get(op, V, LIFTED), row(X, i)))
        if not fill:
            answer(k, op, H, N, V, OUT, OK, i)
        if timed:
            ended = clock.ticks()
            TICKS[i] = min(TICKS[i], ended - began)
            began = ended
    return hi


@entry
def bulk_rounds(k, op, A_, H_, N_, V_, tree, X_, first, m, out, into, TS, W_, G, OUT_, OK_, part, TICKS, lo, hi):
    """Rounds of evicting m, inserting m, and a query; round i inserts at first + i * m and the m - 1 times after it.

    `out` and `into`: how."""
    A, H, N, V, W = ptr(A_), ptr(H_), ptr(N_), open_state(op, V_), open_state(op, W_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    timed = len(TICKS) > 0
    began = evicted = inserted = 0
    mask = len(X_[0]) - 1
    for i in range(lo, hi):
        if A[UNITS] - A[BUMP] < 2 * m + 128:
            return i
        if timed:
            began = clock.ticks()
        if out in (BULK, EAGER):
            bulk_evict(k, op, A, H, N, V, oldest(k, H, N) + m - 1)
            if out == EAGER:
                take_apart(k, A, N)
        elif out == SINGLY:
            for _ in range(m):
                evict(k, op, A, H, N, V)
        if timed:
            evicted = clock.ticks()
        t = first + i * m
        if into == BULK:
            for j in range(m):
                TS[j] = t + j
                put(op, W, j, lift(op, get(op, W, m), row(X, (i + j) & mask)))
            bulk_insert(k, op, A, H, N, V, ptr(TS), W, 0, m, ptr(G), m)
        elif into == SINGLY:
            for j in range(m):
                insert(k, op, A, H, N, V, t + j, lift(op, get(op, V, LIFTED), row(X, (i + j) & mask)))
        if timed:
            inserted = clock.ticks()
        answer(k, op, H, N, V, OUT, OK, 0)
        if timed:
            took = evicted - began if part == EVICT else inserted - evicted if part == INSERT else clock.ticks() - began
            TICKS[i] = min(TICKS[i], took)
    return hi


@kernel
def take_apart(k, A, N):
    """Free each node of the dropped subtrees now: what the deferred free list leaves until nodes are needed."""
    while A[DROPPED] != 0:
        u = A[DROPPED]
        x = node_row(k, u)
        A[DROPPED] = N[x + PARENT]
        drop_children(k, A, N, u, lo_of(N[x]), hi_of(N[x]) + 1)
        free_node(k, A, N, u)


@entry
def shared_rounds(k, op, A_, H_, N_, V_, trees, X_, first, far, OUT_, OK_, lo, hi):
    """Two windows that slide together. With two trees, each has its own; with one, the small one is a range of the big one:
    the times from `far` before the last low one on."""
    A, H, N, V = ptr(A_), ptr(H_), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    for i in range(lo, hi):
        if A[UNITS] - A[BUMP] < 512:
            return i
        evict(k, op, A, H, N, V)
        insert(k, op, A, H, N, V, first + i, lift(op, get(op, V, LIFTED), row(X, i)))
        answer(k, op, H, N, V, OUT, OK, i)
        if trees == 1:
            answer_range(k, op, H, N, V, first + i - far, FOREVER, OUT, OK, i)
        else:
            small = shift(ptr(H_), TREE_WORDS)
            evict(k, op, A, small, N, V)
            insert(k, op, A, small, N, V, first + i, lift(op, get(op, V, LIFTED), row(X, i)))
            answer(k, op, small, N, V, OUT, OK, i)
    return hi


@entry
def time_rounds(k, op, A_, H_, N_, V_, tree, T, X_, MASK, CUT, OUT_, OK_, lo, hi):
    """As `run_cuts` of the library, but for evicts one by one."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    for i in range(lo, hi):
        if not has_room(k, A, H):
            return i
        if MASK[i]:
            insert(k, op, A, H, N, V, T[i], lift(op, get(op, V, LIFTED), row(X, i)))
        while H[SIZE] > 0 and oldest(k, H, N) <= CUT[i]:
            evict(k, op, A, H, N, V)
        answer(k, op, H, N, V, OUT, OK, i)
    return hi


@entry
def slide_rounds(k, op, A_, H_, N_, V_, tree, T, X_, window, slide, coarse, bulk, OUT_, OK_, lo, hi):
    """Hopping windows: event i comes at T[i]; at the end of each slide, what is older than the window goes, and a query.

    `coarse`: events of one slide are combined into one entry, at the time the slide began."""
    A, H, N, V = ptr(A_), ptr(H_), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    for i in range(lo, hi):
        if not has_room(k, A, H):
            return i
        t = T[i]
        insert(k, op, A, H, N, V, t - t % slide if coarse else t, lift(op, get(op, V, LIFTED), row(X, i)))
        OK[i] = 0
        if (t + 1) % slide == 0:
            if bulk:
                if oldest(k, H, N) <= t - window:
                    bulk_evict(k, op, A, H, N, V, t - window)
            else:
                while oldest(k, H, N) <= t - window:
                    evict(k, op, A, H, N, V)
            answer(k, op, H, N, V, OUT, OK, i)
    return hi


class Rounds:
    """A tree of n entries, d of them with high times, and rounds over it."""

    def __init__(self, op: TypedOperator, min_arity: int, fingers: bool, X: tuple, n: int, d: int, trees: int = 1):
        self.op, self.X, self.d = op, X, d
        self.forest = Forest(op, trees, min_arity, fingers)
        self.forest.grow(n // max(1, min_arity - 1) + 4 * BATCH)
        self.OUT, self.OK = op.result.alloc(BATCH), np.zeros(BATCH, np.uint8)
        self.fill(0, n, d)

    def fill(self, tree: int, n: int, d: int) -> None:
        """n - d low times up to -1, d high ones."""
        low = max(0, n - d)
        for first, count in ((-low, low), (HIGH, n - low)):
            self.next = first
            self._batches("rounds", count, lambda done: (True, self.OUT, self.OK, UNTIMED), tree)
        self.next = 0

    def run(self, rounds: int, ticks: np.ndarray = UNTIMED) -> None:
        """So many rounds of evict, insert, query."""
        self._batches("rounds", rounds, lambda done: (False, self.OUT, self.OK, ticks[done : done + BATCH]))

    def run_shared(self, rounds: int, trees: int, far: int) -> None:
        """The tree argument of the loop says how many there are."""
        self._batches("shared_rounds", rounds, lambda done: (far, self.OUT, self.OK), trees)

    def _batches(self, loop: str, rounds: int, more, tree: int = 0) -> None:
        for done in range(0, rounds, BATCH):
            count, at = min(BATCH, rounds - done), 0
            while at < count:
                at = LOOPS[loop](*self.forest.arrays, tree, self.X, self.next, *more(done), at, count)
                if at < count:
                    self.forest.grow()
            self.next += count

    def run_bulk(
        self, rounds: int, m: int, out: int, into: int, part: int = WHOLE, ticks: np.ndarray = UNTIMED
    ) -> None:
        """So many rounds of m evicts, m inserts and a query."""
        TS, W, G = np.empty(m, np.int64), self.op.state.alloc(m + 1), np.empty(BATCH_WORDS * m, np.int64)
        more = m, out, into, TS, W, G, self.OUT, self.OK, part, ticks
        at = 0
        while at < rounds:
            at = bulk_rounds(*self.forest.arrays, 0, self.X, self.next, *more, at, rounds)
            if at < rounds:
                self.forest.grow(int(self.forest.A[UNITS]) + 4 * m + 1024)
        self.next += rounds * m


LOOPS = {"rounds": rounds, "shared_rounds": shared_rounds}


def run_times(forest: Forest, T, X, CUT, bulk: bool, OUT, OK) -> None:
    """All events of a stream through a time window: everything at or before an event's cut goes, in bulk or one by one. An event
    that is too late for its window is not kept. OUT and OK have room for some, and are used over and over."""
    kept = (CUT < T).view(np.uint8)
    for first in range(0, len(T), len(OK)):
        part = slice(first, first + len(OK))
        forest.run("run_cuts" if bulk else time_rounds, 0, T[part], tuple(x[part] for x in X), kept[part], CUT[part], OUT, OK)


def run_slides(forest: Forest, T, X, window: int, slide: int, coarse: bool, bulk: bool, OUT, OK) -> None:
    """Events in order through a hopping window; OK says after which of them a slide ended."""
    at = 0
    while at < len(T):
        at = slide_rounds(*forest.arrays, 0, T, X, window, slide, coarse, bulk, OUT, OK, at, len(T))
        if at < len(T):
            forest.grow()
