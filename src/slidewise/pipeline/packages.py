"""Formats that Spark does not bring along: their packages must be named in the job, or be there with the session.

Nothing is fetched here. What to write is said for the PySpark that is installed; the makers of Delta and Iceberg count their
versions by themselves, and which of them go with which Spark stands in their pages.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from slidewise.pipeline.problems import Problem
from slidewise.pipeline.reading import Document

DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "org.postgresql:postgresql"),
    "mysql": ("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    "mariadb": ("org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.SQLServerDriver", "com.microsoft.sqlserver:mssql-jdbc"),
    "oracle": ("oracle.jdbc.OracleDriver", "com.oracle.database.jdbc:ojdbc11"),
    "db2": ("com.ibm.db2.jcc.DB2Driver", "com.ibm.db2:jcc"),
    "h2": ("org.h2.Driver", "com.h2database:h2"),
    "sqlite": ("org.sqlite.JDBC", "org.xerial:sqlite-jdbc"),
}
"""Of databases by their addresses, jdbc:NAME:...: the driver's class, which Spark does not find by itself in an added package, and
the package."""
_COORDINATE = re.compile(r"^[^:\s]+:[^:\s]+:[^:\s]+$")


def missing(document: Document) -> Iterator[Problem]:
    """Packages that cannot be names of any, and formats without theirs."""
    job = document.job
    for number, package in enumerate(job.spark.packages):
        if not _COORDINATE.match(package):
            yield Problem(("spark", "packages", number), f'must be "group:artifact:version", not "{package}"')
    if session_is_there():
        return  # its owner has chosen its packages, and Spark will say what it lacks
    settings = [str(job.spark.conf.get(key, "")) for key in ("spark.jars", "spark.jars.packages")]
    named = " ".join([*job.spark.packages, *settings]).lower()
    for key, kind in kinds_of(job):
        known = coordinates(kind)
        if known is not None and kind not in named:
            yield Problem(key, f'"{kind}" is a package of its own; name it under [spark]: packages = ["{known}"]')


def coordinates(kind: str) -> str | None:
    """The Maven coordinates of a format's package for this PySpark; None for formats that need none."""
    version = spark_version()
    minor = ".".join(version.split(".")[:2])
    return {
        "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        "delta": f"io.delta:delta-spark_{minor}_2.13:VERSION",
        "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:VERSION",
    }.get(kind)


def driver_of(url: str) -> str | None:
    """The driver's class for an address, if it is one of those that are known."""
    known = DRIVERS.get(url.split(":")[1].lower()) if url.lower().startswith("jdbc:") and url.count(":") > 1 else None
    return None if known is None else known[0]


def spark_version() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return "VERSION"


def kinds_of(job: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every format that a job names, with its key."""
    parts: dict[tuple[str, ...], Any] = {("source",): job.source, ("history",): job.history, ("sink",): job.sink}
    parts["as_of", "queries"] = None if job.as_of is None else job.as_of.queries
    for key, part in parts.items():
        if part is not None:
            yield (*key, "format"), str(part.__struct_config__.tag)
    if getattr(job.sink, "provider", None):
        yield ("sink", "provider"), job.sink.provider.lower()


def session_is_there() -> bool:
    """Where a session runs already, or is to be had from `spark-submit`."""
    sql = sys.modules.get("pyspark.sql")
    return inside_submit() or (sql is not None and sql.SparkSession.getActiveSession() is not None)


def inside_submit() -> bool:
    """`spark-submit` starts the JVM first, and tells Python where to find it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
