"""Kafka without a broker: what is asked of Spark's reader and writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.support import JOB, job

from slidewise.pipeline import load, sinks, sources

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

    def load(self) -> Recorder:
        return self

    def save(self) -> None:
        self.told["saved"] = True


def checked(folder: Path):
    source = JOB[JOB.index("[source]") : JOB.index("[stream]")]
    text = PACKAGE + JOB.replace(source, KAFKA).replace('[sink]\nformat = "memory"\n', SINK)
    return load(job(folder, text), ["mode=stream"])


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


def test_messages_of_results(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is the job's key, the value the row, both as JSON."""
    found, writer, sent = checked(tmp_path), Recorder(), []
    rows = spark.createDataFrame([(1, "a", 5)], "id long, card string, total_1h long")
    monkeypatch.setattr(type(rows), "write", property(lambda frame: sent.append(frame.collect()) or writer))
    sinks._to_kafka(found, found.job.sink, rows)
    assert [tuple(row) for row in sent[0]] == [('{"card":"a"}', '{"id":1,"card":"a","total_1h":5}')]
    assert writer.told == {"format": "kafka", "kafka.bootstrap.servers": "one:9092", "topic": "features", "saved": True}
