"""Rounds of bulk-fiba-2023, section 7: evict the m oldest, insert m, query; over trees and over in-order algorithms.

b_fiba      bulk evict and bulk insert               nb_fiba     the same tree, one by one
amta        bulk evict, inserts one by one           twostacks_lite, daba_lite     one by one
"""

from collections.abc import Callable

import numpy as np

import slidewise.operators as library
from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import get, lift, open_arrays, open_state, ptr, row
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.protocol import arrays, bulk_evict_, capacity_for, evict_, insert_, load_, save_
from slidewise.bench import clock
from slidewise.bench.counting import Counted
from slidewise.bench.papers import trees
from slidewise.bench.tally import combines
from slidewise.bench.tree_rounds import BULK, EAGER, EVICT, INSERT, NOT, SINGLY, UNTIMED, WHOLE, Rounds

QUEUES = {"amta": "amta", "twostacks_lite": "two_stacks_lite", "daba_lite": "daba_lite"}
TREES = {f"{kind}_fiba{arity}": (kind == "b", trees.Tree(arity)) for kind in ("b", "nb") for arity in (4, 8)}


@inlined
def _insert(alg, op, W, V, mask, st, scratch, X, first, m, last):
    for j in range(m):
        st = insert_(alg, op, W, V, mask, st, lift(op, get(op, V, scratch), row(X, (first + j) & last)))
    return st


@inlined
def _note(TICKS, i, part, began, evicted, inserted):
    took = evicted - began if part == EVICT else inserted - evicted if part == INSERT else clock.ticks() - began
    TICKS[i] = min(TICKS[i], took)


@entry
def queue_rounds(alg, op, H, W_, V_, mask, scratch, X_, last, m, OUT_, OK_, part, TICKS, count):
    """Rounds over an algorithm that evicts one by one. As over trees, the clock is read only where TICKS is not empty."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, mask)
    timed = len(TICKS) > 0
    began = evicted = inserted = 0
    for i in range(count):
        if timed:
            began = clock.ticks()
        for _ in range(m):
            st = evict_(alg, op, W, V, mask, st)
        if timed:
            evicted = clock.ticks()
        st = _insert(alg, op, W, V, mask, st, scratch, X, i, m, last)
        if timed:
            inserted = clock.ticks()
        st = drivers.answer(alg, op, W, V, mask, st, scratch, OUT, OK, 0)
        if timed:
            _note(TICKS, i, part, began, evicted, inserted)
    save_(alg, op, H, W, V, mask, st)


@entry
def bulk_queue_rounds(alg, op, H, W_, V_, mask, scratch, X_, last, m, OUT_, OK_, part, TICKS, count):
    """Rounds over one that evicts in bulk."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, mask)
    timed = len(TICKS) > 0
    began = evicted = inserted = 0
    for i in range(count):
        if timed:
            began = clock.ticks()
        st = bulk_evict_(alg, op, W, V, mask, st, m)
        if timed:
            evicted = clock.ticks()
        st = _insert(alg, op, W, V, mask, st, scratch, X, i, m, last)
        if timed:
            inserted = clock.ticks()
        st = drivers.answer(alg, op, W, V, mask, st, scratch, OUT, OK, 0)
        if timed:
            _note(TICKS, i, part, began, evicted, inserted)
    save_(alg, op, H, W, V, mask, st)


class Queue:
    """An in-order algorithm over a full window of n."""

    def __init__(self, name: str, op: TypedOperator, X: tuple, n: int):
        self.alg, self.op, self.X = algorithm(name), op, X
        self.arrays = arrays(self.alg, op, capacity_for(n))
        self.loop = bulk_queue_rounds if "bulk_evict" in self.alg.info.offers else queue_rounds
        self.OUT, self.OK = op.result.alloc(1), np.zeros(1, np.uint8)
        H, W, V, mask, scratch = self.arrays
        drivers.start(self.alg, op, H, W, V, mask)
        for done in range(0, n, len(X[0])):
            drivers.step_insert_many(self.alg, op, H, W, V, mask, scratch, X, 0, min(len(X[0]), n - done))

    def run(self, rounds: int, m: int, part: int = WHOLE, ticks: np.ndarray = UNTIMED) -> None:
        H, W, V, mask, scratch = self.arrays
        last = len(self.X[0]) - 1
        self.loop(self.alg, self.op, H, W, V, mask, scratch, self.X, last, m, self.OUT, self.OK, part, ticks, rounds)

    def copy(self) -> "Queue":
        other = object.__new__(Queue)
        other.__dict__.update(self.__dict__)
        H, W, V, mask, scratch = self.arrays
        other.arrays = H.copy(), W.copy(), tuple(v.copy() for v in V), mask, scratch
        return other


