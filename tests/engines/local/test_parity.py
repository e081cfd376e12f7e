"""The same answers as pandas, Polars, DuckDB and bottleneck give, for every aggregate they share; where they differ, how.

The differences (docs/boundaries.md says them too):
- pandas subtracts what leaves a window, so that rounding errors stay.
- pandas takes an infinity for missing (not in `count`), and bottleneck's sums never get rid of one; the frames drawn here have
  none, and test_an_infinity_leaves_no_trace_here_and_does_elsewhere says what each makes of one.
- pandas skips NaN as missing; Polars and Arrow count NaN as a value (test_parity_more.py): they are tried on nulls here.
- pandas goes row by row among equal times (`ties="arrival"`); Polars' `rolling_*_by` and SQL's RANGE see peers.
- A window without values gives 0 as Polars' and pandas' `sum`(min_periods=0), null here and in SQL.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

AGGS = {
    "n": sw.count("x"),
    "sum": sw.sum("x"),
    "mean": sw.mean("x"),
    "std": sw.std("x"),
    "var": sw.var("x"),
    "min": sw.min("x"),
    "max": sw.max("x"),
}
CLOSED = ("right", "left", "both", "neither")
FRAMES = {
    "many": (400, 5, 300),
    "ties": (300, 3, 40),
    "one key": (200, 1, 150),
    "keys": (300, 120, 200),
    "one row": (1, 1, 5),
    "empty": (0, 1, 5),
}


def frame(name, seed=0, sort=True):
    """Times with ties (distinct ones if asked for), keys, numbers with nulls."""
    n, keys, span = FRAMES[name]
    rng = np.random.default_rng(seed)
    t = rng.integers(0, span, n)
    if sort:
        t = np.sort(t)
    x = np.round(rng.normal(size=n) * 100, 2)
    return pd.DataFrame(
        {
            "t": pd.to_datetime(t, unit="s").astype("datetime64[us]"),
            "k": rng.integers(0, keys, n),
            "x": np.where(rng.random(n) < 0.15, np.nan, x),
        }
    )


def close(ours, theirs, name):
    np.testing.assert_allclose(
        np.asarray(ours, float), np.asarray(theirs, float), rtol=1e-9, atol=1e-7, equal_nan=True, err_msg=name
    )


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", FRAMES)
def test_pandas_time(name, closed):
    """pandas: groupby.rolling(time), row by row, at least one value."""
    df = frame(name)
    asked = dict(time="t", by="k", windows=["20s"], aggs=AGGS, closed=closed, ties="arrival")
    ours = sw.rolling(df, **asked)
    mixed = df.assign(row=np.arange(len(df))).sample(frac=1, random_state=3)  # pandas refuses rows in such an order
    pd.testing.assert_frame_equal(sw.rolling(mixed, **asked, order="row").sort_index().drop(columns="row"), ours)
    if df.empty:
        assert len(ours) == 0
        return
    grouped = df.groupby("k", sort=False)
    for agg in AGGS:
        theirs = pd.Series(np.nan, df.index)
        for _, part in grouped:
            rolled = part.set_index("t")["x"].rolling("20s", closed=closed, min_periods=1)
            values = rolled.count() if agg == "n" else getattr(rolled, agg)()
            theirs[part.index] = values.to_numpy()
        if agg == "n":
            theirs = theirs.fillna(0)
        close(ours[f"{agg}_20s"], theirs, agg)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", FRAMES)
def test_pandas_rows(name, closed):
    df = frame(name, sort=True)
    ours = sw.rolling(df, time="t", windows=[sw.rows(7)], aggs=AGGS, closed=closed)
    rolled = df["x"].rolling(7, closed=closed, min_periods=1)
    for agg in AGGS:
        theirs = rolled.count().fillna(0) if agg == "n" else getattr(rolled, agg)()
        close(ours[f"{agg}_7r"], theirs, agg)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", FRAMES)
def test_polars_by(name, closed):
    """Polars: rolling_*_by sees peers. Its sum of no values is 0, its count of nothing is left to `len`."""
    df = pl.from_pandas(frame(name, sort=False))
    ours = sw.rolling(df, time="t", by="k", windows=["20s"], aggs=AGGS, closed=closed)
    for agg in ("sum", "mean", "std", "var", "min", "max"):
        rolled = getattr(pl.col("x"), f"rolling_{agg}_by")(
            "t", window_size="20s", closed="none" if closed == "neither" else closed
        )
        theirs = df.select(rolled.over("k")).to_series()
        mine = ours[f"{agg}_20s"]
        if agg == "sum":
            mine, theirs = mine.fill_null(0.0), theirs.fill_null(0.0)
        if agg in ("std", "var"):  # one value has none here; Polars agrees, and gives null for windows of one row
            theirs = theirs.fill_null(float("nan"))
        close(mine, theirs, agg)


@pytest.mark.parametrize("name", FRAMES)
def test_polars_rows(name):
    df = pl.from_pandas(frame(name))
    ours = sw.rolling(df, time="t", windows=[sw.rows(7)], aggs=AGGS)
    for agg in ("sum", "mean", "std", "var", "min", "max"):
        theirs = df.select(getattr(pl.col("x"), f"rolling_{agg}")(7, min_samples=1)).to_series()
        close(ours[f"{agg}_7r"], theirs, agg)


@pytest.mark.parametrize("name", FRAMES)
def test_duckdb(name):
    """SQL: RANGE sees peers, both ends closed; ROWS goes by position."""
    duckdb = pytest.importorskip("duckdb")
    df = frame(name, sort=False)
    df["row"] = np.arange(len(df))
    table = pa.Table.from_pandas(df)
    con = duckdb.connect()
    con.register("d", table)
    words = {
        "n": "count",
        "sum": "sum",
        "mean": "avg",
        "std": "stddev_samp",
        "var": "var_samp",
        "min": "min",
        "max": "max",
    }
    for frame_text, window, closed in (
        ("range between interval 20 second preceding and current row", "20s", "both"),
        ("rows between 6 preceding and current row", sw.rows(7), "right"),
    ):
        chosen = ", ".join(f"{function}(x) over w as {agg}" for agg, function in words.items())
        theirs = con.sql(
            f"select row, {chosen} from d window w as (partition by k order by t{', row' if closed == 'right' else ''} "
            f"{frame_text}) order by row"
        ).to_arrow_table()
        ours = sw.rolling(table, time="t", by="k", windows={"w": window}, aggs=AGGS, closed=closed)
        for agg in words:
            close(ours.column(f"{agg}_w").to_pylist(), theirs.column(agg).to_pylist(), agg)


@pytest.mark.parametrize("name", [n for n in FRAMES if n not in ("empty", "one row")])
def test_bottleneck(name):
    bottleneck = pytest.importorskip("bottleneck")
    df = frame(name)
    ours = sw.rolling(df, time="t", windows=[sw.rows(7)], aggs=AGGS)
    x = df["x"].to_numpy()
    for agg in ("sum", "mean", "min", "max"):
        close(ours[f"{agg}_7r"], getattr(bottleneck, f"move_{agg}")(x, 7, min_count=1), agg)
    for agg in ("std", "var"):
        close(ours[f"{agg}_7r"], getattr(bottleneck, f"move_{agg}")(x, 7, min_count=2, ddof=1), agg)


def test_a_nan_leaves_no_trace_here():
    """A NaN of the past spoils nothing (pandas sees it as missing, Polars and Arrow as a value)."""
    x = [1.0, float("nan"), 2.0, 3.0, 4.0]
    table = pa.table({"t": range(5), "x": x})
    ours = sw.rolling(table, time="t", windows=[sw.rows(2)], aggs=AGGS)
    assert [str(v) for v in ours.column("sum_2r").to_pylist()] == ["1.0", "nan", "nan", "5.0", "7.0"]
    as_pandas = sw.rolling(pd.DataFrame({"t": range(5), "x": x}), time="t", windows=[sw.rows(2)], aggs=AGGS)
    assert as_pandas["sum_2r"].tolist() == [1.0, 1.0, 2.0, 5.0, 7.0]


def test_an_infinity_leaves_no_trace_here_and_does_elsewhere():
    """Here, in Polars and in SQL it is a value while it is in the window. Were pandas or bottleneck to change their minds, the docs
    must too."""
    inf, nan = float("inf"), float("nan")
    x = [1.0, inf, 2.0, 3.0, 4.0]
    wanted = {"sum": [1.0, inf, inf, 5.0, 7.0], "mean": [1.0, inf, inf, 2.5, 3.5], "max": [1.0, inf, inf, 3.0, 4.0]}
    for frame in (pa.table({"t": range(5), "x": x}), pd.DataFrame({"t": range(5), "x": x})):
        ours = sw.rolling(frame, time="t", windows=[sw.rows(2)], aggs=AGGS)
        for agg, values in wanted.items():
            assert list(ours[f"{agg}_2r"].to_numpy()) == values
            assert getattr(pl.Series(x), f"rolling_{agg}")(2, min_samples=1).to_list() == values
    rolled = pd.Series(x).rolling(2, min_periods=1)
    assert rolled.sum().tolist() == [1.0, 1.0, 2.0, 5.0, 7.0] and rolled.max().tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert rolled.count().tolist() == [1, 2, 2, 2, 2]
    bottleneck = pytest.importorskip("bottleneck")
    np.testing.assert_equal(bottleneck.move_sum(np.array(x), 2, min_count=1), [1.0, inf, inf, nan, nan])
    np.testing.assert_equal(bottleneck.move_mean(np.array(x), 2, min_count=1), [1.0, inf, inf, nan, nan])
    assert bottleneck.move_max(np.array(x), 2, min_count=1).tolist() == wanted["max"]


def test_duckdb_takes_nan_for_a_value_too():
    """SQL orders NaN above +inf and sums propagate it, as here: frames with ties, nulls and NaN."""
    duckdb = pytest.importorskip("duckdb")
    df = frame("many", sort=False)
    rng = np.random.default_rng(1)
    x = np.where(rng.random(len(df)) < 0.1, np.nan, rng.normal(size=len(df)))
    table = pa.table(
        {"t": df["t"], "k": df["k"], "x": pa.array(x, mask=rng.random(len(df)) < 0.1), "row": range(len(df))}
    )
    assert df.duplicated(["k", "t"]).any() and table["x"].null_count and np.isnan(table["x"].drop_null()).any()
    con = duckdb.connect()
    con.register("d", table)
    words = {"n": "count", "sum": "sum", "mean": "avg", "min": "min", "max": "max"}
    chosen = ", ".join(f"{word}(x) over w as {agg}" for agg, word in words.items())
    over = "partition by k order by t range between interval 20 second preceding and current row"
    theirs = con.sql(f"select row, {chosen} from d window w as ({over}) order by row").to_arrow_table()
    ours = sw.rolling(table, time="t", by="k", windows={"w": "20s"}, aggs=AGGS, closed="both")
    for agg in words:
        assert ours.column(f"{agg}_w").null_count == theirs.column(agg).null_count
        close(ours.column(f"{agg}_w").to_pylist(), theirs.column(agg).to_pylist(), agg)
