"""collect, collect_distinct, concat, top_k, median: results that grow with the window, or need all of it.

Their states are Python objects, interpreted: ropes (rope.py) where all values are kept, which join in O(1), so that a
result costs what it takes to write it down; dictionaries and short tuples elsewhere.
"""

import math
from decimal import Decimal
from itertools import islice

import numpy as np

from slidewise.algebra.operator import Operator
from slidewise.errors import InputTypeError
from slidewise.operators.making import DIGITS, kind_of, library, plain, public, refuse, refuse_text, whole_number
from slidewise.operators.rope import decode, encode, join, values

NAN = float("nan")
"""The one NaN that states hold: two NaNs are the same key of a dictionary only if they are the same object."""


def value_key(x):
    """The Python value to keep: NumPy scalars unwrapped, every NaN the same."""
    y = plain(x)
    return NAN if isinstance(y, float) and y != y else y


def _alike(xs: list, ys: list) -> bool:
    """The same values in the same order; one NaN is like another, also one that comes back from bytes."""
    return len(xs) == len(ys) and all(x == y or (x != x and y != y) for x, y in zip(xs, ys, strict=True))


def _one(x):
    return (plain(x),)


# ---- collect ---------------------------------------------------------------------------------------------------------


_COLLECT = library(
    "collect",
    lift=_one,
    combine=join,
    lower=values,
    identity=(),
    empty=[],
    encode=encode,
    decode=decode,
    object_only=True,
    cost="expensive",
)


@public("collect", inputs="x")
def collect_() -> Operator:
    """All values in the order of time, as a list; an empty list for an empty window.

    >>> sw.collect().fold([3, 1, 3])
    [3, 1, 3]
    """
    return _COLLECT


# ---- collect_distinct ------------------------------------------------------------------------------------------------


def _lift_distinct(x):
    y = value_key(x)
    try:
        return {y: None}
    except TypeError as error:
        raise InputTypeError(f"collect_distinct takes values that can be hashed, not {x!r}") from error


def _combine_distinct(a, b):
    return a | b  # a's keys first, then b's new ones


def _decode_distinct(items):
    return {value_key(item): None for item in items}


_DISTINCT = library(
    "collect_distinct",
    lift=_lift_distinct,
    combine=_combine_distinct,
    lower=list,
    identity={},
    empty=[],
    inputs=1,
    equal=lambda a, b: _alike(list(a), list(b)),
    encode=list,
    decode=_decode_distinct,
    object_only=True,
    cost="expensive",
)


@public("collect_distinct", inputs="x")
def collect_distinct_() -> Operator:
    """The distinct values in the order of their first occurrence, as a list. NaNs are one value.

    >>> sw.collect_distinct().fold([3, 1, 3, 2, 1])
    [3, 1, 2]
    """
    return _DISTINCT


# ---- concat ----------------------------------------------------------------------------------------------------------


def _lift_text(x):
    if not isinstance(x, str):
        raise InputTypeError(f"concat takes strings, not {x!r}; cast the column to strings first")
    return (str(x),)


def _decode_texts(stored):
    state = decode(stored)
    if not all(isinstance(x, str) for x in values(state)):
        raise ValueError("a stored state of concat holds something else than strings")
    return state


@public("concat", inputs="x", example={"sep": ","})
def concat_(*, sep: str = "") -> Operator:
    """All strings in the order of time, joined with `sep` between them. Null for an empty window.

    >>> sw.concat(sep="-").fold(["a", "b", "c"])
    'a-b-c'
    """
    if not isinstance(sep, str):
        raise InputTypeError(f"concat: sep must be a string, not {sep!r}")

    def lower(s):
        return sep.join(values(s))

    def resolve(inputs):
        if inputs[0] is not object:
            refuse("concat", inputs[0], "strings")
        return generic.with_(resolve=None)

    generic = library(
        "concat",
        lift=_lift_text,
        combine=join,
        lower=lower,
        identity=(),
        params={"sep": sep},
        encode=encode,
        decode=_decode_texts,
        object_only=True,
        cost="expensive",
        resolve=resolve,
    )
    return generic


