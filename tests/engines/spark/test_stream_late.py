"""Late, double and wrong events; history. Every event ends somewhere, and is counted there."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    SECOND,
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
from slidewise.engines.spark.session import STREAMING
from slidewise.errors import InputError, InputTypeError

ASKED = {"time": "ts", "by": "card", "windows": ["10m"], "aggs": {"n": sw.count(), "total": sw.sum("amount")}}
MINUTE = 60 * SECOND


def at_once(rows: list[dict], **changes) -> dict[int, dict]:
    return {row["id"]: row for row in rows_of(sw.rolling(table(rows, PLAIN), **(ASKED | changes)))}


def judged(pieces: list[list[dict]], delay: int, keep: int | None) -> tuple[list[dict], list[dict], int]:
    """Events taken in, events that come too late, and how many are behind the watermark: by the rule of the contract.

    The watermark of a micro-batch is the youngest event time of the earlier ones less the delay."""
    taken, apart, late, youngest = [], [], 0, None
    for piece in pieces:
        watermark = None if youngest is None else youngest - delay
        for row in piece:
            behind = watermark is not None and row["ts"] < watermark
            late += behind
            (apart if behind and (keep is None or row["ts"] < watermark - keep) else taken).append(row)
        youngest = max([row["ts"] for row in piece] + ([] if youngest is None else [youngest]))
    return taken, apart, late


@pytest.mark.parametrize(
    ("late", "keep", "results"),
    [("correct", "3m", "eager"), ("side", None, "eager"), ("drop", None, "eager"), ("side", None, "final")],
)
def test_late_events(spark, tmp_path: Path, late: str, keep: str | None, results: str) -> None:
    rows = events(200, seed=9, jitter=500)
    pieces = cut(rows, 6, 5)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])
    more = {} if keep is None else {"keep": keep}
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="2m", id="id", late=late,
                        results=results, **more)  # fmt: skip
    counts = run(result, tmp_path)
    taken, apart, behind = judged(pieces, 2 * MINUTE, None if keep is None else 3 * MINUTE)
    assert len(apart) > 5 and behind > 5
    assert total(counts, "in") == len(rows)
    assert total(counts, "late") == behind
    assert total(counts, "accepted") == len(taken)
    assert total(counts, "side") == (0 if late == "drop" else len(apart))
    assert total(counts, "dropped") == (len(apart) if late == "drop" else 0)
    found = out(tmp_path)
    beside = [row for row in found if row.get("late")]
    if late == "drop":
        assert "late" not in found[0]
    else:
        assert sorted(row["id"] for row in beside) == sorted(row["id"] for row in apart), "handed out once, apart"
        assert all(row["n_10m"] is None and row["total_10m"] is None for row in beside)
        assert {row["id"]: row["amount"] for row in beside} == {row["id"]: row["amount"] for row in apart}, "untouched"
    last, expected = final(found), at_once(taken)
    assert results == "final" or last.keys() == expected.keys()
    for number, row in last.items():
        assert without(row, "revision", "late") == expected[number]


def test_double_bad_and_early_events(spark, tmp_path: Path) -> None:
    """An event seen twice counts once, one without a time is handed out, and a wrong clock does not push the watermark."""
    now = int(time.time()) * SECOND
    rows = events(80, seed=13, seconds=600)
    for row in rows:
        row["ts"] += now - 1200 * SECOND - 1_600_000_000 * SECOND
    rng = random.Random(3)
    pieces = cut(rows, 1, 4)
    wrong = [dict(rng.choice(rows), id=1000 + i) for i in range(6)]
    for row in wrong[:3]:
        row["ts"] = now + 3 * 24 * 3600 * SECOND
    for row in wrong[3:]:
        row["ts"] = None
    twice = [dict(row) for row in pieces[0][:4]]
    sent = [[*pieces[0], *wrong, pieces[0][1]], [*pieces[1], *twice], *pieces[2:]]
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in sent])
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="20m", id="id", max_ahead="1h")
    counts = run(result, tmp_path)
    assert total(counts, "in") == len(rows) + len(wrong) + len(twice) + 1
    assert total(counts, "accepted") == len(rows)
    assert (total(counts, "double"), total(counts, "bad"), total(counts, "ahead"), total(counts, "late")) == (5, 3, 3, 0)
    found = out(tmp_path)
    assert sorted(row["id"] for row in found if row["late"]) == [1000, 1001, 1002, 1003, 1004, 1005]
    expected = at_once(rows)
    assert {i: without(row, "revision", "late") for i, row in final(found).items()} == expected


def test_history_fills_the_windows_before_the_first_event(spark, tmp_path: Path) -> None:
    """Also where an event of the stream is older than the youngest of the history."""
    rows = events(160, seed=17, jitter=60)
    old, new = rows[:40], rows[40:]
    assert any(row["ts"] < max(other["ts"] for other in old) for row in new)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(new, 1, 3)])
    history = spark.createDataFrame(table(old, PLAIN))
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="2m", id="id", history=history,
                        complete=True)  # fmt: skip
    run(result, tmp_path)
    found = final(out(tmp_path))
    assert found.keys() == {row["id"] for row in new}, "history itself gives no results"
    expected, begin = at_once(rows), min(row["ts"] for row in old)
    for number, row in found.items():
        assert without(row, "revision", "late", "complete") == expected[number]
        assert row["complete"] == (row["ts"] - 10 * MINUTE >= begin - 1)
    assert {row["complete"] for row in found.values()} == {True, False}


NARROW = "id int, k {}, at int, amount short, ratio float, due decimal(6,2)"
WIDE = "id long, k {}, at long, amount int, ratio double, due decimal(9,3)"
SUMS = {"n": sw.count(), "total": sw.sum("amount"), "ratio": sw.max("ratio"), "due": sw.max("due")}


@pytest.mark.parametrize(("before", "now"), [
    ("int", "bigint"), ("float", "double"), ("decimal(6,2)", "decimal(9,3)"), ("smallint", "double"), ("int", "decimal(12,2)"),
    ("string", "string collate UTF8_LCASE"),
])  # fmt: skip
def test_history_of_narrower_types_fills_the_windows_of_the_same_keys(spark, tmp_path: Path, before: str, now: str) -> None:
    """A key's bucket is a hash of its value in one type: 7 as an int lies elsewhere than 7 as a long."""
    rows = [(i, i % 16, i // 16, i, i / 4, i) for i in range(64)]
    wide = spark.createDataFrame(rows, "id long, k int, at long, amount int, ratio double, due int")
    wide = wide.selectExpr(*[f"cast({name} as {kind}) {name}" for name, kind in columns_of(WIDE.format(now))])
    wide.where("at = 3").coalesce(1).write.parquet(str(tmp_path / "in"))
    old = wide.where("at < 3").selectExpr(*[f"cast({name} as {kind}) {name}" for name, kind in columns_of(NARROW.format(before))])
    asked = {"time": "at", "by": "k", "windows": {"w": 100}, "aggs": SUMS}
    stream = source(spark, tmp_path / "in", WIDE.format(now))
    run(sw.rolling(stream, **asked, watermark=1, id="id", history=old, complete=True, buckets=8), tmp_path)
    found = {row["id"]: row for row in out(tmp_path)}
    assert {i: row["n_w"] for i, row in found.items()} == dict.fromkeys(range(48, 64), 4)
    assert {i: row["total_w"] for i, row in found.items()} == {i: 4 * i - 96 for i in range(48, 64)}
    assert all(row["ratio_w"] == i / 4 and row["due_w"] == i for i, row in found.items())


def columns_of(ddl: str) -> list[list[str]]:
    return [column.split(" ", 1) for column in ddl.split(", ")]


@pytest.mark.parametrize(("name", "before", "now"), [
    ("k", "bigint", "int"), ("k", "double", "int"), ("k", "bigint", "double"), ("k", "int", "float"), ("k", "int", "decimal(11,2)"),
    ("k", "decimal(9,3)", "decimal(9,2)"), ("k", "string", "bigint"), ("amount", "double", "float"),
    ("ts", "timestamp_ntz", "timestamp"), ("ts", "timestamp", "timestamp_ntz"), ("ts", "date", "timestamp"),
    ("tags", "array<bigint>", "array<int>"),
])  # fmt: skip
def test_history_of_other_types_is_refused(spark, tmp_path: Path, name: str, before: str, now: str) -> None:
    kinds = {"id": "bigint", "k": "string", "ts": "timestamp", "amount": "bigint", "tags": "array<string>"}
    asked = {"time": "ts", "by": "k", "windows": "10m", "aggs": {"n": sw.count("amount")}, "watermark": "5m"}
    ddl = lambda **other: ", ".join(f"{column} {kind}" for column, kind in (kinds | other).items())
    stream, history = source(spark, tmp_path / "in", ddl(**{name: now})), spark.createDataFrame([], ddl(**{name: before}))
    told = re.escape(f"history's column {name!r} is {before}, the stream's is {now}")
    with pytest.raises(InputTypeError, match=told):
        sw.rolling(stream, **asked, id="id", history=history)
    if name != "ts":
        sw.rolling(stream, **asked, id="id", history=history.withColumn(name, F.lit(None)))  # nothing, in a column of no type
    with pytest.raises(InputError, match=f"history has no column {name!r}, which the stream has"):
        sw.rolling(stream, **asked, id="id", history=history.drop(name))


def test_history_may_differ_where_nothing_is_read(spark, tmp_path: Path) -> None:
    stream = source(spark, tmp_path / "in", "k int, at long, amount long, note string")
    history = spark.createDataFrame([], "k int, at long, amount long, note double")
    asked = {"time": "at", "by": "k", "windows": [10], "aggs": {"total": sw.sum("amount")}, "watermark": 1, "history": history}
    sw.rolling(stream, **asked, emit="latest")
    with pytest.raises(InputTypeError, match="history's column 'note' is double, the stream's is string"):
        sw.rolling(stream, **asked)


def test_without_history_results_say_that_they_are_not_complete(spark, tmp_path: Path) -> None:
    rows = events(60, seed=19, cards=1, seconds=1500)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(rows, 1, 2)])
    run(sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="1m", id="id", complete=True), tmp_path)
    found = final(out(tmp_path))
    assert {row["complete"] for row in found.values()} == {True, False}
    assert not found[rows[0]["id"]]["complete"]


