"""Sums of int64 begin in one word and go over to two before they could wrap: the same results and errors, all the time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import slidewise as sw
from slidewise.algebra.narrow import LIMIT, exact_magnitude, fitting, largest, magnitude, narrowed
from slidewise.live import tree

MAX, MIN = 2**63 - 1, -(2**63)
TIMES = st.integers(0, 40)
SMALL = st.integers(-100, 100)
LARGE = st.sampled_from([MAX, MIN, MAX - 1, MIN + 1, 2**62, -(2**62), 2**62 - 1, 2**61, -(2**60), 2**32, 0])


def is_narrow(w: sw.Window) -> bool:
    return w._store.wide is not None


def wide_window(op=None, dtype=np.int64) -> sw.Window:
    """A window on the operator's own states from the beginning."""
    w = sw.Window(op or sw.sum(), dtype=dtype, time_dtype=np.int64)
    w._store._widen()
    return w


class Sums(RuleBasedStateMachine):
    """Any operations, with values that fit easily, only just, and not at all, against Python's integers."""

    @initialize(rare=st.booleans())
    def start(self, rare):
        self.window = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64, min_arity=2)
        self.entries: dict[int, int] = {}
        self.values = st.one_of(SMALL, SMALL, SMALL, SMALL, LARGE) if rare else st.one_of(SMALL, LARGE)
        self.ever = 0

    def add(self, t, v):
        self.entries[t] = self.entries.get(t, 0) + v
        self.ever += max(1, abs(v))

    @rule(t=TIMES, data=st.data())
    def insert(self, t, data):
        v = data.draw(self.values)
        self.window.insert(t, v)
        self.add(t, v)

    @rule(ts=st.lists(TIMES, max_size=12), data=st.data())
    def bulk_insert(self, ts, data):
        vs = [data.draw(self.values) for _ in ts]
        self.window.bulk_insert(np.array(ts, np.int64), np.array(vs, np.int64))
        for t, v in zip(ts, vs):
            self.add(t, v)

    @precondition(lambda self: self.entries)
    @rule()
    def evict(self):
        self.window.evict()
        del self.entries[min(self.entries)]

    @rule(t=TIMES)
    def evict_at(self, t):
        assert self.window.evict(t) == (self.entries.pop(t, None) is not None)

    @rule(t=TIMES)
    def bulk_evict(self, t):
        self.window.bulk_evict(t)
        self.entries = {time: v for time, v in self.entries.items() if time > t}

    @rule()
    def there_and_back(self):
        narrow, data = is_narrow(self.window), self.window.to_bytes()
        self.window = sw.Window.from_bytes(data, sw.sum())
        assert is_narrow(self.window) == narrow and self.window.to_bytes() == data

    @rule(data=st.data())
    def copy(self, data):
        """What becomes of a copy is no business of the original, and the other way round."""
        v, copy = data.draw(self.values), self.window.copy()
        for t in range(3):
            copy.insert(t, v)
        copy.check()
        whole = sum(self.entries.values()) + 3 * v
        self.same(copy.query, whole)

    @rule(first=TIMES, last=TIMES)
    def query_range(self, first, last):
        found = [v for t, v in self.entries.items() if first <= t <= last]
        self.same(lambda: self.window.query(first, last), sum(found) if found else None)

    def same(self, question, expected):
        if expected is None or MIN <= expected <= MAX:
            assert question() == expected
        else:
            with pytest.raises(sw.AggregateOverflowError):
                question()

    @invariant()
    def all_is_well(self):
        if not hasattr(self, "window"):
            return
        self.window.check()
        self.same(self.window.query, sum(self.entries.values()) if self.entries else None)
        if all(MIN <= v <= MAX for v in self.entries.values()):
            assert dict(self.window.items()) == self.entries
        if self.ever < LIMIT:
            assert is_narrow(self.window)


Sums.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestSums = Sums.TestCase


def test_small_numbers_take_one_word():
    w = sw.Window(sw.sum())
    w.insert(1, 5)
    assert is_narrow(w) and w._store.op.state.row_bytes == 8
    assert wide_window()._store.op.state.row_bytes == 16


@pytest.mark.parametrize("values", [[MIN], [MAX, 1], [2**62, 2**62], [-(2**62), -(2**62), -1], [MAX, MAX, -MAX]])
def test_sums_at_the_edge_are_right_or_an_error(values):
    singly, at_once, together = (sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64) for _ in range(3))
    for t, v in enumerate(values):
        singly.insert(t, v)
        together.insert(7, v)
    at_once.bulk_insert(np.arange(len(values)), np.array(values, np.int64))
    for w in (singly, at_once, together):
        w.check()
        assert not is_narrow(w)
        if MIN <= sum(values) <= MAX:
            assert w.query() == sum(values)
        else:
            with pytest.raises(sw.AggregateOverflowError):
                w.query()


