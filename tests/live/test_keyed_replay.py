"""The state is a function of the events: not of the order they came in, how they were cut, or how often it was stored and read.

The aggregates here are not exact on purpose (means and deviations of arbitrary floats): answers must be the same to the last
bit.
"""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.streams import SCHEMA, make_spec, rows, streams, table_of

import slidewise.operators as ops
from slidewise.errors import StateError
from slidewise.live.keyed import META, Keyed
from slidewise.windows import spec as w

FLOATS = {
    "total": ops.sum("x"),
    "mean": ops.mean("x"),
    "std": ops.std("x"),
    "who": ops.argmax("x", "shop"),
    "shops": ops.collect("shop"),
}
WINDOWS = {"short": w.time(10), "long": w.time(40), "rows": w.rows(20), "visit": w.session(4), "ever": w.lifetime()}


def float_events(found):
    """Values whose sums are never exact."""
    return [dict(e, x=None if e["x"] is None else e["x"] * 0.1 + e["id"] / 7) for e in found]


def last_given(tables) -> dict:
    """The last revision of every event that was given."""
    found = {}
    for row in pa.concat_tables(tables).to_pylist():
        if not row["late"]:
            found[row["id"]] = {k: repr(v) for k, v in row.items() if k != "revision"}
    return found


def run(spec, batches, engine=None):
    engine = engine or Keyed(spec)
    tables = [spec.output_schema.empty_table()]
    for n, (part, watermark) in enumerate(batches):
        tables.append(engine.push(table_of(part), watermark=watermark, batch=n).rows)
    tables.append(engine.advance(final=True, batch=len(batches)).rows)
    return last_given(tables)


@settings(max_examples=40)
@given(data=st.data(), results=st.sampled_from(["eager", "final"]))
def test_any_order_and_any_cut_give_the_same_to_the_last_bit(data, results):
    spec = make_spec(WINDOWS, FLOATS, results=results, ties=data.draw(st.sampled_from(["peers", "arrival"])))
    events = float_events(data.draw(rows(data.draw(st.integers(1, 60)), doubles=False, keys=2)))
    one = run(spec, [(events, None)])
    shuffled = data.draw(st.permutations(events))
    batches, at = [], 0
    while at < len(shuffled):
        size = data.draw(st.integers(1, 20))
        batches.append((shuffled[at : at + size], None))
        at += size
    assert run(spec, batches) == one


@settings(max_examples=15)
@given(stream=streams(most=40, horizon=5, keys=1), data=st.data())
def test_row_order_inside_a_push_does_not_matter(stream, data):
    """Six moments and one key: nearly every event shares its moment with others of its push."""
    spec = make_spec(WINDOWS, FLOATS, keep=20)
    engine, other = Keyed(spec), Keyed(spec)
    for n, (part, watermark) in enumerate(stream):
        a = engine.push(table_of(float_events(part)), watermark=watermark, batch=n)
        b = other.push(table_of(float_events(data.draw(st.permutations(part)))), watermark=watermark, batch=n)
        assert sorted(map(repr, a.rows.to_pylist())) == sorted(map(repr, b.rows.to_pylist()))
        assert a.counts == b.counts


@pytest.mark.parametrize("emit", ["event", "slide", "latest"])
@settings(max_examples=30)
@given(stream=streams(most=50), cut=st.integers(0, 12), results=st.sampled_from(["eager", "final"]))
def test_absorbing_the_log_is_pushing(emit, stream, cut, results):
    windows = {**WINDOWS, "every other": w.rows(3, slide=2)} if emit != "slide" else [w.time(9, slide=4)]
    spec = make_spec(windows, FLOATS, emit=emit, results=results)
    engine, replayed, compacted = Keyed(spec), Keyed(spec), Keyed(spec)
    for n, (part, watermark) in enumerate(stream):
        table = table_of(float_events(part))
        if n == cut:
            compacted.absorb(stored(engine.retained()))
        outcome = engine.push(table, watermark=watermark, batch=n)
        if n < cut:
            replayed.absorb(stored(outcome.log))
            continue
        for other in (replayed, compacted):
            again = other.push(table, watermark=watermark, batch=n)
            assert sorted(map(repr, again.rows.to_pylist())) == sorted(map(repr, outcome.rows.to_pylist()))
            assert again.counts == outcome.counts
    if cut < len(stream):
        ends = [e.advance(final=True, batch=99).rows.to_pylist() for e in (engine, replayed, compacted)]
        assert sorted(map(repr, ends[0])) == sorted(map(repr, ends[1])) == sorted(map(repr, ends[2]))
        for other in (replayed, compacted):
            other.check()
            assert other.retained().num_rows == engine.retained().num_rows