def test_number_and_zoneless_times(spark, tmp_path: Path) -> None:
    """A whole number as time, and a timestamp without a zone, in a session whose zone is not UTC; names with dots in them."""
    rows = events(80, seed=29, jitter=100)
    schema = pa.schema([("id", pa.int64()), ("card", pa.string()), ("at", pa.int64()), ("amount.due", pa.int64()),
                        ("wall", pa.timestamp("us")), ("t.s", pa.timestamp("us", tz="UTC"))])  # fmt: skip
    for row in rows:
        row["at"], row["wall"], row["t.s"], row["amount.due"] = row["ts"] // SECOND, row["ts"], row["ts"], row["amount"]
    pieces = [table(piece, schema) for piece in cut(rows, 1, 3)]
    write_batches(tmp_path / "in", pieces)
    whole = table(rows, schema)
    ddl = "id long, card string, at long, `amount.due` long, wall timestamp_ntz, `t.s` timestamp"
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for column, window, delay in (("at", 600, 300), ("wall", "10m", "5m"), ("t.s", "10m", "5m")):
            root = tmp_path / column
            asked = {"time": column, "by": "card", "windows": {"w": window}, "aggs": {"n": sw.count(), "t": sw.sum("amount.due")}}
            run(sw.rolling(source(spark, tmp_path / "in", ddl), **asked, watermark=delay, id="id"), root)
            expected = {row["id"]: row for row in rows_of(sw.rolling(whole, **asked))}
            assert {i: without(row, "revision", "late") for i, row in final(out(root)).items()} == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_before_1970_there_is_no_watermark(spark, tmp_path: Path) -> None:
    """Spark's begins at 1970: until events get there final results wait for the end, and nothing is late."""
    rows = events(80, seed=37, jitter=400)
    for row in rows:
        row["ts"] -= 2_000_000_000 * SECOND
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(rows, 1, 4)])
    control = tmp_path / "control"
    asked = {**ASKED, "watermark": "1m", "id": "id", "results": "final", "control": control}
    counts = run(sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **asked), tmp_path)
    assert out(tmp_path) == [] and (total(counts, "accepted"), total(counts, "late")) == (len(rows), 0)
    sw.flush(control)
    run(sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **asked), tmp_path)
    assert {row["id"]: without(row, "revision", "late") for row in out(tmp_path)} == at_once(rows)


