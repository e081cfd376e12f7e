"""`sw.Live`: events one by one or in frames, answers at any time, snapshots."""

import dataclasses
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.naive_keyed import NaiveKeyed
from tests.live.streams import AGGS, SCHEMA, make_spec, rows, table_of

import slidewise as sw
from slidewise.errors import InputError, InputTypeError, StateError
from slidewise.live.snapshot import pack, unpack

WINDOWS = [sw.time(10), sw.rows(3), sw.session(6)]
ASKED = dict(windows=WINDOWS, aggs=AGGS, by="card", time="ts", id="id")


def start(hour, minute=0):
    return datetime(2024, 1, 1, hour, minute)


@settings(max_examples=30)
@given(events=rows(20), single=st.booleans())
def test_each_key_at_its_youngest_event(events, single):
    live = sw.Live(**ASKED, schema=SCHEMA)
    if single:
        for event in events:
            live.push(event)
    else:
        live.push(table_of(events))
    naive = NaiveKeyed(dataclasses.replace(make_spec(WINDOWS, AGGS), arrival=True))
    naive.push(events)
    assert len(live) == sum(map(len, naive.events.values()))
    assert sorted(live.keys(), key=repr) == sorted((key for (key,) in naive.events), key=repr)
    for (key,), found in naive.events.items():
        assert tuple(live.query(key).values()) == naive.results((key,), len(found) - 1)
    table = live.results().to_pylist()
    assert {row["card"]: tuple(row[o] for o in live.query("p")) for row in table} == {
        key: naive.results((key,), len(found) - 1) for (key,), found in naive.events.items()
    }


@settings(max_examples=30)
@given(
    events=rows(20, doubles=False), at=st.integers(-5, 80), closed=st.sampled_from(["right", "left", "both", "neither"])
)
def test_any_moment_is_as_of(events, at, closed):
    windows = [sw.time(10), sw.time(9, slide=4, offset=1), sw.tumbling(15), sw.rows(3), sw.session(6), sw.lifetime()]
    live = sw.Live(windows=windows, aggs=AGGS, by="card", time="ts", closed=closed, order=["id"])
    live.push(table_of(events))
    asked = pa.table({"card": pa.array(["p", "q", None]), "ts": [at] * 3})
    wanted = sw.as_of(
        asked, table_of(events), windows=windows, aggs=AGGS, by="card", time="ts", closed=closed, order=["id"]
    )
    for row in wanted.to_pylist():
        assert live.query(row["card"], at=at) == {
            name: value for name, value in row.items() if name not in ("card", "ts")
        }


def test_frames_of_every_kind():
    rows_ = [{"card": "a", "ts": start(9), "amount": 2.5}, {"card": "b", "ts": start(10), "amount": None}]
    answers = []
    for events in (
        rows_,
        pd.DataFrame(rows_),
        pl.DataFrame(rows_),
        pa.Table.from_pylist(rows_),
        pa.Table.from_pylist(rows_).to_batches()[0],
    ):
        live = sw.Live(windows="1h", aggs={"n": sw.count(), "total": sw.sum("amount")}, by="card", time="ts")
        live.push(events)
        answers.append((live.query("a"), live.query("b")))
    assert answers[0] == ({"n_1h": 1, "total_1h": 2.5}, {"n_1h": 1, "total_1h": None})
    assert all(answer == answers[0] for answer in answers)


def test_a_dict_that_is_used_again_is_another_event():
    live = sw.Live(windows=sw.time(10), aggs={"all": sw.collect("x")}, time="t")
    event = {}
    for t in range(3):
        event |= {"t": t, "x": 10**t}
        live.push(event)
    live.push([event])
    event["x"] = -1
    assert live.query() == {"all_10": [1, 10, 100, 100]}


