"""rolling and as_of on batch DataFrames: the same rows and the same answers as on frames, and as Spark's own."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.spark.batch_support import ALL_KINDS, FAMILIES, differences, random_table, to_spark

import slidewise as sw
from slidewise.algebra.cache import cache_dir
from slidewise.engines.spark.batch_types import to_arrow

ORDER = ["n", "x", "word", "flag", "id"]
BOTH = {"windows": ALL_KINDS, "aggs": FAMILIES, "time": "t", "order": ORDER}
FEW = {"windows": {"w": sw.time(7), "r": sw.rows(3), "s": sw.session(2)},
       "aggs": {"total": sw.sum("n"), "longest": sw.max("word")}, "time": "t"}


@contextmanager
def settings(spark, **values):
    for name, value in values.items():
        spark.conf.set(f"spark.slidewise.{name}", value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(f"spark.slidewise.{name}")


def frame(spark, table: pa.Table, partitions: int = 3):
    return to_spark(spark, table).repartition(partitions)


def in_order(table: pa.Table, *names: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


SMALL = {"tasks": 8, "paneRows": 7}
ROADS = {
    "whole keys": ("key", {}),
    "on disk": ("key", {"heldBytes": 3000}),
    "on disk, long keys": ("key", {"heldBytes": 3000, "chunkRows": 20}),
    "heavy keys": ("key", SMALL | {"heavyRows": 60}),
    "no key": (None, SMALL),
}


@pytest.mark.parametrize("road", ROADS)
def test_every_road_gives_what_the_local_engine_gives(spark, road):
    by, conf = ROADS[road]
    table = random_table(np.random.default_rng(1), 300, times=250)
    with settings(spark, **conf):
        found = to_arrow(sw.rolling(frame(spark, table), by=by, **BOTH))
    assert not differences(in_order(found, "id"), in_order(sw.rolling(table, by=by, **BOTH), "id"))


@pytest.mark.parametrize(("by", "conf"), [("key", {}), ("key", SMALL | {"heavyRows": 60}), (None, SMALL)],
                         ids=["whole keys", "heavy keys", "no key"])
def test_boundaries_and_youngest_rows(spark, by, conf):
    table = random_table(np.random.default_rng(2), 300, times=250)
    slides = FEW | {"windows": {"a": sw.time(8, slide=3), "b": sw.tumbling(4)}, "emit": "slide"}
    for asked in (slides, FEW | {"emit": "latest", "order": ORDER}):
        with settings(spark, **conf):
            found = to_arrow(sw.rolling(frame(spark, table), by=by, **asked))
        wanted = sw.rolling(table, by=by, **asked)
        names = ["t"] if by is None else [by, "t"]
        assert not differences(in_order(found, *names), in_order(wanted, *names))


@pytest.mark.parametrize(("by", "conf"), [("key", {}), ("key", {"heldBytes": 3000, "chunkRows": 20}), (None, SMALL)],
                         ids=["whole keys", "on disk, long keys", "no key"])
def test_as_of_is_the_windows_of_earlier_rows(spark, by, conf):
    rng = np.random.default_rng(3)
    data = random_table(rng, 200, times=150)
    queries = pa.table({"key": pa.array(rng.integers(0, 4, 40)), "t": pa.array(rng.integers(0, 170, 40)), "label": range(40)})
    asked = {"time": "t", "windows": {"w": sw.time(20), "r": sw.rows(3)}, "aggs": {"ids": sw.collect("id"), "n": sw.count()},
             "ties": "arrival", "emit": "event", "exclude_current": False}
    with settings(spark, **conf):
        found = in_order(to_arrow(sw.as_of(frame(spark, queries), frame(spark, data), by=by, order=ORDER, **asked)), "label")
    rows = data.to_pylist()
    for query in found.to_pylist():
        before = [r for r in rows if r["t"] < query["t"] and (by is None or r["key"] == query["key"])]
        seen = {r["id"] for r in before if r["t"] >= query["t"] - 20}
        assert set(query["ids_w"]) == seen and query["n_w"] == len(seen)
        assert query["n_r"] == min(3, len(before))
    assert found.column_names[:3] == queries.column_names


def test_as_of_cuts_no_time_to_the_others_unit(spark):
    """Queries at noon are not at midnight, whichever side has the dates; the time as an aggregate keeps its type."""
    days, noon = "date'2024-01-0%d' as ts", "timestamp_ntz'2024-01-0%d 12:00:00' as ts"
    asked = dict(time="ts", windows="1d", aggs={"n": sw.count(), "day": sw.max("ts")})
    queries, data = (spark.sql(f"select {kind % 2}") for kind in (noon, days))
    found = sw.as_of(queries, data, **asked).collect()[0]
    assert (found["n_1d"], found["day_1d"]) == (1, datetime.date(2024, 1, 2))
    assert sw.as_of(data, spark.sql(f"select {noon % 1}"), **asked).collect()[0]["n_1d"] == 1
    numbers = dict(time="t", windows=[5], aggs={"n": sw.count()}, closed="right")
    queries, data = spark.sql("select cast(0.1 as double) t"), spark.sql("select cast(0.1 as float) t")
    assert sw.as_of(queries, data, **numbers).collect()[0]["n_5"] == 0, "0.1 as a float is a little more"
    queries, data = spark.sql("select 4294967299L t"), spark.sql("select 2 t")
    assert sw.as_of(queries, data, **numbers).collect()[0]["n_5"] == 0


@pytest.mark.parametrize(("asking", "known", "kind"), [
    ("tinyint", "bigint", "bigint"), ("float", "double", "double"), ("int", "double", "double"), ("int", "float", "double"),
    ("decimal(5,1)", "decimal(4,3)", "decimal(7,3)"), ("bigint", "decimal(4,2)", "decimal(21,2)"),
    ("decimal(38,0)", "bigint", "decimal(38,0)"),
])  # fmt: skip
def test_as_of_joins_keys_of_numbers_where_one_type_holds_both(spark, asking, known, kind):
    asked = dict(time="t", by="k", windows=[10], aggs={"n": sw.count(), "k": sw.max("k")})
    for one, other in ((asking, known), (known, asking)):
        queries = spark.sql(f"select cast(7 as {one}) k, 9 t")
        data = spark.sql(f"select cast(n as {other}) k, 5 t from values 7, 6 as (n)")
        found = sw.as_of(queries, data, **asked)
        assert [f.dataType.simpleString() for f in found.schema][::3] == [one, kind]
        assert [(row["k"], row["n_10"], row["k_10"]) for row in found.collect()] == [(7, 1, 7)]


def test_as_of_rounds_no_key(spark):
    """33554433 is no float, though 33554432 is, and 2**53 + 1 no double: keys that differ stay apart, or are refused."""
    asked = dict(time="t", by="k", windows=[10], aggs={"n": sw.count()})
    queries, data = spark.sql("select cast(33554432 as float) k, 9 t"), spark.sql("select 33554433 k, 5 t")
    assert sw.as_of(queries, data, **asked).collect()[0]["n_10"] == 0
    for one, other in (("double", "bigint"), ("float", "bigint"), ("decimal(20,2)", "double"), ("decimal(38,0)", "decimal(38,2)"),
                       ("decimal(38,20)", "bigint"), ("string", "int"), ("timestamp", "timestamp_ntz")):  # fmt: skip
        for mine, theirs in ((one, other), (other, one)):
            queries = spark.createDataFrame([], f"k {mine}, t int")
            with pytest.raises(sw.InputTypeError, match=re.escape(f"key 'k' is {mine}, the data's {theirs}")):
                sw.as_of(queries, spark.createDataFrame([], f"k {theirs}, t int"), **asked)


def test_as_sparks_own_frames(spark):
    table = random_table(np.random.default_rng(4), 300, times=90)
    df = frame(spark, table)
    df.createOrReplaceTempView("slidewise_rows")
    by_range = "over (partition by key order by t range between 6 preceding and current row)"
    by_rows = "over (partition by key order by t, id rows between 4 preceding and current row)"
    try:
        wanted = to_arrow(spark.sql(f"""
            select *, sum(n) {by_range} as total_w, max(n) {by_range} as top_w, count(n) {by_range} as many_w,
                   sum(n) {by_rows} as total_r, max(n) {by_rows} as top_r, count(n) {by_rows} as many_r
            from slidewise_rows"""))
    finally:
        spark.catalog.dropTempView("slidewise_rows")
    found = to_arrow(sw.rolling(df, time="t", by="key", windows={"w": sw.time(7), "r": sw.rows(5)}, order="id",
                                aggs={"total": sw.sum("n"), "top": sw.max("n"), "many": sw.count("n")}))
    assert not differences(in_order(found, "id"), in_order(wanted, "id"))


def test_as_sparks_own_ranges_of_timestamps(spark):
    table = random_table(np.random.default_rng(5), 400, times=300)
    df = frame(spark, table).selectExpr("*", "timestamp'2024-03-31 00:00:00' + make_dt_interval(0, 0, t) as ts")
    near = "over (partition by key order by ts range between interval 1 hour preceding and current row)"
    back = "over (partition by key order by ts range between interval 3 hours preceding and interval 1 hour preceding)"
    calls = {"total": "sum(x)", "mean": "avg(n)", "low": "min(x)", "high": "max(x)", "many": "count(x)", "rows": "count(*)"}
    wanted = df.selectExpr("*", *[f"{call} {over} as {name}_{window}" for window, over in (("near", near), ("back", back))
                                  for name, call in calls.items()])
    found = sw.rolling(df, time="ts", by="key", closed="both", windows={"near": "1h", "back": sw.time("2h", offset="1h")}, aggs={
        "total": sw.sum("x"), "mean": sw.mean("n"), "low": sw.min("x"), "high": sw.max("x"), "many": sw.count("x"),
        "rows": sw.count()})
    assert not differences(in_order(to_arrow(found), "id"), in_order(to_arrow(wanted), "id"))


def test_other_aggregates_are_those_of_sparks_own_ranges(spark):
    """To the last bit, but for moments."""
    table = random_table(np.random.default_rng(6), 200, times=90)
    df = frame(spark, table)
    over = "over (partition by key order by t range between 6 preceding and current row)"
    calls = {
        "ands": ("bit_and(n)", sw.bit_and("n")), "ors": ("bit_or(n)", sw.bit_or("n")), "xors": ("bit_xor(n)", sw.bit_xor("n")),
        "every": ("bool_and(flag)", sw.all("flag")), "some": ("bool_or(flag)", sw.any("flag")),
        "half": ("percentile(n, 0.5)", sw.median("n")), "most": ("max(word)", sw.max("word")),
        "part": ("sum(if(flag, n, null))", sw.sum("n", where="flag")), "kinds": ("collect_set(word)", sw.collect_distinct("word")),
        "var": ("var_samp(n)", sw.var("n")), "dev": ("stddev_pop(n)", sw.std("n", ddof=0)),
        "both": ("covar_samp(n, id)", sw.covariance("n", "id")),
    }  # fmt: skip
    wanted = in_order(to_arrow(df.selectExpr("id", *[f"{call} {over} as {name}_w" for name, (call, _) in calls.items()])), "id")
    found = sw.rolling(df, time="t", by="key", windows={"w": sw.time(7)}, aggs={name: agg for name, (_, agg) in calls.items()})
    found = in_order(to_arrow(found), "id").select(wanted.column_names)
    for name in calls:
        pairs = list(zip(found[f"{name}_w"].to_pylist(), wanted[f"{name}_w"].to_pylist()))
        if name == "kinds":
            pairs = [(sorted(a), sorted(b)) for a, b in pairs]
        if name in ("var", "dev", "both"):
            pairs = [(a, b) for a, b in pairs if None in (a, b) or not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)]
        assert [(a, b) for a, b in pairs if a != b] == [], name


def test_keys_are_equal_as_spark_has_it(spark):
    df = spark.sql("""
        select * from values (0.0D, 1), (-0.0D, 2), (double('NaN'), 3), (double('NaN'), 4), (null, 5), (null, 6), (1.0D, 7)
        as rows(key, t)""").repartition(4)
    plain = sw.rolling(df, time="t", by="key", windows={"all": sw.lifetime()}, aggs={"n": sw.count()}, emit="latest")
    assert sorted(row["n_all"] for row in plain.collect()) == [1, 2, 2, 2]
    nested = df.selectExpr("struct(key as a, array(key) as b) as key", "t")
    found = sw.rolling(nested, time="t", by="key", windows={"all": sw.lifetime()}, aggs={"n": sw.count()}, emit="latest")
    assert sorted(row["n_all"] for row in found.collect()) == [1, 2, 2, 2]
    assert found.schema["key"].dataType == nested.schema["key"].dataType
    if spark.version >= "4":
        words = spark.sql("""select word collate UTF8_LCASE as key, t
                             from values ('a', 1), ('A', 2), ('b', 3), (null, 4) as rows(word, t)""")
        found = sw.rolling(words.repartition(4), time="t", by="key", windows={"all": sw.lifetime()}, aggs={"n": sw.count()})
        assert sorted((row["t"], row["key"], row["n_all"]) for row in found.collect()) == [
            (1, "a", 1), (2, "A", 2), (3, "b", 1), (4, None, 1)]


def test_all_types_ride_along(spark):
    df = spark.sql("""
        select id as t, cast(id as decimal(12, 3)) as money, timestamp'2024-03-31 01:30:00' + make_dt_interval(0, id) as at,
               cast('2024-03-31 02:30:00' as timestamp_ntz) as wall, date'2024-01-01' as day, array(id, null) as list,
               struct(id as a, 'x' as b) as pair, map('k', id) as pairs, cast('ab' as binary) as raw,
               make_dt_interval(1) as gap, cast(id as tinyint) as tiny, cast(id as float) as small, id % 2 = 0 as even,
               cast(null as string) as nothing, 1 as `a.b`, 2 as `a b`
        from range(6)""")
    asked = {"time": "t", "windows": {"w": sw.rows(2)}, "aggs": {
        "money": sw.max("money"), "at": sw.last("at"), "wall": sw.min("wall"), "day": sw.first("day"), "pair": sw.last("pair"),
        "list": sw.first("list"), "tiny": sw.max("tiny"), "small": sw.max("small"), "total": sw.sum("small")}}
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
        found = sw.rolling(df, **asked)
        rows = sorted(found.collect())
        assert [tuple(row)[: len(df.columns)] for row in rows] == [tuple(row) for row in sorted(df.collect())]
        kinds = {field.name: field.dataType for field in found.schema}
        for name in ("money", "at", "wall", "day", "pair", "list", "tiny", "small"):
            assert kinds[f"{name}_w"] == df.schema[name].dataType
        assert rows[3]["money_w"] == rows[3]["money"] and rows[3]["at_w"] == rows[3]["at"]
        assert rows[3]["pair_w"] == rows[3]["pair"] and rows[3]["list_w"] == rows[2]["list"]
        assert rows[3]["total_w"] == 5.0
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


MONTHS = """
    select id as t, make_ym_interval(1, cast(id % 3 as int)) as months, make_interval(1, 2, 3, 4, 5, 6, 7.25) as gap,
           array(struct(make_ym_interval(-2) as a, map('k', make_interval(0, -1, 0, 5)) as b), null) as deep, cast(id as int) as n
    from range(8)"""


def test_intervals_of_months_ride_along(spark):
    """Arrow has no type for them: they cross as text, and are keys too; to aggregate them is refused, by name."""
    df = spark.sql(MONTHS)
    asked = {"time": "t", "windows": {"w": sw.rows(2)}, "aggs": {"total": sw.sum("n")}}
    texts = [f"cast({name} as string) as {name}" for name in ("months", "gap", "deep")]

    def told(frame, *names):
        return sorted(map(tuple, frame.selectExpr(*texts, *names).collect()))

    for by in (None, "months"):
        found = sw.rolling(df, by=by, **asked)
        assert [found.schema[name].dataType.simpleString() for name in df.columns] == [f.dataType.simpleString() for f in df.schema]
        assert told(found, "t") == told(df, "t")
    assert sorted((row[0], row[1]) for row in found.selectExpr("t", "total_w").collect()) == [
        (0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (5, 7), (6, 9), (7, 11)]
    latest = sw.rolling(df, by="months", **asked, emit="latest")
    assert latest.schema["months"].dataType == df.schema["months"].dataType
    assert sorted(map(tuple, latest.selectExpr("t", "total_w", "months = make_ym_interval(1, cast(t % 3 as int))").collect())) == [
        (5, 7, True), (6, 9, True), (7, 11, True)]
    queries = df.selectExpr("*", "t + 1 as at")
    found = sw.as_of(queries.drop("t", "n"), df, **(asked | {"by": "months", "query_time": "at"}))
    assert told(found, "at", "total_w") == told(df, "t + 1", "cast(if(t < 3, n, 2 * n - 3) as bigint)")
    with pytest.raises(sw.InputTypeError, match="'months' of type interval year to month cannot leave Spark"):
        sw.rolling(df, by="months", time="t", windows={"w": sw.rows(2)}, aggs={"most": sw.max("months")})


def test_names_that_differ_in_case_only(spark):
    """What Spark holds to be one name is refused where it would be a result; in the data every column has its place."""
    df = spark.range(4).selectExpr("id as t", "id % 2 as key", "id as n")
    asked = {"time": "t", "by": "key", "windows": {"w": sw.rows(2)}}
    for more in ({}, {"emit": "latest"}):
        with pytest.raises(sw.InputError, match="'N_w' and the result 'n_w' are the same to Spark; rename the aggregate 'N'"):
            sw.rolling(df, **asked, aggs={"n": sw.sum("n"), "N": sw.count()}, **more)
    twice = df.selectExpr("*", "-t as n", "key + 5 as KEY").toDF("t", "key", "n", "N", "KEY")
    for emit in ("event", "latest"):
        found = sw.rolling(twice, **asked, aggs={"total": sw.sum("n")}, emit=emit)
        assert sorted(row[-1] for row in found.collect())[-2:] == [2, 4]
    assert sorted(row[-1] for row in sw.as_of(twice, twice, **asked, aggs={"total": sw.sum("N")}, closed="right").collect()) == [
        -4, -2, -1, 0]


def test_ties_have_the_order_of_the_columns_read(spark):
    """Whatever order rows arrive in: the results are the same."""
    table = pa.table({"t": [1] * 6, "n": [3, 1, 2, 6, 5, 4]})
    asked = {"time": "t", "windows": {"r": sw.rows(2)}, "aggs": {"list": sw.collect("n"), "first": sw.first("n")}}
    seen = {
        tuple(sorted((row["n"], tuple(row["list_r"]), row["first_r"])
                     for row in sw.rolling(frame(spark, table.take(pa.array(order))), **asked).collect()))
        for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4])
    }
    assert seen == {((1, (1,), 1), (2, (1, 2), 1), (3, (2, 3), 2), (4, (3, 4), 3), (5, (4, 5), 4), (6, (5, 6), 5))}


def test_no_rows_at_all(spark):
    df = spark.createDataFrame([], "key string, t timestamp, n int")
    for by in ("key", None):
        for emit in ("event", "latest"):
            found = sw.rolling(df, time="t", by=by, windows=["1h"], aggs={"total": sw.sum("n")}, emit=emit)
            assert found.collect() == [] and "total_1h" in found.columns


def test_wrong_calls_are_refused_before_anything_runs(spark):
    df = spark.createDataFrame([(1, 1, 1)], "key int, t int, total_5 int")
    with pytest.raises(sw.InputError, match="Did you mean 'key'"):
        sw.rolling(df, time="t", by="kei", windows=[sw.time(5)], aggs={"n": sw.count()})
    with pytest.raises(sw.InputError, match="same to Spark"):
        sw.rolling(df, time="t", windows=[sw.time(5)], aggs={"Total": sw.count()})
    with pytest.raises(sw.InputError, match="for streams"):
        sw.rolling(df, time="t", windows=[sw.time(5)], aggs={"n": sw.count()}, watermark="1h")
    with pytest.raises(sw.InputError, match="whole number"), settings(spark, chunkRows="many"):
        sw.rolling(df, time="t", windows=[sw.time(5)], aggs={"n": sw.count()})
    for key in ("map(key, t)", "struct(array(map(key, t)) as deep)"):
        with pytest.raises(sw.InputTypeError, match="does not compare a map"):
            sw.rolling(df.selectExpr("t", f"{key} as pairs"), time="t", by="pairs", windows=[sw.time(5)], aggs={"n": sw.count()})
    with pytest.raises(sw.InputTypeError, match="no type holds both"):
        sw.as_of(df.selectExpr("key", "current_date() as t"), df, time="t", by="key", windows=[sw.time(5)],
                 aggs={"n": sw.count()})


def test_a_missing_time_is_a_clear_error(spark):
    df = spark.createDataFrame([(1, None), (1, 2)], "key int, t int")
    with pytest.raises(Exception, match="a row without a time has no place in any window"):
        sw.rolling(df, time="t", by="key", windows=[sw.time(5)], aggs={"n": sw.count()}).collect()


def closeness(bound, name="closeness"):
    """A user's own operator, with a closure: how far the values of a window are from a bound, at least."""
    return sw.operator(lift=lambda x: abs(x - bound), combine=lambda a, b: a if a <= b else b, lower=lambda s: s * 2.0,
                       identity=float("inf"), commutative=True, selective=True, name=name)


