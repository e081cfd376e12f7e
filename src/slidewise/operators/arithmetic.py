"""count, sum, mean.

Sums of integers are exact and never wrap. Inputs of up to 32 bits add up in one int64 (it takes 2^31 of them to leave its
range). An int64 column adds up in two words that need no test for overflow in `combine`:

    low    the sum modulo 2^64           high   the sum of x >> 32

The true total T lies in [high * 2^32, (high + n) * 2^32) and is congruent to low, so as long as n < 2^32 the two decide
it: `lower` finds out whether T fits in int64, and only `lower` raises. Two additions and no branch cost less than one
addition and a test, and they are exactly associative and invertible even where some partial sum leaves int64.

While all values in a window are small, `low` alone decides: the narrow forms (algebra.narrow) leave `high` away.
"""

import operator
from typing import NamedTuple

from numba.extending import register_jitable

from slidewise.algebra.casts import real, unsigned, whole
from slidewise.algebra.operator import Narrow, Operator
from slidewise.errors import AggregateOverflowError
from slidewise.operators.exact import exact_floats, mean_of_whole
from slidewise.operators.making import INT64_MAX, INT64_MIN, flag, kind_of, library, public, refuse_text, worked_out

FLOAT_SUM = "n * 2^-53 * sum |x|"
_WORD = 2**32


def _same(state):
    return state


def _add(a, b):
    return a + b


def _subtract(total, old):
    return total - old


# ---- count -----------------------------------------------------------------------------------------------------------


def _one_row():
    return 1


def _one_value(x):
    return 1


@public("count", inputs="[x]", by_columns=True)
def count_(*, columns: int) -> Operator:
    """How many rows; with a column, how many of its values are not null. 0 for an empty window.

    >>> sw.count().fold(rows=3)
    3
    >>> sw.count("amount").operator.fold([7, None, 9])
    2
    """
    return library(
        "count",
        lift=_one_value if columns else _one_row,
        combine=_add,
        lower=_same,
        identity=0,
        inverse=_subtract,
        commutative=True,
        empty=0,
        carried=(0,) if columns else (),
    )


# ---- integers in two words -------------------------------------------------------------------------------------------


class Total(NamedTuple):
    """A sum of 64-bit integers: see the head of this file."""

    low: int
    high: int


def _lift_total(x):
    return Total(whole(x), whole(x) >> 32)


def _lift_unsigned_total(x):
    return Total(whole(x), whole(unsigned(x) >> unsigned(32)))


def _combine_total(a, b):
    return Total(a.low + b.low, a.high + b.high)


def _inverse_total(total, old):
    return Total(total.low - old.low, total.high - old.high)


def _lower_total(s):
    above = (s.low >> 32) - s.high
    if above < 0 or above >= _WORD or s.low > INT64_MAX or s.low < INT64_MIN:
        raise AggregateOverflowError("the sum left the range of int64; cast the column to float64")
    return s.low


def _widen_total(total):
    return total, total >> 32


@register_jitable
def _total_as_float(low, high):
    """The nearest float64 of a total; one beyond 2^85 is rounded twice."""
    above = (low >> 32) - high
    if 0 <= above and above < _WORD:
        return real(low)
    upper = (low >> 32) - (above >> 32) * _WORD
    return real(upper) * 4294967296.0 + real(low & 4294967295)


# ---- sum -------------------------------------------------------------------------------------------------------------


def _lift_whole(x):
    return whole(x)


def _lift_real(x):
    return real(x)


def _lift_object(x):
    return refuse_text(x, "sum")


def _combine_object(a, b):
    return b if a is None else a if b is None else added("sum", a, b)


def added(name: str, a, b):
    """Two Python values added up."""
    return worked_out(name, "added up", operator.add, a, b)


def _lower_object(s):
    if type(s) is int and not INT64_MIN <= s <= INT64_MAX:
        raise AggregateOverflowError("the sum left the range of int64; use Decimal or float values")
    return s


def _resolve_sum(inputs):
    kind = kind_of(inputs[0])
    exact = {"inverse": _subtract, "exact": True, "error": "", "resolve": None}
    one_word = _SUM.with_(lift=_lift_whole, combine=_add, lower=_same, identity=0, **exact)
    if kind in ("bool", "small"):
        return one_word
    if kind in ("int", "uint"):
        return _SUM.with_(
            lift=_lift_total if kind == "int" else _lift_unsigned_total,
            combine=_combine_total,
            lower=_lower_total,
            identity=Total(0, 0),
            narrow=Narrow(one_word, _widen_total),
            **{**exact, "inverse": _inverse_total},
        )
    if kind == "float":
        # -0.0 is the true identity of float addition: 0.0 + -0.0 is 0.0.
        return _SUM.with_(lift=_lift_real, combine=_add, lower=_same, identity=-0.0, resolve=None)
    return _SUM.with_(resolve=None)


_SUM = library(
    "sum",
    lift=_lift_object,
    combine=_combine_object,
    lower=_lower_object,
    identity=None,
    commutative=True,
    exact=False,
    error=FLOAT_SUM + "; integers exact",
    resolve=_resolve_sum,
)


