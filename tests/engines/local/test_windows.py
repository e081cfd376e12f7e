"""Every window kind and emit mode of `rolling` and `as_of` against loops over all rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.local.oracle import (
    ROWS_OF,
    Sorted,
    frames,
    windows_of_boundaries,
    windows_of_keys,
    windows_of_queries,
    windows_of_rows,
)

import slidewise as sw
from slidewise.engines.local.run import run, run_as_of
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request
from slidewise.planner.slices import TECHNIQUES, shared_plan

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("t", pa.int64()),
        ("k", pa.string()),
        ("k2", pa.int32()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("flag", pa.bool_()),
        ("name", pa.string()),
    ]
)
WINDOWS = {
    "time": 5,
    "offset": sw.time(4, offset=2),
    "slide": sw.time(5, slide=3),
    "sparse": sw.time(2, slide=5),
    "rows": sw.rows(3),
    "rows_slide": sw.rows(3, slide=2),
    "tumbling": sw.tumbling(4),
    "session": sw.session(2),
    "delta": sw.delta("n", 2),
    "punctuation": sw.punctuation("flag"),
    "lifetime": sw.lifetime(),
}
CLOSED = ("right", "left", "both", "neither")
KEYS = st.sampled_from([(), ("k",), ("k", "k2")])
AGGS = {"rows": ROWS_OF("row")}


def table(frame):
    return pa.table(frame, schema=SCHEMA)


def lists(result, windows):
    return {name: [x or [] for x in result.column(f"rows_{name}").to_pylist()] for name in windows}


@given(
    frame=frames(),
    by=KEYS,
    closed=st.sampled_from(CLOSED),
    ties=st.sampled_from(["peers", "arrival"]),
    order=st.sampled_from([(), ("n",), ("name", "n")]),
    exclude=st.booleans(),
    origin=st.sampled_from([None, 1]),
)
def test_event(frame, by, closed, ties, order, exclude, origin):
    arguments = dict(closed=closed, ties=ties, order=order, exclude_current=exclude, origin=origin)
    result = sw.rolling(table(frame), time="t", by=by, windows=WINDOWS, aggs=AGGS, **arguments)
    assert repr(result.select(SCHEMA.names).to_pylist()) == repr(table(frame).to_pylist()), (
        "rows come back as they were"
    )
    assert lists(result, WINDOWS) == windows_of_rows(frame, WINDOWS, by, **arguments)


@given(frame=frames(), by=KEYS, closed=st.sampled_from(CLOSED), ties=st.sampled_from(["peers", "arrival"]))
def test_floats_as_times(frame, by, closed, ties):
    """Below and above zero, in any order; -0.0 is 0.0."""
    times = pa.array([float(t) or (-0.0 if row % 2 else 0.0) for row, t in enumerate(frame["t"])], pa.float64())
    arguments = dict(closed=closed, ties=ties)
    result = sw.rolling(table(frame).set_column(1, "t", times), time="t", by=by, windows=WINDOWS, aggs=AGGS, **arguments)
    assert lists(result, WINDOWS) == windows_of_rows(frame, WINDOWS, by, **arguments)
    own = sw.as_of(table(frame), table(frame).set_column(1, "t", times), time="t", by=by, windows=WINDOWS, aggs=AGGS)
    assert lists(own, WINDOWS) == windows_of_queries(frame, frame, WINDOWS, by)


@given(
    frame=frames(),
    queries=frames(8),
    by=KEYS,
    closed=st.sampled_from(CLOSED),
    slides=st.lists(
        st.builds(lambda r, s, o: sw.time(r, slide=s, offset=o), st.integers(1, 7), st.integers(1, 6), st.integers(0, 2)),
        min_size=2,
        max_size=3,
    ),
    origin=st.sampled_from([None, 1]),
    technique=st.sampled_from(TECHNIQUES),
)
def test_slices_at_rows_and_queries(frame, queries, by, closed, slides, origin, technique):
    """Windows that slide, read at rows and queries from whatever slices the plan names."""
    windows = dict(zip("abc", slides)) | {"time": 5}
    for as_of in (False, True):
        asked = request(time="t", by=by, windows=windows, aggs=AGGS, closed=closed, origin=origin, as_of=as_of)
        plan = make_plan(asked, SCHEMA)
        plan = replace(plan, slices=shared_plan(plan.slices.queries, technique, plan.slices.closed))
        if as_of:
            found = run_as_of(plan, table(queries), table(frame))
            assert lists(found, windows) == windows_of_queries(queries, frame, windows, by, closed, origin=origin)
        else:
            found = run(plan, table(frame))
            assert lists(found, windows) == windows_of_rows(frame, windows, by, closed, origin=origin)


@given(
    frame=frames(),
    by=KEYS,
    closed=st.sampled_from(CLOSED),
    ties=st.sampled_from(["peers", "arrival"]),
    order=st.sampled_from([(), ("n",)]),
    exclude=st.booleans(),
)
def test_latest(frame, by, closed, ties, order, exclude):
    arguments = dict(closed=closed, ties=ties, order=order, exclude_current=exclude)
    result = sw.rolling(table(frame), time="t", by=by, windows=WINDOWS, aggs=AGGS, emit="latest", **arguments)
    keys, times, found = windows_of_keys(frame, WINDOWS, by, **arguments)
    assert result.column("t").to_pylist() == times
    assert [tuple(row[k] for k in by) for row in result.to_pylist()] == keys
    assert lists(result, WINDOWS) == found


SLIDING = st.one_of(
    st.builds(lambda r, s, o: sw.time(r, slide=s, offset=o), st.integers(1, 7), st.integers(1, 6), st.integers(0, 2)),
    st.builds(sw.tumbling, st.integers(1, 5)),
)


@given(
    frame=frames(),
    by=KEYS,
    closed=st.sampled_from(CLOSED),
    windows=st.lists(SLIDING, min_size=1, max_size=3).map(lambda found: dict(zip("abc", found))),
    origin=st.sampled_from([None, 1]),
    technique=st.sampled_from([None, *TECHNIQUES]),
)
def test_slide(frame, by, closed, windows, origin, technique):
    """Whatever slices the plan names."""
    asked = request(time="t", by=by, windows=windows, aggs=AGGS, emit="slide", closed=closed, origin=origin)
    plan = make_plan(asked, SCHEMA)
    if technique is not None:
        plan = replace(plan, slices=shared_plan(plan.slices.queries, technique, plan.slices.closed))
    result = run(plan, table(frame))
    ordered, found = windows_of_boundaries(frame, windows, by, closed, origin=origin)
    keys = list(dict.fromkeys(ordered.key))
    assert [(tuple(row[k] for k in by), row["t"]) for row in result.to_pylist()] == [
        (keys[c], b) for c, b in sorted(found)
    ]
    for row, key in zip(result.to_pylist(), sorted(found)):
        for name in windows:
            assert row[f"rows_{name}"] == found[key].get(name), "a window without a boundary here has no answer"


@given(
    frame=frames(),
    by=KEYS,
    closed=st.sampled_from(CLOSED),
    window=st.sampled_from([sw.rows(3, slide=2), sw.rows(2, slide=3, offset=1), sw.punctuation("flag"), sw.session(2)]),
)
def test_slide_of_windows_that_end_with_a_row(frame, by, closed, window):
    """Each S-th row of a key, each marked row, the last of a session, in order: those whose window is not empty. A session is
    given whole, whatever is closed."""
    result = sw.rolling(table(frame), time="t", by=by, windows={"w": window}, aggs=AGGS, emit="slide", closed=closed)
    every = windows_of_rows(frame, {"w": window}, by, "right" if window.kind == "session" else closed)["w"]
    ordered, expected = Sorted(frame, by), []
    for row in ordered.rows:
        own = [other for other in ordered.rows if ordered.code[other] == ordered.code[row]]
        behind = own[own.index(row) + 1 :]
        if window.kind == "rows":
            ends = (len(own) - len(behind)) % window.slide.value == 0
        elif window.kind == "punctuation":
            ends = bool(frame["flag"][row])
        else:
            ends = not behind or frame["t"][behind[0]] - frame["t"][row] > 2
        if ends and every[row]:
            expected.append((frame["t"][row], every[row]))
    assert [(row["t"], row["rows_w"]) for row in result.to_pylist()] == expected


@given(
    frame=frames(),
    queries=frames(8),
    by=KEYS,
    closed=st.sampled_from([None, *CLOSED]),
    order=st.sampled_from([(), ("n",)]),
    ties=st.sampled_from(["peers", "arrival"]),
)
def test_as_of(frame, queries, by, closed, order, ties):
    arguments = {"order": order} if closed is None else {"order": order, "closed": closed}
    same = dict(emit="event", exclude_current=False, ties="peers" if closed in ("right", "both") else ties)
    result = sw.as_of(table(queries), table(frame), time="t", by=by, windows=WINDOWS, aggs=AGGS, **arguments, **same)
    assert repr(result.select(SCHEMA.names).to_pylist()) == repr(table(queries).to_pylist())
    assert lists(result, WINDOWS) == windows_of_queries(queries, frame, WINDOWS, by, **arguments)
    if closed is None:
        for q, seen in enumerate(lists(result, WINDOWS)["lifetime"]):
            assert all(frame["t"][row] < queries["t"][q] for row in seen), "nothing of a label's own moment is seen"


@given(frame=frames(), by=KEYS, closed=st.sampled_from(CLOSED))
def test_as_of_its_own_rows_is_rolling(frame, by, closed):
    """Queries at the rows of the data see what the rows see, where ties are peers."""
    windows = {
        name: w
        for name, w in WINDOWS.items()
        if name in ("time", "offset", "slide", "sparse", "tumbling", "session", "lifetime")
    }
    arguments = dict(time="t", by=by, windows=windows, aggs=AGGS, closed=closed)
    own, rows = sw.as_of(table(frame), table(frame), **arguments), sw.rolling(table(frame), **arguments)
    assert repr(own.to_pylist()) == repr(rows.to_pylist())


@pytest.mark.parametrize("exclude", [False, True])
@settings(max_examples=40)
@given(frame=frames(), by=KEYS, closed=st.sampled_from(CLOSED))
def test_compiled_aggregates(exclude, frame, by, closed):
    """Nulls are skipped, where= chooses, NaN propagates and leaves no trace; argmax keeps its argument's type."""
    windows = {name: WINDOWS[name] for name in ("time", "rows", "slide")}
    aggs = {
        "total": sw.sum("x"),
        "peak": sw.max("n"),
        "who": sw.argmax("n", "name"),
        "n": sw.count(),
        "nx": sw.count("x"),
        "marked": sw.sum("x", where="flag"),
        "least": sw.min("name"),
        "oldest": sw.first("name"),
        "youngest": sw.last("n"),
    }
    result = sw.rolling(
        table(frame), time="t", by=by, windows=windows, aggs=aggs, closed=closed, exclude_current=exclude
    )
    inside = windows_of_rows(frame, windows, by, closed, exclude_current=exclude)
    column = lambda name, rows: [frame[name][row] for row in rows]
    for w in windows:
        for i, rows in enumerate(inside[w]):
            row = {name: result.column(f"{name}_{w}")[i].as_py() for name in aggs}
            assert same(row["total"], sw.sum().fold(column("x", rows)))
            assert same(row["marked"], sw.sum().fold([frame["x"][r] for r in rows if frame["flag"][r]]))
            assert row["peak"] == sw.max().fold(column("n", rows))
            assert row["n"] == len(rows)
            assert row["nx"] == sum(x is not None for x in column("x", rows))
            assert row["least"] == sw.min().fold(column("name", rows))
            assert row["oldest"] == next((x for x in column("name", rows) if x is not None), None)
            assert row["youngest"] == next((x for x in column("n", rows)[::-1] if x is not None), None)
            best = max((n for n in column("n", rows) if n is not None), default=None)
            first = next((r for r in rows if frame["n"][r] == best and best is not None), None)
            assert row["who"] == (None if first is None else frame["name"][first]), (
                "the first of equals; a null is kept"
            )


