"""var, std, covariance, correlation, slope: central moments, merged and never subtracted.

Chan, Golub, LeVeque 1979 and 1983 (updating formulae for variances, and their error). A state holds the count, the means
and the sums of products of deviations from the means; two states merge by the distance d of their means:

    n = n_a + n_b      mean = mean_a + d n_b / n      m2 = m2_a + m2_b + d^2 n_a n_b / n

No large sums of squares cancel, a constant window has variance exactly 0, and a NaN or an infinity leaves no trace once
it has left.
"""

import math
from typing import NamedTuple

from slidewise.algebra.casts import real
from slidewise.algebra.operator import Operator
from slidewise.operators.making import library, numbers_only, public, whole_number

MERGED = "a relative 8 n k 2^-53, k^2 = sum x^2 / sum (x - mean)^2 (Chan, Golub, LeVeque 1983)"


class Moments(NamedTuple):
    """Count, mean, and the sum of squared deviations from it."""

    n: int
    mean: float
    m2: float


def _lift_moments(x):
    y = real(x)
    return Moments(1, y, y - y)  # 0, but NaN for NaN and infinities: they have no deviation


def _combine_moments(a, b):
    if a.n == 0:
        return b
    if b.n == 0:
        return a
    n = a.n + b.n
    d = b.mean - a.mean
    share = real(b.n) / n
    return Moments(n, a.mean + d * share, a.m2 + b.m2 + d * d * (a.n * share))


def _moments(name: str, ddof: int, root: bool) -> Operator:
    def defined(s):
        return s.n > ddof

    def variance(s):
        return s.m2 / (s.n - ddof)

    def deviation(s):
        return math.sqrt(s.m2 / (s.n - ddof))

    op = library(
        name,
        lift=_lift_moments,
        combine=_combine_moments,
        lower=deviation if root else variance,
        defined=defined,
        identity=Moments(0, 0.0, 0.0),
        commutative=True,
        exact=False,
        error=MERGED,
        params={"ddof": ddof},
    )
    return numbers_only(op)


@public("var", inputs="x", source="Chan, Golub, LeVeque 1979")
def var_(*, ddof: int = 1) -> Operator:
    """The variance, with `ddof` fewer degrees of freedom than values; null where that leaves none.

    >>> sw.var().fold([1, 2, 3, 4])
    1.6666666666666667
    >>> sw.var(ddof=0).fold([5.0])
    0.0
    >>> sw.var().fold([5.0]) is None
    True
    """
    return _moments("var", whole_number("var", "ddof", ddof, 0), root=False)


@public("std", inputs="x", source="Chan, Golub, LeVeque 1979")
def std_(*, ddof: int = 1) -> Operator:
    """The standard deviation: the square root of `var`.

    >>> sw.std(ddof=0).fold([2, 4])
    1.0
    """
    return _moments("std", whole_number("std", "ddof", ddof, 0), root=True)


# ---- two columns -----------------------------------------------------------------------------------------------------


class CoMoments(NamedTuple):
    """Count, means, sums of squared deviations of x and of y, and of their products."""

    n: int
    mean_x: float
    mean_y: float
    xx: float
    yy: float
    xy: float


def _lift_pair(x, y):
    u, v = real(x), real(y)
    return CoMoments(1, u, v, u - u, v - v, (u - u) + (v - v))


def _combine_pair(a, b):
    if a.n == 0:
        return b
    if b.n == 0:
        return a
    n = a.n + b.n
    dx, dy = b.mean_x - a.mean_x, b.mean_y - a.mean_y
    share = real(b.n) / n
    weight = a.n * share
    return CoMoments(
        n,
        a.mean_x + dx * share,
        a.mean_y + dy * share,
        a.xx + b.xx + dx * dx * weight,
        a.yy + b.yy + dy * dy * weight,
        a.xy + b.xy + dx * dy * weight,
    )


def _pair(name: str, lower, defined, params: dict | None = None) -> Operator:
    op = library(
        name,
        lift=_lift_pair,
        combine=_combine_pair,
        lower=lower,
        defined=defined,
        identity=CoMoments(0, 0.0, 0.0, 0.0, 0.0, 0.0),
        commutative=True,
        exact=False,
        error=MERGED,
        params=params or {},
    )
    return numbers_only(op)


@public("covariance", inputs="x, y", source="Chan, Golub, LeVeque 1979")
def covariance_(*, ddof: int = 1) -> Operator:
    """The covariance of two columns, with `ddof` fewer degrees of freedom than pairs; null where that leaves none.

    >>> sw.covariance().fold([1, 2, 3], [2, 4, 6])
    2.0
    """
    ddof = whole_number("covariance", "ddof", ddof, 0)

    def defined(s):
        return s.n > ddof

    def lower(s):
        return s.xy / (s.n - ddof)

    return _pair("covariance", lower, defined, {"ddof": ddof})


def _correlation(s):
    r = s.xy / (math.sqrt(s.xx) * math.sqrt(s.yy))
    return 1.0 if r > 1.0 else -1.0 if r < -1.0 else r


def _has_correlation(s):
    return s.xx != 0.0 and s.yy != 0.0 and math.sqrt(s.xx) * math.sqrt(s.yy) != 0.0


_CORRELATION = _pair("correlation", _correlation, _has_correlation)


@public("correlation", inputs="x, y", source="Chan, Golub, LeVeque 1979")
def correlation_() -> Operator:
    """Pearson's correlation of two columns; null where one of them is constant.

    >>> round(sw.correlation().fold([1, 2, 3], [2, 4, 6]), 12)
    1.0
    """
    return _CORRELATION


def _slope(s):
    return s.xy / s.xx


def _has_slope(s):
    return s.xx != 0.0


_SLOPE = _pair("slope", _slope, _has_slope)


@public("slope", inputs="x, y", source="Chan, Golub, LeVeque 1979")
def slope_() -> Operator:
    """The slope of the least-squares line of y on x, in that order: `sw.slope("x", "y")`; null where x is constant.

    >>> sw.slope().fold([0, 1, 2], [5, 7, 9])
    2.0
    """
    return _SLOPE
