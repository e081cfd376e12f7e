"""The suites of daba-2015, slickdeque-2018 and reactive-aggregator-2015, and the peers, at tiny sizes. No test looks at a time.

Rows are well formed, plots are drawn, claims are computed from the rows and can be false, and what is timed computes the
right answers.
"""

from __future__ import annotations

import numpy as np
import pytest

import slidewise.operators as library
from slidewise import bench
from slidewise.algebra.kernel import twin
from slidewise.bench import counting, peers, plots
from slidewise.bench.papers import (
    daba_2015,
    daba_2015_latency,
    firings,
    reactive_2015,
    reactive_2015_slides,
    reactive_2015_windows,
    slickdeque_2018,
    slickdeque_2018_costs,
)
from slidewise.bench.papers.daba_uncached import UNCACHED
from slidewise.bench.papers.rounds import COLLECT, Rounds, break_even
from slidewise.bench.suite import HOLDS

OURS = ("daba-2015", "slickdeque-2018", "reactive-aggregator-2015")
NAMES = [*bench.expanded(OURS), "peers"]


@pytest.fixture(scope="module")
def measured():
    """Rows of each suite, measured once."""
    found: dict[str, list] = {}

    def rows(name: str) -> list:
        if name not in found:
            found[name] = bench.suite(name).tiny(lambda what: None)
        return [dict(row) for row in found[name]]

    return rows


def test_every_experiment_has_its_suite():
    told = {paper: {name.removeprefix(f"{paper}-") for name in bench.groups()[paper]} for paper in OURS}
    assert told["daba-2015"] == {"table-1", "table-2", "fig-18-top", "fig-18-bottom"}
    assert told["slickdeque-2018"] == {f"fig-{k}" for k in range(10, 16)}
    assert told["reactive-aggregator-2015"] == {"table-3", "table-4", *(f"fig-{k}" for k in range(6, 13))}


@pytest.mark.parametrize("name", NAMES)
def test_rows_plots_and_claims(name, measured, tmp_path):
    suite, rows = bench.suite(name), measured(name)
    assert suite.name == name
    assert rows
    for row in rows:
        assert row.keys() == rows[0].keys()
        for value in row.values():
            assert value is None or isinstance(value, (str, int, float, bool))
            assert not isinstance(value, np.generic)
    claims = suite.claims(rows)
    assert claims
    assert all(claim.holds in HOLDS and claim.paper and claim.here for claim in claims)
    assert any(claim.holds != "unmeasured" for claim in claims)
    for view in suite.views(rows):
        assert {view.line, view.across, view.value, *(key for key, _ in view.only)} <= rows[0].keys()
    drawn = plots.draw_all(suite, rows, tmp_path)
    assert drawn
    assert all(path.read_text().startswith("<?xml") for path in drawn)


# ---- claims can be false ---------------------------------------------------------------------------------------------


def holds(claims, word: str) -> str:
    """How the one claim with that word in it came out."""
    (found,) = [claim for claim in claims if word in claim.paper]
    return found.holds


def table_1(points: dict[str, int | None], collect: int | None) -> list[dict]:
    found = [
        {"function": f, "algorithm": a, "window": 1, "ns": 1.0, "recalc_ns": 1.0, "break_even": point}
        for f in ("sum", "bloom")
        for a, point in (points | ({"flatfat": 28} if f == "bloom" else {})).items()
    ]
    return found + [
        {"function": "collect", "algorithm": a, "window": 1, "ns": 1.0, "recalc_ns": 1.0, "break_even": collect}
        for a in points
    ]


