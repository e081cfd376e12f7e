"""Events already seen, by id: two words an event in an open-addressing table, forgotten when the event is.

A single id column of whole numbers or instants is compared exactly, as (key, id). Other ids are compared by 128 bits of
their key and values.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry, inlined


def id_words(slots: np.ndarray, columns: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Two words for each event, equal exactly when key and id are."""
    if len(columns) == 1 and _whole(columns[0].type):  # by the type alone: the same id has the same words in every batch
        kind = pa.int32() if columns[0].type.bit_width == 32 else pa.int64()
        column = columns[0].view(kind) if pa.types.is_temporal(columns[0].type) else columns[0].cast(pa.int64())
        if column.null_count:  # null is an id too: with a key's number that no key has
            slots = np.where(pc.is_null(column).to_numpy(zero_copy_only=False), -2 - slots, slots)
            column = pc.fill_null(column, pa.scalar(0, column.type))
        return slots, column.to_numpy(zero_copy_only=False).astype(np.int64)
    a = np.zeros(len(slots), np.uint64)
    b = slots.astype(np.uint64)
    for column in columns:
        x, y = _hash(column)
        mix_words(a, b, x, y)
    return (b & np.uint64(2**62 - 1)).view(np.int64), a.view(np.int64)


def _whole(kind: pa.DataType) -> bool:
    return (pa.types.is_integer(kind) and kind != pa.uint64()) or (
        pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    )


def _hash(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """128 bits for each value, the same in every process."""
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is 0.0
    if pa.types.is_large_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        column = pc.cast(column, pa.binary())
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        try:
            column = pc.cast(column, pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            column = pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string())
    n = len(column)
    x, y = np.empty(n, np.uint64), np.empty(n, np.uint64)
    buffers = column.buffers()
    offsets = (
        np.frombuffer(buffers[1], np.int32, n + 1 + column.offset)[column.offset :] if n else np.zeros(1, np.int32)
    )
    data = np.frombuffer(buffers[2], np.uint8) if n and buffers[2] is not None else np.zeros(1, np.uint8)
    hash_bytes(data, offsets, x, y)
    if column.null_count:
        missing = pc.is_null(column).to_numpy(zero_copy_only=False)
        x[missing], y[missing] = 1, 2
    return x, y


@inlined
def _mix(h):
    """The finaliser of MurmurHash3 (public domain): every bit depends on every bit."""
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


@entry
def hash_bytes(data, offsets, x, y):
    for i in range(len(x)):
        a, b = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
        for j in range(offsets[i], offsets[i + 1]):
            c = np.uint64(data[j])
            a = (a ^ c) * np.uint64(0x100000001B3)
            b = (b + c + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            b ^= b >> np.uint64(29)
        n = np.uint64(offsets[i + 1] - offsets[i])
        x[i], y[i] = _mix(a ^ n), _mix(b + n)


@entry
def mix_words(a, b, x, y):
    for i in range(len(a)):
        a[i] = _mix(a[i] * np.uint64(31) + x[i])
        b[i] = _mix(b[i] * np.uint64(37) + y[i] + np.uint64(1))


class Seen:
    """The ids of events within retention, each with its event's time: rows of (first word + 1 or 0 for none, second word, time)."""

    def __init__(self):
        self._rows = np.zeros((1024, 3), np.int64)
        self.count = 0

    def add(self, first, second, times, horizon) -> np.ndarray:
        """A byte for each event, in the order given: 1 where it is new. Ids of events older than the horizon are forgotten."""
        if 5 * (self.count + len(first)) > 3 * len(self._rows):
            self._rebuild(len(first), horizon)
        new = np.zeros(len(first), np.uint8)
        self.count += insert_ids(self._rows, first, second, ordered_bits(times), ordered_bits(horizon), new)
        return new

    def known(self, first, second, horizon) -> np.ndarray:
        """1 for each event whose id is known."""
        found = np.zeros(len(first), np.uint8)
        find_ids(self._rows, first, second, ordered_bits(horizon), found)
        return found

    def _rebuild(self, more: int, horizon) -> None:
        old = self._rows[(self._rows[:, 0] != 0) & (self._rows[:, 2] >= ordered_bits(horizon))]
        size = 1024
        while 5 * (len(old) + more) > 2 * size:
            size *= 2
        self._rows = np.zeros((size, 3), np.int64)
        columns = np.ascontiguousarray(old.T)
        new = np.zeros(len(old), np.uint8)
        self.count = insert_ids(self._rows, columns[0] - 1, columns[1], columns[2], ordered_bits(horizon), new)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes


def ordered_bits(times):
    """Times as int64 in the same order."""
    times = np.asarray(times)
    if times.dtype.kind != "f":
        return times.astype(np.int64, copy=False)
    bits = times.astype(np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


@inlined
def _home(a, b, mask):
    return np.int64(_mix(np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)) & np.uint64(mask))


@entry
def insert_ids(rows, first, second, times, horizon, new):
    mask = len(rows) - 1
    added = 0
    for i in range(len(first)):
        at = _home(first[i], second[i], mask)
        while rows[at, 0] != 0 and not (rows[at, 0] == first[i] + 1 and rows[at, 1] == second[i]):
            at = (at + 1) & mask
        if rows[at, 0] == 0:
            rows[at, 0], rows[at, 1] = first[i] + 1, second[i]
            added += 1
        elif rows[at, 2] >= horizon:
            continue
        rows[at, 2] = times[i]
        new[i] = 1
    return added


@entry
def find_ids(rows, first, second, horizon, found):
    mask = len(rows) - 1
    for i in range(len(first)):
        at = _home(first[i], second[i], mask)
        while rows[at, 0] != 0:
            if rows[at, 0] == first[i] + 1 and rows[at, 1] == second[i]:
                found[i] = rows[at, 2] >= horizon
                break
            at = (at + 1) & mask
