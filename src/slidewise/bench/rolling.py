"""`rolling` against pandas, Polars and DuckDB, in one run on the same frames.

    one key       sum, mean, min, max, count, std over windows of 10^3 and 10^5 rows, against pandas and Polars `rolling_*_by`;
                  all give back the frame with one more column, and pandas once more just the column
    many keys     3 windows x 5 aggregates over 1,000 and 100,000 keys, against Polars `rolling_*_by().over()` and DuckDB RANGE
    own operator  a user's operator against the built-in one, and against pandas `rolling.apply` (its time a row, on fewer rows)
    window size   the same rows, windows of 2^4 .. 2^20 rows: the cost must not grow
    rows          ever more rows, the same window: the time of a row must not grow
    as_of         millions of queries, 3 windows x 5 aggregates, against `rolling` over as many rows
    memory        peak memory of a call on each kind of frame, in a process of its own, over the bytes of its input and output

Each of the others gets its own kind of frame; Slidewise gets the same frame as the one it is compared with, and gives back the
same kind. The systems take turns, and of each the best turn counts.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import slidewise as sw
from slidewise.bench.suite import Progress, Row, Suite, View

AGGREGATES = ("sum", "mean", "min", "max", "count", "std")
FIVE = ("sum", "mean", "min", "max", "std")
HOURS = (1, 24, 168)
SECOND = 1_000_000
COLUMN = "pandas, column only"
"""pandas gives back a bare column and Slidewise the whole frame, with copy-on-write: the frame is then not copied for it."""


def measured(turns: int, calls: dict[str, Callable[..., object]]) -> dict[str, float]:
    """The least time of each call; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(turns + 1):  # the first turn compiles and warms up
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            spent = time.perf_counter() - began
            best[name] = min(best[name], spent) if turn else best[name]
    return best


def noted(
    rows: list[Row], experiment: str, what: str, n: int, window: str, found: dict[str, tuple[float, float]]
) -> None:
    """found: system -> (its time, the time of Slidewise on the same frame)."""
    for system, (theirs, ours) in found.items():
        rows.append(
            {
                "experiment": experiment,
                "what": what,
                "rows": n,
                "window": window,
                "system": system,
                "seconds": theirs,
                "slidewise_seconds": ours,
                "times_slidewise": theirs / ours,
            }
        )


def one_key(n: int, turns: int, rows: list[Row], progress: Progress) -> None:
    import polars as pl

    rng = np.random.default_rng(1)
    table = pa.table({"t": pa.array(np.arange(n) * SECOND, pa.timestamp("us")), "x": rng.normal(size=n)})
    pandas_frame, polars_frame = table.to_pandas(), pl.from_arrow(table)
    series = pandas_frame.set_index("t")["x"]
    for window in (10**3, 10**5):
        if window * 2 > n:
            continue
        for name in AGGREGATES:
            progress(f"one key, {n:,} rows, {name} over {window:,} rows")
            arguments = dict(time="t", windows=f"{window}s", aggs={"a": getattr(sw, name)("x")})
            column = lambda name=name, window=window: getattr(series.rolling(f"{window}s"), name)()
            ours = lambda arguments=arguments: sw.rolling(pandas_frame, **arguments)
            word = "rolling_sum_by" if name == "count" else f"rolling_{name}_by"
            values = pl.col("x").is_not_null().cast(pl.Int64) if name == "count" else pl.col("x")
            expression = getattr(values, word)("t", window_size=f"{window}s")
            best = measured(
                turns,
                {
                    "pandas": lambda column=column: pandas_frame.assign(a=column().to_numpy()),
                    "here/pandas": ours,
                    COLUMN: lambda column=column: _sharing(column),
                    f"here/{COLUMN}": lambda ours=ours: _sharing(ours),
                    "polars": lambda expression=expression: polars_frame.with_columns(expression.alias("a")),
                    "here/polars": lambda arguments=arguments: sw.rolling(polars_frame, **arguments),
                },
            )
            systems = ("pandas", COLUMN, "polars")
            noted(rows, "one key", name, n, str(window), {each: (best[each], best[f"here/{each}"]) for each in systems})


def _sharing(call: Callable[[], object]) -> object:
    """With pandas' copy-on-write, which is off by default in pandas 2: frames share their columns."""
    import pandas as pd

    with pd.option_context("mode.copy_on_write", True):
        return call()


