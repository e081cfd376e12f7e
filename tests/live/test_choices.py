"""What the ladder chooses for streams, `Live` and `Window` is what runs, and what `explain` says."""

import dataclasses
import pickle

import numpy as np
import pyarrow as pa
import pytest
from tests.live.streams import AGGS, Pair, make_spec

import slidewise as sw
from slidewise.live import late
from slidewise.live.explain import StreamExplanation
from slidewise.live.keyed import Keyed
from slidewise.live.spec import stream_spec
from slidewise.planner import ladder
from slidewise.planner.ladder import RUNGS, Rung
from slidewise.planner.request import request

SCHEMA = [("k", pa.string()), ("t", pa.int64()), ("x", pa.int64())]
ASKED = dict(windows=sw.time(1000), aggs={"s": sw.sum("x")}, by="k", time="t")
RECALC = next(rung for rung in RUNGS if rung.algorithm == "recalc")
FIBA = next(rung for rung in RUNGS if rung.algorithm == "fiba")


def counting():
    """(operator, a list that holds how often it combined)"""
    combines = [0]

    def combine(a, b):
        combines[0] += 1
        return a + b

    return sw.operator(lift=lambda x: int(x), combine=combine, identity=0, name="counted").with_(object_only=True), combines


def asked_often(rows=512, times=20):
    """What `explain` calls it, and how many combines that many questions to a key of so many events take."""
    op, combines = counting()
    live = sw.Live(**ASKED | {"aggs": {"s": op("x")}}, schema=SCHEMA)
    live.push(pa.table({"k": ["a"] * rows, "t": np.arange(rows), "x": np.ones(rows, np.int64)}))
    live.query("a")
    combines[0] = 0
    answers = [live.query("a", at=t)["s_1000"] for t in range(rows - times, rows)]
    assert answers == list(range(rows - times + 1, rows + 1))
    return live.explain().as_dict()["steps"][0]["name"], combines[0]


def test_changing_a_rung_changes_what_live_runs_and_says(monkeypatch):
    name, few = asked_often()
    assert name == "flatfat"
    monkeypatch.setattr(ladder, "RUNGS", (RECALC, *RUNGS))
    name, many = asked_often()
    assert name == "recalc" and many > 10 * few


@pytest.mark.parametrize("rungs", [RUNGS, (RECALC, *RUNGS)], ids=["flatfat", "recalc"])
def test_a_stream_gives_the_same_on_every_rung(monkeypatch, rungs):
    """And holds partials only where they are chosen."""
    monkeypatch.setattr(ladder, "RUNGS", rungs)
    spec = make_spec([sw.time(10), sw.rows(3)], AGGS, keep=1000)
    pair, rng = Pair(spec), np.random.default_rng(1)
    for i in range(30):
        rows = [
            {"card": "pq"[rng.integers(2)], "ts": int(rng.integers(2 * i + 1)), "x": float(rng.integers(9)), "n": i,
             "shop": "s", "paid": True, "id": 10 * i + j, "note": f"note {10 * i + j}"}
            for j in range(3)
        ]  # fmt: skip
        pair.push(rows, None)
    kept = {step["name"] for step in StreamExplanation(spec).as_dict()["steps"]}
    assert kept == {rungs[0].algorithm if rungs[0] is RECALC else "flatfat"}
    assert all((partials.slots > 0) == (kept == {"flatfat"}) for partials in pair.engine.partials)


def test_a_choice_travels_with_the_spec(monkeypatch):
    """Another process runs what was explained, whatever its own ladder says."""
    spec = make_spec([sw.time(10)], {"n": sw.count()})
    monkeypatch.setattr(ladder, "RUNGS", (RECALC, *RUNGS))
    arrived = pickle.loads(pickle.dumps(spec))
    assert [step.choices for step in arrived.steps] == [step.choices for step in spec.steps]
    assert all(partials.runs for partials in Keyed(arrived).partials)


def test_a_stream_keeps_the_algorithm_asked_for_or_refuses_it():
    """An algorithm= that was passed over without a word would leave the caller believing in it."""
    schema = pa.schema([("t", pa.int64()), ("x", pa.int64())])

    def spec(name):
        return stream_spec(request(time="t", windows=[10], aggs={"s": sw.sum("x")}, algorithm=name), schema)

    for name in ("flatfat", "recalc"):
        (step,) = spec(name).steps
        assert (step.choices.kept.algorithm, step.choices.kept.reason) == (name, "asked for")
        assert Keyed(spec(name)).partials[0].runs == (name == "flatfat")
    with pytest.raises(sw.InputError, match="no algorithm 'three_stacks'; there are recalc"):
        spec("three_stacks")
    for name in ("two_stacks", "fiba"):
        with pytest.raises(sw.UnsupportedError, match=f"built on {name}; take flatfat or recalc"):
            spec(name)


