"""Faults on a cluster of executors in processes of their own, nothing mocked: no event lost, none counted twice.

One stream lives through all of them, because each start of a cluster takes long:

    micro-batch   1    3              4             4 again          5             5 again ...   6          7
    what happens  worker executor     driver        other row order  commit fails                driver     end
                  killed killed       killed inside                                              killed between
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from tests.conftest import ROOT as CHECKOUT
from tests.engines.spark.streaming import cut, events, rows_of, sink_rows, table, write_batches

import slidewise as sw
from slidewise.engines.spark.counts import from_text

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SCHEMA = pa.schema([("id", pa.int64()), ("card", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("amount", pa.int64())])
PATIENCE = 600


class Driver:
    """A driver program in a process of its own."""

    def __init__(self, root: Path, **settings: str | int):
        self.root = root
        arguments = [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
        self.log = (root / "driver.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.spark.fault_driver", str(root), *arguments],
            cwd=CHECKOUT, stdout=self.log, stderr=self.log, start_new_session=True,
        )  # fmt: skip

    def java(self) -> psutil.Process:
        """The JVM of the driver itself."""
        return next(p for p in psutil.Process(self.process.pid).children() if "java" in p.name())

    def kill(self) -> None:
        """Both halves of the driver at once, as a machine would lose them; what they started ends by itself."""
        java = self.java()
        java.send_signal(signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def wait(self, what: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < deadline, f"{name} did not happen; see {self.log.name}: {self.tail()}"
            assert self.process.poll() is None or what(), f"the driver ended before {name}: {self.tail()}"
            time.sleep(0.1)

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def tail(self) -> str:
        return (self.root / "driver.log").read_text(errors="replace")[-3000:]

    def close(self) -> None:
        if self.process.poll() is None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            for process in [*children, psutil.Process(self.process.pid)]:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    pass
            self.process.wait()
        self.log.close()


@dataclass
class Life:
    """What happened to the stream."""

    root: Path
    rows: list[dict]
    pieces: list[list[dict]] = field(default_factory=list)
    attempts: dict[str, list[dict]] = field(default_factory=dict)
    commit_failed: bool = False

    def told(self) -> list[dict]:
        path = self.root / "pids"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def watch(self, number: int, hold: bool) -> None:
        (self.root / "pids").unlink(missing_ok=True)
        (self.root / "watch").write_text(str(number))
        if hold:
            (self.root / "hold").write_text("")

    def release(self) -> None:
        (self.root / "hold").unlink(missing_ok=True)

    def committed(self, batch: int) -> bool:
        return (self.root / "checkpoint" / "commits" / str(batch)).is_file()

    def out(self) -> list[dict]:
        return sink_rows(self.root / "out")

    def reports(self) -> dict[int, list[dict]]:
        """The counts of each micro-batch that reported. Spark runs no plan for one that the sink has already, when only
        the commit failed after it: that one may report nothing."""
        found: dict[int, list[dict]] = {}
        for line in (self.root / "counts.jsonl").read_text().splitlines():
            report = json.loads(line)
            if report["texts"]:
                found[report["batch"]] = [from_text(text) for text in report["texts"]]
        return found

    def counts(self) -> list[dict]:
        return [count for counts in self.reports().values() for count in counts]


@pytest.fixture(scope="module")
def life(tmp_path_factory) -> Iterator[Life]:
    root = tmp_path_factory.mktemp("life")
    rows = events(240, seed=21, jitter=120, cards=10)
    for row in rows:  # none of the numbers that workers warm up with
        row["id"] += 1000
    pieces = cut(rows, 5, 8)
    write_batches(root / "in", [table(piece, SCHEMA) for piece in pieces[:7]])
    found = Life(root, rows, pieces)
    drivers: list[Driver] = []

    def driver(**settings) -> Driver:
        drivers.append(Driver(root, **settings))
        return drivers[-1]

    try:
        first = driver()
        found.watch(pieces[1][0]["id"], hold=True)
        first.wait(lambda: len(found.told()) > 0, "batch 1")
        os.kill(found.told()[0]["pid"], signal.SIGKILL)
        found.release()
        first.wait(lambda: found.committed(1), "the commit of batch 1")
        found.attempts["worker"] = found.told()

        found.watch(pieces[3][0]["id"], hold=True)
        first.wait(lambda: len(found.told()) > 0, "batch 3")
        executor = psutil.Process(found.told()[0]["parent"]).parent()
        assert "java" in executor.name() and executor.pid != first.java().pid
        executor.send_signal(signal.SIGKILL)
        found.release()
        first.wait(lambda: found.committed(3), "the commit of batch 3")
        found.attempts["executor"] = found.told()

        found.watch(pieces[4][0]["id"], hold=True)
        first.wait(lambda: len(found.told()) > 0, "batch 4")
        first.kill()
        assert not found.committed(4)
        found.release()

        second = driver(shuffle=3)
        found.watch(pieces[5][0]["id"], hold=True)
        second.wait(lambda: len(found.told()) > 0, "batch 5")
        # Where the file that says that batch 5 is committed should be, there is a directory in the way.
        (root / "checkpoint" / "commits" / "5" / "in the way").mkdir(parents=True)
        found.release()
        assert second.ended() != 0
        assert found.committed(4)
        found.commit_failed = not found.committed(5) and any(row["revision"] == 5 for row in found.out())
        shutil.rmtree(root / "checkpoint" / "commits" / "5")

        third = driver(every="1 second")
        third.wait(lambda: found.committed(6), "the commit of batch 6")
        time.sleep(2)
        third.kill()

        write_batches(root / "in", [table(pieces[7], SCHEMA)], first=7)
        last = driver()
        assert last.ended() == 0, last.tail()
        yield found
    finally:
        for each in drivers:
            each.close()


def test_a_killed_worker_is_tried_again(life: Life) -> None:
    attempts = life.attempts["worker"]
    assert min(a["attempt"] for a in attempts) == 0
    assert max(a["attempt"] for a in attempts) >= 1
    assert len({a["pid"] for a in attempts}) >= 2


def test_a_killed_executor_moves_its_partitions(life: Life) -> None:
    attempts = life.attempts["executor"]
    assert len({a["parent"] for a in attempts}) >= 2, "another executor's worker took over"


def test_the_commit_failed_after_the_results_were_out(life: Life) -> None:
    assert life.commit_failed


def test_no_event_is_lost_and_none_counted_twice(life: Life) -> None:
    reports = life.reports()
    assert set(reports) >= set(range(8)) - {5}
    for batch, counts in reports.items():
        assert sum(c["in"] for c in counts) == sum(c["accepted"] for c in counts) == len(life.pieces[batch])
        assert sum(c["out"] for c in counts) == sum(row["revision"] == batch for row in life.out())
        assert sum(c["double"] for c in counts) == 0
    assert {row["id"] for row in life.out()} == {row["id"] for row in life.rows}


def test_the_last_word_is_that_of_a_frame(life: Life) -> None:
    expected = sw.rolling(table(life.rows, SCHEMA), time="ts", by="card", windows={"w": "10m"},
                          aggs={"total": sw.sum("amount"), "n": sw.count("id")})  # fmt: skip
    last: dict[int, dict] = {}
    for row in sorted(life.out(), key=lambda row: row["revision"]):
        last[row["id"]] = row
    for row in rows_of(expected):
        assert {name: last[row["id"]][name] for name in row} == row


def test_engines_were_rebuilt_from_the_log(life: Life) -> None:
    assert sum(c["replays"] for c in life.counts()) >= 4


def test_a_trigger_slower_than_idle_workers_live(tmp_path: Path) -> None:
    """Spark ends Python workers that were idle for a minute: what they cached is gone, what is stored is not."""
    rows = events(60, seed=2, jitter=60)
    early, later = cut(rows, 1, 2)
    write_batches(tmp_path / "in", [table(early, SCHEMA)])
    found = Life(tmp_path, rows)
    driver = Driver(tmp_path, every="1 second", until=1, master="local[2]")
    try:
        driver.wait(lambda: found.committed(0), "the commit of batch 0")
        time.sleep(80)
        write_batches(tmp_path / "in", [table(later, SCHEMA)], first=1)
        assert driver.ended() == 0, driver.tail()
    finally:
        driver.close()
    counts = found.counts()
    second = [c for c in counts if c["batch"] == 1]
    assert sum(c["replays"] for c in second) > 0
    assert sum(c["hits"] + c["catch_ups"] for c in second) == 0
    last = {row["id"]: row for row in sorted(found.out(), key=lambda row: row["revision"])}
    expected = sw.rolling(table(rows, SCHEMA), time="ts", by="card", windows={"w": "10m"}, aggs={"n": sw.count("id")})
    assert {i: row["n_w"] for i, row in last.items()} == {row["id"]: row["n_w"] for row in rows_of(expected)}
