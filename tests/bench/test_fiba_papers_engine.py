"""The suites of fiba-2019 and bulk-fiba-2023 that run in Spark: what runs in the workers computes what it should."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspark")

from slidewise import bench
from slidewise.bench.papers import fiba_2019_engine as engine
from slidewise.bench.papers.trees import Tree
from slidewise.bench.tree_rounds import HIGH

ROWS = [
    {"figure": figure, "algorithm": name, "x": x, "at": x or 0.5, "n": 64, "rows": 10, "throughput": rate}
    for figure, names in (
        (16, ("bfinger4", "bclassic4", "Spark's frame")),
        (17, ("bfinger4", "two_stacks", "Spark's frame")),
        (18, ("bfinger4", "cg_bfinger4", "Spark's window()")),
    )
    for name in names
    for x, rate in ((1, 100.0), (64, 100.0))
]


def test_claims_of_equal_rates_do_not_hold():
    """Where everything is as fast as everything else, nothing is faster."""
    judged = bench.suite("fiba-2019-figs-16-18").claims(ROWS)
    told = [claim.holds for claim in judged]
    assert told == ["partly", "no", "no", "yes", "no", "yes", "no", "no", "no", "unmeasured"]  # vanilla FiBA does gain nothing
    rows = [
        {**row, "m": row["x"], "algorithm": a} for row in ROWS[:2] for a in ("b_fiba4", "nb_fiba4", "Spark's window()")
    ]
    assert [claim.holds for claim in bench.suite("bulk-fiba-2023-fig-17").claims(rows)] == ["no", "no", "no"]


def test_linear_is_not_just_slower():
    """Twice as slow at 64 times the window, or twice as fast at 64 times the slide, is no straight line."""
    speed = {(17, "Spark's frame", 1): 2.0, (17, "Spark's frame", 64): 1.0, (18, "Spark's window()", 64): 2.0}
    rows = [{**row, "throughput": speed.get((row["figure"], row["algorithm"], row["x"]), row["throughput"])} for row in ROWS]
    rows = [{**row, "throughput": 1.0} if row["algorithm"] == "Spark's window()" and row["x"] == 1 else row for row in rows]
    judged = {claim.paper: claim.holds for claim in bench.suite("fiba-2019-figs-16-18").claims(rows)}
    assert [holds for paper, holds in judged.items() if "linearly" in paper] == ["partly", "partly"]


def _worker(query, times, x):
    """What a query's function does in a worker, without Spark around it."""
    import pyarrow as pa

    class Frame:
        def mapInArrow(self, function, schema):
            batch = pa.RecordBatch.from_arrays([pa.array(times), pa.array(x)], names=["t", "x"])
            half = len(times) // 2
            return [
                row for part in function([batch.slice(0, half), batch.slice(half)]) for row in part["r"].to_pylist()
            ]

    return query(Frame())


@pytest.mark.parametrize("name", ["bfinger4", "bclassic4", "two_stacks"])
def test_windows_of_rows_in_a_worker(name):
    x = np.random.default_rng(1).integers(0, 100, 300)
    found = _worker(engine.counting_window(name, 16), np.arange(300), x)
    assert found == [int(x[max(0, i - 15) : i + 1].sum()) for i in range(300)]


def test_late_rows_in_a_worker():
    times = np.concatenate([HIGH + np.arange(5), np.arange(5, 300)])
    x = np.random.default_rng(2).integers(0, 100, 300)
    found = _worker(engine.counting_window("bfinger4", 16), times, x)
    assert found[-1] == x[:5].sum() + x[-11:].sum()


@pytest.mark.parametrize(("coarse", "bulk"), [(True, False), (False, True)])
def test_hopping_windows_in_a_worker(coarse, bulk):
    x = np.random.default_rng(3).integers(0, 100, 300)
    found = _worker(engine.hopping_window(Tree(4), 64, 16, coarse, bulk), np.arange(300), x)
    wanted = [int(x[max(0, i - 63) : i + 1].sum()) if i % 16 == 15 else None for i in range(300)]
    assert found == wanted
