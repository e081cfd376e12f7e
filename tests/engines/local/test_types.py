"""What type a result has is decided by the columns' types, never by the rows; and nothing is lost on the way."""

import decimal
import time
import uuid
from concurrent.futures import Future
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.engines.local import frames, threads

D = decimal.Decimal
COLUMNS = {
    "decimal": pa.array([D("1.25"), D("100.50"), None, D("3")], pa.decimal128(10, 2)),
    "wide": pa.array([10**37, 2, None, 3], pa.decimal128(38, 0)),
    "ns": pa.array([1, 2, None, 1001], pa.timestamp("ns", "UTC")),
    "duration_ns": pa.array([1, 2, None, 1001], pa.duration("ns")),
    "duration_s": pa.array([1, 2, None, 4], pa.duration("s")),
    "date": pa.array([date(2024, 1, 1), date(2024, 1, 3), None, date(2024, 1, 2)]),
    "us": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 3), None, datetime(2024, 1, 2)], pa.timestamp("us")),
    "text": pa.array(["b", "a", None, "c"]),
    "bytes": pa.array([b"b", b"a", None, b"c"], pa.large_binary()),
    "int32": pa.array([1, 2, None, 3], pa.int32()),
    "float32": pa.array([1.5, 2.0, None, 3.0], pa.float32()),
    "flag": pa.array([True, False, None, True]),
    "list": pa.array([[1], [2, 3], None, []], pa.list_(pa.int16())),
}
OPERATORS = {
    "collect": sw.collect,
    "collect_distinct": sw.collect_distinct,
    "top_k": lambda x: sw.top_k(x, k=2),
    "median": sw.median,
    "sum": sw.sum,
    "mean": sw.mean,
    "spread": sw.spread,
    "sum exact": lambda x: sw.sum(x, exact=True),
    "mean exact": lambda x: sw.mean(x, exact=True),
    "product": sw.product,
    "m4": sw.m4,
    "correlation": lambda x: sw.correlation(x, x),
    "concat": sw.concat,
    "approx_count": lambda x: sw.approx_count(x, item="a"),
}
INTERPRETED = ("decimal", "wide", "ns", "duration_ns", "duration_s", "date", "us", "text", "bytes", "list")


@pytest.mark.parametrize("name", list(COLUMNS))
def test_an_empty_frame_has_the_types_of_a_full_one(name):
    table = pa.table({"t": [1, 2, 3, 4], "x": COLUMNS[name]})
    chosen = OPERATORS if name in INTERPRETED else ("collect", "collect_distinct", "top_k", "median")
    given = 0
    for operator in chosen:
        asked = dict(time="t", windows={"w": sw.time(10)}, aggs={"r": OPERATORS[operator]("x")})
        try:
            full = sw.rolling(table, **asked)
        except sw.SlidewiseError:
            continue  # no such operator on this type: said in test_errors
        given += 1
        kind = full.schema.field("r_w").type
        full.validate(full=True)
        for part in (table.slice(0, 0), table.slice(2, 1), table.slice(0, 1)):
            assert sw.rolling(part, **asked).schema.field("r_w").type == kind, operator
        if operator in ("collect", "collect_distinct", "top_k"):
            assert kind == pa.list_(table.schema.field("x").type)
        live = sw.Live(**asked)
        live.push(table)
        assert live.results().schema.field("r_w").type == kind, operator
        assert live.query() == {"r_w": full.column("r_w")[3].as_py()}
    assert given >= 1


def results(name, *operators):
    table = pa.table({"t": [1, 2, 3, 4], "x": COLUMNS[name]})
    found = sw.rolling(table, time="t", windows={"w": sw.time(10)}, aggs={o: OPERATORS[o]("x") for o in operators})
    last = [found.column(f"{o}_w")[3] for o in operators]
    return [value.type for value in last], [
        value.value if pa.types.is_duration(value.type) else value.as_py() for value in last
    ]