def words():
    """One that is interpreted: its states are Python objects."""
    return sw.operator(lift=lambda word: {word}, combine=lambda a, b: a | b, lower=lambda s: "+".join(sorted(s)),
                       identity=set(), commutative=True, name="words")


@pytest.mark.parametrize(("by", "conf"), [("key", {}), (None, SMALL)], ids=["whole keys", "no key"])
def test_a_users_operators_travel_and_workers_compile_nothing(spark, by, conf):
    """Small integers reach them as int64: nothing is compiled for these alone."""
    table = random_table(np.random.default_rng(6), 200, times=150)
    table = table.set_column(2, "n", table.column("n").cast(pa.int8()))
    near = closeness(4.5, f"closeness_by_{by}")
    tag = near.typed((np.dtype(np.int64),)).key.encode()
    asked = {"time": "t", "by": by, "windows": {"w": sw.time(9), "all": sw.lifetime()},
             "aggs": {"near": near("n"), "words": words()("word")}}

    def compiled():
        """Only code with this operator in it: other tests may compile at the same time."""
        return {path.name for path in cache_dir().glob("code-*") if tag in path.read_bytes()}

    with settings(spark, **conf):
        result = sw.rolling(frame(spark, table), **asked)
    before = compiled()
    assert before
    found = to_arrow(result)
    assert compiled() == before
    assert not differences(in_order(found, "id"), in_order(sw.rolling(table, **asked), "id"))