def test_numbers_that_sparks_watermark_cannot_count_are_a_clear_error(spark, tmp_path: Path) -> None:
    """Nanoseconds since 1970, say: it counts microseconds, and one unit of the column is a millisecond to it."""
    schema = pa.schema([("at", pa.int64()), ("amount", pa.int64())])
    write_batches(tmp_path / "in", [table([{"at": 1_700_000_000 * 10**9, "amount": 1}, {"at": None, "amount": 2}], schema)])
    stream = source(spark, tmp_path / "in", "at long, amount long")
    result = sw.rolling(stream, time="at", windows={"w": 10**9}, aggs={"t": sw.sum("amount")}, watermark=10**9)
    with pytest.raises(StreamingQueryException, match=r"more than Spark's watermark can count .*divide it"):
        run(result, tmp_path)


def test_wrong_calls_say_what_to_do(spark, tmp_path: Path) -> None:
    stream = source(spark, tmp_path / "in", PLAIN_DDL)
    with pytest.raises(InputError, match="a stream needs watermark="):
        sw.rolling(stream, **ASKED)
    with pytest.raises(InputError, match="has a watermark already"):
        sw.rolling(stream.withWatermark("ts", "1 minute"), **ASKED, watermark="1m")
    with pytest.raises(InputError, match="late=\"correct\" gives results again"):
        sw.rolling(stream, **ASKED, watermark="1m", results="final", late="correct")
    with pytest.raises(InputError, match="Did you mean 'amount'"):
        sw.rolling(stream, **(ASKED | {"aggs": {"x": sw.sum("amuont")}}), watermark="1m")
    for setting, value in STREAMING.items():
        spark.conf.unset(setting)
        try:
            with pytest.raises(InputError, match=rf"streams need the setting {setting}=.*STREAMING"):
                sw.rolling(stream, **ASKED, watermark="1m")
        finally:
            spark.conf.set(setting, value)


