"""An in-order algorithm with its arrays: what `Window` keeps for events that come in the order of time.

Control path only: it allocates, grows, and calls the compiled steps of `algorithms.drivers` (or their twin). Times are
kept beside, in a buffer of their own, oldest first.
"""

from bisect import bisect_left, bisect_right
from contextlib import nullcontext
from typing import Any

import numpy as np

from slidewise.algebra.codec import decode, encode
from slidewise.algebra.kernel import twin
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithms, drivers
from slidewise.algorithms.checking import compared_within, structure_only
from slidewise.algorithms.protocol import SCRATCH, Algorithm
from slidewise.errors import OutOfOrderError, StateError, UnsupportedError
from slidewise.live.results import result_arrays, result_value
from slidewise.live.snapshot import numbers, raw
from slidewise.live.states import blank_states, copy_states, read_states, states_as_objects, store_states

SMALLEST = 8


class TimeBuffer:
    """Times of a window that only grows at one end and shrinks at the other."""

    def __init__(self, compiled: bool):
        self.compiled = compiled
        self.head = self.tail = 0
        self.items: Any = np.empty(SMALLEST, np.int64) if compiled else []

    def __len__(self):
        return self.tail - self.head

    def __getitem__(self, j):
        return self.items[self.head + j]

    def append(self, t):
        if not self.compiled:
            self.items.append(t)
        else:
            if self.tail == len(self.items):
                self.make_room(1)
            self.items[self.tail] = t
        self.tail += 1

    def extend(self, ts):
        if not self.compiled:
            self.items.extend(ts)
        else:
            self.make_room(len(ts))
            self.items[self.tail : self.tail + len(ts)] = ts
        self.tail += len(ts)

    def make_room(self, count: int):
        if self.tail + count > len(self.items):
            live = self.items[self.head : self.tail]
            items = np.empty(max(SMALLEST, 2 * (len(live) + count)), np.int64)
            items[: len(live)] = live
            self.items, self.tail, self.head = items, len(live), 0

    def drop(self, count: int):
        self.head += count
        if not self.compiled and self.head > 32 and 2 * self.head > len(self.items):
            del self.items[: self.head]
            self.tail -= self.head
            self.head = 0

    def remove(self, first: int, last: int):
        rest = list(self.live()[last:])
        self.tail = self.head + first
        if not self.compiled:
            del self.items[self.tail :]
        self.extend(rest)

    def live(self):
        return self.items[self.head : self.tail]

    def position(self, t, right: bool) -> int:
        """How many live times are before t (right: at or before t)."""
        if self.compiled:
            return int(np.searchsorted(self.live(), t, "right" if right else "left"))
        return (bisect_right if right else bisect_left)(self.items, t, self.head, self.tail) - self.head