def test_explain_shows_the_road(spark):
    df = spark.createDataFrame([(1, 1, 1, "x")], "key int, t int, n int, rides string")
    told = sw.explain(df, time="t", by="key", windows=[sw.time(5)], aggs={"n": sw.sum("n")})
    assert told.as_dict()["spark"]["shipped"] == "4 columns through Arrow: 3 needed, 1 only ride along"
    assert "one shuffle by key" in str(told) and "algorithm" in str(told)
    road = sw.explain(df, time="t", windows=[sw.time(5)], aggs={"n": sw.sum("n")}).as_dict()["spark"]
    assert "cut by time" in road["tasks"] and "no slices" in road["pieces"]


def test_explain_of_a_stream_tells_the_streams_plan(spark, tmp_path):
    """Not the plan of a frame, whose algorithms a stream does not run; and what `rolling` refuses is refused."""
    (tmp_path / "in").mkdir()
    stream = spark.readStream.schema("id long, t timestamp, n int").parquet(str(tmp_path / "in"))
    asked = {"time": "t", "windows": ["5m"], "aggs": {"n": sw.sum("n")}}
    told = sw.explain(stream, **asked, watermark="10m", id="id").as_dict()
    assert told["stream"]["watermark"] == "10m behind the youngest event"
    assert told["steps"][0]["name"] == "flatfat" and "fiba" in told["steps"][0]["rejected"]
    for wrong, words in (({}, "needs watermark="), ({"watermark": "soon"}, "soon"), ({"foo": 1}, "no argument foo=")):
        with pytest.raises(sw.SlidewiseError, match=words):
            sw.explain(stream, **asked, id="id", **wrong)


