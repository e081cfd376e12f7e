"""Keys of any type -> small numbers (slots) that live as long as the key does.

Keys are equal as Spark and the data frames have it: null is a key, -0.0 is 0.0, NaN is NaN. A batch's keys are made distinct
by Arrow; only distinct ones meet the Python dict.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import InputError
from slidewise.live.given import keeps
from slidewise.planner.inputs import is_ticks, plain


class _NaN:
    """The one NaN among keys (a float NaN is not equal to itself)."""

    def __repr__(self) -> str:
        return "nan"


NAN = _NaN()
NOWHERE = object()
"""Equal to no key: a value that the column's type cannot hold, such as 1.5 among whole numbers."""


class KeyMap:
    """The keys of a bucket."""

    def __init__(self, types: list[pa.DataType]):
        self.types = [plain(kind) for kind in types]
        self._slots: dict = {}
        self._keys: list = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """One more than the largest slot."""
        return len(self._keys)

    def slots(self) -> np.ndarray:
        """All slots in use, in the order in which keys came."""
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    def codes(self, columns: list[pa.Array], rows: int) -> tuple[np.ndarray, list]:
        """(code of each row, distinct keys): codes count from 0 in the order of first appearance."""
        if not columns:
            return np.zeros(rows, np.int64), [()] if rows else []
        parts = [_distinct(column) for column in columns]
        if len(parts) == 1:
            return parts[0]
        total, size = None, 1
        for codes, values in parts:
            total = codes if total is None else total * len(values) + codes
            size *= max(len(values), 1)
            if size > 2**31:  # keep the product small
                _, total = np.unique(total, return_inverse=True)
                size = int(total.max()) + 1 if len(total) else 1
        _, firsts, total = np.unique(total, return_index=True, return_inverse=True)
        return total.astype(np.int64, copy=False), [tuple(values[codes[i]] for codes, values in parts) for i in firsts]

    def find(self, keys: list) -> np.ndarray:
        """Slots of keys; -1 where a key is not known."""
        get = self._slots.get
        return np.array([get(key, -1) for key in keys], np.int64)

    def add(self, keys: list) -> np.ndarray:
        """Slots of keys, new ones where a key is not known."""
        found = self.find(keys)
        for i in np.flatnonzero(found < 0):
            if self._free:
                slot = self._free.pop()
                self._keys[slot] = keys[i]
            else:
                slot = len(self._keys)
                self._keys.append(keys[i])
            self._slots[keys[i]] = slot
            found[i] = slot
        return found

    def drop(self, slots) -> None:
        for slot in slots:
            del self._slots[self._keys[slot]]
            self._keys[slot] = None
            self._free.append(int(slot))

    def key(self, slot: int):
        return self._keys[slot]

    def normal(self, key):
        """A key as a user gives it, in the form it has here; one that can be no value of the columns is equal to none."""
        if not self.types:
            return ()
        if len(self.types) > 1 and not isinstance(key, (tuple, list)):
            raise InputError(f"a key has {len(self.types)} parts, so give a tuple of them, not {key!r}")
        parts = (key,) if len(self.types) == 1 else tuple(key)
        if len(parts) != len(self.types):
            raise InputError(f"a key has {len(self.types)} parts, {key!r} has {len(parts)}")
        found = []
        for part, kind in zip(parts, self.types, strict=True):
            try:
                value = _values(pa.array([part], kind))[0]
                found.append(value if part is None or keeps(part, kind) else NOWHERE)
            except OverflowError:
                found.append(NOWHERE)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError) as error:
                raise InputError(f"{key!r} is not a key of type {', '.join(map(str, self.types))}: {error}") from error
        return found[0] if len(found) == 1 else tuple(found)

    def columns(self, slots) -> list[pa.Array]:
        """The keys of these slots as Arrow columns."""
        keys = [self._keys[slot] for slot in slots]
        parts = [keys] if len(self.types) == 1 else [[key[j] for key in keys] for j in range(len(self.types))]
        return [_arrow(part, kind) for part, kind in zip(parts, self.types, strict=True)]


def _distinct(column: pa.Array) -> tuple[np.ndarray, list]:
    column = _stored(column)
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 becomes 0.0
        # every NaN is the same key; Arrow tells them apart by their bits
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), _values(encoded.dictionary)


def _stored(column: pa.Array) -> pa.Array:
    """What an extension type stores (uuid: bytes): Arrow compares only that."""
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _values(column: pa.Array) -> list:
    column = _stored(column)
    if is_ticks(column.type):  # instants of any unit, exactly
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        values = [NAN if value is not None and value != value else value if value != 0 else 0.0 for value in values]
    return values


def _arrow(values: list, kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _arrow(values, kind.storage_type))
    if is_ticks(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array([float("nan") if value is NAN else value for value in values], kind)
