"""Every kind of state, result and clock through the keyed engine, against `rolling` on the same events."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.live.keyed import Keyed
from slidewise.live.spec import stream_spec
from slidewise.planner.request import request

N = 400


class Pair(NamedTuple):
    low: float
    high: float


envelope = sw.operator(
    lift=lambda x: Pair(x, x),
    combine=lambda a, b: Pair(min(a.low, b.low), max(a.high, b.high)),
    lower=lambda s: s.high - s.low,
    identity=Pair(math.inf, -math.inf),
    name="envelope",
)
longest = sw.operator(
    lift=lambda s: s,
    combine=lambda a, b: a if len(a) >= len(b) else b,
    lower=lambda s: s,
    identity="",
    name="longest",
)
OPERATORS = {
    "scalar": {"n": sw.count("x"), "total": sw.sum("i"), "peak": sw.max("x"), "every": sw.all("flag")},
    "struct": {"mean": sw.mean("x"), "std": sw.std("x"), "cov": sw.covariance("x", "i"), "who": sw.argmin("x", "name")},
    "exact": {"total": sw.sum("x", exact=True)},
    "wide": {"bars": sw.histogram("x", edges=[-1.0, 0.0, 1.0]), "kinds": sw.approx_distinct("i")},
    "object": {
        "middle": sw.median("x"),
        "best": sw.top_k("x", k=2),
        "text": sw.concat("name", sep="-"),
        "most": sw.max("name"),
    },
    "own": {"spread": envelope("x"), "long": longest("name")},
    "together": {"both": sw.struct(total=sw.sum("x", where="flag"), last=sw.last("name"), n=sw.count())},
}
CLOCKS = {
    "us": pa.timestamp("us"),
    "zone": pa.timestamp("ms", "Europe/Berlin"),
    "date": pa.date32(),
    "whole": pa.int32(),
    "real": pa.float64(),
}


def events(kind: pa.DataType) -> pa.Table:
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(0, 300, N))
    late = rng.random(N) < 0.2
    times = times - np.where(late, rng.integers(0, 20, N), 0) + 50
    if pa.types.is_timestamp(kind):
        unit = {"us": 10**6, "ms": 10**3}[kind.unit]
        ts = pa.array(times * 60 * unit).view(kind)
    elif pa.types.is_date32(kind):
        ts = pa.array(times.astype(np.int32)).view(kind)
    else:
        ts = pa.array(times.astype(float) if pa.types.is_floating(kind) else times).cast(kind)
    blank = rng.random(N) < 0.1
    return pa.table(
        {
            "key": pa.array(rng.integers(0, 4, N)),
            "ts": ts,
            "x": pa.array(rng.normal(size=N), mask=blank),
            "i": pa.array(rng.integers(-50, 50, N)),
            "flag": pa.array(rng.random(N) < 0.7, mask=rng.random(N) < 0.1),
            "name": pa.array([f"n{i % 13}" * (i % 4) for i in range(N)], mask=rng.random(N) < 0.1),
            "id": pa.array(np.arange(N)),
        }
    )


def streamed(table, windows, aggs, results):
    asked = request(time="ts", by="key", windows=windows, aggs=aggs)
    options = {"keep": windows_longest(windows, table), "late": "correct"} if results == "eager" else {}
    engine = Keyed(stream_spec(asked, table.schema, id="id", results=results, **options))
    out = []
    for n, begin in enumerate(range(0, N, 37)):
        out.append(engine.push(table.slice(begin, 37), watermark=None, batch=n).rows)
        engine.check()
    out.append(engine.advance(final=True).rows)
    last = {row["id"]: row for row in pa.concat_tables(out).to_pylist()}
    return [last[i] for i in range(N)], asked


def windows_longest(windows, table):
    return 1000 if not pa.types.is_temporal(table.schema.field("ts").type) else "1000d"


def same(a, b, tolerance):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    return a == b


@pytest.mark.parametrize("results", ["eager", "final"])
@pytest.mark.parametrize("kind", OPERATORS)
def test_operators(kind, results):
    table, windows = events(pa.timestamp("us")), ["30m", sw.rows(7)]
    rows, asked = streamed(table, windows, OPERATORS[kind], results)
    order = ["x", "i", "flag", "name", "id"]
    names = [c for bound in asked.aggs.values() for c in bound.needed] + order
    whole = sw.rolling(
        table, time="ts", by="key", windows=windows, aggs=OPERATORS[kind], order=list(dict.fromkeys(names))
    )
    tolerance = 0 if kind in ("scalar", "exact", "wide", "object", "own") else 1e-9
    for found, wanted in zip(rows, whole.to_pylist(), strict=True):
        for output in asked.outputs:
            assert same(found[output.column], wanted[output.column], tolerance), (output.column, found, wanted)


@pytest.mark.parametrize("results", ["eager", "final"])
@pytest.mark.parametrize("emit", ["slide", "latest"])
@pytest.mark.parametrize("kind", OPERATORS)
def test_operators_by_slides_and_the_latest(kind, emit, results):
    """Also of batches that nothing comes out of: before the first boundary, and with an event that no window reaches."""
    table, aggs = events(pa.int64()), OPERATORS[kind]
    windows = [sw.time(30, slide=7), sw.tumbling(20)] if emit == "slide" else [sw.time(30), sw.rows(7)]
    asked = request(time="ts", by="key", windows=windows, aggs=aggs, emit=emit)
    options = {"keep": 1000} if results == "eager" else {}
    spec = stream_spec(asked, table.schema, id="id", results=results, **options)
    times, cuts = table["ts"].to_numpy(), [0, 1, 134, 267, N]
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    watermarks = [int(times[: max(begin, 1)].max()) - 20 for begin in cuts[:-1]]  # no event is later than that
    if results == "eager":
        old = table.slice(0, 1).set_column(1, "ts", pa.array([5])).set_column(6, "id", pa.array([N]))
        parts, watermarks, table = [*parts, old], [*watermarks, None], pa.concat_tables([table, old])
    engine, out = Keyed(spec), []
    for n, (part, watermark) in enumerate(zip(parts, watermarks, strict=True)):
        outcome = engine.push(part, watermark=watermark, batch=n)
        outcome.rows.validate(full=True)
        assert outcome.counts["accepted"] == len(part)
        out.append(outcome.rows)
    assert 0 in [len(rows) for rows in out], "some are meant to give nothing"
    out.append(engine.advance(final=True).rows)
    place = (lambda row: (row["key"], row["ts"])) if emit == "slide" else (lambda row: row["key"])
    last = {place(row): row for row in pa.concat_tables(out).to_pylist()}
    whole = sw.rolling(table, time="ts", by="key", windows=windows, aggs=aggs, emit=emit, order=list(spec.tie_columns))
    wanted = {place(row): row for row in whole.to_pylist()}
    assert last.keys() == wanted.keys()
    tolerance = 0 if kind in ("scalar", "exact", "wide", "object", "own") else 1e-9
    for at, row in wanted.items():
        for output in asked.outputs:
            found = last[at][output.column]
            assert same(found, row[output.column], tolerance), (output.column, at, found, row[output.column])


@pytest.mark.parametrize("clock", CLOCKS)
def test_clocks(clock):
    table = events(CLOCKS[clock])
    length = {"us": "30m", "zone": "30m", "date": "30d", "whole": 30, "real": 30.5}[clock]
    windows = [sw.time(length), sw.tumbling(length), sw.session(length if clock != "real" else 2.5)]
    aggs = {"n": sw.count("x"), "peak": sw.max("x")}
    for results in ("eager", "final"):
        rows, asked = streamed(table, windows, aggs, results)
        whole = sw.rolling(table, time="ts", by="key", windows=windows, aggs=aggs)
        for found, wanted in zip(rows, whole.to_pylist(), strict=True):
            assert {o.column: found[o.column] for o in asked.outputs} == {
                o.column: wanted[o.column] for o in asked.outputs
            }
            assert found["ts"] == wanted["ts"]


def test_keys_are_equal_as_everywhere():
    schema = pa.schema([("a", pa.float64()), ("b", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
    asked = request(time="ts", by=["a", "b"], windows=[sw.time(100)], aggs={"n": sw.count()})
    engine = Keyed(stream_spec(asked, schema, id="id"))
    keys = [(0.0, "x"), (-0.0, "x"), (math.nan, None), (float("nan"), None), (None, "x"), (None, "x"), (1.0, "x")]
    rows = [{"a": a, "b": b, "ts": 1, "id": n} for n, (a, b) in enumerate(keys)]
    engine.push(pa.Table.from_pylist(rows[:3], schema=schema))
    found = engine.push(pa.Table.from_pylist(rows[3:], schema=schema)).rows.to_pylist()
    assert {row["id"]: row["n_100"] for row in found} == {3: 2, 4: 2, 5: 2, 6: 1, 2: 2}
    assert engine.keys == 4