@pytest.mark.parametrize(
    "windows", [{"a": w.rows(3, slide=2)}, {"a": w.time(30)}, {"a": w.lifetime(), "b": w.time(30)}]
)
def test_what_was_forgotten_is_remembered_by_number(windows):
    """Ranks count forgotten events too: without them slides of rows would shift, and floats be grouped anew."""
    spec = make_spec(windows, FLOATS, keep=0)
    engine = Keyed(spec)
    found = float_events(
        [
            {"card": "p", "ts": t, "x": float(t % 7), "n": t, "shop": "a", "paid": True, "id": t, "note": None}
            for t in range(203)
        ]
    )
    for n in range(0, 150, 15):
        engine.push(table_of(found[n : n + 15]), watermark=n, batch=n)
    entry = stored(engine.retained())
    assert 0 < entry.num_rows < 100
    compacted = Keyed(spec)
    compacted.absorb(entry)
    for n in range(150, 203, 7):
        wanted = engine.push(table_of(found[n : n + 7]), watermark=n, batch=n).rows
        again = compacted.push(table_of(found[n : n + 7]), watermark=n, batch=n).rows
        assert again.to_pylist() == wanted.to_pylist()


def stored(entry: pa.Table) -> pa.Table:
    """Through bytes and back, as a log would."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, entry.schema) as writer:
        writer.write_table(entry)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def test_foreign_and_damaged_entries_are_refused():
    spec = make_spec([w.time(10)], FLOATS)
    engine = Keyed(spec)
    good = engine.push(table_of(float_events([dict.fromkeys(SCHEMA.names) | {"ts": 3, "id": 0, "x": 1.0}]))).log
    other = Keyed(spec)
    with pytest.raises(StateError, match="no description"):
        other.absorb(good.replace_schema_metadata(None))
    with pytest.raises(StateError, match="damaged"):
        other.absorb(good.replace_schema_metadata({META: b"{"}))
    with pytest.raises(StateError, match="version"):
        other.absorb(good.replace_schema_metadata({META: b'{"version": 99}'}))
    with pytest.raises(StateError, match="columns"):
        other.absorb(good.drop_columns(["shop"]))
    with pytest.raises(StateError, match="keys"):
        other.absorb(good.replace_schema_metadata({META: b'{"version": 1, "keys": "AAAA"}'}))
    other.absorb(good)
    with pytest.raises(StateError, match="twice"):
        other.absorb(good)


def test_an_id_that_was_forgotten_may_come_again():
    """It counts as new where it is pushed, and so it must where the log is read."""
    spec = make_spec([w.time(10)], FLOATS, keep=0)
    engine, replayed = Keyed(spec), Keyed(spec)
    event = lambda id, ts: dict.fromkeys(SCHEMA.names) | {"ts": ts, "id": id, "x": 1.0}
    steps = [([event(7, 0), event(8, 100)], None), ([event(7, 101)], 90)]
    for n, (part, watermark) in enumerate(steps):
        outcome = engine.push(table_of(float_events(part)), watermark=watermark, batch=n)
        assert outcome.counts["accepted"] == len(part)
        replayed.absorb(outcome.log)
    compacted = Keyed(spec)
    compacted.absorb(engine.retained())
    assert replayed.entries == compacted.entries == engine.entries


def test_aggregates_asked_in_another_order_have_the_same_lifetime():
    """They share a state: it is stored under names that do not depend on the order."""
    aggs = {"total": ops.sum("x"), "mean": ops.mean("x"), "std": ops.std("x")}
    engine = Keyed(make_spec([w.lifetime()], aggs, keep=0))
    found = float_events([dict.fromkeys(SCHEMA.names) | {"ts": t, "id": t, "x": float(t)} for t in range(41)])
    engine.push(table_of(found[:40]))
    engine.advance(watermark=40)
    entry = engine.retained()
    assert entry.num_rows == 0
    other = Keyed(make_spec([w.lifetime()], dict(reversed(aggs.items())), keep=0))
    other.absorb(entry)
    one, two = (each.push(table_of(found[40:]), watermark=40).rows.to_pylist()[0] for each in (engine, other))
    assert {k: repr(v) for k, v in one.items()} == {k: repr(two[k]) for k in one}