def test_decimals_follow_the_columns_precision_and_scale():
    kinds, values = results("decimal", "sum", "mean", "median", "spread")
    assert kinds == [pa.decimal128(38, 2), pa.decimal128(14, 6), pa.decimal128(14, 6), pa.decimal128(11, 2)]
    assert values == [D("104.75"), D("34.916667"), D("3.000000"), D("99.25")]
    exact, same = (results("decimal", f"sum{exact}", f"mean{exact}") for exact in (" exact", ""))
    assert exact == same
    assert results("decimal", "product") == ([pa.float64()], [376.875]), "of as many digits as there are, it is rounded once"
    assert results("wide", "sum", "spread")[1] == [10**37 + 5, 10**37 - 2], "all 38 digits"


def test_a_column_of_nulls_goes_with_everything():
    table = pa.table({"t": [1, 2], "x": pa.nulls(2)})
    found = sw.rolling(table, time="t", windows={"w": 5}, aggs={o.replace(" ", "_"): make("x") for o, make in OPERATORS.items()})
    assert found.num_rows == 2


def test_nanoseconds_are_kept():
    for name in ("duration_ns", "ns"):
        operators = ("spread", "sum", "mean", "median") if name == "duration_ns" else ("spread",)
        kinds, values = results(name, *operators)
        assert set(kinds) == {pa.duration("ns")} and values == [1000, 1004, 335, 2][: len(operators)]
    assert results("duration_s", "sum", "mean") == ([pa.duration("us")] * 2, [7_000_000, 2_333_333])
    frame = pd.DataFrame({"t": [1, 2], "x": pd.to_timedelta([1, 4], unit="ns")})
    found = sw.rolling(frame, time="t", windows={"w": 10}, aggs={"m": sw.mean("x"), "all": sw.collect("x")})
    assert found["m_w"].tolist() == [pd.Timedelta(1, "ns"), pd.Timedelta(2, "ns")], "2.5 to the even one"
    assert found["all_w"][1].tolist() == [1, 4]


LEVELS = ["low", "middle", "high"]  # by text: high, low, middle
CATEGORIES = {
    "pandas": lambda: pd.DataFrame({"x": pd.Categorical(["low", "high", None, "middle"], LEVELS, ordered=True)}),
    "polars": lambda: pl.DataFrame({"x": pl.Series(["low", "high", None, "middle"], dtype=pl.Enum(LEVELS))}),
    "arrow": lambda: pa.table(
        {"x": pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 1], pa.int8()), pa.array(LEVELS), ordered=True)}
    ),
}


def as_list(frame, name):
    found = frame[name] if not isinstance(frame, pa.Table) else frame.column(name)
    values = found.to_pylist() if isinstance(frame, pa.Table) else found.to_list()
    return [None if value is None or value != value else value for value in values]


@pytest.mark.parametrize("kind", list(CATEGORIES))
def test_ordered_categories_go_by_their_order_and_stay_categories(kind):
    frame = CATEGORIES[kind]()
    if kind == "pandas":
        frame = frame.assign(t=[1, 2, 3, 4], n=[1, 2, 3, 4])
    elif kind == "polars":
        frame = frame.with_columns(t=pl.Series([1, 2, 3, 4]), n=pl.Series([1, 2, 3, 4]))
    else:
        frame = frame.append_column("t", [[1, 2, 3, 4]]).append_column("n", [[1, 2, 3, 4]])
    aggs = {
        "max": sw.max("x"),
        "min": sw.min("x"),
        "at": sw.argmax("x", "n"),
        "n": sw.max_count("x"),
        "last": sw.last("x"),
    }
    found = sw.rolling(frame, time="t", windows={"w": sw.time(3)}, aggs=aggs)
    assert as_list(found, "max_w") == ["low", "high", "high", "high"]
    assert as_list(found, "min_w") == ["low", "low", "low", "middle"]
    assert as_list(found, "at_w") == [1, 2, 2, 2] and as_list(found, "n_w") == [1, 1, 1, 1]
    assert as_list(found, "last_w") == ["low", "high", "high", "middle"]
    for name in ("max_w", "min_w", "last_w"):
        if kind == "arrow":
            assert found.schema.field(name).type == found.schema.field("x").type
        else:
            assert found[name].dtype == found["x"].dtype
    with pytest.raises(sw.InputTypeError, match="their own order"):
        sw.rolling(frame, time="t", windows=[3], aggs={"x": sw.top_k("x", k=1)})
    with pytest.raises(sw.InputTypeError, match="ordered categories"):
        sw.Live(time="t", windows=[3], aggs={"x": sw.max("x")}).push(frame)


