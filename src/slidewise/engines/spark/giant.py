"""A window without a key, or a key too large for one task: its rows are cut by time, and tasks work on the pieces side by side.

    rows --label by key and time--> shuffle --> sort, panes, totals (giant_panes.py) --kept by Spark-- packed panes
                                                                '--> summaries --> driver: what each chunk needs (giant_zones.py)
    packed panes --to every chunk that needs them--> shuffle --> windows and results (giant_pieces.py) --> rows

A pane goes to its own chunk and to those whose windows have an end in it: about twice through the shuffle, whatever the
length of the windows. The first pass runs when the result is made, not when it is asked for: the driver needs the
summaries. Its panes stay with Spark (a local checkpoint: in memory, or on disk where that is short) until the result is no
longer used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slidewise.engines.spark.batch_types import inner_name, quoted
from slidewise.engines.spark.buckets import labels
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.giant_panes import BLOB, KIND, LABEL, NEEDED, PACKED, PANE, SUMMARY, Panes, Summary
from slidewise.engines.spark.giant_pieces import Pieces, Second
from slidewise.engines.spark.giant_rehearsal import prepare_pieces
from slidewise.engines.spark.giant_zones import Key
from slidewise.engines.spark.travel import Parcel

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from slidewise.engines.spark.batch import Road

_TARGET = "slidewise_target"
_SAMPLE = 0.02
_ACCURACY = 500


@dataclass
class Giant:
    """One key that is cut up: where it is cut, and the labels of its chunks."""

    is_it: Column | None
    """Which rows it has; None: all."""
    cuts: list[Any]
    """Times at which a new chunk begins."""
    labels: list[int]


def giant_results(road: Road, giants: list[Giant]) -> DataFrame:
    """The results of giant keys."""
    prepare_pieces(road.job.plan, road.job.types)
    count = sum(len(giant.labels) for giant in giants)
    packed = _first_pass(road, giants, count)
    work = Work.of(road.job.plan, road.job.types)
    found = {summary.label: summary for summary in _summaries(packed)}
    needs = {}
    for giant in giants:
        key = Key(work, [found[label] for label in giant.labels if label in found])
        chunks = list(enumerate(key.summaries))
        answering = chunks[-1:] if work.request.emit == "latest" else chunks
        needs |= {summary.label: key.needs(number) for number, summary in answering}
    wanted = [(*pane, target) for target, need in needs.items() for pane in need.panes]
    wanted += [(label, pane, label) for label in needs for pane in range(len(found[label].rows))]
    spread = _spread(packed, wanted, count)
    return road.finished(spread, Pieces(Parcel(Second(road.job, needs)), prepare_pieces))


def giant_of(road: Road, is_it: Column | None, tasks: int) -> Giant | None:
    """Where to cut a key, from a sample of its rows; None where one task will do."""
    from pyspark.sql import functions as F

    settings = road.settings
    rows = road.shipped.df if is_it is None else road.shipped.df.where(is_it)
    time = quoted(inner_name(road.shipped.places[road.job.plan.request.time]))
    for fraction in (_SAMPLE, 1.0):
        sample = rows if fraction == 1.0 else rows.sample(fraction, seed=1)
        parts = 64
        marks = F.percentile_approx(time, [k / parts for k in range(1, parts)], _ACCURACY)
        counted, quantiles = sample.agg(F.count(F.lit(1)), marks).first()
        if counted >= 20 * parts:
            break
    estimate = counted / fraction
    chunks = max(tasks, -(-int(estimate) // settings.chunkRows)) if estimate > settings.paneRows else 1
    if chunks < 2 or not quantiles:
        return None
    chosen = [quantiles[min(len(quantiles) - 1, round(k * parts / chunks) - 1)] for k in range(1, chunks)]
    cuts = sorted(set(chosen))
    return Giant(is_it, cuts, list(range(len(cuts) + 1))) if cuts else None


def _first_pass(road: Road, giants: list[Giant], count: int) -> DataFrame:
    from pyspark.sql import functions as F

    time = quoted(inner_name(road.shipped.places[road.job.plan.request.time]))
    label = F.lit(None).cast("int")
    for giant in giants:
        inside = _chunk_of(time, giant.cuts, giant.labels)
        label = inside if giant.is_it is None else F.when(giant.is_it, inside).otherwise(label)
    rows = road.shipped.df.withColumn(LABEL, label).where(F.col(LABEL).isNotNull())
    task = Panes(Parcel(road.job), road.settings.paneRows, prepare_pieces)
    return rows.repartition(count, LABEL).mapInArrow(task, PACKED).localCheckpoint()


def _chunk_of(time: Column, cuts: list[Any], names: list[int]) -> Column:
    """The label of the chunk a time falls into: comparisons in a tree, so that a thousand cuts cost ten."""
    from pyspark.sql import functions as F

    if not cuts:
        return F.lit(names[0])
    middle = len(cuts) // 2
    before = _chunk_of(time, cuts[:middle], names[: middle + 1])
    return F.when(time < F.lit(cuts[middle]), before).otherwise(_chunk_of(time, cuts[middle + 1 :], names[middle + 1 :]))


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
    known = iter(labels(sum(len(giant.labels) for giant in giants)))
    return [Giant(giant.is_it, giant.cuts, [next(known) for _ in giant.labels]) for giant in giants]
