"""Data without a key, and heavy keys, over many tasks: which road is taken, and that every road gives the same."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.spark.batch_support import FAMILIES, differences, random_table
from tests.engines.spark.test_batch import ORDER, frame, in_order, settings

import slidewise as sw
from slidewise.engines.spark import batch, giant
from slidewise.engines.spark.batch import as_of_road, rolling_road
from slidewise.engines.spark.batch_skew import giant_keys, may_be_heavy
from slidewise.engines.spark.batch_types import to_arrow
from slidewise.planner.request import request

SMALL = {"tasks": 4, "paneRows": 50}
SHORT = {
    "time": sw.time(9), "slide": sw.time(8, slide=3), "offset": sw.time(4, offset=3), "tumbling": sw.tumbling(5),
    "rows": sw.rows(7), "session": sw.session(2), "punctuation": sw.punctuation("flag"),
}
LONG = {
    "long": sw.time(5000), "many": sw.rows(1500), "counted": sw.rows(4, slide=3), "delta": sw.delta("x", 3),
    "lifetime": sw.lifetime(),
}


def passes(road) -> list[int]:
    return [1 if giant.cuts.since is not None else 2 for giant in giant_keys(road)]


def sparse(rng) -> pa.Table:
    """1,600 rows with ties; every window of time and every session is a few rows long."""
    return random_table(rng, 1600, times=6000)


@pytest.mark.parametrize("name", [*SHORT, *LONG])
def test_short_windows_take_one_pass_and_long_ones_two(spark, name):
    table = sparse(np.random.default_rng(1))
    asked = {"time": "t", "windows": {"w": (SHORT | LONG)[name]}, "aggs": FAMILIES, "order": ORDER}
    df = frame(spark, table)
    with settings(spark, **SMALL):
        assert passes(rolling_road(df, request(**asked))) == [1 if name in SHORT else 2]
        found = to_arrow(sw.rolling(df, **asked))
    assert not differences(in_order(found, "id"), in_order(sw.rolling(table, **asked), "id"))


def test_all_short_windows_together_for_several_heavy_keys(spark):
    table = random_table(np.random.default_rng(2), 3000, keys=2, times=12_000)
    asked = {"time": "t", "by": "key", "windows": SHORT, "aggs": FAMILIES, "order": ORDER}
    df = frame(spark, table)
    with settings(spark, **SMALL, heavyRows=800):  # two keys of some 1,350 rows; a task's share is 750
        assert passes(rolling_road(df, request(**asked))) == [1, 1]
        found = to_arrow(sw.rolling(df, **asked))
    assert not differences(in_order(found, "id"), in_order(sw.rolling(table, **asked), "id"))


@pytest.mark.parametrize(("windows", "wanted"), [
    ({"w": sw.time(9), "r": sw.rows(3)}, [1]), ({"s": sw.session(2)}, [2]),
], ids=["one pass", "two passes"])
def test_as_of_over_many_tasks(spark, windows, wanted):
    rng = np.random.default_rng(3)
    data, n = sparse(rng), 300
    queries = pa.table({"t": pa.array(rng.integers(-5, 6100, n)), "label": pa.array(range(n))})
    asked = {"time": "t", "windows": windows, "aggs": {"ids": sw.collect("id"), "n": sw.count()}, "order": ORDER}
    asking, df = frame(spark, queries), frame(spark, data)
    with settings(spark, **SMALL):
        assert passes(as_of_road(asking, df, request(**asked, closed="left", as_of=True), "t", ())) == wanted
        found = to_arrow(sw.as_of(asking, df, **asked))
    assert not differences(in_order(found, "label"), in_order(sw.as_of(queries, data, **asked), "label"))


TIMES = {
    "timestamp": "timestamp'2024-03-30 22:00:00' + make_dt_interval(0, 0, 0, id)",
    "timestamp_ntz": "cast(timestamp'2024-03-30 22:00:00' + make_dt_interval(0, 0, 0, id) as timestamp_ntz)",
    "date": "date'1900-01-01' + cast(id as int)",
    "double": "id / 7D",
    "int": "cast(id - 5000 as int)",
}


@pytest.mark.parametrize("kind", TIMES)
def test_any_kind_of_time_is_cut(spark, kind):
    df = spark.range(20_000).selectExpr(f"{TIMES[kind]} as t", "id", "id % 5 as n").where("id % 100 < 90").repartition(3)
    wide = {"timestamp": "5m", "timestamp_ntz": "5m", "date": dt.timedelta(days=30), "double": 8.5, "int": 60}[kind]
    gap = {"timestamp": "5s", "timestamp_ntz": "5s", "date": dt.timedelta(days=5), "double": 1.0, "int": 5}[kind]
    asked = {"time": "t", "windows": {"w": sw.time(wide), "r": sw.rows(40), "s": sw.session(gap)},
             "aggs": {"total": sw.sum("n"), "n": sw.count()}}
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        with settings(spark, tasks=4, paneRows=500):
            assert passes(rolling_road(df, request(**asked))) == [1]
            found = in_order(to_arrow(sw.rolling(df, **asked)), "id")
        assert not differences(found, sw.rolling(in_order(to_arrow(df), "id"), **asked))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_large_data_is_cut_where_small_data_is(spark, monkeypatch):
    """Times of a sample, and Spark's own percentiles of it; rows without a usable time are cut nowhere."""
    df = spark.range(900).selectExpr("case when id % 9 = 0 then null when id % 7 = 0 then double('nan') else id / 3D end as t")
    road = rolling_road(df.where("not isnan(t)"), request(time="t", windows={"w": sw.time(5)}, aggs={"n": sw.count()}))
    count, marks = giant._marks(road, giant.Look(road.shipped.df, 1.0), 7)
    monkeypatch.setattr(giant, "_COLLECTED", -1)
    assert (count, marks.tolist()) == (900 - 114, giant._marks(road, giant.Look(road.shipped.df, 1.0), 7)[1].tolist())


