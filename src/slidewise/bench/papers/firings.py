"""Firings of reactive-aggregator-2015: so many events leave, so many come, then the window is asked. One loop for all of it.

leaving = coming = 1    fine-grained sliding          leaving = coming = n    tumbling
leaving = coming = m    coarse-grained sliding        leaving = 0 or coming = 0    a window that grows, or shrinks
"""

import numpy as np

from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import get, lift, open_arrays, open_state, ptr, row, twin
from slidewise.algebra.operator import Operator
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.drivers import answer
from slidewise.algorithms.protocol import arrays, capacity_for, evict_, insert_, load_, save_
from slidewise.bench.counting import Counter
from slidewise.bench.timing import per_round


@entry
def fire(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, leaving, coming, firings, at):
    """The inputs go round, from row `at` on; gives the row where the next call goes on."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    rows = len(X_[0])
    st = load_(alg, op, H, W, V, m)
    for _ in range(firings):
        for _ in range(leaving):
            st = evict_(alg, op, W, V, m, st)
        for _ in range(coming):
            st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, at)))
            at += 1
            if at == rows:
                at = 0
        st = answer(alg, op, W, V, m, st, scratch, OUT, OK, 0)
    save_(alg, op, H, W, V, m, st)
    return at


class Firings:
    """An algorithm, an operator, and a window of n events, full."""

    def __init__(self, name: str, op: TypedOperator, n: int, X: tuple):
        self.alg, self.op, self.n, self.X = algorithm(name), op, n, X
        self.compiled = op.compiled
        self.H, self.W, self.V, self.m, self.scratch = arrays(self.alg, op, capacity_for(n))
        self.OUT = op.result.alloc(1) if op.compiled else [None]
        self.OK = np.zeros(1, np.uint8) if op.compiled else [0]
        self._at = 0
        self._drivers.start(self.alg, op, self.H, self.W, self.V, self.m)
        self.fire(0, n, 1)

    @property
    def _drivers(self):
        return drivers if self.compiled else twin(drivers)

    def fire(self, leaving: int, coming: int, firings: int) -> None:
        here = fire if self.compiled else twin(_module()).fire
        state = self.alg, self.op, self.H, self.W, self.V, self.m, self.scratch, self.X, self.OUT, self.OK
        self._at = here(*state, leaving, coming, firings, self._at)

    def resize(self, capacity: int) -> None:
        _, W, V, m, scratch = arrays(self.alg, self.op, capacity)
        self._drivers.step_move(self.alg, self.op, self.H, self.W, self.V, self.m, W, V, m)
        self.W, self.V, self.m, self.scratch = W, V, m, scratch

    def nanoseconds(self, slide: int, seconds: float, repeats: int = 3) -> float:
        """Of one firing, sliding by that many events."""
        return per_round(seconds, lambda firings: self.fire(slide, slide, firings), repeats) * 1e9


def _module():
    import slidewise.bench.papers.firings as here

    return here


def counted(name: str, made: Operator, n: int, slide: int, firings: int, seed: int = 0) -> float:
    """Combines of one firing in the mean, when the window of n slides by that many events."""
    counter = Counter(made)
    X = (np.random.default_rng(seed).integers(1, 10**6, 4096).tolist(),)
    window = Firings(name, counter.typed, n, X)
    window.fire(slide, slide, 1)
    return counter.during(window.fire, slide, slide, firings) / firings
