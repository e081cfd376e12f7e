"""The longest run ending at each row in which a column stays within a width: the one loop of delta windows, and the numbers it
goes by.

Whole numbers, times and decimals of up to 18 digits are compared as int64 (times in their own unit, decimals without the point),
floats and longer decimals as float64. The type of the column says which, never its values.
"""

from fractions import Fraction
from math import floor

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import inlined
from slidewise.errors import InputError, InputTypeError
from slidewise.windows.duration import NS
from slidewise.windows.spec import Length

_DIGITS = 18
_TOP = np.int64(-(2**63))


def delta_dtype(kind: pa.DataType) -> np.dtype:
    """What a column of this type is compared as."""
    wide = pa.types.is_decimal(kind) and kind.precision > _DIGITS
    return np.dtype(np.float64 if pa.types.is_floating(kind) or wide else np.int64)


def delta_numbers(array: pa.Array) -> np.ndarray:
    """The column as such numbers; where it is null, anything."""
    kind = array.type
    if delta_dtype(kind) == np.float64:
        return np.array(array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    if not len(array):
        return np.empty(0, np.int64)
    width = kind.bit_width // 8
    words = np.frombuffer(array.buffers()[1], f"{'u' if pa.types.is_unsigned_integer(kind) else 'i'}{min(width, 8)}")
    step = max(width // 8, 1)  # of a long decimal the lowest word
    found = words[array.offset * step :: step][: len(array)].astype(np.int64)
    return found ^ _TOP if kind == pa.uint64() else found  # as far apart, in the same order


def delta_width(length: Length, kind: pa.DataType, column: str) -> int | float:
    """The width in the same numbers. Differences of whole ones are whole, so it is rounded down."""
    what = f"sw.delta({column!r}, {length.text})"
    times = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    if not times and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputTypeError(f"sw.delta: column {column!r} is {kind}; a delta window needs numbers or times")
    if times != length.of_time:
        holds, give = ("times", 'a length of time such as "1h"') if times else ("numbers", "a number in its unit")
        raise InputTypeError(f"{what}: the column holds {holds}, so give {give} as the width, not {length.text}")
    if delta_dtype(kind) == np.float64:
        return length.value
    if length.value == float("inf"):
        width = length.value
    elif times:
        width = length.value // NS[getattr(kind, "unit", "ms" if kind == pa.date64() else "d")]
    else:
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        width = floor(Fraction(str(length.value)) * Fraction(10) ** scale)  # 0.3 is three tenths, as it is written
    if width >= 2**63:
        raise InputError(f"{what}: a width of {length.text} is more than any difference in int64")
    return width


@inlined
def delta_run(values, valid, first, last, stale, shift, width, largest, smallest, begun):
    """begun[p] = shift + where the run of row p began, for the rows stale .. last - 1 of a key; no run of theirs began before
    `first`. Largest less smallest stays within `width`.

    Two monotone queues over positions, `largest` and `smallest`, with room for last - first each. A null (valid: a byte for each
    row, or none at all) neither widens nor ends a run; a NaN is within nothing but NaN.
    """
    nulls = len(valid) > 0
    start = behind = first  # behind: the row after the last that was no null
    l0 = l1 = s0 = s1 = 0
    seen = not_a_number = False
    for p in range(first, last):
        if not nulls or valid[p]:
            x = values[p]
            if seen and (x != x) != not_a_number:
                start = behind
                l0 = l1 = s0 = s1 = 0
            not_a_number = x != x
            seen = True
            behind = p + 1
            if not not_a_number:
                while l1 > l0 and values[largest[l1 - 1]] <= x:
                    l1 -= 1
                largest[l1] = p
                l1 += 1
                while s1 > s0 and values[smallest[s1 - 1]] >= x:
                    s1 -= 1
                smallest[s1] = p
                s1 += 1
                while not _within(values[largest[l0]], values[smallest[s0]], width):
                    if largest[l0] < smallest[s0]:
                        start = largest[l0] + 1
                        l0 += 1
                    else:
                        start = smallest[s0] + 1
                        s0 += 1
        if p >= stale:
            begun[p] = shift + start


@inlined
def _within(high, low, width):
    """high - low <= width, where the difference may leave int64; infinities are within anything of themselves."""
    difference = high - low
    return high == low or (difference <= width and difference >= 0)
