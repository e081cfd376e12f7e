"""Every declared law of every operator, on integers, floats (NaN and infinities where the operator is exact) and strings.

Interpreted here; test_compiled.py shows that compiled code gives the same. What a law must not be declared for is shown too.
"""

import contextlib
import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.support import EVERY, answer, close, events, fold, resolved, serving

import slidewise as sw
from slidewise.algebra.laws import same

FEW = settings(max_examples=40)
OBJECTS = [
    (name, "object")
    for name in ("min", "max", "argmin", "argmax", "first", "last", "nth_youngest", "m4", "min_count", "max_count", "count(x)",
                 "collect", "collect_distinct", "concat", "top_k", "approx_distinct(small)", "approx_count(small)", "bloom",
                 "naive_bayes")
]


def equal(op, a, b, tolerance):
    return op.equal(a, b) if op.equal is not None else same(a, b, tolerance)


def frozen(op, state):
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return repr(op.encode(state)) if op.encode is not None else repr(copy.deepcopy(state))


@pytest.mark.parametrize(("name", "kind"), serving() + OBJECTS)
@FEW
@given(data=st.data())
def test_laws(name, kind, data):
    op = resolved(EVERY[name], kind)
    parts = [data.draw(events(op, kind, max_size=3)) for _ in range(3)]
    x, y, z = (fold(op, part) for part in parts)
    before = [frozen(op, s) for s in (x, y, z)]
    tolerance = close(op, [event for part in parts for event in part])

    assert equal(op, op.combine(op.combine(x, y), z), op.combine(x, op.combine(y, z)), tolerance), "associative"
    for s in (x, y, z):
        assert equal(op, op.combine(op.identity, s), s, 0.0), "identity on the left"
        assert equal(op, op.combine(s, op.identity), s, 0.0), "identity on the right"
    if op.commutative:
        assert equal(op, op.combine(x, y), op.combine(y, x), tolerance), "commutative"
    if op.selective:
        both = op.combine(x, y)
        assert equal(op, both, x, 0.0) or equal(op, both, y, 0.0), "selective"
    if op.inverse is not None:
        assert equal(op, op.inverse(op.combine(x, y), x), y, 0.0), "inverse"
        assert equal(op, op.inverse(op.combine(op.combine(x, y), z), op.combine(x, y)), z, 0.0), "inverse of two"
    with contextlib.suppress(sw.AggregateOverflowError):
        answer(op, parts[0] + parts[1], op.combine(x, y))
    assert [frozen(op, s) for s in (x, y, z)] == before, "combine, inverse and lower leave their arguments alone"


@pytest.mark.parametrize("name", sorted(EVERY))
def test_check_laws_agrees(name):
    op = EVERY[name]
    report = sw.check_laws(op)
    assert {"associative", "identity", "untouched"} <= set(report.laws)
    assert report.trials > 100


@pytest.mark.parametrize(
    ("name", "kind", "law"),
    [
        ("sum", "float", "inverse"),
        ("mean", "float", "inverse"),
        ("var", "float", "inverse"),
        ("max", "int", "inverse"),
        ("product", "int", "inverse"),
        ("first", "int", "commutative"),
        ("argmax", "int", "commutative"),
        ("collect", "int", "commutative"),
        ("min_count", "int", "selective"),
        ("spread", "int", "selective"),
        ("m4", "float", "commutative"),
    ],
)
def test_laws_that_do_not_hold_are_not_declared(name, kind, law):
    assert not getattr(resolved(EVERY[name], kind), law)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("count", "int"), ("sum", "int"), ("mean", "int"), ("sum(exact)", "float"), ("mean(exact)", "float"),
     ("bit_xor", "int"), ("histogram", "float"), ("approx_count", "float"), ("naive_bayes", "float")],
)
def test_what_is_exactly_invertible_says_so(name, kind):
    assert resolved(EVERY[name], kind).invertible


@pytest.mark.parametrize("name", sorted(EVERY))
def test_what_nothing_gives(name):
    """Counts 0, collections empty, everything else null."""
    op = EVERY[name]
    nothing = {
        "count": 0, "min_count": 0, "max_count": 0, "approx_count": 0, "approx_distinct": 0,
        "collect": [], "collect_distinct": [], "top_k": [], "naive_bayes": [], "histogram": [0, 0],
    }  # fmt: skip
    expected = nothing.get(op.name)
    if op.name == "bloom":
        expected = False if "item" in name else 0
    if name in ("naive_bayes(given)", "approx_distinct(sketch)"):
        expected = None
    found = op.fold(*[[]] * op.inputs)
    assert (found.tolist() if isinstance(found, np.ndarray) else found) == expected
    assert op.fold(*[[None, None]] * op.inputs) == found if op.inputs and op.name != "histogram" else True