@pytest.mark.parametrize("single", [True, False])
def test_ties_go_by_arrival(single):
    """As on a frame: `order=` first, then as events came, whatever their values; late ones too, and across a snapshot."""
    asked = dict(windows=[sw.rows(3), sw.time(10)], aggs={"all": sw.collect("x"), "first": sw.first("x")}, time="t")
    events = [{"t": t, "x": x, "o": o} for t, x, o in [(1, 3, 0), (2, 9, 0), (2, 1, 0), (1, 2, 0), (2, 5, 0), (2, 0, -1)]]
    for order, all_, last in ((None, [3, 2, 9, 1, 5, 0], [1, 5, 0]), ("o", [3, 2, 0, 9, 1, 5], [9, 1, 5])):
        live = sw.Live(**asked, order=order)
        for part in [[e] for e in events] if single else [events[:3], events[3:]]:
            live.push(part[0] if single else pa.Table.from_pylist(part))
            live.query()
        wanted = {"all_3r": last, "first_3r": last[0], "all_10": all_, "first_10": 3}
        assert live.query() == wanted
        back = sw.Live.from_bytes(live.to_bytes(), **asked, order=order)
        assert back.query() == wanted
        on_frame = sw.rolling(pa.Table.from_pylist(events), **asked, order=order, emit="latest").to_pylist()[0]
        assert {name: on_frame[name] for name in wanted} == wanted


def test_times_at_the_ends_of_int64():
    live = sw.Live(windows=[sw.time(2**63 - 1), sw.time(5, offset=2**62)], aggs={"n": sw.count()}, time="t", ties="arrival")
    live.push([{"t": -(2**63)}, {"t": -(2**63) + 1}, {"t": -3}])
    assert tuple(live.query().values()) == (3, 0)
    assert tuple(live.query(at=-(2**62)).values()) == (2, 1)
    live = sw.Live(windows=[sw.time(5, slide=3)], aggs={"n": sw.count()}, time="t")
    live.push({"t": 4})
    with pytest.raises(InputError, match="not taken in"):
        live.push(pa.table({"t": [2**63 - 1]}))
    with pytest.raises(InputError, match="can be counted"):
        live.query(at=2**63 - 1)
    assert live.query(at=6) == {"n_5_slide_3": 1} and len(live) == 1


@pytest.mark.parametrize("ties", ["peers", "arrival"])
def test_a_boundary_has_one_value_whatever_the_ties(ties):
    """Rows exactly on a boundary get what the boundary has, all rows of its time: what emit="slide" gives there."""
    asked = dict(windows={"w": sw.time(10, slide=5)}, aggs={"all": sw.collect("x")}, time="t", ties=ties)
    frame = pd.DataFrame({"t": [0, 5, 10, 10, 12], "x": [1, 2, 3, 4, 5]})
    table = pa.Table.from_pandas(frame)
    live = sw.Live(**asked)
    live.push(table)
    wanted = [[1], [1, 2], [2, 3, 4], [2, 3, 4], [2, 3, 4]]
    assert sw.rolling(table, **asked).column("all_w").to_pylist() == wanted
    assert sw.rolling(pl.from_arrow(table), **asked)["all_w"].to_list() == wanted
    assert [list(x) for x in sw.rolling(frame, **asked)["all_w"]] == wanted
    assert live.query() == {"all_w": wanted[-1]} and live.query(at=10) == {"all_w": wanted[2]}
    boundaries = sw.rolling(table, **asked, emit="slide").to_pydict()
    assert boundaries["t"][:3] == [0, 5, 10] and boundaries["all_w"][:3] == wanted[:3]


def test_without_a_key_and_with_several():
    live = sw.Live(windows=[sw.time(10)], aggs={"n": sw.count()}, time="ts")
    live.push([{"ts": 1}, {"ts": 5}])
    assert live.query() == {"n_10": 2} and live.query(at=12) == {"n_10": 1} and live.keys() == []
    live = sw.Live(windows=[sw.time(10)], aggs={"n": sw.count()}, by=["a", "b"], time="ts")
    live.push([{"ts": 1, "a": 1, "b": "x"}, {"ts": 5, "a": 1, "b": None}])
    assert live.query((1, None)) == {"n_10": 1} and set(live.keys()) == {(1, "x"), (1, None)}
    assert (1, "x") in live and (2, "x") not in live
    for wrong in ((1,), 5, "1x"):
        with pytest.raises(InputError, match="2 parts"):
            live.query(wrong)


