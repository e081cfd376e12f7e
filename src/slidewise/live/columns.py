"""Arrow columns of a batch -> the arena's columns: times, inputs of operators, which rows count, what orders ties."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.live.spec import Step, StreamSpec
from slidewise.planner.inputs import Input, Nanoseconds, plain
from slidewise.planner.ranks import ranks_by_parts


def one_array(column) -> pa.Array:
    """A column as one array, its dictionary (if any) resolved."""
    kind = plain(column.type)
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks)
            if column.num_chunks
            else (pa.array([], column.type))
        )
    return column if column.type == kind else column.cast(kind)


def valid_bytes(array: pa.Array) -> np.ndarray | None:
    """1 where a value is not null; None where none is."""
    return None if array.null_count == 0 else pc.is_valid(array).to_numpy(zero_copy_only=False).view(np.uint8)


def time_ticks(array: pa.Array, spec: StreamSpec) -> tuple[np.ndarray, np.ndarray | None]:
    """(times in ticks, which of them are times at all or None for all): nulls, NaN and what leaves int64, or has no room there for
    the windows, are not."""
    values, good = _ticks(array, spec)
    low, high = spec.room
    fits = (values >= low) & (values <= high)
    if not fits.all():
        good = fits if good is None else good & fits
        values = np.where(fits, values, 0)
    return values, good


def _ticks(array: pa.Array, spec: StreamSpec) -> tuple[np.ndarray, np.ndarray | None]:
    clock = spec.clock
    good = None if array.null_count == 0 else pc.is_valid(array).to_numpy(zero_copy_only=False)
    if clock.kind == "real":
        values = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        if not finite.all():
            good = finite if good is None else good & finite
            values = np.where(finite, values, 0.0)
        return values, good
    if clock.kind == "instant":
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    values = array.to_numpy(zero_copy_only=False)
    if array.type == pa.uint64():
        fits = values < 2**63
        if not fits.all():
            good = fits if good is None else good & fits
    values = values.astype(np.int64, copy=False)
    if clock.scale != 1:
        limit = np.iinfo(np.int64).max // clock.scale
        fits = (values <= limit) & (values >= -limit)
        if not fits.all():
            good = fits if good is None else good & fits
        values = np.where(fits, values, 0) * clock.scale
    return values, good


def input_name(step: Step, found: Input) -> str:
    """The arena column an input is read from."""
    kind = found.kind if step.typed.compiled or found.kind in ("position", "nanoseconds") else "object"
    if kind == "number" and found.wide:
        kind = "wide"  # the library's operators read the same column as another type
    return "number" if kind == "position" else f"{kind}:{found.column}"


def input_dtype(name: str, found: Input) -> np.dtype:
    return np.dtype(object) if name.startswith("object:") else np.dtype(found.dtype)


def nanoseconds(array: pa.Array) -> list:
    """Times or durations as whole nanoseconds; under a null, 0."""
    return [Nanoseconds(value) for value in pc.fill_null(array.view(pa.int64()), 0).to_pylist()]


def input_values(name: str, found: Input, array: pa.Array) -> np.ndarray:
    """The values of a column as its operator reads them; where they are null, anything."""
    if name.startswith("object:"):
        values = np.empty(len(array), object)
        values[:] = array.to_pylist()
        return values
    if found.kind == "nanoseconds":
        values = np.empty(len(array), object)
        values[:] = nanoseconds(array)
        return values
    if found.kind == "ticks":
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(False if pa.types.is_boolean(array.type) else 0, array.type))
    return array.to_numpy(zero_copy_only=False).astype(found.dtype, copy=False)


def mask_columns(step: Step) -> tuple[str, ...]:
    """The columns whose nulls leave a row out. A null that is only carried is a value like others."""
    op = step.bound.operator
    carried = op.carried if len(op.carried) < len(step.inputs) else ()
    return tuple(found.column for place, found in enumerate(step.inputs) if place not in carried)


def mask_of(step: Step, column) -> np.ndarray | None:
    """1 for each row that counts; None where all do. column(name) gives an Arrow array."""
    mask = None
    for name in mask_columns(step):
        valid = valid_bytes(column(name))
        if valid is not None:
            mask = valid if mask is None else mask & valid
    if step.bound.where is not None:
        chosen = column(step.bound.where)
        yes = pc.fill_null(chosen, False).to_numpy(zero_copy_only=False).view(np.uint8)
        mask = yes if mask is None else mask & yes
    return mask


def order_words(table: pa.Table, arrival: bool) -> list[np.ndarray]:
    """Words that order rows by the table's columns, first column first: nulls first, NaN last, the two zeros as one. Where arrival
    has no say, what tells zeros apart after all comes at the end: words are then never equal for values that differ."""
    words: list[np.ndarray] = []
    signs: list[np.ndarray] = []
    for column in table.columns:
        array = one_array(column)
        if array.null_count:
            words.append(pc.is_valid(array).to_numpy(zero_copy_only=False).astype(np.int64))
        words.append(_words(array))
        if pa.types.is_floating(array.type) and not arrival:
            values = _floats(array)
            signs.append((~np.signbit(values) | (values != 0)).astype(np.int64))
    return words + signs


def _floats(array: pa.Array) -> np.ndarray:
    return pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)


def _words(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_floating(kind):
        values = _floats(array)
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    if pa.types.is_boolean(kind):
        return pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_integer(array.type):
        values = pc.fill_null(array, pa.scalar(0, array.type)).to_numpy(zero_copy_only=False)
        return values.view(np.int64) ^ np.int64(-(2**63)) if array.type == pa.uint64() else values.astype(np.int64)
    try:
        ranks = pc.rank(array, tiebreaker="dense")
    except pa.ArrowNotImplementedError:
        return ranks_by_parts(array.to_pylist()).astype(np.int64)
    return ranks.to_numpy(zero_copy_only=False).astype(np.int64)
