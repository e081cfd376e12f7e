"""Eager results come again when they change; `latest` keeps the last word on each event."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.pipeline.meaning import names
from slidewise.pipeline.schema import Job

REVISION, LATE = "revision", "late"


def merge_keys(job: Job) -> list[str]:
    """The columns that say which row a later revision replaces."""
    if job.emit == "event":
        return names(job.id)
    return [*names(job.by), *([job.time] if job.emit == "slide" else [])]


def latest(results: Any, id: str | list[str]) -> Any:
    """The rows of highest revision for each id: of an Arrow table or a Spark frame. A late event that was handed out apart has no
    results: it stands for its id only where nothing else does, however high its revision."""
    keys = names(id)
    if isinstance(results, pa.Table):
        return _of_table(results, keys)
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType

    given = F.lit(True)
    if isinstance(results.schema[LATE].dataType if LATE in results.columns else None, BooleanType):
        given = ~F.coalesce(F.col(LATE), F.lit(False))
    row = F.max_by(F.struct(*results.columns), F.struct(given, F.col(REVISION))).alias("row")
    return results.groupBy(*keys).agg(row).select("row.*")


def _of_table(results: pa.Table, keys: list[str]) -> pa.Table:
    place = pa.array(range(results.num_rows), pa.int64())
    given = pa.repeat(pa.scalar(1, pa.int8()), results.num_rows)
    if LATE in results.column_names and pa.types.is_boolean(results.schema.field(LATE).type):
        given = pc.cast(pc.invert(pc.fill_null(results[LATE], False)), pa.int8())
    ordered = results.append_column("__place", place).append_column("__given", given)
    ordered = ordered.sort_by([(name, "ascending") for name in ("__given", REVISION, "__place")])
    last = ordered.group_by(keys, use_threads=False).aggregate([("__place", "last")])["__place_last"]
    return results.take(last)
