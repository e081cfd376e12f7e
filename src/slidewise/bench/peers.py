"""The peers, each on the same rows in the same run, and asked whether the answers agree: rolling windows of n rows.

    columns   a whole column at once: pandas, Polars, DuckDB (ROWS frames) and bottleneck against `sw.rolling`; each gets its own
              kind of data, and Slidewise gets a pandas frame against pandas and bottleneck, a Polars frame against Polars, an
              Arrow table against DuckDB
    events    one event at a time from Python, as a stream comes: River, and a deque with plain Python, against `sw.Window`

Ratios first: `times_slidewise` is their time over ours; above 1 Slidewise is faster. The systems take turns, the best turn counts.
What a peer does not offer is left out. Slow ones run on fewer rows, and count by the row.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import slidewise as sw
from slidewise.bench.rolling import measured
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, picked, values

COLUMNS = ("sum", "mean", "min", "max", "std")
EVENTS = ("sum", "mean", "min", "max", "std")


@dataclass(frozen=True)
class Sizes:
    rows: int
    windows: tuple[int, ...]
    events: int
    turns: int
    aggregates: tuple[str, ...] = COLUMNS
    systems: tuple[str, ...] = ("pandas", "polars", "duckdb", "bottleneck")


FULL = Sizes(2_000_000, (100, 10_000), 50_000, 3)
QUICK = Sizes(200_000, (100, 10_000), 3_000, 2)
TINY = Sizes(2_000, (10,), 300, 1, ("sum", "max"), ("pandas", "bottleneck"))


# ---- whole columns ---------------------------------------------------------------------------------------------------


def _answers(result) -> np.ndarray:
    """What a call gave, as an array of floats."""
    if isinstance(result, np.ndarray):
        return result
    column = result["a"] if "a" in getattr(result, "columns", ()) or isinstance(result, pa.Table) else result
    return np.asarray(column, dtype=float)


def column_calls(
    name: str, window: int, table: pa.Table, systems: tuple[str, ...]
) -> dict[str, tuple[Callable, Callable]]:
    """System -> (its call, ours on the same kind of data)."""
    import pandas as pd

    arguments = dict(time="t", windows={"": sw.rows(window)}, aggs={"a": getattr(sw, name)("x")})
    pandas_frame = table.to_pandas()
    series = pd.Series(pandas_frame["x"].to_numpy())
    least = 2 if name == "std" else 1  # a deviation needs two values; the first answer is null everywhere
    ours = {"pandas": lambda: sw.rolling(pandas_frame, **arguments)}
    calls: dict[str, tuple[Callable, Callable]] = {}
    if "pandas" in systems:
        calls["pandas"] = lambda: getattr(series.rolling(window, min_periods=least), name)(), ours["pandas"]
    if "bottleneck" in systems:
        import bottleneck

        values_ = series.to_numpy()
        more = {"ddof": 1} if name == "std" else {}
        function = getattr(bottleneck, f"move_{name}")
        calls["bottleneck"] = lambda: function(values_, window, min_count=least, **more), ours["pandas"]
    if "polars" in systems:
        import polars as pl

        frame = pl.from_arrow(table)
        expression = getattr(pl.col("x"), f"rolling_{name}")(window_size=window, min_samples=least).alias("a")
        calls["polars"] = lambda: frame.with_columns(expression), lambda: sw.rolling(frame, **arguments)
    if "duckdb" in systems:
        import duckdb

        connection = duckdb.connect()
        connection.register("d", table)
        word = {"mean": "avg", "std": "stddev_samp"}.get(name, name)
        query = f"select *, {word}(x) over (order by t rows between {window - 1} preceding and current row) as a from d"
        calls["duckdb"] = lambda: connection.sql(query).to_arrow_table(), lambda: sw.rolling(table, **arguments)
    return calls


def columns(sizes: Sizes, rows: list[Row], progress: Progress) -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"t": np.arange(sizes.rows), "x": rng.normal(100, 10, sizes.rows)})
    for _ in range(3):  # the memory of the process grows now, not while the first of them is timed
        for _, ours in column_calls(sizes.aggregates[-1], sizes.windows[0], table, sizes.systems).values():
            ours()
    for window in sizes.windows:
        for name in sizes.aggregates:
            progress(f"{name} over {window:,} of {sizes.rows:,} rows")
            calls = column_calls(name, window, table, sizes.systems)
            for system, (theirs, ours) in calls.items():
                agrees = bool(np.allclose(_answers(theirs()), _named(ours()), rtol=1e-6, atol=1e-6, equal_nan=True))
                best = measured(sizes.turns, {"theirs": theirs, "ours": ours})
                noted(rows, "columns", name, sizes.rows, window, system, best["theirs"], best["ours"], agrees)


def _named(result) -> np.ndarray:
    """Our column, whatever the window is called in it."""
    name = next(
        c for c in (result.column_names if isinstance(result, pa.Table) else result.columns) if c not in ("t", "x")
    )
    return np.asarray(result[name], dtype=float)


def noted(
    rows: list[Row], way: str, what: str, n: int, window: int, system: str, theirs: float, ours: float, agrees: bool
) -> None:
    rows.append(
        {
            "way": way,
            "what": what,
            "rows": n,
            "window": window,
            "system": system,
            "times_slidewise": theirs / ours,
            "nanoseconds": theirs / n * 1e9,
            "slidewise_nanoseconds": ours / n * 1e9,
            "agrees": agrees,
        }
    )


# ---- one event at a time ---------------------------------------------------------------------------------------------


Run = Callable[[list[float]], list[float]]
"""Takes events one by one, and gives the answer after each. The window is full when it begins."""


def with_river(name: str, window: int, before: list[float]) -> Run:
    from river import stats, utils

    made = {
        "sum": lambda: utils.Rolling(stats.Sum, window_size=window),
        "mean": lambda: utils.Rolling(stats.Mean, window_size=window),
        "std": lambda: utils.Rolling(stats.Var, window_size=window),
        "min": lambda: stats.RollingMin(window),
        "max": lambda: stats.RollingMax(window),
    }[name]()
    for x in before:
        made.update(x)

    def run(data: list[float]) -> list[float]:
        found = []
        for x in data:
            made.update(x)
            found.append(made.get())
        return [max(0.0, x) ** 0.5 for x in found] if name == "std" else found

    return run


PLAIN: dict[str, Callable] = {"sum": sum, "min": min, "max": max}
PLAIN["mean"] = lambda kept: sum(kept) / len(kept)


def in_python(name: str, window: int, before: list[float]) -> Run:
    """A deque, and the built-in function over it after each event: what people write first."""
    import statistics

    function = PLAIN.get(name) or statistics.stdev
    kept = deque(before, maxlen=window)

    def run(data: list[float]) -> list[float]:
        found = []
        for x in data:
            kept.append(x)
            found.append(function(kept))
        return found

    return run


def with_window(name: str, window: int, before: list[float]) -> Run:
    w = sw.Window(getattr(sw, name)(), dtype="f8", time_dtype="i8")
    w.bulk_insert(np.arange(window), np.array(before))
    insert, evict, query = w.insert, w.evict, w.query

    def run(data: list[float]) -> list[float]:
        found = []
        for t, x in enumerate(data, w.youngest + 1):
            evict()
            insert(t, x)
            found.append(query())
        return found

    return run


BUDGET = {"std": 200_000}
"""Values that plain Python may look at, where not 3 million: it looks at the whole window for each event."""


def events(sizes: Sizes, rows: list[Row], progress: Progress) -> None:
    data = np.random.default_rng(6).normal(100, 10, sizes.events).tolist()
    for window in sizes.windows:
        before = np.random.default_rng(7).normal(100, 10, window).tolist()
        for name in [aggregate for aggregate in EVENTS if aggregate in sizes.aggregates]:
            for system, theirs in (("river", with_river), ("python", in_python)):
                progress(f"{name} over {window:,}, one event at a time, {system}")
                few = data if system == "river" else data[: max(10, BUDGET.get(name, 3_000_000) // window)]
                runs = {"theirs": theirs(name, window, before), "ours": with_window(name, window, before)}
                # River subtracts floating-point numbers: not to the last digit.
                agrees = bool(np.allclose(runs["theirs"](few), runs["ours"](few), rtol=1e-6, atol=1e-6))
                best = measured(sizes.turns, {who: lambda run=run, few=few: run(few) for who, run in runs.items()})
                noted(rows, "events", name, len(few), window, system, best["theirs"], best["ours"], agrees)


# ---- the suite -------------------------------------------------------------------------------------------------------


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    columns(sizes, rows, progress)
    events(sizes, rows, progress)
    return rows


def views(rows: list[Row]) -> list[View]:
    found = []
    for way in values(rows, "way"):
        for window in values(picked(rows, (("way", way),)), "window"):
            only = (("way", way), ("window", window))
            title = f"{way}, windows of {window:,} rows: their time over ours"
            found.append(View(title, "what", "system", "times_slidewise", only, form="{:.2f}".format))
            found.append(
                View("nanoseconds of theirs a row", "what", "system", "nanoseconds", only, form="{:,.0f}".format)
            )
    return found


_CROSSING = (
    "An event goes from Python into compiled code and back, three times a round and {microseconds:.0f} microseconds in the median "
    "whatever the window: River's running sums, and a loop over a hundred numbers in Python's own code, take less. Whole columns, "
    "long windows and operators of one's own are what compiled code is for."
)
WHY = {
    "bottleneck": "bottleneck reads and writes one bare array and subtracts what leaves; the others build frames, as we do.",
    "pandas": "pandas is given a bare column and gives one back; ours is a frame with a time, out and in.",
    "river": _CROSSING,
    "python": _CROSSING,
}


def claims(rows: list[Row]) -> list[Claim]:
    found = [
        claim(
            "every peer gives the same answers on the same rows",
            f"{sum(r['agrees'] for r in rows)} of {len(rows)} columns agree to a millionth",
            [r["agrees"] for r in rows],
            "Who subtracts floating-point numbers is not right to the last digits.",
            who="wanted:",
        )
    ]
    for system in values(rows, "system"):
        ratios = [r["times_slidewise"] for r in rows if r["system"] == system]
        ours = np.median([r["slidewise_nanoseconds"] for r in rows if r["system"] == system]) / 1000
        slower = [
            f"{r['what']} over {r['window']:,}" for r in rows if r["system"] == system and r["times_slidewise"] < 1
        ]
        found.append(
            claim(
                f"Slidewise is no slower than {system}",
                f"{system} takes {min(ratios):.2f} to {max(ratios):.1f} times as long, {np.median(ratios):.1f} in the median"
                + (f"; faster than us at {', '.join(slower)}" if slower else ""),
                [ratio >= 1 for ratio in ratios],
                WHY.get(system, "It is given its own kind of data and gives it back, as we are and do.").format(microseconds=ours),
                who="wanted:",
            )
        )
    return found


def plots(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f"{way}, windows of {window:,}",
            "what",
            "times_slidewise",
            "system",
            (("way", way), ("window", window)),
            kind="bars",
            x_label=" ",
            y_label="their time over ours",
            y_log=10,
            base=1.0,
        )
        for way in values(rows, "way")
        for window in values(picked(rows, (("way", way),)), "window")
    ]
    return [Plot(panels, "above 1 Slidewise is faster", across=2)]


SUITE = Suite(
    name="peers",
    source="our own: windows of n rows against pandas, Polars, DuckDB, bottleneck and River",
    summary="whole columns, and one event at a time, with the answers compared",
    run=lambda quick, progress: measure(QUICK if quick else FULL, progress),
    tiny=lambda progress: measure(TINY, progress),
    views=views,
    plots=plots,
    claims=claims,
)
