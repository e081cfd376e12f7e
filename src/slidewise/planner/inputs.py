"""How a column reaches an operator, and how a result gets back the type a user expects.

number     integers and floats, as they are; truth values as bool. Small integers travel as int32 (to a user's functions as
           int64), float32 as float64, so that few variants are compiled; what keeps its input's type (max) is cast back, exactly
ticks      timestamps, dates, durations, times: their int64 or int32 values
rank       text, bytes, decimals where order is looked at: the place of each value in the sorted distinct values; of ordered
           categories the place among them
position   carried inputs of other types: the row's number, exchanged for the value at the end
nanoseconds  times and durations in nanoseconds, for interpreted operators of the library: whole numbers, as Python's own
           datetimes end at microseconds
object     everything else: Python objects, interpreted
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from slidewise.algebra.operator import Bound, Operator
from slidewise.errors import InputTypeError
from slidewise.operators.making import MOMENTS, NUMBERS, remake

FINE = frozenset("sum mean median spread collect collect_distinct top_k min_count max_count".split())
"""Interpreted operators of the library that take whole nanoseconds."""
ORDERED = frozenset("min max argmin argmax min_count max_count".split())
"""Operators that go by the order of ordered categories."""

ARITHMETIC = MOMENTS | {"spread", "any", "all"}
"""Operators of the library that text and lists make no sense to ..."""
HASHED = frozenset("collect_distinct naive_bayes approx_distinct approx_count bloom".split())
"""... and those that only lists and structs do not."""

KINDS = ("number", "ticks", "rank", "position", "nanoseconds", "object")


class Nanoseconds(int):
    """A time or a duration: sums, differences and halves are durations too, rounded to the nearest."""

    __slots__ = ()

    def __add__(self, other):
        return Nanoseconds(int(self) + int(other))

    def __sub__(self, other):
        return Nanoseconds(int(self) - int(other))

    def __truediv__(self, count):
        whole, rest = divmod(int(self), count)
        return Nanoseconds(whole + (2 * rest > count or (2 * rest == count and whole % 2)))


@dataclass(frozen=True)
class Input:
    """One column on its way into an operator."""

    column: str
    arrow: pa.DataType
    kind: str
    wide: bool = False
    """Whether small integers travel as int64: to a user's functions, which would wrap in less."""

    @property
    def dtype(self):
        """What the operator sees: a NumPy dtype, or `object`."""
        if self.kind in ("object", "nanoseconds"):
            return object
        if self.kind == "number":
            if pa.types.is_boolean(plain(self.arrow)):
                return np.dtype(np.bool_)
            if pa.types.is_floating(plain(self.arrow)):
                return np.dtype(np.float64)
            kind = plain(self.arrow)
            if self.wide:
                return np.dtype(np.int64)
            if kind.bit_width == 64:
                return np.dtype(np.uint64 if pa.types.is_unsigned_integer(kind) else np.int64)
            return np.dtype(np.uint32 if kind == pa.uint32() else np.int32)
        return np.dtype(np.int64)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def is_ticks(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_ranked(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_decimal(kind)
    )


def is_fine(kind: pa.DataType) -> bool:
    """Whether it counts nanoseconds."""
    return (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns"


def is_ordered(kind: pa.DataType) -> bool:
    """Whether it is a dictionary whose values come in an order of their own."""
    return pa.types.is_dictionary(kind) and kind.ordered


def plain(kind: pa.DataType) -> pa.DataType:
    """The type behind a dictionary or run-end encoding."""
    return kind.value_type if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) else kind


def input_of(op: Operator, place: int, column: str, kind: pa.DataType) -> Input:
    """How this column reaches this operator as its input number `place`."""
    behind = plain(kind)
    if is_ordered(kind) and op.own and place not in op.carried:
        if op.name in ORDERED:
            return Input(column, kind, "rank")
        if op.name == "top_k":
            raise InputTypeError(f"top_k of the column {column!r}: its categories have their own order; cast it to text or numbers")
    if is_number(behind):
        return Input(column, kind, "number", wide=not op.own and pa.types.is_integer(behind) and behind.bit_width < 64)
    keeps = op.result_like is not None
    if op.own and is_ticks(behind) and op.name in (NUMBERS if pa.types.is_duration(behind) else MOMENTS):
        raise InputTypeError(
            f"{op.name} of the column {column!r}: {behind} is no number. Times and durations have min, max, first, last, count and "
            "spread (a duration), and durations sum, mean and median too; for anything else cast the column to int64 first"
        )
    if op.own and not pa.types.is_null(behind) and (wanted := _wanted(op, behind)):
        raise InputTypeError(f"{op.name} takes {wanted}, and the column {column!r} is {behind}; convert it first")
    if place in op.carried and keeps:
        return Input(column, kind, "position")
    if op.own and pa.types.is_struct(behind) and (op.name in ORDERED or op.name == "top_k"):
        raise InputTypeError(f"{op.name} of the column {column!r}: values of {behind} have no order; take one of their fields")
    if is_ticks(behind) and (keeps or looks_at_nothing(op)):
        return Input(column, kind, "ticks")
    if looks_at_nothing(op):
        return Input(column, kind, "position")
    if is_ranked(behind) and keeps and op.own and op.selective:
        return Input(column, kind, "rank")
    if op.own and op.name in FINE and is_fine(behind):
        return Input(column, kind, "nanoseconds")
    return Input(column, kind, "object")


def _wanted(op: Operator, kind: pa.DataType) -> str | None:
    """What an operator takes instead of values of this type, which are no numbers; None where it takes them. The values
    themselves are refused too, but an empty column has none."""
    if op.name == "concat":
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        return None if text else "strings"
    if op.name.startswith("bit_"):
        return "whole numbers"
    if op.name == "spread" and pa.types.is_time(kind):
        return "numbers, dates and durations"
    if op.name in ARITHMETIC and not pa.types.is_decimal(kind) and not pa.types.is_temporal(kind):
        return "numbers"
    return "numbers, text, bytes, dates and times" if op.name in HASHED and pa.types.is_nested(kind) else None


def suited(bound: Bound, types: dict[str, pa.DataType]) -> Bound:
    """The operator for columns of these types: sums of decimals and durations are exact, and `exact=True` asks for nothing else."""
    op = bound.operator
    if not (op.own and op.name in ("sum", "mean") and ("exact", True) in op.params):
        return bound
    kind = plain(types[bound.columns[0]])
    exact = pa.types.is_decimal(kind) or pa.types.is_duration(kind)
    return replace(bound, operator=remake(op.name, {})) if exact else bound


def looks_at_nothing(op: Operator) -> bool:
    """Whether every input is only carried and none comes back: a count of values."""
    return op.result_like is None and len(op.carried) == (op.inputs or 0)