def test_an_unknown_key_has_empty_windows():
    live = sw.Live(
        windows=[sw.time(10)], aggs={"n": sw.count(), "top": sw.max("x"), "all": sw.collect("x")}, by="k", time="t"
    )
    wanted = {"n_10": 0, "top_10": None, "all_10": []}
    assert live.query("a") == wanted and len(live) == 0
    live.push({"k": "a", "t": 3, "x": 1})
    assert live.query("b") == wanted
    assert live.query("a", at=1) == wanted


@pytest.mark.parametrize(
    ("key", "others"),
    [(1, [1.5, 2**70, Decimal("1.5")]), (start(0).date(), [start(15), start(0).replace(tzinfo=UTC)])],
)
def test_a_key_that_can_be_none_of_the_column_is_not_there(key, others):
    live = sw.Live(windows=[sw.rows(2)], aggs={"n": sw.count()}, by="k", time="t")
    live.push({"k": key, "t": 1})
    assert key in live and live.query(key) == {"n_2r": 1}
    for other in others:
        assert other not in live and live.query(other) == {"n_2r": 0}


@settings(max_examples=30)
@given(
    times=st.lists(st.integers(0, 12), max_size=8),
    at=st.integers(-2, 18),
    closed=st.sampled_from(["right", "left", "both", "neither"]),
)
def test_between_two_ticks_it_is_as_of_too(times, at, closed):
    windows = [sw.rows(3), sw.rows(4, slide=2), sw.lifetime()]
    if closed in ("left", "right"):
        windows += [sw.time(4), sw.time(5, offset=2), *([sw.time(6, slide=3)] if closed == "right" else [])]
    asked = dict(windows=windows, aggs={"seen": sw.collect("t")}, time="t", closed=closed)
    table = pa.table({"t": pa.array(times, pa.int64())})
    live = sw.Live(**asked, schema=table.schema)
    live.push(table)
    (wanted,) = sw.as_of(pa.table({"t": [at + 0.5]}), table, **asked).drop(["t"]).to_pylist()
    assert live.query(at=at + 0.5) == wanted


def test_stored_bytes_hold_where_boundaries_are_counted_from():
    """Another origin= would answer for other windows. However it is written, it is the same; bytes from before have none."""
    asked = dict(windows=[sw.time("1h", slide="1h"), sw.lifetime()], aggs={"n": sw.count()}, time="ts")
    made = {origin: sw.Live(**asked, origin=origin) for origin in (None, "15m")}
    for live in made.values():
        live.push({"ts": start(9)})
    data = made["15m"].to_bytes()
    for same in ("15m", timedelta(minutes=15), datetime(2024, 1, 1, 3, 15)):
        assert sw.Live.from_bytes(data, **asked, origin=same).query() == made["15m"].query()
    for other in (None, "20m"):
        with pytest.raises(StateError, match="give the same origin="):
            sw.Live.from_bytes(data, **asked, origin=other)
    description, sections = unpack("live", made[None].to_bytes())
    del description["origins"]
    before = pack("live", {key: value for key, value in description.items() if key not in ("kind", "sections")}, sections)
    assert sw.Live.from_bytes(before, **asked).query() == made[None].query()
    with pytest.raises(StateError, match="the default origin"):
        sw.Live.from_bytes(before, **asked, origin="15m")


def test_without_by_there_is_no_key_to_ask_for():
    """query(5) may be meant as at=5, and was answered for now."""
    live = sw.Live(windows=[10], aggs={"n": sw.count()}, time="t")
    for _ in range(2):  # before the first event, and after it
        for key in (5, "anything", ()):
            with pytest.raises(InputError, match=r"live\.query\(at="):
                live.query(key)
            assert key not in live
        live.push([{"t": 5}, {"t": 6}])
    assert live.query(at=5) == {"n_10": 2} and live.query() == live.query(None) and None not in live and live.keys() == []


