"""What the experiments on in-order windows share: rounds of evict, insert, query, timed and counted; the papers' operators.

The operators are the library's, as a user would call them: `sum` and `mean` of integers add in two words and never wrap, `std`
merges central moments, `geomean` sums logarithms, `collect` keeps ropes. `recalc` is the papers' Recalc, Naive and ISS: the
window from scratch, with nothing but a loop over combines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import slidewise.operators as library
from slidewise.algebra.kernel import twin
from slidewise.algebra.operator import Operator
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.protocol import Algorithm, arrays, capacity_for
from slidewise.bench import counting
from slidewise.bench.timing import best_of, per_round

BATCH = 2**14
"""Rounds for one call of a driver: inputs and results stay in the cache, as they would in a stream."""


@dataclass(frozen=True)
class Function:
    """An aggregation function of the papers: the operator, and columns of n values for it."""

    make: Callable[[], Operator]
    columns: Callable[[np.random.Generator, int], tuple]
    inputs: tuple

    def typed(self) -> TypedOperator:
        return self.make().typed(self.inputs)


def _numbers(dtype) -> Callable[[np.random.Generator, int], tuple]:
    return lambda rng, n: ((rng.random(n) * 1e6 + 1).astype(dtype),)


def _pairs(dtype) -> Callable[[np.random.Generator, int], tuple]:
    return lambda rng, n: ((rng.random(n) * 1e6 + 1).astype(dtype), np.arange(n, dtype=np.int64))


def function(make: Callable[[], Operator], dtype) -> Function:
    return Function(make, _numbers(dtype), (np.dtype(dtype),))


def argument(make: Callable[[], Operator], dtype) -> Function:
    return Function(make, _pairs(dtype), (np.dtype(dtype), np.dtype(np.int64)))


COLLECT = Function(library.collect, lambda rng, n: (rng.integers(0, 1000, n).tolist(),), (object,))
"""Python objects on ropes: runs interpreted."""


class Rounds:
    """One algorithm, operator and window size, with its arrays: compiled or interpreted, as the operator is."""

    def __init__(self, name: str | Algorithm, op: TypedOperator, window: int, X: tuple, capacity: int = 0):
        self.alg = algorithm(name) if isinstance(name, str) else name
        self.op, self.window, self.X = op, window, X
        self.steps = drivers if op.compiled else twin(drivers)
        self.H, self.W, self.V, self.m, self.scratch = arrays(self.alg, op, capacity or capacity_for(window))
        places = min(BATCH, len(X[0]))
        self.OUT = op.result.alloc(places) if op.compiled else [None] * places
        self.OK = np.zeros(places, np.uint8) if op.compiled else [0] * places
        self._at = 0
        self.steps.start(self.alg, self.op, self.H, self.W, self.V, self.m)

    def run(self, rounds: int) -> None:
        """Evict if the window is full, insert, query; so a new window is filled by `run(window)`."""
        done, total, places = 0, len(self.X[0]), len(self.OK)
        while done < rounds:
            count = min(places, rounds - done, total - self._at)
            X = tuple(x[self._at : self._at + count] for x in self.X)
            self.steps.run_rows(
                self.alg,
                self.op,
                self.H,
                self.W,
                self.V,
                self.m,
                self.scratch,
                X,
                self.window,
                self.OUT,
                self.OK,
                0,
                count,
            )
            done += count
            self._at = (self._at + count) % total

    def nanoseconds(self, seconds: float, repeats: int = 3, most: float = 1e9) -> float | None:
        """Of one round, in the mean over whole cycles of the window; the best of several turns of about that many seconds.

        None where a round takes longer than `most` nanoseconds."""
        few = 4 if not self.op.compiled else 16
        if best_of(3, lambda: self.run(few)) / few * 1e9 > most:
            return None
        cycle = 1 if self.alg.name == "recalc" else self.window  # from scratch, all rounds are alike
        return per_round(seconds, self.run, repeats, cycle) * 1e9


def filled(name: str | Algorithm, op: TypedOperator, window: int, X: tuple) -> Rounds:
    """A full window."""
    made = Rounds(name, op, window, X)
    made.run(window)
    return made


def combines(
    name: str | Algorithm, made: Operator, window: int, seed: int = 0, values: Sequence | None = None
) -> counting.Counts:
    """Combines a round, over two windows' worth of rounds: whole cycles of every amortised algorithm."""
    if values is None:
        values = np.random.default_rng(seed).integers(1, 10**6, 3 * window + 64).tolist()
    return counting.rounds(name, made, window, values, most=max(2 * window, 32))


# ---- break-even points -----------------------------------------------------------------------------------------------


def break_even(windows: Sequence[int], mine: Sequence[float | None], base: Sequence[float | None], times: float = 1.0):
    """The smallest window from which on, in all larger ones that were measured, `base` takes over `times` as long; None: never."""
    found = None
    for window, a, b in zip(reversed(windows), reversed(mine), reversed(base)):
        if a is None or (b is not None and b <= times * a):
            break
        found = window
    return found
