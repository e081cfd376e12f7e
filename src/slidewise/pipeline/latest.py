"""Eager results come again when they change; `latest` keeps the last word on each event."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slidewise.pipeline.meaning import names
from slidewise.pipeline.schema import Job

REVISION = "revision"


def merge_keys(job: Job) -> list[str]:
    """The columns that say which row a later revision replaces."""
    if job.emit == "event":
        return names(job.id)
    return [*names(job.by), *([job.time] if job.emit == "slide" else [])]


def latest(results: Any, id: str | list[str]) -> Any:
    """The rows of highest revision for each id: of an Arrow table or a Spark frame."""
    keys = names(id)
    if isinstance(results, pa.Table):
        return _of_table(results, keys)
    from pyspark.sql import functions as F

    row = F.max_by(F.struct(*results.columns), F.col(REVISION)).alias("row")
    return results.groupBy(*keys).agg(row).select("row.*")


def _of_table(results: pa.Table, keys: list[str]) -> pa.Table:
    place = pa.array(range(results.num_rows), pa.int64())
    ordered = results.append_column("__place", place).sort_by([(REVISION, "ascending"), ("__place", "ascending")])
    last = ordered.group_by(keys, use_threads=False).aggregate([("__place", "last")])["__place_last"]
    return results.take(last)
