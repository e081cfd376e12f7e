"""Choice and sharing: what is run is what the plan says, shared plans give the same and do less, and `explain` tells it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.algebra.operator import Bound
from slidewise.bench import tally
from slidewise.engines.local.run import run, run_as_of
from slidewise.planner import ladder
from slidewise.planner.inputs import input_of
from slidewise.planner.ladder import RUNGS, Task, choose
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request
from slidewise.planner.slices import shared_plan

SUM = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0.0, name="my_sum")
FIVE = {"n": sw.count("x"), "total": sw.sum("x"), "mean": sw.mean("x"), "sd": sw.std("x"), "peak": sw.max("x")}
THREE = [20, 50, sw.rows(30)]


def data(n=400, keys=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[rng.random(n) < 0.1] = np.nan
    return pa.table(
        {"t": np.sort(rng.integers(0, n, n)), "k": rng.integers(0, keys, n), "x": pa.array(x, mask=rng.random(n) < 0.1)}
    )


def planned(table, **arguments):
    return make_plan(request(**{"time": "t", "by": "k", **arguments}), table.schema)


class Counter:
    """Stands in for an operator, interpreted, and counts its combines and inverses; `parts`: those of states side by side each."""

    def __init__(self):
        self.combines = self.parts = 0

    def of(self, op):
        parts = len(op.identity) if type(op.identity) is tuple else 1

        def counted():
            self.combines += 1
            self.parts += parts

        def combine(a, b):
            counted()
            return op.combine(a, b)

        def inverse(total, old):
            counted()
            return op.inverse(total, old)

        return op.with_(
            combine=combine,
            inverse=None if op.inverse is None else inverse,
            resolve=None,
            object_only=True,
            recipe=None,
        )

    def plan(self, plan):
        steps = []
        for step in plan.steps:
            op = step.bound.operator.resolved(tuple(i.dtype for i in step.inputs))
            steps.append(replace(step, bound=Bound(self.of(op), step.bound.columns, step.bound.where)))
        return replace(plan, steps=tuple(steps))


def combines(table, **arguments):
    found, counter = counted(table, **arguments)
    return found, counter.combines


def counted(table, **arguments):
    counter = Counter()
    return run(counter.plan(planned(table, **arguments)), table), counter


def rows(table, names):
    return [repr([row[name] for name in names]) for row in table.to_pylist()]


def test_three_windows_and_five_aggregates_share():
    """One plan gives what fifteen give, bit for bit, with less than half of the combines; and with fewer where those of the states
    that lie side by side in one (two sums for count, sum and mean, moments, a maximum) are counted each."""
    table = data()
    names = [f"{a}_{w}" for w in ("20", "50", "30r") for a in FIVE]
    shared, few = counted(table, windows=THREE, aggs=FIVE)
    many = []
    for name, bound in FIVE.items():
        for window in THREE:
            alone, count = counted(table, windows=window, aggs={name: bound})
            many.append(count)
            column = alone.column_names[-1]
            assert rows(alone, [column]) == rows(shared, [column])
    assert set(names) <= set(shared.column_names)
    assert few.combines < sum(count.combines for count in many) / 2
    assert few.parts < 0.7 * sum(count.parts for count in many)


def test_shared_and_separate_states_agree_to_the_last_bit_when_compiled():
    table = data(3000)
    together = sw.rolling(table, time="t", by="k", windows=[300], aggs=FIVE)
    for name, bound in FIVE.items():
        alone = sw.rolling(table, time="t", by="k", windows=[300], aggs={name: bound})
        assert rows(alone, [f"{name}_300"]) == rows(together, [f"{name}_300"])


def test_aggregates_of_one_column_that_run_alike_go_in_one_pass():
    """Joined states give what single ones do to the bit, each with its own type; what takes another algorithm, reads other rows
    or is exactly invertible stays by itself."""
    rng = np.random.default_rng(3)
    n = 500
    x = rng.integers(-9, 9, n) * 1.5
    x[rng.random(n) < 0.1] = np.nan
    hole = rng.random(n) < 0.2
    day = pa.array(rng.integers(0, 99, n).astype("i4"), mask=hole).view(pa.date32())
    table = pa.table(
        {
            "t": np.sort(rng.integers(0, n, n)),
            "x": pa.array(x, mask=hole),
            "f4": pa.array(x.astype("f4"), mask=hole),
            "i1": pa.array(rng.integers(-9, 9, n).astype("i1"), mask=hole),
            "yes": pa.array(rng.random(n) < 0.5, mask=hole),
            "day": day,
            "word": pa.array([f"w{k}" for k in rng.integers(0, 9, n)], mask=hole),
            "big": rng.random(n) < 0.7,
        }
    )
    names = ("min", "max", "mean", "std", "count", "spread", "first")
    aggs = {f"x.{name}": getattr(sw, name)("x") for name in names}
    aggs |= {f"{c}.{name}": getattr(sw, name)(c) for c in ("f4", "i1") for name in ("min", "max", "mean", "std")}
    aggs |= {f"{c}.{name}": getattr(sw, name)(c) for c in ("yes", "day", "word") for name in ("min", "max")}
    aggs |= {"some.min": sw.min("x", where="big"), "some.max": sw.max("x", where="big"), "n": sw.count()}
    asked = dict(time="t", windows={"w": 20, "left": sw.rows(9)}, closed="left", ties="arrival")
    plan = make_plan(request(aggs=aggs, **asked), table.schema)
    shared = {step.aggregates for step in plan.steps}
    assert ("some.min", "some.max") in shared and ("day.min", "day.max") in shared
    assert {"x.mean", "x.std", "x.count", "x.max"} == set(next(s for s in shared if "x.min" in s)) - {"x.min"}
    assert ("x.spread", "x.first") in shared, "a state of more numbers is another one"
    assert not any("i1.mean" in s and "i1.max" in s for s in shared), "whole numbers are subtracted"
    together = run(plan, table)
    for name, bound in aggs.items():
        alone = run(make_plan(request(aggs={name: bound}, **asked), table.schema), table)
        for window in ("w", "left"):
            column, single = together.column(f"{name}_{window}"), alone.column(f"{name}_{window}")
            assert column.type == single.type and repr(column.to_pylist()) == repr(single.to_pylist()), name
    deque = make_plan(request(aggs={"min": sw.min("x"), "max": sw.max("x")}, prefer="memory", **asked), table.schema)
    assert [step.aggregates for step in deque.steps] == [("min",), ("max",)]


SLIDING = {"a": sw.time(60, slide=20), "b": sw.time(110, slide=20), "c": sw.tumbling(40)}


def test_slices_are_computed_once_for_all_windows_and_aggregates():
    """emit="slide", 3 windows x 5 aggregates: what fifteen plans give, to the bit where whole numbers are exact (other slices
    round otherwise), with less than a third of the combines."""
    table = data(600, keys=2).set_column(2, "x", pa.array(np.random.default_rng(1).integers(-9, 9, 600)))
    shared, few = combines(table, windows=SLIDING, aggs=FIVE, emit="slide")
    by_place = {(row["k"], row["t"]): row for row in shared.to_pylist()}
    many = 0
    for name, bound in FIVE.items():
        for window in SLIDING:
            alone, count = combines(table, windows={window: SLIDING[window]}, aggs={name: bound}, emit="slide")
            many += count
            for row in alone.to_pylist():
                column = f"{name}_{window}"
                value = by_place[row["k"], row["t"]][column]
                assert repr(value) == repr(row[column]) or (name == "sd" and value == pytest.approx(row[column], 1e-12))
    assert few < many / 3


SLID = {"a": sw.time(60, slide=20), "b": sw.time(110, slide=20), "c": sw.time(50, slide=40, offset=10)}


@pytest.mark.parametrize("emit", ["event", "latest", "as_of"])
def test_rows_take_the_value_of_their_last_boundary_from_shared_slices(emit):
    """Several windows that slide, asked for at rows or queries: slices are folded once for all of them, a boundary is answered once
    for all rows behind it; a window that does not slide goes on by itself. `explain` says so."""
    rng = np.random.default_rng(1)
    table = data(600, keys=2).set_column(2, "x", pa.array(rng.integers(-9, 9, 600)))
    asked = dict(emit=emit) if emit != "as_of" else dict(as_of=True, closed="left")

    def found(windows, aggs):
        counter = Counter()
        plan = counter.plan(planned(table, windows=windows, aggs=aggs, **asked))
        return plan, run_as_of(plan, table, table) if emit == "as_of" else run(plan, table), counter.combines

    windows = {**SLID, "each": sw.time(60)}
    aggs = {"mean": sw.mean("x"), "sd": sw.std("x"), "peak": sw.max("x")}
    plan, shared, few = found(windows, aggs)
    assert {query.name for query in plan.slices.queries} == set(SLID)
    for step in plan.steps:
        assert {name for one in step.passes for name in one.windows if one.entries == "slices"} == set(SLID)
    many = 0
    for window in windows:
        plan, alone, count = found({window: windows[window]}, aggs)
        assert plan.slices is None, "nothing to share"
        many += count
        for agg in aggs:
            mine, theirs = shared.column(f"{agg}_{window}"), alone.column(f"{agg}_{window}")
            assert mine.type == theirs.type and mine.null_count == theirs.null_count
            np.testing.assert_allclose(*(np.array(c.to_pylist(), float) for c in (mine, theirs)), 1e-12, 1e-12)
    assert few < (0.9 if emit == "latest" else 0.6) * many
    frames = (table, table) if emit == "as_of" else (table,)
    told = sw.explain(*frames, time="t", by="k", windows=windows, aggs=aggs, **({} if emit == "as_of" else asked))
    assert told.as_dict()["slices"]["technique"] == "pairs"
    assert "a, b, c: an entry for each slice; each: an entry for each row" in str(told)
    assert "for a, b, c 1 combine an event, for all of them" in str(told)


def test_slices_of_queries_that_count_in_finer_ticks():
    """as_of is planned for both tables: seconds beside milliseconds, and fractions, which have no slices."""
    asked = dict(time="t", windows={"a": sw.time("4s", slide="2s"), "b": sw.time("6s", slide="3s")}, aggs={"n": sw.count()})
    data = pa.table({"t": pa.array(range(20), pa.timestamp("s"))})
    queries = pa.table({"t": pa.array(range(0, 20_000, 700), pa.timestamp("ms"))})
    told = sw.explain(queries, data, **asked).as_dict()["slices"]
    assert (told["composite"], told["lengths"]) == (6000, [2000, 1000, 1000, 2000])
    found = sw.as_of(queries, data, **asked).to_pydict()
    for name, reach, slide in (("a", 4, 2), ("b", 6, 3)):
        boundaries = [q // 1000 // slide * slide for q in range(0, 20_000, 700)]
        assert found[f"n_{name}"] == [len(range(max(b - reach, 0), b)) for b in boundaries]
    whole, real = pa.table({"t": range(20)}), pa.table({"t": [0.5, 6.0, 7.5]})
    asked |= dict(windows={"a": sw.time(4, slide=2), "b": sw.time(6, slide=3)})
    assert sw.explain(whole, whole, **asked).as_dict()["slices"]["composite"] == 6
    assert sw.explain(real, whole, **asked).as_dict()["slices"] is None
    assert sw.as_of(real, whole, **asked)["n_b"].to_pylist() == [0, 6, 6]
    with pytest.raises(sw.InputTypeError, match="do not count the same"):
        sw.explain(queries, whole, **asked)


def sliced(table, plan, technique=None):
    """(results, combines) of a plan whose answers are combined anew from slices."""
    counter = Counter()
    if technique is not None:
        plan = replace(plan, slices=shared_plan(plan.slices.queries, technique, plan.slices.closed))
    return run(counter.plan(plan), table).to_pylist(), counter.combines


def test_figure_7_is_run_as_planned():
    """slickdeque-2018, Example 1: a partial for every 2 tuples; Q1 combines the last three of them, Q2 the last four."""
    n = 400
    table = pa.table({"t": np.arange(1, n + 1), "x": np.ones(n)})
    asked = dict(
        time="t",
        windows={"Q1": sw.time(6, slide=2), "Q2": sw.time(8, slide=4)},
        aggs={"s": SUM("x")},
        emit="slide",
        algorithm="recalc",
    )
    plan = make_plan(request(**asked), table.schema)
    assert (plan.slices.technique, plan.slices.lengths) == ("pairs", (2, 2))
    found, count = sliced(table, plan)
    assert [row["s_Q2"] for row in found[:8]] == [None, 4, None, 8, None, 8, None, 8], "Q2 answers at each second edge"
    first, second = 2 * (n // 2 - 2), 3 * (n // 4 - 1)
    ends = 2 * (0 + 1) + 2 * 1  # at either end of the stream: windows of Q1 with one and two partials, one of Q2 with two
    assert count == n // 2 + first + second + ends
    rows_of = make_plan(request(**asked | {"emit": "event"}), table.schema)
    assert rows_of.slices == plan.slices
    found, count = sliced(table, rows_of)
    assert [row["s_Q2"] for row in found[:9]] == [None, None, None, 4, 4, 4, 4, 8, 8], "each row has that of its last boundary"
    assert count == n // 2 + first + second + 1 + 1, "a boundary is answered once, for all rows behind it"


def test_the_executor_cuts_where_the_plan_says():
    """range 7, slide 5, a row each tick: panes of 1, pairs of 3 and 2, Cutty slices of 5 with windows that end inside one."""
    n = 500
    table = pa.table({"t": np.arange(1, n + 1), "x": np.ones(n)})
    arguments = dict(time="t", windows={"w": sw.time(7, slide=5)}, aggs={"s": SUM("x")}, emit="slide", algorithm="recalc")
    plan = make_plan(request(**arguments), table.schema)
    costs = {technique: sliced(table, plan, technique) for technique in ("panes", "pairs", "cutty")}
    assert costs["panes"][0] == costs["pairs"][0] == costs["cutty"][0]
    a_slide = {technique: round(count / (n / 5), 1) for technique, (_, count) in costs.items()}
    assert a_slide == {
        "panes": 0 + 6,  # nothing to fold, seven panes to combine
        "pairs": (2 + 1) + 2,  # slices of 3 and 2 rows, three of them to combine
        "cutty": 4 + 1,  # slices of 5 rows, a whole one and the beginning of the next
    }
    assert plan.slices.technique == "cutty", "the fewest slices"
    told = sw.explain(table, **arguments).as_dict()["slices"]
    assert told["technique"] == "cutty" and told["lengths"] == [5]
    assert told["inside"] == [{"at": 5, "answers": ["w"], "beyond": True}]


def test_rows_in_no_window_are_not_combined():
    table = pa.table({"t": np.arange(1000), "x": np.ones(1000)})
    plan = make_plan(
        request(time="t", windows={"w": sw.time(3, slide=100)}, aggs={"s": SUM("x")}, emit="slide"), table.schema
    )
    for technique in ("panes", "pairs", "cutty"):
        assert sliced(table, plan, technique)[1] <= 4 * 10


def test_rows_that_leave_together_are_one_entry():
    """Coarse-grained sliding: a window that slides in steps, and one that begins anew, cost about one combine to take a row in
    and one to answer; a window whose rows leave one by one costs a third to turn the stack."""
    table = data(1000, keys=1)
    cost = {
        name: combines(table, windows={"w": window}, aggs={"s": SUM("x")})[1]
        for name, window in {"each": sw.time(300), "steps": sw.time(300, slide=100), "anew": sw.tumbling(300)}.items()
    }
    assert cost["anew"] <= 1000
    assert cost["steps"] < 2.1 * 1000 < cost["each"]


@pytest.mark.parametrize("algorithm", ["daba", "daba_lite", "two_stacks_lite", "fiba", "btree"])
def test_coarse_sliding_holds_few_entries_with_any_algorithm(algorithm):
    table = data(1000, keys=1)
    plan = planned(table, windows=sw.time(300, slide=100), aggs={"s": SUM("x")}, algorithm=algorithm)
    assert plan.steps[0].passes[0].entries == "runs"
    each = replace(plan, steps=(replace(plan.steps[0], passes=(replace(plan.steps[0].passes[0], entries="rows"),)),))
    few, many = Counter(), Counter()
    coarse, fine = run(few.plan(plan), table), run(many.plan(each), table)
    assert few.combines < 0.95 * many.combines
    np.testing.assert_allclose(
        coarse.column("s_300_slide_100"), fine.column("s_300_slide_100"), rtol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("name", ["fiba", "btree", "daba", "flatfat", "amta", "two_stacks"])
@pytest.mark.parametrize("emit", ["event", "slide", "latest"])
def test_every_algorithm_by_name(name, emit):
    """Strings joined in order: interpreted, so that any algorithm and every kind of pass can be tried."""
    text = sw.operator(
        lift=lambda x: f"{x:.1f};", combine=lambda a, b: a + b, lower=lambda s: s, identity="", name="text"
    )
    text = text.with_(object_only=True)
    table = data(150)
    windows = [sw.time(30, slide=10), sw.tumbling(25)]
    windows += [] if emit == "slide" else [20, sw.rows(7), sw.session(3), sw.lifetime()]
    arguments = dict(windows=windows, aggs={"s": text("x")}, emit=emit)
    asked = run(planned(table, **arguments, algorithm=name), table)
    again = run(planned(table, **arguments, algorithm="recalc"), table)
    assert rows(asked, asked.column_names) == rows(again, again.column_names)


def test_fiba_holds_a_run_as_one_entry(monkeypatch):
    """Coarse-grained sliding with FiBA: the tree of a window that slides in steps has an entry for each step."""
    from slidewise.algorithms import tree_frames

    sizes = []

    class Watched(tree_frames.Slider):
        def run(self, *arguments):
            super().run(*arguments)
            sizes.append(self.forest.size())
            self.forest.check()

    monkeypatch.setattr(tree_frames, "Slider", Watched)
    table = data(1000, keys=1)
    for window in (sw.time(300, slide=100), sw.time(300)):
        counter = Counter()
        plan = counter.plan(planned(table, windows=window, aggs={"s": SUM("x")}, algorithm="fiba"))
        run(plan, table)
    assert sizes[0] <= 4 < 200 < sizes[1]


def test_changing_a_rung_changes_what_is_run_and_what_is_said(monkeypatch):
    """The executor takes its algorithm from the plan: with recalc on the first rung it combines whole windows again."""
    table = data(200, keys=1)
    arguments = dict(windows=[50], aggs={"s": SUM("x")})
    result, few = combines(table, **arguments)
    assert sw.explain(table, time="t", by="k", **arguments).as_dict()["steps"][0]["name"] == "two_stacks_lite"
    monkeypatch.setattr(ladder, "RUNGS", (RUNGS[-1], *RUNGS[:-1]))
    again, many = combines(table, **arguments)
    assert sw.explain(table, time="t", by="k", **arguments).as_dict()["steps"][0]["name"] == "recalc"
    assert many > 4 * few
    np.testing.assert_allclose(result.column("s_50"), again.column("s_50"), rtol=1e-12, equal_nan=True)


F8 = np.dtype("f8")


@pytest.mark.parametrize(
    ("op", "prefer", "order", "expected"),
    [
        (sw.count("x").operator, "throughput", "in", "subtract_on_evict"),
        (sw.sum(), "throughput", "in", "two_stacks_lite"),
        (sw.sum(), "latency", "in", "daba_lite"),
        (sw.max(), "throughput", "in", "two_stacks_lite"),
        (sw.max(), "memory", "in", "slick_deque"),
        (sw.max(), "latency", "in", "daba_lite"),
        (sw.sum(), "throughput", "any", "fiba"),
        (sw.max(), "memory", "any", "fiba"),
    ],
)
def test_the_ladder(op, prefer, order, expected):
    assert choose(Task(op.typed((F8,)), 1, prefer, order)).algorithm == expected


def test_integers_are_subtracted_and_floats_never():
    assert choose(Task(sw.sum().typed((np.dtype("i8"),)))).algorithm == "subtract_on_evict"
    found = choose(Task(sw.sum().typed((F8,))))
    assert "inverse" in dict(found.rejected)["subtract_on_evict"]


def test_an_interpreted_selective_operator_takes_the_deque_in_one_pass_for_all_windows():
    table = data(300)
    longest = sw.operator(
        lift=lambda x: str(x),
        combine=lambda a, b: b if len(b) > len(a) else a,
        lower=lambda s: s,
        identity="",
        selective=True,
        name="longest",
    ).with_(object_only=True)
    plan = planned(table, windows=[20, 50], aggs={"s": longest("x")})
    assert plan.steps[0].algorithm == "slick_deque"
    assert [p.windows for p in plan.steps[0].passes] == [("20", "50")]
    both = run(plan, table)
    for window in ("20", "50"):
        alone = run(planned(table, windows=[int(window)], aggs={"s": longest("x")}, algorithm="recalc"), table)
        assert both.column(f"s_{window}").equals(alone.column(f"s_{window}"))


def test_one_deque_answers_many_ranges():
    """slickdeque-2018: from six windows on a compiled maximum takes the deque, one for all, and as many combines as for one."""
    table = data(300)
    windows = [5, 10, 20, 40, 80, 160]
    plan = planned(table, windows=windows, aggs={"m": sw.max("x")})
    assert plan.steps[0].typed.compiled and plan.steps[0].algorithm == "slick_deque" and len(plan.steps[0].passes) == 1
    together = run(plan, table)
    for window in windows:
        alone = run(planned(table, windows=[window], aggs={"m": sw.max("x")}), table)
        assert rows(alone, [f"m_{window}"]) == rows(together, [f"m_{window}"])
    assert combines(table, windows=windows, aggs={"m": sw.max("x")})[1] < 2 * 300


def test_queries_end_every_plain_window_at_their_moment():
    """as_of: windows by position end with the rows seen at the query's moment, as those by time do: one pass for all."""
    table = data(300)
    windows = {"a": 5, "b": 10, "c": 20, "d": 40, "e": sw.lifetime(), "f": sw.delta("t", 30)}
    plan = planned(table, windows=windows, aggs={"m": sw.max("x")}, as_of=True, closed="left")
    assert plan.steps[0].algorithm == "slick_deque" and [p.windows for p in plan.steps[0].passes] == [tuple(windows)]
    together = run_as_of(plan, table, table)
    for name, window in windows.items():
        alone = planned(table, windows={name: window}, aggs={"m": sw.max("x")}, as_of=True, closed="left")
        assert rows(run_as_of(alone, table, table), [f"m_{name}"]) == rows(together, [f"m_{name}"])


