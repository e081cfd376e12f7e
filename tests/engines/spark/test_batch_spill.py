"""Sorted runs on disk: whatever is added comes back in order, and little of it is held. No Spark here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from slidewise.engines.spark import batch_spill
from slidewise.engines.spark.batch_spill import Runs

BY_KEY_AND_TIME = [("key", "ascending"), ("t", "ascending")]


@pytest.fixture
def few_runs(monkeypatch):
    monkeypatch.setattr(batch_spill, "_FAN", 3)


def some_rows(rng, n: int) -> pa.Table:
    key = rng.integers(0, 5, n).astype(float)
    key[rng.random(n) < 0.1] = np.nan
    return pa.table({"id": pa.array(range(n)), "key": pa.array(key, mask=rng.random(n) < 0.2, from_pandas=False),
                     "t": pa.array(rng.integers(0, 50, n))})


@pytest.mark.parametrize("came", ["in any order", "sorted", "backwards"])
def test_rows_come_back_in_order(few_runs, came):
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, step = int(rng.integers(1, 400)), int(rng.integers(1, 60))
        table = some_rows(rng, n)
        wanted = table.sort_by(BY_KEY_AND_TIME)
        given = {"in any order": table, "sorted": wanted, "backwards": wanted.take(pa.array(range(n)[::-1]))}[came]
        with Runs([1, 2]) as runs:
            for begin in range(0, n, step):
                runs.add(given.slice(begin, step))
            found = pa.concat_tables(runs.merged())
            folder = runs._folder
        assert found.column("t").equals(wanted.column("t"))
        assert str(found.column("key").to_pylist()) == str(wanted.column("key").to_pylist())
        assert sorted(found.column("id").to_pylist()) == list(range(n))
        assert not folder.exists()


def test_there_are_never_many_runs(few_runs):
    """100 runs by threes: two of each level at most. Of each a third is held, and tables come out that are not larger."""
    rng = np.random.default_rng(2)
    with Runs([1, 2]) as runs:
        for number in range(1, 101):
            runs.add(some_rows(rng, 30))
            assert len(runs) <= 2 * (1 + int(np.log(number) / np.log(3)))
        sizes = [len(table) for table in runs.merged()]
    assert sum(sizes) == 3000 and max(sizes) <= 10 * len(runs)