def test_names_that_only_case_tells_apart(spark, tmp_path: Path) -> None:
    """Spark's own error comes later, and names neither the aggregate nor the window."""
    stream = source(spark, tmp_path / "in", PLAIN_DDL + ", TOTAL_10M long, Late long")
    with pytest.raises(InputError, match=r"'TOTAL_10M' and 'total_10m' are the same to Spark.*rename the aggregate 'total'"):
        sw.rolling(stream, **ASKED, watermark="1m", id="id")
    with pytest.raises(InputError, match=r"'Late' and 'late' are the same to Spark.*rename the column"):
        sw.rolling(stream.drop("TOTAL_10M"), **ASKED, watermark="1m", id="id")
    with pytest.raises(InputError, match=r"'n_10m' and 'N_10m' are the same to Spark.*rename the aggregate 'N'"):
        aggs = {"n": sw.count(), "N": sw.count("amount")}
        sw.rolling(stream.drop("TOTAL_10M", "Late"), **(ASKED | {"aggs": aggs}), watermark="1m")
    sw.rolling(stream, **ASKED, watermark="1m", id="id", emit="latest", late="drop")  # neither comes out
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        sw.rolling(stream, **ASKED, watermark="1m", id="id")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("emit", ["slide", "latest"])
def test_results_named_like_columns_that_do_not_come_out(spark, tmp_path: Path, emit: str) -> None:
    """They have types of their own: an input column that only has the name is nothing to them."""
    ddl = "k long, at long, amount long, revision string, late double, complete string, total_w float"
    rows = [(i % 2, i, i, "a", 1.5, "c", 0.5) for i in range(20)]
    spark.createDataFrame(rows, ddl).coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = source(spark, tmp_path / "in", ddl)
    asked = {"time": "at", "by": "k", "windows": {"w": sw.time(4, slide=4)}, "aggs": {"total": sw.sum("amount")}, "emit": emit}
    result = sw.rolling(stream, **asked, watermark=2, complete=True)
    kinds = {field.name: field.dataType.simpleString() for field in result.schema}
    whole = dict.fromkeys(("k", "at", "total_w", "revision"), "bigint")
    assert kinds == whole | {"late": "boolean", "complete": "boolean"}
    run(result, tmp_path)
    assert any(row["total_w"] for row in out(tmp_path))


WORDS = [*"ΣςσİıIi\u212akẞßǄǅǆ\u2126ωΩ𐐀𐐨ﬁAa", *"i\u0307 ΑΣ ας ασ ΑΣΑ ασα SS ss FI fi".split(), "a ", " a", "", " ", None]
"""Letters whose small ones are two, or depend on their place, or are the small ones of others."""


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UTF8_LCASE_RTRIM", "UTF8_BINARY_RTRIM"])
def test_collated_keys_are_equal_as_spark_has_it(spark, collation: str) -> None:
    from slidewise.engines.spark.buckets import normal_key

    df = spark.createDataFrame([(word,) for word in WORDS], "w string").selectExpr("w", f"w collate {collation} as k")
    df = df.withColumn("normal", normal_key(df, "k"))
    pairs = df.alias("a").crossJoin(df.alias("b"))
    found = pairs.selectExpr("a.w", "b.w", "a.k <=> b.k", "a.normal <=> b.normal").collect()
    assert [row for row in found if row[2] != row[3]] == []
    assert sum(row[2] for row in found) > len(WORDS)
