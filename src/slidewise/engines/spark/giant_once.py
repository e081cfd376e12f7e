"""One pass over a giant key, where its windows are short: a chunk's rows and those just before it are a table like any other.

    .. chunk 0 ..........[since 1][ chunk 1 .................[since 2][ chunk 2 ..         since: what windows of the next reach

The plan runs on both together, and the results of the rows before are thrown away. So nothing has to be known of other
chunks but where to begin, and that is known before the pass: from the length of windows that go by time, and for the others
from the rows in front of each cut, of which the driver looks at some thousands. A task looks again whether what it was sent
tells the same: data that changes between two looks is refused. Where windows reach too far back for this, or how far cannot be
told, giant.py takes two passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from slidewise.engines.local.keys import Keys
from slidewise.engines.local.order import arrange
from slidewise.engines.local.targets import as_times
from slidewise.engines.local.threads import Workers
from slidewise.engines.spark.batch_tasks import compiled
from slidewise.engines.spark.batch_types import fitted, inner_name, quoted, to_arrow
from slidewise.engines.spark.batch_worker import Job, answer, needed_table, slices
from slidewise.engines.spark.chunk import Before, Piece, Sequence, Work, grows
from slidewise.engines.spark.chunk_stream import first_needed, open_since, reached_back
from slidewise.engines.spark.giant_pack import BEFORE, OWN, of_labels, times_of_rows
from slidewise.engines.spark.travel import Parcel
from slidewise.errors import InputError
from slidewise.windows.clock import Ticks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from slidewise.engines.spark.batch import Road

_LOOK_AT = 20_000
"""Rows in front of a cut that are looked at, at least."""
_LOOK_AT_MOST = 2_000_000
"""In front of all cuts together."""
_MOST_TWICE = 0.5
"""A chunk may be sent so much of its own rows once more."""
_PART_ROWS = 1 << 16
"""Rows of a chunk whose results are made, and go back to Spark, together."""


KEY = "slidewise_key"
"""In the names of columns that are put back."""


class Chunks:
    """For `mapInArrow`: packed rows -> the rows of each chunk and their results."""

    def __init__(self, parcel: Parcel):
        self.parcel = parcel
        """Of a job, the labels of chunks that no rows come before, and for each label the columns that were left out: their
        places, and the one value they have there."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, firsts, keys = self.parcel.open()
        compiled(job)
        chunks = of_labels(batches)
        for label in sorted(chunks):
            found = {kind: [put_back(table, keys[label]) for table in tables] for kind, tables in chunks.pop(label).items()}
            for results in chunk_results(job, found, label in firsts):
                yield from slices(results)


def put_back(table: pa.Table, values: dict[int, pa.Scalar]) -> pa.Table:
    """The rows with columns of one value each, at these places."""
    for place in sorted(values):
        column = pa.repeat(values[place], len(table))
        table = table.add_column(place, f"{KEY}{place}", column)
    return table


def chunk_results(job: Job, found: dict[int, list[pa.Table]], is_first: bool) -> Iterator[pa.Table]:
    """What comes out for one chunk, from its own rows and those before it."""
    before, own = (by_first_time(job, found.get(kind, [])) for kind in (BEFORE, OWN))
    if not own:
        return
    if not is_first:
        _look_again(job, before)
    table, first = pa.concat_tables([*before, *own]), sum(map(len, before))
    if job.query is not None:
        yield answer(job, table)
        return
    for since, begin, end in parts_of(job, table, first):
        yield answer(job, table.slice(since, end - since)).slice(begin - since)


