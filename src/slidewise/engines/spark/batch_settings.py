"""Settings of the batch road, read from Spark's own configuration: `spark.conf.set("spark.slidewise.heldBytes", 64 << 20)`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from slidewise.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "spark.slidewise."


@dataclass(frozen=True)
class Settings:
    heldBytes: int = 256 << 20
    """A task holds so much of its partition in memory; beyond it goes through sorted runs on disk. A giant key
    is cut so that each task has about so much at most."""
    chunkRows: int = 1 << 20
    """A key of more rows than this, in a partition that is not held, is worked on in pieces of about so many."""
    paneRows: int = 1 << 14
    """Rows for which a giant key's totals are kept: what a window needs of another task's rows is cut to these."""
    heavyRows: int = 2_000_000
    """A key of more rows than this is spread over several tasks, if one task would get more than its share; 0: never."""
    tasks: int = 0
    """Tasks for a giant key; 0: as many as Spark has shuffle partitions."""


def settings_of(spark: SparkSession) -> Settings:
    found = {}
    for field in fields(Settings):
        text = spark.conf.get(PREFIX + field.name, None)
        if text is not None:
            try:
                found[field.name] = int(text)
            except ValueError:
                raise InputError(f"{PREFIX}{field.name} is {text!r}, not a whole number") from None
            if found[field.name] < (0 if field.name in ("heavyRows", "tasks") else 1):
                raise InputError(f"{PREFIX}{field.name} must be more than zero, not {text}")
    return Settings(**found)