def rows_per_task(found) -> dict[int, int]:
    from pyspark.sql import functions as F

    return {row["task"]: row["count"] for row in found.groupBy(F.spark_partition_id().alias("task")).count().collect()}


@pytest.mark.parametrize("by", [None, ["key", "word"]], ids=["no key", "keys"])
@pytest.mark.parametrize("window", [sw.time(2000), sw.rows(2000), sw.session(5), sw.time(50), sw.rows(50)], ids=str)
def test_a_giant_key_is_spread_over_the_tasks(spark, window, by):
    n = 4000
    df = spark.range(n).selectExpr("id as t", "id % 7 as n", "8D as key", "cast(null as string) as word")
    asked = {"time": "t", "by": by, "windows": {"w": window}, "aggs": {"total": sw.sum("n")}}
    whole = sw.rolling(to_arrow(df), **asked)
    for tasks in (2, 8) if by is None else (4,):
        with settings(spark, tasks=tasks, paneRows=50, heavyRows=2000):
            found = sw.rolling(df, **asked)
            rows = rows_per_task(found)
        assert sum(rows.values()) == n and len(rows) == tasks
        assert max(rows.values()) <= 1.2 * n / tasks
        assert not differences(in_order(to_arrow(found), "t"), whole)


@pytest.mark.parametrize("collected", [True, False], ids=["on the driver", "by Spark"])
def test_a_giant_key_beside_small_ones_is_spread(spark, monkeypatch, collected):
    """Three rows in four have one key; those of the others are in whole keys."""
    monkeypatch.setattr(giant, "_COLLECTED", giant._COLLECTED if collected else -1)
    n = 4000
    df = spark.range(n).selectExpr("id as t", "case when id % 4 > 0 then -0.0D else id % 17 end as key")
    asked = {"time": "t", "by": "key", "windows": {"w": sw.rows(50)}, "aggs": {"n": sw.count()}}
    with settings(spark, tasks=4, paneRows=50, heavyRows=2000):
        found = sw.rolling(df.repartition(3), **asked)
        rows = sorted(rows_per_task(found.where("key = 0")).values())
    assert len(rows) == 4 and rows[-1] <= 1.2 * sum(rows) / 4 and sum(rows) >= 3000
    assert not differences(in_order(to_arrow(found), "t"), sw.rolling(to_arrow(df), **asked))


