"""What a running job tells: the micro-batches of a stream as they end, and one summary at the end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Step:
    """One micro-batch that has ended."""

    number: int
    rows: int
    seconds: float
    watermark: str | None
    counts: dict[str, int]
    """The engine's: in, out, late, corrected, touched, side, dropped, double, bad, ahead ..."""


@dataclass
class Summary:
    """How a run ended."""

    name: str
    mode: str
    sink: str
    state: str = "finished"
    """`finished`, or `stopped` where it was asked to."""
    rows: int | None = 0
    """Rows that were read; None where only the first results were asked for, so that nobody counted."""
    seconds: float = 0.0
    steps: list[Step] = field(default_factory=list)
    table: pa.Table | None = None
    """The results, if the sink is memory."""
    waiting: bool = False
    """Whether final results may still wait for the watermark, for the next run."""
    goes_on: bool = False
    """Whether the next run goes on where this one ended: there is a checkpoint, and a source that can be read from there."""
    began: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """The engine's counts over all micro-batches."""
        total: dict[str, int] = {}
        for step in self.steps:
            for name, count in step.counts.items():
                total[name] = total.get(name, 0) + count
        return total

    @property
    def results(self) -> int:
        """Rows of results that a stream gave; events that were put aside are none."""
        counts = self.counts
        return counts.get("out", 0) - counts.get("side", 0)

    def ended(self, state: str = "finished") -> Summary:
        self.state = state
        self.seconds = time.perf_counter() - self.began
        return self

    def as_dict(self) -> dict[str, Any]:
        known: dict[str, Any] = {"name": self.name, "mode": self.mode, "state": self.state, "rows": self.rows, "sink": self.sink}
        if self.mode == "stream":
            known |= {"batches": len(self.steps), "results": self.results, "counts": self.counts, "waiting": self.waiting}
        return known | {"seconds": round(self.seconds, 3), "rows_per_second": round((self.rows or 0) / max(self.seconds, 1e-9))}


@contextlib.contextmanager
def tasks_told(spark: Any, note: Callable[[str], None]) -> Iterator[None]:
    """Tell, while a batch runs, how many tasks of the stages that are active have ended."""
    ended = threading.Event()

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(0.5):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            tasks = sum(stage.numTasks for stage in stages if stage is not None)
            note(f"computing, {done:,} of {tasks:,} tasks" if tasks else "computing")

    watcher = threading.Thread(target=look, name="slidewise-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


FLOWS = ("in", "out", "late", "corrected", "touched", "side", "dropped", "double", "bad", "ahead")
"""Counts that add up over micro-batches; the others are levels."""


def step_of(progress: Any) -> Step:
    """From what Spark reports of a micro-batch."""
    from slidewise.engines.spark.counts import METRICS, OBSERVED, from_text

    counts: dict[str, int] = {}
    for name, observed in (progress.get("observedMetrics") or {}).items():
        if not name.startswith(OBSERVED):
            continue
        for text in observed[METRICS] or ():
            for key, count in from_text(text).items():
                if key in FLOWS:
                    counts[key] = counts.get(key, 0) + count
    return Step(
        number=progress["batchId"],
        rows=int(progress["numInputRows"]),
        seconds=progress["batchDuration"] / 1000,
        watermark=(progress.get("eventTime") or {}).get("watermark"),
        counts=counts,
    )