KEYS = {
    "string_view": pa.array(["a", "", None], pa.string_view()),
    "binary_view": pa.array([b"a", b"", None], pa.binary_view()),
    "decimal32": pa.array([Decimal("1.1"), Decimal("2.2"), None], pa.decimal32(5, 1)),
    "decimal64": pa.array([Decimal("1.1"), Decimal("2.2"), None], pa.decimal64(15, 1)),
    "float16": pa.array([np.float16(1.5), np.float16(2), None], pa.float16()),
    "run ends": pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", "b", None]),
    "uuid": pa.array([UUID(int=7), UUID(int=8), None], pa.uuid()),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([0, 0, 5]), None]),
}


@pytest.mark.parametrize("column", KEYS.values(), ids=KEYS.keys())
def test_columns_that_rolling_takes_can_be_pushed(column):
    values = column.to_pylist()
    asked = dict(windows=[10], aggs={"n": sw.count(), "last": sw.last("k")}, by="k", time="t")
    table = pa.table({"k": pa.chunked_array([column, column]), "t": range(6)})
    live = sw.Live(**asked)
    live.push(table)
    wanted = [{"n_10": 2, "last_10": value} for value in values]
    assert sw.rolling(table, **asked)["n_10"].to_pylist() == [1, 1, 1, 2, 2, 2]
    for again in (live, sw.Live.from_bytes(live.to_bytes(), **asked)):
        assert again.keys() == values and [again.query(value) for value in values] == wanted
        assert [row["n_10"] for row in again.results().to_pylist()] == [2, 2, 2]
    live.push({"k": values[0], "t": 6})
    assert live.query(values[0])["n_10"] == 3
    plainly = sw.Live(**{**asked, "by": None})
    plainly.push(table)
    assert sw.Live.from_bytes(plainly.to_bytes(), **{**asked, "by": None}).query() == {"n_10": 6, "last_10": values[1]}


def test_columns_that_cannot_be_pushed_are_named():
    asked = dict(windows=[10], aggs={"s": sw.sum("x")}, by="k", time="t")
    for frame in (
        pd.DataFrame([["a", 1, 2, 3]], columns=["k", "t", "x", "x"]),
        pa.table([["a"], [1], [2], [3]], names=["k", "t", "x", "x"]),
    ):
        with pytest.raises(InputError, match="2 columns named 'x'"):
            sw.Live(**asked).push(frame)
    lists = pa.ExtensionArray.from_storage(pa.opaque(pa.list_(pa.int64()), "lists", "us"), pa.array([[1]]))
    with pytest.raises(InputTypeError, match="key column 'k'"):
        sw.Live(**asked).push(pa.table({"k": lists, "t": [1], "x": [1]}))
    live = sw.Live(**asked)
    live.push({"k": "a", "t": 1, "x": 1})
    with pytest.raises(InputTypeError, match="column 'x'"):
        live.push(pa.table({"k": ["a"], "t": [1], "x": ["one"]}))
    with pytest.raises(InputTypeError, match="column x"):
        live.push(pd.DataFrame({"k": ["a", "a"], "t": [1, 2], "x": [1, "one"]}))


def test_other_columns_of_pandas_may_be_anything_and_sparse_ones_are_read():
    sparse = pd.arrays.SparseArray([0, 0, 3])
    frame = pd.DataFrame([[1, "p", 1], [2, 5, 2], [3, None, 3]], columns=["t", "mixed", "mixed"]).assign(x=sparse)
    live = sw.Live(windows=[10], aggs={"s": sw.sum("x")}, time="t")
    live.push(frame)
    assert live.query() == {"s_10": 3}


def test_time_and_key_may_be_levels_of_the_index_of_pandas():
    frame = pd.DataFrame({"t": [1, 2, 3], "k": ["a", "b", "a"], "x": [1, 2, 4]})
    asked = dict(windows=[10], aggs={"s": sw.sum("x")}, by="k", time="t")
    for levels in ("t", ["k", "t"]):
        live = sw.Live(**asked)
        live.push(frame.set_index(levels))
        assert live.query("a") == {"s_10": 5} and live.query("b") == {"s_10": 2}


