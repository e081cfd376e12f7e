"""Parity beyond sums and extremes: medians, two columns, what DuckDB calls first, arg_max, list, bit_and ... over a window.

Frames as in test_parity.py: ties, nulls, unsorted rows, one row, many keys. Where the others differ from here:
- correlations of fewer than two pairs, or of a constant column, are NaN in pandas and Polars, null here and in DuckDB; pandas and
  Polars, which subtract, may give a number near zero divided by another where a column is constant: such windows are left out.
- DuckDB's first, last and list take nulls for values; here they are skipped: it is asked for them without.
- Polars' min is NaN as soon as one value is; here, and in DuckDB, NaN is above all others.
- Of equals bottleneck's argmin and argmax take the youngest; here it is the first.
- A quantile is a value that is there (SQL's quantile_disc, Polars' "equiprobable"); pandas goes between two.
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


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", FULL)
def test_two_columns_in_pandas(name, closed):
    """Both count the pairs in which neither is missing."""
    df = frame(name)
    aggs = {"cov": sw.covariance("x", "y"), "corr": sw.correlation("x", "y"), "n": sw.count("x"), "v": sw.var("x")}
    both = df.assign(x=df["x"].where(df["y"].notna()), y=df["y"].where(df["x"].notna()))
    ours = sw.rolling(both, time="t", windows=["20s", sw.rows(7)], aggs=aggs, ties="arrival", closed=closed)
    indexed = both.set_index("t")
    for window, theirs in (
        ("20s", (indexed["x"].rolling("20s", min_periods=2, closed=closed), indexed["y"])),
        ("7r", (both["x"].rolling(7, min_periods=2, closed=closed), both["y"])),
    ):
        close(ours[f"cov_{window}"], theirs[0].cov(theirs[1]), f"covariance, {window}")
        several = (ours[f"n_{window}"] > 2).to_numpy()
        close(ours[f"corr_{window}"][several], theirs[0].corr(theirs[1])[several], f"correlation, {window}")


DUCKDB = {
    "median": (sw.median("x"), "median(x)"),
    "quantile": (sw.quantile("x", q=0.3), "quantile_disc(x, 0.3)"),
    "distinct": (sw.collect_distinct("s"), "list(distinct s order by s) filter (s is not null)"),
    "top": (sw.top_k("i", k=2), "max(i, 2)"),
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
        ("range between interval '19.999999' second preceding and current row", "20s", "right"),
        ("range between interval 20 second preceding and interval '0.000001' second preceding", "20s", "left"),
        ("range between interval '19.999999' second preceding and interval '0.000001' second preceding", "20s", "neither"),
        ("rows between 6 preceding and current row", sw.rows(7), "right"),
        ("rows between 7 preceding and 1 preceding", sw.rows(7), "left"),
    ],
    ids=["range", "range right", "range left", "range neither", "rows", "rows left"],
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
        elif agg == "distinct":
            assert [sorted(x) for x in mine.to_pylist()] == [sorted(x or []) for x in other.to_pylist()], agg
        elif agg in ("list", "top"):
            assert mine.to_pylist() == [x or [] for x in other.to_pylist()], agg
        else:
            assert mine.to_pylist() == other.to_pylist(), agg


def test_exclude_current_is_sqls():
    """EXCLUDE CURRENT ROW leaves out the row itself, and its peers stay."""
    duckdb = pytest.importorskip("duckdb")
    table = pa.Table.from_pandas(frame("ties", sort=False))
    connection = duckdb.connect()
    connection.register("d", table)
    for over, window, closed in (
        ("t range between interval 2 second preceding and current row", "2s", "both"),
        ("t, row rows between 6 preceding and current row", sw.rows(7), "right"),
    ):
        text = f"list(row order by t, row) over (partition by k order by {over} exclude current row)"
        theirs = connection.sql(f"select {text} as seen from d order by row").to_arrow_table()
        asked = dict(time="t", by="k", windows={"w": window}, aggs={"seen": sw.collect("row")}, closed=closed)
        ours = sw.rolling(table, **asked, exclude_current=True)
        assert ours["seen_w"].to_pylist() == [x or [] for x in theirs["seen"].to_pylist()]


def test_two_columns_in_polars():
    df = frame("many").dropna()
    ours = sw.rolling(pl.from_pandas(df), time="t", windows=[sw.rows(7)], aggs={"c": sw.covariance("x", "y")})
    theirs = pl.from_pandas(df).select(pl.rolling_cov("x", "y", window_size=7, min_samples=2)).to_series()
    close(ours["c_7r"].fill_null(float("nan")), theirs.fill_null(float("nan")), "Polars rolling_cov")


@pytest.mark.parametrize("closed", CLOSED)
def test_polars_with_nan_and_infinities(closed):
    """NaN is a value there too and leaves no trace; only their min takes it for the least."""
    rng = np.random.default_rng(7)
    n = 300
    x = np.where(rng.random(n) < 0.05, np.nan, np.round(rng.normal(size=n) * 10, 1))
    x[rng.random(n) < 0.02] = np.inf
    df = pl.DataFrame({"t": np.sort(rng.integers(0, 200, n)), "x": pl.Series(x)})
    df = df.with_columns(x=pl.when(pl.Series(rng.random(n) < 0.9)).then(pl.col("x")))
    aggs = {name: getattr(sw, name)("x") for name in ("sum", "mean", "std", "var", "max", "median", "min")}
    aggs |= {"q": sw.quantile("x", q=0.3), "nan": sw.max("x")}
    ours = sw.rolling(df, time="t", windows={"w": 9}, aggs=aggs, closed=closed)
    rule = dict(window_size="9i", closed="none" if closed == "neither" else closed)
    for agg in ("sum", "mean", "std", "var", "max", "median", "min"):
        mine, theirs = ours[f"{agg}_w"], df.select(getattr(pl.col("x"), f"rolling_{agg}_by")("t", **rule)).to_series()
        if agg == "sum":
            mine, theirs = mine.fill_null(0.0), theirs.fill_null(0.0)
        kept = ~ours["nan_w"].is_nan().fill_null(False) if agg == "min" else pl.Series([True] * n)
        assert agg != "min" or (theirs.is_nan().fill_null(False) == ~kept).all()
        close(mine.filter(kept), theirs.filter(kept), agg)
    theirs = df.select(pl.col("x").rolling_quantile_by("t", quantile=0.3, interpolation="equiprobable", **rule)).to_series()
    close(ours["q_w"], theirs, "quantile")


def test_the_rest_of_polars_and_bottleneck():
    """What goes by rows: medians, quantiles and correlations of Polars; arguments of bottleneck, as rows back."""
    bottleneck = pytest.importorskip("bottleneck")
    df = frame("many").dropna().assign(row=lambda found: np.arange(len(found)))
    df["x"] += np.random.default_rng(8).permutation(len(df)) * 1e-6  # no equals
    aggs = {"m": sw.median("x"), "q": sw.quantile("x", q=0.7), "c": sw.correlation("x", "y")}
    aggs |= {"low": sw.argmin("x", "row"), "high": sw.argmax("x", "row")}
    ours = sw.rolling(df, time="t", windows={"w": sw.rows(7)}, aggs=aggs)
    data = pl.from_pandas(df)
    theirs = data.select(
        m=pl.col("x").rolling_median(7, min_samples=1),
        q=pl.col("x").rolling_quantile(0.7, interpolation="equiprobable", window_size=7, min_samples=1),
        c=pl.rolling_corr("x", "y", window_size=7, min_samples=3),
    )
    for agg in ("m", "q"):
        close(ours[f"{agg}_w"], theirs[agg], agg)
    close(ours["c_w"][2:], theirs["c"][2:], "correlation")
    for agg, name in (("low", "argmin"), ("high", "argmax")):
        back = getattr(bottleneck, f"move_{name}")(df["x"].to_numpy(), 7, min_count=1)
        close(df["row"] - ours[f"{agg}_w"], back, name)