def many_keys(n: int, turns: int, rows: list[Row], progress: Progress) -> None:
    import duckdb
    import polars as pl

    for keys in (1_000, 100_000):
        progress(f"{keys:,} keys, {n:,} rows, 3 windows x 5 aggregates")
        rng = np.random.default_rng(2)
        times = np.sort(rng.integers(0, 30 * 86_400, n)) * SECOND
        table = pa.table(
            {"t": pa.array(times, pa.timestamp("us")), "k": rng.integers(0, keys, n), "x": rng.normal(size=n)}
        )
        frame = pl.from_arrow(table)
        arguments = dict(
            time="t", by="k", windows=[f"{h}h" for h in HOURS], aggs={name: getattr(sw, name)("x") for name in FIVE}
        )
        expressions = [
            getattr(pl.col("x"), f"rolling_{name}_by")("t", window_size=f"{h}h").over("k").alias(f"{name}_{h}h")
            for h in HOURS
            for name in FIVE
        ]
        words = {"sum": "sum", "mean": "avg", "min": "min", "max": "max", "std": "stddev_samp"}
        chosen = ", ".join(f"{function}(x) over w{h} as {name}_{h}h" for h in HOURS for name, function in words.items())
        over = ", ".join(
            f"w{h} as (partition by k order by t range between interval {h} hour preceding and current row)"
            for h in HOURS
        )
        connection = duckdb.connect()
        connection.register("d", table)
        best = measured(
            turns,
            {
                "polars": lambda frame=frame, expressions=expressions: frame.with_columns(expressions),
                "here/polars": lambda frame=frame, arguments=arguments: sw.rolling(frame, **arguments),
                "duckdb": lambda c=connection, q=f"select *, {chosen} from d window {over}": c.sql(q).to_arrow_table(),
                "here/arrow": lambda table=table, arguments=arguments: sw.rolling(table, **arguments),
            },
        )
        noted(
            rows,
            "many keys",
            f"{keys} keys",
            n,
            "3 windows",
            {"polars": (best["polars"], best["here/polars"]), "duckdb": (best["duckdb"], best["here/arrow"])},
        )


def own_operator(n: int, turns: int, rows: list[Row], progress: Progress) -> None:
    progress(f"a user's own operator, {n:,} rows")
    mine = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, lower=lambda s: s, identity=0.0, name="my_sum")
    table = pa.table(
        {"t": pa.array(np.arange(n) * SECOND, pa.timestamp("us")), "x": np.random.default_rng(3).normal(size=n)}
    )
    best = measured(
        turns,
        {
            "user's own": lambda: sw.rolling(table, time="t", windows="1000s", aggs={"a": mine("x")}),
            "built in": lambda: sw.rolling(table, time="t", windows="1000s", aggs={"a": sw.sum("x")}),
            "wide": lambda: sw.rolling(table, time="t", windows="20000s", aggs={"a": mine("x")}),
        },
    )
    noted(rows, "own operator", "sum", n, "1000", {"user's own": (best["user's own"], best["built in"])})
    few = 40_000
    series = table.slice(0, few).to_pandas().set_index("t")["x"]
    spent = measured(1, {"apply": lambda: series.rolling("20000s").apply(np.sum, raw=True)})["apply"]
    noted(rows, "own operator", "apply", n, "20000", {"pandas apply": (spent * n / few, best["wide"])})


def window_sizes(n: int, turns: int, rows: list[Row], progress: Progress) -> None:
    table = pa.table(
        {"t": pa.array(np.arange(n) * SECOND, pa.timestamp("us")), "x": np.random.default_rng(4).normal(size=n)}
    )
    calls: dict[str, Callable[..., object]] = {}
    for power in range(4, 21, 4):
        calls[str(2**power)] = lambda power=power: sw.rolling(
            table, time="t", windows=f"{2**power}s", aggs={"a": sw.sum("x")}
        )
    progress(f"window sizes, {n:,} rows")
    best = measured(turns, calls)
    for window, spent in best.items():
        noted(rows, "window size", "sum", n, window, {"slidewise": (spent, best["16"])})