def same(a, b):
    return a == b or (a is not None and b is not None and a != a and b != b)


def test_as_of_many_queries_on_every_kind_of_frame():
    """Sums of whole numbers by search and prefix sums: many queries in one pass, ties between labels and events among them."""
    rng = np.random.default_rng(0)
    events, labels, keys = 60_000, 100_000, 40
    data = pa.table(
        {"t": rng.integers(0, 9000, events), "k": rng.integers(0, keys, events), "x": rng.integers(0, 9, events)}
    )
    queries = pa.table({"t": rng.integers(0, 9000, labels), "k": rng.integers(0, keys + 1, labels)})
    asked = dict(time="t", by="k", windows={"w": 500}, aggs={"s": sw.sum("x"), "n": sw.count()})
    total, count = np.zeros(labels, np.int64), np.zeros(labels, np.int64)
    for key in range(keys):
        own = np.flatnonzero(data["k"].to_numpy() == key)
        own = own[np.argsort(data["t"].to_numpy()[own], kind="stable")]
        times, sums = data["t"].to_numpy()[own], np.concatenate([[0], np.cumsum(data["x"].to_numpy()[own])])
        at = np.flatnonzero(queries["k"].to_numpy() == key)
        moments = queries["t"].to_numpy()[at]
        start, end = np.searchsorted(times, moments - 500, "left"), np.searchsorted(times, moments, "left")
        total[at], count[at] = sums[end] - sums[start], end - start
    for make in (lambda table: table, pa.Table.to_pandas, pl.from_arrow):
        found = sw.as_of(make(queries), make(data), **asked)
        assert type(found) is type(make(queries))
        table = pa.table(found) if not isinstance(found, pd.DataFrame) else pa.Table.from_pandas(found)
        assert table["n_w"].to_pylist() == count.tolist()
        assert table["s_w"].fill_null(0).to_pylist() == total.tolist()


