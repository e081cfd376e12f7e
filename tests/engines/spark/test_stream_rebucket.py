"""Buckets: labels that fill all partitions, and another number of them for a checkpoint that exists."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    cut,
    events,
    final,
    out,
    rows_of,
    run,
    source,
    table,
    total,
    without,
    write_batches,
)

import slidewise as sw
from slidewise.engines.spark.buckets import labels, partition_of, shuffle_hash
from slidewise.engines.spark.rebucket import rebucket

ASKED = {
    "time": "ts",
    "by": "card",
    "windows": {"near": "5m", "three": sw.rows(3), "life": sw.lifetime(), "visit": sw.session("1m")},
    "aggs": {"n": sw.count(), "total": sw.sum("amount"), "who": sw.argmax("price", "shop")},
    "order": "id",
    "watermark": "3m",
    "id": "id",
    "ttl": "1d",
}


@pytest.mark.parametrize(("buckets", "partitions"), [(8, 8), (8, 2), (8, 4), (200, 50), (12, 3), (1, 1)])
def test_labels_fill_all_partitions_alike(buckets: int, partitions: int) -> None:
    found = Counter(partition_of(label, partitions) for label in labels(buckets))
    assert set(found) == set(range(partitions))
    assert set(found.values()) == {buckets // partitions}
    assert len(set(labels(buckets))) == buckets


def test_the_shuffle_hash_is_sparks(spark) -> None:
    numbers = [0, 1, 7, 2**31 - 1, -5, 123456]
    rows = spark.createDataFrame([(n,) for n in numbers], "n int").select("n", F.hash("n")).collect()
    assert {row[0]: row[1] for row in rows} == {n: shuffle_hash(n) for n in numbers}


@pytest.mark.parametrize("to", [2, 6])
def test_rebucket(spark, tmp_path: Path, to: int) -> None:
    rows = events(200, seed=51, jitter=100, cards=15)
    pieces = cut(rows, 3, 5)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces[:3]])

    def stream(buckets: int):
        return sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, buckets=buckets, control=tmp_path / "control")

    counts = run(stream(4), tmp_path)
    assert {c["label"] for c in counts} <= set(labels(4))
    moved = rebucket(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, checkpoint=tmp_path / "checkpoint",
                     control=tmp_path / "control", to=to)  # fmt: skip
    assert 0 < moved <= sum(len(piece) for piece in pieces[:3])
    with pytest.raises(StreamingQueryException, match=f"StateError: .*rebucket was run for {to} buckets, this query has 4"):
        run(stream(4), tmp_path)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces[3:]], first=3)
    counts = run(stream(to), tmp_path)
    assert {c["label"] for c in counts} <= set(labels(to))
    assert total(counts, "accepted") == sum(len(piece) for piece in pieces[3:])
    asked = without(ASKED, "watermark", "id", "ttl")
    expected = {row["id"]: row for row in rows_of(sw.rolling(table(rows, PLAIN), **asked))}
    assert {i: without(row, "revision", "late") for i, row in final(out(tmp_path)).items()} == expected


def test_rebucket_of_a_query_that_ran_on_is_refused(spark, tmp_path: Path) -> None:
    pieces = cut(events(90, seed=53), 1, 3)
    write_batches(tmp_path / "in", [table(pieces[0], PLAIN)])

    def stream(buckets: int, control: str):
        return sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, buckets=buckets, control=tmp_path / control)

    run(stream(4, "control"), tmp_path)
    rebucket(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, checkpoint=tmp_path / "checkpoint",
             control=tmp_path / "later", to=8)  # fmt: skip
    write_batches(tmp_path / "in", [table(pieces[1], PLAIN)], first=1)
    run(stream(4, "control"), tmp_path)
    for path in (tmp_path / "later").iterdir():
        path.rename(tmp_path / "control" / path.name)
    with pytest.raises(StreamingQueryException, match=r"StateError: .*has moved on since rebucket read it"):
        run(stream(8, "control"), tmp_path)
