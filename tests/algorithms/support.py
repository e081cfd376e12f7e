"""What the tests of algorithms share: an algorithm at work with its arrays, and operators whose combines are counted."""

from __future__ import annotations

import numpy as np

from slidewise.algebra.kernel import twin
from slidewise.algebra.operator import Operator
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import MODULES, algorithm, drivers
from slidewise.algorithms.protocol import arrays, capacity_for

IN_ORDER = [name for name in MODULES if algorithm(name).info.order == "in"]
"""Every algorithm these tests run on: a new one is a line in MODULES."""


def columns_as_python(X):
    """Plain Python values, as the interpreted path gets them from frames."""
    return tuple(column.tolist() if isinstance(column, np.ndarray) else column for column in X)


def results(op: TypedOperator, places: int):
    if op.compiled:
        return op.result.alloc(places), np.zeros(places, np.uint8)
    return [None] * places, [0] * places


def result(op: TypedOperator, OUT, OK, i: int):
    """What a user would see in place i; None where it is null."""
    if not OK[i]:
        return None
    if not op.compiled:
        return OUT[i]
    if op.result.kind == "wide":
        return OUT[0][i * op.result.width : (i + 1) * op.result.width].tolist()
    leaves = iter([(bool(a[i]) if leaf.dtype == np.bool_ else a[i].item()) for a, leaf in zip(OUT, op.result.leaves)])

    def build(shape):
        if not isinstance(shape, tuple):
            return next(leaves)
        parts = [build(part) for part in shape[1:]]
        return tuple(parts) if shape[0] is None else shape[0](*parts)

    return build(op.result.shape)


def run_frames(name: str, op: TypedOperator, X, starts, ends, mask=()) -> list:
    """The results of frames [starts[i], ends[i]), from the driver that engines use."""
    alg = algorithm(name)
    longest = max((e - s for s, e in zip(starts, ends)), default=0)
    H, W, V, m, scratch = arrays(alg, op, capacity_for(max(1, longest + 1)))
    OUT, OK = results(op, len(starts))
    steps, carry = twin(drivers), [starts[0]] * 2
    if op.compiled:  # the types that engines give
        steps, starts, ends = drivers, np.array(starts, np.int32), np.array(ends, np.int32)
        carry, mask = np.array(carry, np.int64), np.array(mask, np.uint8)
    else:
        X = columns_as_python(X)
    half = len(starts) // 2  # in two pieces, as engines run it
    for lo, hi in ((0, half), (half, len(starts))):
        steps.run_frames(alg, op, H, W, V, m, scratch, carry, X, mask, starts, ends, OUT, OK, lo, hi)
    return [result(op, OUT, OK, i) for i in range(len(starts))]


class Running:
    """An algorithm with its arrays, one step at a time: a window without times. Checks its invariants when asked."""

    def __init__(self, name: str, op: TypedOperator, capacity: int = 1):
        self.alg, self.op = algorithm(name), op
        self.steps = drivers if op.compiled else twin(drivers)
        self.H, self.W, self.V, self.m, self.scratch = arrays(self.alg, op, capacity)
        self.OUT, self.OK = results(op, 1)

    @property
    def args(self):
        return self.alg, self.op, self.H, self.W, self.V, self.m

    def __len__(self):
        twin_ = self.alg.interpreted
        H, W, V = [int(h) for h in self.H], self.W, self.objects()
        return int(twin_.size(twin_.load(self.op.as_object(), H, W, V, self.m)))

    def resize(self, capacity: int):
        _, W, V, m, scratch = arrays(self.alg, self.op, capacity)
        self.steps.step_move(*self.args, W, V, m)
        self.W, self.V, self.m, self.scratch = W, V, m, scratch

    def insert(self, *x):
        while not self.steps.step_insert(*self.args, self.scratch, x):
            self.resize(2 * (self.m + 1))

    def evict(self, count: int = 1):
        self.steps.step_evict(*self.args, count)

    def bulk_evict(self, count: int):
        self.steps.step_bulk_evict(*self.args, count)

    def evict_at(self, j: int):
        self.steps.step_evict_at(*self.args, j)

    def answer(self):
        return result(self.op, self.OUT, self.OK, 0)

    def query(self):
        self.steps.step_query(*self.args, self.scratch, self.OUT, self.OK)
        return self.answer()

    def query_range(self, i: int, j: int):
        self.steps.step_query_range(*self.args, self.scratch, i, j, self.OUT, self.OK)
        return self.answer()

    def query_youngest(self, r: int):
        self.steps.step_query_youngest(*self.args, self.scratch, r, self.OUT, self.OK)
        return self.answer()

    def items(self) -> list:
        found = []
        for j in range(len(self)):
            self.steps.step_entry(*self.args, self.scratch, j, self.OUT, self.OK)
            found.append(self.answer())
        return found

    def objects(self) -> list:
        """Every slot as a Python object."""
        if not self.op.compiled:
            return list(self.V)
        from slidewise.live.states import states_as_objects

        return states_as_objects(self.op, self.V)

    def check(self):
        H, W = [int(h) for h in self.H], [int(w) for w in self.W]
        self.alg.module.check(self.op.as_object(), H, W, self.objects(), self.m)


class Counter:
    """An interpreted operator that counts its combines and inverses."""

    def __init__(self, op: Operator, inputs: tuple = (object,)):
        self.count = 0

        def combine(a, b):
            self.count += 1
            return op.combine(a, b)

        def inverse(total, old):
            self.count += 1
            return op.inverse(total, old)

        counted = op.with_(combine=combine, inverse=None if op.inverse is None else inverse, object_only=True)
        self.typed = counted.typed(inputs)

    def during(self, call, *arguments) -> int:
        """How many combines a call makes."""
        before = self.count
        call(*arguments)
        return self.count - before
