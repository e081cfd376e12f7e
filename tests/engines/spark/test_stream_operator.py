"""The stateful operator on states that are dicts: long histories of faults, merging and forgetting, moved buckets."""

from __future__ import annotations

import datetime as dt
import json
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.spark.harness import Harness

import slidewise as sw
from slidewise.engines.spark import processor as glue
from slidewise.engines.spark import rebucket, upgrade
from slidewise.engines.spark.log import Limits, decode_head
from slidewise.engines.spark.packing import DROP, KEYS, LOAD, NOTES, Packer, Unpacker, blob_of
from slidewise.errors import StateError
from slidewise.live.spec import stream_spec
from slidewise.planner.request import request

SCHEMA = pa.schema([("id", pa.int64()), ("card", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("amount", pa.int64())])
SMALL = Limits(fan=2, young=1, full=1 << 14, slack=8)
SECOND = 1_000_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _put_back(monkeypatch: pytest.MonkeyPatch):
    """The harness puts its own worker and task in the place of Spark's."""
    monkeypatch.setattr(glue.workers, "CACHE", glue.workers.CACHE)
    monkeypatch.setattr(glue, "TaskContext", glue.TaskContext)


def make(windows="1m", results="eager", aggs=None, emit="event", **options):
    aggs = aggs or {"n": sw.count(), "total": sw.sum("amount")}
    asked = request(time="ts", by="card", windows=windows, aggs=aggs, order="id", emit=emit)
    return stream_spec(asked, SCHEMA, id="id", results=results, watermark="30s", **options)


def events(seed: int, count: int = 120, seconds: int = 400) -> list[dict]:
    rng = random.Random(seed)
    found = [{"id": i, "card": rng.choice("pqrstu"), "ts": rng.randrange(seconds) * SECOND, "amount": rng.randrange(9)}
             for i in range(count)]  # fmt: skip
    return sorted(found, key=lambda row: row["ts"] + rng.uniform(0, 25) * SECOND)


def table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def expected(rows: list[dict], spec) -> dict[int, dict]:
    asked = spec.request
    found = sw.rolling(table(rows), time="ts", by="card", windows=asked.windows, aggs=asked.aggs, order="id")
    return {row["id"]: row for row in found.to_pylist()}


class Watermark:
    """As Spark computes it: the youngest time of earlier batches less the delay, in milliseconds."""

    def __init__(self, delay: int = 30):
        self.delay, self.youngest = delay, None

    def __call__(self, rows: list[dict]) -> int:
        now = 0 if self.youngest is None else max(0, (self.youngest - self.delay * SECOND) // 1000)
        self.youngest = max([row["ts"] for row in rows] + ([] if self.youngest is None else [self.youngest]), default=None)
        return now


def last_words(rows: list[dict]) -> dict[int, dict]:
    found = {row["id"]: row for row in sorted(rows, key=lambda row: row["revision"])}
    return {i: {n: v for n, v in row.items() if n not in ("revision", "late")} for i, row in found.items()}


@pytest.mark.parametrize("windows", [["1m"], ["20s", sw.rows(4)], [sw.session("15s")], [sw.lifetime(), "1m"]], ids=str)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), results=st.sampled_from(["eager", "final"]))
def test_any_history_of_faults_ends_where_the_frame_does(windows, seed: int, results: str) -> None:
    """Batches fail and come again in another order, partitions move between workers, entries are merged all the time."""
    rng = random.Random(seed)
    spec = make(windows, results, ttl="1d")
    home, rows, clock, given_out = Harness(spec, limits=SMALL), events(seed), Watermark(), []
    at = 0
    while at < len(rows):
        size = rng.randrange(1, 30)
        piece, at = rows[at : at + size], at + size
        watermark = clock(piece)
        while rng.random() < 0.3:
            home.batch(table(piece), watermark, worker=rng.choice("ab"), fail=True)
            rng.shuffle(piece)
        given_out += home.batch(table(piece), watermark, worker=rng.choice("ab"))[0]
    given_out += home.flush()[0]
    assert last_words(given_out) == expected(rows, spec)
    assert results == "eager" or len(given_out) == len(rows), "final results come once"