@pytest.mark.parametrize("keys", [1, 2], ids=["a giant key", "two giant keys"])
def test_giant_keys_come_first_and_are_picked_out_where_files_are_read(spark, tmp_path, keys):
    """Their tasks are the longest. And Spark passes over parts of files that hold none of their rows. The key, one value in a
    chunk, does not go to Python and through the shuffle with each row; that of other keys does."""
    path = str(tmp_path / "rows")
    spark.range(8000, numPartitions=2).selectExpr("id as t", f"if(id % 100 = 0, 50 + id, id % {keys}) as key").write.parquet(path)
    df = spark.read.parquet(path)
    asked = {"time": "t", "by": "key", "windows": {"w": sw.time(9)}, "aggs": {"n": sw.count()}}
    with settings(spark, tasks=4, paneRows=50, heavyRows=2000), contextlib.redirect_stdout(io.StringIO()) as plan:
        found = sw.rolling(df, **asked)
        found.explain()
    giants, rest = re.findall(r"PushedFilters: \[(.*?)\]", plan.getvalue())
    assert re.match(r"(Or\()?EqualNullSafe\(key", giants) and giants.count("EqualNullSafe") == keys and "Not(" not in giants
    assert rest.count("Not(EqualNullSafe(key") == keys
    taken = re.findall(r"(?:Pack|Partitions)\((.*?)\)", plan.getvalue())
    assert [re.findall(r"c\d", columns) for columns in taken] == [["c0"], ["c0", "c1"]]
    assert not differences(in_order(to_arrow(found), "t"), in_order(sw.rolling(to_arrow(df), **asked), "t"))


NESTED = {
    "struct": "struct(if(id % 2 = 0, 0.0D, -0.0D) as a, id % 3 as A)",
    "array": "array(struct(array(if(id % 2 = 0, 0.0F, -0.0F), null) as x), null, struct(array(float(id % 3)) as x))",
}
COLLATED = {
    "text": "if(id % 2 = 0, 'AbC', 'aBc') collate UTF8_LCASE",
    "texts": "array(struct(if(id % 2 = 0, 'AbC', 'aBc') collate UTF8_LCASE as x))",
    "icu": "if(id % 2 = 0, 'AbC', 'aBc') collate UNICODE_CI",
    "icus": "struct(if(id % 2 = 0, 'AbC', 'aBc') collate UNICODE_CI as x, if(id % 2 = 0, 0.0D, -0.0D) as y)",
}


@pytest.mark.parametrize("name", [*NESTED, *COLLATED])
def test_what_stands_for_a_key_does_not_depend_on_the_rows_beside_it(spark, name):
    """It is computed again for each giant key, for its look and for the rest, and Spark sends rows in any order."""
    if name in COLLATED and spark.version < "4":
        pytest.skip("no collations")
    asked = request(time="t", by="key", windows={"w": sw.time(5)}, aggs={"n": sw.count()})
    found = []
    for order in ("id", "-id"):
        df = spark.range(300, numPartitions=1).selectExpr("id", f"{order} as place").orderBy("place")
        df = df.selectExpr("id as t", f"{(NESTED | COLLATED)[name]} as key")
        road = rolling_road(df, asked)
        place = road.shipped.places[road.job.plan.request.by[0]]
        found.append({row[0] for row in road.shipped.df.select(f"c{place}").distinct().collect()})
    assert found[0] == found[1] and len(found[0]) == (3 if name in NESTED else 1)


@pytest.mark.parametrize("name", NESTED)
def test_a_giant_key_with_parts_is_spread(spark, name):
    n = 4000
    df = spark.range(n).selectExpr("id as t", "id % 7 as n", f"{NESTED[name].replace('id % 3', '1')} as key")
    asked = {"time": "t", "windows": {"w": sw.rows(50)}, "aggs": {"total": sw.sum("n")}}
    with settings(spark, tasks=4, paneRows=50, heavyRows=2000):
        found = sw.rolling(df, by="key", **asked)
        rows = rows_per_task(found)
    assert sum(rows.values()) == n and len(rows) == 4
    assert not differences(in_order(to_arrow(found.drop("key")), "t"), sw.rolling(to_arrow(df.drop("key")), **asked))