_CONNECT = """
import tempfile
import numpy as np
from pyspark.sql import SparkSession
from tests.engines.spark.batch_support import differences, random_table
from tests.engines.spark.test_batch import FEW, SMALL
import slidewise as sw
from slidewise.engines.spark.session import STREAMING

MIDDLE = 2
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
try:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    table = random_table(np.random.default_rng(8), 200, times=150)
    df = spark.createDataFrame(table.to_pandas(types_mapper=None), "key double, t long, n double, x double, word string, "
                               "flag boolean, id long").selectExpr("cast(key as long) key", "t", "cast(n as long) n", "x",
                                                                   "word", "flag", "id")
    # a user's own, defined in __main__ and reading one of its globals
    furthest = sw.operator(lift=lambda x: abs(x - MIDDLE), combine=lambda a, b: max(a, b), lower=lambda s: s + MIDDLE, identity=0,
                           commutative=True, name="furthest")
    asked = FEW | {"order": ["n", "word", "id"], "aggs": FEW["aggs"] | {"furthest": furthest("n")}}
    known = df.toArrow().sort_by("id")
    for by, conf in (("key", {}), (None, SMALL)):
        for name, value in conf.items():
            spark.conf.set(f"spark.slidewise.{name}", str(value))
        found = sw.rolling(df, by=by, **asked).toArrow().sort_by("id")
        assert "connect" in type(df).__module__
        assert not differences(found, sw.rolling(known, by=by, **asked))
    for name, value in STREAMING.items():
        spark.conf.set(name, value)
    with tempfile.TemporaryDirectory() as root:
        df.write.parquet(f"{root}/in")
        stream = spark.readStream.schema(df.schema).parquet(f"{root}/in")
        asked = dict(time="t", by="key", order=["n", "word", "id"], windows={"w": sw.time(9), "five": sw.rows(5)},
                     aggs={"total": sw.sum("n"), "last": sw.last("word")})
        result = sw.rolling(stream, **asked, watermark=20, id="id", ttl=10**6)
        writer = result.writeStream.format("parquet").option("checkpointLocation", f"{root}/checkpoint")
        writer.option("path", f"{root}/out").trigger(availableNow=True).start().awaitTermination()
        found = spark.read.parquet(f"{root}/out").drop("revision", "late").toArrow().sort_by("id")
        assert not differences(found, sw.rolling(known, **asked))
    print("the same through Connect")
finally:
    spark.stop()
"""


@pytest.mark.spark
def test_through_spark_connect():
    """In a process of its own: one cannot have an ordinary session and one of Connect."""
    if importlib.metadata.version("pyspark") < "4":
        pytest.skip("no local checkpoints through Connect before 4.0")
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    from slidewise.engines.spark.java import use_java

    use_java()
    done = subprocess.run([sys.executable, "-c", _CONNECT], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert "the same through Connect" in done.stdout, done.stderr[-3000:]
