"""Which keys are too large for one task, from a sample of the rows.

A key is cut up where it has more rows than `heavyRows` and more than a task's fair share. A thousandth of the rows tells: a key of
two million has some two thousand in the sample, give or take a hundred. Small data is not sampled at all: Spark's own
estimate of its size says whether a heavy key could be in it.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from slidewise.engines.spark.batch_types import estimated_bytes, inner_name, quoted
from slidewise.engines.spark.giant import Giant, giant_of, spread_labels

if TYPE_CHECKING:
    from pyspark.sql import Column

    from slidewise.engines.spark.batch import Road

_SAMPLE = 0.001
_LEAST_BYTES = 20
"""About so many bytes a row takes with a time, a key and a value, in a compressed file. Where there is less than `heavyRows`
of that, a heavy key is not worth the time to look for it."""
_MOST_GIANTS = 64


def giant_keys(road: Road) -> list[Giant]:
    """The keys that are to be cut up, and where. Without a key: all rows, if there are enough of them."""
    settings, tasks = road.settings, tasks_of(road)
    if tasks < 2:
        return []
    if not road.job.plan.request.by:
        found = [giant_of(road, None, tasks)]
    elif settings.heavyRows and may_be_heavy(road):
        found = [giant_of(road, is_it, tasks) for is_it in _heavy(road, tasks)]
    else:
        found = []
    giants = [giant for giant in found if giant is not None]
    return spread_labels(giants) if giants else []


def tasks_of(road: Road) -> int:
    """How many tasks share a giant key."""
    return road.settings.tasks or int(road.shipped.df.sparkSession.conf.get("spark.sql.shuffle.partitions"))


def _heavy(road: Road, tasks: int) -> list[Column]:
    """Which rows each heavy key has."""
    from pyspark.sql import functions as F

    settings, shipped = road.settings, road.shipped
    keys = [quoted(inner_name(shipped.places[name])) for name in road.job.plan.request.by]
    fraction = 1.0 if settings.heavyRows < 1000 / _SAMPLE else _SAMPLE
    rows = shipped.df if fraction == 1.0 else shipped.df.sample(fraction, seed=1)
    names = [f"k{k}" for k in range(len(keys))]
    counted = rows.groupBy(*[key.alias(name) for key, name in zip(keys, names)]).agg(F.count(F.lit(1)).alias("rows"))
    largest = counted.where(F.col("rows") >= settings.heavyRows * fraction).orderBy(F.desc("rows")).limit(_MOST_GIANTS).collect()
    if not largest:
        return []
    total = rows.count()
    kinds = [shipped.kind(name) for name in road.job.plan.request.by]
    share = total / tasks
    return [
        reduce(and_, [key.eqNullSafe(F.lit(row[k]).cast(kinds[k])) for k, key in enumerate(keys)])
        for row in largest if row["rows"] > share
    ]


def may_be_heavy(road: Road) -> bool:
    """Whether Spark thinks the data is large enough to hold a heavy key; if it has no idea, it may be."""
    size = estimated_bytes(road.shipped.df)
    return size is None or size >= road.settings.heavyRows * _LEAST_BYTES