def test_table_1_as_in_the_paper_and_against_it():
    as_printed = daba_2015.claims_table_1(table_1({"flatfat": 1024, "two_stacks": 48, "aba": 8, "daba": 64}, None))
    assert [claim.holds for claim in as_printed] == ["yes"] * 6
    turned = daba_2015.claims_table_1(table_1({"flatfat": 8, "two_stacks": 48, "aba": 64, "daba": 16}, 4))
    assert holds(turned, "no later than DABA") == "no"
    assert holds(turned, "no later than Two-Stacks") == "no"
    assert holds(turned, "10 to 100 times") == "partly"  # what is said of Bloom
    for reactive in (8, 9000, None):
        points = {"flatfat": reactive, "two_stacks": 48, "aba": 48, "daba": 48}
        assert holds(daba_2015.claims_table_1(table_1(points, None)), "10 to 100 times") == "partly"
    assert holds(turned, "Collect, whose") == "no"
    assert holds(turned, "4 to 112") == "yes"
    assert holds(
        daba_2015.claims_table_1(table_1({"flatfat": 8, "two_stacks": 4, "aba": 4, "daba": None}, 4)), "4 to 112"
    ) == ("partly")


def test_break_even_is_where_it_stays_ahead():
    windows = (1, 2, 4, 8)
    assert break_even(windows, [5, 5, 5, 5], [1, 6, 4, 8]) == 8
    assert break_even(windows, [5, 5, 5, 5], [6, 6, 7, 8]) == 1
    assert break_even(windows, [5, 5, 5, 5], [1, 2, 3, 4]) is None
    assert break_even(windows, [5, 5, 5, 5], [1, 20, 60, 70], times=10) == 4
    assert break_even(windows, [5, 5, 5, None], [9, 9, 9, 9]) is None


def latency(worst: dict[str, float]) -> list[dict]:
    return [
        {
            "function": "sum",
            "algorithm": a,
            "window": 1024,
            "average_cycles": average,
            "deviation_cycles": deviation,
            "worst_cycles": 1.0,
            "combines": 3.0,
            "worst_combines": worst[a],
        }
        for a, average, deviation in (("two_stacks", 10.0, 200.0), ("aba", 11.0, 100.0), ("daba", 20.0, 5.0))
    ]


def test_table_2_as_in_the_paper_and_against_it():
    claims = daba_2015_latency.claims_table_2(latency({"two_stacks": 1024, "aba": 1024, "daba": 6}))
    assert [claim.holds for claim in claims] == ["yes", "yes", "yes"]
    claims = daba_2015_latency.claims_table_2(latency({"two_stacks": 1024, "aba": 1024, "daba": 7}))
    assert holds(claims, "never takes more than 6") == "partly"
    swapped = latency(dict.fromkeys(daba_2015_latency.SWAGS, 6))
    for row in swapped:
        row["deviation_cycles"] = 1000.0 - row["deviation_cycles"]
    assert holds(daba_2015_latency.claims_table_2(swapped), "deviation") == "no"


def test_dabas_caches_save_combines_and_change_nothing():
    """The one without is of the benchmarks alone."""
    data = np.random.default_rng(4).integers(0, 100, 200).tolist()
    op = COLLECT.typed()
    made = [Rounds(name, op, 7, (data,)) for name in ("daba", UNCACHED)]
    for one in made:
        one.run(200)
    assert [list(x) for x in made[0].OUT[:200]] == [list(x) for x in made[1].OUT[:200]]
    assert list(made[1].OUT[199]) == data[193:]
    with_, without = (counting.rounds(name, library.max(), 64, data * 2) for name in ("daba", UNCACHED))
    assert with_.average < without.average and without.worst <= 8


def throughput(rate) -> list[dict]:
    return [
        {"function": f, "algorithm": a, "window": w, "throughput": rate(f, a, w), "combines": None, "worst_combines": None}
        for f in ("sum", "bloom")
        for a in ("recalc", "flatfat", "two_stacks", "aba", "daba", "daba_uncached")
        for w in (2**4, 2**6, 2**8, 2**10)
    ]


def test_both_of_two_stacks_and_aba_must_be_ahead_of_daba():
    speed = {"recalc": 1.0, "flatfat": 2.0, "daba": 5.0, "daba_uncached": 4.9, "two_stacks": 6.0, "aba": 7.0}
    claims = daba_2015.claims_top(throughput(lambda f, a, w: speed[a] / (w if a == "recalc" else 1)))
    assert holds(claims, "best throughput") == holds(claims, "caching") == holds(claims, "O(n)") == "yes"
    speed |= {"two_stacks": 4.0, "daba_uncached": 8.0}
    claims = daba_2015.claims_top(throughput(lambda f, a, w: speed[a]))
    assert holds(claims, "best throughput") == "partly"
    assert holds(claims, "caching") == holds(claims, "O(n)") == "no"


