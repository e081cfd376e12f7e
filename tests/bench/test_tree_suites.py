"""The suites of the trees measure what they say, and judge by their rows. No test looks at a time."""

from __future__ import annotations

import numpy as np
import pytest

from slidewise.bench import fiba, memory
from slidewise.bench.tree_rounds import BATCH, Rounds


def quietly(what: str) -> None:
    pass


def test_memory_stays_within_its_bounds():
    """Counted, not timed: the arena up to its last unit. The windows are as large as needed for the ends not to matter."""
    rows = memory.measure(2**16, 2**15, quietly)
    bounded = {row["case"]: row for row in rows if row["bound"] is not None}
    assert all(row["state"] == memory.ONE for row in bounded.values())
    assert bounded.keys() == memory.CASES.keys()
    for case, row in bounded.items():
        assert row["n"] == 2**16
        assert 16 < row["bytes_entry"] <= row["bound"], case
    large = [row for row in rows if row["case"] == memory.LARGE]
    assert [row["n"] for row in large] == [2**15]
    found = memory.verdicts(rows)
    assert len(found) == 9 and all("holds" in line for line in found[:4])
    assert all(memory.WIDE in line for line in found[4:8]), "two words an entry cost more, and are told apart"
    bounded["in order"]["bytes_entry"] = 24.5
    assert "MISSED" in memory.verdicts(rows)[0]
    assert {view.value for view in memory.views(rows)} == {"bytes_entry", "throughput"}


def test_a_round_keeps_the_window_and_the_distance():
    op = fiba.OPERATORS["sum"][0]().typed((np.dtype(np.int32),))
    tree = Rounds(op, 8, True, (np.ones(BATCH, np.int32),), 100, 16)
    tree.run(300)
    assert tree.forest.size() == 100
    times = tree.forest.export(0)[0]
    assert np.count_nonzero(times >= 2**40) == 16
    assert times[83] == 299


def test_shuffled_bulks_keep_the_window():
    op = fiba.OPERATORS["sum"][0]().typed((np.dtype(np.int32),))
    bench = fiba.Bench(op, (np.ones(BATCH, np.int32),), True, 256, 16)
    fiba.Shuffled(bench.again(), 32).run(9)
    forest = bench.rounds.forest
    forest.check()
    assert forest.size() == 256
    assert forest.export(0)[0][:240].tolist() == list(range(48, 288))


def test_latencies_tell_only_what_there_are_rounds_for():
    found = fiba.latencies(np.arange(1.0, 2001.0))
    assert found["p50_ns"] == pytest.approx(1000.5)
    assert found["p99_9_ns"] < found["max_ns"] == 2000
    assert found["p99_999_ns"] is None


@pytest.fixture(scope="module")
def rows():
    return fiba.tiny(quietly)


def test_every_part_is_measured(rows):
    singles = {(r["operator"], r["algorithm"], r["d"]) for r in rows if r["part"] == "rounds"}
    assert singles == {
        (name, algorithm, d)
        for name in fiba.OPERATORS
        for algorithm in fiba.ALGORITHMS
        for d in fiba.TINY.distances(name)
    }
    bulks = {(r["m"], r["d"], r["how"]) for r in rows if r["part"] == "bulk"}
    assert bulks == {(m, d, how) for m in (1, 16) for d in (0, 256, m) for how in ("singles", "sorted", "unsorted")}
    assert all(r["throughput"] > 0 for r in rows)
    assert fiba.FULL.distances("sum") == [0, 1, 16, 1024, 2**20]
    assert all(r["times_singles"] == 1 for r in rows if r["how"] == "singles")


def test_verdicts_come_from_the_rows(rows):
    made = [dict(r, m=1024, d=1024 if r["d"] else 0) for r in rows if r["part"] == "bulk" and r["m"] == 16]
    for times, word in ((3.5, "holds"), (2.5, "MISSED")):
        said = fiba.verdicts([dict(r, times_singles=times) for r in made if r["d"] == 1024 and r["how"] == "sorted"])
        assert len(said) == 1 and word in said[0] and f"{times:.2f}" in said[0]
    for times, word in ((1.0, "holds"), (0.9, "MISSED")):
        said = fiba.verdicts([dict(r, times_singles=times) for r in made if r["d"] == 0 and r["how"] == "sorted"])
        assert len(said) == 1 and word in said[0]
    said = fiba.verdicts(rows)
    assert sum("of btree" in line for line in said) == 3


def test_views_and_plots(rows):
    values = {view.value for view in fiba.views(rows)}
    assert {"throughput", "p50_ns", "p99_9_ns", "p99_999_ns", "max_ns", "times_singles"} <= values
    assert [plot.name for plot in fiba.plots(rows)] == ["rounds", "bulk"]
