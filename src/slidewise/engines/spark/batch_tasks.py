"""What a batch task does: one call for each partition, which holds whole keys.

    batches --held--> one table --run the plan--> the same rows and their results, slice by slice
    too many  --sorted runs on disk (batch_spill.py)--> key after key; a long key piece by piece (chunk_stream.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.spark.batch_spill import Runs
from slidewise.engines.spark.batch_worker import Job, answer, answers, needed_table, slices, sorted_rows, try_out
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.chunk_stream import LongKey
from slidewise.engines.spark.giant_pieces import finished
from slidewise.engines.spark.giant_rehearsal import prepare_pieces
from slidewise.engines.spark.travel import Parcel, prepared


class Partitions:
    """For `mapInArrow`: a task's rows and their results."""

    def __init__(self, parcel: Parcel):
        self.parcel = parcel

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job: Job = self.parcel.open()
        compiled(job)
        request = job.plan.request
        held: list[pa.RecordBatch] = []
        nbytes = 0
        with Runs([job.needed[name] for name in (*request.by, request.time)]) as runs:
            for batch in batches:
                if batch.num_rows:
                    held.append(batch)
                    nbytes += batch.nbytes
                if nbytes > job.held_bytes:
                    runs.add(pa.Table.from_batches(held))
                    held, nbytes = [], 0
            if len(runs) and held:
                runs.add(pa.Table.from_batches(held))
            if len(runs):
                for table in by_key(job, runs.merged()):
                    yield from slices(table)
            elif held:
                for table in answers(job, pa.Table.from_batches(held)):
                    yield from slices(table)


def compiled(job: Job) -> None:
    """See to it that this host has compiled what the plan needs."""
    prepared(job.plan, lambda: try_out(job.plan, job.types))


def by_key(job: Job, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Sorted rows, some at a time -> results: of whole keys together, of a key with too many rows piece by piece."""
    rest: pa.Table | None = None
    long: LongPieces | None = None
    for table in tables:
        rest = table if rest is None or not len(rest) else pa.concat_tables([rest, table])
        begin = last_key(job, rest)
        if begin and long is not None:
            end = next_key(job, rest)
            yield long.push(rest.slice(0, end), None)
            rest, begin, long = rest.slice(end), begin - end, None
        if begin:
            yield answer(job, rest.slice(0, begin))
            rest = rest.slice(begin)
        if len(rest) > job.chunk_rows:
            long = long or LongPieces(job)
            yield from long.whole_times(rest)
            rest = long.rest
    if long is not None:
        yield long.push(rest, None)
    elif rest is not None and len(rest):
        yield answer(job, rest)


class LongPieces:
    """A key that comes in pieces."""

    def __init__(self, job: Job):
        prepare_pieces(job.plan, job.types)
        self.job, self.work = job, Work.of(job.plan, job.types)
        self.key = LongKey(self.work)
        self.rest: pa.Table | None = None

    def whole_times(self, table: pa.Table) -> Iterator[pa.Table]:
        """Results for all rows but those of the last time, of which more may come: these are the rest."""
        times = self.work.times(needed_table(self.job, table))
        at = int(np.searchsorted(times, times[-1], side="left"))
        self.rest = table.slice(at)
        if at:
            yield self.push(table.slice(0, at), times[-1])

    def push(self, table: pa.Table, next_time) -> pa.Table:
        job, queries = self.job, None
        if job.query is not None:
            asking = table.column(job.query)
            queries, table = table.filter(asking), table.filter(pc.invert(asking))
        table, needed = sorted_rows(job, self.work, table)
        if queries is None:
            found = self.key.push(needed, next_time)
            riding = [table.column(k) for k in job.riding] if job.plan.request.emit == "event" else []
            return finished(job, found, riding, needed)
        found = self.key.push(needed, next_time, self.work.times(needed_table(job, queries)))
        return finished(job, found, [queries.column(k) for k in job.riding], needed)


def last_key(job: Job, table: pa.Table) -> int:
    """Where the rows of the last key begin, in rows sorted by key."""
    return len(table) - int(same_key(job, table, len(table) - 1).sum())


def next_key(job: Job, table: pa.Table) -> int:
    """Where the rows of the second key begin."""
    return int(same_key(job, table, 0).sum())


def same_key(job: Job, table: pa.Table, row: int) -> np.ndarray:
    """Which rows have the key of this one: null is null, NaN is NaN, and 0.0 is -0.0."""
    same = np.ones(len(table), bool)
    for name in job.plan.request.by:
        column = table.column(job.needed[name])
        value = column[row]
        if not value.is_valid:
            equal = pc.is_null(column)
        elif pa.types.is_floating(column.type) and value.as_py() != value.as_py():
            equal = pc.fill_null(pc.is_nan(column), False)
        else:
            equal = pc.fill_null(pc.equal(column, value), False)
        same &= equal.to_numpy(zero_copy_only=False)
    return same
