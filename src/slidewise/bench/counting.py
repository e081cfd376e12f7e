"""Combines counted, not timed: what the papers argue with, and what holds on any machine.

`Counter` wraps an operator; the interpreted twin of an algorithm runs on it. `rounds` is the papers' loop of evict, insert,
query over an in-order algorithm.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from slidewise.algebra.kernel import twin
from slidewise.algebra.operator import Operator
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.protocol import Algorithm, arrays, capacity_for


class Counter:
    """An interpreted operator (`typed`) that counts its combines and inverses in `count`.

    One of the library is first resolved for its input types: its functions depend on them."""

    def __init__(self, op: Operator, inputs: tuple = (np.dtype(np.int64),)):
        self.count = 0
        op = op.resolved(inputs)

        def combine(a, b):
            self.count += 1
            return op.combine(a, b)

        def inverse(total, old):
            self.count += 1
            return op.inverse(total, old)

        counted = op.with_(combine=combine, inverse=None if op.inverse is None else inverse, resolve=None, object_only=True)
        self.operator = counted
        self.typed = counted.typed(inputs)

    def during(self, call: Callable, *arguments) -> int:
        """How many combines a call makes."""
        before = self.count
        call(*arguments)
        return self.count - before


@dataclass(frozen=True)
class Counts:
    """Combines of each round."""

    average: float
    worst: int
    rounds: int


def summed(counts: Sequence[int]) -> Counts:
    return Counts(sum(counts) / len(counts), max(counts), len(counts))


class Counted:
    """An in-order algorithm over a counting operator, at capacity for `window` events; each call gives its combines."""

    def __init__(self, name: str | Algorithm, op: Operator, window: int):
        self.counter, self.alg = Counter(op), algorithm(name) if isinstance(name, str) else name
        self._steps = twin(drivers)
        self._H, self._W, self._V, self._m, self._scratch = arrays(self.alg, self.counter.typed, capacity_for(window))
        self._out, self._ok = [None], [0]
        self._steps.start(*self._arguments)

    @property
    def _arguments(self):
        return self.alg, self.counter.typed, self._H, self._W, self._V, self._m

    def insert(self, *x) -> int:
        return self.counter.during(self._steps.step_insert, *self._arguments, self._scratch, x)

    def evict(self, count: int = 1) -> int:
        bulk = count > 1 and "bulk_evict" in self.alg.info.offers
        step = self._steps.step_bulk_evict if bulk else self._steps.step_evict
        return self.counter.during(step, *self._arguments, count)

    def query(self) -> int:
        return self.counter.during(self._steps.step_query, *self._arguments, self._scratch, self._out, self._ok)

    def query_youngest(self, count: int) -> int:
        step = self._steps.step_query_youngest
        return self.counter.during(step, *self._arguments, self._scratch, count, self._out, self._ok)


def rounds(name: str | Algorithm, op: Operator, window: int, items: Iterable, most: int = 1 << 60) -> Counts:
    """Combines in each round of evict, insert, query once the window is full of the first items."""
    counted = Counted(name, op, window)
    found: list[int] = []
    for k, x in enumerate(items):
        if k < window:
            counted.insert(x)
            counted.query()  # what a first query makes up for is no part of a round
            continue
        found.append(counted.evict() + counted.insert(x) + counted.query())
        if len(found) == most:
            break
    return summed(found)
