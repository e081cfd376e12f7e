"""Rows before the shuffle become blobs: one Arrow batch for each bucket and task.

The stateful operator hands Python its rows one by one (as tuples, then as pandas); a blob is one row however many events
it holds. It also makes the shuffle and the sort in front of the operator almost free.

    rows with a label --pack--> (label, kind, blob) --shuffle by label--> the stateful operator --> rows
                                                                                              '-> (blob) --unpack--> rows

Results go back as plain columns wherever pandas can carry their types without touching each value; otherwise (lists,
structs, maps, intervals) as blobs once more, and `unpack` makes rows of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from slidewise.engines.spark.buckets import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# No underscore in front: Spark makes named tuples of the rows, and those rename such columns.
LABEL, KIND, BLOB = "slidewise_label", "slidewise_kind", "slidewise_blob"
PACKED = f"{LABEL} int, {KIND} int, {BLOB} binary"
EVENTS, FLUSH, DROP, NOTES, KEYS, LOAD = range(6)
"""Kinds of packed rows: events of a bucket; the word that no more will come; and what moves state to other buckets
(rebucket.py): the state of an old one goes, notes for all, keys and events of a new one."""

BLOB_BYTES = 8 << 20
"""A blob is a row of Spark's: beyond some MB its buffers grow by doubling and copying."""
HELD_BYTES = 64 << 20
"""So much of a task's rows is held before blobs are cut."""


def packed(df: DataFrame, label: Column, schema: pa.Schema) -> DataFrame:
    """The columns of this schema as blobs, labelled. They go by place: Spark does not find names with dots in them again."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(schema.names)]
    return df.select(label.alias(LABEL), *columns).mapInArrow(Packer(schema), PACKED)


class Packer:
    """For `mapInArrow`: cuts a task's rows into blobs. The label comes first, then the events' columns as in `schema`."""

    def __init__(self, schema: pa.Schema, blob_bytes: int = BLOB_BYTES, held_bytes: int = HELD_BYTES):
        self.schema = schema
        self.blob_bytes = blob_bytes
        self.held_bytes = held_bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        nbytes = 0
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
                nbytes += batch.nbytes
            if nbytes >= self.held_bytes:
                yield self.packed(held)
                held, nbytes = [], 0
        if held:
            yield self.packed(held)

    def packed(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches)
        labels = table[LABEL].to_numpy()
        order = np.argsort(labels, kind="stable")
        events = table.drop_columns([LABEL]).rename_columns(self.schema.names)
        events = fitted(events, self.schema).take(pa.array(order)).combine_chunks()
        starts = np.flatnonzero(np.diff(labels[order], prepend=labels[order[0]] - 1))
        ends = np.append(starts[1:], len(order))
        step = max(1, int(self.blob_bytes * len(order) // max(1, events.nbytes)))
        found: list[tuple[int, bytes]] = []
        for start, end in zip(starts.tolist(), ends.tolist()):
            label = int(labels[order[start]])
            for at in range(start, end, step):
                found.append((label, blob_of(events.slice(at, min(step, end - at)))))
        return pa.RecordBatch.from_arrays(
            [
                pa.array([label for label, _ in found], pa.int32()),
                pa.array([EVENTS] * len(found), pa.int32()),
                pa.array([blob for _, blob in found], pa.binary()),
            ],
            names=[LABEL, KIND, BLOB],
        )


class Unpacker:
    """For `mapInArrow`: rows from blobs of one schema, in the types that Spark takes (it knows no lists of fixed size)."""

    def __init__(self, schema: pa.Schema, taken: pa.Schema):
        self.schema, self.taken = schema, taken

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(BLOB):
                if blob.is_valid:
                    rows = pa.ipc.read_record_batch(blob.as_buffer(), self.schema)
                    columns = [c if c.type.equals(f.type) else c.cast(f.type) for c, f in zip(rows.columns, self.taken)]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.taken)


def blob_of(table: pa.Table) -> bytes:
    """The rows as one Arrow batch without its schema: both ends know it."""
    batches = table.combine_chunks().to_batches()
    if not batches:
        batches = [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return batches[0].serialize().to_pybytes()


def table_of(blobs: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(blob), schema) for blob in blobs], schema)


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in exactly this schema: Spark writes the session's zone, and perhaps large strings."""
    if table.schema.equals(schema):
        return table
    return table.select(schema.names).cast(schema)
