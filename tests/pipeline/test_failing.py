"""What Spark says when it fails, and what of it a reader gets."""

from pathlib import Path

import pytest

from slidewise.pipeline import packages
from slidewise.pipeline.failing import words

OURS = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
  File "worker.py", line 3, in run
slidewise.errors.AggregateOverflowError: total: 9223372036854775808 leaves int64
\tat org.apache.spark.api.python.BasePythonRunner"""
PYTHON = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "mine.py", line 7, in combine
IndexError: list index out of range
\tat org.apache.spark.scheduler"""
JAVA = """\
An error occurred while calling o56.save.
: org.postgresql.util.PSQLException: FATAL: password authentication failed for user
\tat java.sql.DriverManager.getDriver(DriverManager.java:299)
Caused by: java.lang.Exception: deeper"""
IN_A_SINK = f"""\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink.
Traceback (most recent call last):
  File "captured.py", line 256, in deco
py4j.protocol.Py4JJavaError: {JAVA}"""
DELTA = """\
An error occurred while calling o371.load.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure
\tat org.apache.spark"""
OTHER_SOURCE = DELTA.replace("delta", "nosuch")
HOLLOW = """\
An error occurred while calling o56.collectToPython.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 48.0 failed 1 times
\tat org.apache.spark
Caused by: org.apache.spark.SparkIllegalArgumentException: CSV header does not conform to the schema.
 Header: id, ts
 Schema: ts, id
\tat org.apache.spark
\t... 19 more"""
UNREAD = """\
An error occurred while calling o431.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while \
reading file file:///in/b.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in \
record parsing: [2,x,null].
Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'. \
SQLSTATE: 22023
\tat org.apache.spark.sql
Caused by: java.lang.NumberFormatException: For input string: "2 EUR"
\tat java.base
\t... 25 more"""
GATEWAY = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
IVY = 'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.example#nothing_2.13;0.0.1: not found]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OURS, "total: 9223372036854775808 leaves int64"),
        (PYTHON, "IndexError: list index out of range"),
        (JAVA, "PSQLException: FATAL: password authentication failed for user"),
        (HOLLOW, "SparkIllegalArgumentException: CSV header does not conform to the schema. Header: id, ts Schema: ts, id"),
        (
            f"[STREAM_FAILED] Query [id = 7, runId = 8] terminated with exception: {HOLLOW.splitlines()[3][11:]}\n{HOLLOW}",
            "SparkIllegalArgumentException: CSV header does not conform to the schema. Header: id, ts Schema: ts, id",
        ),
        ("[STREAM_FAILED] Query [id = 7] terminated with exception: no room left", "no room left"),
        (
            UNREAD,
            '/in/b.csv holds what cannot be read as its schema says: [2,x,null] '
            '(NumberFormatException: For input string: "2 EUR"); '
            'mend it, or take such values as null: source.options.mode = "PERMISSIVE"',
        ),
        (IN_A_SINK, "PSQLException: FATAL: password authentication failed for user"),
        ("[TABLE_ALREADY_EXISTS] features is there\nSQLSTATE: 42P07", "[TABLE_ALREADY_EXISTS] features is there"),
        ("", "RuntimeError"),
        (GATEWAY, GATEWAY),
    ],
)
def test_one_line_says_it(text: str, expected: str) -> None:
    assert words(RuntimeError(text)) == expected


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "spark_version", lambda: "4.0.1")
    told = words(RuntimeError(DELTA))
    assert told.endswith('name it under [spark]: packages = ["io.delta:delta-spark_4.0_2.13:VERSION"]')
    kafka = words(RuntimeError(DELTA.replace("delta", "kafka")))
    assert kafka.endswith('packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.1"]')
    assert "Failed to find the data source: nosuch" in words(RuntimeError(OTHER_SOURCE))


def test_a_driver_that_is_not_there() -> None:
    told = words(RuntimeError("o56.save.\n: java.sql.SQLException: No suitable driver\n\tat java.sql"))
    assert told == 'Spark has no driver for this address; name its package under [spark]: packages = ["GROUP:ARTIFACT:VERSION"]'
    told = words(RuntimeError("o56.save.\n: java.lang.ClassNotFoundException: org.postgresql.Driver\n\tat java.net"))
    assert told.startswith("Spark has no driver org.postgresql.Driver; ")
    assert told.endswith('packages = ["org.postgresql:postgresql:VERSION"]')


def test_no_spark_at_all() -> None:
    told = words(ModuleNotFoundError("No module named 'pyspark'", name="pyspark"))
    assert told.startswith("Spark is not installed here: ")
    assert words(ModuleNotFoundError("No module named 'mine'", name="mine")) == "No module named 'mine'"


def test_what_java_said_before_it_ended(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    assert words(RuntimeError(GATEWAY), log) == GATEWAY
    log.write_text(f":: loading settings\n{IVY}\n\tat org.apache.spark\n", encoding="utf-8")
    assert words(RuntimeError(GATEWAY), log).startswith("the package org.example:nothing_2.13:0.0.1 cannot be had (not found); ")
    log.write_text('Exception in thread "main" java.lang.OutOfMemoryError: no room\n', encoding="utf-8")
    assert words(RuntimeError(GATEWAY), log) == "OutOfMemoryError: no room"
