"""histogram: counts by bucket. A row of int64 counters, added and subtracted: exact and invertible."""

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import real
from slidewise.algebra.operator import Operator
from slidewise.errors import InputError, InputTypeError
from slidewise.operators.making import library, numbers_only, public
from slidewise.operators.wide import counters


@register_jitable
def _bucket(edges, x):
    """The bucket of x, or -1: the last edge at or below x, by bisection."""
    last = len(edges) - 1
    if not (x >= edges[0] and x <= edges[last]):
        return -1
    low, high = 0, last  # edges[low] <= x, and x < edges[high] or high is the last edge
    while high - low > 1:
        middle = (low + high) >> 1
        if x >= edges[middle]:
            low = middle
        else:
            high = middle
    return low


def _copy(s):
    return s.copy()


def _checked_edges(edges) -> tuple[float, ...]:
    if isinstance(edges, (str, bytes)) or not isinstance(edges, Iterable):
        raise InputTypeError(f"histogram: edges must be a list of numbers, not {edges!r}")
    try:
        found = tuple(float(edge) for edge in edges)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"histogram: edges must be numbers: {error}") from error
    if len(found) < 2:
        raise InputError(f"histogram: edges must be at least two numbers, got {list(found)}")
    if any(math.isnan(edge) for edge in found) or any(a >= b for a, b in pairwise(found)):
        raise InputError(f"histogram: edges must rise strictly, got {list(found)}")
    return found


@public("histogram", inputs="x", example={"edges": (0.0, 1.0, 10.0)})
def histogram_(*, edges) -> Operator:
    """How many values lie in each bucket: `edges[i] <= x < edges[i + 1]`, the last one with its upper edge (as NumPy's).

    Values outside the edges and NaN are in no bucket; `float("-inf")` and `float("inf")` as edges leave nothing out but NaN.

    >>> sw.histogram(edges=[0, 10, 20]).fold([3, 10, 20, 99]).tolist()
    [1, 2]
    """
    found = _checked_edges(edges)
    bounds = np.array(found)
    width = len(found) - 1

    def lift_into(out, x):
        for k in range(width):
            out[k] = 0
        bucket = _bucket(bounds, real(x))
        if bucket >= 0:
            out[bucket] = 1

    def lift(x):
        out = np.zeros(width, np.int64)
        bucket = _bucket(bounds, real(x))
        if bucket >= 0:
            out[bucket] = 1
        return out

    op = library(
        "histogram",
        lift=lift,
        lower=_copy,
        identity=np.zeros(width, np.int64),
        commutative=True,
        lift_into=lift_into,
        empty=np.zeros(width, np.int64),
        params={"edges": found},
        **counters(width),
    )
    return numbers_only(op)
