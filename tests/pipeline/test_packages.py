"""Kafka without a broker and Delta without its package: what is asked of Spark's reader and writer, what a message holds, and
what is said where the package is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_commands import slidewise
from tests.pipeline.support import JOB, job

import slidewise as sw
from slidewise.errors import RunError
from slidewise.pipeline import load, merging, run, sinks, sources
from slidewise.pipeline.schema import JdbcSink
from slidewise.pipeline.session import settings_of

KAFKA = """\
[source]
format = "kafka"
servers = "one:9092,two:9092"
topic = ["payments", "refunds"]
starting = "latest"
max_rows = 500
options = { "kafka.security.protocol" = "SASL_SSL", failOnDataLoss = false }
schema = { id = "long", ts = "timestamp", card = "string", amount = "long", paid = "boolean" }
"""
SINK = '[sink]\nformat = "kafka"\nservers = "one:9092"\ntopic = "features"\n'
PACKAGE = 'spark.packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"]\n'


class Recorder:
    """Takes the place of a reader or writer, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def format(self, name: str) -> Recorder:
        self.told["format"] = name
        return self

    def option(self, name: str, value: Any) -> Recorder:
        return self.options(**{name: value})

    def options(self, **given: Any) -> Recorder:
        self.told |= given
        return self

    def mode(self, name: str) -> Recorder:
        return self.options(mode=name)

    def load(self, path: str | None = None) -> Recorder:
        return self if path is None else self.options(path=path)

    def save(self) -> None:
        self.told["saved"] = True

    def saveAsTable(self, name: str) -> None:
        self.told["table"] = name


def checked(folder: Path, *settings: str):
    source = JOB[JOB.index("[source]") : JOB.index("[stream]")]
    text = PACKAGE + JOB.replace(source, KAFKA).replace('[sink]\nformat = "memory"\n', SINK)
    return load(job(folder, text), ["mode=stream", *settings])


def test_a_topic_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(tmp_path)
    session = type("Session", (), {"readStream": Recorder()})()
    monkeypatch.setattr(sources, "_parsed", lambda raw, source: raw)
    reader = sources.stream_frame(session, found.document, found.job.source)
    assert reader.told == {
        "format": "kafka",
        "kafka.bootstrap.servers": "one:9092,two:9092",
        "subscribe": "payments,refunds",
        "startingOffsets": "latest",
        "maxOffsetsPerTrigger": 500,
        "kafka.security.protocol": "SASL_SSL",
        "failOnDataLoss": "false",
    }


def test_a_topic_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch takes what is there, so how much a micro-batch takes says nothing to it."""
    found = checked(tmp_path, "mode=batch", "source.starting=earliest", "source.topic=payments")
    session = type("Session", (), {"read": Recorder()})()
    monkeypatch.setattr(sources, "_parsed", lambda raw, source: raw)
    told = sources.batch_frame(session, found.document, found.job.source).told
    assert (told["subscribe"], told["startingOffsets"], "maxOffsetsPerTrigger" in told) == ("payments", "earliest", False)


MESSAGES = {
    "json": '{"id": 1, "ts": "2024-01-01T00:00:00Z", "card": "a", "amount": 5, "paid": true}',
    "csv": "1,2024-01-01T00:00:00Z,a,5,true",
}


@pytest.mark.parametrize(("kind", "message"), MESSAGES.items())
def test_what_a_message_holds(spark, tmp_path: Path, kind: str, message: str) -> None:
    source = checked(tmp_path, f"source.value={kind}").job.source
    raw = spark.createDataFrame([(message.encode(),), (b"nonsense",), (None,)], "value binary")
    rows = [tuple(row) for row in sources._parsed(raw, source).collect()]
    assert rows[0][:1] + rows[0][2:] == (1, "a", 5, True)
    assert rows[0][1].timestamp() == 1704067200
    assert [row[1] for row in rows[1:]] == [None, None], "what cannot be read has no time, and is counted as bad"


def test_messages_of_results(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is the job's key, the value the row, both as JSON."""
    found, writer, sent = checked(tmp_path), Recorder(), []
    rows = spark.createDataFrame([(1, "a", 5)], "id long, card string, total_1h long")
    monkeypatch.setattr(type(rows), "write", property(lambda frame: sent.append(frame.collect()) or writer))
    sinks._to_kafka(found, found.job.sink, rows)
    assert [tuple(row) for row in sent[0]] == [('{"card":"a"}', '{"id":1,"card":"a","total_1h":5}')]
    assert writer.told == {"format": "kafka", "kafka.bootstrap.servers": "one:9092", "topic": "features", "saved": True}


# ---- Delta --------------------------------------------------------------------------------------------------------------

DELTA = JOB.replace('[source]\nformat = "parquet"', '[source]\nformat = "delta"').replace("events.parquet", "events")
DELTA_PACKAGE = 'spark.packages = ["io.delta:delta-spark_4.0_2.13:4.0.0"]\n'


def delta(folder: Path, *settings: str):
    (folder / "events").mkdir()
    return load(job(folder, DELTA_PACKAGE + DELTA), settings)


