"""struct: several operators as one, compiled and interpreted."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.support import compiled_results

import slidewise as sw
from slidewise.algebra.codec import decode, encode

FLOAT, INT = np.dtype(np.float64), np.dtype(np.int64)
BASIC = sw.struct(low=sw.min(), high=sw.max(), n=sw.count(), total=sw.sum())


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=10))
def test_struct_equals_its_members(xs):
    expected = (min(xs), max(xs), len(xs), sum(xs))
    assert BASIC.fold(xs) == expected
    assert BASIC.fold(xs)._fields == ("low", "high", "n", "total")


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_struct_compiles(xs, random):
    for found in compiled_results(BASIC, (INT,), [(x,) for x in xs], lambda count: random.randrange(count)):
        assert found == (min(xs), max(xs), len(xs), sum(xs))


def test_struct_declares_what_all_members_declare():
    assert sw.struct(a=sw.sum(), b=sw.count()).resolved((INT,)).invertible
    assert not sw.struct(a=sw.sum(), b=sw.count()).resolved((FLOAT,)).invertible
    assert BASIC.commutative
    assert not sw.struct(a=sw.sum(), b=sw.first()).commutative
    assert not sw.struct(a=sw.min(), b=sw.max()).selective
    assert BASIC.typed((INT,)).kind == "struct"
    for op in (BASIC, sw.struct(a=sw.sum(), b=sw.count()), sw.struct(a=sw.collect(), b=sw.quantile(q=0.5))):
        sw.check_laws(op)


def test_struct_of_structs():
    nested = sw.struct(range=sw.struct(low=sw.min(), high=sw.max()), mean=sw.mean())
    assert nested.fold([1.0, 3.0]) == ((1.0, 3.0), 2.0)
    assert nested.typed((FLOAT,)).compiled


def test_each_member_has_its_own_empty_value():
    inner = sw.struct(all=sw.collect(), mean=sw.mean())
    op = sw.struct(n=sw.count(), low=sw.min(), bins=sw.histogram(edges=[0, 5, 9]), inner=inner)
    w = sw.Window(op)
    w.insert(1, 7)
    w.evict()
    for found in (op.fold([]), w.query(), sw.Window(op).query()):
        assert found[:2] == (0, None)
        assert isinstance(found.bins, np.ndarray) and found.bins.tolist() == [0, 0]
        assert found.inner == ([], None)
        found.bins[0] = 9
        found.inner.all.append(1)
    assert w.query().bins.tolist() == [0, 0], "what was handed out is the caller's own"
    assert isinstance(sw.Window(sw.histogram(edges=[0, 1])).query(), np.ndarray)
    compiled = sw.Window(BASIC, "daba", dtype="int64", time_dtype="int64")
    assert compiled.compiled and compiled.query() == (None, None, 0, None)


def test_a_struct_bound_by_a_call_is_one_of_bound_members():
    """A row with a null in one of the columns counts for none, and members without values give what they give alone."""
    op = sw.struct(n=sw.count(), peak=sw.struct(at=sw.argmax(), rows=sw.count()))
    data = pa.table({"t": [1, 2, 9, 10], "x": [5, None, 7, 1], "y": ["a", "b", None, "d"], "good": [True, True, True, False]})
    out = sw.rolling(data, time="t", windows={"w": 5}, aggs={"s": op("x", "y", where="good")})
    assert out["s_w"].to_pylist() == [
        {"n": 1, "peak": {"at": "a", "rows": 1}},
        {"n": 1, "peak": {"at": "a", "rows": 1}},
        {"n": 0, "peak": {"at": None, "rows": 0}},
        {"n": 0, "peak": {"at": None, "rows": 0}},
    ]
    assert op.fold([5, None, 7], ["a", "b", None]) == (1, ("a", 1))
    live = sw.Live(time="t", windows={"w": 5}, aggs={"s": op("x", "y")})
    live.push(data.select(["t", "x", "y"]))
    assert live.query()["s_w"] == {"n": 1, "peak": {"at": "d", "rows": 1}}
    again = pickle.loads(pickle.dumps(op("x", "y")))
    assert list(again.leaves("s")) == ["s.n", "s.peak.at", "s.peak.rows"]
    assert again.leaves("s")["s.n"].operator.inputs == 2


def test_struct_with_objects_runs_interpreted():
    mixed = sw.struct(all=sw.collect(), std=sw.std(), bins=sw.histogram(edges=[0, 5, 10]))
    assert not mixed.typed((INT,)).compiled
    found = mixed.fold([1, 7])
    assert found.all == [1, 7]
    assert found.bins.tolist() == [1, 1]
    assert mixed.fold([1]).std is None, "a member without a result is null"
    resolved = mixed.resolved((INT,))
    state = resolved.combine(resolved.lift(1), resolved.lift(7))
    back = resolved.decode(decode(encode(resolved.encode(state))))
    assert resolved.lower(back).all == [1, 7]
    assert resolved.lower(back).std == resolved.lower(state).std


def test_struct_of_two_inputs():
    both = sw.struct(slope=sw.slope(), at=sw.argmax(), n=sw.count())
    assert both.inputs == 2
    assert both.fold([1, 2, 3], [2, 4, 6]) == (2.0, 6, 3)


def test_struct_of_user_operators():
    own = sw.operator(lift=lambda x: x * x, combine=lambda a, b: a + b, identity=0.0, name="squares")
    op = sw.struct(squares=own, n=sw.count())
    assert op.typed((FLOAT,)).compiled
    assert op.fold([1.0, 2.0]) == (5.0, 2)


def test_struct_travels():
    again = pickle.loads(pickle.dumps(BASIC))
    assert again.signature == BASIC.signature
    assert again.fold([3, 1]) == BASIC.fold([3, 1])


def test_bound_members_keep_their_columns():
    bound = sw.struct(total=sw.sum("x"), peak=sw.max("y", where="valid"), n=sw.count())
    assert bound.columns == ("x", "y")
    assert bound.needed == ("x", "y", "valid")
    assert list(bound.members) == ["total", "peak", "n"]
    assert not sw.struct(a=sw.sum("x"), b=sw.last("x")).operator.commutative


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "at least one operator"),
        ({"a": 3}, "a must be an operator"),
        ({"a": sw.sum("x"), "b": sw.max()}, "b is not"),
        ({"a": sw.sum(), "b": sw.slope()}, "different numbers: a 1, b 2"),
        ({"_a": sw.sum()}, "no leading underscore"),
    ],
)
def test_wrong_structs_are_refused(members, message):
    with pytest.raises(sw.SlidewiseError, match=message):
        sw.struct(**members)
