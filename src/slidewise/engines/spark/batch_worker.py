"""The plan on a table of whole keys, inside a task.

Spark shuffles but does not sort: the plan sorts key and time by itself, in compiled code, and Spark's sort of whole rows
costs more than that. Columns that only ride along are never copied: results are put beside the batches that came.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.local.keys import Keys, encode
from slidewise.engines.local.order import arrange
from slidewise.engines.local.run import run, run_as_of
from slidewise.engines.local.threads import Workers
from slidewise.engines.spark.batch_types import fitted
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.travel import examples, quietly
from slidewise.planner.plan import Plan, make_plan

ITSELF = "itself: "
"""In front of a key's name: the column that the key stands for (text stands for structs), which is what comes out."""
OUT_BYTES = 4 << 20
"""About so much goes back to Spark at once."""
OUT_ROWS = 1 << 16
PART_ROWS = 1 << 16
"""Keys are worked on together up to about so many rows: what they need then stays in the processor's cache, and the memory of
one part serves the next. Fresh memory costs more than the windows do."""


@dataclass(frozen=True)
class Job:
    """Everything a task needs beside its rows. Places count the columns that come in."""

    plan: Plan
    needed: dict[str, int]
    """Columns the plan reads, and their places."""
    types: pa.Schema
    """Their types as the plan knows them."""
    riding: tuple[int, ...]
    """Places of the columns that come out again, in front of the results (emit="event")."""
    results: tuple[tuple[str, pa.DataType], ...]
    """Columns of the plan's answer that come out, and their types."""
    query: int | None = None
    """as_of: the place of the column that is true for queries."""
    held_bytes: int = 256 << 20
    """So much of a partition is held in memory."""
    chunk_rows: int = 1 << 20
    """A key of more rows than this is worked on piece by piece, where its partition does not fit."""

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out, inside the road."""
        return [f"r{k}" for k in range(len(self.riding) + len(self.results))]


def answers(job: Job, table: pa.Table) -> Iterator[pa.Table]:
    """Rows of whole keys in any order -> what comes out for them, some keys at a time."""
    if not job.plan.request.by or table.num_columns > len(job.results):  # to move the rows would cost more than it saves
        yield answer(job, table)
        return
    for part in in_parts_of_keys(job, table.combine_chunks()):
        yield answer(job, part)


def in_parts_of_keys(job: Job, table: pa.Table) -> Iterator[pa.Table]:
    """All rows of some keys, then of others; each key's rows in the order they had."""
    keys = encode([fitted(table.column(job.needed[name]), job.types.field(name).type) for name in job.plan.request.by])
    rows = np.bincount(keys.codes, minlength=keys.count)
    part_of_key = (np.cumsum(rows) - rows) // PART_ROWS
    if part_of_key[-1] == 0:
        yield table
        return
    part = part_of_key.astype(np.uint16 if part_of_key[-1] < 1 << 16 else np.int64)[keys.codes]
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part))
    for a, b in pairwise([0, *ends.tolist()]):
        if b > a:
            yield table.take(pa.array(order[a:b]))


def answer(job: Job, table: pa.Table) -> pa.Table:
    """Rows of whole keys in any order -> what comes out for them."""
    request = job.plan.request
    if job.query is None:
        found = run(job.plan, needed_table(job, table), threads=1)
    else:
        asking = table.column(job.query)
        queries, data = table.filter(asking), table.filter(pc.invert(asking))
        asked = needed_table(job, queries).select([request.time, *request.by])
        found, table = run_as_of(job.plan, asked, needed_table(job, data), threads=1), queries
    columns = [table.column(place) for place in job.riding] if request.emit == "event" else []
    for name, kind in job.results:
        column = found.column(name)
        if ITSELF + name in job.needed:
            column = _stood_for(column, table.column(job.needed[name]), table.column(job.needed[ITSELF + name]))
        columns.append(fitted(column, kind))
    return pa.table(columns, names=job.names)


def needed_table(job: Job, table: pa.Table) -> pa.Table:
    return pa.table({
        name: fitted(table.column(place), kind) for (name, place), kind in zip(job.needed.items(), job.types.types)
    })


def sorted_rows(job: Job, work: Work, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of one key, and of these what the plan needs, sorted by (time, order)."""
    needed = needed_table(job, table)
    with Workers(1) as workers:
        ties = [needed.column(name) for name in job.plan.request.order]
        ordered = arrange(work.times(needed), Keys(None, 1), ties, workers)
    if ordered.place is None:
        return table, needed
    rows = np.empty(len(table), np.int64)
    rows[ordered.place] = np.arange(len(table))
    return table.take(pa.array(rows)), needed.take(pa.array(rows))


def try_out(plan: Plan, schema: pa.Schema, only_one: bool = False) -> list[pa.Table]:
    """Run the plan on example rows: everything it needs is compiled then. The answers show the types of its results.

    A user's function may not like the examples: that is no answer, and says nothing about the data."""
    answers = []
    with quietly():
        for table in examples(schema, (plan.request.time,))[: 1 if only_one else None]:
            with contextlib.suppress(Exception):
                answers.append(try_on(plan, table))
    return answers


def try_on(plan: Plan, table: pa.Table) -> pa.Table:
    """Run the plan on some rows; as_of: they ask for themselves."""
    request = plan.request
    if request.as_of:
        seeing = make_plan(replace(request, closed="both"), table.schema)
        return run_as_of(seeing, table.select([request.time, *request.by]), table, threads=1)
    return run(plan, table, threads=1)


def slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The table in pieces that Spark can take at once."""
    if not len(table):
        return
    rows = min(OUT_ROWS, max(1, OUT_BYTES * len(table) // max(1, table.nbytes)))
    yield from table.to_batches(max_chunksize=rows)


def _stood_for(found: pa.ChunkedArray, stand_ins: pa.ChunkedArray, columns: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each stand-in that was found, the value it stands for."""
    return columns.take(pc.index_in(found, stand_ins))
