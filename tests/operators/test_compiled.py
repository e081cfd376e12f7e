"""Compiled and interpreted code agree, however events are grouped: to the last bit where an operator is exact.

One small kernel an operator and type is compiled (support.run_program), no window algorithm. It is the largest part of what these
tests cost on a new machine, so an operator whose functions are the same for all numbers is compiled for one type.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.support import (
    COMBINE,
    DTYPES,
    EMIT,
    EVERY,
    INVERSE,
    LIFT,
    answer,
    close,
    compiled_results,
    events,
    fold,
    resolved,
    run_program,
    serving,
)

import slidewise as sw
from slidewise.algebra.laws import same

SAME_FUNCTIONS = {"geomean", "var", "std", "covariance", "correlation", "slope", "histogram", "any", "all", "count", "approx_count"}
AGAIN = {"count(x)", "std(ddof=0)", "nth_youngest(1)", "approx_distinct", "approx_count(small)"}
COMPILED = [
    (name, kind)
    for name, kind in serving()
    if not resolved(EVERY[name], kind).object_only
    and not (kind == "int" and (EVERY[name].name in SAME_FUNCTIONS or name in ("sum(exact)", "mean(exact)")))
    and not (name in AGAIN or (name == "bloom(item)" and kind == "float"))
]
NARROW = [
    *((name, dtype) for name in ("sum", "max") for dtype in ("uint64", "bool", "int8", "float32")),
    *((name, "uint64") for name in ("mean", "product", "nth_youngest", "approx_distinct(small)")),
    *((name, "bool") for name in ("mean", "first", "argmax")),
]


def plain(result):
    if isinstance(result, np.ndarray):
        return result.tolist()
    return tuple(result) if isinstance(result, tuple) else result


def interpreted(op, items):
    try:
        return plain(answer(op, items, fold(op, items)))
    except sw.AggregateOverflowError:
        return "overflow"


def compiled(op, dtypes, items, choices=lambda count: count - 1):
    try:
        return compiled_results(op, dtypes, items, choices)
    except sw.AggregateOverflowError:
        return ["overflow"]


@pytest.mark.parametrize(("name", "kind"), COMPILED)
@settings(max_examples=25)
@given(data=st.data())
def test_compiled_equals_interpreted(name, kind, data):
    generic = EVERY[name]
    op = resolved(generic, kind)
    items = data.draw(events(op, kind, min_size=1, max_size=8))
    expected = interpreted(op, items)
    random = data.draw(st.randoms(use_true_random=False))
    found = compiled(generic, (DTYPES[kind],) * op.inputs, items, lambda count: random.randrange(count))
    tolerance = close(op, items)
    if op.name in ("std", "correlation", "slope", "geomean") and expected is not None:
        tolerance = 1e-4 * max(1.0, abs(expected)) if math.isfinite(expected) else 0.0
        found = found[:1] if op.name in ("correlation", "slope") else found  # a division by nearly 0 shows every rounding
    for way, result in enumerate(found):
        assert same(result, expected, tolerance), (way, result, expected)


@pytest.mark.parametrize(
    ("name", "kind"), [pair for pair in COMPILED if isinstance(resolved(EVERY[pair[0]], pair[1]).identity, np.ndarray)]
)
def test_compiled_partials_are_left_alone(name, kind):
    """By their bytes: what is combined, taken away or lowered stays as it was, unless it is asked to be written over. (Of numbers
    and tuples of them, compiled functions get copies.)"""
    generic = EVERY[name]
    dtypes = (DTYPES[kind],) * generic.inputs
    typed = generic.typed(dtypes)
    V, OUT, OK = typed.state.alloc(5), typed.result.alloc(1), np.zeros(1, np.uint8)
    X = tuple(np.array([3, 5, 4], dtype) for dtype in dtypes)
    run_program(typed, X, V, np.array([LIFT, 0, 0, 0, LIFT, 1, 0, 1, COMBINE, 0, 1, 2, LIFT, 2, 0, 3]), OUT, OK)
    before = [leaf.reshape(5, -1)[:4].tobytes() for leaf in V]
    steps = [COMBINE, 2, 3, 4, COMBINE, 0, 2, 4, EMIT, 2, 0, 0, EMIT, 0, 0, 0]
    run_program(typed, X, V, np.array(steps + [INVERSE, 2, 0, 4] * typed.operator.invertible), OUT, OK)
    assert [leaf.reshape(5, -1)[:4].tobytes() for leaf in V] == before


@pytest.mark.parametrize(("name", "dtype"), NARROW)
def test_other_types(name, dtype):
    generic = EVERY[name]
    kind = np.dtype(dtype)
    if kind.kind == "b":
        column = [True, False, True, True]
    elif kind.kind == "f":
        column = [1.5, -2.25, 0.5, 3.0]
    else:
        column = [3, 1, 7, 2] if kind.kind == "u" else [3, -1, 7, -128]
    items = [(v,) * generic.inputs for v in np.array(column, kind)]
    op = generic.resolved((kind,) * generic.inputs)
    expected = interpreted(op, items)
    assert type(expected) in (int, float, bool)
    for result in compiled(generic, (kind,) * generic.inputs, items):
        assert result == expected


def test_nothing_of_a_slots_past_is_stored():
    """A wide state written into a used slot is the same bytes as a fresh one, also where it holds no value yet."""
    typed = sw.nth_youngest(n=4).typed((DTYPES["float"],))
    V, OUT, OK = typed.state.alloc(3), typed.result.alloc(2), np.zeros(2, np.uint8)
    V[0][:] = 77.0
    steps = [LIFT, 0, 0, 0, LIFT, 1, 0, 1, COMBINE, 0, 1, 2]
    run_program(typed, (np.array([5.0, 6.0]),), V, np.array(steps), OUT, OK)
    assert V[0][10:].tobytes() == fold(typed.operator, [(5.0,), (6.0,)]).tobytes()


def test_unsigned_numbers_keep_their_range():
    large = np.array([2**64 - 1, 2**63, 5], np.uint64)
    for op, expected in ((sw.min(), 5), (sw.spread(), 2**64 - 6), (sw.bit_and(), 0), (sw.argmax(), 2**64 - 1)):
        items = [(v,) * op.inputs for v in large]
        assert interpreted(op.resolved((large.dtype,) * op.inputs), items) == expected
        assert compiled(op, (large.dtype,) * op.inputs, items)[1] == expected


def test_a_user_function_that_numba_cannot_compile_runs_interpreted_and_says_why():
    longest = sw.operator(
        lift=lambda x: str(x), combine=lambda a, b: a if len(a) >= len(b) else b, identity="", name="longest"
    )
    with pytest.warns(UserWarning, match="operator 'longest' runs interpreted: .*identity"):
        typed = longest.typed((np.dtype(np.int64),))
    assert not typed.compiled
    assert typed.kind == "object"
    assert "identity" in typed.reason
    assert longest.fold([1, 333, 22]) == "333"


def test_compiled_says_which():
    double = sw.operator(lift=lambda x: 2 * x, combine=lambda a, b: a + b, identity=0.0, name="double")
    assert double.compiled
    assert sw.max().compiled
    assert not sw.collect().compiled