def test_a_fork_in_the_same_workers() -> None:
    spec = make()
    home, rows = Harness(spec, limits=SMALL), events(3)
    begun = home.batch(table(rows[:40]))[0]
    there = home.fork()
    here_rows = begun + home.batch(table(rows[40:80]))[0]
    there_rows = begun + there.batch(table(rows[80:]))[0]
    assert last_words(here_rows) == expected(rows[:80], spec)
    assert last_words(there_rows) == expected(rows[:40] + rows[80:], spec)


def test_batches_that_hit_the_cache_read_no_old_entries() -> None:
    spec = make()
    home, rows, clock = Harness(spec, limits=SMALL), events(5, 400, 4000), Watermark()
    seen = []
    for at in range(0, len(rows), 10):
        seen += home.batch(table(rows[at : at + 10]), clock(rows[at : at + 10]))[1]
    assert sum(c["entries_read"] for c in seen) == 0
    assert sum(c["hits"] for c in seen) > 100 and sum(c["replays"] + c["catch_ups"] for c in seen) == 0
    assert max(c["state_entries"] for c in seen) < 25, "old segments go, young ones are merged"
    assert max(c["live_events"] for c in seen) < 60, "only what a window or a correction can reach is alive"


TTL = 40


def lives(rows: list[dict], pieces: list[tuple[list[dict], int]]) -> list[list[dict]]:
    """The events of each life of a key: one ends when the watermark is `ttl` ahead of all of them and another event comes."""
    found: list[list[dict]] = []
    for card in dict.fromkeys(row["card"] for row in rows):
        life: list[dict] = []
        for piece, watermark in pieces:
            new = [row for row in piece if row["card"] == card]
            if new and life and max(row["ts"] for row in life) < watermark * 1000 - TTL * SECOND:
                found.append(life)
                life = []
            life = life + new
        found.append(life)
    return found