def test_order_goes_by_categories():
    frame = pd.DataFrame(
        {"t": 1, "x": pd.Categorical(["middle", "high", None, "low"], LEVELS, ordered=True), "n": [1, 2, 3, 4]}
    )
    found = sw.rolling(frame, time="t", windows={"w": 1}, aggs={"all": sw.collect("n")}, order="x")
    assert found["all_w"][0].tolist() == [3, 4, 1, 2], "nulls first"
    table = pa.concat_tables(
        [pa.table({"t": [1], "x": pa.DictionaryArray.from_arrays([0], [v], ordered=True)}) for v in "ab"]
    )
    with pytest.raises(sw.InputError, match="chunk to chunk"):
        sw.rolling(table, time="t", windows=[1], aggs={"x": sw.max("x")})


def test_boundaries_have_one_type_whatever_the_rows():
    for rows in (0, 1):
        table = pa.table({"t": pa.array([3] * rows, pa.timestamp("s")), "x": pa.array([1] * rows, pa.int64())})
        found = sw.rolling(
            table, time="t", windows={"w": sw.time("2s", slide="500ms")}, aggs={"n": sw.count()}, emit="slide"
        )
        assert found.schema.field("t").type == pa.timestamp("ms")


def test_columns_that_have_no_arrow_type_and_sparse_ones():
    frame = pd.DataFrame({"t": [1, 2], "x": [1j, 2j], "s": pd.arrays.SparseArray([0, 5])})
    with pytest.raises(sw.InputTypeError, match="'x' of type complex128"):
        sw.rolling(frame, time="t", windows=[3], aggs={"n": sw.count("x")})
    frame = frame.assign(k=pd.cut([1, 5], [0, 3, 6]))
    with pytest.raises(sw.InputTypeError, match="'k' has categories of type interval"):
        sw.rolling(frame, time="t", by="k", windows=[3], aggs={"n": sw.count()})
    with pytest.raises(sw.InputTypeError, match="'x' of type Int128"):
        sw.rolling(pl.DataFrame({"t": [1], "x": pl.Series([1], dtype=pl.Int128)}), time="t", windows=[3], aggs={"n": sw.sum("x")})
    found = sw.rolling(frame, time="t", windows=[3], aggs={"n": sw.sum("s"), "m": sw.max("s")})
    assert found["n_3"].tolist() == [0, 5] and found["m_3"].tolist() == [0, 5]


def test_a_boundary_beyond_the_time_columns_type():
    table = pa.table({"t": pa.array([1, 120], pa.int8())})
    with pytest.raises(sw.InputError, match=r"'t', int8.*cast the column to int64"):
        sw.rolling(table, time="t", windows=[sw.tumbling(100)], aggs={"n": sw.count()}, emit="slide")