@pytest.mark.parametrize("time", [float("inf"), float("-inf"), float("nan"), np.float64("inf")])
def test_a_time_that_is_no_finite_number_is_refused_at_push(time):
    live = sw.Live(windows=[10], aggs={"n": sw.count()}, time="t", schema=[("t", pa.float64())])
    with pytest.raises(InputError, match="time 't'"):
        live.push({"t": time})
    assert live.query() == {"n_10": 0}


def test_moments_are_not_rounded():
    live = sw.Live(windows=["36h"], aggs={"n": sw.count()}, time="day", closed="left")
    live.push([{"day": start(0).date()}, {"day": start(0).date() + timedelta(1)}])
    assert live.query(at=start(12) + timedelta(1)) == {"n_36h": 2}
    assert live.query(at=start(13) + timedelta(1)) == {"n_36h": 1}
    assert live.query(at=pd.Timestamp("2024-01-02 00:00:00.000000001")) == {"n_36h": 2}
    with pytest.raises(InputTypeError, match="time zone"):
        live.query(at=start(12).replace(tzinfo=UTC))
    live = sw.Live(windows=[sw.tumbling("1h")], aggs={"n": sw.count()}, time="ts", schema=[("ts", pa.timestamp("s", "UTC"))])
    live.push({"ts": start(9).replace(tzinfo=UTC)})
    with pytest.raises(InputTypeError, match="time zone"):
        live.query(at=start(9))
    with pytest.raises(InputError, match="between two ticks"):
        live.query(at=start(9).replace(tzinfo=UTC, microsecond=1))


@pytest.mark.parametrize(
    ("kind", "fits", "wrong"),
    [
        (pa.timestamp("ms"), start(9).replace(microsecond=1000), start(9).replace(microsecond=1500)),
        (pa.timestamp("us"), start(9), pd.Timestamp("2024-01-01 00:00:00.000000001")),
        (pa.date32(), start(0), start(9)),
        (pa.duration("ms"), timedelta(milliseconds=1), timedelta(microseconds=1500)),
        (pa.time32("s"), start(9).time(), start(9).replace(microsecond=1).time()),
    ],
)
def test_an_event_is_not_cut_to_fit(kind, fits, wrong):
    live = sw.Live(windows=[sw.rows(2)], aggs={"n": sw.count("x")}, time="t", schema=[("t", pa.int64()), ("x", kind)])
    live.push({"t": 1, "x": fits})
    with pytest.raises(InputTypeError, match="'x' is"):
        live.push({"t": 2, "x": wrong})
    assert live.query() == {"n_2r": 1}


def test_expire_forgets_what_no_later_window_needs():
    live = sw.Live(windows=["1h"], aggs={"n": sw.count()}, by="k", time="t")
    for minute in range(180):
        live.push({"k": "ab"[minute % 2], "t": start(9) + timedelta(minutes=minute)})
    assert live.expire(start(11)) == 60
    assert len(live) == 120 and live.query("a", at=start(11)) == {"n_1h": 30}
    with pytest.raises(InputError, match="before what is kept"):
        live.query("a", at=start(10))
    live.push({"k": "a", "t": start(10)})
    assert live.counts["dropped"] == 1 and live.counts["late"] == 1 and len(live) == 120
    assert live.expire(start(23)) == 120 and live.keys() == []


def test_a_watermark_bounds_what_is_held():
    live = sw.Live(windows=[sw.time(10)], aggs={"n": sw.count()}, time="t", watermark=5, keep=0)
    most = 0
    for t in range(3000):
        live.push({"t": t})
        if t % 100 == 0:
            most = max(most, len(live))
    assert most < 600 and live.query() == {"n_10": 10}
    live.push({"t": 100})
    assert live.counts["dropped"] == 1