def test_the_tree_of_late_keys_is_the_ladders_too(monkeypatch):
    monkeypatch.setattr(late, "LARGE", 8)

    def planted():
        live = sw.Live(**ASKED | {"aggs": {"s": counting()[0]("x")}}, schema=SCHEMA)
        for t in (*range(20), *range(19, 0, -1)):
            live.push({"k": "a", "t": t, "x": 1})
            live.query("a")
        (trees,) = live._asked.late.trees.values()
        return live.explain().as_dict()["steps"][0]["late"]["name"], trees[0].shape.fingers

    assert planted() == ("fiba", True)
    monkeypatch.setattr(ladder, "RUNGS", (dataclasses.replace(FIBA, algorithm="btree"), *RUNGS))
    assert planted() == ("btree", False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(windows=[sw.time(5), sw.rows(9)]), "rows(9) goes by the places of events"),
        (dict(windows=[sw.session(5)]), "session(5) goes by the places of events"),
        (dict(order="x"), "order= goes by"),
        (dict(exclude_current=True), "exclude_current=True goes by"),
        (dict(windows=[sw.time(1000), sw.lifetime()], watermark=500), "lifetime() counts events that the watermark has let go of"),
    ],
)
def test_where_a_tree_cannot_serve_it_says_why(monkeypatch, arguments, words):
    monkeypatch.setattr(late, "LARGE", 8)
    live = sw.Live(**ASKED | arguments, schema=SCHEMA)
    step = live.explain().as_dict()["steps"][0]
    assert step["late"]["name"] == "flatfat" and words in step["late"]["rejected"]["fiba"]
    assert "flatfat, as others" in str(live.explain()) and words in str(live.explain())
    for t in (*range(20), *range(19, 0, -1)):
        live.push({"k": "a", "t": t, "x": 1})
        live.query("a")
    assert not live._asked.late.trees


def test_trees_of_a_lifetime_last_until_expire_and_the_plan_says_so(monkeypatch):
    monkeypatch.setattr(late, "LARGE", 8)
    live = sw.Live(**ASKED | {"windows": [sw.time(1000), sw.lifetime()]}, schema=SCHEMA)
    told = live.explain().as_dict()["steps"][0]["late"]
    assert told["name"] == "fiba" and "until expire() is called" in told["for"] and told["for"] in str(live.explain())
    assert "expire" not in sw.Live(**ASKED, schema=SCHEMA).explain().as_dict()["steps"][0]["late"]["for"]

    def backwards():
        for t in (*range(20), *range(19, 0, -1)):
            live.push({"k": "a", "t": t, "x": 1})
            live.query("a")

    backwards()
    assert live._asked.late.trees
    live.expire(1)
    backwards()
    assert not live._asked.late.trees


def test_windows_of_few_rows_keep_no_partials():
    for rows, closed, name in ((8, "right", "recalc"), (8, "both", "flatfat"), (9, "right", "flatfat")):
        live = sw.Live(**ASKED | {"windows": [sw.rows(3), sw.rows(rows)]}, closed=closed, schema=SCHEMA)
        live.push([{"k": "a", "t": t, "x": t} for t in range(30)])
        assert live.explain().as_dict()["steps"][0]["name"] == name
        assert live.query("a")["s_3r"] == (27 + 28 + 29 if closed == "right" else 26 + 27 + 28 + 29)
        assert (live._engine.partials[0].slots > 0) == (name == "flatfat")


def test_live_explains_itself_as_a_stream_does():
    live = sw.Live(**ASKED)
    with pytest.raises(sw.SlidewiseError, match="give schema="):
        live.explain()
    live.push({"k": "a", "t": 1, "x": 1})
    told = live.explain()
    assert isinstance(told, StreamExplanation)
    step = told.as_dict()["steps"][0]
    assert {"algorithm", "because", "cost", "state", "rejected"} <= step.keys() and "reactive-aggregator" in step["algorithm"]
    assert set(step["rejected"]) == {rung.algorithm for rung in RUNGS[: [r.algorithm for r in RUNGS].index("flatfat")]}
    assert step["late"]["name"] == "fiba" and "fiba-2019" in str(told)
    assert "put aside" not in str(sw.Live(**ASKED, watermark=10, schema=SCHEMA).explain())


def test_a_window_asks_the_ladder(monkeypatch):
    w = sw.Window(sw.sum())
    assert w.algorithm == "fiba" and "any order" in w.explain().as_dict()["because"]
    asked = sw.Window(sw.max(), algorithm="daba_lite")
    assert asked.explain().as_dict()["because"] == "asked for" and "daba-2015" in str(asked.explain())
    monkeypatch.setattr(ladder, "RUNGS", (Rung("btree", lambda task: "as a test", lambda task: None), *RUNGS))
    op = counting()[0]
    w = sw.Window(op)
    for t in (3, 1, 2):
        w.insert(t, 1)
    assert w.algorithm == w.explain().as_dict()["name"] == "btree" and w.query() == 3
    assert not w._store.forest.shape.fingers
    assert sw.Window.from_bytes(w.to_bytes(), op).explain().as_dict()["because"] == "as it was stored"