class InOrder:
    """One in-order algorithm at work, with its times. Times are codes (live.times)."""

    def __init__(self, alg: Algorithm, op: TypedOperator, coded_times: bool):
        self.alg, self.op = alg, op
        self.times = TimeBuffer(coded_times)
        self.m = SMALLEST - 1
        self.H = self._words(alg.module.HEADER)
        self.W, self.V = self._arrays(SMALLEST)
        self._ready()

    @staticmethod
    def layouts(op: TypedOperator) -> list[str]:
        """How states of a compiled operator may be laid out: not narrow, for some algorithms keep no entries to widen."""
        return [op.state.description]

    def _ready(self):
        self.steps = drivers if self.op.compiled else twin(drivers)
        self.out, self.ok = result_arrays(self.op, 1)

    def _words(self, count: int):
        return np.zeros(count, np.int64) if self.op.compiled else [0] * count

    def _own_slots(self, capacity: int) -> int:
        return self.alg.module.RINGS * capacity + self.alg.module.EXTRAS

    def _arrays(self, capacity: int):
        return self._words(self.alg.module.WORDS * capacity), blank_states(self.op, self._own_slots(capacity) + SCRATCH)

    def _args(self):
        return self.alg, self.op, self.H, self.W, self.V, self.m

    @property
    def _scratch(self) -> int:
        return self._own_slots(self.m + 1)

    def __len__(self):
        return len(self.times)

    def _refuse(self, what: str) -> UnsupportedError:
        others = [i.name for i in algorithms() if what in i.offers] or ["fiba"]
        return untouched(
            UnsupportedError(
                f"{self.alg.name} does not offer {what}; {' and '.join(others)} do"
                if len(others) > 1
                else f"{self.alg.name} does not offer {what}; {others[0]} does"
            )
        )

    def _offers(self, what: str):
        if what not in self.alg.info.offers:
            raise self._refuse(what)

    # ---- changes ---------------------------------------------------------------------------------------------------

    def _resize(self, capacity: int):
        W, V = self._arrays(capacity)
        self.steps.step_move(*self._args(), W, V, capacity - 1)
        self.W, self.V, self.m = W, V, capacity - 1

    def insert(self, t, x: tuple):
        count = len(self.times)
        if count and t < self.times[count - 1]:
            raise _out_of_order(self.alg.name)
        while not self.steps.step_insert(*self._args(), self._scratch, x):
            self._resize(2 * (self.m + 1))
        self.times.append(t)

    def try_lifts(self, X: tuple, count: int):
        """Raise what `lift` raises for one of these rows, before anything is changed."""
        self.steps.step_lifts(self.op, self.V, self._scratch, X, 0, count)

    def bulk_insert(self, ts, X: tuple):
        """Times in order already."""
        count = len(self.times)
        if len(ts) == 0:
            return
        if count and ts[0] < self.times[count - 1]:
            raise _out_of_order(self.alg.name)
        capacity = self.m + 1
        while capacity < count + len(ts):
            capacity *= 2
        if capacity != self.m + 1:
            self._resize(capacity)
        self.steps.step_insert_many(*self._args(), self._scratch, X, 0, len(ts))
        self.times.extend(ts)

    def evict(self):
        self._drop(1)

    def _drop(self, count: int):
        if count > 1 and "bulk_evict" in self.alg.info.offers:
            self.steps.step_bulk_evict(*self._args(), count)
        else:
            self.steps.step_evict(*self._args(), count)
        self.times.drop(count)
        self._shrink()

    def _shrink(self):
        """Give back room where the algorithm says when (FlatFAT: the reactive aggregator's resizing)."""
        resized = getattr(self.alg.module, "resized", None)
        if resized is None:
            return
        capacity = self.m + 1
        while capacity > SMALLEST and (smaller := resized(capacity, len(self))) < capacity:
            capacity = smaller
        if capacity <= self.m:
            self._resize(capacity)

    def evict_at(self, t) -> bool:
        first, last = self.times.position(t, False), self.times.position(t, True)
        if first == last:
            return False
        if first > 0:
            if "evict_at" not in self.alg.info.offers:
                raise untouched(
                    UnsupportedError(f"{self.alg.name} evicts the oldest only; flatfat and fiba evict any time")
                )
            for _ in range(first, last):
                self.steps.step_evict_at(*self._args(), first)
            self.times.remove(first, last)
            self._shrink()
        else:
            self._drop(last)
        return True

    def bulk_evict(self, t) -> int:
        count = self.times.position(t, True)
        if count:
            self._drop(count)
        return count

    def compact(self):
        capacity = SMALLEST
        while capacity < len(self):
            capacity *= 2
        self._resize(capacity)

    # ---- answers ---------------------------------------------------------------------------------------------------

    def query(self):
        self.steps.step_query(*self._args(), self._scratch, self.out, self.ok)
        return result_value(self.op, self.out, self.ok, 0)

    def query_range(self, t_from, t_to):
        """The result and whether there was any event."""
        i, j = self.times.position(t_from, False), self.times.position(t_to, True) - 1
        youngest = j == len(self) - 1 and "query_youngest" in self.alg.info.offers
        if not youngest:
            self._offers("query_range")
        if i > j:
            return None, False
        if youngest:
            self.steps.step_query_youngest(*self._args(), self._scratch, j + 1 - i, self.out, self.ok)
        else:
            self.steps.step_query_range(*self._args(), self._scratch, i, j, self.out, self.ok)
        return result_value(self.op, self.out, self.ok, 0), True

    def items(self):
        self._offers("items")
        for j in range(len(self)):
            self.steps.step_entry(*self._args(), self._scratch, j, self.out, self.ok)
            yield self.times[j], result_value(self.op, self.out, self.ok, 0)

    def oldest(self):
        return self.times[0]

    def youngest(self):
        return self.times[len(self.times) - 1]

    # ---- whole -----------------------------------------------------------------------------------------------------

    def check(self):
        """Assert the algorithm's invariants, on the interpreted form of the arrays."""
        V = states_as_objects(self.op, self.V)
        H, W = [int(h) for h in self.H], [int(w) for w in self.W]
        with compared_within(self.op, V):
            self.alg.module.check(self.op.as_object(), H, W, V, self.m)
        live = list(self.times.live())
        assert live == sorted(live), "times are in order"
        assert self.alg.interpreted.size(self.alg.interpreted.load(self.op.as_object(), H, W, V, self.m)) == len(
            live
        ), "as many times as events"

    def copy(self) -> "InOrder":
        other = object.__new__(InOrder)
        other.__dict__.update(self.__dict__)
        other.H, other.W = self.H[:], self.W[:]
        if self.op.compiled:
            other.H, other.W = self.H.copy(), self.W.copy()
        other.V = copy_states(self.op, self.V)
        other.times = TimeBuffer(self.times.compiled)
        other.times.extend(self.times.live())
        other._ready()
        return other

    def dump(self) -> tuple[dict, dict[str, bytes]]:
        """What is stored: times, header, work space and partials, with identities where nothing lives."""
        tight = self.copy()
        tight.compact()
        description = {"count": len(self), "capacity": tight.m + 1}
        live = tight.times.live()
        sections = {
            "times": raw(np.array(live)) if tight.times.compiled else encode(list(live)),
            "header": raw(np.array(tight.H, np.int64)),
            "words": raw(np.array(tight.W, np.int64)),
        }
        return description, sections | store_states(self.op, tight.V)

    @classmethod
    def load(cls, alg: Algorithm, op: TypedOperator, coded_times: bool, head: dict, sections: dict) -> "InOrder":
        """Back from a snapshot. Everything is checked on plain Python values before compiled code sees it."""
        count, capacity = head.get("count"), head.get("capacity")
        if not isinstance(count, int) or not isinstance(capacity, int) or not 0 <= count <= capacity:
            raise StateError("stored state is damaged: its size makes no sense")
        if capacity < SMALLEST or capacity & (capacity - 1) or capacity > max(SMALLEST, 2 * count):
            raise StateError("stored state is damaged: its capacity makes no sense")
        self = object.__new__(cls)
        self.alg, self.op, self.m = alg, op, capacity - 1
        H = numbers(sections, "header", np.int64, alg.module.HEADER)
        W = numbers(sections, "words", np.int64, alg.module.WORDS * capacity)
        self.H, self.W = (H, W) if op.compiled else (H.tolist(), W.tolist())
        self.V = read_states(op, sections, self._own_slots(capacity) + SCRATCH)
        self.times = TimeBuffer(coded_times)
        if coded_times:
            self.times.extend(numbers(sections, "times", np.int64, count))
        else:
            ts = decode(sections.get("times", b""))
            if not isinstance(ts, list) or len(ts) != count:
                raise StateError("stored state is damaged: times are missing")
            self.times.extend(ts)
        self._ready()
        try:
            # How numbers are rounded is decided by the grouping: sound partials of an operator that nobody vouches for may
            # differ from what they are made of. The checksum speaks for them.
            with nullcontext() if op.operator.own and op.operator.exact else structure_only():
                self.check()
        except (AssertionError, IndexError, TypeError, ValueError, OverflowError, ArithmeticError) as error:
            raise StateError(f"stored state is damaged: {error}") from error
        return self


def _out_of_order(name: str) -> OutOfOrderError:
    return untouched(
        OutOfOrderError(f"{name} takes events in the order of time, this one is older than the youngest; fiba takes any")
    )


def untouched(error):
    """An error that is raised before anything was changed; an operator may raise the same kind in the middle of a change."""
    error.untouched = True
    return error
