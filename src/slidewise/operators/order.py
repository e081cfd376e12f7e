"""min, max, spread, min_count, max_count, argmin, argmax: what depends on the order of values.

NaN is above everything, +inf included: max is NaN if there is one, min only if there is nothing else. Of equal values
the first is kept. Everything works on Python objects with an order of their own (strings, Decimals, dates), interpreted.
There equal is not the same (1.0 and 1.00), and so what gives a value out does not commute.
"""

import operator
from functools import cache
from typing import Any, NamedTuple

from numba.extending import register_jitable

from slidewise.algebra.operator import Operator
from slidewise.errors import AggregateOverflowError, InputTypeError
from slidewise.operators.making import (
    CAST,
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    ZERO,
    kind_of,
    library,
    public,
    refuse_text,
    worked_out,
)

BOTTOM = {"bool": False, "small": INT64_MIN, "int": INT64_MIN, "uint": 0, "float": float("-inf"), "object": None}
TOP = {"bool": True, "small": INT64_MAX, "int": INT64_MAX, "uint": UINT64_MAX, "float": float("nan"), "object": None}
"""By kind of input: the least and the greatest value there is; the identities of max and min."""


@register_jitable
def _above(a, b):
    return a > b


@register_jitable
def _above_float(a, b):
    return b == b and not a <= b  # an unordered comparison is false: true for a NaN above a number


def _above_object(a, b):
    try:
        return bool(b == b and (a != a or a > b))
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{a!r} and {b!r} have no order: give values of one kind that can be compared") from error


ABOVE = {"float": _above_float, "object": _above_object}


def above_for(kind: str):
    """`above(a, b)`: whether a is greater than b, NaN being the greatest."""
    return ABOVE.get(kind, _above)


# ---- min, max --------------------------------------------------------------------------------------------------------


@cache
def _lift(kind: str):
    cast = CAST[kind]

    def lift(x):
        return cast(x)

    return lift


@cache
def chooser(kind: str, greatest: bool):
    """`choose(a, b)`: the greater (or the lesser) of two values, the first of equals."""
    above = above_for(kind)
    if kind == "object":
        if greatest:
            return lambda a, b: b if a is None else a if b is None else b if above(b, a) else a
        return lambda a, b: b if a is None else a if b is None else b if above(a, b) else a
    if greatest:
        return lambda a, b: b if above(b, a) else a
    return lambda a, b: b if above(a, b) else a


def _same(state):
    return state


def _extreme(name: str, greatest: bool) -> Operator:
    identities = BOTTOM if greatest else TOP

    def resolve(inputs):
        kind = kind_of(inputs[0])
        return generic.with_(
            lift=_lift(kind),
            combine=chooser(kind, greatest),
            identity=identities[kind],
            commutative=kind != "object",
            resolve=None,
        )

    generic = library(
        name,
        lift=_lift("object"),
        combine=chooser("object", greatest),
        lower=_same,
        identity=None,
        commutative=True,
        selective=True,
        result_like=0,
        resolve=resolve,
    )
    return generic


_MIN, _MAX = _extreme("min", False), _extreme("max", True)


@public("min", inputs="x")
def min_() -> Operator:
    """The least value. NaN is above everything: it is the minimum only of NaNs.

    >>> sw.min().fold([3, 1, 2])
    1
    >>> sw.min().fold(["pear", "apple"])
    'apple'
    """
    return _MIN


@public("max", inputs="x")
def max_() -> Operator:
    """The greatest value. NaN is above everything: one of them makes the maximum NaN.

    >>> sw.max().fold([3, 1, 2])
    3
    >>> sw.max().fold([1.0, float("nan"), 2.0])
    nan
    """
    return _MAX


# ---- spread ----------------------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    low: Any
    high: Any


def _lower_spread(s):
    return s.high - s.low


def _lower_spread_int(s):
    difference = s.high - s.low
    if difference < 0 or difference > INT64_MAX:  # compiled, it wraps
        raise AggregateOverflowError("the spread left the range of int64; cast the column to float64")
    return difference


def _lower_spread_object(s):
    return worked_out("spread", "subtracted", operator.sub, s.high, s.low)


def _no_text(x):
    return refuse_text(x, "spread")


@cache
def _spread_functions(kind: str):
    cast = _no_text if kind == "object" else CAST[kind]
    least, greatest = register_jitable(chooser(kind, False)), register_jitable(chooser(kind, True))

    def lift(x):
        y = cast(x)
        return Spread(y, y)

    def combine(a, b):
        return Spread(least(a.low, b.low), greatest(a.high, b.high))

    return lift, combine


def _resolve_spread(inputs):
    kind = "int" if kind_of(inputs[0]) == "bool" else kind_of(inputs[0])
    lift, combine = _spread_functions(kind)
    lower = _SPREAD.lower if kind == "object" else _lower_spread_int if kind in ("small", "int") else _lower_spread
    return _SPREAD.with_(
        lift=lift,
        combine=combine,
        lower=lower,
        identity=Spread(TOP[kind], BOTTOM[kind]),
        commutative=kind != "object",
        resolve=None,
    )