def test_snapshots():
    live = sw.Live(**ASKED)
    live.push(table_of([dict(card="p", ts=t, x=t / 3, n=t, shop="a", paid=True, id=t, note=None) for t in range(50)]))
    live.expire(20)
    data = live.to_bytes()
    back = sw.Live.from_bytes(data, **ASKED)
    assert back.query("p") == live.query("p") and len(back) == len(live) and back.counts == live.counts
    again = dict(card="p", ts=30, x=1.0, n=0, shop="b", paid=True, id=30, note=None)
    back.push(again)
    assert back.counts["double"] == 1
    assert sw.Live.from_bytes(back.to_bytes(), **ASKED).query("p") == live.query("p")
    empty = sw.Live(**ASKED)
    assert len(sw.Live.from_bytes(empty.to_bytes(), **ASKED)) == 0


def test_damaged_and_foreign_snapshots_are_refused():
    live = sw.Live(**ASKED)
    live.push(table_of([dict(card="p", ts=1, x=1.0, n=1, shop="a", paid=True, id=1, note=None)]))
    data = live.to_bytes()
    for broken in (b"", b"nonsense", data[:-1], data[:100], data[:200] + b"\x00" + data[201:]):
        with pytest.raises(StateError):
            sw.Live.from_bytes(broken, **ASKED)
    with pytest.raises(StateError, match="stored for"):
        sw.Live.from_bytes(data, **{**ASKED, "aggs": {"n": sw.count()}})
    with pytest.raises(StateError, match="live"):
        sw.Live.from_bytes(sw.Window(sw.count(), time_dtype="i8").to_bytes(), **ASKED)


def test_bytes_are_not_read_with_other_types_than_they_were_stored_with():
    asked = dict(windows=[10], aggs={"n": sw.count()}, time="t")
    live = sw.Live(**asked)
    live.push({"t": 1})
    data = live.to_bytes()
    assert sw.Live.from_bytes(data, **asked, schema=[("t", pa.int64())]).query() == {"n_10": 1}
    with pytest.raises(StateError, match=r"t int64.*t double"):
        sw.Live.from_bytes(data, **asked, schema=[("t", pa.float64())])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"id": 5}, "id= takes names"),
        ({"id": ["i", "i"]}, "id= names a column twice"),
        ({"watermark": -1}, "watermark must be at least zero"),
        ({"watermark": True}, "watermark must be text"),
        ({"watermark": 5, "keep": [1]}, "keep must be text"),
        ({"keep": 5}, "give both"),
        ({"ttl": "soon"}, "ttl"),
    ],
)
def test_wrong_options_are_refused_before_the_first_event(wrong, said):
    with pytest.raises((InputError, InputTypeError), match=said):
        sw.Live(windows=[10], aggs={"n": sw.count()}, time="t", **wrong)


def test_an_operator_without_a_name_or_a_description_cannot_be_stored():
    """Nothing would tell its snapshots from another's."""

    class Scale:
        def __call__(self, x):
            return x

    scale = Scale()
    make = lambda **name: sw.operator(lift=lambda x: scale(x), combine=lambda a, b: a + b, identity=0, **name)("n")
    asked = ASKED | {"aggs": {"own": make()}}
    with pytest.raises(sw.UnsupportedError, match="give it one"):
        sw.Live(**asked).to_bytes()
    assert sw.Live(**(asked | {"aggs": {"own": make(name="own")}})).to_bytes()


def test_wrong_events_say_what_is_wrong():
    live = sw.Live(windows=["1h"], aggs={"total": sw.sum("amount")}, by="card", time="ts")
    with pytest.raises(InputError, match="'amount'"):
        live.push({"card": "a", "ts": start(9)})
    with pytest.raises(InputError, match="give schema="):
        live.push({"card": "a", "ts": start(9), "amount": None})
    live.push({"card": "a", "ts": start(9), "amount": 1})
    with pytest.raises(InputTypeError, match="'amount' is 'much'"):
        live.push({"card": "a", "ts": start(9), "amount": "much"})
    with pytest.raises(InputTypeError, match=r"'amount' is 2\.5"):
        live.push({"card": "a", "ts": start(9), "amount": 2.5})
    with pytest.raises(InputError, match="without a time"):
        live.push({"card": "a", "ts": None, "amount": 1})
    with pytest.raises(InputTypeError, match="'ts'"):
        live.push({"card": "a", "ts": start(9).replace(tzinfo=UTC), "amount": 1})
    with pytest.raises(InputTypeError, match="a dict"):
        live.push([1])
    with pytest.raises(InputTypeError, match="not str"):
        live.push("row")
    with pytest.raises(InputTypeError, match="do not fit"):
        live.push(pa.table({"card": ["a"], "ts": [start(9)], "amount": ["much"]}))
    assert live.query("a") == {"total_1h": 1}


