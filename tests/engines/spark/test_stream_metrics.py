"""What the listener says of each micro-batch: every figure, against what the events themselves say."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    SECOND,
    START,
    counts_of,
    cut,
    events,
    out,
    source,
    start,
    table,
    ties,
    write_batches,
)

import slidewise as sw
from slidewise.engines.spark.metrics import Batch

ASKED = {"time": "ts", "by": "card", "windows": ["10m"], "aggs": {"n": sw.count(), "total": sw.sum("amount")}, "order": "id"}
MINUTE = 60 * SECOND


class Told(sw.StreamMetrics):
    """Keeps every micro-batch and its line."""

    def __init__(self):
        super().__init__(show=self._keep)
        self.all: list[Batch] = []
        self.lines: list[str] = []

    def _keep(self, line: str) -> None:
        self.all.append(self.last)
        self.lines.append(line)


def watched(spark, result, root: Path, batches: int):
    """Run to the end under a listener; it, and Spark's own progress."""
    listener = Told()
    spark.streams.addListener(listener)
    try:
        query = start(result, root)
        query.awaitTermination()
        deadline = time.monotonic() + 60
        while len(listener.lines) < batches and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert [batch.number for batch in listener.all] == list(range(batches))
    return listener, query


def figures(line: str) -> dict[str, str]:
    """What stands beside each word of the line."""
    parts = re.sub(r" \(touching (\d+) results\)", r" · touching \1", line).split(" · ")
    return dict(part.rsplit(" ", 1) for part in parts)