@pytest.mark.parametrize("data_unit", ["s", "ms", "ns", "day"])
@pytest.mark.parametrize("query_unit", ["s", "us", "ns", "day"])
def test_as_of_where_queries_and_data_count_in_different_units(data_unit, query_unit):
    """Compared as the moments they are: a query at noon is not one at midnight, and a fraction of a second is not cut off."""
    day, nano = 86_400 * 10**9, {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "day": 86_400 * 10**9}

    def column(moments, unit):
        ticks = [m // nano[unit] for m in moments]
        kind = pa.date32() if unit == "day" else pa.timestamp(unit)
        return pa.array(ticks, pa.int32() if unit == "day" else pa.int64()).view(kind), [t * nano[unit] for t in ticks]

    rng = np.random.default_rng(0)
    times, events = column(sorted(rng.integers(0, 5 * day, 40).tolist() + [0, day, 2 * day]), data_unit)
    moments, asked = column(rng.integers(0, 6 * day, 60).tolist() + [day, day + 1, day + day // 2, 2 * day], query_unit)
    data, queries = pa.table({"t": times, "x": range(len(events))}), pa.table({"t": moments})
    for closed, length in (("left", "1d"), ("both", "36h"), ("right", "90m")):
        found = sw.as_of(queries, data, time="t", windows={"w": length}, aggs={"all": sw.collect("x")}, closed=closed)
        reach = {"1d": day, "36h": day * 3 // 2, "90m": day // 16}[length]
        inside = {
            "left": lambda e, q: q - reach <= e < q,
            "both": lambda e, q: q - reach <= e <= q,
            "right": lambda e, q: q - reach < e <= q,
        }[closed]
        assert found["all_w"].to_pylist() == [[i for i, e in enumerate(events) if inside(e, q)] for q in asked]
        assert found.schema.field("t").type == queries.schema.field("t").type


def test_as_of_where_one_counts_in_fractions():
    data, queries = pa.table({"t": [1, 2, 3], "x": [1, 2, 4]}), pa.table({"t": [1.5, 2.0, 3.5]})
    asked = dict(time="t", windows={"w": 2}, aggs={"s": sw.sum("x")})
    assert sw.as_of(queries, data, **asked)["s_w"].to_pylist() == [1, 1, 6]
    found = sw.as_of(data.select(["t"]), pa.table({"t": [0.5, 1.0, 2.5], "x": [1, 2, 4]}), **asked)
    assert found["s_w"].to_pylist() == [1, 3, 6]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.duration("us"), pa.int64()], ids=["zone", "duration", "number"]
)
def test_as_of_where_times_cannot_be_compared(kind):
    data = pa.table({"t": pa.array([1, 2], pa.timestamp("us")), "x": [1, 2]})
    with pytest.raises(sw.InputTypeError, match="do not count the same"):
        sw.as_of(
            pa.table({"t": pa.array([1]).view(kind)}), data, time="t", windows="1s", aggs={"s": sw.sum("x")}
        )


@pytest.mark.parametrize(
    ("data", "queries"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([2**40, 2, None], pa.int64())),
        (pa.array([1, 2], pa.int64()), pa.array([1.5, 2.0, None])),
        (pa.array([1.5, 2.0]), pa.array([3, 2, None])),
        (pa.array(["a", "b"]), pa.array(["ab", "b", None], pa.large_string())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["ab", "b", None])),
        (pa.array([1, 2], pa.timestamp("s")), pa.array([2001, 2000, None], pa.timestamp("ms"))),
        (pa.array([b"a", b"b"]), pa.array([None, b"b", b"c"], pa.large_binary())),
        (pa.array([1, 2]), pa.nulls(3)),
    ],
    ids=str,
)
def test_as_of_with_keys_of_different_types(data, queries):
    """Equal values are equal keys, whatever their width; a key the data does not have has empty windows."""
    table = pa.table({"t": [1, 2], "k": data, "x": [10, 20]})
    asked = pa.table({"t": [5, 5, 5], "k": queries})
    found = sw.as_of(asked, table, time="t", by="k", windows={"w": 9}, aggs={"all": sw.collect("x")})
    expected = [[], [20], []] if queries.null_count < 3 else [[], [], []]
    assert found["all_w"].to_pylist() == expected and found["k"].type == asked["k"].type


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_boundaries_between_days_are_timestamps(kind):
    asked = dict(time="t", aggs={"n": sw.count()}, emit="slide")
    days = pa.table({"t": pa.array([1], pa.date32()).cast(kind)})
    found = sw.rolling(days, windows=sw.time("1d", slide="8h"), **asked)["t"]
    assert pa.types.is_timestamp(found.type)
    assert found.cast(pa.timestamp("s")).cast(pa.int64()).to_pylist() == [86400, 86400 + 8 * 3600, 86400 + 16 * 3600]
    assert sw.rolling(days, windows=sw.tumbling("2d"), **asked)["t"].type == kind
