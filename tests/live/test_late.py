"""Keys of `Live` that hold much and get late events one by one: trees answer what the events would, at the bounds of the paper."""

import math

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.live import late
from slidewise.live.arena import Arena

AGGS = {
    "n": sw.count(),
    "total": sw.sum("x"),
    "some": sw.count("x"),
    "peak": sw.max("x", where="flag"),
    "who": sw.argmax("x", "word"),
    "words": sw.collect("word"),
}
WINDOWS = [sw.time(40), sw.time(30, slide=7, offset=3), sw.tumbling(25)]
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("word", pa.string()), ("flag", pa.bool_())])


@pytest.fixture
def small(monkeypatch):
    """Few events are many, and few may wait: everything that happens to large keys happens all the time."""
    monkeypatch.setattr(late, "LARGE", 8)
    monkeypatch.setattr(late, "PATIENCE", 1)
    monkeypatch.setattr(late, "WAITING", 9)
    monkeypatch.setattr(late, "SHARE", 1 << 20)


def event(rng, t):
    """Whole numbers, so that sums are exact however they are grouped; equal times, nulls, and two keys."""
    x = None if rng.random() < 0.2 else float(rng.integers(-9, 10))
    word = None if rng.random() < 0.1 else "abcdefg"[rng.integers(7)]
    return {"k": "a" if rng.random() < 0.8 else "b", "t": int(t), "x": x, "word": word, "flag": bool(rng.random() < 0.7)}


def wanted(events, key, at, **asked):
    """Straight from a frame of all events, in the order of arrival."""
    data = pa.Table.from_pylist(events, SCHEMA)
    if at is None:
        found = sw.rolling(data, **asked, emit="latest").to_pylist()
        return {name: value for row in found if row["k"] == key for name, value in row.items() if name not in ("k", "t")}
    asked.pop("ties")
    queries = pa.table({"k": [key], "t": pa.array([at], pa.int64())})
    return {name: v for name, v in sw.as_of(queries, data, **asked).to_pylist()[0].items() if name not in ("k", "t")}