@pytest.mark.parametrize("length", [20, 3000])
def test_a_giant_key_of_any_type_and_year_is_found_again(spark, length):
    """Python would read them in its own zone, or not at all."""
    df = spark.range(4000).selectExpr(
        "id as t", "timestamp_ntz'2024-06-10 02:30:00' as a", "timestamp_ntz'1500-01-01 00:00:00' as b",
        "timestamp'+12000-01-01 00:00:00' as c", "timestamp'2024-11-03 06:30:00.000001Z' as d", "date'0800-01-01' as e",
        "make_dt_interval(1, 2, 3, 4.000005) as f", "1.50BD as g", "float('nan') as h", "x'00ff' as i")
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        with settings(spark, tasks=4, paneRows=50, heavyRows=2000):
            found = sw.rolling(df, time="t", by=df.columns[1:], windows={"w": sw.rows(length)}, aggs={"n": sw.count()})
            rows = rows_per_task(found)
        assert sum(rows.values()) == 4000 and len(rows) == 4
        assert found.selectExpr("sum(n_w)").collect()[0][0] == sum(min(k + 1, length) for k in range(4000))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("window", [sw.rows(20), sw.rows(3000)], ids=str)
def test_a_giant_key_whose_rows_are_gone_is_none(spark, monkeypatch, window):
    from pyspark.sql import functions as F

    df = spark.range(4000).selectExpr("id as t", "1 as key")
    monkeypatch.setattr(batch, "giant_keys", lambda road: [replace(each, is_it=F.lit(False)) for each in giant_keys(road)])
    with settings(spark, tasks=4, paneRows=50, heavyRows=2000):
        assert sw.rolling(df, time="t", by="key", windows={"w": window}, aggs={"n": sw.count()}).count() == 4000


def test_a_giant_key_in_a_small_file_is_seen(spark, tmp_path):
    """Rows that repeat themselves take next to no room: 40,000 of them less than two bytes each."""
    from pyspark.sql import functions as F

    n, path = 40_000, str(tmp_path / "rows")
    spark.range(n, numPartitions=1).selectExpr("id div 100 as t", "1L as key", "2D as x").write.parquet(path)
    df = spark.read.parquet(path)
    assert sum(file.stat().st_size for file in (tmp_path / "rows").glob("*.parquet")) < 2 * n
    with settings(spark, tasks=4, paneRows=500, heavyRows=20_000):
        rows = rows_per_task(sw.rolling(df, time="t", by="key", windows={"w": sw.time(3)}, aggs={"n": sw.count()}))
    assert len(rows) == 4 and max(rows.values()) <= 1.2 * n / 4
    many = spark.range(1).select(F.explode(F.sequence(F.lit(1), F.lit(n))).alias("t"), F.lit("a").alias("key"))
    with settings(spark, tasks=4, paneRows=500, heavyRows=20_000):
        assert len(rows_per_task(sw.rolling(many, time="t", by="key", windows={"w": sw.time(3)}, aggs={"n": sw.count()}))) == 4


@pytest.mark.parametrize("by", [None, "key"], ids=["no key", "a key"])
def test_data_is_read_once_before_a_giant_key_is_cut(spark, tmp_path, by):
    """And once more where rows in front of the cuts must be seen."""
    def noted(batches):
        yield from batches
        (tmp_path / os.urandom(8).hex()).touch()

    df = spark.range(400_000, numPartitions=1).selectExpr("id as t", "1 as key").mapInArrow(noted, "t long, key int")
    for window, reads in ((sw.time(9), 1), (sw.rows(9), 2)):
        with settings(spark, tasks=2, heavyRows=100_000):
            assert passes(rolling_road(df, request(time="t", by=by, windows={"w": window}, aggs={"n": sw.count()}))) == [1]
        found = list(tmp_path.iterdir())
        assert len(found) == reads
        for path in found:
            path.unlink()


def test_few_rows_are_not_looked_at(spark, tmp_path):
    def may(df) -> bool:
        return may_be_heavy(rolling_road(df, request(time="t", by="key", windows=[5], aggs={"n": sw.count()})))

    assert not may(frame(spark, pa.table({"t": [1], "key": [2]}))) or spark.version < "4"  # rows of an RDD: nobody knows
    assert not may(spark.range(1000).selectExpr("id as t", "id % 3 as key").where("t > 5"))
    assert may(spark.range(1000).selectExpr("explode(sequence(1, id)) as t", "id as key"))
    assert may(spark.range(10_000_000).selectExpr("id as t", "id as key"))
    path = tmp_path / "a b%20#c"
    spark.range(10).selectExpr("id as t", "id % 3 as key").write.parquet(str(path))
    file = spark.read.parquet(str(path))
    assert not may(file) and not may(file.unionAll(file.where("t > 3")))
    with settings(spark, heavyRows=15):
        assert not may(file) and may(file.unionAll(file))