def more_rows(most: int, turns: int, rows: list[Row], progress: Progress) -> None:
    progress(f"ever more rows, up to {most:,}")
    column = np.random.default_rng(4).normal(size=most)
    calls: dict[str, Callable[..., object]] = {}
    for n in (most >> 4, most >> 2, most):
        table = pa.table({"t": pa.array(np.arange(n) * SECOND, pa.timestamp("us")), "x": column[:n]})
        calls[str(n)] = lambda table=table: sw.rolling(table, time="t", windows="10000s", aggs={"a": sw.sum("x")})
    best = measured(turns, calls)
    for count, spent in best.items():
        as_before = best[str(most >> 4)] * int(count) / (most >> 4)
        noted(rows, "rows", "sum", int(count), "10000", {"slidewise": (spent, as_before)})


def queries(n: int, turns: int, rows: list[Row], progress: Progress) -> None:
    for keys in (1_000, 100_000):
        progress(f"as_of, {n:,} queries, {keys:,} keys")
        rng = np.random.default_rng(6)
        labels, events = (
            pa.table(
                {
                    "t": pa.array(np.sort(rng.integers(0, 30 * 86_400, n)) * SECOND, pa.timestamp("us")),
                    "k": rng.integers(0, keys, n),
                    "x": rng.normal(size=n),
                }
            )
            for _ in range(2)
        )
        labels = labels.drop_columns("x")
        arguments = dict(
            time="t", by="k", windows=[f"{h}h" for h in HOURS], aggs={name: getattr(sw, name)("x") for name in FIVE}
        )
        calls: dict[str, Callable[..., object]] = {
            "as_of": lambda labels=labels, events=events, asked=arguments: sw.as_of(labels, events, **asked),
            "rolling": lambda events=events, asked=arguments: sw.rolling(events, **asked),
        }
        best = measured(turns, calls)
        noted(rows, "as_of", f"{keys} keys", n, "3 windows", {"as_of": (best["as_of"], best["rolling"])})


CHILD = """
import sys, numpy as np, pandas as pd, polars as pl, pyarrow as pa, slidewise as sw
n, kind = int(sys.argv[1]), sys.argv[2]
def status(word):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(word))
def frame(n):
    rng = np.random.default_rng(5)
    table = pa.table({"t": pa.array(np.sort(rng.integers(0, 30 * 86400, n)) * 1000000, pa.timestamp("us")),
                      "k": rng.integers(0, 1000, n), "x": rng.normal(size=n)})
    return {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}[kind]()
def size(frame):
    return {"arrow": lambda: frame.nbytes, "pandas": lambda: int(frame.memory_usage(index=False).sum()),
            "polars": lambda: frame.estimated_size()}[kind]()
aggs = {name: getattr(sw, name)("x") for name in ("sum", "mean", "min", "max", "std")}
call = lambda t: sw.rolling(t, time="t", by="k", windows=["1h", "24h", "168h"], aggs=aggs)
call(frame(100000))
before = status("VmRSS")
table = frame(n)
open("/proc/self/clear_refs", "w").write("5")
result = call(table)
print((status("VmHWM") - before) / size(result))
"""


FRAMES = {"arrow": "slidewise", "pandas": "slidewise on pandas", "polars": "slidewise on polars"}


def memory(n: int, rows: list[Row], progress: Progress) -> None:
    """Peak over input and output (the result's own columns are the input's, and count once)."""
    if not os.path.exists("/proc/self/clear_refs"):
        return
    for kind, system in FRAMES.items():
        progress(f"memory, {n:,} rows, {kind}")
        child = [sys.executable, "-c", CHILD, str(n), kind]
        told = subprocess.run(child, capture_output=True, text=True, check=True).stdout
        rows.append(
            {
                "experiment": "memory",
                "what": "peak over input and output",
                "rows": n,
                "window": "3 windows",
                "system": system,
                "seconds": None,
                "slidewise_seconds": None,
                "times_slidewise": float(told),
            }
        )


