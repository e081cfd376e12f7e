"""Smaller states for as long as numbers are small: when the narrow form of an operator (`Operator.narrow`) may be used.

A sum of int64 that never wraps takes two words, and a plain one takes one. The plain one adds up modulo 2^64, so it gives the
right answer for every part of a window whose true sum is within int64, whatever some partial sum does on the way. That is sure as
long as the magnitudes of all values in the window add up to less than LIMIT. Whoever holds the values keeps an upper bound of
that sum (`magnitude` of what comes in; what goes out may be forgotten), and takes the wide form when the bound is used up.
"""

import numpy as np

from slidewise.algebra.typed import TypedOperator, typed

LIMIT = 2**63


def narrowed(op: TypedOperator) -> TypedOperator | None:
    """The narrow form, if there is one."""
    narrow = op.operator.narrow
    return typed(narrow.operator, op.inputs) if narrow is not None and op.compiled else None


def fitting(op: TypedOperator, columns: tuple, entries: int | None = None) -> TypedOperator:
    """The form of an operator for windows over these columns: the narrow one where it is sure to serve.

    `entries`: how many values a window holds at most, if that is not the length of the columns."""
    narrow = narrowed(op)
    if narrow is None:
        return op
    enough = all((len(column) if entries is None else entries) * largest(column) < LIMIT for column in columns)
    return narrow if enough else op


def largest(column: np.ndarray) -> int:
    """The largest magnitude in a column of integers, 1 at least."""
    return max(1, -int(column.min()), int(column.max())) if len(column) else 1


def magnitude(column: np.ndarray, room: int) -> int:
    """An upper bound of what the magnitudes of a column of integers add up to; exact where it would be `room` or more."""
    most = len(column) * largest(column)
    return most if most < room else exact_magnitude(column)


def exact_magnitude(column: np.ndarray) -> int:
    """What the magnitudes of a column of integers add up to, a 0 counted as 1."""
    sizes = column.astype(np.uint64)
    if column.dtype.kind == "i":
        sizes = np.where(column < 0, np.uint64(0) - sizes, sizes)  # -2^63 has a magnitude here
    sizes = np.maximum(sizes, np.uint64(1))
    return (int((sizes >> np.uint64(32)).sum()) << 32) + int((sizes & np.uint64(2**32 - 1)).sum())
