"""The second pass over a giant key: each task has its chunk again, the panes and states it needs of others, and gives results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slidewise.engines.local.targets import as_times
from slidewise.engines.spark.batch_types import fitted
from slidewise.engines.spark.batch_worker import ITSELF, Job, needed_table, slices
from slidewise.engines.spark.chunk import Answer, Before, Piece, Work, answer, answer_moments
from slidewise.engines.spark.giant_panes import NEEDED, QUERIES, RIDING, fit_to, unpacked_rows
from slidewise.engines.spark.giant_zones import Needs
from slidewise.engines.spark.travel import Parcel
from slidewise.planner.plan import Plan


@dataclass(frozen=True)
class Second:
    """What the tasks of the second pass share."""

    job: Job
    needs: dict[int, Needs]
    """By the label of the chunk."""


class Pieces:
    """For `mapInArrow`: packed rows (target, label, kind, pane, blob) -> the rows of each target chunk and their results."""

    def __init__(self, parcel: Parcel, prepare: Callable[[Plan, pa.Schema], None]):
        self.parcel, self.prepare = parcel, prepare

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        second: Second = self.parcel.open()
        self.prepare(second.job.plan, second.job.types)
        chunks: dict[int, dict[tuple[int, int, int], list[pa.Buffer]]] = {}
        for batch in batches:
            target, label, kind, pane = (batch.column(k).to_pylist() for k in range(4))
            for row, place in enumerate(zip(label, kind, pane)):
                chunks.setdefault(target[row], {}).setdefault(place, []).append(batch.column(4)[row].as_buffer())
        for target in sorted(chunks):
            yield from slices(piece_results(second.job, target, second.needs[target], chunks.pop(target)))


def piece_results(job: Job, label: int, needs: Needs, blobs: dict[tuple[int, int, int], list[pa.Buffer]]) -> pa.Table:
    """What comes out for one chunk. blobs: by (label, kind, pane)."""
    work = Work.of(job.plan, job.types)
    panes = {place[::2]: fit_to(unpacked_rows(found), job.types) for place, found in blobs.items() if place[1] == NEEDED}
    own = [panes[place] for place in sorted(place for place in panes if place[0] == label)]
    table = pa.concat_tables(own) if own else work.nothing()
    piece = Piece(table, work.times(table), needs.position, needs.begins, needs.ends, needs.next_time)
    before = {
        name: Before(_together(panes, need.left), need.middle, _together(panes, need.right)) for name, need in needs.windows.items()
    }
    if job.query is not None:
        queries = _parts(blobs, label, QUERIES)
        if queries is None:
            return pa.table([[]] * len(job.names), names=job.names)
        found = answer_moments(work, piece, before, work.times(needed_table(job, queries)))
        return finished(job, found, [queries.column(k) for k in job.riding], table)
    found = answer(work, piece, before)
    riding = _parts(blobs, label, RIDING)
    return finished(job, found, _own_columns(job, table, riding) if job.plan.request.emit == "event" else [], table)


def finished(job: Job, found: Answer, riding: list, table: pa.Table) -> pa.Table:
    """The columns that come out: those that ride along (or key and time), and the results."""
    request, results = job.plan.request, dict(found.columns)
    columns = list(riding)
    for name, kind in job.results:
        if name in results:
            column = results[name]
        elif name == request.time and found.moments is not None:
            column = as_times(found.moments, job.plan, kind)
        elif name == request.time:
            column = table.column(name).take(pa.array(found.rows))
        else:
            rows = len(found.rows if found.moments is None else found.moments)
            source = ITSELF + name if ITSELF + name in table.column_names else name
            column = table.column(source).take(pa.array(np.zeros(rows, np.int64)))
        columns.append(fitted(column, kind))
    return pa.table(columns, names=job.names)


def _own_columns(job: Job, table: pa.Table, riding: pa.Table | None) -> list:
    """The columns that ride along, in their order: those that are needed too came with the panes."""
    by_place = {place: name for name, place in job.needed.items()}
    others = iter(riding.columns if riding is not None else ())
    return [table.column(by_place[place]) if place in by_place else next(others) for place in job.riding]


def _parts(blobs: dict[tuple[int, int, int], list[pa.Buffer]], label: int, kind: int) -> pa.Table | None:
    """Rows that were packed in numbered parts."""
    places = sorted(place for place in blobs if place[:2] == (label, kind))
    return unpacked_rows([blob for place in places for blob in blobs[place]])


def _together(panes: dict[tuple[int, int], pa.Table], names: list[tuple[int, int]]) -> pa.Table | None:
    return pa.concat_tables([panes[name] for name in names]) if names else None