def test_a_delta_table_is_read(tmp_path: Path) -> None:
    found = delta(tmp_path, "mode=stream", "source.max_files=3", "source.options={ ignoreDeletes = true }")
    session = type("Session", (), {"readStream": Recorder()})()
    reader = sources.stream_frame(session, found.document, found.job.source)
    assert reader.told == {
        "format": "delta",
        "ignoreDeletes": "true",
        "maxFilesPerTrigger": 3,
        "path": str(tmp_path / "events"),
    }


def test_the_session_is_ready_for_delta(tmp_path: Path) -> None:
    conf = settings_of(delta(tmp_path, "spark.conf={ 'spark.sql.extensions' = 'mine' }").job)
    assert conf["spark.jars.packages"] == "io.delta:delta-spark_4.0_2.13:4.0.0"
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert conf["spark.sql.extensions"] == "mine", "what stands in the job file wins"
    (tmp_path / "plain").mkdir()
    plain = settings_of(load(job(tmp_path / "plain")).job)
    assert "spark.sql.extensions" not in plain
    assert plain["spark.sql.session.timeZone"] == "UTC", "on a cluster too"


def test_a_delta_table_leaves_out_what_it_has(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A micro-batch that comes again has the same number, and the table knows the stream's name for it."""
    found = delta(tmp_path, "mode=stream", "sink.format=table", "sink.table=main.features", "sink.provider=delta")
    writer, rows = Recorder(), spark.range(1)
    monkeypatch.setattr(type(rows), "write", property(lambda frame: writer))
    monkeypatch.setattr(type(spark.sparkContext), "getLocalProperty", lambda context, name: f"the {name}")
    sinks.StreamSink(found, print)(rows, 7)
    assert writer.told == {
        "mode": "append",
        "txnAppId": "the sql.streaming.queryId",
        "txnVersion": 7,
        "format": "delta",
        "table": "main.features",
    }


def test_a_delta_table_is_merged_by_id(spark) -> None:
    rows = spark.createDataFrame([(1, "a", 5)], "id long, `card no` string, total_1h long")
    make, merge = merging.table_statements("main.features", "delta", "changes", rows, ["id", "card no"])
    assert make == "CREATE TABLE IF NOT EXISTS main.features (`id` bigint, `card no` string, `total_1h` bigint) USING delta"
    assert merge == (
        "MERGE INTO main.features AS target USING changes AS source ON target.`id` <=> source.`id` AND "
        "target.`card no` <=> source.`card no` WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    _, careful = merging.table_statements("main.features", "delta", "changes", rows.selectExpr("*", "true as late"), ["id"])
    assert "WHEN MATCHED AND NOT coalesce(source.`late`, false) THEN UPDATE" in careful
    for statement in (make, merge, careful):  # Spark's own parser has the word
        spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)


# ---- databases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("jdbc:postgresql://db/x", "org.postgresql.Driver"),
        ("JDBC:SQLServer://db;user=x", "com.microsoft.sqlserver.jdbc.SQLServerDriver"),
        ("jdbc:derby:db", None),
        ("nonsense", None),
    ],
)
def test_the_driver_of_an_address(url: str, driver: str | None) -> None:
    """Spark would not find it in a package that was added."""
    given = sinks.jdbc_options(JdbcSink(url=url, table="t"))
    assert given.get("driver") == driver
    assert sinks.jdbc_options(JdbcSink(url=url, table="t", driver="mine"))["driver"] == "mine"


# ---- packages -----------------------------------------------------------------------------------------------------------


def test_a_session_that_is_there_has_its_own_packages(spark, tmp_path: Path) -> None:
    """Inside spark-submit they come with the session: the job need not name them, and Spark says what it lacks."""
    (tmp_path / "events").mkdir()
    with pytest.raises(RunError, match=r'no "delta" here.* packages = \["io\.delta:delta-spark'):
        run(load(job(tmp_path, DELTA)))


@pytest.mark.spark
@pytest.mark.slow
def test_a_package_that_cannot_be_had(tmp_path: Path) -> None:
    """One message that names it; a traceback and Ivy's report are for the log."""
    package = "org.example:nothing-of-the-kind_2.13:0.0.1"
    settings = {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.repositories": (tmp_path / "nowhere").as_uri()}
    text = f'spark.packages = ["{package}"]\n{JOB}\n[spark.conf]\n' + "".join(f'"{k}" = "{v}"\n' for k, v in settings.items())
    done = slidewise("run", str(job(tmp_path, text)))
    assert done.returncode == 1
    assert package in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.spark
@pytest.mark.slow
def test_inside_spark_submit(tmp_path: Path) -> None:
    """Where it runs is for whoever submits it to say: one core here, where the job file has two. The settings of the job hold."""
    import pyspark

    from slidewise.engines.spark.java import find_java

    path = job(tmp_path, JOB.replace('format = "memory"', 'format = "parquet"\npath = "out"'))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    conf = ["--conf", "spark.ui.enabled=false", "--conf", f"spark.eventLog.dir={tmp_path}", "--conf", "spark.eventLog.enabled=true"]
    environment = os.environ | {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    main = [str(Path(sw.__file__).with_name("__main__.py")), "run", str(path), "--json"]
    command = [str(submit), "--master", "local[1]", *conf, "--conf", "spark.eventLog.compress=false", *main]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["rows"] == 200
    assert any('"spark.master":"local[1]"' in file.read_text(encoding="utf-8") for file in tmp_path.rglob("events_*")), "not ours"
