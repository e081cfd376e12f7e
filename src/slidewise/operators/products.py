"""product, geomean.

A product of integers is exact, or an error. Its states are int64 with one value, INT64_MIN, that means "too large": for whole
numbers other than 0 the magnitude only grows, so a partial product that leaves int64 decides the whole one, unless a 0
comes: 0 wins over "too large". With that, `combine` is exactly associative, and only `lower` raises.
"""

import math
import operator

from slidewise.algebra.casts import real, unsigned, whole
from slidewise.algebra.operator import Operator
from slidewise.errors import AggregateOverflowError
from slidewise.operators.arithmetic import Mean, combine_mean
from slidewise.operators.making import (
    INT64_MAX,
    INT64_MIN,
    kind_of,
    library,
    numbers_only,
    public,
    refuse_text,
    worked_out,
)

_TOO_LARGE = INT64_MIN
_HALF_WRAP = 4.0e18  # a product that wrapped is off by 2^64, one that did not by less than 2^11


def _lift_whole(x):
    return whole(x)


def _lift_unsigned(x):
    y = unsigned(x)
    return whole(y) if y <= unsigned(INT64_MAX) else _TOO_LARGE


def _combine_whole(a, b):
    if a == 0 or b == 0:
        return 0
    if a == _TOO_LARGE or b == _TOO_LARGE:
        return _TOO_LARGE
    product = a * b
    if abs(real(a) * real(b) - real(product)) > _HALF_WRAP or product > INT64_MAX or product < -INT64_MAX:
        return _TOO_LARGE
    return product


def _lower_whole(s):
    if s == _TOO_LARGE:
        raise AggregateOverflowError("the product left the range of int64; cast the column to float64")
    return s


def _lift_real(x):
    return real(x)


def _multiply(a, b):
    return a * b


def _same(state):
    return state


def _lift_object(x):
    return refuse_text(x, "product")


def _combine_object(a, b):
    return b if a is None else a if b is None else worked_out("product", "multiplied", operator.mul, a, b)


def _lower_object(s):
    if type(s) is int and not -INT64_MAX <= s <= INT64_MAX:
        raise AggregateOverflowError("the product left the range of int64; use Decimal or float values")
    return s


def _resolve_product(inputs):
    kind = kind_of(inputs[0])
    if kind == "float":
        return _PRODUCT.with_(lift=_lift_real, combine=_multiply, lower=_same, identity=1.0, resolve=None)
    if kind == "object":
        return _PRODUCT.with_(resolve=None)
    return _PRODUCT.with_(
        lift=_lift_unsigned if kind == "uint" else _lift_whole,
        combine=_combine_whole,
        lower=_lower_whole,
        identity=1,
        exact=True,
        error="",
        resolve=None,
    )


_PRODUCT = library(
    "product",
    lift=_lift_object,
    combine=_combine_object,
    lower=_lower_object,
    identity=None,
    commutative=True,
    exact=False,
    error="a relative n * 2^-53; integers exact",
    resolve=_resolve_product,
)


@public("product", inputs="x")
def product_() -> Operator:
    """The product. Of integers it is exact; one of 2^63 or more in magnitude is an `AggregateOverflowError`.

    >>> sw.product().fold([2, 3, 7])
    42
    """
    return _PRODUCT


# ---- geomean ---------------------------------------------------------------------------------------------------------


def _lift_geomean(x):
    y = real(x)
    if y > 0.0:
        return Mean(1, math.log(y))
    return Mean(1, -math.inf if y == 0.0 else math.nan)


def _lower_geomean(s):
    log = s.total / s.n
    if log > 709.0:  # close to the largest float64, where Python's exp raises
        return math.exp(log - 1.0) * math.e
    return math.exp(log)


@public("geomean", inputs="x")
def geomean_() -> Operator:
    """The geometric mean, by the sum of logarithms: no product overflows. 0 if there is a 0, NaN if a value is negative.

    >>> round(sw.geomean().fold([1, 10, 100]), 12)
    10.0
    """
    return _GEOMEAN


_GEOMEAN = numbers_only(
    library(
        "geomean",
        lift=_lift_geomean,
        combine=combine_mean,
        lower=_lower_geomean,
        identity=Mean(0, -0.0),
        commutative=True,
        exact=False,
        error="a relative 2^-52 * (1 + sum |log x|)",
    )
)