def test_the_first_frame_fixes_types_only_where_it_has_some():
    """A pandas column without values has none: an empty frame is passed over, a full one refused as a dict is."""
    asked = dict(windows=["1h"], aggs={"n": sw.count("x")}, by="k", time="t")
    full = pd.DataFrame({"t": [start(9)], "k": ["a"], "x": [1.5]})
    live = sw.Live(**asked)
    live.push(full.iloc[:0])
    live.push(full)
    assert live.query("a") == {"n_1h": 1}
    live = sw.Live(**asked)
    with pytest.raises(InputError, match=r"'x' is not known.*schema="):
        live.push(full.assign(x=None))
    live.push(full)
    assert live.query("a") == {"n_1h": 1}
    with pytest.raises(InputError, match="no column 'k'"):
        sw.Live(**asked).push(pd.DataFrame({"t": [], "x": []}))


@pytest.mark.parametrize("value", [2**70, pd.NaT, np.datetime64("2024-01-01"), object()], ids=["integer", "NaT", "day", "object"])
def test_first_values_that_have_no_type(value):
    for column in ("t", "x"):
        event = {"t": start(9), "x": 1} | {column: value}
        with pytest.raises(InputTypeError, match=f"'{column}'"):
            sw.Live(windows=["1h"], aggs={"n": sw.count("x")}, time="t").push(event)
    with pytest.raises(InputTypeError, match="schema="):
        sw.Live(windows=["1h"], aggs={"n": sw.count("x")}, time="t", schema=3)


@pytest.mark.parametrize("wrong", [2**53 + 1, -(2**70), 10**400, Fraction(1, 2), True], ids=["odd", "far", "all", "half", "yes"])
def test_what_a_float_column_cannot_hold_is_refused_when_it_comes(wrong):
    """And nothing that came before it is lost."""
    live = sw.Live(windows=[sw.rows(10)], aggs={"n": sw.count(), "top": sw.max("x")}, time="t")
    live.push({"t": 1, "x": 1.0})
    with pytest.raises(sw.SlidewiseError, match="'x' is"):
        live.push({"t": 2, "x": wrong})
    live.push([{"t": 3, "x": 2**53}, {"t": 4, "x": np.float32(0.5)}])
    assert live.query() == {"n_10r": 3, "top_10r": 2.0**53}


def test_text_without_bytes_is_refused_when_it_comes():
    live = sw.Live(windows=[sw.rows(10)], aggs={"last": sw.last("x")}, time="t")
    live.push({"t": 1, "x": "é"})
    with pytest.raises(sw.SlidewiseError, match="'x' is"):
        live.push({"t": 2, "x": "\ud800"})
    assert live.query() == {"last_10r": "é"}


@pytest.mark.parametrize("first", [[1], [None], ["ab"], [1, {"t": 1, "x": 1.0}]])
def test_a_first_event_that_is_no_dict(first):
    with pytest.raises(sw.SlidewiseError, match="an event is a dict"):
        sw.Live(windows=[sw.rows(10)], aggs={"s": sw.sum("x")}, time="t").push(first)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_polars(kind):
    frame = pl.DataFrame({"t": [1, 2, 3], "k": pl.Series(["b", "a", "b"], dtype=kind), "x": [1, 2, 4]})
    live = sw.Live(windows=[sw.rows(10)], aggs={"s": sw.sum("x"), "all": sw.collect("k")}, by="k", time="t")
    live.push(frame)
    live.push(frame)
    assert live.query("b") == {"s_10r": 10, "all_10r": ["b", "b", "b", "b"]}
