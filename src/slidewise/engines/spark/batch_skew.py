"""Which keys are too large for one task, from a sample of the rows.

A key is cut up where it has more rows than `heavyRows` and more than a task's fair share. A thousandth of the rows tells: a key of
two million has some two thousand in the sample, give or take a hundred. The data is read once for it: the keys and times of
the sample tell how large keys are and where to cut them. The driver takes them, or Spark keeps them where they may be many.

Only where it is known that there are too few rows, nothing is looked at: Spark knows it of some plans, and Parquet files on the
driver's disks tell it in their footers. How large Spark thinks the data is does not: a column that repeats itself takes next to no
room in a file. Keys that only Spark can tell apart (`chosen_by_spark`) are not cut up.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import numpy as np

from slidewise.engines.local.keys import encode
from slidewise.engines.spark.batch_keys import chosen_by_spark, exact
from slidewise.engines.spark.batch_types import inner_name, most_rows, quoted, to_arrow
from slidewise.engines.spark.giant import Giant, Look, fits_driver, giant_of, spread_labels

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from slidewise.engines.spark.batch import Road

_SAMPLE = 0.001
_SEEN = 2000
"""So many rows of a heavy key are in the sample at least, give or take a few."""
_MOST_GIANTS = 64


def giant_keys(road: Road) -> list[Giant]:
    """The keys that are to be cut up, and where. Without a key: all rows, if there are enough of them."""
    tasks = tasks_of(road)
    if tasks < 2:
        return []
    found: list[Giant | None] = []
    if not road.job.plan.request.by:
        found = [giant_of(road, None, tasks)]
    elif may_be_heavy(road):
        found = [giant_of(road, is_it, tasks, look) for is_it, look in _heavy(road, tasks)]
    giants = [giant for giant in found if giant is not None]
    return spread_labels(giants) if giants else []


def tasks_of(road: Road) -> int:
    """How many tasks share a giant key."""
    return road.settings.tasks or int(road.shipped.df.sparkSession.conf.get("spark.sql.shuffle.partitions"))


def may_be_heavy(road: Road) -> bool:
    """Whether the data may hold a heavy key that can be cut, as far as can be told without looking at it."""
    heavy = road.settings.heavyRows
    shipped = road.shipped
    if not heavy or any(chosen_by_spark(shipped.kinds[place]) for place in shipped.stand_ins.values()):
        return False
    rows = most_rows(shipped.df, shipped.costs)
    return rows is None or rows >= heavy


def _heavy(road: Road, tasks: int) -> list[tuple[Column, Look]]:
    """Which rows each heavy key has, and those of them that were seen."""
    from pyspark.sql import functions as F

    shipped, request, heavy = road.shipped, road.job.plan.request, road.settings.heavyRows
    fraction = min(1.0, max(_SAMPLE, _SEEN / heavy))
    # keys are told, and told again in `is_it`, in a form that crosses into Python and back as it is
    columns = [exact(quoted(inner_name(shipped.places[name])), shipped.kind(name)) for name in request.by]
    names = [f"k{k}" for k in range(len(columns))]
    time = inner_name(shipped.places[request.time])
    sample = shipped.df.select(*[column.alias(name) for column, name in zip(columns, names)], time)
    kinds = [sample.schema[name].dataType for name in names]
    sample = sample if fraction == 1.0 else sample.sample(fraction, seed=1)
    look = _on_driver if fits_driver(road) else _by_spark
    found = []
    for values, rows, total, seen in sorted(look(road, sample, names, heavy * fraction), key=lambda one: -one[1])[:_MOST_GIANTS]:
        if rows > total / tasks:
            own = [F.lit(value).cast(kind) for value, kind in zip(values, kinds)]
            is_it, is_seen = (reduce(and_, [c.eqNullSafe(v) for c, v in zip(each, own)]) for each in (columns, map(quoted, names)))
            found.append((is_it, Look(seen.where(is_seen) if look is _by_spark else seen, fraction, tuple(values))))
    return found


def _on_driver(road: Road, sample: DataFrame, names: list[str], least: float) -> Iterator[tuple]:
    """For each key with so many rows in the sample: the key, its rows, all rows, and its times."""
    seen = to_arrow(sample)
    if not len(seen):
        return
    columns = [seen.column(name) for name in names]
    keys = encode(columns)
    rows = np.bincount(keys.codes, minlength=keys.count)
    times = seen.column(inner_name(road.shipped.places[road.job.plan.request.time]))
    for code in np.flatnonzero(rows >= least).tolist():
        own = np.flatnonzero(keys.codes == code)
        yield [column[own[0]].as_py() for column in columns], len(own), len(seen), times.take(own)


def _by_spark(road: Road, sample: DataFrame, names: list[str], least: float) -> Iterator[tuple]:
    """As `_on_driver`, but with the whole sample in place of a key's times."""
    from pyspark.sql import functions as F

    kept = sample.localCheckpoint()
    counted = kept.groupBy(*names).agg(F.count(F.lit(1)).alias("rows")).where(F.col("rows") >= least).collect()
    total = kept.count() if counted else 0
    for row in counted:
        yield [row[name] for name in names], row["rows"], total, kept
