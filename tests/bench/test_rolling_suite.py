"""The verdicts of `bench rolling`: every target of its own, by its worst figure, and a miss is called one."""

import os

import pytest

from slidewise.bench.rolling import LEAST, MOST, memory, verdicts


def rows(figures):
    return [
        {"experiment": experiment, "what": what, "rows": n, "window": "w", "system": system, "times_slidewise": figure}
        for (experiment, what, system, n), figure in figures.items()
    ]


def test_the_worst_figure_decides():
    told = verdicts(
        rows(
            {
                ("one key", "sum", "pandas", 10): 5.0,
                ("one key", "max", "pandas", 10): 1.9,
                ("one key", "std", "pandas", 10): 1.2,
                ("one key", "sum", "pandas", 100): 2.5,
            }
        )
    )
    assert told == [
        "one key, sum mean min max count, pandas, 10 rows: at least 2 wanted, 1.90 found (missed)",
        "one key, sum mean min max count, pandas, 100 rows: at least 2 wanted, 2.50 found",
        "one key, std, pandas, 10 rows: at least 1 wanted, 1.20 found",
    ]


def test_every_target_can_hold_and_be_missed():
    for wanted, better in ((LEAST, 1.1), (MOST, 0.9)):
        for (experiment, what, system), bound in wanted.items():
            one = what if experiment != "one key" else what.split()[0]
            for factor, missed in ((better, False), (1 / better, True)):
                (line,) = verdicts(rows({(experiment, one, system, 7): bound * factor}))
                assert line.endswith("(missed)") is missed, line


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="this system does not tell a process's peak memory")
def test_peak_memory_of_every_kind_of_frame():
    found = []
    memory(500_000, found, lambda told: None)
    assert [row["system"] for row in found] == ["slidewise", "slidewise on pandas", "slidewise on polars"]
    assert len(verdicts(found)) == 3
    assert all(1 < row["times_slidewise"] <= 2.5 for row in found), "input and output, and not much more"
