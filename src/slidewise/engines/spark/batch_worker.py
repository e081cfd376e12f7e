"""What a batch task does: one call for each partition, which holds whole keys.

    batches --held--> one table --run the plan--> the same rows and their results, slice by slice

Spark shuffles but does not sort: the plan sorts key and time by itself, in compiled code, and Spark's sort of whole rows
costs more than that. Columns that only ride along are never copied: results are put beside the batches that came.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.local.run import run, run_as_of
from slidewise.engines.spark.batch_types import fitted
from slidewise.engines.spark.travel import Parcel, examples, prepared, quietly
from slidewise.planner.plan import Plan

OUT_BYTES = 4 << 20
"""About so much goes back to Spark at once."""
OUT_ROWS = 1 << 16


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
    stand_ins: tuple[tuple[str, int], ...] = ()
    """Key columns that stand for another one (text for a struct): what comes out is the column at that place."""
    held_bytes: int = 256 << 20

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out, inside the road."""
        return [f"r{k}" for k in range(len(self.riding) + len(self.results))]


class Partitions:
    """For `mapInArrow`: a task's rows and their results."""

    def __init__(self, parcel: Parcel):
        self.parcel = parcel

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job: Job = self.parcel.open()
        prepared(job.plan, lambda: try_out(job.plan, job.types))
        held: list[pa.RecordBatch] = []
        nbytes = 0
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
                nbytes += batch.nbytes
        if held:
            yield from slices(answer(job, pa.Table.from_batches(held)))


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
        for stand_in, place in job.stand_ins:
            if name == stand_in:
                column = _stood_for(column, table.column(job.needed[name]), table.column(place))
        columns.append(fitted(column, kind))
    return pa.table(columns, names=job.names)


def needed_table(job: Job, table: pa.Table) -> pa.Table:
    return pa.table({
        name: fitted(table.column(place), kind) for (name, place), kind in zip(job.needed.items(), job.types.types)
    })


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
        seeing = replace(plan, request=replace(request, closed="both"))
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