def run(quick: bool, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for n, turns in ((10**6, 5),) if quick else ((10**6, 120), (10**7, 3)):
        one_key(n, turns, rows, progress)
        many_keys(n, 2 if n == 10**6 else 1, rows, progress)
        memory(n, rows, progress)
    own_operator(10**6, 5, rows, progress)
    window_sizes(2 * 10**6 if quick else 16 * 10**6, 5, rows, progress)  # many times the longest window
    more_rows(4 * 10**6 if quick else 16 * 10**6, 3, rows, progress)
    queries(10**6 if quick else 5 * 10**6, 2, rows, progress)
    return rows


def views(rows: list[Row]) -> list[View]:
    form = "{:.2f}".format
    found = []
    only: tuple
    for n in dict.fromkeys(r["rows"] for r in rows if r["experiment"] == "one key"):
        for window in dict.fromkeys(r["window"] for r in rows if r["experiment"] == "one key" and r["rows"] == n):
            only = (("experiment", "one key"), ("rows", n), ("window", window))
            found.append(
                View(
                    f"one key, {n:,} rows, windows of {window}: their time over ours",
                    "what",
                    "system",
                    "times_slidewise",
                    only,
                    form=form,
                )
            )
        only = (("experiment", "many keys"), ("rows", n))
        found.append(
            View(
                f"3 windows x 5 aggregates, {n:,} rows: their time over ours",
                "what",
                "system",
                "times_slidewise",
                only,
                form=form,
            )
        )
    found.append(
        View(
            "a user's own operator: time over the built-in; pandas apply over ours",
            "what",
            "system",
            "times_slidewise",
            (("experiment", "own operator"),),
            form=form,
        )
    )
    found.append(
        View(
            "time over that of windows of 16 rows",
            "window",
            "system",
            "times_slidewise",
            (("experiment", "window size"),),
            form=form,
        )
    )
    for experiment, title in (
        ("rows", "time of a row over that of a row of the shortest frame"),
        ("as_of", "time of as_of over that of rolling over as many rows"),
    ):
        only = (("experiment", experiment),)
        found.append(View(title, "rows", "system" if experiment == "rows" else "what", "times_slidewise", only, form=form))
    found.append(
        View(
            "peak memory over input and output",
            "rows",
            "system",
            "times_slidewise",
            (("experiment", "memory"),),
            form=form,
        )
    )
    return found


LEAST: dict[tuple[str, str, str], float] = {
    ("one key", "sum mean min max count", "pandas"): 2.0,
    ("one key", "sum mean min max count", COLUMN): 2.0,
    ("one key", "sum mean min max count", "polars"): 2.0,
    ("one key", "std", "pandas"): 1.0,
    ("one key", "std", COLUMN): 1.0,
    ("one key", "std", "polars"): 1.0,
    ("many keys", "1000 keys", "polars"): 3.0,
    ("many keys", "1000 keys", "duckdb"): 8.0,
    ("many keys", "100000 keys", "polars"): 3.0,
    ("many keys", "100000 keys", "duckdb"): 8.0,
    ("own operator", "apply", "pandas apply"): 50.0,
}
MOST: dict[tuple[str, str, str], float] = {
    ("own operator", "sum", "user's own"): 2.0,
    **{("memory", "peak over input and output", system): 2.5 for system in FRAMES.values()},
    ("window size", "sum", "slidewise"): 1.5,
    ("rows", "sum", "slidewise"): 1.5,
}
"""What is wanted of (experiment, what, system): their time over ours at least; ours over the yardstick at most."""


def verdicts(rows: list[Row]) -> list[str]:
    """What was wanted, and what came out at worst."""
    found = []
    for wanted, pick, word in ((LEAST, min, "at least"), (MOST, max, "at most")):
        for (experiment, what, system), bound in wanted.items():
            named = [
                r
                for r in rows
                if (r["experiment"], r["system"]) == (experiment, system)
                and (r["what"] == what or r["what"] in what.split())
            ]
            for n in dict.fromkeys(r["rows"] for r in named):
                worst = pick(r["times_slidewise"] for r in named if r["rows"] == n)
                held = worst >= bound if pick is min else worst <= bound
                found.append(
                    f"{experiment}, {what}, {system}, {n:,} rows: {word} {bound:g} wanted, {worst:.2f} found"
                    f"{'' if held else ' (missed)'}"
                )
    return found


SUITE = Suite(
    name="rolling",
    source="our own: data frames against pandas, Polars and DuckDB",
    summary="rolling on data frames: one key, many keys, own operators, window sizes, memory, as_of",
    run=run,
    views=views,
    verdicts=verdicts,
)