def test_every_figure_of_a_line(spark, tmp_path: Path) -> None:
    """Events out of order, behind the watermark and beyond what is kept, double, without a time, and dated ahead."""
    now = int(time.time()) * SECOND
    rows = events(200, seed=23, jitter=400)
    assert ties(rows) > 30
    for row in rows:
        row["ts"] += now - 1800 * SECOND - START
    pieces = cut(rows, 2, 4)
    pieces[1] += [dict(row) for row in pieces[0][-3:]]
    pieces[2] += [dict(rows[0], id=1000, ts=None), dict(rows[0], id=1001, ts=None), dict(rows[0], id=1002, ts=now + 86400 * SECOND)]
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="2m", id="id", keep="2m", max_ahead="1h")
    listener, query = watched(spark, result, tmp_path, len(pieces))
    given = out(tmp_path)

    known: dict = {}  # card -> (time, id) of what was taken in
    youngest: int | None = None
    sums = dict.fromkeys(("late", "corrected", "touched", "side", "double"), 0)
    for number, (piece, batch, line) in enumerate(zip(pieces, listener.all, listener.lines)):
        watermark = None if youngest is None else (youngest - 2 * MINUTE) // 1000 * 1000
        taken: list[dict] = []
        found = dict.fromkeys(("late", "side", "double", "bad", "ahead", "corrected"), 0)
        seen = {i for rows_ in known.values() for _, i in rows_}
        for row in piece:
            if row["ts"] is None:
                found["bad"], found["side"] = found["bad"] + 1, found["side"] + 1
            elif row["ts"] > now + 3600 * SECOND:
                found["ahead"], found["side"] = found["ahead"] + 1, found["side"] + 1
            elif row["id"] in seen:
                found["double"] += 1
            else:
                behind = watermark is not None and row["ts"] < watermark
                found["late"] += behind
                if behind and row["ts"] < watermark - 2 * MINUTE:
                    found["side"] += 1
                else:
                    taken.append(row)
                    found["corrected"] += any(other > (row["ts"], row["id"]) for other in known.get(row["card"], ()))
        for row in taken:
            known.setdefault(row["card"], set()).add((row["ts"], row["id"]))
        rows_out = [row for row in given if row["revision"] == number]
        found |= {"in": len(piece), "out": len(rows_out), "accepted": len(taken), "dropped": 0}
        found["touched"] = len(rows_out) - len(taken) - found["side"]
        assert {name: batch.counts[name] for name in found} == found
        for name in sums:
            sums[name] += found[name]

        usable = [row["ts"] for row in piece if row["ts"] is not None and row["ts"] < now + 3600 * SECOND]
        if len(usable) < len(piece):
            assert batch.lateness is None, "Spark's oldest event time is that of an event without one"
        elif youngest is not None:
            assert batch.lateness == timedelta(milliseconds=max(0, youngest // 1000 - min(usable) // 1000))
        youngest = max([*usable, youngest or 0])

        progress = query.recentProgress[number]
        buckets = [count for count in counts_of(query) if count["batch"] == number]
        assert batch.largest_share == max(c["in"] for c in buckets) / len(piece)
        assert batch.rate == pytest.approx(progress["processedRowsPerSecond"], abs=0.1) and batch.rate > 0
        shown = figures(line)
        assert shown["in"] == str(len(piece)) and shown["out"] == str(len(rows_out))
        for word in ("late", "corrected", "dropped", "double", "bad", "ahead"):
            assert shown[word] == str(found[word]), word
        assert shown["aside"] == str(found["side"]) and shown["touching"] == str(found["touched"])
        assert shown["largest bucket"] == f"{batch.largest_share:.0%}"
        if number:
            lag = datetime.fromisoformat(progress["timestamp"]) - datetime.fromisoformat(progress["eventTime"]["watermark"])
            assert batch.watermark_lag == lag and "watermark lag" in line
        visits = sum(c["hits"] + c["catch_ups"] + c["replays"] for c in buckets)
        assert f"cache hits {sum(c['hits'] for c in buckets)} of {visits}" in line
        assert f"replays {sum(c['replays'] for c in buckets)}" in line
        latest = {count["label"]: count for count in counts_of(query) if count["batch"] <= number}
        assert batch.counts["state_bytes"] == sum(c["state_bytes"] for c in latest.values()) > 0
        assert f"in {sum(c['state_entries'] for c in latest.values())} entries" in line
    assert min(sums.values()) > 2, sums
    totals = listener.totals
    assert totals["in"] == sum(map(len, pieces)) and totals["out"] == len(given)
    assert totals["in"] == totals["accepted"] + totals["side"] + totals["dropped"] + totals["double"]
    assert {name: totals[name] for name in sums} == sums
    assert totals["live_events"] <= totals["accepted"]
    assert listener.line().startswith(f"in all · in {totals['in']} · out {totals['out']} · late {totals['late']} · ")


def test_a_report_of_the_same_micro_batch_takes_its_place() -> None:
    listener = sw.StreamMetrics()
    for number, count in ((0, 5), (1, 9), (1, 7)):
        listener.add(_Report("a query", number, count))
    listener.add(_Report("another query", 1, 2))
    assert listener.totals["in"] == 5 + 7 + 2


def test_the_last_is_the_one_reported_last() -> None:
    listener = sw.StreamMetrics()
    for query, number in (("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)):
        listener.add(_Report(query, number, 1))
        assert (listener.last.query, listener.last.number) == (query, number)


def test_times_that_python_cannot_write_are_left_out() -> None:
    """Numbers of microseconds as times are milliseconds to Spark: its report has years of five digits."""
    listener = sw.StreamMetrics()
    for number in range(2):
        report = _Report("a query", number, 5)
        report.eventTime = dict.fromkeys(("min", "max", "watermark"), "57889-10-01T00:00:00.000Z")
        batch = listener.add(report)
    assert (batch.lateness, batch.watermark_lag) == (None, None) and listener.totals["in"] == 10


class _Report:
    """Progress as Spark reports it."""

    processedRowsPerSecond = 1.0
    eventTime: dict = {}
    timestamp = "2024-01-01T00:00:00.000Z"

    def __init__(self, query: str, batch: int, count: int):
        from slidewise.engines.spark.counts import COUNTS, METRICS, as_text

        self.id, self.batchId = query, batch
        self.observedMetrics = {"slidewise_x": {METRICS: ["+" + as_text(1, batch, dict.fromkeys(COUNTS, 0) | {"in": count})]}}


def test_dropped_events_are_counted(spark, tmp_path: Path) -> None:
    rows = events(120, seed=29, jitter=500)
    rows[60]["ts"] = None
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(rows, 1, 3)])
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **ASKED, watermark="1m", id="id", late="drop")
    listener, _ = watched(spark, result, tmp_path, 3)
    totals = listener.totals
    assert totals["dropped"] == totals["late"] + 1 == len(rows) - totals["accepted"] > 5
    assert totals["bad"] == 1
    assert all(batch.lateness is None or batch.lateness < timedelta(hours=1) for batch in listener.all), "not since 1970"
    assert [batch.lateness is None for batch in listener.all].count(True) == 2, "the first, and that with a bad event"
    assert totals["side"] == 0 and f"dropped {totals['dropped']}" in listener.line()
