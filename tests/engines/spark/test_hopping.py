"""`sw.time("10m", slide="1s")` beside Spark's own `window(ts, '10 minutes', '1 second')`: the same windows, the same answers.

Spark's windows hold their left end and not their right one: closed="left" here. A window's row bears its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    SECOND,
    cut,
    events,
    out,
    rows_of,
    source,
    start,
    table,
    write_batches,
)

import slidewise as sw

pytestmark = pytest.mark.spark

ASKED = {
    "time": "ts",
    "by": "card",
    "windows": {"w": sw.time("10m", slide="1s")},
    "aggs": {"n": sw.count(), "total": sw.sum("amount"), "peak": sw.max("price")},
    "closed": "left",
    "emit": "slide",
}


def natively(df) -> dict:
    """By card and end of the window: Spark's own hopping windows."""
    from pyspark.sql import functions as F

    found = df.groupBy(F.window("ts", "10 minutes", "1 second"), "card").agg(
        F.count(F.lit(1)), F.sum("amount"), F.max("price")
    )
    return {(row[1], int(row[0].end.timestamp()) * SECOND): tuple(row[2:]) for row in found.collect()}


def ours(rows: list[dict]) -> dict:
    found = {(row["card"], row["ts"]): (row["n_w"], row["total_w"], row["peak_w"]) for row in rows}
    assert len(found) == len(rows), "one row for each card and window"
    return found


def test_batch(spark, tmp_path: Path) -> None:
    """Events on whole seconds: each lies on a boundary, where it matters which end a window holds."""
    write_batches(tmp_path, [table(events(40, seed=2), PLAIN)])
    df = spark.read.schema(PLAIN_DDL).parquet(str(tmp_path))
    found = ours(rows_of(sw.rolling(df, **ASKED).toArrow()))
    assert found == natively(df)
    assert len(found) > 3000


def test_stream(spark, tmp_path: Path) -> None:
    """Final results of a bounded stream, its end included: windows that end after the last event too."""
    rows = events(40, seed=3, seconds=900, jitter=120)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(rows, 1, 3)])

    def result():
        stream = source(spark, tmp_path / "in", PLAIN_DDL)
        return sw.rolling(stream, **ASKED, watermark="4m", id="id", results="final", control=tmp_path / "control")

    sw.run_bounded(lambda: start(result(), tmp_path), tmp_path / "control")
    assert ours(out(tmp_path)) == natively(spark.read.schema(PLAIN_DDL).parquet(str(tmp_path / "in")))
