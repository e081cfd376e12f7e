"""Values that an operator cannot take: one of our errors that is also a TypeError, naming the operator, the value and a way out."""

from datetime import datetime, time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import slidewise as sw

ARITHMETIC = {
    "sum": sw.sum(),
    "sum exact": sw.sum(exact=True),
    "mean": sw.mean(),
    "mean exact": sw.mean(exact=True),
    "product": sw.product(),
    "geomean": sw.geomean(),
    "var": sw.var(),
    "std": sw.std(),
    "spread": sw.spread(),
    "covariance": sw.covariance(),
    "correlation": sw.correlation(),
    "slope": sw.slope(),
    "histogram": sw.histogram(edges=[0, 1, 2]),
    "quantile": sw.quantile(q=0.5),
    "median": sw.median(),
    "any": sw.any(),
    "all": sw.all(),
    "bit_and": sw.bit_and(),
    "bit_or": sw.bit_or(),
    "bit_xor": sw.bit_xor(),
}
REAL = ("sum exact", "mean exact", "geomean", "var", "std", "covariance", "correlation", "slope", "histogram", "quantile")
"""Those that turn every value into a float64; the others add or compare whatever can be."""


def event(op, value):
    return value if op.inputs == 1 else (value, 1.0)


def refused(op, value, kind=sw.InputTypeError):
    """By a window that begins with it, by one that has begun, by a fold: never changed by it."""
    for before in ([], [event(op, 1)]):
        w = sw.Window(op, "fiba", dtype=object)
        for t, v in enumerate(before):
            w.insert(t, v)
        with pytest.raises(kind) as raised:
            w.insert(9, event(op, value))
        assert op.name in str(raised.value)
        with pytest.raises(kind):
            w.bulk_insert([9, 10], [event(op, 1), event(op, value)])
        assert len(w) == len(before)
        w.insert(10, event(op, 1))
    with pytest.raises(kind):
        op.fold(*([value],) * op.inputs)
    return str(raised.value)


@pytest.mark.parametrize("name", sorted(ARITHMETIC))
@pytest.mark.parametrize("text", ["1.5", "abc", b"1", bytearray(b"1"), np.str_("2")], ids=repr)
def test_text_is_no_number(name, text):
    message = refused(ARITHMETIC[name], text)
    assert repr(text) in message
    assert "numbers" in message


@pytest.mark.parametrize("name", sorted(ARITHMETIC))
@pytest.mark.parametrize("value", [[1, 2], (1, 2), {1: 2}, {1}, np.array(["a"])], ids=repr)
def test_a_collection_is_no_number(name, value):
    message = refused(ARITHMETIC[name], value)
    assert repr(value) in message
    assert "numbers" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("any", np.array([1, 2])), ("all", np.array([1, 2])), ("product", object()), ("spread", time(1)), ("mean", object())],
)
def test_what_a_value_cannot_do_is_told(name, value):
    with pytest.raises(sw.InputTypeError, match="cannot be"):
        ARITHMETIC[name].fold([value] * (1 if name == "mean" else 2))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("value", [1j, np.complex128(1), datetime(2026, 1, 1), [1.0], np.array([1.0]), object], ids=repr)
def test_neither_is_anything_else_that_is_none(name, value):
    assert "takes numbers" in refused(ARITHMETIC[name], value)


@pytest.mark.parametrize("name", REAL)
def test_a_number_beyond_float64_is_refused(name):
    refused(ARITHMETIC[name], 10**400, sw.InputError)


@pytest.mark.parametrize("name", REAL)
def test_numbers_of_every_sort_are_taken(name):
    op = ARITHMETIC[name]
    values = [1, 2.5, True, Decimal("0.5"), Fraction(1, 4), np.float32(1.5), np.int8(3), np.True_, 2**70]
    floats = [float(v) for v in values]
    second = [float(v) ** 0.5 for v in values]
    columns = (values,) if op.inputs == 1 else (values, second)
    wanted = op.fold(*((floats,) if op.inputs == 1 else (floats, second)))
    assert np.allclose(op.fold(*columns), wanted, rtol=1e-12)
    w = sw.Window(op, "two_stacks_lite", dtype=object)
    for t, row in enumerate(zip(*columns, strict=True)):
        w.insert(t, row if op.inputs == 2 else row[0])
    assert np.allclose(w.query(), wanted, rtol=1e-12)