def parts_of(job: Job, table: pa.Table, first: int) -> Iterator[tuple[int, int, int]]:
    """(first row that is needed, first row whose result is wanted, end) of parts of the rows from `first` on.

    Sorted rows go in parts, the memory of one serves the next; a part begins where windows reach back only a little. Rows
    that are not sorted go as one."""
    times, n = times_of_rows(job, table), len(table)
    edges = np.arange(first + _PART_ROWS, n - _PART_ROWS // 2, _PART_ROWS)
    since, begin = 0, first
    if len(edges) and not (times[1:] < times[:-1]).any():
        work = Work.of(job.plan, job.types)
        by_time = [ticks for ticks in work.ticks.values() if _by_time(ticks)]
        others = [ticks for ticks in work.ticks.values() if not _by_time(ticks)]
        for at in np.unique(np.searchsorted(times, times[edges])).tolist():
            seen = table.slice(max(begin, at - _looked_at(work)), min(_looked_at(work), at - begin))
            known = _first_row(work, others, needed_table(job, seen)) if others else times[at]
            if known is not None:
                reached = min([known, *(reached_back(ticks, times[at], work) for ticks in by_time)])
                back = int(np.searchsorted(times, reached))
                if begin <= back and at - back <= _MOST_TWICE * _PART_ROWS:
                    yield since, begin, at
                    since, begin = back, at
    yield since, begin, n


def _look_again(job: Job, before: list[pa.Table]) -> None:
    work = Work.of(job.plan, job.types)
    others = [ticks for ticks in work.ticks.values() if not _by_time(ticks)]
    if others and (not before or _first_row(work, others, needed_table(job, pa.concat_tables(before))) is None):
        raise InputError("the rows before a piece of a giant key are not those that were there when it was cut: the DataFrame "
                         "gives other rows each time it is computed; cache or checkpoint it first")


def by_first_time(job: Job, tables: list[pa.Table]) -> list[pa.Table]:
    """Sorted files give blobs that follow each other: put in order, their rows need no sorting."""
    return sorted(tables, key=lambda table: times_of_rows(job, table.slice(0, 1))[0])


# ---- how far back ----------------------------------------------------------------------------------------------------------


def reach(road: Road, rows: DataFrame, cuts: np.ndarray, marks: np.ndarray, estimate: float) -> np.ndarray | None:
    """For each cut a time: no row before it is in a window of any row behind the cut. None: two passes it is.

    marks: times that cut the rows into about equal parts; estimate: how many rows there are."""
    work = Work.of(road.job.plan, road.job.types)
    if work.request.emit != "event" or not all(_tells(ticks, work.request.as_of) for ticks in work.ticks.values()):
        return None
    seen = None
    if not all(_by_time(ticks) for ticks in work.ticks.values()):
        asked = _looked_at(work)
        seen = _rows_before(road, rows, work, cuts, marks, asked / estimate) if asked * len(cuts) <= _LOOK_AT_MOST else None
        if seen is None:
            return None
    since = reach_of(work, cuts, seen)
    return since if since is not None and _is_short(since, cuts, marks) else None


def _looked_at(work: Work) -> int:
    """How many rows in front of a cut are to be looked at."""
    return max([_LOOK_AT, *(int(2 * (t.range + t.offset)) for t in work.ticks.values() if t.kind == "rows")])


def reach_of(work: Work, cuts: np.ndarray, seen: pa.Table | None) -> np.ndarray | None:
    """As `reach`, however far that is. seen: rows in front of each cut, where windows do not go by time."""
    by_time = [ticks for ticks in work.ticks.values() if _by_time(ticks)]
    others = [ticks for ticks in work.ticks.values() if not _by_time(ticks)]
    since = np.array([min([cut, *(reached_back(ticks, cut, work) for ticks in by_time)]) for cut in cuts], cuts.dtype)
    if others:
        work, times = replace(work, types=seen.schema), work.times(seen)
        for k, cut in enumerate(cuts):
            inside = (times < cut) if k == 0 else (times < cut) & (times >= cuts[k - 1])
            first = _first_row(work, others, seen.filter(pa.array(inside)))
            if first is None:
                return None
            since[k] = min(since[k], first)
    return since


def _by_time(ticks: Ticks) -> bool:
    return ticks.kind in ("time", "tumbling")


def _tells(ticks: Ticks, as_of: bool) -> bool:
    """Whether a window's beginning can be told from rows not far before it. (Rows with a slide are counted from the first.)"""
    if ticks.kind == "rows":
        return not ticks.slide
    return _by_time(ticks) or (ticks.kind in ("session", "punctuation") and not as_of)


def _is_short(since: np.ndarray, cuts: np.ndarray, marks: np.ndarray) -> bool:
    """Whether what is sent twice lies in the chunk before, and is little against a chunk."""
    if (since[1:] < cuts[:-1]).any():
        return False
    share = np.linspace(0, 1, len(marks) + 2)[1:-1]
    twice = np.interp(cuts, marks, share) - np.interp(since, marks, share, left=0)
    return bool((twice <= _MOST_TWICE / (len(cuts) + 1)).all())


def _first_row(work: Work, windows: list[Ticks], table: pa.Table) -> int | float | None:
    """The time of the row before the first one that matters behind these rows; None if they do not reach back so far."""
    times = work.times(table)
    if not len(times):
        return None
    ties = [table.column(name) for name in work.request.order if name in table.column_names]
    with Workers(1) as workers:
        ordered = arrange(times, Keys(None, 1), ties, workers)
    if ordered.place is not None:
        table = table.take(pa.array(np.argsort(ordered.place)))
    firsts = []
    for ticks in windows:
        sequence = Sequence(work, ticks, Piece(table, ordered.times, 0), Before())
        firsts.append(open_since(work, sequence) if grows(ticks, work.request) else first_needed(ticks, sequence, work))
    return None if min(firsts) == 0 else ordered.times[min(firsts) - 1]


def _rows_before(road: Road, rows: DataFrame, work: Work, cuts: np.ndarray, marks: np.ndarray, share: float) -> pa.Table | None:
    """Some rows in front of each cut, all of them from some time on: about this share of all rows."""
    parts = np.linspace(0, 1, len(marks) + 2)[1:-1]
    begins = np.interp(np.interp(cuts, marks, parts) - share, parts, marks)
    name = road.job.plan.request.time
    kind, time = road.shipped.kind(name), quoted(inner_name(road.shipped.places[name]))
    wanted = []
    for begin, cut in zip(begins, cuts):
        low, high = (_literal(road, moment, kind) for moment in (begin, cut))
        if low is None or high is None:
            return None
        wanted.append((time >= low) & (time < high))
    by_column = [ticks.column for ticks in work.ticks.values() if ticks.column is not None]
    # rows of one time come as one: their order matters only where they are told apart
    names = list(dict.fromkeys([name, *by_column, *(work.request.order if by_column else ())]))
    if road.shipped.query is not None:
        rows = rows.where(~quoted(inner_name(road.shipped.query)))
    found = to_arrow(rows.where(reduce(or_, wanted)).select(*[inner_name(road.shipped.places[name]) for name in names]))
    types = pa.schema([work.types.field(name) for name in names])
    return pa.table([fitted(column, field.type) for column, field in zip(found.columns, types)], schema=types)


def _literal(road: Road, moment, kind: DataType) -> Column | None:
    """A moment in ticks as a Spark value of the time column's type; None for types and years that Python cannot write."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    plan, arrow = road.job.plan, road.job.types.field(road.job.plan.request.time).type
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.lit(float(moment))
    whole = int(moment) // plan.clock.scale * plan.clock.scale
    if isinstance(kind, T.IntegralType):
        return F.lit(whole).cast(kind)
    if not isinstance(kind, (T.DateType, T.TimestampType, T.TimestampNTZType)):
        return None
    value = as_times(np.array([whole], np.int64), plan, arrow)
    zone = "+00:00" if isinstance(kind, T.TimestampType) else ""
    try:
        written = value if pa.types.is_date(arrow) else value.view(pa.int64()).view(pa.timestamp(arrow.unit))
        return F.lit(f"{written[0].as_py().isoformat()}{zone}").cast(kind)
    except (OverflowError, ValueError):
        return None