def test_an_algorithm_asked_for_is_taken_or_refused():
    table = data(50)
    arguments = dict(time="t", by="k", windows=[20], aggs={"s": sw.max("x")})
    assert sw.explain(table, algorithm="flatfat", **arguments).as_dict()["steps"][0]["name"] == "flatfat"
    with pytest.raises(sw.UnsupportedError, match="inverse"):
        sw.rolling(table, algorithm="subtract_on_evict", **arguments)
    found = [rows(sw.rolling(table, algorithm=name, **arguments), ["s_20"]) for name in ("fiba", "auto")]
    assert found[0] == found[1]
    with pytest.raises(sw.InputError, match="no algorithm"):
        sw.rolling(table, algorithm="three_stacks", **arguments)


def test_explain_says_windows_slices_sharing_cost_and_what_was_passed_over():
    told = str(sw.explain(data(10), time="t", by="k", windows=["20" and 20, sw.rows(30)], aggs=FIVE))
    for words in (
        "2 windows x 5 aggregates",
        "(t - 20, t]",
        "the last 30 rows",
        "one state for 5 aggregates",
        "two_stacks_lite",
        "daba-2015",
        "subtract_on_evict",
        "combines for each window",
        "partials of 48 bytes a key",
    ):
        assert words in told
    told = str(
        sw.explain(data(10), time="t", windows=[sw.time(6, slide=2), sw.time(8, slide=4)], aggs=FIVE, emit="slide")
    )
    assert "repeats every 4 (the composite slide)" in told