# ---- top_k -----------------------------------------------------------------------------------------------------------


def _greatest_first(items):
    """Sorted from the greatest on, equal values in the order they came; NaN is the greatest."""
    try:
        nans = [x for x in items if x != x]
        if not nans:
            return sorted(items, reverse=True)
        return nans + sorted((x for x in items if x == x), reverse=True)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"values without an order between them ({error}): give values of one kind") from error


@public("top_k", inputs="x", example={"k": 3})
def top_k_(*, k: int) -> Operator:
    """The k greatest values, the greatest first, as a list; a value that occurs twice is there twice. NaN is the greatest.

    Of equal values the older ones are kept, and come first. Fewer than k values: all of them.

    >>> sw.top_k(k=3).fold([2, 9, 4, 9, 1])
    [9, 9, 4]
    """
    k = whole_number("top_k", "k", k, 1)

    def combine(a, b):
        return tuple(islice(_greatest_first(a + b), k))  # two runs in order: sorting them is one merge

    return library(
        "top_k",
        lift=_one,
        combine=combine,
        lower=list,
        identity=(),
        inputs=1,
        empty=[],
        params={"k": k},
        object_only=True,
        cost="expensive",
    )


# ---- median ----------------------------------------------------------------------------------------------------------


def _middle_duration(low, high):
    """As a whole number of the units they come in, or else of nanoseconds. (NumPy would cut.)"""
    half = low + (high - low) // 2
    if half - low != high - half and np.datetime_data(low.dtype)[0] not in "YM":
        half = low.astype("m8[ns]") + (high - low).astype("m8[ns]") // 2
    return half


def _middle(low, high):
    if isinstance(low, np.timedelta64):
        return _middle_duration(low, high)
    try:
        half = DIGITS.divide(DIGITS.add(low, high), 2) if isinstance(low, Decimal) else (low + high) / 2
    except TypeError as error:
        raise InputTypeError(f"median: there is nothing half way between {low!r} and {high!r}") from error
    if isinstance(half, float) and math.isinf(half) and not (math.isinf(low) or math.isinf(high)):
        return low / 2 + high / 2  # the sum overflowed
    return half


def _lower_median(s):
    items = values(s)
    items = _greatest_first(items)
    n = len(items)
    high, low = items[(n - 1) // 2], items[n // 2]
    if n % 2 == 1:
        return low / 1 if isinstance(low, int) else low
    return high if high != high else low if low != low else _middle(low, high)


def _lower_median_numbers(s):
    array = np.array(values(s))
    n = len(array)
    array.partition((n - 1) // 2 if n % 2 else [n // 2 - 1, n // 2])  # NaN is the greatest here too
    low, high = array[(n - 1) // 2].item(), array[n // 2].item()
    if n % 2 == 1:
        return float(low)
    return high if high != high else float(_middle(low, high))


def _lift_number(x):
    y = refuse_text(x, "median")
    return (int(y) if isinstance(y, bool) else y,)


def _resolve_median(inputs):
    if kind_of(inputs[0]) != "object":
        return _MEDIAN.with_(lower=_lower_median_numbers, resolve=None)
    return _MEDIAN.with_(commutative=False, resolve=None)  # of equals that are not the same (1.0 and 1.00), the order decides


_MEDIAN = library(
    "median",
    lift=_lift_number,
    combine=join,
    lower=_lower_median,
    identity=(),
    commutative=True,
    equal=lambda a, b: _alike(_greatest_first(values(a)), _greatest_first(values(b))),
    encode=encode,
    decode=decode,
    object_only=True,
    cost="expensive",
    resolve=_resolve_median,
)


@public("median", inputs="x")
def median_() -> Operator:
    """The exact median; of an even number of values, the mean of the two in the middle. NaN is the greatest value.

    It keeps every value and finds the middle when asked, in O(n); `quantile(q=0.5)` is the sketch that does not.

    >>> sw.median().fold([5, 1, 3, 2])
    2.5
    """
    return _MEDIAN
