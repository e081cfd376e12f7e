"""What depends on the version of Spark: batches run from 3.5 on, streams from 4.0 on. `make spark-versions` runs this on each."""

from __future__ import annotations

from pathlib import Path

import pytest

import slidewise as sw
from slidewise.engines.spark.stream import _check_session
from slidewise.errors import UnsupportedError

ASKED = {"time": "ts", "by": "card", "windows": ["10m"], "aggs": {"n": sw.count(), "total": sw.sum("amount")}}
DDL = "id long, card string, ts timestamp, amount long"


def test_a_batch_runs_on_every_version(spark) -> None:
    df = spark.sql("select id, 'a' as card, timestamp_seconds(id * 60) as ts, id as amount from range(20)")
    rows = sw.rolling(df, **ASKED).orderBy("id").collect()
    assert [row.n_10m for row in rows] == [min(i + 1, 10) for i in range(20)]
    assert rows[-1].total_10m == sum(range(10, 20))


def test_a_stream_runs_or_says_that_it_cannot(spark, tmp_path: Path) -> None:
    stream = spark.readStream.schema(DDL).parquet(str(tmp_path))
    if int(spark.version.split(".")[0]) >= 4:
        assert sw.rolling(stream, **ASKED, watermark="5m", id="id").isStreaming
        return
    with pytest.raises(UnsupportedError, match=r"streams need Spark 4.0 or later.* this session is Spark 3\."):
        sw.rolling(stream, **ASKED, watermark="5m", id="id")


def test_an_older_session_is_refused() -> None:
    class Session:
        version = "3.5.9"

    with pytest.raises(UnsupportedError, match=r"streams need Spark 4.0 or later.* this session is Spark 3\.5\.9"):
        _check_session(Session())
