"""struct and product: several operators as one, compiled and interpreted."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operators.support import compiled_results

import slidewise as sw
from slidewise.algebra.codec import decode, encode
from slidewise.algebra.product import Answer, product

FLOAT, INT, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)
BASIC = sw.struct(low=sw.min(), high=sw.max(), n=sw.count(), total=sw.sum())
ops = (sw.sum(), sw.argmax(), sw.count(), sw.std())
PRODUCT = product(ops, [(0,), (1, 0), (), (1,)], 2)


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
    assert bound.operator.inputs == 5


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


rows = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-50, 50), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    min_size=1,
    max_size=8,
)


def expected_answers(items):
    def chosen(k):
        return [item for item in items if item[2 + k]]

    pairs = chosen(1)
    deviations = [y for _, y, *_ in chosen(3)]
    return (
        (bool(chosen(0)), sum(x for x, *_ in chosen(0)) if chosen(0) else None),
        (bool(pairs), max(pairs, key=lambda item: item[1])[0] if pairs else None),
        (True, len(chosen(2))),
        (len(deviations) > 1, sw.std().fold(deviations) if len(deviations) > 1 else None),
    )


@given(rows)
def test_product_skips_rows_member_by_member(items):
    state = None
    op = PRODUCT.resolved((INT, INT, *[BOOL] * 4))
    for item in items:
        lifted = op.lift(*item)
        state = lifted if state is None else op.combine(state, lifted)
    for answer, (ok, value) in zip(op.lower(state), expected_answers(items), strict=True):
        assert answer.ok == ok
        assert answer.value == (pytest.approx(value) if isinstance(value, float) else value)
    assert op.lower(op.identity)[2] == Answer(True, 0)


@given(rows, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_product_compiles(items, random):
    dtypes = (INT, INT, *[BOOL] * 4)
    for found in compiled_results(PRODUCT, dtypes, items, lambda count: random.randrange(count)):
        for k, (ok, value) in enumerate(expected_answers(items)):
            assert found[2 * k] == ok
            if ok:
                assert found[2 * k + 1] == (pytest.approx(value, abs=1e-9) if isinstance(value, float) else value)


def test_product_never_lifts_what_does_not_count():
    inverse_of = sw.operator(lift=lambda x: 1.0 / x, combine=lambda a, b: a + b, identity=0.0, name="inverse")
    op = product([inverse_of, sw.count()], [(0,), ()], 1)
    typed = op.typed((FLOAT, BOOL, BOOL))
    assert typed.compiled, typed.reason
    assert compiled_results(op, (FLOAT, BOOL, BOOL), [(0.0, False, True), (4.0, True, True)], lambda count: 0)[0] == (
        1, 0.25, 1, 2,
    )  # fmt: skip


def test_product_is_invertible_where_all_members_are():
    op = product([sw.sum(), sw.count()], [(0,), ()], 1)
    dtypes = (INT, BOOL, BOOL)
    assert op.resolved(dtypes).invertible
    assert not PRODUCT.resolved((INT, INT, *[BOOL] * 4)).invertible
    items = [(5, True, True), (7, False, True), (9, True, False)]
    for found in compiled_results(op, dtypes, items, lambda count: 0):
        assert found == (1, 14, 1, 2)
    sw.check_laws(op.resolved(dtypes), samples=items)


def test_product_with_object_members_runs_interpreted():
    op = product([sw.collect(), sw.max()], [(0,), (0,)], 1)
    typed = op.typed((INT, BOOL, BOOL))
    assert not typed.compiled
    resolved = typed.operator
    state = resolved.combine(resolved.lift(3, True, False), resolved.lift(4, True, True))
    assert resolved.lower(state) == (Answer(True, [3, 4]), Answer(True, 4))
    assert resolved.lower(resolved.decode(decode(encode(resolved.encode(state))))) == resolved.lower(state)
    sw.check_laws(resolved, samples=[(1, True, True), (2, False, True), (3, True, False)])


def test_product_checks_its_places():
    with pytest.raises(sw.InputError, match="reads 1 of 2 columns"):
        product([sw.max()], [(2,)], 2)