def test_more_rows_than_there_can_be():
    table = pa.table({"t": [1, 2, 3]})
    windows = {"n": sw.rows(2**70), "s": sw.rows(2, slide=2**70), "o": sw.rows(2**63, offset=2**63)}
    found = sw.rolling(table, time="t", windows=windows, aggs={"c": sw.count()})
    assert [found.column(f"c_{name}").to_pylist() for name in windows] == [[1, 2, 3], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("make", [pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_as_of_with_decimal_keys_of_different_scales(make):
    key = {1: D("1.5"), 2: D("1.50")}
    data, queries = make([{"t": 1, "k": key[1], "x": 7}]), make([{"t": 5, "k": key[2]}])
    found = sw.as_of(queries, data, by="k", time="t", windows={"w": sw.time(10)}, aggs={"x": sw.sum("x")})
    assert as_list(found, "x_w") == [7]


def test_as_of_with_query_columns_of_one_name():
    asked = dict(time="t", windows=[10], aggs={"x": sw.sum("x")})
    for queries, data in (
        (pd.DataFrame([[1, 1]], columns=["t", "t"]), pd.DataFrame({"t": [0], "x": [1]})),
        (pa.table([[1], [1]], names=["t", "t"]), pa.table({"t": [0], "x": [1]})),
    ):
        with pytest.raises(sw.InputError, match="2 columns named 't'"):
            sw.as_of(queries, data, **asked)


@pytest.mark.parametrize("kind", [pa.time32("ms"), pa.time64("ns")], ids=str)
def test_times_of_day_have_extremes(kind):
    table = pa.table({"t": [1, 2], "x": pa.array([7, 3], kind)})
    found = sw.rolling(table, time="t", windows={"w": 10}, aggs={"least": sw.min("x")})
    assert found.column("least_w").equals(pa.chunked_array([pa.array([7, 3], kind)]))


def test_a_sum_of_durations_beyond_int64_is_an_error():
    table = pa.table({"t": [1, 2], "x": pa.array([2**62, 2**62], pa.duration("ns"))})
    with pytest.raises(sw.AggregateOverflowError, match="left the range"):
        sw.rolling(table, time="t", windows=[10], aggs={"x": sw.sum("x")})


def test_half_floats_keep_their_width():
    x = np.array([1.5, np.nan, 2.5], np.float16)
    aggs = {"max": sw.max("x"), "last": sw.last("x"), "sum": sw.sum("x")}
    for table, kinds in (
        (pd.DataFrame({"t": [1, 2, 3], "x": x}), ["float16", "float16", "float64"]),
        (pa.table({"t": [1, 2, 3], "x": x}), ["halffloat", "halffloat", "double"]),
    ):
        found = sw.rolling(table, time="t", windows={"w": 1}, aggs=aggs)
        columns = [found[f"{name}_w"] for name in aggs]
        assert [str(c.dtype if isinstance(table, pd.DataFrame) else c.type) for c in columns] == kinds
        assert repr([float(v) for v in np.array(columns[0])]) == "[1.5, nan, 2.5]"


KEYS_OF_ODD_TYPES = {
    "period": pd.Series(pd.period_range("2024-01", periods=3, freq="M")).take([0, 1, 0]).array,
    "uuid": [uuid.UUID(int=7), uuid.UUID(int=8), uuid.UUID(int=7)],
    "decimal32": pd.array(["1.5", "2.5", "1.5"], dtype=pd.ArrowDtype(pa.string())).astype(pd.ArrowDtype(pa.decimal32(5, 1))),
}


@pytest.mark.parametrize("name", KEYS_OF_ODD_TYPES)
def test_keys_by_what_their_type_stores(name):
    frame = pd.DataFrame({"t": [1, 2, 3], "k": KEYS_OF_ODD_TYPES[name], "x": [1, 2, 4]})
    assert sw.rolling(frame, time="t", by="k", windows=9, aggs={"s": sw.sum("x")})["s_9"].tolist() == [1, 2, 5]


@pytest.mark.parametrize(("on_write", "early"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_joined_pandas_frame_is_the_callers_own(on_write, early, monkeypatch):
    """Index, types and names as they were, a name that is there twice too; writing into it changes nothing else. early: columns
    are copied while the plan is made, as those of larger frames are."""
    copied = copies_of(monkeypatch, 0 if early else 1 << 18)
    with pd.option_context("mode.copy_on_write", on_write):
        frame = pd.DataFrame([[1, "a", 2.0, 7], [2, "b", 3.0, 8]], columns=["t", "k", "x", "k"], index=[5, 5])
        frame = frame.astype({"x": "Float64"})
        frame["when"] = pd.to_datetime([1, 2], utc=True)
        frame["any"] = pd.Series([datetime(2024, 1, 1)] * 2, dtype=object, index=frame.index)
        before = frame.copy()
        out = sw.rolling(frame, time="t", windows=9, aggs={"s": sw.sum("x"), "n": sw.count()})
        assert out.columns.tolist() == [*frame.columns, "s_9", "n_9"] and out.index.tolist() == [5, 5]
        pd.testing.assert_frame_equal(out.iloc[:, :6], frame)
        out.iloc[0, 0] = 99
        out.iloc[0, 2] = -1.0
        pd.testing.assert_frame_equal(frame, before)
        again = sw.rolling(frame, time="t", windows=9, aggs={"s": sw.sum("x")})
        frame.iloc[0, 0] = 77
        assert again["t"].tolist() == [1, 2]
        assert len(copied) == (12 if early and not on_write else 0)


def copies_of(monkeypatch, least: int) -> list[Future]:
    """What is copied while plans are made, for frames of so many rows."""
    copied: list[Future] = []

    class Pool:
        def submit(self, copy):
            copied.append(threads.pool_of(2).submit(copy))
            return copied[-1]

    monkeypatch.setattr(frames, "thread_count", lambda: 2)
    monkeypatch.setattr(frames, "LARGE", least)
    monkeypatch.setattr(frames, "pool_of", lambda count: Pool())
    return copied


def test_early_copies_are_those_that_are_given_back(monkeypatch):
    frame = pd.DataFrame({"t": [1, 2], "x": [2.0, 3.0]})
    ask = lambda data=frame, **more: sw.rolling(data, **{"time": "t", "windows": 9, "aggs": {"s": sw.sum("x")}} | more)
    copied = copies_of(monkeypatch, 2)
    out = ask()
    assert len(copied) == 2
    assert np.shares_memory(out["x"], copied[1].result()) and not np.shares_memory(out["x"], frame["x"])
    ask(emit="latest")
    sw.as_of(frame, frame, time="t", windows=9, aggs={"s": sw.sum("x")})
    sw.explain(frame, time="t", windows=9, aggs={"s": sw.sum("x")})
    ask(frame[:1])
    monkeypatch.setattr(frames, "COPIED", 3)
    ask()
    monkeypatch.setattr(frames, "COPIED", 4)
    monkeypatch.setattr(frames, "thread_count", lambda: 1)
    ask()
    assert len(copied) == 2


def test_after_an_error_nobody_reads_the_callers_memory(monkeypatch):
    """A call that is refused ends when no copy runs any more: the frame may lie in memory that is given back then."""
    copied = copies_of(monkeypatch, 2)
    slow = pd.Series.copy
    monkeypatch.setattr(pd.Series, "copy", lambda self, *a, **k: (time.sleep(0.05), slow(self, *a, **k))[1])
    frame = pd.DataFrame({"t": pd.to_datetime([1, None]), "x": [2.0, 3.0]})
    with pytest.raises(sw.InputError):
        sw.rolling(frame, time="t", windows="9s", aggs={"s": sw.sum("x")})
    assert len(copied) == 2 and all(copy.done() for copy in copied)


LABELS = {
    "int8": pa.array([1, None, 2], pa.int8()),
    "uint64": pa.array([2**63, None, 2], pa.uint64()),
    "timestamp": pa.array([1, None, 2], pa.timestamp("ms", "Europe/Berlin")),
    "decimal": pa.array([decimal.Decimal("1.1"), None, decimal.Decimal("22.2")], pa.decimal128(5, 1)),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_a_model_has_the_types_of_its_columns_whatever_the_rows(labels):
    table = pa.table({"t": [1, 2, 3], "x": labels, "y": ["p", "q", "p"]})
    kind = pa.list_(pa.struct([("label", labels.type), ("feature", pa.string()), ("count", pa.int64())]))
    for rows in (table, table.slice(0, 0), table.slice(1, 1)):
        found = sw.rolling(rows, time="t", windows={"w": 9}, aggs={"m": sw.naive_bayes("x", "y")})["m_w"]
        assert found.type == kind
        wanted = {label: 1 for label in rows["x"].to_pylist() if label is not None}
        assert not len(rows) or {entry["label"]: entry["count"] for entry in found.to_pylist()[-1]} == wanted
