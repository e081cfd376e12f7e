"""A window without a key, or a key too large for one task: its rows are cut by time, and tasks work on the pieces side by side.

    rows --cut by time, packed (giant_pack.py)--> shuffle --+-- windows are short: windows and results (giant_once.py) --> rows
                                                            |
              windows may be long: sort, panes, totals (giant_panes.py) --kept by Spark-- packed panes
                                              '--> summaries --> driver: what each chunk needs (giant_zones.py)
    packed panes --to every chunk that needs them--> shuffle --> windows and results (giant_pieces.py) --> rows

Short is what reaches back less than half a chunk: the rows it reaches are sent along. Otherwise a pane goes to its own chunk
and to those whose windows have an end in it: about twice through the shuffle, whatever the length of the windows. That
first pass runs when the result is made, not when it is asked for: the driver needs the summaries. Its panes stay with Spark (a
local checkpoint: in memory, or on disk where that is short) until the result is no longer used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.engines.local.keys import times_of
from slidewise.engines.spark.batch_tasks import compiled
from slidewise.engines.spark.batch_types import estimated_bytes, fitted, inner_name, row_bytes, to_arrow
from slidewise.engines.spark.buckets import labels
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.giant_once import Chunks, reach
from slidewise.engines.spark.giant_pack import BLOB, KIND, LABEL, PACKED, Cuts, Pack, without
from slidewise.engines.spark.giant_panes import NEEDED, PANE, PANES, SUMMARY, Panes, Summary
from slidewise.engines.spark.giant_pieces import Pieces, Second
from slidewise.engines.spark.giant_rehearsal import prepare_pieces
from slidewise.engines.spark.giant_zones import Key
from slidewise.engines.spark.travel import Parcel
from slidewise.planner.plan import make_plan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from slidewise.engines.spark.batch import Road

_TARGET = "slidewise_target"
_GIANT = "slidewise_giant"
_SAMPLE = 0.005
_SAMPLED = 1000
"""With fewer rows than this in a sample all rows are looked at."""
_MARKS = 63
_COLLECTED = 1 << 32
"""Of data up to this size, as Spark estimates it, the driver takes the sample, some millions of rows at most: fewer stages."""


@dataclass(frozen=True)
class Giant:
    """One key that is cut up."""

    is_it: Column | None
    """Which rows it has; None: all."""
    cuts: Cuts
    values: tuple = ()
    """Of the columns of the key, as `exact` tells them."""


def giant_results(road: Road, giants: list[Giant]) -> DataFrame:
    """The results of giant keys."""
    count = sum(len(giant.cuts.labels) for giant in giants)
    if any(giant.cuts.since is None for giant in giants):
        return _in_two_passes(road, [replace(giant, cuts=replace(giant.cuts, since=None)) for giant in giants], count)
    firsts = {giant.cuts.labels[0] for giant in giants}
    plan = road.job.plan
    if plan.request.by:  # a chunk has one key: to tell keys apart would cost more than its windows do
        job = replace(road.job, plan=make_plan(replace(plan.request, by=()), road.job.types))
        compiled(job)
    else:
        job = road.job
    left_out = _left_out(road)
    keys = {label: {place: pa.scalar(giant.values[k], kind) for place, (k, kind) in left_out.items()}
            for giant in giants for label in giant.cuts.labels}
    return road.finished(_in_chunks(road, giants, count, left_out), Chunks(Parcel((job, firsts, keys))))


def _left_out(road: Road) -> dict[int, tuple[int, pa.DataType]]:
    """Columns of the key that stay behind, for a chunk has but one value of them: (number in the key, type) by place.

    Only types of which equal values are the same in every bit, and cross into Python and back as they are."""
    from pyspark.sql.types import BooleanType, IntegralType, StringType

    job, shipped = road.job, road.shipped
    return {shipped.places[name]: (k, job.types.field(name).type) for k, name in enumerate(job.plan.request.by)
            if isinstance(shipped.kind(name), (BooleanType, IntegralType)) or shipped.kind(name) == StringType()}


@dataclass(frozen=True)
class Look:
    """Rows of a key that were looked at: their times on the driver, or a DataFrame that has them."""

    seen: pa.ChunkedArray | DataFrame
    fraction: float
    """So much of all rows."""
    values: tuple = ()
    """Of the columns of the key."""


def giant_of(road: Road, is_it: Column | None, tasks: int, look: Look | None = None) -> Giant | None:
    """Where to cut a key, from a sample of its rows; None where one task will do."""
    settings = road.settings
    rows = road.shipped.df if is_it is None else road.shipped.df.where(is_it)
    for each in [look] if look else [Look(rows.sample(_SAMPLE, seed=1), _SAMPLE), Look(rows, 1.0)]:
        look = each
        counted, marks = _marks(road, look, _MARKS)
        if counted >= _SAMPLED:
            break
    estimate = counted / look.fraction
    most = tasks * settings.heldBytes // max(row_bytes(road.kinds), row_bytes(road.shipped.kinds))
    chunks = min(tasks * -(-int(estimate) // max(1, most)), int(estimate) // settings.paneRows)
    if chunks < 2 or not len(marks):
        return None
    if chunks > _MARKS // 4:  # more marks cost time, and few keys need them
        _, marks = _marks(road, look, 4 * chunks - 1)
    chosen = [marks[round(k * (len(marks) + 1) / chunks) - 1] for k in range(1, chunks)]
    cuts = np.unique(np.array(chosen, marks.dtype))
    return Giant(is_it, Cuts(cuts, tuple(range(len(cuts) + 1)), reach(road, rows, cuts, marks, estimate)), look.values)


def fits_driver(road: Road) -> bool:
    """Whether the driver takes samples."""
    size = estimated_bytes(road.shipped.costs)
    return size is not None and size <= _COLLECTED


def _marks(road: Road, look: Look, count: int) -> tuple[int, np.ndarray]:
    """How many rows were looked at, and so many times that cut them into equal parts."""
    from pyspark.sql import functions as F

    name = road.job.plan.request.time
    time, kind = inner_name(road.shipped.places[name]), road.job.types.field(name).type
    shares = np.arange(1, count + 1) / (count + 1)
    seen = look.seen
    if not isinstance(seen, pa.ChunkedArray) and fits_driver(road):
        seen = to_arrow(seen.select(time)).column(0)
    if isinstance(seen, pa.ChunkedArray):
        usable = fitted(seen.drop_null(), kind)
        if pa.types.is_floating(kind):
            usable = usable.filter(pc.is_finite(usable))
        times = np.sort(times_of(usable, road.job.plan.clock, name))
        return len(seen), times[np.ceil(shares * len(times)).astype(np.int64) - 1] if len(times) else times
    # as text: a literal made from Python costs as much as a hundred that Spark reads by itself
    wanted = ", ".join(f"{share}D" for share in shares)
    found = to_arrow(seen.agg(F.count(F.lit(1)), F.expr(f"percentile_approx({time}, array({wanted}), {max(1000, 4 * count)})")))
    marks = fitted(found.column(1).combine_chunks().flatten(), kind)
    return found.column(0)[0].as_py(), times_of(pa.chunked_array([marks]), road.job.plan.clock, name)


def _in_chunks(road: Road, giants: list[Giant], count: int, left_out: Collection[int] = ()) -> DataFrame:
    """The rows of each chunk, packed, in a task. left_out: places of columns that do not come along."""
    from pyspark.sql import functions as F

    rows = road.shipped.df
    if giants[0].is_it is not None:  # a plain condition: Spark leaves out parts of files that it rules out
        rows = rows.where(reduce(or_, [giant.is_it for giant in giants]))
    if len(giants) > 1:
        number = F.lit(0)
        for k, giant in enumerate(giants[1:], 1):
            number = F.when(giant.is_it, F.lit(k)).otherwise(number)
        rows = rows.withColumn(_GIANT, number)
    rows = rows.drop(*map(inner_name, left_out)) if left_out else rows
    job = without(road.job, left_out)
    packed = rows.mapInArrow(Pack(Parcel((job, [giant.cuts for giant in giants]))), PACKED)
    return packed.repartition(count, LABEL)


def _in_two_passes(road: Road, giants: list[Giant], count: int) -> DataFrame:
    prepare_pieces(road.job.plan, road.job.types)
    task = Panes(Parcel(road.job), road.settings.paneRows, prepare_pieces)
    packed = _in_chunks(road, giants, count).mapInArrow(task, PANES).localCheckpoint()
    work = Work.of(road.job.plan, road.job.types)
    found = {summary.label: summary for summary in _summaries(packed)}
    needs = {}
    for giant in giants:
        own = [found[label] for label in giant.cuts.labels if label in found]
        if not own:  # no rows any more
            continue
        key = Key(work, own)
        chunks = list(enumerate(key.summaries))
        answering = chunks[-1:] if work.request.emit == "latest" else chunks
        needs |= {summary.label: key.needs(number) for number, summary in answering}
    wanted = [(*pane, target) for target, need in needs.items() for pane in need.panes]
    wanted += [(label, pane, label) for label in needs for pane in range(len(found[label].rows))]
    spread = _spread(packed, wanted, count)
    return road.finished(spread, Pieces(Parcel(Second(road.job, needs)), prepare_pieces))


def _summaries(packed: DataFrame) -> list[Summary]:
    from pyspark import cloudpickle
    from pyspark.sql import functions as F

    return [cloudpickle.loads(bytes(row[0])) for row in packed.where(F.col(KIND) == SUMMARY).select(BLOB).collect()]


def _spread(packed: DataFrame, wanted: list[tuple[int, int, int]], count: int) -> DataFrame:
    """Every packed row where it is needed: panes in all chunks that want them, what rides along and queries in their own."""
    from pyspark.sql import functions as F

    spark = packed.sparkSession
    needs = spark.createDataFrame(wanted, f"{LABEL} int, {PANE} int, {_TARGET} int").withColumn(KIND, F.lit(NEEDED))
    target = F.coalesce(F.col(_TARGET), F.col(LABEL)).alias(_TARGET)
    rows = packed.where(F.col(KIND) != SUMMARY).join(F.broadcast(needs), [LABEL, KIND, PANE], "left")
    rows = rows.where(F.col(_TARGET).isNotNull() | (F.col(KIND) != NEEDED))
    return rows.select(target, LABEL, KIND, PANE, BLOB).repartition(count, _TARGET)


def spread_labels(giants: list[Giant]) -> list[Giant]:
    """The same keys, their chunks labelled so that Spark's shuffle gives each a task of its own."""
    known = iter(labels(sum(len(giant.cuts.labels) for giant in giants)))
    return [replace(giant, cuts=replace(giant.cuts, labels=tuple(next(known) for _ in giant.cuts.labels))) for giant in giants]
