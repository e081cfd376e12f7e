"""first, last, nth_youngest, m4: what depends on the place of values in time."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import whole
from slidewise.algebra.operator import Operator
from slidewise.operators.making import CAST, ZERO, kind_of, library, public, whole_number
from slidewise.operators.order import chooser


class Kept(NamedTuple):
    """A value, if there is one."""

    has: bool
    value: Any


@cache
def _lift_kept(kind: str):
    cast = CAST[kind]

    def lift(x):
        return Kept(True, cast(x))

    return lift


def _combine_first(a, b):
    return a if a.has else b


def _combine_last(a, b):
    return b if b.has else a


def _lower_kept(s):
    return s.value


def _end(name: str, combine) -> Operator:
    def resolve(inputs):
        kind = kind_of(inputs[0])
        return generic.with_(lift=_lift_kept(kind), identity=Kept(False, ZERO[kind]), resolve=None)

    generic = library(
        name,
        lift=_lift_kept("object"),
        combine=combine,
        lower=_lower_kept,
        identity=Kept(False, None),
        selective=True,
        result_like=0,
        carried=(0,),
        resolve=resolve,
    )
    return generic


_FIRST, _LAST = _end("first", _combine_first), _end("last", _combine_last)


@public("first", inputs="x")
def first_() -> Operator:
    """The oldest value.

    >>> sw.first().fold([3, 1, 2])
    3
    """
    return _FIRST


@public("last", inputs="x")
def last_() -> Operator:
    """The youngest value.

    >>> sw.last().fold(["a", "b"])
    'b'
    """
    return _LAST


# ---- nth_youngest ----------------------------------------------------------------------------------------------------


_WIDE = {"bool": np.int64, "small": np.int64, "int": np.int64, "uint": np.uint64, "float": np.float64}


@cache
def _youngest_functions(kind: str, n: int):
    """A row of n + 1 numbers: how many values there are (at most n), then the values, the youngest last.

        [ 2 | 0  0  0  0  7  5 ]        n = 6: 7 came before 5
    """
    dtype, cast = np.dtype(_WIDE[kind]), CAST["int" if kind == "bool" else kind]

    def lift_into(out, x):
        for k in range(n):
            out[k] = 0
        out[0] = 1
        out[n] = cast(x)

    def lift(x):
        out = np.zeros(n + 1, dtype)
        out[0] = 1
        out[n] = cast(x)
        return out

    @register_jitable
    def count_of(s):
        return min(max(whole(s[0]), 0), n)  # a count that was stored may be anything: it must not lead out of the row

    def combine_into(out, a, b):
        newer = count_of(b)
        older = min(count_of(a), n - newer)
        for k in range(n - newer - older + 1, n - newer + 1):  # upwards: out may be a
            out[k] = a[k + newer]
        for k in range(n - newer + 1, n + 1):
            out[k] = b[k]
        for k in range(1, n - newer - older + 1):
            out[k] = 0
        out[0] = newer + older

    def combine(a, b):
        newer = count_of(b)
        older = min(count_of(a), n - newer)
        out = np.zeros(n + 1, dtype)
        out[n + 1 - newer :] = b[n + 1 - newer :]
        out[n + 1 - newer - older : n + 1 - newer] = a[n + 1 - older :]
        out[0] = newer + older
        return out

    def lower(s):
        return cast(s[1])

    def defined(s):
        return s[0] == n

    return {
        "lift": lift,
        "combine": combine,
        "lift_into": lift_into,
        "combine_into": combine_into,
        "lower": lower,
        "defined": defined,
        "identity": np.zeros(n + 1, dtype),
    }


def _one(x):
    return (x,)


@public("nth_youngest", inputs="x", example={"n": 2})
def nth_youngest_(*, n: int) -> Operator:
    """The n-th youngest value (1: the last one); null where there are fewer than n.

    >>> sw.nth_youngest(n=2).fold([3, 1, 2])
    1
    """
    n = whole_number("nth_youngest", "n", n, 1)

    def combine(a, b):
        return (a + b)[-n:]

    def lower(s):
        return s[0]

    def defined(s):
        return len(s) == n

    def resolve(inputs):
        kind = kind_of(inputs[0])
        return generic.with_(resolve=None, **({} if kind == "object" else _youngest_functions(kind, n)))

    generic = library(
        "nth_youngest",
        lift=_one,
        combine=combine,
        lower=lower,
        defined=defined,
        identity=(),
        result_like=0,
        carried=(0,),
        params={"n": n},
        resolve=resolve,
    )
    return generic


# ---- m4 --------------------------------------------------------------------------------------------------------------


class M4(NamedTuple):
    """The four values that draw a line chart's column of pixels exactly."""

    min: Any
    max: Any
    first: Any
    last: Any


class M4State(NamedTuple):
    has: bool
    least: Any
    greatest: Any
    first: Any
    last: Any


@cache
def _m4_functions(kind: str):
    cast = CAST[kind]
    lesser, greater = register_jitable(chooser(kind, False)), register_jitable(chooser(kind, True))

    def lift(x):
        y = cast(x)
        return M4State(True, y, y, y, y)

    def combine(a, b):
        if not a.has:
            return b
        if not b.has:
            return a
        return M4State(True, lesser(a.least, b.least), greater(a.greatest, b.greatest), a.first, b.last)

    return lift, combine


def _lower_m4(s):
    return M4(s.least, s.greatest, s.first, s.last)


def _resolve_m4(inputs):
    kind = kind_of(inputs[0])
    lift, combine = _m4_functions(kind)
    zero = ZERO[kind]
    return _M4.with_(lift=lift, combine=combine, identity=M4State(False, zero, zero, zero, zero), resolve=None)


_M4 = library(
    "m4",
    lift=_m4_functions("object")[0],
    combine=_m4_functions("object")[1],
    lower=_lower_m4,
    identity=M4State(False, None, None, None, None),
    resolve=_resolve_m4,
)


@public("m4", inputs="x", source="Jugel, Jerzak, Hackenbroich, Markl 2014 (M4)")
def m4_() -> Operator:
    """The least, the greatest, the first and the last value, as one struct: what a line chart needs of a pixel column.

    >>> sw.m4().fold([2, 1, 7, 3])
    M4(min=1, max=7, first=2, last=3)
    """
    return _M4
