"""The first pass over a giant key: each task sorts its chunk, cuts it into panes, and says of each pane what others need to know.

    rows of a chunk --sort--> panes of some thousand rows --> their rows, packed, to stay where they are
                                                          '-> a summary: times, counts, totals, open windows, to the driver

Rows of one time are never in two panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.spark.batch_types import fitted
from slidewise.engines.spark.batch_worker import Job, needed_table, sorted_rows
from slidewise.engines.spark.chunk import Before, Piece, Sequence, Work, grows
from slidewise.engines.spark.chunk_stream import up_to_last
from slidewise.engines.spark.chunk_totals import Rows, Totals
from slidewise.engines.spark.giant_pack import BLOB, KIND, LABEL, OWN, in_parts, of_labels
from slidewise.engines.spark.travel import Parcel
from slidewise.planner.plan import Plan
from slidewise.windows.bounds import frames

PANE = "slidewise_pane"
PANES = f"{LABEL} int, {KIND} int, {PANE} int, {BLOB} binary"
SUMMARY, NEEDED, RIDING, QUERIES = 0, 1, 2, 3
"""Kinds of packed rows: a chunk's summary; a pane's needed columns; columns that ride along; a chunk's queries."""


@dataclass
class Run:
    """Of a window that only grows: the window that the last row of each pane is in."""

    starts: np.ndarray
    """The row of the pane where it begins; 0: with the pane, or before it."""
    tails: list[Totals]
    """For each step: the total from there to the end of the pane."""
    first_marks: np.ndarray
    last_marks: np.ndarray
    """punctuation: whether the first and the last row of each pane are marked."""


@dataclass
class Extremes:
    """Of a delta window's column: least and greatest value of each pane, and whether there are numbers, and NaN."""

    least: np.ndarray
    greatest: np.ndarray
    numbers: np.ndarray
    nans: np.ndarray


@dataclass
class Summary:
    """What others need to know of a chunk."""

    label: int
    rows: np.ndarray
    """Rows of each pane."""
    first: np.ndarray
    last: np.ndarray
    """First and last time of each pane."""
    totals: list[Totals]
    """For each step: the totals of the panes."""
    runs: dict[str, Run]
    extremes: dict[str, Extremes]
    asked: tuple[Any, Any] | None = None
    """as_of: the first and the last moment asked for."""


class Panes:
    """For `mapInArrow`: the packed rows of chunks -> their panes, packed, and their summaries."""

    def __init__(self, parcel: Parcel, pane_rows: int, prepare: Callable[[Plan, pa.Schema], None]):
        self.parcel, self.pane_rows, self.prepare = parcel, pane_rows, prepare

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import cloudpickle

        job: Job = self.parcel.open()
        self.prepare(job.plan, job.types)
        chunks = of_labels(batches)
        for label in sorted(chunks):
            chunk = pa.concat_tables(chunks.pop(label)[OWN])
            for kind, pane, blob in chunk_panes(job, chunk, label, self.pane_rows):
                data = cloudpickle.dumps(blob) if kind == SUMMARY else blob
                yield pa.RecordBatch.from_arrays(
                    [pa.array([label], pa.int32()), pa.array([kind], pa.int32()), pa.array([pane], pa.int32()),
                     pa.array([data], pa.binary())],
                    names=[LABEL, KIND, PANE, BLOB],
                )


def chunk_panes(job: Job, table: pa.Table, label: int, pane_rows: int) -> Iterator[tuple[int, int, Any]]:
    """(kind, pane, rows as bytes or the summary) of one chunk."""
    asked, work = None, Work.of(job.plan, job.types)
    if job.query is not None:
        asking = table.column(job.query)
        queries, table = table.filter(asking), table.filter(pc.invert(asking))
        if len(queries):
            moments = work.times(needed_table(job, queries))
            queries, moments = queries.take(pa.array(np.argsort(moments, kind="stable"))), np.sort(moments)
            asked = moments[0], moments[-1]
            for number, part in enumerate(in_parts(queries)):
                yield QUERIES, number, packed_rows(part)
    table, needed = sorted_rows(job, work, table)
    times, needed = work.times(needed), needed.combine_chunks()
    riding = table.select([k for k in job.riding if k not in job.needed.values()] if job.query is None else [])
    bounds = pane_bounds(times, pane_rows)
    for pane, (a, b) in enumerate(pairwise(bounds)):
        yield NEEDED, pane, packed_rows(needed.slice(a, b - a))
    if riding.num_columns:
        for number, part in enumerate(in_parts(riding)):
            yield RIDING, number, packed_rows(part)
    yield SUMMARY, 0, summary_of(work, label, needed, times, bounds, asked)


def pane_bounds(times: np.ndarray, rows: int) -> list[int]:
    """Where panes begin, and the end: about `rows` each, rows of one time together."""
    n = len(times)
    found = [0]
    while found[-1] < n:
        at = found[-1] + rows
        found.append(n if at >= n else int(np.searchsorted(times, times[at - 1], side="right")))
    return found if n else [0]


def summary_of(work: Work, label: int, table: pa.Table, times: np.ndarray, bounds: list[int], asked) -> Summary:
    at = np.array(bounds, np.int64)
    first, last = times[at[:-1]], times[at[1:] - 1]
    runs, extremes, rows = {}, {}, None
    for name, ticks in work.ticks.items():
        sequence = Sequence(work, ticks, Piece(table, times, 0), Before())
        rows = rows or [sequence.rows(number, step) for number, step in enumerate(work.steps)]
        if grows(ticks, work.request):
            runs[name] = _run(work, sequence, rows, at)
        elif ticks.kind == "delta":
            extremes[name] = _extremes(sequence, at)
    totals = [part.totals(at[:-1], at[1:]) for part in rows]
    return Summary(label, np.diff(at), first, last, totals, runs, extremes, asked)


def _run(work: Work, sequence: Sequence, rows: list[Rows], at: np.ndarray) -> Run:
    marks = sequence.column()[0] if sequence.ticks.kind == "punctuation" else np.zeros(len(sequence.times), np.uint8)
    starts, _ = frames(sequence.ticks, sequence.times, at, closed=up_to_last(work), column=sequence.column())
    begins = starts[at[1:] - 1].astype(np.int64)
    tails = [part.totals(begins, at[1:]) for part in rows]
    return Run(begins - at[:-1], tails, marks[at[:-1]] != 0, marks[at[1:] - 1] != 0)


def _extremes(sequence: Sequence, at: np.ndarray) -> Extremes:
    values, valid = sequence.column()
    rows = list(pairwise(at))
    parts = [values[a:b] if valid is None else values[a:b][valid[a:b] != 0] for a, b in rows]
    numbers = [part[part == part] for part in parts]
    return Extremes(
        np.array([part.min() if len(part) else 0 for part in numbers], values.dtype),
        np.array([part.max() if len(part) else 0 for part in numbers], values.dtype),
        np.array([len(part) > 0 for part in numbers], bool),
        np.array([len(part) < len(whole) for part, whole in zip(numbers, parts)], bool),
    )


# ---- rows as bytes -------------------------------------------------------------------------------------------------------


def packed_rows(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def unpacked_rows(blobs: list[pa.Buffer]) -> pa.Table | None:
    tables = [pa.ipc.open_stream(blob).read_all() for blob in blobs]
    return pa.concat_tables(tables) if tables else None


def fit_to(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table([fitted(table.column(f.name), f.type) for f in schema], schema=schema)
