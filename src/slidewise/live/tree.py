"""A tree algorithm as `Window` keeps it: a forest of one tree. Takes events in any order.

An operator with a narrow form (algebra.narrow: sums of int64) begins with that. `bound` is never less than what the magnitudes of
all entries add up to; an event that would bring it to LIMIT first has it counted again from the entries, and where that does
not help, or was done too lately to be paid for, the tree is built anew on the operator itself, once and for good.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from slidewise.algebra.codec import decode, encode
from slidewise.algebra.kernel import twin
from slidewise.algebra.narrow import LIMIT, exact_magnitude, magnitude, narrowed
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import drivers
from slidewise.algorithms.checking import compared_within
from slidewise.algorithms.fiba_drivers import LIFTED
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.protocol import Algorithm
from slidewise.errors import StateError
from slidewise.live.results import result_arrays, result_value
from slidewise.live.snapshot import numbers, raw
from slidewise.live.states import copy_states, read_states, states_as_objects, store_states


class Tree:
    """One tree at work, with the same face as `InOrder`. Times are codes (live.times)."""

    def __init__(
        self, alg: Algorithm, op: TypedOperator, coded_times: bool, min_arity: int | None = None, layout: str | None = None
    ):
        """`layout`: that of stored states, if it is to be the same; otherwise states begin narrow where they can."""
        self.alg, self.coded_times = alg, coded_times
        narrow = narrowed(op)
        if narrow is None or layout not in (None, narrow.state.description):
            self.op, self.wide = op, None
        else:
            self.op, self.wide = narrow, op
        self.bound = self.inserted = 0  # inserted: values since the bound was counted
        self.forest = Forest(self.op, 1, min_arity, fingers=alg.module.FINGERS)
        self.out, self.ok = result_arrays(self.op, 1)

    @staticmethod
    def layouts(op: TypedOperator) -> list[str]:
        """How states of a compiled operator may be laid out."""
        return [form.state.description for form in (op, narrowed(op)) if form is not None]

    def __len__(self):
        return self.forest.size(0)

    # ---- changes ---------------------------------------------------------------------------------------------------

    def insert(self, t, x: tuple):
        if self.wide is not None:
            self._admit(abs(int(x[0])) or 1, 1)
        self.forest.insert(0, t, x)

    def try_lifts(self, X: tuple, count: int):
        """Raise what `lift` raises for one of these rows, before anything is changed."""
        steps = drivers if self.op.compiled else twin(drivers)
        steps.step_lifts(self.op, self.forest.V, LIFTED, X, 0, count)

    def bulk_insert(self, ts, X: tuple):
        """Times in order already, equal ones as they came."""
        if len(ts):
            if self.wide is not None:
                self._admit(magnitude(X[0], LIMIT - self.bound), len(ts))
            self.forest.bulk_insert(0, ts, X)

    def _admit(self, more: int, count: int):
        """So many values come in, with magnitudes that add up to no more than `more`."""
        if self.bound + more >= LIMIT:
            if 4 * self.inserted >= len(self):
                self.bound, self.inserted = self._magnitude(), 0
            if self.bound + more >= LIMIT:
                self._widen()
                return
        self.bound += more
        self.inserted += count

    def _magnitude(self) -> int:
        """What the magnitudes of all entries add up to: of each number in their states, the greatest."""
        _, states = self.forest.export(0)
        return max(exact_magnitude(leaf) for leaf in states) if len(self) else 0

    def _widen(self):
        """On the operator itself from now on."""
        ts, states = self.forest.export(0)
        leaves = self.wide.operator.narrow.widen(*states)
        forest = Forest(self.wide, 1, self.forest.shape.min_arity, self.forest.shape.fingers)
        forest.fill(0, ts, tuple(np.ascontiguousarray(leaf) for leaf in leaves))
        self.forest, self.op, self.wide = forest, self.wide, None
        self.out, self.ok = result_arrays(self.op, 1)

    def evict(self):
        self.forest.evict(0)

    def evict_at(self, t) -> bool:
        return self.forest.evict_at(0, t)

    def bulk_evict(self, t) -> int:
        return self.forest.bulk_evict(0, t)

    def compact(self):
        self.forest.compact()

    # ---- answers ---------------------------------------------------------------------------------------------------

    def query(self):
        self.forest.query(0, self.out, self.ok)
        return result_value(self.op, self.out, self.ok, 0)

    def query_range(self, t_from, t_to):
        """The result and whether there was any event."""
        if t_to < t_from or not self.forest.query_range(0, t_from, t_to, self.out, self.ok):
            return None, False
        return result_value(self.op, self.out, self.ok, 0), True

    def items(self):
        ts, states = self.forest.export(0)
        out, ok = result_arrays(self.op, len(ts))
        self.forest.steps.step_items(*self.forest.arrays, 0, states, out, ok, 0, len(ts))
        for j, t in enumerate(ts):
            yield t, result_value(self.op, out, ok, j)

    def oldest(self):
        return self.forest.ends(0)[0]

    def youngest(self):
        return self.forest.ends(0)[1]

    # ---- whole -----------------------------------------------------------------------------------------------------

    def check(self):
        _, states = self.forest.export(0)
        with compared_within(self.op, states_as_objects(self.op, states)):
            self.forest.check()
        if self.wide is not None:
            assert self._magnitude() <= self.bound < LIMIT, "narrow states only while every sum is sure to fit"

    def copy(self) -> "Tree":
        other = object.__new__(Tree)
        other.__dict__.update(self.__dict__)
        other.forest = object.__new__(Forest)
        other.forest.__dict__.update(self.forest.__dict__)
        other.forest.V = copy_states(self.op, self.forest.V)
        for words in ("A", "H", "N"):
            array = getattr(self.forest, words)
            setattr(other.forest, words, array.copy() if self.op.compiled else array[:])
        other.out, other.ok = result_arrays(self.op, 1)
        return other

    def dump(self) -> tuple[dict, dict[str, bytes]]:
        """What is stored: times and partials, in order; never the places of nodes."""
        ts, states = self.forest.export(0)
        description = {"count": len(ts), "min_arity": self.forest.shape.min_arity}
        times = raw(np.array(ts, np.int64)) if self.coded_times else encode(list(ts))
        return description, {"times": times} | store_states(self.op, states)

    @classmethod
    def load(cls, alg: Algorithm, op: TypedOperator, coded_times: bool, head: dict, sections: dict) -> "Tree":
        """Back from a snapshot: checked whole, then built by one bulk insert of partials."""
        count, arity = head.get("count"), head.get("min_arity")
        if not isinstance(count, int) or count < 0 or not isinstance(arity, int):
            raise StateError("stored state is damaged: its size makes no sense")
        if coded_times:
            ts: Any = numbers(sections, "times", np.int64, count)
            in_order = bool((ts[1:] > ts[:-1]).all())
            if not op.compiled:
                ts = ts.tolist()
        else:
            ts = decode(sections.get("times", b""))
            if not isinstance(ts, list) or len(ts) != count:
                raise StateError("stored state is damaged: times are missing")
            in_order = all(a < b for a, b in pairwise(ts))
        if not in_order:
            raise StateError("stored state is damaged: times are out of order")
        self = cls(alg, op, coded_times, arity, head["layout"])
        self.forest.fill(0, ts, read_states(self.op, sections, count))
        if self.wide is not None:
            self.bound = self._magnitude()
            if self.bound >= LIMIT:
                self._widen()
        return self