def test_explain_of_as_of():
    table = data(10)
    assert str(sw.explain(table, table, time="t", by="k", windows=[20], aggs={"s": sw.sum("x")})).startswith(
        "as_of: 1 window x 1"
    )


def test_a_plan_travels():
    import pickle

    table = data(100)
    plan = planned(table, windows=THREE, aggs=FIVE)
    assert rows(run(pickle.loads(pickle.dumps(plan)), table), ["sd_20"]) == rows(run(plan, table), ["sd_20"])


@pytest.mark.parametrize(("algorithm", "most"), [("auto", 3.25), ("daba_lite", 4.5)])
def test_cost_grows_with_rows_and_not_with_the_window(algorithm, most):
    """Windows of 2^4 .. 2^20 rows, full and evicting for at least half of the rows, counted in compiled code: about three combines
    an event with Two-Stacks Lite (four with DABA Lite), and what is read twice where rows are cut for threads."""
    op = tally.tallied().operator
    counts = {}
    for n in (2**21, 2**22):
        table = pa.table({"t": np.arange(n), "x": np.ones(n, np.int64)})
        for window in (2**4, 2**8, 2**12, 2**16, 2**20):
            plan = make_plan(request(time="t", windows={"w": window}, aggs={"s": op("x")}, algorithm=algorithm), table.schema)
            assert plan.steps[0].typed.compiled
            found = []
            counts[n, window] = tally.combines(lambda plan=plan: found.append(run(plan, table, threads=1)))
            np.testing.assert_array_equal(found[0].column("s_w"), np.minimum(np.arange(1, n + 1), window))
            assert n <= counts[n, window] <= most * n
            assert counts[n, window] <= 1.25 * counts[n, 2**4], "no dearer than the shortest"
    for window in (2**4, 2**8, 2**12, 2**16, 2**20):
        assert counts[2**22, window] == pytest.approx(2 * counts[2**21, window], rel=0.1), "twice the rows, twice the cost"


def test_small_integers_reach_a_users_functions_as_int64():
    own = sw.operator(lift=lambda x: -x, combine=lambda a, b: a + b, identity=0, name="minus")
    for kind in (pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.dictionary(pa.int8(), pa.uint32())):
        assert input_of(own, 0, "x", kind).dtype == np.int64
        assert input_of(sw.max(), 0, "x", kind).dtype == (np.uint32 if "uint32" in str(kind) else np.int32)
    for kind in (pa.int64(), pa.uint64(), pa.float32(), pa.bool_()):
        assert input_of(own, 0, "x", kind).dtype == input_of(sw.sum(), 0, "x", kind).dtype
