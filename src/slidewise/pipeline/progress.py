"""What a running job tells: the micro-batches of a stream as they end, and one summary at the end."""

from __future__ import annotations

import time
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
    """The engine's: in, out, late, corrected, touched, dropped, double, bad, ahead ..."""


@dataclass
class Summary:
    """How a run ended."""

    name: str
    mode: str
    sink: str
    state: str = "finished"
    """`finished`, or `stopped` where it was asked to; the next run goes on there."""
    rows: int = 0
    seconds: float = 0.0
    steps: list[Step] = field(default_factory=list)
    table: pa.Table | None = None
    """The results, if the sink is memory."""
    waiting: bool = False
    """Whether final results may still wait for the watermark, for the next run."""
    began: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """The engine's counts over all micro-batches."""
        total: dict[str, int] = {}
        for step in self.steps:
            for name, count in step.counts.items():
                total[name] = total.get(name, 0) + count
        return total

    def ended(self, state: str = "finished") -> Summary:
        self.state = state
        self.seconds = time.perf_counter() - self.began
        return self

    def as_dict(self) -> dict[str, Any]:
        known: dict[str, Any] = {"name": self.name, "mode": self.mode, "state": self.state, "rows": self.rows, "sink": self.sink}
        if self.mode == "stream":
            known |= {"batches": len(self.steps), "counts": self.counts, "waiting": self.waiting}
        return known | {"seconds": round(self.seconds, 3), "rows_per_second": round(self.rows / max(self.seconds, 1e-9))}


FLOWS = ("in", "out", "late", "corrected", "touched", "dropped", "double", "bad", "ahead")
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
