"""The keyed engine against the oracle: exactly the rows that must come out, push by push."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.streams import Pair, make_spec, streams

import slidewise as sw
import slidewise.operators as ops
from slidewise.live.keyed import Keyed
from slidewise.windows import spec as w

WINDOWS = {
    "time": [w.time(10), w.time(25)],
    "slide": [w.time(12, slide=5), w.time(10, slide=4, offset=3)],
    "rows": [w.rows(3), w.rows(2, slide=2), w.rows(4, offset=1)],
    "tumbling": [w.tumbling(15)],
    "session": [w.session(6)],
    "delta": [w.delta("n", 2)],
    "punctuation": [w.punctuation("paid")],
    "lifetime": [w.lifetime()],
    "mixed": {"hour": w.time(10), "three": w.rows(3), "visit": w.session(6)},
}


@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=25)
@given(
    stream=streams(),
    closed=st.sampled_from(["right", "left", "both", "neither"]),
    ties=st.sampled_from(["peers", "arrival"]),
)
def test_eager_events(kind, stream, closed, ties):
    pair = Pair(make_spec(WINDOWS[kind], closed=closed, ties=ties, keep=1000))
    for part, watermark in stream:
        pair.push(part, watermark)


@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=25)
@given(stream=streams(), late=st.sampled_from(["side", "drop"]))
def test_final_events(kind, stream, late):
    pair = Pair(make_spec(WINDOWS[kind], results="final", late=late))
    for part, watermark in stream:
        pair.push(part, watermark)
    pair.advance(final=True)


LISTS = [[10, 1], [9], [9, 1], [None], [], None]
POINTS = [{"a": 10, "b": "x"}, {"a": 9, "b": "y"}, {"a": None, "b": "z"}, {"a": 9, "b": None}, None]


@pytest.mark.parametrize(("kind", "values"), [
    (pa.list_(pa.int64()), LISTS),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), POINTS),
    (pa.float64(), [-0.0, 0.0, float("nan"), None, -1.5]),
], ids=["lists", "structs", "zeros"])  # fmt: skip
@pytest.mark.parametrize("order", [None, "x"])
def test_ties_go_as_on_a_frame(kind, values, order):
    """By the values, not by how they are written: [9] before [10]; -0.0 is 0.0, and what comes next decides."""
    schema = pa.schema([("card", pa.string()), ("ts", pa.int64()), ("x", kind), ("n", pa.int64()), ("id", pa.int64())])
    rows = [{"card": "p", "ts": 5, "x": x, "n": 9 - i, "id": i} for i, x in enumerate(values)]
    aggs = {"all": ops.collect("n"), "tail": ops.last("x"), "head": ops.first("x")}
    spec = make_spec([10], aggs, schema=schema, order=order, id="id")
    wanted = sw.rolling(pa.Table.from_pylist(rows, schema=schema), time="ts", by="card", windows=[10], aggs=aggs,
                        order=[*spec.tie_columns])  # fmt: skip
    wanted = wanted.to_pylist()[0]
    for arrived in (rows, rows[::-1]):
        engine, last = Keyed(spec), {}
        for i, row in enumerate(arrived):
            for out in engine.push(pa.Table.from_pylist([row], schema=schema), batch=i).rows.to_pylist():
                last[out["id"]] = out
        for out in last.values():
            assert repr([out[name] for name in ("all_10", "tail_10", "head_10")]) == repr(
                [wanted[name] for name in ("all_10", "tail_10", "head_10")]
            )
