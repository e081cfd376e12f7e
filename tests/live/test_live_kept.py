"""What `Live` answers does not depend on what was asked before, nor on when something was forgotten; keys and ids that are one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.live.streams import make_spec, table_of
from tests.live.test_keyed_retention import event

import slidewise as sw
from slidewise.errors import InputError
from slidewise.live.keyed import Keyed
from slidewise.windows import spec as w

NAN = float("nan")
COUNT = {"n": sw.count()}


def fed(live: sw.Live, *events: dict, asking: bool = False) -> sw.Live:
    for one in events:
        live.push(one)
        if asking:
            live.expire(-100)  # which flushes, and sweeps
    return live


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("before", [0, 1])
def test_every_nan_is_one_key_whatever_its_bits(kind, before):
    schema = pa.schema([("k", kind), ("j", pa.int64()), ("t", pa.int64())])
    for by in ("k", ["k", "j"]):
        live = sw.Live(windows=[sw.rows(9)], aggs=COUNT, by=by, time="t", schema=schema)
        for t in range(before):
            live.push({"k": NAN, "j": 1, "t": t})
            assert len(live.keys()) == 1
        live.push([{"k": NAN, "j": 1, "t": 2}, {"k": -NAN, "j": 1, "t": 3}, {"k": NAN, "j": 1, "t": 4}])
        assert live.query(NAN if by == "k" else (NAN, 1)) == {"n_9r": 3 + before}
        assert live.results()["n_9r"].to_pylist() == [3 + before]
        live._engine.check()


@pytest.mark.parametrize("asking", [False, True])
def test_a_key_whose_youngest_event_is_behind_what_is_kept(asking):
    """Its windows end at the first moment that is still kept: they hold what they hold whether anything was forgotten or not."""
    live = sw.Live(windows=[10, sw.time(3)], aggs=COUNT, by="k", time="t", watermark=0, keep=10)
    fed(live, *({"k": "a", "t": t} for t in (1, 5, 9)), {"k": "b", "t": 26}, asking=asking)
    assert live.query("a") == live.query("a", at=16) == {"n_10": 1, "n_3": 0}
    assert live.results().sort_by("k").to_pydict() == {"k": ["a", "b"], "n_10": [1, 1], "n_3": [0, 1]}
    assert live.results(at=26).sort_by("k")["n_10"].to_pylist() == [0, 1]
    with pytest.raises(InputError, match="before what is kept"):
        live.query("a", at=9)
    fed(live, {"k": "b", "t": 80}, asking=asking)
    assert live.query("a") == {"n_10": 0, "n_3": 0}
    assert live.results()["k"].to_pylist() == ["b"]


@pytest.mark.parametrize("asking", [False, True])
def test_a_lifetime_is_there_when_all_its_events_are_forgotten(asking):
    live = sw.Live(windows=[sw.lifetime()], aggs=COUNT, by="k", time="t", watermark=0)
    fed(live, {"k": "a", "t": 1}, {"k": "a", "t": 2}, {"k": "b", "t": 100}, asking=asking)
    assert live.query("a") == live.query("a", at=100) == {"n_lifetime": 2}
    for found in (live.results(), live.results(at=100)):
        assert found.sort_by("k").to_pydict() == {"k": ["a", "b"], "n_lifetime": [2, 1]}


@pytest.mark.parametrize("asking", [False, True])
def test_a_late_event_that_is_taken_in_finds_its_key(asking):
    """In time order, 111 comes before 121, and finds 100 less than ttl ago."""
    live = sw.Live(windows=[sw.rows(5)], aggs=COUNT, by="k", time="t", watermark=0, keep=10, ttl=20)
    fed(live, *({"k": k, "t": t} for k, t in (("a", 100), ("b", 121), ("a", 111))), asking=asking)
    assert live.query("a") == {"n_5r": 2}
    fed(live, {"k": "b", "t": 142}, asking=asking)
    assert live.query("a") == {"n_5r": 0}, "111 is more than ttl and keep ago"
    fed(live, {"k": "a", "t": 142}, asking=asking)
    assert live.query("a") == {"n_5r": 1}
    fed(live, {"k": "b", "t": 200}, asking=asking)
    assert live.query("a") == {"n_5r": 0}, "and gone, swept or not"
    assert live.results()["k"].to_pylist() == ["b"]


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary(1), pa.binary()], ids=str)
def test_an_id_of_bytes_is_the_same_whatever_else_is_in_the_batch(kind):
    live = sw.Live(windows=[sw.rows(9)], aggs=COUNT, time="t", id="id", schema=pa.schema([("t", pa.int64()), ("id", kind)]))
    live.push({"t": 1, "id": b"a"})
    assert live.counts["double"] == 0
    live.push([{"t": 1, "id": b"a"}, {"t": 2, "id": b"\xff"}])
    assert live.query() == {"n_9r": 2}
    assert live.counts["double"] == 1


@pytest.mark.parametrize("asking", [False, True])
def test_of_events_with_one_id_the_first_to_arrive_counts(asking):
    live = sw.Live(windows=[sw.rows(9)], aggs={"s": sw.sum("x")}, time="t", id="id")
    fed(live, {"t": 10, "id": 1, "x": 1}, {"t": 5, "id": 1, "x": 2}, {"t": 7, "id": 2, "x": 4}, asking=asking)
    assert live.query() == {"s_9r": 5}


def test_only_events_before_what_was_expired_are_late():
    live = sw.Live(windows=[100], aggs=COUNT, time="t")
    live.push([{"t": t} for t in range(51)])
    live.expire(40)
    live.push([{"t": 60}, {"t": 45}, {"t": 39}])
    assert (live.counts["late"], live.counts["dropped"], live.counts["corrected"]) == (1, 1, 1)


def test_lengths_beyond_all_times():
    live = sw.Live(windows=[sw.session(10**19), sw.time(10**19)], aggs=COUNT, time="t", watermark=0)
    fed(live, {"t": -5}, {"t": 1}, asking=True)
    assert set(live.query().values()) == {2}
    engine = Keyed(make_spec([w.session(10**19)]))
    engine.push(table_of([event(1, 5)]), watermark=4)
    assert engine.push(table_of([event(2, 3)]), watermark=4).counts["touched"] == 1


def test_after_a_flush_events_are_late_whatever_the_slide():
    for window in (w.time(10, slide=1), w.tumbling(1), w.time(10, slide=2)):
        engine = Keyed(make_spec([window], emit="slide"))
        engine.push(table_of([event(1, 5)]))
        engine.advance(final=True)
        outcome = engine.push(table_of([event(2, 6)]))
        assert (outcome.counts["late"], outcome.rows.num_rows, outcome.rows["late"].to_pylist()) == (1, 1, [True])
