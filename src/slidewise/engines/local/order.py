"""Sort once by (key, time, order): one permutation for all windows and aggregates."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry
from slidewise.errors import InputError
from slidewise.planner.inputs import plain
from slidewise.windows.clock import Clock


@dataclass(frozen=True)
class Ordered:
    """Rows sorted by (key, time, order)."""

    permutation: np.ndarray | None
    """Sorted place -> row; None where the rows came sorted."""
    times: np.ndarray
    """Sorted ticks."""
    offsets: np.ndarray
    """Where each key begins, and the number of rows at the end."""

    def take(self, values: np.ndarray) -> np.ndarray:
        """Values by row -> by sorted place."""
        return values if self.permutation is None else values[self.permutation]

    def give_back(self, values: np.ndarray) -> np.ndarray:
        """Values by sorted place -> by row."""
        if self.permutation is None:
            return values
        out = np.empty_like(values)
        out[self.permutation] = values
        return out


def times_of(column: pa.ChunkedArray, clock: Clock, name: str) -> np.ndarray:
    """The time column as ticks (int64) or float64. A missing time is an error."""
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy())[0])
        raise InputError(f"time column {name!r} has {column.null_count} null(s), the first in row {row}; "
                         "a row without a time has no place in any window: drop or fill these rows first")
    kind = plain(column.type)
    if column.type != kind:
        column = column.cast(kind)
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    if clock.kind == "real":
        values = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError(f"time column {name!r} is {values[row]} in row {row}; times must be finite numbers")
        return values
    if clock.kind == "whole":
        return array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    values = array.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_numpy(zero_copy_only=False)
    if clock.scale != 1:
        values = values.astype(np.int64)
        limit = np.iinfo(np.int64).max // clock.scale
        if len(values) and (values.max() > limit or values.min() < -limit):
            raise InputError(f"time column {name!r}: these times do not fit int64 at the tick the windows need "
                             f"({clock.tick_ns} ns); use a coarser window")
        return values * clock.scale
    return values.astype(np.int64, copy=False)


def key_codes(columns: list[pa.ChunkedArray]) -> tuple[np.ndarray, int]:
    """(code of each row, number of codes): equal keys have equal codes; null is a key, -0.0 is 0.0, NaN is NaN."""
    total, size = None, 1
    for column in columns:
        codes, count = _codes(column)
        if total is None:
            total, size = codes, count
            continue
        if size * count > 2**62:
            raise InputError("too many distinct keys")
        total, size = total.astype(np.int64) * count + codes, size * count
        if size > 4 * len(codes) + 1024:
            total, size = _codes(pa.chunked_array([pa.array(total)]))
    return total, size


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    kind = plain(column.type)
    if pa.types.is_floating(kind):
        column = pc.add(column.cast(kind), pa.scalar(0.0, kind))
    if kind != column.type and not pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    if pa.types.is_nested(kind):
        raise InputError(f"a key of type {kind} is not supported; take its fields apart")
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(encoded.type):
        encoded = encoded.cast(kind)
    encoded = pc.dictionary_encode(encoded, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def sort(table: pa.Table, time: str, by: tuple[str, ...], order: tuple[str, ...], clock: Clock) -> Ordered:
    """Bring the rows into the order of (key, time, order, row)."""
    times = times_of(table.column(time), clock, time)
    n = len(times)
    codes, count = key_codes([table.column(name) for name in by]) if by else (np.zeros(n, np.int32), 1)
    permutation = None
    ranks = [_ranks(table.column(name)) for name in reversed(order)]
    if ranks or not in_order(codes, times):
        permutation = np.lexsort((*ranks, times, codes))
        times, codes = times[permutation], codes[permutation]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=offsets[1:])
    if not by:
        offsets = np.array([0, n], np.int64)
    return Ordered(permutation, times, offsets)


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    return pc.rank(column, sort_keys="ascending", null_placement="at_start", tiebreaker="dense").to_numpy()


@entry
def in_order(codes, times):
    """Whether rows come sorted by (code, time)."""
    for i in range(1, len(times)):
        if codes[i] < codes[i - 1] or (codes[i] == codes[i - 1] and times[i] < times[i - 1]):
            return False
    return True