def _resolve_sum_exact(inputs):
    floats = kind_of(inputs[0]) in ("float", "object")
    return exact_floats(_SUM_EXACT, mean=False, inputs=inputs) if floats else _resolve_sum(inputs).with_(params=_SUM_EXACT.params)


_SUM_EXACT = _SUM.with_(params=(("exact", True),), resolve=_resolve_sum_exact, exact=True, error="")


@public("sum", inputs="x")
def sum_(*, exact: bool = False) -> Operator:
    """The sum. Integers are exact and invertible, and a sum beyond int64 is an `AggregateOverflowError`, never a wrap.

    Floats are added as they come, within n * 2^-53 * sum |x|. NaN and infinities propagate; once they have left the window
    they leave no trace. `exact=True` gives the nearest float64 of the true sum, equal to `math.fsum`, whatever the order
    and grouping, and is exactly invertible, for a state of 560 bytes.

    >>> sw.sum().fold([1, 2, 3])
    6
    >>> sw.sum(exact=True).fold([1e100, 1.0, -1e100])
    1.0
    """
    return _SUM_EXACT if flag("sum", "exact", exact) else _SUM


# ---- mean ------------------------------------------------------------------------------------------------------------


class Mean(NamedTuple):
    n: int
    total: float


class TotalMean(NamedTuple):
    n: int
    low: int
    high: int


def _lift_mean_small(x):
    return Mean(1, whole(x))


def _lift_mean(x):
    return Mean(1, real(x))


def combine_mean(a, b):
    return Mean(a.n + b.n, a.total + b.total)


def _inverse_mean(total, old):
    return Mean(total.n - old.n, total.total - old.total)


def _lower_mean(s):
    return real(s.total) / s.n


def _lift_mean_total(x):
    return TotalMean(1, whole(x), whole(x) >> 32)


def _lift_mean_unsigned(x):
    return TotalMean(1, whole(x), whole(unsigned(x) >> unsigned(32)))


def _combine_mean_total(a, b):
    return TotalMean(a.n + b.n, a.low + b.low, a.high + b.high)


def _inverse_mean_total(total, old):
    return TotalMean(total.n - old.n, total.low - old.low, total.high - old.high)


def _lower_mean_total(s):
    return _total_as_float(s.low, s.high) / s.n


def _widen_mean(n, total):
    return n, total, total >> 32


def _lower_mean_once(s):
    return mean_of_whole(s.n, s.total, s.total >> 32)


def _lower_mean_total_once(s):
    return mean_of_whole(s.n, s.low, s.high)


def _lower_mean_object(s):
    return worked_out("mean", "divided", operator.truediv, s.total, s.n)


def _lift_mean_object(x):
    return Mean(1, refuse_text(x, "mean"))


def _combine_mean_object(a, b):
    return b if a.n == 0 else a if b.n == 0 else Mean(a.n + b.n, added("mean", a.total, b.total))


def _resolve_mean(inputs):
    kind = kind_of(inputs[0])
    exact = {"exact": True, "error": "", "resolve": None}
    one_word = _MEAN.with_(
        lift=_lift_mean_small, combine=combine_mean, lower=_lower_mean, identity=Mean(0, 0), inverse=_inverse_mean, **exact
    )
    if kind in ("bool", "small"):
        return one_word
    if kind in ("int", "uint"):
        return _MEAN.with_(
            lift=_lift_mean_total if kind == "int" else _lift_mean_unsigned,
            combine=_combine_mean_total,
            lower=_lower_mean_total,
            identity=TotalMean(0, 0, 0),
            inverse=_inverse_mean_total,
            narrow=Narrow(one_word, _widen_mean),
            **exact,
        )
    if kind == "float":
        return _MEAN.with_(
            lift=_lift_mean, combine=combine_mean, lower=_lower_mean, identity=Mean(0, -0.0), resolve=None
        )
    return _MEAN.with_(resolve=None)


_MEAN = library(
    "mean",
    lift=_lift_mean_object,
    combine=_combine_mean_object,
    lower=_lower_mean_object,
    identity=Mean(0, 0),
    commutative=True,
    exact=False,
    error=FLOAT_SUM + " / n; integers: a relative 2^-52",
    resolve=_resolve_mean,
)


def _resolve_mean_exact(inputs):
    kind = kind_of(inputs[0])
    if kind in ("float", "object"):
        return exact_floats(_MEAN_EXACT, mean=True, inputs=inputs)
    lower = _lower_mean_once if kind in ("bool", "small") else _lower_mean_total_once
    return _resolve_mean(inputs).with_(params=_MEAN_EXACT.params, lower=lower, narrow=None)


_MEAN_EXACT = _MEAN.with_(params=(("exact", True),), resolve=_resolve_mean_exact, exact=True, error="")


@public("mean", inputs="x")
def mean_(*, exact: bool = False) -> Operator:
    """The arithmetic mean: the sum and the count, divided at the end. Integers are summed exactly (and invertibly).

    `exact=True`: floats are, too, and the mean is the float nearest to the true one: it is rounded once.

    >>> sw.mean().fold([1, 2, 6])
    3.0
    """
    return _MEAN_EXACT if flag("mean", "exact", exact) else _MEAN
