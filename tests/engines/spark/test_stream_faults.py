"""Faults on a cluster of executors in processes of their own, nothing mocked: no event lost, none counted twice.

Events come out of order, behind the watermark, further behind it than is kept, and some of them twice.

One stream lives through all of them, because each start of a cluster takes long:

    driver   micro-batch   what happens
    first         1        worker killed
                  3        executor killed
                  4        driver killed inside
    second        4        again, with its rows in another order
                  5 ...    driver killed while the sink's log is being written: state is there, output is not
    third         5 ...    again
                  6 ...    driver killed while the commit is being written: state and output are there
    fourth        ... 10   a trigger slower than idle workers live, then driver killed between micro-batches (while it is
                           idle: a worker and a driver of another stream killed, one that gives final results)
    last         11        the checkpoint, a copy of it and both again go their own ways in the same workers
"""

from __future__ import annotations

import contextlib
import json
import os
import random
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
from tests.engines.spark.streaming import SECOND, cut, events, rows_of, sink_rows, table, ties, write_batches

import slidewise as sw
from slidewise.engines.spark.control import flush
from slidewise.engines.spark.counts import from_text

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SCHEMA = pa.schema([
    ("id", pa.int64()), ("card", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("amount", pa.int64()), ("shop", pa.string()),
])  # fmt: skip
PATIENCE = 600
DELAY, KEEP = 120 * SECOND, 180 * SECOND
"""As in the driver's program: watermark and keep."""


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

    def workers(self) -> set[int]:
        """The Python workers of its executors: what their daemons have forked."""
        found = {}
        for process in self.java().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                if "pyspark.daemon" in process.cmdline():
                    found[process.pid] = process.ppid()
        return {pid for pid, parent in found.items() if parent in found}

    def kill(self) -> None:
        """Both halves of the driver at once, as a machine would lose them; what they started ends by itself."""
        java = self.java()
        java.send_signal(signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def kill_while_writing(self, log: Path, batch: int) -> bool:
        """Kill the driver at the moment when it writes the file `batch` of a log of Spark's: under a name of its own, and
        renamed when it is whole. True if it was caught in between; False, and nothing done, if it was faster than we."""
        java = self.java()
        deadline = time.monotonic() + PATIENCE
        while not unfinished(log, batch):
            assert time.monotonic() < deadline, f"{log.name}/{batch} was not written: {self.tail()}"
            if (log / str(batch)).exists():
                return False
        java.suspend()  # so that what is looked at now is what the kill finds
        while java.status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)
        if (log / str(batch)).exists() or not unfinished(log, batch):
            java.resume()
            return False
        self.kill()
        assert unfinished(log, batch) and not (log / str(batch)).exists()
        return True

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


def unfinished(log: Path, batch: int) -> bool:
    try:
        return any(name.startswith(f".{batch}.") and name.endswith(".tmp") for name in os.listdir(log))
    except FileNotFoundError:
        return False


@dataclass
class Fates:
    """What becomes of the events of one micro-batch, by the rule of the contract."""

    taken: list[dict] = field(default_factory=list)
    apart: list[dict] = field(default_factory=list)
    late: int = 0
    double: int = 0


def fates(pieces: list[list[dict]], keep: int | None, unseen: int | None = None) -> list[Fates]:
    """The watermark of a micro-batch is the youngest time of the earlier ones less the delay. unseen: the number of one
    that Spark ran no plan for again, and so learnt no times from."""
    found, known, youngest = [], set(), None
    for number, piece in enumerate(pieces):
        watermark, fate = None if youngest is None else youngest - DELAY, Fates()
        for row in piece:
            if row["id"] in known:
                fate.double += 1
                continue
            behind = watermark is not None and row["ts"] < watermark
            fate.late += behind
            if behind and (keep is None or row["ts"] < watermark - keep):
                fate.apart.append(row)
            else:
                fate.taken.append(row)
                known.add(row["id"])
        found.append(fate)
        if number != unseen:
            youngest = max([row["ts"] for row in piece] + ([] if youngest is None else [youngest]))
    return found


def with_doubles(pieces: list[list[dict]], common: int, keep: int | None) -> list[list[dict]]:
    """Some events come again: in their own micro-batch, and in the next ones, where they are late at most, not too late.

    common: pieces behind so many may not follow each other, and have doubles only of those before."""
    rng, told = random.Random(7), fates(pieces, keep)
    sent = [list(piece) for piece in pieces]
    for number in range(1, len(pieces)):
        youngest = max(row["ts"] for piece in pieces[:number] for row in piece)
        first = min(number, common)
        earlier = [row for fate in told[max(0, first - 3) : first] for row in fate.taken
                   if row["ts"] >= youngest - DELAY - (keep or 0)]  # fmt: skip
        again = rng.sample(earlier, min(2, len(earlier))) + told[number].taken[-1:]
        for row in again:
            sent[number].insert(rng.randrange(1, len(sent[number]) + 1), row)
    return sent


@dataclass
class Life:
    """What happened to the stream."""

    root: Path
    pieces: list[list[dict]]
    keep: int | None = KEEP
    attempts: dict[str, list[dict]] = field(default_factory=dict)
    orders: dict[str, list[list[int]]] = field(default_factory=dict)
    in_sinks_log: int | None = None
    """The micro-batch in whose sink's log the driver was killed."""
    in_commit: int | None = None
    """The micro-batch in whose commit the driver was killed."""
    left: dict[str, dict[str, bool]] = field(default_factory=dict)
    """What was there of that micro-batch when the driver was dead."""
    after_idle: int = 0
    """The micro-batch that came after the workers had been idle."""
    finals: Life | None = None
    """Another stream, one that gives final results."""
    before_flush: list[dict] = field(default_factory=list)
    """results="final": what had come out before the stream was told to end."""

    def put(self, number: int) -> None:
        write_batches(self.root / "in", [table(self.pieces[number], SCHEMA)], first=number)

    def told(self) -> list[dict]:
        path = self.root / "pids"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def hold(self, batch: int) -> None:
        """Whoever lifts the first event of this micro-batch tells so and waits."""
        number = self.first(batch)
        (self.root / f"hold-{number}").write_text("")
        (self.root / ".watch").write_text(str(number))
        os.replace(self.root / ".watch", self.root / "watch")
        (self.root / "pids").unlink(missing_ok=True)

    def release(self, batch: int) -> None:
        (self.root / f"hold-{self.first(batch)}").unlink()

    def first(self, batch: int) -> int:
        """An event that is lifted in this micro-batch: one of its own; of final results, one that the watermark passes then."""
        told = fates(self.pieces, self.keep)
        if self.keep is not None:
            return told[batch].taken[0]["id"]
        low, high = (max(row["ts"] for piece in self.pieces[:k] for row in piece) - DELAY for k in (batch - 1, batch))
        return next(row["id"] for fate in told[:batch] for row in fate.taken if low + SECOND < row["ts"] < high - SECOND)

    def fates(self, *pieces: int) -> list[Fates]:
        """What must have become of the events of these pieces, one after the other."""
        return fates([self.pieces[number] for number in pieces], self.keep, self.in_commit)

    def there(self, batch: int) -> dict[str, bool]:
        """What is there of a micro-batch: what it was to read, state, files, the log that names them, the commit."""
        out, checkpoint = self.root / "out", self.root / "checkpoint"
        named = {Path(json.loads(line)["path"]).name for log in (out / "_spark_metadata").iterdir()
                 if log.name.removesuffix(".compact").isdigit() for line in log.read_text().splitlines()[1:]}  # fmt: skip
        return {
            "offsets": (checkpoint / "offsets" / str(batch)).is_file(),
            "state": any(checkpoint.glob(f"state/0/*/{batch + 1}[._]*")),
            "unnamed files": any(path.name not in named for path in out.glob("part-*.parquet")),
            "sink's log": any((out / "_spark_metadata").glob(f"{batch}*")),
            "commit": self.committed(batch),
        }

    def committed(self, batch: int) -> bool:
        return (self.root / "checkpoint" / "commits" / str(batch)).is_file()

    def out(self, name: str = "") -> list[dict]:
        return sink_rows(self.root / f"out{name}")

    def order(self, batch: int) -> list[list[int]]:
        """The numbers of a micro-batch's events as its tasks had them, so far."""
        folder = self.root / "orders" / str(batch)
        return [json.loads(path.read_text()) for path in sorted(folder.iterdir())] if folder.exists() else []

    def reports(self) -> dict[int, list[dict]]:
        """The counts of each micro-batch that reported. Spark runs no plan for one that the sink has already, when only
        the commit failed after it: that one reports nothing."""
        found: dict[int, list[dict]] = {}
        path = self.root / "counts.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            report = json.loads(line)
            if report["texts"]:
                found[report["batch"]] = [from_text(text) for text in report["texts"]]
        return found

    def counts(self) -> list[dict]:
        return [count for counts in self.reports().values() for count in counts]


def live_with_final_results(life: Life, driver: Callable[..., Driver]) -> None:
    """A worker is killed, then the driver; its second one goes on to the end."""
    life.root.mkdir()
    for number in range(len(life.pieces)):
        life.put(number)
    life.hold(2)
    first = driver(life.root, results="final")
    first.wait(lambda: bool(life.told()), "batch 2")
    os.kill(life.told()[0]["pid"], signal.SIGKILL)
    first.wait(lambda: len(life.told()) > 1, "another attempt")
    life.attempts["worker"] = life.told()
    life.hold(3)
    life.release(2)
    first.wait(lambda: bool(life.told()), "batch 3")
    first.kill()
    life.release(3)
    last = driver(life.root, results="final", runs=",")
    last.wait((life.root / "ready-1").exists, "the end of the data")
    life.before_flush = life.out()
    flush(life.root / "control")
    (life.root / "go-1").write_text("")
    assert last.ended() == 0, last.tail()


@pytest.fixture(scope="module")
def life(tmp_path_factory) -> Iterator[Life]:
    root = tmp_path_factory.mktemp("life")
    rows = events(300, seed=24, jitter=500, cards=10)
    assert ties(rows) > 40
    for row in rows:  # none of the numbers that workers warm up with
        row["id"] += 1000
    finals = Life(root / "finals", with_doubles(cut(rows, 6, 5), 5, None), keep=None)
    found = Life(root, with_doubles(cut(rows, 5, 15), 11, KEEP), finals=finals)
    for number in range(10):
        found.put(number)
    drivers: list[Driver] = []

    def driver(at: Path = root, **settings) -> Driver:
        drivers.append(Driver(at, **settings))
        return drivers[-1]

    def reached(which: Driver, batch: int) -> None:
        """The micro-batch is on its way and held; those before it have told their counts."""
        which.wait(lambda: any(one["batch"] == batch for one in found.told()), f"batch {batch}")
        which.wait(lambda: batch - 1 in found.reports() or batch - 1 == found.in_commit, f"the counts of batch {batch - 1}")

    def caught(which: Driver, log: Path, batch: int, end: int) -> int:
        """Kill it while it writes this log for the micro-batch that is held; whoever is too slow for one tries the next."""
        while True:
            if batch + 1 < 10:
                found.hold(batch + 1)
            found.release(batch)
            if which.kill_while_writing(log, batch):
                return batch
            batch += 1
            assert batch < end, f"{log.name} was not caught while it was written"
            reached(which, batch)

    try:
        found.hold(1)
        first = driver()
        reached(first, 1)
        os.kill(found.told()[0]["pid"], signal.SIGKILL)
        first.wait(lambda: len(found.told()) > 1, "another attempt")
        found.attempts["worker"] = found.told()
        found.hold(3)
        found.release(1)

        reached(first, 3)
        executor = psutil.Process(found.told()[0]["parent"]).parent()
        assert "java" in executor.name() and executor.pid != first.java().pid
        executor.send_signal(signal.SIGKILL)
        first.wait(lambda: len(found.told()) > 1, "another attempt")
        found.attempts["executor"] = found.told()
        found.hold(4)
        found.release(3)

        reached(first, 4)
        first.kill()
        assert not found.committed(4)
        found.orders["first"] = found.order(4)
        found.hold(5)
        found.release(4)

        second = driver(shuffle=3)
        reached(second, 5)
        found.orders["second"] = found.order(4)[len(found.orders["first"]) :]
        found.in_sinks_log = caught(second, root / "out" / "_spark_metadata", 5, 8)
        found.left["sink's log"] = found.there(found.in_sinks_log)

        third = driver()
        reached(third, found.in_sinks_log + 1)
        found.in_commit = caught(third, root / "checkpoint" / "commits", found.in_sinks_log + 1, 10)
        found.left["commit"] = found.there(found.in_commit)
        for path in root.glob("hold-*"):
            path.unlink()

        fourth = driver(every="1 second")
        fourth.wait(lambda: found.committed(9), "the commit of batch 9")
        idle = fourth.workers()
        assert idle
        live_with_final_results(found.finals, driver)
        fourth.wait(lambda: not idle & fourth.workers(), "the end of idle workers")  # Spark ends them after a minute
        found.put(10)
        found.after_idle = 10
        fourth.wait(lambda: found.committed(10) and 10 in found.reports(), "the commit of batch 10")
        time.sleep(2)
        fourth.kill()

        shutil.copytree(root / "checkpoint", root / "checkpoint-copy")
        found.put(11)
        last = driver(runs=",copy,,copy")
        for number in (1, 2, 3):
            last.wait((root / f"ready-{number}").exists, f"the end of run {number}")
            (root / "in" / f"{10 + number:05}.parquet").unlink()
            found.put(11 + number)
            (root / f"go-{number}").write_text("")
        assert last.ended() == 0, last.tail()
        yield found
    finally:
        for each in drivers:
            each.close()


def test_a_killed_worker_is_tried_again(life: Life) -> None:
    attempts = life.attempts["worker"]
    assert {a["batch"] for a in attempts} == {1}
    assert attempts[0]["attempt"] == 0 and attempts[-1]["attempt"] >= 1
    assert attempts[0]["pid"] != attempts[-1]["pid"]
    assert not psutil.pid_exists(attempts[0]["pid"])


def test_a_killed_executor_moves_its_partitions(life: Life) -> None:
    attempts = life.attempts["executor"]
    assert {a["batch"] for a in attempts} == {3}
    assert len({a["partition"] for a in attempts}) == 1
    assert len({a["parent"] for a in attempts}) >= 2, "another executor's worker took over"
    moved = [c for c in life.reports()[3] if c["replays"] or c["catch_ups"]]
    assert moved, "and had to learn from the log what the first one knew"


def test_a_batch_was_replayed_in_another_row_order(life: Life) -> None:
    before, after = life.orders["first"], life.orders["second"]
    ids = [row["id"] for row in life.pieces[4]]
    assert before == [ids]
    assert sorted(i for task in after for i in task) == sorted(ids)
    assert [i for task in after for i in task] != ids and len(after) > 1


def test_the_driver_was_killed_while_the_sinks_log_was_written(life: Life) -> None:
    """State and files were there, and nothing named the files: the micro-batch ran again."""
    assert life.left["sink's log"] == {
        "offsets": True, "state": True, "unnamed files": True, "sink's log": False, "commit": False}  # fmt: skip
    assert life.in_sinks_log in life.reports()


def test_the_driver_was_killed_in_the_commit(life: Life) -> None:
    """The results were out: Spark ran no plan for it again."""
    there = life.left["commit"]
    assert (there["offsets"], there["state"], there["sink's log"], there["commit"]) == (True, True, True, False)
    assert life.in_commit not in life.reports()
    fate = life.fates(*range(11))[life.in_commit]
    out = {row["id"] for row in life.out() if row["revision"] == life.in_commit}
    assert out >= {row["id"] for row in (*fate.taken, *fate.apart)}


MAIN, COPY = (*range(12), 13), (*range(11), 12, 14)
"""The pieces that the stream and its copy went on with."""


def test_no_event_is_lost_and_none_counted_twice(life: Life) -> None:
    reports, told = life.reports(), life.fates(*MAIN)
    assert set(reports) == set(range(13)) - {life.in_commit}
    for batch, counts in reports.items():
        fate, all_of = told[batch], {name: sum(c[name] for c in counts) for name in counts[0]}
        wanted = {"in": len(life.pieces[MAIN[batch]]), "accepted": len(fate.taken), "side": len(fate.apart),
                  "double": fate.double, "late": fate.late, "out": sum(row["revision"] == batch for row in life.out())}  # fmt: skip
        assert {name: all_of[name] for name in wanted} == wanted, batch
    for name, least in (("double", 20), ("late", 60), ("side", 10), ("touched", 100)):
        assert sum(c[name] for c in life.counts()) > least, f"{name}: the events are meant to make trouble"
    again = [(row["id"], row["revision"]) for row in life.out()]
    assert len(set(again)) == len(again), "no result twice in a micro-batch"
    assert {row["id"] for row in life.out()} == {row["id"] for number in MAIN for row in life.pieces[number]}
    assert_apart(life.out(), told)


def assert_apart(found: list[dict], told: list[Fates]) -> None:
    """Events that come too late are handed out once, as they are."""
    beside = [row for row in found if row["late"]]
    assert sorted(row["id"] for row in beside) == sorted(row["id"] for fate in told for row in fate.apart)
    assert all(row["n_w"] is None and row["line_w"] is None for row in beside)


def assert_ends_as_a_frame(found: list[dict], rows: list[dict]) -> None:
    aggs = {"total": sw.sum("amount"), "n": sw.count("id"), "tail": sw.last("shop"), "line": sw.concat("shop", sep="")}
    expected = sw.rolling(table(rows, SCHEMA), time="ts", by="card", windows={"w": "10m"}, aggs=aggs, order="id")
    last = {row["id"]: row for row in sorted(found, key=lambda row: row["revision"]) if not row["late"]}
    for row in rows_of(expected):
        assert {name: last[row["id"]][name] for name in row} == row
    assert last.keys() == {row["id"] for row in rows}


def test_the_last_word_is_that_of_a_frame(life: Life) -> None:
    assert_ends_as_a_frame(life.out(), [row for fate in life.fates(*MAIN) for row in fate.taken])


def test_a_copied_checkpoint_that_went_another_way(life: Life) -> None:
    begun = [row for row in life.out() if row["revision"] <= 10]
    told = life.fates(*COPY)
    assert_ends_as_a_frame(begun + life.out("-copy"), [row for fate in told for row in fate.taken])
    assert_apart(begun + life.out("-copy"), told)


def test_engines_were_rebuilt_from_the_log(life: Life) -> None:
    assert sum(c["replays"] for c in life.counts()) >= 4


def test_batches_that_hit_the_cache_read_no_old_entries(life: Life) -> None:
    hits = [c for c in life.counts() if c["hits"]]
    assert len(hits) >= 4
    assert sum(c["entries_read"] for c in hits) == 0
    assert sum(c["entries_read"] for c in life.counts()) > 0


def test_a_trigger_slower_than_idle_workers_live(life: Life) -> None:
    """What the workers cached is gone with them, what is stored is not."""
    counts = life.reports()[life.after_idle]
    assert sum(c["replays"] for c in counts) > 0
    assert sum(c["hits"] + c["catch_ups"] for c in counts) == 0


def test_final_results_come_once_whatever_is_killed(life: Life) -> None:
    finals = life.finals
    attempts = finals.attempts["worker"]
    assert attempts[0]["attempt"] == 0 and attempts[-1]["attempt"] >= 1
    told = finals.fates(*range(5))
    rows = [row for fate in told for row in fate.taken]
    early = [row for row in finals.before_flush if not row["late"]]
    assert 0 < len(early) < len(rows), "some results waited for the end"
    assert len([row for row in finals.out() if not row["late"]]) == len(rows), "each came once"
    assert sum(fate.double for fate in told) > 5
    assert_ends_as_a_frame(finals.out(), rows)
    assert_apart(finals.out(), told)
