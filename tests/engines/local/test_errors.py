"""What is wrong is said, where it is, and what to do instead."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.algebra.narrow import fitting
from slidewise.engines.local import sweeps

TABLE = pa.table(
    {
        "ts": pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us")),
        "n": [1],
        "card": ["a"],
        "amount": [1.0],
        "text": ["x"],
        "total_1h": [0.0],
        "tags": [[1]],
    }
)
GOOD = dict(time="ts", by="card", windows=["24h"], aggs={"total": sw.sum("amount")})


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (dict(time="tss"), ValueError, "no column 'tss'.*Did you mean 'ts'"),
        (dict(by="cart"), ValueError, "no column 'cart'.*'card'"),
        (dict(aggs={"total": sw.sum("amuont")}), ValueError, "'amuont'.*'amount'"),
        (dict(aggs={"total": sw.sum("amount", where="flag")}), ValueError, "'flag'"),
        (dict(aggs={"total": sw.sum("amount", where="text")}), TypeError, "truth values"),
        (dict(order="when"), ValueError, "'when'"),
        (dict(windows=[sw.delta("prize", 1)]), ValueError, "'prize'"),
        (dict(windows=[sw.delta("text", 1)]), TypeError, "numbers or times"),
        (dict(windows=[sw.punctuation("text")]), TypeError, "truth values"),
        (dict(windows=["1h"]), ValueError, "'total_1h' is a column of the data already"),
        (dict(windows=["24h", "24h"]), ValueError, "given twice"),
        (
            dict(windows={"a_b": "1h", "b": "2h"}, aggs={"x": sw.sum("amount"), "x_a": sw.sum("amount")}),
            ValueError,
            "two results.*'x_a_b'",
        ),
        (dict(windows=[]), ValueError, "no windows"),
        (dict(windows=[None]), TypeError, "not a window"),
        (dict(windows=None), TypeError, "not a window"),
        (dict(windows=["1 fortnight"]), ValueError, "unknown unit 'fortnight'"),
        (dict(windows=["1mo"]), ValueError, "no fixed length"),
        (dict(windows=[10]), TypeError, 'holds times.*"10s"'),
        (dict(time="n", windows=["2h"]), TypeError, "holds numbers"),
        (dict(time="n", windows=[1.5]), TypeError, "integers"),
        (dict(time="text"), TypeError, "'text' is string"),
        (dict(by="tags"), TypeError, "take its fields apart"),
        (dict(by="ts"), ValueError, "both the time and a key"),
        (dict(by=3), TypeError, "by= takes names of columns, not 3"),
        (dict(order=b"ts"), TypeError, "order= takes names of columns, not"),
        (dict(aggs={}), ValueError, "no aggregates"),
        (dict(aggs=[sw.sum("amount")]), TypeError, "dict of names"),
        (dict(aggs={"total": sw.sum()}), ValueError, "not bound to a column"),
        (dict(aggs={"total": "sum"}), TypeError, "bound to columns"),
        (dict(closed="up"), ValueError, "'right', 'left', 'both', 'neither'"),
        (dict(ties="first"), ValueError, "'peers', 'arrival'"),
        (dict(emit="batch"), ValueError, "'event', 'slide', 'latest'"),
        (dict(prefer="speed"), ValueError, "'throughput'"),
        (dict(emit="slide"), ValueError, "needs boundaries"),
        (dict(emit="slide", windows=[sw.time("1h", slide="5m"), sw.rows(3, slide=2)]), ValueError, "separate calls"),
        (dict(emit="slide", windows=[sw.tumbling("2h")], exclude_current=True), ValueError, "no such row"),
        (dict(watermark="10m"), ValueError, "for streams"),
        (dict(speed=11), TypeError, "no argument speed="),
        (dict(aggs={"total": sw.sum("text")}), TypeError, "sum takes numbers, and the column 'text' is string"),
        (dict(aggs={"total": sw.histogram("text", edges=[0, 1])}), TypeError, "histogram takes numbers"),
        (dict(aggs={"total": sw.bit_or("text")}), TypeError, "bit_or takes whole numbers"),
        (dict(aggs={"total": sw.concat("ts")}), TypeError, "concat takes strings"),
        (dict(aggs={"total": sw.approx_distinct("tags")}), TypeError, "approx_distinct takes numbers, text"),
        (dict(windows=[sw.punctuation("n")]), TypeError, "truth values"),
        (dict(aggs={"total": sw.mean("ts")}), TypeError, "mean of the column 'ts'.*is no number.*spread"),
        (dict(aggs={"total": sw.std("ts")}), TypeError, "std of the column 'ts'.*cast the column to int64"),
    ],
)
def test_rolling(change, kind, words):
    with pytest.raises(kind, match=f"(?s){words}") as caught:
        sw.rolling(TABLE, **{**GOOD, **change})
    assert isinstance(caught.value, sw.SlidewiseError)
    with pytest.raises(kind, match=f"(?s){words.replace('no argument speed=', 'speed')}"):  # without rows, too
        sw.explain(TABLE.slice(0, 0), **{**GOOD, **change})


@pytest.mark.parametrize(
    "make",
    [
        lambda: sw.time("0s"),
        lambda: sw.time(-1),
        lambda: sw.time("-1h"),
        lambda: sw.time("1h", slide="0m"),
        lambda: sw.time("1h", offset="-5m"),
        lambda: sw.rows(0),
        lambda: sw.rows(-3),
        lambda: sw.rows(3, slide=0),
        lambda: sw.tumbling(0),
        lambda: sw.session("0s"),
        lambda: sw.delta("x", -1),
        lambda: sw.delta("x", 10**400),
        lambda: sw.time(float("nan")),
        lambda: sw.time(float("inf")),
        lambda: sw.time("36h", calendar=True),
        lambda: sw.time(np.timedelta64(1, "Y")),
        lambda: sw.time(np.timedelta64(10**12, "D")),
    ],
)
def test_lengths_that_cannot_be(make):
    with pytest.raises(sw.InputError, match=r"must be|calendar|no fixed length|does not fit"):
        make()


@pytest.mark.parametrize(
    "make", [lambda: sw.rows(2.5), lambda: sw.rows("3"), lambda: sw.time(None), lambda: sw.punctuation(3)]
)
def test_lengths_of_a_wrong_kind(make):
    with pytest.raises(sw.InputTypeError):
        make()


def test_a_slide_longer_than_the_range_is_allowed():
    """It samples: rows between two windows belong to none."""
    table = pa.table({"t": range(10), "x": [1.0] * 10})
    out = sw.rolling(table, time="t", windows=sw.time(2, slide=5), aggs={"n": sw.count()}, emit="slide")
    assert out.to_pylist() == [{"t": 0, "n_2_slide_5": 1}, {"t": 5, "n_2_slide_5": 2}, {"t": 10, "n_2_slide_5": 1}]


@pytest.mark.parametrize(
    ("times", "words"),
    [([1, None], "1 null.*row 1"), ([0.5, float("nan")], "nan in row 1"), ([float("inf"), 0.0], "inf in row 0")],
)
def test_a_time_that_is_none(times, words):
    with pytest.raises(sw.InputError, match=words):
        sw.rolling(pa.table({"t": times, "x": [1, 2]}), time="t", windows=1, aggs={"n": sw.count()})


def test_as_of():
    table = pa.table({"t": [1], "k": ["a"], "x": [1.0]})
    arguments = dict(time="t", by="k", windows=5, aggs={"s": sw.sum("x")})
    with pytest.raises(sw.InputError, match="no column 'k' in the queries"):
        sw.as_of(pa.table({"t": [1]}), table, **arguments)
    with pytest.raises(sw.InputTypeError, match="one kind"):
        sw.as_of(table.to_pandas(), table, **arguments)
    for key in ([1], 1, datetime.date(2024, 1, 1)):
        with pytest.raises(sw.InputTypeError, match="'k' of the queries"):
            sw.as_of(pa.table({"t": [1], "k": [key]}), table, **arguments)
    with pytest.raises(sw.InputError, match="already"):
        sw.as_of(pa.table({"t": [1], "k": ["a"], "s_5": [0]}), table, **arguments)
    with pytest.raises(sw.InputTypeError, match="query_by= takes names of columns, not 3"):
        sw.as_of(table, table, **arguments, query_by=3)


def test_what_is_no_frame():
    with pytest.raises(sw.InputTypeError, match=r"not builtins\.list"):
        sw.rolling([1, 2], **GOOD)


def test_integer_overflow_is_an_error_not_a_wrap():
    table = pa.table({"t": range(3), "x": pa.array([2**62, 2**62, 1], pa.int64())})
    with pytest.raises(sw.AggregateOverflowError):
        sw.rolling(table, time="t", windows=5, aggs={"s": sw.sum("x")})


@pytest.mark.parametrize(("x", "one_word"), [([3, None, -5, 2**60], True), ([-(2**62), 2**62, 2**62 - 1, 1], False)])
def test_sums_of_int64_are_kept_in_one_word_only_where_all_fit(x, one_word, monkeypatch):
    forms = []
    monkeypatch.setattr(sweeps, "fitting", lambda op, columns: forms.append((op, fitting(op, columns))) or forms[-1][1])
    table = pa.table({"t": range(4), "x": pa.array(x, pa.int64())})

    def sums(rows):
        asked = dict(time="t", windows={"w": sw.rows(rows)}, aggs={"s": sw.sum("x")}, algorithm="recalc")
        return sw.rolling(table, **asked).column("s_w").to_pylist()

    assert sums(2) == [sum(v or 0 for v in x[max(0, i - 1) : i + 1]) for i in range(4)]
    assert [form is not op for op, form in forms] == [one_word]
    if not one_word:
        with pytest.raises(sw.AggregateOverflowError):
            sums(3)


@pytest.mark.parametrize("unit", ["ns", "s"])
@pytest.mark.parametrize("rows", [[None, 1, 2], [2, None, 1], [1, 2, None]])
def test_a_missing_time_in_pandas(rows, unit):
    """Found whether rows come sorted or not, with keys or without, also where times are counted in finer ticks."""
    times = pd.to_datetime(rows, unit="s").astype(f"datetime64[{unit}]")
    frame = pd.DataFrame({"t": times, "k": ["a", "b", "a"], "x": [1, 2, 3]})
    words = f"1 null.*first in row {rows.index(None)};"
    for by in (None, "k"):
        asked = dict(time="t", by=by, windows=["500ms"], aggs={"x": sw.sum("x"), "last": sw.max("t")})
        with pytest.raises(sw.InputError, match=words):
            sw.rolling(frame, **asked)
        with pytest.raises(sw.InputError, match=words):
            sw.as_of(frame[["t", "k"]], frame.dropna(), **asked)
        with pytest.raises(sw.InputError, match=words):
            sw.as_of(frame.dropna()[["t", "k"]], frame, **asked)
