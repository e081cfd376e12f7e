"""On the way to the chunks of a giant key: a task's rows are cut by time and packed, one Arrow blob a chunk.

    rows of a task --times--> own chunk, and the next one's too if they lie just before it --> (label, kind, blob)

Cutting is done here and not by Spark: a row that two chunks want would have to be doubled there, and a shuffle of some
blobs costs less than one of millions of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from slidewise.engines.local.keys import times_of
from slidewise.engines.spark.batch_types import fitted
from slidewise.engines.spark.batch_worker import Job
from slidewise.engines.spark.travel import Parcel

LABEL, KIND, BLOB = "slidewise_label", "slidewise_kind", "slidewise_blob"
PACKED = f"{LABEL} int, {KIND} int, {BLOB} binary"
BEFORE, OWN = 0, 1
"""Kinds of blobs: rows that lie just before a chunk; its own."""
HELD_BYTES = 4 << 20
"""So much of a task's rows is held before blobs are cut."""
BLOB_BYTES = 3 << 17
"""A blob is a row of Spark's, and an array of bytes in the JVM: from half a MB on its garbage collector treats them as giants, with
fresh memory for each."""


@dataclass(frozen=True)
class Cuts:
    """Where a key is cut, in ticks of the plan's clock."""

    times: np.ndarray
    """A new chunk begins at each."""
    labels: tuple[int, ...]
    """Of the chunks, one more than there are cuts."""
    since: np.ndarray | None = None
    """For each cut the time from which on the chunk behind it wants the rows before it, too; None: none of them."""

    def placed(self, times: np.ndarray, doubled: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row's chunk, and which rows the next chunk wants too. doubled: which may be sent twice."""
        chunk = np.searchsorted(self.times, times, side="right")
        if self.since is None:
            return chunk, np.zeros(0, np.int64)
        # behind the last cut there is no next chunk
        wanted = times >= np.append(self.since, times.max(initial=0))[chunk]
        wanted &= chunk < len(self.times)
        return chunk, np.flatnonzero(wanted if doubled is None else wanted & doubled)


class Pack:
    """For `mapInArrow`: rows -> blobs. With several keys, the last column is the number of each row's key."""

    def __init__(self, parcel: Parcel):
        self.parcel = parcel
        """Of a job, and the cuts of each key."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        nbytes = 0
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
                nbytes += batch.nbytes
            if nbytes >= HELD_BYTES:
                yield as_rows(self.packed(pa.Table.from_batches(held)))
                held, nbytes = [], 0
        if held:
            yield as_rows(self.packed(pa.Table.from_batches(held)))

    def packed(self, table: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
        job, keys = self.parcel.open()
        if len(keys) == 1:
            yield from cut(job, keys[0], table)
            return
        number = table.column(table.num_columns - 1).to_numpy()
        rows = table.select(range(table.num_columns - 1))
        for k, cuts in enumerate(keys):
            mine = rows.filter(pa.array(number == k))
            if len(mine):
                yield from cut(job, cuts, mine)


def without(job: Job, places: Collection[int]) -> Job:
    """The job for rows that lack the columns of these places; of what it needs, only the others are there."""
    def moved(place: int) -> int:
        return place - sum(gone < place for gone in places)

    needed = {name: moved(place) for name, place in job.needed.items() if place not in places}
    return replace(job, needed=needed, query=None if job.query is None else moved(job.query))


def cut(job: Job, cuts: Cuts, table: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    """(label, kind, rows) of rows of one key."""
    doubled = None
    if job.query is not None:  # a query is answered in its own chunk only
        doubled = ~table.column(job.query).to_numpy().astype(bool)
    chunk, twice = cuts.placed(times_of_rows(job, table), doubled)
    for number, part in split(table.take(pa.array(twice)), chunk[twice] + 1) if len(twice) else ():
        yield cuts.labels[number], BEFORE, part
    for number, part in split(table, chunk):
        yield cuts.labels[number], OWN, part


def times_of_rows(job: Job, table: pa.Table) -> np.ndarray:
    time = job.plan.request.time
    return times_of(fitted(table.column(job.needed[time]), job.types.field(time).type), job.plan.clock, time)


def split(table: pa.Table, numbers: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each number, in the order they have; not copied where they lie together."""
    if (numbers[1:] < numbers[:-1]).any():
        small = numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers  # which NumPy sorts by radix
        order = np.argsort(small, kind="stable")
        table, numbers = table.take(pa.array(order)), numbers[order]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(numbers)]):
        yield int(numbers[a]), table.slice(a, b - a)


def as_rows(parts: Iterable[tuple[int, int, pa.Table]]) -> pa.RecordBatch:
    """One Spark row for each blob."""
    sink = pa.BufferOutputStream()
    labels, kinds, ends = [], [], [0]
    for label, kind, rows in parts:
        for part in in_parts(rows):
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part)
            labels.append(label)
            kinds.append(kind)
            ends.append(sink.tell())
    data = pa.Array.from_buffers(pa.binary(), len(labels), [None, pa.py_buffer(np.array(ends, np.int32)), sink.getvalue()])
    return pa.RecordBatch.from_arrays([pa.array(labels, pa.int32()), pa.array(kinds, pa.int32()), data], names=[LABEL, KIND, BLOB])


def in_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Neighbouring rows of not too many bytes."""
    step = max(1, BLOB_BYTES * len(table) // max(1, table.nbytes))
    for a in range(0, len(table), step):
        yield table.slice(a, step).combine_chunks()


def of_labels(batches: Iterable[pa.RecordBatch]) -> dict[int, dict[int, list[pa.Table]]]:
    """Packed rows -> tables by label and kind."""
    found: dict[int, dict[int, list[pa.Table]]] = {}
    for batch in batches:
        for row, (label, kind) in enumerate(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist())):
            found.setdefault(label, {}).setdefault(kind, []).append(unpacked(batch.column(2)[row]))
    return found


def unpacked(blob: pa.BinaryScalar) -> pa.Table:
    return pa.ipc.open_stream(blob.as_buffer()).read_all()