_SPREAD = library(
    "spread",
    lift=_spread_functions("object")[0],
    combine=_spread_functions("object")[1],
    lower=_lower_spread_object,
    identity=Spread(None, None),
    commutative=True,
    resolve=_resolve_spread,
)


@public("spread", inputs="x")
def spread_() -> Operator:
    """The greatest value minus the least. NaN if there is one; beyond int64 an `AggregateOverflowError`.

    >>> sw.spread().fold([3, 1, 7])
    6
    """
    return _SPREAD


# ---- min_count, max_count --------------------------------------------------------------------------------------------


class Extreme(NamedTuple):
    """The extreme value so far and how often it came."""

    value: Any
    n: int


@cache
def _count_functions(kind: str, greatest: bool):
    cast, above = CAST[kind], above_for(kind)

    def lift(x):
        return Extreme(cast(x), 1)

    def combine(a, b):
        if above(a.value, b.value):
            return a if greatest else b
        if above(b.value, a.value):
            return b if greatest else a
        return Extreme(a.value, a.n + b.n)

    def combine_object(a, b):
        return b if a.n == 0 else a if b.n == 0 else combine(a, b)

    return lift, combine_object if kind == "object" else combine


def _lower_count(s):
    return s.n


def _extreme_count(name: str, greatest: bool) -> Operator:
    identities = BOTTOM if greatest else TOP

    def resolve(inputs):
        kind = kind_of(inputs[0])
        lift, combine = _count_functions(kind, greatest)
        return generic.with_(lift=lift, combine=combine, identity=Extreme(identities[kind], 0), resolve=None)

    lift, combine = _count_functions("object", greatest)
    generic = library(
        name,
        lift=lift,
        combine=combine,
        lower=_lower_count,
        identity=Extreme(None, 0),
        commutative=True,
        empty=0,
        resolve=resolve,
    )
    return generic


_MIN_COUNT, _MAX_COUNT = _extreme_count("min_count", False), _extreme_count("max_count", True)


@public("min_count", inputs="x")
def min_count_() -> Operator:
    """How often the least value occurs. 0 for an empty window.

    >>> sw.min_count().fold([2, 1, 3, 1])
    2
    """
    return _MIN_COUNT


@public("max_count", inputs="x")
def max_count_() -> Operator:
    """How often the greatest value occurs. 0 for an empty window; NaNs count as equal.

    >>> sw.max_count().fold([2, 3, 1, 3, 3])
    3
    """
    return _MAX_COUNT


# ---- argmin, argmax --------------------------------------------------------------------------------------------------


class Arg(NamedTuple):
    """The extreme value so far, and what came with its first occurrence."""

    has: bool
    value: Any
    payload: Any


@cache
def _arg_functions(kind: str, payload_kind: str, greatest: bool):
    cast, cast_payload, above = CAST[kind], CAST[payload_kind], above_for(kind)

    def lift(x, y):
        return Arg(True, cast(x), cast_payload(y))

    def combine_max(a, b):
        if not a.has or (b.has and above(b.value, a.value)):
            return b
        return a

    def combine_min(a, b):
        if not a.has or (b.has and above(a.value, b.value)):
            return b
        return a

    return lift, combine_max if greatest else combine_min


def _lower_arg(s):
    return s.payload


def _arg(name: str, greatest: bool) -> Operator:
    def resolve(inputs):
        kind, payload_kind = kind_of(inputs[0]), kind_of(inputs[1])
        lift, combine = _arg_functions(kind, payload_kind, greatest)
        identity = Arg(False, ZERO[kind], ZERO[payload_kind])
        return generic.with_(lift=lift, combine=combine, identity=identity, resolve=None)

    lift, combine = _arg_functions("object", "object", greatest)
    generic = library(
        name,
        lift=lift,
        combine=combine,
        lower=_lower_arg,
        identity=Arg(False, None, None),
        selective=True,
        result_like=1,
        carried=(1,),
        resolve=resolve,
    )
    return generic


_ARGMIN, _ARGMAX = _arg("argmin", False), _arg("argmax", True)


@public("argmin", inputs="x, y")
def argmin_() -> Operator:
    """The y of the least x; of equals, the first.

    >>> sw.argmin().fold([3, 1, 1], ["a", "b", "c"])
    'b'
    """
    return _ARGMIN


@public("argmax", inputs="x, y")
def argmax_() -> Operator:
    """The y of the greatest x; of equals, the first. NaN is the greatest.

    >>> sw.argmax("amount", "merchant")
    Bound(operator=<operator argmax() selective>, columns=('amount', 'merchant'), where=None)
    """
    return _ARGMAX