@pytest.mark.parametrize("windows", [[sw.rows(3)], [sw.lifetime()], [sw.delta("amount", 4), sw.rows(2)]], ids=str)
@pytest.mark.parametrize("results", ["eager", "final"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_an_idle_key_begins_anew_wherever_its_bucket_is(windows, results: str, seed: int) -> None:
    """Whether a sweep came by, the log was merged, or the windows were rebuilt: the answers are the same."""
    rng = random.Random(seed)
    spec = make(windows, results, ttl=f"{TTL}s", keep="0s", late="side")
    rows, clock, pieces, at = events(seed, 90, 1500), Watermark(), [], 0
    while at < len(rows):
        size = rng.randrange(1, 12)
        piece, at = rows[at : at + size], at + size
        watermark = clock(piece)
        pieces.append(([row for row in piece if row["ts"] >= watermark * 1000], watermark))
    home, found = Harness(spec, limits=SMALL), []
    for piece, watermark in pieces:
        found += home.batch(table(piece), watermark, worker=rng.choice("abc"))[0]
    found += home.flush()[0]
    wanted: dict = {}
    for life in lives(rows, pieces):
        wanted |= expected(life, spec)
    assert last_words(found) == wanted
    assert results == "eager" or len(found) == len(wanted)


@pytest.mark.parametrize("windows", [["1m"], [sw.rows(3)], [sw.session("15s")]], ids=str)
@pytest.mark.parametrize("fan", [2, 3])
def test_hits_read_nothing_after_a_rewrite_either(windows, fan: int) -> None:
    spec, rng = make(windows, ttl="5m"), random.Random(fan)
    home, rows, clock = Harness(spec, limits=replace(SMALL, fan=fan)), events(7, 1500, 15000), Watermark()
    seen = []
    for at in range(0, len(rows), 12):
        worker = "b" if rng.random() < 0.2 else "a"
        seen += home.batch(table(rows[at : at + 12]), clock(rows[at : at + 12]), worker=worker)[1]
    hits = [count for count in seen if count["hits"]]
    assert len(hits) > 100 and sum(count["entries_read"] for count in hits) == 0


@pytest.mark.parametrize("windows", [["1m"], [sw.rows(3)], [sw.session("15s")]], ids=str)
def test_stored_state_is_bounded(windows) -> None:
    spec = make(windows, ttl="5m")
    home, rows, clock = Harness(spec, limits=SMALL), events(7, 1500, 15000), Watermark()
    stored = []
    for at in range(0, len(rows), 50):
        counts = home.batch(table(rows[at : at + 50]), clock(rows[at : at + 50]))[1]
        stored.append(sum(c["state_bytes"] for c in counts))
    assert max(stored[-10:]) < 2.5 * max(stored[3:13])


@pytest.mark.parametrize("worker", ["a", "b"])
@pytest.mark.parametrize("lost", [("head",), ("head", "log")], ids=str)
def test_a_lost_head_is_no_silent_beginning(worker: str, lost: tuple) -> None:
    """With rows for the bucket or without, in the worker that has its windows or in another."""
    home, rows = Harness(make()), events(3)
    home.batch(table(rows[:60]))
    for name, label in list(home.state):
        if name in lost:
            del home.state[name, label]
    for more in (None, table(rows[60:])):
        with pytest.raises(StateError, match=r"stored state of bucket \d+: it.* is missing"):
            home.batch(more, worker=worker)


def test_final_results_of_quiet_buckets_come_with_the_watermark() -> None:
    spec = make(results="final")
    home, rows = Harness(spec, buckets=8), events(9)
    quiet, others = [r for r in rows if r["card"] == "p"][:1], [r for r in rows if r["card"] != "p"]
    assert home.batch(table(quiet + others[:5]))[0] == []
    late_watermark = (max(r["ts"] for r in quiet) + 1) // 1000 + 1
    found = home.batch(table(others[-5:]), late_watermark)[0]
    assert quiet[0]["id"] in {row["id"] for row in found}
    assert quiet[0]["id"] not in {row["id"] for row in home.batch(None, late_watermark + 60_000)[0]}, "and only once"


def test_quiet_buckets_cost_nothing_once_they_have_nothing_left() -> None:
    spec = make(results="final")
    home, rows = Harness(spec), events(11)
    home.batch(table(rows))
    end = max(row["ts"] for row in rows) // 1000
    assert len(home.batch(None, end + 1000)[0]) == len(rows)
    visits = [len(home.batch(None, end + 1000 * k)[1]) for k in range(2, 400, 20)]
    assert sum(visits[-5:]) == 0, "after the windows have passed nobody looks"


def test_idle_keys_of_quiet_buckets_go_when_their_time_is_over() -> None:
    home, rows = Harness(make([sw.rows(3)], ttl="5m")), events(31)
    home.batch(table(rows))
    end = max(row["ts"] for row in rows) // 1000
    seen = [count for k in range(1, 40) for count in home.batch(None, end + 20_000 * k)[1]]
    alive = {count["label"]: (count["live_keys"], count["live_events"]) for count in seen}
    assert len(alive) > 1 and set(alive.values()) == {(0, 0)}


def test_flush_gives_what_is_due_and_later_events_are_late() -> None:
    spec = make(results="final")
    home, rows = Harness(spec, limits=SMALL), events(13)
    first = home.batch(table(rows[:100]))[0]
    rest = home.flush()[0]
    assert last_words(first + rest) == expected(rows[:100], spec)
    assert home.flush()[0] == []
    again, counts = home.batch(table(rows[100:]))
    assert {row["late"] for row in again} == {True} and sum(c["side"] for c in counts) == 20


def test_history_in_several_pieces_and_merged_afterwards() -> None:
    spec = make(["2m"])
    rows = sorted(events(15), key=lambda row: row["ts"])
    home, clock, found = Harness(spec, limits=SMALL), Watermark(), []
    for at in range(60, len(rows), 6):
        piece = rows[at : at + 6]
        history = table(rows[:60]) if at == 60 else None
        found += home.batch(table(piece), clock(piece), history=history, worker="ab"[at % 4 > 1])[0]
    whole = expected(rows, spec)
    assert last_words(found) == {row["id"]: whole[row["id"]] for row in rows[60:]}


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("results", ["eager", "final"])
@pytest.mark.parametrize("seed", range(4))
def test_boundaries_that_hold_an_event_of_the_stream_are_given_whatever_history_holds(buckets, results, seed) -> None:
    """History of some keys may reach further than the first events of others; its end is the same for all buckets."""
    rng = random.Random(seed)
    rows = events(seed + 40, 160, 300)
    old = [row for row in rows if row["ts"] < 150 * SECOND and rng.random() < 0.7]
    new = [row for row in rows if row not in old]
    end = max(row["ts"] for row in old)
    spec = replace(make({"w": sw.time("20s", slide="5s")}, results, emit="slide", aggs={"n": sw.count(), "peak": sw.max("amount")},
                        **({"keep": "10m"} if results == "eager" else {})), known_until=end)  # fmt: skip
    home, found, clock = Harness(spec, buckets=buckets, limits=SMALL), [], Watermark(400)
    for at in range(0, len(new), 10):
        piece = new[at : at + 10]
        found += home.batch(table(piece), clock(piece), history=table(old) if at == 0 else None, worker=rng.choice("ab"))[0]
    found += home.flush()[0]
    given_out = {}
    for row in found:
        place, answer = (row["card"], row["ts"]), (row["n_w"], row["peak_w"])
        assert given_out.get(place) != answer, "only what changed comes again"
        assert place not in given_out or results == "eager", "final results come once"
        given_out[place] = answer
    asked = spec.request
    whole = sw.rolling(table(rows), time="ts", by="card", windows=asked.windows, aggs=asked.aggs, emit="slide").to_pylist()
    wanted = {}
    for row in whole:
        at = int((row["ts"] - EPOCH).total_seconds()) * SECOND
        if at > end or (at == end and results == "final") or any(
            r["card"] == row["card"] and at - 20 * SECOND < r["ts"] <= at for r in new
        ):
            wanted[row["card"], row["ts"]] = (row["n_w"], row["peak_w"])
    assert given_out == wanted


# ---- changed queries and buckets -----------------------------------------------------------------------------------------------


def test_a_changed_query_is_served_from_the_log() -> None:
    home, rows = Harness(make(["1m", "2m"]), limits=SMALL), events(17)
    home.batch(table(rows[:60]))
    changed = make(["90s"], aggs={"peak": sw.max("amount")})
    home.use(changed, limits=SMALL)
    found = home.batch(table(rows[60:]))[0]
    whole = expected(rows, changed)
    assert {row["id"] for row in found} >= {row["id"] for row in rows[60:]}
    for i, row in last_words(found).items():
        assert row == whole[i]
    home.batch(None)
    assert upgrade.encoded(changed) == decode_head(home.state["head", home.labels[0]][0], "").signature


def test_what_cannot_be_served_is_refused_and_nothing_changes() -> None:
    home, rows = Harness(make(["1m"]), limits=SMALL), events(19)
    home.batch(table(rows[:60]))
    before = home.fork().state
    for wrong in (make(["10m"]), make([sw.rows(5)], ttl="1d"), make(["1m"], results="final"), make([sw.lifetime()], ttl="1d")):
        home.use(wrong, limits=SMALL)
        with pytest.raises(StateError, match="stored state of bucket"):
            home.batch(table(rows[60:]))
        with pytest.raises(StateError, match="stored state of bucket"):
            home.batch(None)
        assert home.state == before


SHARED = {"n": sw.count("amount"), "total": sw.sum("amount")}
"""Both are read from one state."""


@pytest.mark.parametrize(("before", "after", "words"), [
    ({"windows": ["1m", sw.rows(3)], "keep": "0s"}, {"windows": [sw.rows(3)], "keep": "1m"}, "corrected 0 ticks behind"),
    ({"windows": [sw.lifetime()], "aggs": SHARED}, {"windows": [sw.lifetime()], "aggs": {"n": SHARED["n"]}}, "not kept for"),
], ids=["a longer keep with a shorter window", "half of a shared lifetime"])  # fmt: skip
def test_what_only_seems_to_be_there_is_refused(before: dict, after: dict, words: str) -> None:
    home, rows = Harness(make(**before, ttl="1d")), events(19)
    home.batch(table(rows[:60]))
    home.use(make(**after, ttl="1d"))
    with pytest.raises(StateError, match=f"stored state of bucket .*{words}"):
        home.batch(table(rows[60:]))


def test_a_longer_ttl_is_refused_and_a_shorter_one_taken() -> None:
    """A key that was idle for longer than the old one may be gone or not: that depends on when a sweep came by."""
    windows = ["30s", sw.rows(3)]
    home, rows = Harness(make(windows, ttl="2m", keep="0s"), limits=SMALL), events(19)
    home.batch(table(rows[:40]))
    for longer in ("3m", None):
        home.use(make(windows, ttl=longer, keep="0s"), limits=SMALL)
        with pytest.raises(StateError, match=r"stored state of bucket .*ttl"):
            home.batch(table(rows[40:]))
    for ttl, at in (("2m", 40), ("1m", 60), ("1s", 80)):  # 1s counts as the 30s that windows of time need
        home.use(make(windows, ttl=ttl, keep="0s"), limits=SMALL)
        home.batch(table(rows[at : at + 20]))
    home.use(make(windows, ttl="30s", keep="0s"), limits=SMALL)
    home.batch(table(rows[100:]))
    home.use(make(windows, ttl="1m", keep="0s"), limits=SMALL)
    with pytest.raises(StateError, match=r"stored state of bucket .*ttl"):
        home.batch(None)
    home = Harness(make("1m", ttl="2m"), limits=SMALL)
    home.batch(table(rows[:40]))
    home.use(make("1m", ttl="1d"), limits=SMALL)
    assert home.batch(table(rows[40:]))[0], "windows of time do not ask for it"


def test_a_signature_without_a_ttl_is_read() -> None:
    """Earlier versions did not write it."""
    spec = make([sw.rows(3)], ttl="2m")
    stored = json.loads(upgrade.encoded(spec))
    assert stored.pop("ttl") == 120 * SECOND
    assert upgrade.check(json.dumps(stored).encode(), spec, 1) is None
    assert "ttl" not in json.loads(upgrade.encoded(make([sw.rows(3)])))


MARKS, BAND = sw.punctuation("paid"), sw.delta("amount", 2)


@pytest.mark.parametrize(("windows", "before", "after"), [
    ([MARKS], {}, {"closed": "left"}),
    ([MARKS], {"closed": "left"}, {}),
    ([MARKS], {"order": "amount"}, {"order": "other"}),
    ([BAND], {"order": "amount"}, {"order": "other"}),
    ([sw.rows(3)], {"order": "amount"}, {"order": "other"}),
    ([sw.rows(3)], {"closed": "left"}, {"closed": "both"}),
    ([sw.lifetime()], {"order": "amount"}, {"order": "other"}),
], ids=str)  # fmt: skip
def test_other_ends_and_another_order_of_ties_are_served_or_refused(windows, before: dict, after: dict) -> None:
    """What is kept of old rows must not hang on how the query before took them."""
    schema = SCHEMA.append(pa.field("other", pa.int64())).append(pa.field("paid", pa.bool_()))

    def asking(**changes):
        asked = request(time="ts", by="card", windows=windows, aggs={"line": sw.collect("id")}, **changes)
        return stream_spec(asked, schema, id="id", watermark="30s", keep="0s", ttl="1d")

    def rows_as_table(rows: list[dict]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=schema)

    served = refused = 0
    for seed in range(12):
        rng = random.Random(seed)
        rows = [{"id": i, "card": rng.choice("pq"), "ts": 30 * rng.randrange(20) * SECOND, "amount": rng.randrange(9),
                 "other": rng.randrange(9), "paid": rng.random() < 0.1} for i in range(160)]  # fmt: skip
        rows.sort(key=lambda row: row["ts"])
        home, clock, found, later = Harness(asking(**before), limits=SMALL), Watermark(), [], asking(**after)
        for at in range(0, 120, 10):
            home.batch(rows_as_table(rows[at : at + 10]), clock(rows[at : at + 10]))
        home.use(later, limits=SMALL)
        try:
            for at in range(120, 160, 10):
                found += home.batch(rows_as_table(rows[at : at + 10]), clock(rows[at : at + 10]))[0]
        except StateError:
            refused += 1
            continue
        served += 1
        asked = {"windows": windows, "aggs": later.request.aggs, "order": list(later.tie_columns), "closed": later.request.closed}
        whole = sw.rolling(rows_as_table(rows), time="ts", by="card", **asked)
        wanted = {row["id"]: row for row in whole.to_pylist()}
        assert {i: row for i, row in last_words(found).items() if row != wanted[i]} == {}
    assert (served, refused) == ((0, 12) if "order" in after and windows[0].kind == "lifetime" else (12, 0))


def test_columns_that_an_aggregate_does_not_read_are_nothing_to_its_lifetime() -> None:
    schema = SCHEMA.append(pa.field("other", pa.int64()))

    def stored(order: str | None = None, **more):
        asked = request(time="ts", by="card", windows=[sw.lifetime()], aggs={"tail": sw.last("amount"), **more}, order=order)
        return set(upgrade.signature_of(stream_spec(asked, schema, id="id", watermark="30s", ttl="1d")).lifetime)

    assert stored() < stored(others=sw.count("other"))
    assert not stored() & stored(order="other")


def test_entries_of_fewer_columns_are_merged_with_older_ones() -> None:
    home, rows, clock = Harness(make(), limits=SMALL), events(33), Watermark()
    for at in range(0, 60, 6):
        home.batch(table(rows[at : at + 6]), clock(rows[at : at + 6]))
    fewer = make(aggs={"n": sw.count()}, stored=[])
    assert set(fewer.log_schema.names) < set(make().log_schema.names)
    home.use(fewer, limits=SMALL)
    found, whole = [], expected(rows, fewer)
    for at in range(60, 120, 6):
        found += home.batch(table(rows[at : at + 6]), clock(rows[at : at + 6]), worker="ab"[at % 4 > 1])[0]
    assert {row["id"] for row in found} >= {row["id"] for row in rows[60:]}
    for i, row in last_words(found).items():
        assert row["n_1m"] == whole[i]["n_1m"]


def test_a_longer_window_is_complete_when_it_has_filled() -> None:
    home, rows = Harness(make(["30s"], complete=True, keep="0s"), limits=SMALL), events(21, 300, 900)
    clock, found = Watermark(), []
    for at in range(0, 150, 15):
        home.batch(table(rows[at : at + 15]), clock(rows[at : at + 15]))
    longer = make(["30s", "2m"], complete=True, keep="0s")
    home.use(longer, limits=SMALL)
    for at in range(150, 300, 15):
        found += home.batch(table(rows[at : at + 15]), clock(rows[at : at + 15]))[0]
    whole = expected(rows, longer)
    flags = [row["complete"] for row in found if not row["late"]]
    assert True in flags and False in flags
    for row in found:
        if not row["late"] and row["complete"] and row["ts"] == whole[row["id"]]["ts"]:
            assert row["n_30s"] <= whole[row["id"]]["n_30s"]
    settled = {row["id"]: row for row in sorted(found, key=lambda row: row["revision"]) if not row["late"]}
    for i, row in settled.items():
        if row["complete"]:
            assert (row["n_2m"], row["total_2m"]) == (whole[i]["n_2m"], whole[i]["total_2m"])


def moved_words(home: Harness, spec, to: int) -> list[tuple[int, int, bytes | None]]:
    """What rebucket writes, with the harness's hash in the place of Spark's."""
    other = Harness(spec, buckets=to)
    words: list = []
    notes: list[dict] = []
    for label in home.labels:
        if ("head", label) not in home.state:
            continue
        head = home.state["head", label][0]
        numbers = [-1, *(key[0] for key in home.state["log", label])]
        data = [head, *(value[0] for value in home.state["log", label].values())]
        stored = pa.table({"slidewise_label": [label] * len(data), "number": numbers, "data": pa.array(data, pa.binary())})
        words.append((label, DROP, decode_head(head, "").tip))
        said = rebucket._part(spec, NOTES, stored)["slidewise_blob"][0].as_py()
        notes.append(json.loads(said))
        for kind in (KEYS, LOAD):
            part = rebucket._part(spec, kind, stored)
            owners = [other.label(row) for row in part.to_pylist()]
            for owner in dict.fromkeys(owners):
                words.append((owner, kind, blob_of(part.filter(pa.array([o == owner for o in owners])))))
    text = json.dumps({**rebucket._together(notes, spec), "buckets": to}).encode()
    return words + [(label, NOTES, text) for label in other.labels]


@pytest.mark.parametrize("to", [1, 3, 8])
@pytest.mark.parametrize("results", ["eager", "final"])
def test_moved_buckets_answer_as_before(to: int, results: str) -> None:
    spec = make(["1m", sw.rows(3), sw.lifetime()], results=results, ttl="1d")
    home, rows, clock, found = Harness(spec, limits=SMALL), events(23, 200, 600), Watermark(), []
    for at in range(0, 100, 20):
        found += home.batch(table(rows[at : at + 20]), clock(rows[at : at + 20]))[0]
    words = moved_words(home, spec, to)
    home.use(spec, buckets=to, limits=SMALL)
    for at in range(100, 200, 20):
        found += home.batch(table(rows[at : at + 20]), clock(rows[at : at + 20]), words=words if at == 100 else ())[0]
    found += home.flush()[0]
    assert len({row["id"] for row in found}) == len(rows)
    assert results == "eager" or len(found) == len(rows)
    assert last_words(found) == expected(rows, spec)
    assert {key for name, key in home.state if name == "head"} == set(home.labels)


def test_boundaries_are_not_lost_where_buckets_move() -> None:
    """Eager ones are given as far as the bucket has come: not all buckets have given the same when they move."""
    spec = make({"w": sw.time("10s", slide="2s")}, emit="slide")
    home, rows, clock, found = Harness(spec, limits=SMALL), events(29, 200, 600), Watermark(), []
    for at in range(0, 100, 20):
        found += home.batch(table(rows[at : at + 20]), clock(rows[at : at + 20]))[0]
    words = moved_words(home, spec, 3)
    home.use(spec, buckets=3, limits=SMALL)
    for at in range(100, 200, 20):
        found += home.batch(table(rows[at : at + 20]), clock(rows[at : at + 20]), words=words if at == 100 else ())[0]
    found += home.flush()[0]
    last = {(row["card"], row["ts"]): (row["n_w"], row["total_w"]) for row in found}
    asked = spec.request
    whole = sw.rolling(table(rows), time="ts", by="card", windows=asked.windows, aggs=asked.aggs, order="id", emit="slide")
    assert last == {(row["card"], row["ts"]): (row["n_w"], row["total_w"]) for row in whole.to_pylist()}


def test_words_for_another_number_of_buckets_are_refused() -> None:
    spec = make()
    home, rows = Harness(spec), events(25)
    home.batch(table(rows[:60]))
    words = moved_words(home, spec, 8)
    with pytest.raises(StateError, match="rebucket was run for 8 buckets, this query has 4"):
        home.batch(table(rows[60:]), words=words)
    home.batch(table(rows[60:]))
    home.use(spec, buckets=8)
    with pytest.raises(StateError, match="has moved on since rebucket read it"):
        home.batch(None, words=words)
    with pytest.raises(StateError, match="the checkpoint has 4 buckets, this query 8"):
        home.batch(None)


def test_a_host_is_warmed_once(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """And with examples that the engine takes: a failure here would be silent, and every worker would compile."""
    from slidewise.engines.spark import warm

    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warm, "_done", set())
    calls = []
    monkeypatch.setattr(warm, "run_examples", calls.append)
    warm.warmed("token", "spec")
    warm.warmed("token", "spec")
    monkeypatch.setattr(warm, "_done", set())  # another process
    warm.warmed("token", "spec")
    assert calls == ["spec"]


@pytest.mark.parametrize("results", ["eager", "final"])
def test_the_engine_takes_the_examples(results: str) -> None:
    from slidewise.engines.spark import warm
    from slidewise.live.keyed import Keyed

    spec = make(["1m", sw.rows(3)], results=results, ttl="1d")
    engine = Keyed(spec)
    accepted = [engine.push(batch, batch=number).counts["accepted"] for number, batch in enumerate(warm._batches(spec))]
    assert accepted == [3, 3, 3, 3]


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.float64(), pa.timestamp("ms"), pa.decimal128(30, 2)], ids=str)
def test_examples_have_ids_of_their_own(kind: pa.DataType) -> None:
    """Events that count as seen before would never come to where corrections are compiled."""
    from slidewise.engines.spark import warm

    schema = pa.schema([("event", kind), ("part", pa.string()), ("t", pa.int64()), ("x", pa.float64())])
    spec = stream_spec(request(time="t", windows=[5], aggs={"n": sw.count()}), schema, id=["event", "part"])
    ids = [tuple(row[name] for name in ("event", "part")) for batch in warm._batches(spec) for row in batch.to_pylist()]
    assert len(set(ids)) == len(ids) == 12


