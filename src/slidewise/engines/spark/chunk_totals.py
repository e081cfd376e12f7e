"""Aggregates of many rows, on their way between tasks.

A state is a few numbers (or a Python object), and most of them mean the same everywhere. Two kinds do not: the place of a
text among the sorted texts of one table, and the number of a row in it (planner/inputs.py: `rank` and `position`, how
columns of any type reach a compiled operator). Such numbers are exchanged for the values themselves before a state
leaves its table, and for numbers again where it arrives.

Which numbers of a state these are is found by moving all of the input's numbers up by a constant: operators only choose among
them, so exactly the numbers taken from the input move with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slidewise.engines.local.columns import Column, one_array, truth_bytes
from slidewise.engines.spark.chunk_sweeps import joined, totals
from slidewise.planner.inputs import Input
from slidewise.planner.plan import Plan, Step

_MOVED = 1 << 40


def steps_of(plan: Plan) -> tuple[Step, ...]:
    """The plan's steps, with Python objects as inputs where states are such: nobody finds a row's number inside of them."""
    found = []
    for step in plan.steps:
        if not step.typed.compiled:
            inputs = tuple(replace(i, kind="object") if i.kind in ("rank", "position") else i for i in step.inputs)
            step = replace(step, inputs=inputs)
        found.append(step)
    return tuple(found)


def referring(step: Step) -> tuple[int, ...]:
    """Inputs whose numbers mean something in their own table only."""
    return tuple(k for k, spec in enumerate(step.inputs) if spec.kind in ("rank", "position"))


@dataclass
class Totals:
    """States of one aggregate, side by side, that mean the same in every process."""

    states: Any
    counts: np.ndarray
    """How many values are in each."""
    refers: dict[tuple[int, int], tuple[np.ndarray, pa.Array]] = field(default_factory=dict)
    """(input, leaf of the state) -> which of its numbers stand for values of that input, and these values."""

    def part(self, lo: int, hi: int) -> Totals:
        """The states lo .. hi - 1."""
        counts, all_ = self.counts[lo:hi], len(self.counts)
        if isinstance(self.states, list):
            return Totals(self.states[lo:hi], counts)
        wide = [len(array) // max(all_, 1) for array in self.states]
        states = tuple(array[lo * w : hi * w] for array, w in zip(self.states, wide))
        refers = {}
        for (k, leaf), (which, values) in self.refers.items():
            a, b = lo * wide[leaf], hi * wide[leaf]
            refers[k, leaf] = which[a:b], values.slice(int(which[:a].sum()), int(which[a:b].sum()))
        return Totals(states, counts, refers)

    @staticmethod
    def concat(parts: list[Totals]) -> Totals:
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([part.counts for part in parts])
        if isinstance(parts[0].states, list):
            return Totals([state for part in parts for state in part.states], counts)
        states = tuple(np.concatenate(arrays) for arrays in zip(*(part.states for part in parts)))
        refers = {
            key: (np.concatenate([part.refers[key][0] for part in parts]),
                  pa.concat_arrays([part.refers[key][1] for part in parts]))
            for key in parts[0].refers
        }
        return Totals(states, counts, refers)


def packed(step: Step, totals: Totals) -> bytes:
    """Bytes of states, for a trip between processes of one job."""
    from pyspark import cloudpickle

    encode = step.bound.operator.encode
    if encode is not None and isinstance(totals.states, list):
        totals = replace(totals, states=[encode(state) for state in totals.states])
    return cloudpickle.dumps(totals)


def unpacked(step: Step, data: bytes) -> Totals:
    from pyspark import cloudpickle

    totals, decode = cloudpickle.loads(data), step.bound.operator.decode
    if decode is not None and isinstance(totals.states, list):
        totals = replace(totals, states=[decode(state) for state in totals.states])
    return totals


def joined_totals(step: Step, totals: Totals) -> Totals:
    """All these states as one, oldest first."""
    columns = {spec.column: pa.array([], spec.arrow) for spec in step.inputs}
    if step.bound.where is not None:
        columns[step.bound.where] = pa.array([], pa.bool_())
    return Rows(step, pa.table(columns), total=totals).joined()


class Rows:
    """The columns of one aggregate over a table of sorted rows.

    The row at `at` (and blank ones behind it) is none: there stands `total`, a state that came from elsewhere."""

    def __init__(self, step: Step, table: pa.Table, at: int = -1, total: Totals | None = None, blank: int = 1):
        self.step, self.table, self.at, self.total, self.blank = step, table, at, total, blank
        n = len(table)
        self.columns = []
        for k, spec in enumerate(step.inputs):
            array = one_array(table.column(spec.column))
            refers = [] if total is None else [v for (place, _), (_, v) in total.refers.items() if place == k]
            # behind the rows, where no frame reaches: the values that the state refers to
            self.columns.append(Column(spec, pa.concat_arrays([array, *refers]) if refers else array))
        self.state = None if total is None else self._numbered(total, n)
        self.mask = self._mask(n)
        self.X = tuple(column.values for column in self.columns)
        if not step.typed.compiled:
            self.X = tuple(values if isinstance(values, list) else values.tolist() for values in self.X)

    def column(self, spec: Input) -> Column:
        return self.columns[self.step.inputs.index(spec)]

    def _numbered(self, total: Totals, begin: int):
        """The states, what they refer to exchanged for the numbers that the values have here."""
        if not total.refers:
            return total.states
        arrays = [array.copy() for array in total.states]
        begins = dict.fromkeys(range(len(self.columns)), begin)
        for (k, leaf), (which, values) in total.refers.items():
            arrays[leaf][which] = self.columns[k].values[begins[k] : begins[k] + len(values)]
            begins[k] += len(values)
        return tuple(arrays)

    def _mask(self, n: int) -> np.ndarray | None:
        """A byte for each row that says whether it counts; None where all do."""
        op, where = self.step.bound.operator, self.step.bound.where
        parts = []
        for place, column in enumerate(self.columns):
            kept = place in op.carried and len(op.carried) < len(self.columns)
            if not kept and column.valid is not None:
                parts.append(column.valid[:n])
        if where is not None:
            parts.append(truth_bytes(one_array(self.table.column(where)), f"where={where!r}"))
        if not parts and self.at < 0:
            return None
        mask = np.ones(n, np.uint8)
        for part in parts:
            mask &= part
        if self.at >= 0:
            mask[self.at : self.at + self.blank] = 0
            mask[self.at] = self.total is not None and self.total.counts[0] > 0
        return mask

    def totals(self, starts, ends) -> Totals:
        """The aggregates of the rows starts[k] .. ends[k] - 1, for each k."""
        typed, starts, ends = self.step.typed, np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        return self._referring(lambda X, state: totals(typed, X, self.mask, state, self.at, starts, ends))

    def joined(self) -> Totals:
        """All states as one."""
        typed = self.step.typed
        return self._referring(lambda X, states: joined(typed, states, self.total.counts))

    def _referring(self, compute) -> Totals:
        """compute(X, states) -> (states, counts), with what the states refer to as values."""
        states, counts = compute(self.X, self.state)
        refers = {}
        for k in referring(self.step):
            moved, _ = compute(tuple(x + _MOVED if place == k else x for place, x in enumerate(self.X)), self._moved(k))
            column = self.columns[k]
            source = column.ranked if column.spec.kind == "rank" else column.array
            for leaf, (here, there) in enumerate(zip(states, moved)):
                if here.dtype.kind in "iu" and here.itemsize == 8:
                    which = there - here == _MOVED
                    refers[k, leaf] = which, source.take(pa.array(here[which].astype(np.int64)))
        return Totals(states, counts, refers)

    def _moved(self, k: int):
        """The states as they would be if the input's numbers were all larger by a constant."""
        if self.state is None:
            return None
        arrays = [array.copy() for array in self.state]
        for (place, leaf), (which, _) in self.total.refers.items():
            if place == k:
                arrays[leaf][which] += _MOVED
        return tuple(arrays)
