"""An Arrow column -> what an operator reads; what it gives -> an Arrow column of the type a user expects."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry
from slidewise.algebra.layout import Layout
from slidewise.errors import InputError, InputTypeError
from slidewise.live.columns import nanoseconds
from slidewise.planner.inputs import Input, plain


def one_array(column) -> pa.Array:
    """A column as one array, its dictionary (if any) resolved."""
    kind = plain(column.type)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column if column.type == kind else column.cast(kind)


def ordered_categories(column, name: str) -> pa.DictionaryArray:
    """A column of ordered categories as one array, its codes in their order."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if any(not chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks[1:]):
        raise InputError(f"column {name!r} has ordered categories that differ from chunk to chunk, so their order is not known")
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def raw(array: pa.Array, dtype) -> np.ndarray:
    """The numbers of a fixed-width column as they lie in memory, no copy; under a null lies any number."""
    if not len(array):
        return np.empty(0, dtype)
    return alike(np.frombuffer(array.buffers()[1], dtype, len(array) + array.offset)[array.offset :])


def alike(values: np.ndarray) -> np.ndarray:
    """The same memory, not marked as read-only. Numba compiles every function once more for arrays with that mark, and
    whether Arrow's memory has it depends on where it came from. Nothing writes into columns."""
    return values if values.flags.writeable else np.asarray(_Memory(values))


class _Memory:
    def __init__(self, values: np.ndarray):
        self.values = values  # keeps the memory alive
        known = values.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def valid_bytes(array: pa.Array) -> np.ndarray | None:
    """A byte for each value: 1 where it is not null. None where none is null."""
    if array.null_count == 0:
        return None
    return pc.is_valid(array).to_numpy(zero_copy_only=False).view(np.uint8)


def truth_bytes(array: pa.Array, what: str) -> np.ndarray:
    """A byte for each value: 1 where it is true. Null is false."""
    if not pa.types.is_boolean(array.type):
        raise InputTypeError(f"{what} must be a column of truth values, not {array.type}")
    filled = array if array.null_count == 0 else pc.fill_null(array, False)
    return filled.to_numpy(zero_copy_only=False).view(np.uint8)


class Column:
    """One column on its way into an operator: `values` by row (NumPy, or a Python list), and how to get results back."""

    def __init__(self, spec: Input, array: pa.Array):
        self.spec = spec
        self.array = array
        self.valid = valid_bytes(array)
        self.ranked: pa.Array | None = None
        self.values = getattr(self, f"_{spec.kind}")()

    def _number(self):
        kind = self.array.type
        if pa.types.is_boolean(kind):
            return truth_bytes(self.array, self.spec.column).view(np.bool_)
        return raw(self.array, kind.to_pandas_dtype()).astype(self.spec.dtype, copy=False)

    def _ticks(self):
        return raw(self.array, np.int32 if self.array.type.bit_width == 32 else np.int64).astype(np.int64, copy=False)

    def _rank(self):
        if pa.types.is_dictionary(self.array.type):  # ordered categories
            self.ranked = self.array.dictionary
            return pc.fill_null(self.array.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        kind = self.array.type
        narrow = pa.types.is_decimal(kind) and kind.bit_width < 128  # which Arrow does not compare
        encoded = pc.dictionary_encode(self.array.cast(pa.decimal128(kind.precision, kind.scale)) if narrow else self.array)
        by_order = pc.sort_indices(encoded.dictionary)
        self.ranked = encoded.dictionary.take(by_order).cast(kind)
        place = np.zeros(max(len(by_order), 1), np.int64)
        place[by_order.to_numpy()] = np.arange(len(by_order))
        return place[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]

    def _position(self):
        return np.arange(len(self.array), dtype=np.int64)

    def _nanoseconds(self):
        return nanoseconds(self.array)

    def _object(self):
        return self.array.to_pylist()

    def give_back(self, values: np.ndarray, ok: np.ndarray | None) -> pa.Array:
        """Results that keep this column's type; ok: a byte for each, 0 where there is none."""
        kind = self.array.type
        if self.spec.kind in ("number", "ticks") and not pa.types.is_boolean(kind):
            ticks = np.int32 if kind.bit_width == 32 else np.int64
            width = ticks if self.spec.kind == "ticks" else kind.to_pandas_dtype()
            return fixed_width(values.astype(width, copy=False), ok, kind)
        if self.spec.kind == "number":
            return truths(values, ok)
        places = fixed_width(values, ok, pa.int64())
        return (self.ranked if self.spec.kind == "rank" else self.array).take(places)


# ---- results -------------------------------------------------------------------------------------------------------------


def fixed_width(values: np.ndarray, ok: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Numbers and a byte for each that says whether it counts -> an Arrow array over the same memory."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(ok), pa.py_buffer(values)])


def truths(values: np.ndarray, ok: np.ndarray | None) -> pa.Array:
    bits = np.packbits(values.view(np.uint8) != 0, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap(ok), pa.py_buffer(bits)])


def bitmap(ok: np.ndarray | None) -> pa.Buffer | None:
    """Bytes -> Arrow's validity bits; None where all are valid."""
    if ok is None or all_set(ok):
        return None
    return pa.py_buffer(np.packbits(ok, bitorder="little"))


@entry
def all_set(ok):
    for i in range(len(ok)):
        if not ok[i]:
            return False
    return True


def result_array(layout: Layout, leaves: tuple, ok: np.ndarray | None) -> pa.Array:
    """The results of an operator whose result has this layout: numbers, structs, or lists of fixed width."""
    if layout.width is not None:
        numbers = fixed_width(leaves[0], None, pa.from_numpy_dtype(leaves[0].dtype))
        lists = pa.FixedSizeListArray.from_arrays(numbers, layout.width)
        buffers = [bitmap(ok)]
        return pa.Array.from_buffers(lists.type, len(lists), buffers, children=[numbers]) if buffers[0] else lists
    remaining = iter(leaves)

    def build(shape, valid):
        if not isinstance(shape, tuple):
            values = next(remaining)
            return (
                truths(values, valid)
                if shape.dtype == np.bool_
                else fixed_width(values, valid, pa.from_numpy_dtype(shape.dtype))
            )
        names = getattr(shape[0], "_fields", None) or [str(k) for k in range(len(shape) - 1)]
        children = [build(part, None) for part in shape[1:]]
        mask = None if valid is None else pa.array(valid == 0)
        return pa.StructArray.from_arrays(children, list(names), mask=mask)

    return build(layout.shape, ok)