def test_blobs_are_cut_by_size() -> None:
    rows = table(sorted(events(27, 500), key=lambda row: row["id"]))
    labelled = rows.append_column("slidewise_label", pa.array([i % 3 for i in range(500)], pa.int32()))
    packer = Packer(SCHEMA, blob_bytes=2000, held_bytes=6000)
    found = [row for batch in packer(labelled.to_batches(max_chunksize=70)) for row in batch.to_pylist()]
    assert len(found) > 8
    assert max(len(row["slidewise_blob"]) for row in found) < 4000
    back: dict[int, list] = {}
    for row in found:
        part = pa.ipc.read_record_batch(pa.py_buffer(row["slidewise_blob"]), SCHEMA)
        back.setdefault(row["slidewise_label"], []).extend(part.to_pylist())
    assert {k: sorted(r["id"] for r in v) for k, v in back.items()} == {k: list(range(k, 500, 3)) for k in range(3)}
    assert sorted((r for v in back.values() for r in v), key=lambda r: r["id"]) == sorted(rows.to_pylist(), key=lambda r: r["id"])


def test_results_leave_in_types_that_spark_takes() -> None:
    """Spark knows neither lists of a fixed size nor unsigned numbers."""
    schema = pa.schema([("bars", pa.list_(pa.int64(), 2)), ("bits", pa.list_(pa.uint64(), 1)), ("n", pa.int64())])
    taken = pa.schema([("bars", pa.list_(pa.int64())), ("bits", pa.list_(pa.decimal128(20, 0))), ("n", pa.int64())])
    rows = pa.table([pa.array([[1, 2], None], schema.field(0).type), pa.array([[2**63], [0]], schema.field(1).type), [5, None]],
                    schema=schema)  # fmt: skip
    batch = pa.record_batch({"slidewise_blob": pa.array([blob_of(rows), None], pa.binary())})
    found = pa.Table.from_batches(Unpacker(schema, taken)([batch]))
    assert found.schema == taken
    assert found.to_pylist() == rows.to_pylist()
