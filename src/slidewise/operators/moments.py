"""var, std, covariance, correlation, slope: central moments, merged and never subtracted.

Chan, Golub, LeVeque 1979 (updating formulae for variances). A state holds the count, the means and the sums of products of
deviations from the means; two states merge by the distance d of their means:

    n = n_a + n_b      mean = mean_a + d n_b / n      m2 = m2_a + m2_b + d^2 n_a n_b / n

No large sums of squares cancel, a constant window has variance exactly 0, and a NaN or an infinity leaves no trace once it has left.
"""

import math
from typing import NamedTuple

from slidewise.algebra.casts import real
from slidewise.algebra.operator import Operator
from slidewise.operators.making import library, public, whole_number

MERGED = "a relative c * n * 2^-53 of the sum of squared deviations, plus (n * 2^-53 * max |x|)^2"


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

    return library(
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