def test_what_left_the_window_makes_room_again():
    """Only four values of 2^60 are ever there: counted again now and then, the bound holds for ever."""
    w = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64)
    for t in range(300):
        w.insert(t, 2**60)
        if t >= 4:
            w.evict()
        assert w.query() == 2**60 * min(t + 1, 4)
        w.check()
    assert is_narrow(w)


def test_counting_again_is_paid_for(monkeypatch):
    """A large value that comes and goes beside many small ones: the entries are not counted over and over."""
    w = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64)
    n, looked_at = 4000, 0

    def counted(column):
        nonlocal looked_at
        looked_at += len(column)
        return exact_magnitude(column)

    monkeypatch.setattr(tree, "exact_magnitude", counted)
    w.bulk_insert(np.arange(n), np.ones(n, np.int64))
    for j in range(500):
        w.insert(n + j, 2**62 - 1)
        assert w.query() == n + 2**62 - 1
        assert w.evict(n + j)
    assert looked_at <= n + 4 * 500
    w.check()


def test_a_bulk_with_one_large_number_is_counted_exactly():
    w = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64)
    values = np.ones(1000, np.int64)
    values[500] = 2**60
    w.bulk_insert(np.arange(1000), values)
    assert is_narrow(w) and w.query() == 999 + 2**60
    w.check()


def test_means_of_unsigned_numbers():
    w, top = sw.Window(sw.mean(), dtype=np.uint64, time_dtype=np.int64), 2**64 - 1
    for t, v in enumerate([1, 2, 6]):
        w.insert(t, v)
    assert is_narrow(w) and w._store.op.state.row_bytes == 16 and w.query() == 3.0
    w.insert(2, top)
    assert not is_narrow(w) and w.query() == (9 + top) / 4
    w.check()
    assert sw.Window.from_bytes(w.to_bytes(), sw.mean()).query() == (9 + top) / 4


def test_bytes_of_either_width_load():
    narrow, wide = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64), wide_window()
    for w in (narrow, wide):
        w.bulk_insert(np.arange(100), np.arange(100))
        back = sw.Window.from_bytes(w.to_bytes(), sw.sum())
        assert is_narrow(back) == is_narrow(w) and back.query() == 4950 and back.to_bytes() == w.to_bytes()
    assert len(narrow.to_bytes()) < len(wide.to_bytes())


def test_narrow_partials_that_do_not_fit_are_taken_wide():
    """No sound window stores them; whoever does, gets no wrapped sum."""
    w = sw.Window(sw.sum(), dtype=np.int64, time_dtype=np.int64)
    w._store.bound = -(2**70)
    w.bulk_insert(np.arange(3), np.full(3, 2**62))
    assert is_narrow(w)
    with pytest.raises(AssertionError, match="sure to fit"):
        w.check()
    back = sw.Window.from_bytes(w.to_bytes(), sw.sum())
    assert not is_narrow(back)
    back.check()
    with pytest.raises(sw.AggregateOverflowError):
        back.query()


def test_an_in_order_algorithm_does_not_take_narrow_partials():
    """It could not make wide ones of them."""
    w = sw.Window(sw.sum(), "daba_lite", dtype=np.int64, time_dtype=np.int64)
    w.insert(1, MAX)
    w.insert(2, 1)
    with pytest.raises(sw.AggregateOverflowError):
        w.query()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_magnitudes(dtype):
    ends = np.iinfo(dtype)
    column = np.array([0, 1, ends.max, ends.min, 5], dtype)
    assert exact_magnitude(column) == sum(max(1, abs(int(v))) for v in column)
    assert largest(column) == max(abs(ends.min), ends.max)
    assert magnitude(column, 1) == exact_magnitude(column) <= magnitude(column, 2**70)
    assert largest(column[:0]) == 1 and exact_magnitude(column[:0]) == magnitude(column[:0], 1) == 0


def test_the_form_that_fits_columns_at_hand():
    op = sw.sum().typed((np.dtype(np.int64),))
    narrow = narrowed(op)
    assert fitting(op, (np.full(8, 2**60 - 1),)) is narrow
    assert fitting(op, (np.full(8, 2**60),)) is op
    assert fitting(op, (np.full(8, -(2**60)),), entries=7) is narrow
    assert fitting(op, (np.array([MIN]),)) is op
    floats = sw.sum().typed((np.dtype(np.float64),))
    assert narrowed(floats) is None and fitting(floats, (np.ones(3),)) is floats


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_what_is_counted_again_of_a_mean_is_its_total_not_its_number(dtype):
    w = sw.Window(sw.mean(), dtype=dtype, time_dtype=np.int64)
    for t in range(6):
        w.insert(t, 2**61)
        assert w.query() == 2.0**61
    w.check()
