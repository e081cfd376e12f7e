"""pandas, Polars and Arrow: the same answers, the caller's own kind of frame, and types a user expects."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dateutil.tz import tzoffset

import slidewise as sw

ZONE = "Europe/Zurich"


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "ts": pd.date_range("2024-03-30 22:00", periods=6, freq="1h", tz=ZONE),
            "k": ["a", "b", "a", "a", "b", "a"],
            "x": [1.5, None, 2.0, 4.0, 5.0, 6.0],
            "n": [1, 2, 3, 4, 5, 6],
            "i1": np.arange(6, dtype=np.int8),
            "f4": np.arange(6, dtype=np.float32),
            "flag": [True, False, True, True, False, False],
            "s": ["p", "q", None, "r", "s", "t"],
            "day": [datetime.date(2024, 1, i + 1) for i in range(6)],
            "price": [decimal.Decimal("1.10")] * 6,
        },
        index=list("uvwxyz"),
    )


AGGS = {
    "total": sw.sum("x"),
    "peak": sw.max("n"),
    "small": sw.min("i1"),
    "small_sum": sw.sum("i1"),
    "real": sw.max("f4"),
    "who": sw.argmax("x", "s"),
    "when": sw.argmax("x", "ts"),
    "late": sw.max("ts"),
    "c": sw.count(),
    "cs": sw.count("s"),
    "yes": sw.sum("flag"),
    "any": sw.max("flag"),
    "day": sw.first("day"),
    "price": sw.max("price"),
    "paid": sw.sum("price"),
}


def test_the_three_kinds_agree(df):
    arguments = dict(time="ts", by="k", windows=["2h", sw.rows(2)], aggs=AGGS, closed="both")
    table = pa.Table.from_pandas(df, preserve_index=False)
    of_pandas = sw.rolling(df, **arguments)
    of_polars = sw.rolling(pl.from_arrow(table), **arguments)
    of_arrow = sw.rolling(table, **arguments)
    assert (
        isinstance(of_pandas, pd.DataFrame) and isinstance(of_polars, pl.DataFrame) and isinstance(of_arrow, pa.Table)
    )
    names = of_arrow.column_names
    assert of_polars.columns == names and of_pandas.columns.tolist() == names
    assert of_polars.to_dicts() == of_arrow.to_pylist()
    assert of_pandas.index.tolist() == list("uvwxyz")
    for name in ("total_2h", "c_2h", "paid_2r", "late_2r"):
        assert pa.Array.from_pandas(of_pandas[name]).to_pylist() == of_arrow.column(name).to_pylist()


def test_result_types(df):
    arguments = dict(time="ts", by="k", windows="2h", aggs=AGGS)
    full, gaps = sw.rolling(df, **arguments), sw.rolling(df, **arguments, closed="left")
    expected = {
        "total": "float64",
        "peak": "int64",
        "small": "int8",
        "small_sum": "int64",
        "real": "float32",
        "who": "object",
        "when": f"datetime64[ns, {ZONE}]",
        "late": f"datetime64[ns, {ZONE}]",
        "c": "int64",
        "cs": "int64",
        "yes": "int64",
        "any": "bool",
        "day": "object",
        "price": "object",
        "paid": "object",
    }
    assert {name: str(full[f"{name}_2h"].dtype) for name in AGGS} == expected
    nullable = {"peak": "Int64", "small": "Int8", "small_sum": "Int64", "yes": "Int64", "any": "boolean"}
    assert {name: str(gaps[f"{name}_2h"].dtype) for name in AGGS} == {**expected, **nullable}
    of_arrow = sw.rolling(pa.Table.from_pandas(df), **arguments).schema
    assert str(of_arrow.field("when_2h").type) == f"timestamp[ns, tz={ZONE}]"
    assert str(of_arrow.field("small_2h").type) == "int8" and str(of_arrow.field("price_2h").type).startswith(
        "decimal128"
    )


def test_times_and_durations():
    """The spread of times is a duration; durations have sums, means and medians; what keeps its input keeps unit and zone."""
    kinds = [pa.timestamp("ns", ZONE), pa.timestamp("ms"), pa.date32(), pa.duration("s")]
    for kind in kinds:
        ticks = pa.array([10, 40, 20], pa.int32() if kind == pa.date32() else pa.int64())
        table = pa.table({"t": [0, 1, 2], "x": [1.0, 3.0, 2.0], "v": ticks.view(kind)})
        aggs = {n: getattr(sw, n)("v") for n in ("min", "max", "first", "last")} | {"arg": sw.argmax("x", "v")}
        out = sw.rolling(table, time="t", windows={"w": 9}, aggs=aggs)
        assert {out.schema.field(f"{n}_w").type for n in aggs} == {kind}
        assert out.column("arg_w")[2] == table.column("v")[1]
    aggs = {n: getattr(sw, n)("v") for n in ("sum", "mean", "median", "spread")}
    out = sw.rolling(table, time="t", windows={"w": 9}, aggs=aggs).to_pylist()[-1]
    assert [round(out[f"{n}_w"].total_seconds(), 3) for n in aggs] == [70, 23.333, 20, 30]
    days = pa.table({"t": [0, 1], "v": pa.array([3, 8], pa.int32()).view(pa.date32())})
    assert sw.rolling(days, time="t", windows={"w": 9}, aggs={"s": sw.spread("v")}).column("s_w").to_pylist()[
        1
    ] == datetime.timedelta(5)


def test_nullable_arrow_backed_and_categorical_pandas_columns(df):
    df = df.assign(
        n=df.n.astype("Int64"), x=df.x.astype("double[pyarrow]"), k=df.k.astype("category"), s=df.s.astype("category")
    )
    out = sw.rolling(
        df, time="ts", by="k", windows="2h", aggs={"peak": sw.max("n"), "total": sw.sum("x"), "who": sw.first("s")}
    )
    assert [str(out[c].dtype) for c in ("peak_2h", "total_2h", "who_2h")] == ["Int64", "double[pyarrow]", "category"]
    latest = sw.rolling(df, time="ts", by="k", windows="2h", aggs={"peak": sw.max("n")}, emit="latest")
    assert str(latest["k"].dtype) == "category" and latest["k"].tolist() == ["a", "b"]


def test_the_callers_frame_is_left_alone(df):
    before = df.copy()
    out = sw.rolling(df, time="ts", windows="2h", aggs={"total": sw.sum("x")})
    out.loc["u", "x"] = 99.0
    out.loc["u", "total_2h"] = 99.0
    pd.testing.assert_frame_equal(df, before)


def test_time_in_the_index(df):
    out = sw.rolling(df.set_index("ts"), time="ts", by="k", windows="2h", aggs={"total": sw.sum("x")})
    assert out["total_2h"].tolist()[:1] == [1.5] and out.index.name == "ts"


def test_units_are_mixed_exactly():
    """A window finer than the column: 36 hours on dates, 500 microseconds on milliseconds."""
    days = pa.table({"t": [datetime.date(2024, 1, d) for d in (1, 2, 3, 5)], "x": [1.0, 2.0, 4.0, 8.0]})
    assert sw.rolling(days, time="t", windows="36h", aggs={"s": sw.sum("x")}).column("s_36h").to_pylist() == [
        1,
        3,
        6,
        8,
    ]
    ms = pa.table({"t": pa.array([0, 1, 2], pa.timestamp("ms")), "x": [1.0, 2.0, 4.0]})
    assert sw.rolling(ms, time="t", windows="1500us", aggs={"s": sw.sum("x")}).column("s_1500us").to_pylist() == [
        1,
        3,
        6,
    ]
    slid = sw.rolling(ms, time="t", windows=sw.time("1500us", slide="500us"), aggs={"s": sw.sum("x")}, emit="slide")
    assert str(slid.schema.field("t").type) == "timestamp[us]"


def test_a_day_is_24_hours_and_boundaries_are_utc_unless_said(df):
    """The night of 31 March 2024 has 23 hours in Zurich: "1d" does not care."""
    out = sw.rolling(df, time="ts", windows=sw.tumbling("1d"), aggs={"c": sw.count()}, emit="slide")
    assert out["ts"].tolist() == [
        pd.Timestamp("2024-03-31 00:00", tz="UTC"),
        pd.Timestamp("2024-04-01 00:00", tz="UTC"),
    ]
    moved = sw.rolling(
        df, time="ts", windows=sw.tumbling("1d"), aggs={"c": sw.count()}, emit="slide", origin="2024-03-30 12:00"
    )
    assert moved["ts"].iloc[0] == pd.Timestamp("2024-03-31 12:00", tz=ZONE) + pd.Timedelta("1h"), (
        "24 hours after noon are 13 o'clock"
    )


@pytest.mark.parametrize(
    "zone",
    [datetime.timezone(datetime.timedelta(hours=2)), datetime.timezone(-datetime.timedelta(minutes=210)), tzoffset("x", 60)],
    ids=str,
)
def test_zones_without_a_name(zone):
    """What pandas makes of "2024-01-01T00:00:00+02:00": kept in every result, and local days are its own."""
    frame = pd.DataFrame({"t": pd.date_range("2024-01-01 20:00", periods=4, freq="3h", tz=zone), "x": [1, 2, 4, 8]})
    asked = dict(time="t", aggs={"s": sw.sum("x"), "last": sw.max("t")})
    for emit in ("event", "latest", "slide"):
        window = sw.time("6h", slide="3h", origin="2024-01-01 20:00")
        found = sw.rolling(frame, windows={"w": window}, emit=emit, **asked)
        assert found["s_w"].tolist()[:4] == {"event": [1, 3, 6, 12], "latest": [12], "slide": [1, 3, 6, 12]}[emit]
        assert found["t"].dtype == found["last_w"].dtype == frame["t"].dtype
    days = sw.rolling(frame, windows={"w": sw.tumbling("1d", calendar=True)}, closed="both", **asked)
    assert days["s_w"].tolist() == [1, 3, 4, 12]
    assert sw.as_of(frame[["t"]], frame, windows={"w": "6h"}, **asked)["last_w"].dtype == frame["t"].dtype


@pytest.mark.parametrize(
    "key",
    [
        [1.0, -0.0, 0.0, float("nan"), float("nan"), None],
        ["a", "b", None, "a", "", None],
        [b"x", b"y", b"x", None, b"", b"y"],
        [True, None, False, True, None, True],
        [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 1), None, datetime.date(2025, 1, 1), None],
        [10**15, 5, 10**15, None, 5, 5],
    ],
)
def test_keys_of_any_type(key):
    """Equal keys belong together; a null is a key, 0.0 is -0.0, NaN is NaN."""
    table = pa.table({"t": range(6), "k": pa.array(key, from_pandas=False), "x": range(6)})
    found = (
        sw.rolling(table, time="t", by="k", windows=sw.lifetime(), aggs={"c": sw.count()})
        .column("c_lifetime")
        .to_pylist()
    )
    same = [["nan" if k != k else k for k in key][: i + 1] for i in range(6)]
    assert found == [sum(k == keys[-1] and type(k) is type(keys[-1]) for k in keys) for keys in same]


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "i8", "u8"])
def test_whole_numbers_as_keys_up_to_the_ends_of_their_type(kind):
    """Keys near both ends: their distance leaves a small type."""
    ends = np.iinfo(kind)
    low, high = (ends.min, ends.max) if ends.bits == 8 else (ends.max - 100, ends.max)
    key = np.array([low, high, low, high, high], kind)
    table = pa.table({"t": range(5), "k": key})
    found = sw.rolling(table, time="t", by="k", windows=9, aggs={"c": sw.count()}).column("c_9").to_pylist()
    assert found == [1, 1, 2, 2, 3]


def test_unsorted_input_of_many_rows_comes_back_in_its_order():
    rng = np.random.default_rng(0)
    n = 70_000
    frame = pl.DataFrame({"t": rng.integers(0, 10**15, n), "k": rng.integers(0, 50, n), "x": rng.integers(0, 100, n)})
    out = sw.rolling(frame, time="t", by="k", windows=10**14, aggs={"s": sw.sum("x"), "c": sw.count()})
    assert out.select("t", "k", "x").equals(frame)
    order = np.lexsort((np.arange(n), frame["t"].to_numpy(), frame["k"].to_numpy()))
    again = sw.rolling(frame[order], time="t", by="k", windows=10**14, aggs={"s": sw.sum("x"), "c": sw.count()})
    assert out[order].equals(again)


def test_one_core_and_two_give_the_same_to_the_bit(monkeypatch):
    rng = np.random.default_rng(1)
    n = 100_000
    table = pa.table({"t": np.arange(n), "x": rng.normal(size=n)})
    monkeypatch.setenv("SLIDEWISE_THREADS", "1")
    one = sw.rolling(table, time="t", windows=1000, aggs={"s": sw.sum("x")})
    monkeypatch.setenv("SLIDEWISE_THREADS", "3")
    assert sw.rolling(table, time="t", windows=1000, aggs={"s": sw.sum("x")}).equals(one)


def test_bound_structs_in_every_call_and_kind_of_frame():
    """Members keep their types and their own where=; in Live and as_of too, and in snapshots."""
    table = pa.table({"t": range(4), "k": list("aaba"), "x": [1.0, None, 3.0, 4.0], "big": [False, True, True, True]})
    both = sw.struct(total=sw.sum("x"), n=sw.count("x", where="big"), who=sw.argmax("x", "k"))
    arguments = dict(time="t", by="k", windows=3, aggs={"both": both})
    expected = [
        {"total": 1.0, "n": 0, "who": "a"},
        {"total": 1.0, "n": 0, "who": "a"},
        {"total": 3.0, "n": 1, "who": "b"},
        {"total": 4.0, "n": 1, "who": "a"},
    ]
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        column = sw.rolling(frame, **arguments)["both_3"]
        assert (column.to_pylist() if isinstance(frame, pa.Table) else column.to_list()) == expected
        column = sw.as_of(frame, frame, **arguments, closed="right")["both_3"]
        assert (column.to_pylist() if isinstance(frame, pa.Table) else column.to_list()) == expected
    live = sw.Live(**arguments)
    live.push(table)
    again = sw.Live.from_bytes(live.to_bytes(), **arguments)
    assert live.query("a") == again.query("a") == {"both_3": expected[3]}
    assert live.query("nobody") == {"both_3": {"total": None, "n": 0, "who": None}}


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.binary_view(), pa.large_binary()], ids=str)
def test_text_of_every_arrow_kind(kind):
    words = ["b", None, "c", "a"] if "string" in str(kind) else [b"b", None, b"c", b"a"]
    table = pa.table({"t": range(4), "s": pa.array(words, kind)})
    aggs = {"low": sw.min("s"), "high": sw.max("s"), "first": sw.first("s"), "n": sw.count("s")}
    out = sw.rolling(table, time="t", by="s", windows={"w": 9}, aggs=aggs, order="s")
    assert out.schema.field("low_w").type == kind and out["low_w"].to_pylist() == words
    out = sw.rolling(table, time="t", by="s", windows={"w": 9}, aggs=aggs, emit="latest")
    assert out.schema.field("s").type == out.schema.field("first_w").type == kind and out["s"].to_pylist() == words
    out = sw.as_of(table, table, time="t", windows={"w": 9}, aggs=aggs, closed="right")
    assert out.schema.field("high_w").type == kind
    assert [out[f"{name}_w"].to_pylist()[-1] for name in aggs] == [words[3], words[2], words[0], 3]


def test_bound_structs():
    table = pa.table({"t": range(3), "x": [1.0, None, 3.0]})
    out = sw.rolling(table, time="t", windows=2, aggs={"both": sw.struct(total=sw.sum("x"), n=sw.count("x"))})
    assert out.column("both_2").to_pylist() == [{"total": 1.0, "n": 1}, {"total": 1.0, "n": 1}, {"total": 3.0, "n": 1}]


def test_only_the_packages_in_use_are_imported():
    code = (
        "import sys, pyarrow as pa, slidewise as sw; "
        "sw.explain(pa.table({'t': [1], 'x': [1.0]}), time='t', windows=2, aggs={'s': sw.sum('x')}); "
        "print([m for m in ('polars', 'pyspark') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], ["c", "a", "b"]], ids=["compiled", "interpreted"])
def test_a_result_with_names_is_a_struct(values):
    events = pa.table({"t": [1, 2, 3], "v": values})
    out = sw.rolling(events, time="t", windows={"all": 10}, aggs={"shape": sw.m4("v")})
    low, high = min(values), max(values)
    assert out["shape_all"][2].as_py() == {"min": low, "max": high, "first": values[0], "last": values[2]}
    live = sw.Live(windows={"all": 10}, aggs={"shape": sw.m4("v")}, time="t")
    live.push(events)
    assert live.query()["shape_all"] == out["shape_all"][2].as_py()


def test_every_nan_is_one_key_beside_a_null():
    """0.0 / 0.0 and a written NaN differ in a bit."""
    keys = np.array([np.nan, -np.nan, 0.0, np.nan])
    table = pa.table({"t": [1, 2, 3, 4], "k": pa.array(keys, mask=np.array([False, False, True, False])), "x": [1, 2, 4, 8]})
    out = sw.rolling(table, time="t", by="k", windows={"all": sw.lifetime()}, aggs={"s": sw.sum("x")})
    assert out["s_all"].to_pylist() == [1, 3, 4, 11]


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]"])
def test_nan_in_a_pandas_column_is_a_null_beside_others_too(kind):
    import pandas as pd

    x = pd.Series([0.0, 1.0, 2.0, 3.0], dtype=kind) / pd.Series([0.0, 1.0, 1.0, 1.0], dtype=kind)
    for missing in (None, 2):
        if missing is not None:
            x[missing] = pd.NA
        frame = pd.DataFrame({"t": [1, 2, 3, 4], "x": x})
        out = sw.rolling(frame, time="t", windows=sw.rows(4), aggs={"n": sw.count("x"), "s": sw.sum("x")})
        known = [0, 1, 2, 3] if missing is None else [0, 1, 1, 2]
        assert out["n_4r"].tolist() == known
        assert out["s_4r"].tolist()[1:] == ([1.0, 3.0, 6.0] if missing is None else [1.0, 1.0, 4.0])


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_sorted_rows_are_read_where_they_lie(kind, monkeypatch):
    """No copy on the way in, NaN as nulls included; and the caller's columns come back as they lie."""
    from slidewise.engines.local import run

    read = []
    monkeypatch.setattr(run, "Job", lambda *made, job=run.Job: read.append(made[3]) or job(*made))
    frame = pd.DataFrame({"t": [4, 5, 2, 3, 1], "k": [0, 0, 1, 1, 2], "x": [1.0, np.nan, 3.0, 4.0, 5.0]})
    frame = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": lambda f: pa.table(dict(f.items()))}[kind](frame)
    out = sw.rolling(frame, time="t", by="k", windows=2, aggs={"s": sw.sum("x")})
    arrays = {"arrow": lambda column: column.chunk(0), "polars": pl.Series.to_arrow, "pandas": pa.array}
    lies = lambda column: np.frombuffer(arrays[kind](column).buffers()[1])
    assert np.shares_memory(read[0][0], lies(frame["x"]))
    if kind != "pandas":  # pandas puts columns of one type together when a frame is put together
        assert np.shares_memory(lies(out["t"]), lies(frame["t"]))
