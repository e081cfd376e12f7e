"""The Spark session a job asks for. Inside `spark-submit`, or where one runs already, that one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slidewise.engines.spark.session import STREAMING, local_session
from slidewise.pipeline import schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(name: str, spark: schema.SparkTable, log: Path | None) -> tuple[SparkSession, bool]:
    """The session, and whether it is ours to stop."""
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    conf: dict[str, Any] = dict(spark.conf)
    if spark.packages:
        known = str(conf.get("spark.jars.packages", ""))
        conf["spark.jars.packages"] = ",".join([*filter(None, [known]), *spark.packages])
    if there is not None:
        for key, value in {**STREAMING, **conf}.items():
            if there.conf.isModifiable(key):
                there.conf.set(key, _text(value))
        return there, False
    if spark.master.startswith("local"):
        cores, failures = _local(spark.master)
        return local_session(name, cores=cores, conf=conf, max_failures=failures, log=log), True
    builder = SparkSession.builder.appName(name).master(spark.master)
    for key, value in {**STREAMING, **conf}.items():
        builder = builder.config(key, _text(value))
    return builder.getOrCreate(), True


def _local(master: str) -> tuple[int, int]:
    """Cores, and how often a task may fail."""
    import os

    match = re.match(r"local(?:\[(\d+|\*)(?:,\s*(\d+))?\])?$", master)
    assert match is not None
    cores = 1 if match[1] is None else (os.cpu_count() or 1) if match[1] == "*" else int(match[1])
    return cores, int(match[2] or 1)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
