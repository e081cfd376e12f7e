"""Integer overflow is an error when a result is asked for: never a wrap, and never in the middle of an update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.support import compiled_results

import slidewise as sw

INT, UINT = np.dtype(np.int64), np.dtype(np.uint64)
MAX, MIN = 2**63 - 1, -(2**63)
whole = st.integers(MIN, MAX) | st.sampled_from([MAX, MIN, MAX - 1, 0, 1, -1, 2**32, -(2**32), 2**31, 2**62])


def first(count):
    return 0


@given(st.lists(whole, min_size=1, max_size=12))
def test_sum_is_right_or_an_error(xs):
    """Also where a partial sum leaves int64 and the whole does not."""
    exact = sum(xs)
    items = [(x,) for x in xs]
    if MIN <= exact <= MAX:
        assert sw.sum().fold(xs) == exact
        assert set(compiled_results(sw.sum(), (INT,), items, first)) == {exact}
    else:
        with pytest.raises(sw.AggregateOverflowError, match="cast the column to float64"):
            sw.sum().fold(xs)
        with pytest.raises(OverflowError):
            compiled_results(sw.sum(), (INT,), items, first)
    assert sw.mean().fold(xs) == pytest.approx(exact / len(xs), rel=1e-15, abs=1e-300)
    for found in compiled_results(sw.mean(), (INT,), items, first):
        assert found == sw.mean().fold(xs)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6))
def test_sum_of_unsigned_numbers(xs):
    column = [(np.uint64(x),) for x in xs]
    if sum(xs) <= MAX:
        assert set(compiled_results(sw.sum(), (UINT,), column, first)) == {sum(xs)}
    else:
        with pytest.raises(sw.AggregateOverflowError):
            compiled_results(sw.sum(), (UINT,), column, first)


@given(st.lists(st.sampled_from([0, 1, -1, 2, -2, 3, 2**31, -(2**32), 2**62, MAX, -MAX]), min_size=1, max_size=8))
def test_product_is_right_or_an_error_in_every_grouping(xs):
    """A 0 anywhere makes the product 0, however large the rest is."""
    exact = 1
    for x in xs:
        exact *= x
    items = [(x,) for x in xs]
    for choices in (first, lambda count: count - 1):
        if abs(exact) <= MAX:
            assert set(compiled_results(sw.product(), (INT,), items, choices)) == {exact}
        else:
            with pytest.raises(sw.AggregateOverflowError):
                compiled_results(sw.product(), (INT,), items, choices)


def test_combine_never_raises():
    for op in (sw.sum(), sw.product(), sw.mean(), sw.spread()):
        resolved = op.resolved((INT,))
        state = resolved.lift(MAX)
        for _ in range(40):
            state = resolved.combine(state, state)


def test_an_overflow_leaves_no_trace():
    op = sw.sum().resolved((INT,))
    large, small = op.lift(MAX), op.lift(5)
    total = op.combine(op.combine(large, large), small)
    with pytest.raises(sw.AggregateOverflowError):
        op.lower(total)
    assert op.lower(op.inverse(op.inverse(total, large), large)) == 5


def test_spread_beyond_int64():
    with pytest.raises(sw.AggregateOverflowError):
        sw.spread().fold([MIN, MAX])
    with pytest.raises(sw.AggregateOverflowError):
        compiled_results(sw.spread(), (INT,), [(MIN,), (1,)], first)
    assert sw.spread().fold([MIN, -1]) == MAX
