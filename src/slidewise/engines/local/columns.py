"""An Arrow column -> what an operator reads; what it gives -> an Arrow column of the type a user expects."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.planner.inputs import Input, plain


def one_array(column) -> pa.Array:
    """A column as one array, its dictionary (if any) resolved."""
    kind = plain(column.type)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column if column.type == kind else column.cast(kind)


def valid_bytes(array: pa.Array) -> np.ndarray | None:
    """A byte for each value: 1 where it is not null. None where none is null."""
    if array.null_count == 0:
        return None
    return pc.is_valid(array).to_numpy(zero_copy_only=False).view(np.uint8)


class Column:
    """One column on its way into an operator: `values` by row (NumPy, or a Python list), and how to get a result back."""

    def __init__(self, spec: Input, array: pa.Array):
        self.spec = spec
        self.array = array
        self.valid = valid_bytes(array)
        self.ranked: pa.Array | None = None
        self.values = getattr(self, f"_{spec.kind}")()

    def _number(self):
        filled = self.array if self.array.null_count == 0 else pc.fill_null(self.array, _zero(self.array.type))
        return filled.to_numpy(zero_copy_only=False).astype(self.spec.dtype, copy=False)

    def _ticks(self):
        filled = self.array
        width = pa.int32() if filled.type.bit_width == 32 else pa.int64()
        viewed = filled.view(width)
        if viewed.null_count:
            viewed = pc.fill_null(viewed, 0)
        return viewed.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)

    def _rank(self):
        encoded = pc.dictionary_encode(self.array)
        by_order = pc.sort_indices(encoded.dictionary)
        self.ranked = encoded.dictionary.take(by_order)
        place = np.empty(len(by_order), np.int64)
        place[by_order.to_numpy()] = np.arange(len(by_order))
        if len(place) == 0:
            return np.zeros(len(self.array), np.int64)
        return place[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]

    def _position(self):
        return np.arange(len(self.array), dtype=np.int64)

    def _object(self):
        return self.array.to_pylist()

    def give_back(self, values: np.ndarray, ok: np.ndarray | None) -> pa.Array:
        """Results that keep this column's type."""
        kind, mask = self.array.type, None if ok is None else ok == 0
        if self.spec.kind == "number":
            return pa.array(values, mask=mask).cast(kind) if kind != pa.bool_() else pa.array(values != 0, mask=mask)
        if self.spec.kind == "ticks":
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return pa.array(values, mask=mask).cast(width).view(kind)
        places = pa.array(values, mask=mask)
        return (self.ranked if self.spec.kind == "rank" else self.array).take(places)


def _zero(kind: pa.DataType):
    return pa.scalar(False if pa.types.is_boolean(kind) else 0, kind)