class Window:
    """Any of the algorithms, by the paper's name: `run(rounds, ...)` and a copy of itself."""

    def __init__(self, name: str, operator: str, n: int, d: int, op: TypedOperator | None = None):
        op = op or trees.operator(operator)
        self.bulk, tree = TREES.get(name, (True, None))
        if tree is None:
            self.of: Queue | Rounds = Queue(QUEUES[name], op, trees.column(operator), n)
        else:
            self.of = Rounds(op, tree.min_arity, tree.fingers, trees.column(operator), n, d)

    def run(
        self, rounds: int, m: int, bulk_insert: bool, part: int = WHOLE, ticks: np.ndarray = UNTIMED, eager=False
    ) -> None:
        """`bulk_insert`: whether b_fiba inserts in bulk too. `eager`: it takes dropped subtrees apart at once."""
        if isinstance(self.of, Queue):
            self.of.run(rounds, m, part, ticks)
        else:
            out = (EAGER if eager else BULK) if self.bulk else SINGLY
            self.of.run_bulk(rounds, m, out, BULK if self.bulk and bulk_insert else SINGLY, part, ticks)

    def rounds_of(self, m: int, bulk_insert: bool) -> Callable[[int], None]:
        return lambda rounds: self.run(rounds, m, bulk_insert)

    def latencies(
        self, rounds: int, m: int, bulk_insert: bool, part: int, repeats: int, eager: bool = False
    ) -> np.ndarray:
        """Nanoseconds of that part of each round; the least of several runs from the same start."""
        least = np.full(rounds, np.iinfo(np.int64).max)
        start = self.of
        first = 0 if isinstance(start, Queue) else start.next
        forest = None if isinstance(start, Queue) else start.forest
        for _ in range(repeats):
            if isinstance(start, Queue):
                self.of = start.copy()
            else:
                start.forest, start.next = forest.copy(), first
            self.run(rounds, m, bulk_insert, part, least, eager)
        self.of = start
        if not isinstance(start, Queue):
            start.forest, start.next = forest, first
        return trees.nanoseconds(least)


def combines_of(name: str, part: int, m: int, d: int, bulk_insert: bool, rounds: int = 8) -> float:
    """How many combines that part of a round takes."""
    if name in QUEUES:
        return _combines_of_queue(QUEUES[name], part, m)
    made = Window(name, "sum", 16 * m, d, trees.counter())
    tree = made.of
    assert isinstance(tree, Rounds)
    made.run(4, m, bulk_insert)
    out, into = (BULK if made.bulk else SINGLY), (BULK if made.bulk and bulk_insert else SINGLY)
    counted = {EVICT: 0, INSERT: 0}
    for _ in range(rounds):
        first = tree.next
        counted[EVICT] += combines(lambda: tree.run_bulk(1, m, out, NOT))
        tree.next = first
        counted[INSERT] += combines(lambda: tree.run_bulk(1, m, NOT, into))
    return counted[part] / rounds


def _combines_of_queue(name: str, part: int, m: int) -> float:
    """Over whole cycles of a window of 4 m, interpreted."""
    counted = Counted(name, library.sum(), 4 * m)
    for x in range(4 * m):
        counted.insert(x)
    found, rounds = {EVICT: 0, INSERT: 0}, 8
    for _ in range(rounds):
        bulk = "bulk_evict" in counted.alg.info.offers
        found[EVICT] += counted.evict(m) if bulk else sum(counted.evict() for _ in range(m))
        found[INSERT] += sum(counted.insert(x) for x in range(m))
        counted.query()
    return found[part] / rounds
