"""Parity beyond sums and extremes: medians, two columns, what DuckDB calls first, arg_max, list, bit_and ... over a window.

Frames as in test_parity.py: ties, nulls, unsorted rows, one row, many keys. Where the others differ from here:
- correlations of fewer than two pairs, or of a constant column, are NaN in pandas and Polars, null here and in DuckDB; pandas and
  Polars, which subtract, may give a number near zero divided by another where a column is constant: such windows are left out.
- DuckDB's first, last and list take nulls for values; here they are skipped: it is asked for them without.
"""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.local.test_parity import CLOSED, FRAMES, close
from tests.engines.local.test_parity import frame as one_column

import slidewise as sw

FULL = [name for name in FRAMES if name != "empty"]


def frame(name, sort=True):
    df = one_column(name, seed=4, sort=sort)
    rng = np.random.default_rng(5)
    n = len(df)
    df["y"] = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n) * 10, 1))
    df["row"] = np.arange(n)
    return df


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", FULL)
def test_medians(name, closed):
    df = frame(name)
    aggs = {"m": sw.median("x")}
    ours = sw.rolling(df, time="t", windows=["20s", sw.rows(7)], aggs=aggs, closed=closed, ties="arrival")
    series = df.set_index("t")["x"]
    close(ours["m_20s"], series.rolling("20s", closed=closed, min_periods=1).median(), "pandas, time")
    close(ours["m_7r"], df["x"].rolling(7, closed=closed, min_periods=1).median(), "pandas, rows")
    if closed == "right":
        bottleneck = pytest.importorskip("bottleneck")
        if len(df) >= 7:
            close(ours["m_7r"], bottleneck.move_median(df["x"].to_numpy(), 7, min_count=1), "bottleneck")
    data = pl.from_pandas(frame(name, sort=False))
    ours = sw.rolling(data, time="t", by="k", windows=["20s"], aggs=aggs, closed=closed)
    theirs = pl.col("x").rolling_median_by("t", window_size="20s", closed="none" if closed == "neither" else closed)
    close(ours["m_20s"], data.select(theirs.over("k")).to_series(), "Polars")


@pytest.mark.parametrize("name", FULL)
def test_two_columns_in_pandas(name):
    """Both count the pairs in which neither is missing."""
    df = frame(name)
    aggs = {"cov": sw.covariance("x", "y"), "corr": sw.correlation("x", "y"), "n": sw.count("x"), "v": sw.var("x")}
    both = df.assign(x=df["x"].where(df["y"].notna()), y=df["y"].where(df["x"].notna()))
    ours = sw.rolling(both, time="t", windows=["20s", sw.rows(7)], aggs=aggs, ties="arrival")
    indexed = both.set_index("t")
    for window, theirs in (
        ("20s", (indexed["x"].rolling("20s", min_periods=2), indexed["y"])),
        ("7r", (both["x"].rolling(7, min_periods=2), both["y"])),
    ):
        close(ours[f"cov_{window}"], theirs[0].cov(theirs[1]), f"covariance, {window}")
        several = (ours[f"n_{window}"] > 2).to_numpy()
        close(ours[f"corr_{window}"][several], theirs[0].corr(theirs[1])[several], f"correlation, {window}")


DUCKDB = {
    "median": (sw.median("x"), "median(x)"),
    "product": (sw.product("z"), "product(z)"),
    "geomean": (sw.geomean("p"), "exp(avg(ln(p)) over w)"),
    "covariance": (sw.covariance("x", "y"), "covar_samp(y, x)"),
    "population": (sw.covariance("x", "y", ddof=0), "covar_pop(y, x)"),
    "correlation": (sw.correlation("x", "y"), "corr(y, x)"),
    "slope": (sw.slope("x", "y"), "regr_slope(y, x)"),
    "var0": (sw.var("x", ddof=0), "var_pop(x)"),
    "std0": (sw.std("x", ddof=0), "stddev_pop(x)"),
    "first": (sw.first("x"), "first_value(x order by t, row ignore nulls)"),
    "last": (sw.last("x"), "last_value(x order by t, row ignore nulls)"),
    "argmax": (sw.argmax("i", "row"), "arg_max(row, i)"),
    "argmin": (sw.argmin("i", "row"), "arg_min(row, i)"),
    "any": (sw.any("b"), "bool_or(b)"),
    "all": (sw.all("b"), "bool_and(b)"),
    "bit_and": (sw.bit_and("i"), "bit_and(i)"),
    "bit_or": (sw.bit_or("i"), "bit_or(i)"),
    "bit_xor": (sw.bit_xor("i"), "bit_xor(i)"),
    "list": (sw.collect("i"), "list(i order by t, row) filter (i is not null)"),
    "concat": (sw.concat("s", sep="-"), "string_agg(s, '-' order by t, row)"),
    "text": (sw.max("s"), "max(s)"),
    "when": (sw.min("t"), "min(t)"),
    "rows": (sw.count(), "count(*)"),
}


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize(
    ("over", "window", "closed"),
    [
        ("range between interval 20 second preceding and current row", "20s", "both"),
        ("rows between 6 preceding and current row", sw.rows(7), "right"),
    ],
    ids=["range", "rows"],
)
def test_duckdb(name, over, window, closed):
    duckdb = pytest.importorskip("duckdb")
    df = frame(name, sort=False)
    rng = np.random.default_rng(6)
    n = len(df)
    holes = rng.random(n) < 0.1
    table = pa.Table.from_pandas(df)
    for column, values in {
        "i": pa.array(rng.permutation(n), pa.int64(), mask=holes),
        "z": pa.array(rng.choice([0.5, -2.0, 1.0, 4.0], n), mask=holes),
        "p": pa.array(rng.uniform(1, 9, n), mask=holes),
        "b": pa.array(rng.random(n) < 0.8, mask=holes),
        "s": pa.array([f"w{k}" for k in rng.integers(0, 30, n)], mask=holes),
    }.items():
        table = table.append_column(column, values)
    connection = duckdb.connect()
    connection.register("d", table)
    by_row = over.startswith("rows")
    chosen = ", ".join(f'{text if "over w" in text else f"{text} over w"} as "{agg}"' for agg, (_, text) in DUCKDB.items())
    theirs = connection.sql(
        f"select row, {chosen} from d window w as (partition by k order by t{', row' if by_row else ''} {over}) order by row"
    ).to_arrow_table()
    aggs = {agg: bound for agg, (bound, _) in DUCKDB.items()}
    ours = sw.rolling(table, time="t", by="k", windows={"w": window}, aggs=aggs, closed=closed)
    several = ours.column("covariance_w").is_valid().to_numpy()
    for agg in DUCKDB:
        mine, other = ours.column(f"{agg}_w"), theirs.column(agg)
        if pa.types.is_floating(mine.type):
            some = several if agg in ("correlation", "slope") else np.ones(n, bool)
            close(np.array(mine.to_pylist(), float)[some], np.array(other.to_pylist(), float)[some], agg)
        elif agg == "list":
            assert mine.to_pylist() == [x or [] for x in other.to_pylist()], agg
        else:
            assert mine.to_pylist() == other.to_pylist(), agg


def test_two_columns_in_polars():
    df = frame("many").dropna()
    ours = sw.rolling(pl.from_pandas(df), time="t", windows=[sw.rows(7)], aggs={"c": sw.covariance("x", "y")})
    theirs = pl.from_pandas(df).select(pl.rolling_cov("x", "y", window_size=7, min_samples=2)).to_series()
    close(ours["c_7r"].fill_null(float("nan")), theirs.fill_null(float("nan")), "Polars rolling_cov")
