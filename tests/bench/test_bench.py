"""The framework of the benchmarks, and that the suites measure what they say. No test looks at a time."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from slidewise import bench
from slidewise.algorithms import algorithm
from slidewise.bench import clock, fifo
from slidewise.bench.screen import table
from slidewise.bench.suite import Suite, View, with_ratio
from slidewise.errors import InputError

ROWS = [
    {"what": "a", "size": 1, "rate": 10.0},
    {"what": "a", "size": 2, "rate": 20.0},
    {"what": "b", "size": 1, "rate": 5.0},
    {"what": "b", "size": 2, "rate": None},
]


@pytest.fixture
def tiny(monkeypatch):
    """A suite that measures nothing, in place of all others."""
    import sys
    import types

    made = types.ModuleType("tiny_suite")
    made.SUITE = Suite(
        "tiny",
        "nobody 1999 Figure 0",
        "rates of a and b",
        run=lambda quick, progress: [dict(row, quick=quick) for row in ROWS],
        views=lambda rows: [View("rates", "what", "size", "rate", best="max")],
        verdicts=lambda rows: ["a is twice as fast"],
    )
    monkeypatch.setitem(sys.modules, "tiny_suite", made)
    monkeypatch.setattr(bench, "SUITES", {"tiny": "tiny_suite"})


def test_a_run_is_shown_and_filed(tiny, tmp_path, capsys):
    assert bench.main(["tiny", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "tiny (quick): rates of a and b" in shown
    assert "a is twice as fast" in shown
    with (tmp_path / "tiny.csv").open() as file:
        assert [row["rate"] for row in csv.DictReader(file)] == ["10.0", "20.0", "5.0", ""]
    filed = json.loads((tmp_path / "tiny.json").read_text())
    assert filed["rows"] == [dict(row, quick=True) for row in ROWS]
    assert filed["source"] == "nobody 1999 Figure 0"
    assert {"python", "slidewise", "numba"} <= filed["versions"].keys()
    assert filed["machine"]["cores"] >= 1


def test_all_suites_by_default(tiny, tmp_path):
    assert list(bench.run(out_dir=tmp_path)) == ["tiny"]


def test_list_and_wrong_usage(tiny, tmp_path, capsys):
    assert bench.main(["--list"]) == 0
    assert "nobody 1999" in capsys.readouterr().out
    assert bench.main(["tinier", "--out", str(tmp_path)]) == 2
    assert "no suite 'tinier'; there are tiny" in " ".join(capsys.readouterr().err.split())
    assert bench.main(["--slow"]) == 2
    assert not list(tmp_path.iterdir())


def test_every_suite_can_be_loaded():
    for name in bench.SUITES:
        assert bench.suite(name).name == name
        assert bench.suite(name).source
    with pytest.raises(InputError):
        bench.suite("nothing")


def test_ratios():
    rows = [dict(row) for row in ROWS]
    with_ratio(rows, "rate", ("what", "a"), ("size",), "times_a")
    assert [row["times_a"] for row in rows] == [1.0, 1.0, 0.5, None]


def test_a_view_is_a_table():
    shown = table(View("rates", "what", "size", "rate", best="max"), ROWS)
    assert [column.header for column in shown.columns] == ["what", "1", "2"]
    assert [list(column.cells) for column in shown.columns][2] == ["[bold green]20[/]", "-"]


def test_the_clock_only_goes_forward():
    readings = np.zeros(1000, np.int64)
    clock._read(readings)
    assert (np.diff(readings) >= 0).all()
    assert readings[-1] > readings[0]
    assert 0 < clock.nanoseconds_per_tick() < 1000
    assert clock.overhead_ticks() >= 0


def test_fifo_measures_rounds():
    """One algorithm and window: rounds are counted, latencies come in order, and the arrays hold a full window after it."""
    op = fifo.OPERATORS["sum"][0]().typed((np.dtype(np.int64),))
    X = (np.arange(fifo.BATCH),)
    found = fifo.measure(algorithm("two_stacks_lite"), op, 5, X, quick=True)
    assert found["throughput"] > 0
    assert 0 <= found["p50_ns"] <= found["p99_9_ns"] <= found["max_ns"]
    made = fifo.Bench(algorithm("two_stacks_lite"), op, 5, X)
    made.fill()
    made.run(20)
    H = made.arrays[0]
    assert H[2] - H[0] == 5
    assert made.OUT[0][19] == 15 + 16 + 17 + 18 + 19


def test_fifo_verdicts_and_views():
    rows = [
        {
            "operator": "sum",
            "algorithm": name,
            "window": 4,
            "throughput": 1.0,
            "p50_ns": 1,
            "p99_9_ns": 2,
            "max_ns": worst,
        }
        for name, worst in (("two_stacks", 5000.0), ("daba", 50.0))
    ]
    assert fifo.verdicts(rows) == [
        "sum, window 4: the worst round of daba takes 50 ns, that of two_stacks 5 us, 100 times as long"
    ]
    assert [view.value for view in fifo.views(rows)] == ["throughput", "p50_ns", "p99_9_ns", "max_ns"]
