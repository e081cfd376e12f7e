"""The stream's last word on every flight against the batch answer for the same file.

Counts, means of whole minutes, the worst flight and the distinct destinations must be equal to the last bit. p95 comes from a
sketch: both answers must lie within its stated error of the true rank, which is counted from the flights themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import slidewise as sw
from slidewise.pipeline.checking import Checked
from slidewise.pipeline.demo.figures import microseconds
from slidewise.windows.duration import nanoseconds

SKETCHED = "p95_delay"
RANK_ERROR = 0.0133
"""Of the quantile sketch at its default size, in shares of the window; held with 99 % probability by each single answer."""
_MORE = 2.0
"""Of so many answers a few lie beyond a bound that holds for 99 %, but none should lie beyond twice that."""


@dataclass
class Verdict:
    """How the comparison ended."""

    rows: int
    columns: int
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    estimated_columns: int = 0
    """Of the columns, how many are percentiles: estimates, which agree within an error."""
    rank_error: float = 0.0
    """The largest error in rank of any p95, in shares of the window."""

    @property
    def equal(self) -> bool:
        return not self.differences

    def sentence(self) -> str:
        if not self.equal:
            return f"differs from batch: {self.differences[0]}"
        exact = self.columns - self.estimated_columns
        told = f"{self.rows:,} flights × {exact} results equal to the batch answer"
        return f"{told}; {self.estimated_columns} percentiles within {self._within()}" if self.estimated_columns else told

    def estimated(self) -> str:
        """On what cannot be equal to the last bit."""
        told = f"the 95th percentile is estimated, and lies within {self._within()} of its rank"
        return f"{told} (promised: {RANK_ERROR:.2%} for 99 of 100)"

    def _within(self) -> str:
        """Rounded up: nothing lies beyond it."""
        return f"{math.ceil(self.rank_error * 1000 - 1e-9) / 10:.1f}%"


def compare(checked: Checked, flights: pa.Table, latest: pa.Table) -> Verdict:
    """Compare the latest revisions with `sw.rolling` on the Arrow table."""
    import time

    began = time.perf_counter()
    batch = sw.rolling(flights, **checked.arguments).sort_by("id")
    stream = latest.sort_by("id")
    columns = [name for name in batch.column_names if name not in flights.column_names]
    verdict = Verdict(batch.num_rows, len(columns))
    if not batch["id"].equals(stream["id"]):
        verdict.differences.append(f"{batch.num_rows:,} flights, but results for {stream.num_rows:,}")
        return verdict
    for name in columns:
        if name.startswith(SKETCHED):
            worst = max(_rank_error(flights, table, name) for table in (batch, stream))
            verdict.estimated_columns += 1
            verdict.rank_error = max(verdict.rank_error, worst)
            if worst > _MORE * RANK_ERROR:
                verdict.differences.append(f"{name} is off by {worst:.1%} of the rank")
            continue
        ours, theirs = stream[name].cast(batch[name].type).combine_chunks(), batch[name].combine_chunks()
        if not ours.equals(theirs):
            verdict.differences.append(_first_difference(name, stream["id"], ours, theirs))
    verdict.seconds = time.perf_counter() - began
    return verdict


def _first_difference(name: str, ids: pa.ChunkedArray, ours: pa.Array, theirs: pa.Array) -> str:
    for id, a, b in zip(ids.to_pylist(), ours.to_pylist(), theirs.to_pylist()):
        if a != b:
            return f"{name} of {id} is {a} in the stream and {b} in the batch"
    return name


def _rank_error(flights: pa.Table, results: pa.Table, name: str) -> float:
    """The largest distance between a p95 and the ranks that its value really has in its window, as a share of the window."""
    length = nanoseconds(name.removeprefix(f"{SKETCHED}_")) // 1000
    worst = 0.0
    for origin in np.unique(results["origin"].to_numpy(zero_copy_only=False)):
        events = flights.filter(pa.array(flights["origin"].to_numpy(zero_copy_only=False) == origin)).sort_by("departed")
        asked = results.filter(pa.array(results["origin"].to_numpy(zero_copy_only=False) == origin)).sort_by("departed")
        times, delays = microseconds(events["departed"]), events["delay"].to_numpy()
        ends = np.searchsorted(times, microseconds(asked["departed"]), "right")
        starts = np.searchsorted(times, microseconds(asked["departed"]) - length, "right")
        for start, end, value in zip(starts, ends, asked[name].to_numpy()):
            window = delays[start:end]
            below, upto = np.count_nonzero(window < value), np.count_nonzero(window <= value)
            target = 0.95 * len(window)
            worst = max(worst, (below - target) / len(window), (target - upto) / len(window))
    return worst
