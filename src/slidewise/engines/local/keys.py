"""Keys of any type as small numbers, and times as ticks.

Equal keys have equal codes. A null is a key of its own; -0.0 is 0.0 and NaN is NaN, as in pandas, Polars and Spark.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.local.columns import alike, one_array
from slidewise.errors import InputError, InputTypeError
from slidewise.planner.inputs import plain
from slidewise.windows.clock import Clock


@dataclass(frozen=True)
class Keys:
    """The key of each row as a number below `count`; no codes where there is but one key."""

    codes: np.ndarray | None
    count: int


def encode(columns: list) -> Keys:
    """Codes of the rows' keys, from one or several columns."""
    if not columns:
        return Keys(None, 1)
    codes, count = _codes(columns[0])
    for column in columns[1:]:
        more, by = _codes(column)
        codes, count = codes.astype(np.int64) * by + more, count * by
        if count > 2 * len(codes) + 1024:
            codes, count = _distinct(pa.array(codes))
    return Keys(codes, count)


def check_key(kind: pa.DataType) -> None:
    """Complain of a type whose values cannot be told apart."""
    if pa.types.is_nested(kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind):
        raise InputTypeError(f"a key of type {kind} cannot be compared; take its fields apart into columns")


def _stored(array: pa.Array) -> pa.Array:
    """Values that Arrow compares: what an extension type stores, decimals in their common width."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_decimal(array.type) and array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    return array


def _codes(column) -> tuple[np.ndarray, int]:
    kind = plain(column.type)
    check_key(kind)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int32), 1
    array = _stored(one_array(column))
    kind = array.type
    if pa.types.is_floating(kind):
        array = pc.add(array.cast(pa.float64()), 0.0)
        missing = pc.is_nan(array)
        if pc.any(missing).as_py():  # every NaN is the same key, whatever its bits; a null stays a null
            array = pc.if_else(missing, pa.scalar(np.nan), array)
    if pa.types.is_integer(kind) and array.null_count == 0 and len(array):
        numbers = array.to_numpy(zero_copy_only=False)
        if numbers.dtype.itemsize < 8:  # 100 - -100 leaves int8
            numbers = numbers.astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low <= 2 * len(numbers) + 1024:
            codes = np.empty(len(numbers), np.int32)
            return np.subtract(numbers, numbers.dtype.type(low), out=codes, casting="unsafe"), high - low + 1
    return _distinct(array)


def _distinct(array: pa.Array) -> tuple[np.ndarray, int]:
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    return alike(encoded.indices.to_numpy(zero_copy_only=False)), len(encoded.dictionary)


def missing_time(name: str, missing: np.ndarray) -> InputError:
    """missing: a truth value for each row."""
    rows = np.flatnonzero(missing)
    return InputError(
        f"time column {name!r} has {len(rows)} null(s), the first in row {rows[0]}; "
        "a row without a time has no place in any window: drop or fill these rows first"
    )


def times_of(column, clock: Clock, name: str, missing: int | None = None) -> np.ndarray:
    """A time column as ticks of the clock (int64) or float64. A missing time is an error; one that the number `missing` stands for
    is left to whoever sorts them, where they are not counted in other ticks."""
    if column.null_count:
        raise missing_time(name, pc.is_null(column).to_numpy(zero_copy_only=False))
    array = one_array(column)
    kind = array.type
    if clock.kind == "real":
        try:
            values = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid as error:
            raise InputError(f"time column {name!r}: {error}") from None
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError(f"time column {name!r} is {values[row]} in row {row}; times must be finite numbers")
        return alike(values)
    if clock.kind == "whole":
        try:
            return alike(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid as error:
            raise InputError(f"time column {name!r}: {error}") from None
    values = array.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_numpy(zero_copy_only=False)
    values = alike(values.astype(np.int64, copy=False))
    scale = Clock.of(kind, name).tick_ns // clock.tick_ns
    if scale == 1:
        return values
    if missing is not None and len(values) and values.min() == missing:
        raise missing_time(name, values == missing)
    limit = np.iinfo(np.int64).max // scale
    if len(values) and (values.max() > limit or values.min() < -limit):
        raise InputError(
            f"time column {name!r}: these times do not fit int64 at the tick its windows need "
            f"({clock.tick_ns} ns); use a coarser window"
        )
    return values * scale