@pytest.mark.parametrize("seed", range(8))
def test_trees_answer_as_a_frame_does(small, seed):
    rng = np.random.default_rng(seed)
    closed = ["right", "left", "both", "neither"][seed % 4]
    windows = [*WINDOWS, sw.lifetime()] if seed % 2 else WINDOWS
    asked = dict(windows=windows, aggs=AGGS, by="k", time="t", closed=closed, ties=["peers", "arrival"][seed // 4])
    live, events, planted = sw.Live(**asked, schema=SCHEMA), [], 0
    for i in range(60):
        span = 4 * i + 1
        burst = [event(rng, rng.integers(span) if rng.random() < 0.6 else span) for _ in range(rng.integers(1, 4))]
        if rng.random() < 0.5:
            for one in burst:
                live.push(one)
        else:
            live.push(pa.Table.from_pylist(burst, SCHEMA))
        events += burst
        planted += len(live._asked.late.trees)
        for key in {one["k"] for one in events}:
            at = None if rng.random() < 0.4 else int(rng.integers(-5, span + 60))
            assert live.query(key, at=at) == wanted(events, key, at, **asked), (i, key, at)
        if i % 20 == 19:
            table = live.results()
            assert {row.pop("k"): row for row in table.to_pylist()} == {
                key: wanted(events, key, None, **asked) for key in live.keys()
            }
            assert len(live) == len(events)
            live._engine.check()
            for trees in live._asked.late.trees.values():
                for tree in trees:
                    tree.check()
        if i == 45:
            live = sw.Live.from_bytes(live.to_bytes(), **asked)
    assert planted > 20



def test_late_events_are_counted_and_ids_known_whether_or_not_a_key_has_trees(small):
    rng = np.random.default_rng(5)
    live = sw.Live(windows=sw.time(30), aggs={"n": sw.count()}, by="k", time="t", id="t")
    seen: list[int] = []
    corrected = double = 0
    for i in range(150):
        t = int(rng.integers(3 * i + 1))
        corrected += t not in seen and any(t < other for other in seen)
        double += t in seen
        seen.append(t)
        live.push({"k": "a", "t": t})
        live.query("a")
    assert live._asked.late.trees and live._asked.late.waiting
    assert live.counts == {
        "in": 150, "accepted": 150 - double, "double": double, "late": 0, "corrected": corrected, "dropped": 0
    }  # fmt: skip
    assert len(live) == len(set(seen))


@pytest.mark.parametrize("windows", [[sw.time(40)], [sw.time(40), sw.lifetime()]], ids=["time", "lifetime"])
def test_what_is_forgotten_leaves_the_trees_too(small, windows):
    """With a watermark events go, trees stay; a lifetime's forgotten events are in no tree, so it has none from then on."""
    rng = np.random.default_rng(6)
    asked = dict(windows=windows, aggs={"n": sw.count(), "total": sw.sum("x")}, by="k", time="t")
    live, events, planted = sw.Live(**asked, watermark=30, keep=20, schema=SCHEMA), [], 0
    for i in range(300):
        youngest = max((e["t"] for e in events), default=0)
        one = event(rng, 3 * i) | {"k": "a"}
        if rng.random() < 0.6:
            one["t"] = max(0, youngest - int(rng.integers(45)))
        live.push(one)
        events.append(one)
        at = None if rng.random() < 0.5 else max(e["t"] for e in events) - int(rng.integers(30))
        assert live.query("a", at=at) == wanted(events, "a", at, **asked, closed="right", ties="peers"), i
        planted += len(live._asked.late.trees)
        for tree in live._asked.late.trees.get(0, ()):
            assert tree.size() <= live._engine.entries + len(live._asked.late.waiting)
    assert len(live) < 100
    assert (planted > 100) == (len(windows) == 1)
    assert live.expire(max(e["t"] for e in events)) > 0
    assert live.query("a") == wanted(events, "a", None, **asked, closed="right", ties="peers")


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_times_that_are_floats(small, closed):
    rng = np.random.default_rng(7)
    asked = dict(windows=[sw.time(2.5), sw.tumbling(1.5)], aggs={"n": sw.count(), "s": sw.sum("x")}, time="t", closed=closed)
    live, events = sw.Live(**asked), []
    for i in range(60):
        one = {"t": float(rng.integers(-8, 9)) / 2 + (0.0 if i % 2 else 1e-9), "x": float(i)}
        live.push(one)
        events.append(one)
        at = float(rng.integers(-10, 11)) / 2
        queries = pa.table({"t": [at]})
        found = sw.as_of(queries, pa.Table.from_pylist(events), **asked).to_pylist()[0]
        found.pop("t")
        assert live.query(at=at) == found
    assert live._asked.late.trees


def test_an_operator_that_raises_says_so_when_asked(small):
    """Its trees are given up, and no event is lost."""

    def combine(a, b):
        if "bad" in (a, b):
            raise ValueError("bad came")
        return max(a, b)

    op = sw.operator(lift=lambda x: x, combine=combine, identity="", name="picky").with_(object_only=True)
    live = sw.Live(windows=sw.time(10), aggs={"m": op("x")}, time="t")
    for t in (*range(20), *range(19, 0, -1)):
        live.push({"t": t, "x": "good"})
        live.query()
    assert live._asked.late.trees
    live.push({"t": 3, "x": "bad"})
    with pytest.raises(ValueError, match="bad came"):
        live.query(at=5)
    assert not live._asked.late.trees and len(live) == 40


class Counted:
    """A sum that counts its combines."""

    def __init__(self):
        self.combines = 0
        self.operator = sw.operator(
            lift=lambda x: int(x), combine=self.combine, identity=0, name="counted", commutative=False
        ).with_(object_only=True)

    def combine(self, a, b):
        self.combines += 1
        return a + b


@pytest.mark.parametrize("size", [1 << 12, 1 << 15])
def test_a_late_event_in_a_large_key_costs_a_logarithm(monkeypatch, size):
    """Combines and moved events of a push d places late and a question behind it: the tree's, not the block's."""
    monkeypatch.setattr(late, "LARGE", 1 << 10)
    moved = [0]
    merge = Arena.merge

    def counting(self, touched, bounds, places, new):
        moved[0] += int((self.keys[touched, late.LAST] - places[bounds[:-1]]).sum())
        return merge(self, touched, bounds, places, new)

    monkeypatch.setattr(Arena, "merge", counting)
    counted, rng = Counted(), np.random.default_rng(8)
    live = sw.Live(windows=sw.time(size), aggs={"s": counted.operator("x")}, time="t")
    live.push(pa.table({"t": 10 * np.arange(size), "x": np.ones(size, np.int64)}))
    expected = size
    for _ in range(20):
        if not live._asked.late.trees:
            live.push({"t": int(rng.integers(10 * size)), "x": 1})
            live.query()
            expected += 1
    assert moved[0] <= (late.PATIENCE + 1) * (size + 64), "patience has an end"
    before = (counted.combines, moved[0])
    for _ in range(200):
        live.push({"t": int(rng.integers(10 * size)), "x": 1})
        live.query(at=int(rng.integers(10 * size)))
        expected += 1
    assert (counted.combines - before[0]) / 200 <= 12 * math.log2(size)
    assert moved[0] == before[1]
    assert live.query(at=10 * size)["s_" + str(size)] == live.results(at=10 * size)["s_" + str(size)][0].as_py()
    assert len(live) == expected
