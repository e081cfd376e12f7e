"""What a batch task may cost its host: memory that does not grow with the partition, code that is compiled once. No Spark here:
tasks are calls, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def script(code: str, *arguments: str, **env: str) -> subprocess.Popen:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": path, **env})


_LARGE = """
import resource, sys
import numpy as np
import pyarrow as pa
import slidewise as sw
from slidewise.engines.spark.batch_tasks import Partitions
from slidewise.engines.spark.batch_worker import Job
from slidewise.engines.spark.travel import Parcel
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request

keys, wide = int(sys.argv[1]), 40
types = pa.schema({"key": pa.int64(), "t": pa.int64(), "n": pa.int64()})
plan = make_plan(request(time="t", by="key", windows={"w": sw.time(50), "r": sw.rows(30)}, aggs={"total": sw.sum("n")}), types)
job = Job(plan, {"key": 0, "t": 1, "n": 2}, types, tuple(range(3 + wide)), (("total_w", pa.int64()), ("total_r", pa.int64())),
          held_bytes=16 << 20, chunk_rows=50_000)

def batches(rows, rng=np.random.default_rng(0)):
    for begin in range(0, rows, 10_000):
        columns = [rng.integers(0, keys, 10_000), rng.permutation(10_000) + begin, np.ones(10_000, np.int64)]
        columns += [rng.random(10_000) for _ in range(wide)]
        yield pa.RecordBatch.from_arrays([pa.array(c) for c in columns], names=[f"c{k}" for k in range(3 + wide)])

def peak(rows):
    given = 0
    for batch in Partitions(Parcel(job))(batches(rows)):
        given += len(batch)
        assert keys > 1 or max(batch.column(-1).to_pylist()) <= 30
    assert given == rows
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

few = peak(150_000)
print(few, peak(1_200_000))
"""


@pytest.mark.parametrize("keys", [1, 1000], ids=["one key", "many keys"])
def test_a_partition_larger_than_memory_streams_through(keys):
    """Eight times the rows (400 MB of them), nearly the same peak."""
    done = script(_LARGE, str(keys))
    out, error = done.communicate(timeout=600)
    assert done.returncode == 0, error[-3000:]
    few, many = map(int, out.split())
    assert many - few < 100, f"{few} MB for 50 MB of rows, {many} MB for 400"


_PREPARE = """
import os, sys, time
import pyarrow as pa
import slidewise as sw
from slidewise.engines.spark.travel import prepared
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request

plan = make_plan(request(time="t", windows={"w": sw.time(50)}, aggs={"total": sw.sum("n")}),
                 pa.schema({"t": pa.int64(), "n": pa.int64()}))

def prepare():
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()}\\n")
    if len(open(sys.argv[1]).readlines()) == 1:
        os._exit(3)      # killed while it compiles
    time.sleep(0.5)

prepared(plan, prepare)
print("ready")
"""


def test_workers_that_start_together_compile_once(tmp_path):
    """And if the one that compiles dies, another takes over."""
    log = tmp_path / "compiled"
    workers = [script(_PREPARE, str(log), SLIDEWISE_CACHE_DIR=str(tmp_path / "cache")) for _ in range(4)]
    outs = [worker.communicate(timeout=300) for worker in workers]
    assert sorted(worker.returncode for worker in workers) == [0, 0, 0, 3], outs
    assert len(log.read_text().split()) == 2
