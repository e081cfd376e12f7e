"""What is forgotten and what is known: bounded state, late events, history, complete, time to live."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.naive_keyed import NaiveKeyed
from tests.live.streams import AGGS, Pair, make_spec, rows, streams, table_of

import slidewise as sw
from slidewise.errors import InputError
from slidewise.live.keyed import Keyed
from slidewise.windows import spec as w

EMPTY = {"x": None, "n": None, "shop": None, "paid": None, "note": None}


def event(id, ts, card="p", **more):
    return {"card": card, "ts": ts, "id": id, **EMPTY, "note": f"note {id}", **more}


@settings(max_examples=60)
@given(
    stream=streams(most=40),
    keep=st.integers(0, 40),
    late=st.sampled_from(["correct", "side", "drop"]),
    compact=st.booleans(),
    windows=st.sampled_from(
        [[w.time(10)], [w.rows(3)], [w.session(5), w.time(4, offset=3)], [w.lifetime(), w.delta("n", 1)]]
    ),
)
def test_what_is_forgotten_is_never_missed(stream, keep, late, windows, compact):
    """The oracle forgets nothing: a result that needed a forgotten event would differ."""
    pair = Pair(make_spec(windows, keep=keep, late=late))
    for part, watermark in stream:
        pair.push(part, watermark)
        pair.engine.retention.sweep()
        if compact:
            pair.engine.retention.compact()
            pair.engine.check()


@pytest.mark.parametrize(
    "windows", [[w.time(50)], [w.rows(5)], [w.session(3)], [w.lifetime()], [w.tumbling(40), w.time(10, slide=5)]]
)
@pytest.mark.parametrize("results", ["eager", "final"])
def test_state_does_not_grow(windows, results):
    rng = np.random.default_rng(1)
    spec = make_spec(windows, {"total": AGGS["total"], "shops": AGGS["shops"]}, results=results, ttl=200, watermark=10)
    engine = Keyed(spec)
    held, given_ = [], 0
    for n in range(120):
        times = n * 10 + rng.integers(0, 30, 40)
        part = [event(n * 40 + i, int(t), card=f"key {(n // 10) * 5 + i % 5}", x=1.0) for i, t in enumerate(times)]
        outcome = engine.push(table_of(part), watermark=n * 10, batch=n)
        given_ += outcome.counts["out"] - outcome.counts["touched"]
        held.append((engine.entries, engine.keys, engine.arena.top, engine.nbytes))
        engine.check()
    given_ += engine.advance(final=True).counts["out"]
    assert given_ == 4800
    early, late = np.array(held[40:60]).max(axis=0), np.array(held[100:]).max(axis=0)
    assert (late <= 1.2 * early).all()
    # Once everything is old, nothing is left.
    engine = Keyed(spec)
    engine.push(table_of(part), watermark=0)
    engine.advance(watermark=10**6)
    engine.retention.sweep()
    assert (engine.entries, engine.keys, engine.store.live) == (0, 0, 0)


@pytest.mark.parametrize("window", [w.delta("n", 2), w.punctuation("paid")])
def test_the_row_that_ended_a_run_stays_with_its_moment(window):
    """Another order of ties may let a row of its moment begin the run that goes on."""
    engine = Keyed(make_spec([window], {"total": AGGS["total"]}, keep=0, ttl=1000))
    values = [(1, 50), (10, 1), (10, 10), (20, 1), (30, 1), (90, 1)]  # in this order the run begins at 20
    part = [event(id, ts, n=n, x=1.0, paid=n == 10) for id, (ts, n) in enumerate(values)]
    engine.push(table_of(part), watermark=0)
    engine.advance(watermark=80)
    assert engine.retained().column("id").to_pylist() == [1, 2, 3, 4, 5]


def test_room_of_keys_that_are_gone_is_given_back():
    engine = Keyed(make_spec([w.time(10)], {"total": AGGS["total"]}, keep=0))
    burst = [event(n, 1, card=f"key {n}", x=1.0) for n in range(2000)]
    burst += [event(2000 + n, n % 9, card="busy", x=1.0) for n in range(3000)]
    engine.push(table_of(burst))
    full = engine.arena.top
    engine.push(table_of([event(9000, 100, card="busy", x=2.0)]), watermark=90)
    engine.retention.sweep()
    engine.check()
    assert engine.keys == 1 and engine.entries == 1 and engine.arena.top < full / 100
    found = engine.push(table_of([event(9001, 101, card="busy", x=3.0)]), watermark=90).rows.to_pylist()
    assert [row["total_10"] for row in found] == [5.0]


def test_keys_without_end_need_a_time_to_live():
    engine = Keyed(make_spec([w.rows(2)], keep=0))
    engine.push(table_of([event(0, 1), event(1, 2), event(2, 3)]))
    engine.advance(watermark=10**9)
    engine.retention.sweep()
    assert engine.keys == 1 and engine.entries == 3  # rows(2) and one more that a late row could push back in


def test_late_events_go_where_they_are_told():
    first = [event(0, 100), event(1, 110)]
    late = [event(2, 95), event(3, 60), event(4, 10)]
    for mode, accepted, side, dropped in (("correct", 2, 1, 0), ("side", 0, 3, 0), ("drop", 0, 0, 3)):
        engine = Keyed(make_spec([w.time(20)], late=mode, keep=50))
        engine.push(table_of(first), watermark=None, batch=0)
        outcome = engine.push(table_of(late), watermark=100, batch=1)
        counts = outcome.counts
        assert (counts["late"], counts["accepted"], counts["side"], counts["dropped"]) == (3, accepted, side, dropped)
        told = [row["id"] for row in outcome.rows.to_pylist() if row.get("late")]
        assert sorted(told) == {"correct": [4], "side": [2, 3, 4], "drop": []}[mode]
        if mode == "correct":
            again = [row["id"] for row in outcome.rows.to_pylist() if not row["late"]]
            assert sorted(again) == [0, 1, 2, 3]
            assert counts["touched"] == 2 and counts["corrected"] == 2


def test_events_ahead_and_without_a_time_go_the_way_of_the_late():
    engine = Keyed(make_spec([w.time(20)], max_ahead=30, late="side"))
    outcome = engine.push(table_of([event(0, 100), event(1, 131), event(2, None), event(3, 130)]), now=100)
    counts = outcome.counts
    assert (counts["ahead"], counts["bad"], counts["accepted"], counts["side"], counts["late"]) == (1, 1, 2, 2, 0)
    assert sorted(row["id"] for row in outcome.rows.to_pylist() if row["late"]) == [1, 2]


def test_an_event_seen_twice_counts_once_however_late_it_comes_again():
    engine = Keyed(make_spec([w.time(20)], late="side"))
    engine.push(table_of([event(0, 100), event(1, 130)]))
    outcome = engine.push(table_of([event(0, 100), event(1, 130), event(1, 140)]), watermark=120)
    assert outcome.counts["double"] == 3 and outcome.rows.num_rows == 0
    # The same id under another key is another event.
    assert engine.push(table_of([event(1, 130, card="q")]), watermark=120).counts["accepted"] == 1


def test_an_id_is_the_same_whatever_else_is_in_the_batch():
    """A null among the ids of a batch changes nothing for the others; it is an id too."""
    engine = Keyed(make_spec([w.time(20)]))
    engine.push(table_of([event(1, 100), event(2, 101)]))
    counts = engine.push(table_of([event(1, 100), event(None, 102), event(3, 103)])).counts
    assert (counts["double"], counts["accepted"]) == (1, 2)
    assert engine.push(table_of([event(3, 103), event(None, 102), event(0, 104)])).counts["double"] == 2


def test_a_short_time_to_live_takes_nothing_from_windows_of_time():
    """Nor do the ids of a key that is gone count for the one that has its place."""
    engine = Keyed(make_spec([w.rows(2), w.time(100)], keep=0, ttl=5))
    engine.push(table_of([event(0, 0)]))
    engine.advance(watermark=50)
    engine.retention.sweep()
    outcome = engine.push(table_of([event(0, 60, card="q"), event(1, 60)]), watermark=50)
    assert outcome.counts["double"] == 0
    assert {row["card"]: (row["count_2r"], row["count_100"]) for row in outcome.rows.to_pylist()} == {"q": (1, 1), "p": (2, 2)}


def test_an_event_is_counted_as_one_thing():
    """Taken in, put aside or double; and a double is not late as well, nor ahead, nor bad."""
    engine = Keyed(make_spec([10], keep=20, max_ahead=50))
    engine.push(table_of([event(1, 100), event(2, 95)]))
    again = [event(1, 100), event(2, 95), event(1, 60), event(2, None), event(1, 500)]  # late, in time or not, bad, ahead
    outcome = engine.push(table_of([*again, event(3, 97), event(3, 40), event(4, 40)]), watermark=99, now=110)
    counts = outcome.counts
    assert {name: counts[name] for name in ("in", "accepted", "double", "side", "late", "bad", "ahead")} == {
        "in": 8, "accepted": 1, "double": 6, "side": 1, "late": 2, "bad": 0, "ahead": 0}  # fmt: skip
    assert [row["id"] for row in outcome.rows.to_pylist() if row["late"]] == [4]
    # What was put aside is not remembered: its time may have been the wrong one.
    assert engine.push(table_of([event(4, 98)]), watermark=99, now=110).counts["accepted"] == 1


def test_a_key_whose_youngest_event_is_history_comes_again_only_when_it_changed():
    engine = Keyed(make_spec([w.time(100)], {"peak": AGGS["peak"]}, emit="latest", keep=1000))
    engine.absorb(engine.history(table_of([event(1, 100, x=5.0, paid=True)])))
    push = lambda n, x: engine.push(table_of([event(2 + n, 50 - n, x=x, paid=True)]), batch=n).rows.to_pylist()
    found = [push(n, x) for n, x in enumerate((1.0, 2.0, 9.0))]
    assert [[(row["ts"], row["peak_100"]) for row in rows] for rows in found] == [[(100, 5.0)], [], [(100, 9.0)]]


@pytest.mark.parametrize("results", ["eager", "final"])
def test_the_latest_of_a_key_may_be_history(results):
    """As on a frame, for keys that the stream has heard of."""
    past = [event(1, 20, n=1), event(2, 30, card="q", n=1), event(3, 10, card="r", n=1)]
    stream = [event(4, 15, n=5), event(5, 25, card="r", n=5)]
    asked = {"windows": [w.lifetime()], "aggs": {"s": sw.sum("n")}, "emit": "latest"}
    engine = Keyed(make_spec(*list(asked.values())[:2], emit="latest", results=results))
    engine.absorb(engine.history(table_of(past)))
    steps = [engine.push(table_of(stream)), engine.advance(watermark=16), engine.advance(final=True)]
    found = [sorted((row["card"], row["ts"], row["s_lifetime"]) for row in step.rows.to_pylist()) for step in steps]
    whole = sw.rolling(table_of(past + stream), time="ts", by="card", **asked).to_pylist()
    wanted = sorted((row["card"], row["ts"], row["s_lifetime"]) for row in whole if row["card"] != "q")
    assert wanted == [("p", 20, 6), ("r", 25, 6)]
    assert found == ([wanted, [], []] if results == "eager" else [[], [("p", 15, 5)], wanted])


def test_null_that_stays_null_does_not_come_again():
    """No event with a value, or one that carries none: null either way."""
    engine = Keyed(make_spec({"w": w.rows(1, slide=2)}, {"who": AGGS["who"]}, order="id", keep=1000))
    engine.push(table_of([event(1, 10, shop="q"), event(2, 20, x=5.0), event(3, 30, x=1.0, shop="z")]))
    rows = engine.push(table_of([event(4, 5, x=1.0, shop="m")])).rows.to_pylist()
    assert [(row["id"], row["who_w"]) for row in rows] == [(4, None), (3, "z")], "2 was null and is null"


@pytest.mark.parametrize("window", [w.session(10), w.rows(4, slide=2), w.punctuation("paid")], ids=str)
def test_windows_that_a_row_of_history_ends_are_given_for_the_events_of_the_stream_in_them(window):
    old = [event(n, ts, paid=ts in (22, 204)) for n, ts in enumerate((1, 3, 20, 22, 200, 204))]
    engine = Keyed(make_spec([window], {"n": AGGS["count"]}, emit="slide", results="final"))
    engine.absorb(engine.history(table_of(old)))
    new = [event(10, 21, paid=False), event(11, 23, paid=False)] if window.kind == "rows" else [event(10, 21, paid=False)]
    engine.push(table_of(new))
    given_out = sorted(row["ts"] for row in engine.advance(final=True).rows.to_pylist())
    # rows: 1 3 | 20 21 | 22 23 | 200 204, each with the two before
    assert given_out == {"session": [22], "rows": [21, 23, 204], "punctuation": [22]}[window.kind]


def test_nan_that_stays_nan_does_not_come_again():
    """Infinities that cancel give another NaN than one that was put in."""
    nan, inf = float("nan"), float("inf")
    for aggregate in (sw.sum("x"), sw.var("x"), sw.struct(a=sw.sum("x"), b=sw.mean("x"))):
        engine = Keyed(make_spec([w.time(100)], {"a": aggregate}, keep=1000))
        engine.push(table_of([event(1, 10, x=inf), event(2, 12, x=-inf), event(3, 13, x=1.0)]))
        rows = engine.push(table_of([event(4, 11, x=nan)])).rows.to_pylist()
        assert [row["id"] for row in rows] == [4]


@pytest.mark.parametrize("aggregate", [sw.sum("x", exact=True), sw.mean("x", exact=True), sw.sum("n"), sw.mean("n")], ids=str)
def test_an_event_without_a_value_changes_no_exact_result(aggregate):
    """It moves the ranks that partial results are grouped by, and only plain float sums know of their grouping."""
    rng = np.random.default_rng(2)
    engine = Keyed(make_spec([w.time(1000)], {"a": aggregate}, keep=1000))
    engine.push(table_of([event(i, 10 + i, x=float(rng.normal()), n=int(rng.integers(99))) for i in range(150)]))
    rows = engine.push(table_of([event(200, 5)])).rows.to_pylist()
    assert [row["id"] for row in rows] == [200]


def test_history_holds_an_event_once():
    engine = Keyed(make_spec([w.time(50)]))
    engine.absorb(engine.history(table_of([event(1, 10), event(2, 12), event(1, 10)])))
    engine.absorb(engine.history(table_of([event(2, 12), event(3, 13), event(3, 13, card="q")])))
    outcome = engine.push(table_of([event(1, 10), event(4, 20)]))
    assert outcome.counts["double"] == 1
    assert [row["count_50"] for row in outcome.rows.to_pylist()] == [4]


@settings(max_examples=30)
@given(
    past=rows(20, horizon=40, doubles=False),
    stream=streams(most=20, horizon=80, doubles=False),
    kind=st.sampled_from(["eager", "final"]),
)
def test_history_fills_windows_and_is_never_given(past, stream, kind):
    past = [dict(e, id=1000 + e["id"]) for e in past]
    spec = make_spec([w.time(30), w.rows(4)], results=kind, **({"keep": 1000} if kind == "eager" else {}))
    engine = Keyed(spec)
    engine.absorb(engine.history(table_of(past)))
    tables = []
    late = set()
    for n, (part, watermark) in enumerate(stream):
        tables.append(engine.push(table_of(part), watermark=watermark, batch=n).rows)
        late |= {e["id"] for e in part if kind == "final" and watermark is not None and e["ts"] < watermark}
    tables.append(engine.advance(final=True).rows)
    naive = NaiveKeyed(make_spec([w.time(30), w.rows(4)], keep=1000))
    wanted = naive.push(past + [e for part, _ in stream for e in part if e["id"] not in late])["new"]
    wanted = {naive.all_rows[uid]["id"]: found for uid, found in wanted.items()}
    found = {}
    for row in pa.concat_tables(tables).to_pylist():
        assert row["id"] < 1000
        if not row["late"]:
            found[row["id"]] = tuple(row[o.column] for o in spec.outputs)
    assert found == {id: results for id, results in wanted.items() if id < 1000}


def test_complete_says_whether_a_window_was_known_whole():
    spec = make_spec([w.time(10)], complete=True)
    engine = Keyed(spec)
    found = engine.push(table_of([event(0, 100), event(1, 108), event(2, 109), event(3, 110)])).rows.to_pylist()
    assert {row["ts"]: row["complete"] for row in found} == {100: False, 108: False, 109: True, 110: True}
    engine = Keyed(spec)
    engine.absorb(engine.history(table_of([event(9, 95)])))
    found = engine.push(table_of([event(0, 103), event(1, 104)])).rows.to_pylist()
    assert {row["ts"]: row["complete"] for row in found} == {103: False, 104: True}
    engine = Keyed(make_spec([w.rows(2)], complete=True))
    found = engine.push(table_of([event(0, 1), event(1, 2)])).rows.to_pylist()
    assert {row["ts"]: row["complete"] for row in found} == {1: False, 2: True}


WINDOWS = [
    w.time(10),
    w.time(12, slide=5, offset=2),
    w.rows(3),
    w.tumbling(15),
    w.session(6),
    w.delta("n", 2),
    w.punctuation("paid"),
    w.lifetime(),
]


@settings(max_examples=40)
@given(
    data=st.data(),
    closed=st.sampled_from(["right", "left", "both", "neither"]),
    ties=st.sampled_from(["peers", "arrival"]),
)
def test_stream_and_batch_end_with_the_same(data, closed, ties):
    events = data.draw(rows(data.draw(st.integers(1, 30)), doubles=False))
    exclude = data.draw(st.booleans())
    spec = make_spec(WINDOWS, closed=closed, ties=ties, exclude_current=exclude)
    engine = Keyed(spec)
    last = {}
    for n in range(0, len(events), 7):
        for row in engine.push(table_of(events[n : n + 7]), batch=n).rows.to_pylist():
            last[row["id"]] = row
    whole = sw.rolling(
        table_of(events),
        time="ts",
        by="card",
        windows=WINDOWS,
        aggs=AGGS,
        closed=closed,
        ties=ties,
        exclude_current=exclude,
        order=list(spec.tie_columns),
    )
    for row in whole.to_pylist():
        assert {name: last[row["id"]][name] for name in row} == row


def test_a_spec_says_what_cannot_be():
    with pytest.raises(InputError, match="gives each once"):
        make_spec([w.time(10)], results="final", late="correct")
    with pytest.raises(InputError, match="no column 'nope'"):
        make_spec([w.time(10)], id="nope")
    with pytest.raises(InputError, match="must be stored"):
        make_spec([w.time(10)], results="final", stored=["x"])
    with pytest.raises(InputError, match="stored: no column 'nope'"):
        make_spec([w.time(10)], stored=["nope"])
    with pytest.raises(InputError, match="results must be"):
        make_spec([w.time(10)], results="soon")


def test_columns_that_are_not_stored_ride_along_once():
    spec = make_spec([w.time(10)], {"total": AGGS["total"]}, stored=[])
    assert "note" not in spec.log_schema.names
    engine = Keyed(spec)
    engine.push(table_of([event(0, 100, x=1.0)]))
    found = {row["id"]: row["note"] for row in engine.push(table_of([event(1, 99, x=2.0)])).rows.to_pylist()}
    assert found == {0: None, 1: "note 1"}


@pytest.mark.parametrize("emit", ["slide", "latest"])
def test_columns_that_never_come_out_are_not_taken_along(emit):
    spec = make_spec([w.time(10, slide=5)], {"total": AGGS["total"]}, emit=emit)
    assert spec.schema.names == ["card", "ts", "x", "id"]
    assert spec.log_schema.names[:-1] == ["card", "ts", "x", "id"]
    assert Keyed(spec).push(table_of([event(0, 100, x=1.0)])).counts["accepted"] == 1