@pytest.mark.parametrize(("ours", "verdict"), [(1.3, "yes"), (1.05, "partly"), (0.8, "no")])
def test_slickdeque_is_ahead_or_not(ours, verdict):
    rows = [
        {"function": "sum", "algorithm": a, "window": w, "throughput": rate, "combines": None, "worst_combines": None}
        for w in (4, 16, 64)
        for a, rate in [(name, 1.0) for name in slickdeque_2018.SINGLE if name != "slick_deque"]
        + [("slick_deque", ours)]
    ]
    assert holds(slickdeque_2018.claims_single("sum")(rows), "15 %") == verdict


def test_a_slide_of_slickdeque_must_not_take_more_combines(measured):
    rows = measured("slickdeque-2018-fig-10")
    claims = slickdeque_2018.claims_single("sum")
    assert holds(claims(rows), "combines a slide") == "yes"
    for row in rows:
        row["combines"] -= row["algorithm"] == "slick_deque"
    assert holds(claims(rows), "combines a slide") == "partly"  # exactly two is not one
    for row in rows:
        row["combines"] += 100
    assert holds(claims(rows), "combines a slide") == "partly"  # what stays above log n


def test_memory_claims():
    rows = [
        {
            "function": f,
            "algorithm": a,
            "label": a,
            "window": 64,
            "megabytes": mb,
            "bytes_an_event": 1.0,
            "partials": alive,
        }
        for f in ("sum", "max")
        for a, mb, alive in (("recalc", 2.0, 64), ("slick_deque", 2.0 if f == "sum" else 1.0, 5), ("flatfat", 4.0, 128))
    ]
    claims = slickdeque_2018_costs.claims_15(rows)
    assert [claim.holds for claim in claims] == ["yes"] * 4
    rows[4]["megabytes"] = 3.0
    assert holds(slickdeque_2018_costs.claims_15(rows), "less than Naive") == "no"


def test_logarithms_are_told_from_other_curves():
    def rows(cost):
        found = []
        for power in range(1, 12):
            told = {"function": "max", "scheme": "flatfat", "window": 2**power, "ns": cost(2**power)}
            found.append({**told, "throughput": 1.0, "combines": None})
        return found

    assert holds(reactive_2015.claims_7(rows(lambda n: 10 + 3 * np.log2(n))), "straight line") == "yes"
    assert holds(reactive_2015.claims_7(rows(lambda n: 10.0 + n)), "straight line") == "no"


def test_too_many_combines_for_theorem_4_2(measured):
    rows = measured("reactive-aggregator-2015-fig-7")
    assert holds(reactive_2015.claims_7(rows), "counted") == "yes"
    for row in rows:
        row["combines"] = None if row["combines"] is None else row["combines"] * 10
    assert holds(reactive_2015.claims_7(rows), "counted") == "no"


def test_base_intervals_may_be_faster():
    rows = [
        {"function": "sum", "window": w, "ra_ns": 1.0, "aw_ns": x, "aw_over_ra": x} for w, x in ((8, 1.1), (64, 1.3))
    ]
    rows += [{**row, "function": "max"} for row in rows]
    assert [claim.holds for claim in reactive_2015_slides.claims_table_4(rows)] == ["yes", "yes", "yes"]
    rows[1]["aw_over_ra"] = rows[3]["aw_over_ra"] = 0.9
    assert [claim.holds for claim in reactive_2015_slides.claims_table_4(rows)] == ["partly", "yes", "no"]
    rows[1]["aw_over_ra"] = 5.0
    assert holds(reactive_2015_slides.claims_table_4(rows), "choice of the function") == "partly"


