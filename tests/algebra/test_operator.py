"""What `sw.operator` makes of the functions it is given."""

from decimal import Decimal
from functools import partial

import numpy as np
import pytest

import slidewise as sw


def added(lift, identity, **others):
    return sw.operator(**{"lift": lift, "combine": lambda a, b: a + b, "identity": identity, "name": "added"} | others)


@pytest.mark.parametrize(
    ("lift", "identity", "result"),
    [
        (float, 0.0, 3.0),
        (Decimal, Decimal(0), Decimal(3)),
        (np.float64, 0.0, 3.0),
        (lambda x=0: x, 0, 3),
        (lambda x, k=3: k * x, 0, 9),
        (lambda x, *, k=3: k * x, 0, 9),
        (partial(lambda x, k: k * x, k=3), 0, 9),
        (np.square, 0, 5),
        (lambda x=0, y=0: x + y, 0, 3),
    ],
)
def test_a_value_goes_to_a_lift_whose_parameters_have_defaults(lift, identity, result):
    op = added(lift, identity)
    assert op.inputs == 1
    w = sw.Window(op, dtype=object)
    w.insert(0, 1)
    w.insert(1, 2)
    assert w.query() == result


def test_how_many_inputs_an_operator_has():
    assert added(lambda: 1, 0).inputs == added(lambda *, k=1: k, 0).inputs == 0
    assert added(lambda x, y, z=1: x, 0).inputs == added(np.maximum, 0).inputs == 2
    assert added(tuple, ()).inputs == added(int, 0).inputs == 1
    for lift in (lambda *xs: xs, lambda x, *, k: x, lambda x, **others: x):
        with pytest.raises(sw.InputTypeError, match="fixed number of positional arguments"):
            added(lift, 0)


@pytest.mark.parametrize("role", ["combine", "lower", "inverse", "equal"])
def test_a_function_that_cannot_be_called_is_refused_at_once(role):
    pair = role != "lower"
    for wrong in (
        lambda: 0,
        (lambda a: a) if pair else (lambda a, b: a),
        np.negative if pair else np.add,
        lambda a, b, c: a,
    ):
        with pytest.raises(sw.InputTypeError, match=f"{role} is called with {1 + pair} argument"):
            added(float, 0.0, **{role: wrong})
    for right in (max, lambda *states: states[0], np.add if pair else np.negative, lambda a, b=0, c=0: a):
        added(float, 0.0, **{role: right})
