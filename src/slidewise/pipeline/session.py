"""The Spark session a job asks for. Inside `spark-submit`, or where one runs already, that one."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slidewise.engines.spark.java import use_java
from slidewise.engines.spark.session import STREAMING, local_session
from slidewise.pipeline import schema
from slidewise.pipeline.packages import inside_submit, kinds_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    # Not the old INT96, in which a moment loses that it is one in UTC.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Times without a zone are UTC, here and wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
}


_DELTA = {
    # Without these two Delta refuses to work.
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def settings_of(job: schema.Job) -> dict[str, Any]:
    """The settings of the session that a job asks for; what stands in the job file wins."""
    spark = job.spark
    delta = "delta" in (kind for _, kind in kinds_of(job))
    conf: dict[str, Any] = {**STREAMING, **_DEFAULTS, **(_DELTA if delta else {}), **spark.conf}
    if spark.packages:
        known = str(conf.get("spark.jars.packages", ""))
        conf["spark.jars.packages"] = ",".join([*filter(None, [known]), *spark.packages])
    return conf


@contextlib.contextmanager
def open_session(name: str, job: schema.Job, log: Path | None) -> Iterator[SparkSession]:
    """A session for one run: stopped at the end if it was started here, otherwise left as it was found."""
    from pyspark.sql import SparkSession

    spark, conf = job.spark, settings_of(job)
    there = SparkSession.getActiveSession()
    if there is not None:
        with _with_settings(there, conf):
            yield there
        return
    if not inside_submit() and spark.master.startswith("local"):
        cores, failures = _local(spark.master)
        session = local_session(name, cores=cores, conf=conf, max_failures=failures, log=log)
    else:
        builder = SparkSession.builder.appName(name)
        if not inside_submit():  # whoever submits it says where it runs
            use_java()
            builder = builder.master(spark.master)
        for key, value in conf.items():
            builder = builder.config(key, _text(value))
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        with warnings.catch_warnings():  # a session that has died cannot be stopped, and what killed it is told elsewhere
            warnings.simplefilter("ignore", RuntimeWarning)
            session.stop()


@contextlib.contextmanager
def _with_settings(session: SparkSession, conf: dict[str, Any]) -> Iterator[None]:
    """What can be changed in a running session, for as long as the job runs."""
    before: dict[str, str | None] = {}
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            before[key] = session.conf.get(key, None)
            session.conf.set(key, _text(value))
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)


def _local(master: str) -> tuple[int, int]:
    """Cores, and how often a task may fail."""
    match = re.match(r"local(?:\[(\d+|\*)(?:,\s*(\d+))?\])?$", master)
    assert match is not None
    cores = 1 if match[1] is None else (os.cpu_count() or 1) if match[1] == "*" else int(match[1])
    return cores, int(match[2] or 1)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