def test_peers_that_disagree_or_are_faster():
    rows: list[dict] = []
    peers.noted(rows, "columns", "sum", 10, 5, "pandas", 2.0, 1.0, True)
    peers.noted(rows, "columns", "max", 10, 5, "pandas", 1.0, 2.0, False)
    claims = peers.claims(rows)
    assert [claim.holds for claim in claims] == ["partly", "partly"]
    assert "max over 5" in claims[1].here


@pytest.mark.parametrize("start", [peers.in_python, peers.with_window], ids=["python", "slidewise"])
def test_single_events_meet_a_full_window(start):
    run = start("sum", 3, [1.0, 2.0, 3.0])
    assert run([4.0, 5.0]) == [9.0, 12.0]
    assert run([6.0]) == [15.0]


# ---- what is timed computes the right thing --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["recalc", "two_stacks", "flatfat"])
def test_rounds_answer_for_the_last_window(name):
    op = COLLECT.typed()
    made = Rounds(name, op, 3, (list(range(10)),))
    made.run(8)
    assert list(made.OUT[7]) == [5, 6, 7]
    made.run(4)  # the input goes round
    assert list(made.OUT[1]) == [9, 0, 1]


@pytest.mark.parametrize("swag", slickdeque_2018.MULTI)
@pytest.mark.parametrize("name", ["sum", "max"])
def test_every_range_is_answered(swag, name):
    data = np.random.default_rng(1).integers(0, 100, 40).tolist()
    op = slickdeque_2018.OPERATORS[name]().typed((np.dtype(np.int64),)).as_object()
    ranges = slickdeque_2018.Ranges(swag, op, 6, (data,))
    ranges.run(20)
    window = (data[:6] + data[:20])[-6:]  # filled with the first six, then slid over the first twenty
    function = {"sum": sum, "max": max}[name]
    assert ranges.OUT == [function(window[-r:]) for r in range(1, 7)]


@pytest.mark.parametrize("name", ["recalc", "flatfat", "b_int"])
def test_firings_slide_grow_and_shrink(name):
    window = firings.Firings(name, COLLECT.typed(), 8, (list(range(100)),))
    assert list(window.OUT[0]) == list(range(8))
    window.fire(2, 2, 3)
    assert list(window.OUT[0]) == list(range(6, 14))
    window.resize(16)
    reactive_2015_windows.oscillate(window, 8)
    assert window.m + 1 == 16
    assert list(window.OUT[0]) == list(range(10, 18))


def test_counted_combines_of_the_library():
    """An operator of the library depends on its input types, and is counted all the same."""
    assert counting.rounds("recalc", library.sum(), 5, range(40)).average == 4
    assert counting.rounds("slick_deque", library.sum(), 5, range(40)).worst == 2
    counts = counting.rounds("daba", library.max(), 8, range(100))
    assert 0 < counts.average <= counts.worst <= 6
    assert counting.rounds("two_stacks", library.max(), 8, range(100)).worst >= 8


def test_slides_within_the_window():
    assert [reactive_2015_slides.slide_of(word, 32) for word in ("1", "64", "n/16", "n/4", "n")] == [1, None, 2, 8, 32]
    assert reactive_2015_slides.slide_of("n/16", 8) is None


def test_readings_are_the_same_every_time():
    assert (slickdeque_2018.readings(1000) == slickdeque_2018.readings(1000)).all()
    assert slickdeque_2018.readings(1000).dtype == np.int64


def test_interpreted_twins_of_the_loops():
    """What is counted is the source that is timed."""
    assert twin(firings).fire.__code__ is firings.fire.py_func.__code__


@pytest.mark.parametrize("functions", [daba_2015.FUNCTIONS, reactive_2015.FUNCTIONS], ids=["daba", "reactive"])
def test_every_function_takes_its_columns(functions):
    """Those of the full sizes too, which no tiny run meets: interpreted, over a window of three."""
    for name, chosen in functions.items():
        columns = chosen.columns(np.random.default_rng(0), 8)
        plain = tuple(column if isinstance(column, list) else column.tolist() for column in columns)
        made = Rounds("two_stacks", chosen.typed().as_object(), 3, plain)
        made.run(8)
        assert made.OK[7], name
