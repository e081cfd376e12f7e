"""Exact sums of floats: a superaccumulator for `sum(exact=True)` and `mean(exact=True)`.

Every finite float64 is m * 2^(p - 1074) with whole m < 2^53 and 0 <= p < 2046. A state is one long fixed-point number
over that whole range, in limbs of 32 bits, least significant first, behind four counters:

    word   0       1      2       3       4        5              69
         [ count | NaNs | +infs | -infs | limb 0 | limb 1 | ... | limb 65 ]    total = sum of limb[k] * 2^(32 k - 1074)

A value touches three limbs. Limbs are int64 and carries stay where they are: adding two states adds their words one by
one, and subtracting subtracts them. So a state depends on nothing but which values are in the window: `combine` is
exactly associative and commutative, `inverse` is exact, NaN and infinities are counted and leave no trace. A limb has room
for the sum of 2^31 values (the count tells).

`lower` carries (and divides, for a mean), and rounds once, half to even: the nearest float64 of the true sum, bit for bit what
`math.fsum` gives, or of the true mean. Where
the true sum rounds beyond the largest float64 the result is an infinity (`fsum` raises). Infinities give infinities; +inf
and -inf together, or a NaN, give NaN. A sum of zeros is 0.0 whatever their signs.

Kulisch and Miranker 1986 (the long accumulator); Neal 2015 (fast exact summation using small and large superaccumulators).
"""

import math

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import bits, real
from slidewise.algebra.operator import Operator
from slidewise.errors import AggregateOverflowError
from slidewise.operators.making import numbers_only
from slidewise.operators.wide import counters

LIMBS = 66
FIRST = 4
WIDTH = FIRST + LIMBS
_LIMB = 2**32
_MASK = 2**32 - 1
_FRACTION = 2**52 - 1
_ROOM = 2**31
_ONE, _ONE_SHIFT = FIRST + 1074 // 32, 1074 % 32
"""Where the number 1 is: the limb, and the place in it."""


@register_jitable
def _deposit(out, x):
    """Add a value to a state that holds zeros."""
    word = bits(x)
    exponent = (word >> 52) & 2047
    mantissa = word & _FRACTION
    out[0] = 1
    if exponent == 2047:
        out[1 if mantissa != 0 else 3 if word < 0 else 2] = 1
        return
    if exponent > 0:
        mantissa |= _FRACTION + 1
        exponent -= 1
    limb, shift = FIRST + (exponent >> 5), exponent & 31
    # mantissa << shift may need 84 bits: split it first, so that nothing leaves 64.
    low = (mantissa & _MASK) << shift
    high = ((mantissa >> 32) << shift) + (low >> 32)
    sign = -1 if word < 0 else 1
    out[limb] = sign * (low & _MASK)
    out[limb + 1] = sign * (high & _MASK)
    if high >= _LIMB:
        out[limb + 2] = sign * (high >> 32)


def lift_into(out, x):
    for k in range(WIDTH):
        out[k] = 0
    _deposit(out, real(x))


def lift(x):
    out = np.zeros(WIDTH, np.int64)
    _deposit(out, real(x))
    return out


@register_jitable
def _carry(s, sign, digits):
    """Write the digits of sign * total, each in [0, 2^32), and return what is left above them: negative if the total is."""
    carry = 0
    for k in range(LIMBS):
        word = sign * s[FIRST + k] + carry
        digits[k] = word & _MASK
        carry = word >> 32
    digits[LIMBS] = carry & _MASK
    return carry >> 32


@register_jitable
def _divide(digits, n):
    """The digits divided by n < 2^31, in place; gives what is left over."""
    left = 0
    for k in range(LIMBS, -1, -1):
        word = (left << 32) | digits[k]
        digits[k] = word // n
        left = word % n
    return left


@register_jitable
def nearest(s, n):
    """The nearest float64 of the total divided by n (1: of the total itself), half to even, rounded once."""
    if s[0] >= _ROOM:
        raise AggregateOverflowError("an exact sum holds at most 2^31 values")
    if s[1] > 0 or (s[2] > 0 and s[3] > 0):
        return math.nan
    if s[2] > 0:
        return math.inf
    if s[3] > 0:
        return -math.inf
    digits = np.zeros(LIMBS + 1, np.int64)
    sign = 1.0
    if _carry(s, 1, digits) < 0:
        sign = -1.0
        _carry(s, -1, digits)
    left = _divide(digits, n) if n > 1 else 0
    top = LIMBS
    while top > 0 and digits[top] == 0:
        top -= 1
    length = 32 * top
    digit = digits[top]
    while digit > 0:
        digit >>= 1
        length += 1
    if length <= 53:  # a multiple of the least float of all, but for what is left over
        mantissa = digits[0] + (digits[1] << 32)
        if 2 * left > n or (2 * left == n and mantissa & 1 == 1):
            mantissa += 1
        if mantissa == 0 and left == 0:
            return 0.0
        return sign * math.ldexp(real(mantissa), -1074)
    # The 53 bits from `shift` on, then one bit to round by, then all that is below.
    shift = length - 53
    k, r = shift >> 5, shift & 31
    mantissa = digits[k] >> r
    mantissa |= digits[k + 1] << (32 - r)
    if k + 2 <= LIMBS and 64 - r < 53:
        mantissa |= digits[k + 2] << (64 - r)
    k, r = (shift - 1) >> 5, (shift - 1) & 31
    half = (digits[k] >> r) & 1
    below = digits[k] & ((1 << r) - 1)
    while below == 0 and k > 0:
        k -= 1
        below = digits[k]
    if half == 1 and (below != 0 or left != 0 or mantissa & 1 == 1):
        mantissa += 1
    exponent = shift - 1074
    if exponent > 971 or (exponent == 971 and mantissa == 2**53):
        return sign * math.inf
    return sign * math.ldexp(real(mantissa), exponent)


def _lower_sum(s):
    return nearest(s, 1)


def _lower_mean(s):
    return nearest(s, s[0])


@register_jitable
def mean_of_whole(n, low, high):
    """The nearest float64 of a total of whole numbers divided by n. Each of the n numbers is 2^32 h + l with 0 <= l < 2^32: `high`
    is the sum of the h, and `low` the total modulo 2^64."""
    lows = low - (high << 32)
    s = np.zeros(WIDTH, np.int64)
    s[0] = n
    s[_ONE] = (lows & _MASK) << _ONE_SHIFT
    s[_ONE + 1] = ((lows >> 32) << _ONE_SHIFT) + ((high & _MASK) << _ONE_SHIFT)
    s[_ONE + 2] = (high >> 32) << _ONE_SHIFT
    return nearest(s, n)


def exact_floats(generic: Operator, mean: bool, inputs: tuple) -> Operator:
    """`sum` or `mean` of floats with a superaccumulator for a state."""
    found = generic.with_(
        lift=lift,
        lower=_lower_mean if mean else _lower_sum,
        identity=np.zeros(WIDTH, np.int64),
        lift_into=lift_into,
        exact=True,
        error="",
        cost="expensive",
        resolve=None,
        **counters(WIDTH),
    )
    return numbers_only(found).resolved(inputs).with_(resolve=None)
