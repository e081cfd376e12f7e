"""Batches on Spark: our windows beside Spark's own frames, and beside the limit of the road into Python.

    (a) frames, segment tree    Spark's frames with spark.sql.window.segmentTree.enabled (4.2 and later)
    (b) frames, re-aggregated   with it off: every frame is aggregated anew, so only a few keys are asked for, once, after (a)
                                has warmed up what they share; beside it ours on the rows of the same keys
    (c) ours                    sw.rolling
    (d) pass-through            the same rows through shuffle, sort and a mapInArrow that appends as many copied columns
    hopping                     window(ts, '10 minutes', '1 second') beside sw.time("10m", slide="1s"), closed="left"

Before anything is timed, small frames go through ours and Spark's own (a) and their answers are compared: all 15 aggregates of
each row, and all of every hopping window. A difference ends the suite.

All of it in one session, in turns, least time of several (the JVM goes on compiling for some rounds). One key: the same call
on the same rows, without `by=` and with a column that is the same in all of them, with one task and with two; the files are
scanned by two tasks in both, and the time to find out that there is but one key is part of it. What a second task
can bring on this machine is told by rows that only pass through, in one task and in two. Wide rows: a hundred columns ride
along, or only what is needed does with a row's number, and the rest is joined back. The session is the embedded one: Python
workers, whoever uses them, keep some of the memory that they free. (c) and (d) are measured once more with batches that Spark
does not hold against a limit in bytes after every row: docs/spark.md says when that is safe.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError

import slidewise as sw
from slidewise.bench.suite import Progress, Row, Suite, View, values, wanted, with_ratio
from slidewise.bench.timing import seconds
from slidewise.engines.spark.session import local_session
from slidewise.errors import SlidewiseError

KEYS = 100
WINDOWS = (60, 600, 3600)
NATIVE = ("sum", "avg", "min", "max", "count")
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
TASKS = "spark.slidewise.tasks"
HEAVY = "spark.slidewise.heavyRows"
BATCH_BYTES, NO_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch", ", no limit in bytes"
BY = ", by="
"""In the name of a row: the giant key has a column."""
LIMIT_SECONDS = 60
"""What takes longer than this is ended, and has no figure."""
FEW_KEYS = (8, 2)
"""Keys that frames without the segment tree are asked for: the first number with which they end in time."""
WIDE = 100
COMPARED, KEYS_COMPARED, HOPS_COMPARED = 20_000, 4, 300
"""Rows of which answers are compared, of so few keys that the longest windows fill; of the last number each is in 600 windows."""
ANSWERS = "answers compared"
FEW = "(c) ours, the same keys"
PARTS = {
    "frames": "(a) frames, segment tree",
    "a few keys": "(b) frames, re-aggregated",
    "hopping": "hopping, Spark's window()",
    "one key": "one key, pass-through, 1 task",
    "wide rows": "wide rows, pass-through",
}
"""What is measured on the same rows, and what the others of a part are divided by."""


def aggregates() -> dict:
    return {"sum": sw.sum("x"), "avg": sw.mean("x"), "min": sw.min("x"), "max": sw.max("x"), "count": sw.count("x")}


def files(folder: Path, rows: int, keys: int, extra: int = 0) -> Path:
    """Parquet files of rows in the order of time, one second apart in the mean; every hour or so nothing for a minute."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    gaps = rng.exponential(1e6, rows).astype(np.int64) + np.where(rng.random(rows) < 1 / 3600, 60_000_000, 0)
    times = pa.array(np.cumsum(gaps)).cast(pa.timestamp("us", "UTC"))
    columns = {"key": pa.array(rng.integers(0, keys, rows)), "ts": times, "x": pa.array(rng.random(rows))}
    columns |= {f"c{k}": pa.array(rng.random(rows)) for k in range(extra)}
    table = pa.table(columns)
    for part in range(4):
        pq.write_table(table.slice(rows * part // 4, rows * (part + 1) // 4 - rows * part // 4), folder / f"{part}.parquet")
    return folder


def finish(df) -> None:
    """Compute everything, keep nothing."""
    df.write.format("noop").mode("overwrite").save()


def ours(df):
    return sw.rolling(df, time="ts", by="key", windows=[sw.rows(n) for n in WINDOWS], aggs=aggregates())


def native(df):
    """Spark's own frames."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    results = []
    for n in WINDOWS:
        frame = Window.partitionBy("key").orderBy("ts").rowsBetween(1 - n, 0)
        results += [getattr(F, name)("x").over(frame).alias(f"{name}_{n}r") for name in NATIVE]
    return df.select("*", *results)


def through(df):
    """The limit of the road: shuffle, sort, into Python and back with as many columns as results."""
    return with_copies(df.repartition("key").sortWithinPartitions("key", "ts"), len(WINDOWS) * len(NATIVE))


def with_copies(df, count: int):
    """Into Python and back, with so many copies of a column."""
    place = df.columns.index("x")
    names = [*df.columns, *(f"r{k}" for k in range(count))]

    def copies(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([*batch.columns, *[batch.column(place)] * count], names=names)

    schema = ", ".join([*(f"{f.name} {f.dataType.simpleString()}" for f in df.schema), *(f"r{k} double" for k in range(count))])
    return df.mapInArrow(copies, schema)


def hopping(df):
    """Spark's own: each row in 600 windows."""
    from pyspark.sql import functions as F

    return df.groupBy(F.window("ts", "10 minutes", "1 second"), "key").agg(F.sum("x"), F.max("x"), F.count("x"))


def our_hopping(df):
    aggs = {"sum": sw.sum("x"), "max": sw.max("x"), "count": sw.count("x")}
    return sw.rolling(df, time="ts", by="key", windows={"w": sw.time("10m", slide="1s")}, aggs=aggs, closed="left", emit="slide")


def joined_back(df):
    """What is needed and the row's number through Python, the rest by a join."""
    from pyspark.sql import functions as F

    numbered = df.withColumn("row", F.monotonically_increasing_id())
    few = ours(numbered.select("key", "ts", "x", "row")).drop("key", "ts", "x")
    return numbered.join(few, "row").drop("row")


def same(ours: pa.Table, theirs: pa.Table, keys: list[str], what: str) -> int:
    """How many rows were compared. Sums and means may differ in the last digits, as they add up in another order."""
    if ours.num_rows != theirs.num_rows:
        raise SlidewiseError(f"{what}: {ours.num_rows:,} rows of ours, {theirs.num_rows:,} of Spark's")
    order = [(key, "ascending") for key in keys]
    mine, other = ours.sort_by(order), theirs.sort_by(order)
    for name in mine.column_names:
        a, b = mine[name], other[name]
        if pa.types.is_floating(b.type):
            agree = np.isclose(a.to_numpy(), b.to_numpy(), rtol=1e-9, atol=1e-12, equal_nan=True)
        else:
            agree = np.array([x == y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)])
        if not agree.all():
            at = int(np.flatnonzero(~agree)[0])
            where = ", ".join(f"{key} = {mine[key][at]}" for key in keys)
            raise SlidewiseError(
                f"{what}: {name} differs in {int((~agree).sum()):,} of {len(agree):,} rows; first where {where}: "
                f"ours {a[at]}, Spark's {b[at]}"
            )
    return mine.num_rows


def compared(df) -> int:
    """Answers of ours and of Spark's own frames and windows, over some of these rows."""
    from pyspark.sql import functions as F

    some = df.where(f"key < {KEYS_COMPARED}").orderBy("ts").limit(COMPARED)
    df.sparkSession.conf.set(SEGMENT_TREE, "true")
    count = same(ours(some).toArrow(), native(some).toArrow(), ["key", "ts"], "frames")
    some = df.orderBy("ts").limit(HOPS_COMPARED)
    theirs = hopping(some).select(
        "key", F.col("window.end").alias("ts"), F.col("sum(x)").alias("sum_w"), F.col("max(x)").alias("max_w"),
        F.col("count(x)").alias("count_w"),
    )  # fmt: skip
    return count + same(our_hopping(some).toArrow(), theirs.toArrow(), ["key", "ts"], "hopping windows")


def in_turns(calls: dict[str, Callable[[], object]], repeats: int, progress: Progress) -> dict[str, float]:
    """The least time of each, all of them measured once before any is measured again."""
    least: dict[str, float] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            progress(name)
            least[name] = min(least.get(name, float("inf")), seconds(call))
    return least


def in_time(spark, call: Callable[[], object], limit: float) -> float | None:
    """Seconds of a call, or None if it had to be ended."""
    from pyspark.errors import PySparkException

    ended = threading.Event()

    def end() -> None:
        ended.set()
        spark.sparkContext.cancelAllJobs()

    timer = threading.Timer(limit, end)
    timer.start()
    try:
        return seconds(call)
    except (PySparkException, Py4JError):
        if ended.is_set():
            return None
        raise
    finally:
        timer.cancel()


def one_key(spark, rows: int, source: Path, repeats: int, progress: Progress) -> list[Row]:
    """The same rows without a key and with one, on one task and on two, for windows of each kind and for none."""
    df = spark.read.parquet(str(source))
    kinds = {"pass-through": None, "time": sw.time("1h"), "rows": sw.rows(3600), "session": sw.session("45s")}
    found = []

    def call(window, tasks: int, by: str | None = None):
        data = df if by else df.select("ts", "x")
        if window is None:
            return lambda: finish(with_copies(data.repartition(tasks, "ts"), len(NATIVE)))

        def run():
            spark.conf.set(TASKS, tasks)
            spark.conf.set(HEAVY, rows // 2)
            try:
                finish(sw.rolling(data, time="ts", by=by, windows={"w": window}, aggs=aggregates()))
            finally:
                spark.conf.unset(TASKS)
                spark.conf.unset(HEAVY)
        return run

    for kind, window in kinds.items():
        calls = {_one_key(kind, tasks): call(window, tasks) for tasks in (1, 2)}
        if window is not None:
            calls |= {_one_key(kind, tasks, BY): call(window, tasks, "key") for tasks in (1, 2)}
        for name, least in in_turns(calls, repeats, progress).items():
            found.append({"part": "one key", "what": name, "rows": rows, "seconds": least, "rows_s": rows / least})
    return found


def _one_key(kind: str, tasks: int, by: str = "") -> str:
    return f"one key, {kind}{by}, {tasks} task{'s' if tasks > 1 else ''}"


def run(quick: bool, progress: Progress) -> list[Row]:
    root = Path(tempfile.mkdtemp(prefix="slidewise-bench-"))
    many, hops, giant, wide, repeats = (200_000, 5_000, 500_000, 50_000, 2) if quick else (
        2_000_000, 20_000, 5_000_000, 300_000, 5)
    spark = local_session("slidewise-bench", cores=2, conf={"spark.driver.memory": "3g"}, log=root / "spark.log")
    rows: list[Row] = []

    def note(part: str, least: dict[str, float], count: int) -> None:
        rows.extend(
            {"part": part, "what": name, "rows": count, "seconds": took, "rows_s": count / took} for name, took in least.items()
        )

    try:
        df = spark.read.parquet(str(files(root / "many", many, KEYS)))
        def with_tree(enabled: bool, data):
            def call():
                spark.conf.set(SEGMENT_TREE, str(enabled).lower())
                finish(native(data))
            return call

        def without_limit(make):
            def call():
                before = spark.conf.get(BATCH_BYTES)
                spark.conf.set(BATCH_BYTES, 2**31 - 1)
                try:
                    finish(make(df))
                finally:
                    spark.conf.set(BATCH_BYTES, before)
            return call

        progress("comparing answers")
        rows.append({"part": ANSWERS, "what": ANSWERS, "rows": compared(df), "seconds": None, "rows_s": None})
        progress("warming up")
        finish(ours(df.limit(10_000)))
        calls = {
            "(d) pass-through": lambda: finish(through(df)),
            "(c) ours": lambda: finish(ours(df)),
            "(a) frames, segment tree": with_tree(True, df),
            f"(d) pass-through{NO_LIMIT}": without_limit(through),
            f"(c) ours{NO_LIMIT}": without_limit(ours),
        }
        note("frames", in_turns(calls, repeats, progress), many)
        for keys in FEW_KEYS:
            few = df.where(f"key < {keys}")
            progress(f"(b) frames, re-aggregated, {keys} keys")
            took = in_time(spark, with_tree(False, few), LIMIT_SECONDS)
            if took is not None:
                mine = in_turns({FEW: lambda few=few: finish(ours(few))}, repeats, progress)
                note("a few keys", {"(b) frames, re-aggregated": took, **mine}, few.count())
                break
        calls = {
            "hopping, ours": lambda: finish(our_hopping(df.limit(hops))),
            "hopping, Spark's window()": lambda: finish(hopping(df.limit(hops))),
        }
        note("hopping", in_turns(calls, 2, progress), hops)
        rows += one_key(spark, giant, files(root / "giant", giant, 1), 2 if quick else 7, progress)
        broad = spark.read.parquet(str(files(root / "wide", wide, KEYS, WIDE - 3)))
        calls = {
            "wide rows, pass-through": lambda: finish(through(broad)),
            "wide rows, all columns ride": lambda: finish(ours(broad)),
            "wide rows, joined back": lambda: finish(joined_back(broad)),
        }
        note("wide rows", in_turns(calls, repeats, progress), wide)
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)
    return with_times(rows)


def with_times(rows: list[Row]) -> list[Row]:
    """With how many times the rate of its part's base each row is."""
    parts = {part: [row for row in rows if row["part"] == part] for part in values(rows, "part")}
    for part, mine in parts.items():
        with_ratio(mine, "rows_s", ("what", PARTS.get(part)), ("part",), "times")
    return rows


def views(rows: list[Row]) -> list[View]:
    if "part" not in rows[0]:  # filed before there were parts
        return [View("thousand rows a second, by rows", "what", "rows", "rows_s", form=_thousands)]
    found = []
    for part in [part for part in values(rows, "part") if part in PARTS]:
        only = (("part", part),)
        found.append(View(f"{part}: times the rate of {PARTS[part]}, by rows", "what", "rows", "times", only, form="{:.2f}".format))
        found.append(View(f"{part}: thousand rows a second, by rows", "what", "rows", "rows_s", only, form=_thousands))
    return found


def _thousands(value) -> str:
    return "" if value is None else f"{value / 1000:,.1f}" if value < 100_000 else f"{value / 1000:,.0f}"


def verdicts(rows: list[Row]) -> list[str]:
    rate = {row["what"]: row["rows_s"] for row in rows}
    count = {row["what"]: row["rows"] for row in rows}
    said = []
    for how in ("", NO_LIMIT):
        mine = rate.get(f"(c) ours{how}")
        if mine:  # not in results that were filed earlier
            tree, limit = mine / rate["(a) frames, segment tree"], mine / rate[f"(d) pass-through{how}"]
            said.append(
                f"{'batches with no limit in bytes: ' * bool(how)}ours {mine:,.0f} rows/s: {tree:.1f} times Spark's frames with "
                f"the segment tree{wanted(tree, 5)}, {limit:.0%} of pass-through{wanted(limit, 0.8, '{:.0%}')}"
            )
    said.append(_without_tree(rate, count))
    hopping, native = rate["hopping, ours"], rate["hopping, Spark's window()"]
    said.append(f"hopping 10 minutes by 1 second: ours {hopping:,.0f} rows/s, {hopping / native:.1f} times Spark's window()")
    for by in ("", BY):
        for kind in ("time windows", "rows windows", "session windows", *(() if by else ("pass-through",))):
            one, two = (rate.get(_one_key(kind.removesuffix(" windows"), tasks, by)) for tasks in (1, 2))
            if one and two:  # results that were filed without have no giant key with a column
                least = "" if kind == "pass-through" else wanted(two / one, 1.5)
                said.append(f"one key, {kind}{by}: {two:,.0f} rows/s with 2 tasks, {two / one:.2f} times that with 1{least}")
    ride, join = rate["wide rows, all columns ride"], rate["wide rows, joined back"]
    said.append(f"{WIDE} columns: {ride:,.0f} rows/s when all ride along ({ride / rate['wide rows, pass-through']:.0%} of "
                f"pass-through), {join:,.0f} when joined back")
    if ANSWERS in count:
        said.append(f"answers compared on {count[ANSWERS]:,} rows, ours and Spark's own: the same")
    return said


def _without_tree(rate: dict[str, float], count: dict[str, int]) -> str:
    """On the same rows, those of a few keys; results that were filed without ours on them have it on all rows alone."""
    plain = rate.get("(b) frames, re-aggregated")
    if not plain:
        return f"Spark's frames without the segment tree did not end within {LIMIT_SECONDS} s"
    some = count["(b) frames, re-aggregated"]
    if FEW in rate:
        return (f"on the {some:,} rows of a few keys ours {rate[FEW]:,.0f} rows/s, {rate[FEW] / plain:.0f} times Spark's frames "
                f"without the segment tree ({plain:,.0f}, one turn)")
    return (f"{rate['(c) ours'] / plain:.0f} times Spark's frames without the segment tree, which are asked for {some:,} of the "
            "rows, those of a few keys")


SUITE = Suite(
    name="spark-batch",
    source="Spark SQL window frames, segment tree",
    summary="Batches on Spark: beside its own frames, one giant key, wide rows",
    run=run,
    views=views,
    verdicts=verdicts,
)
