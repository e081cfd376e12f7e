"""What a stream did, on the driver: a listener, totals, and one line.

    listener = sw.StreamMetrics(show=print)
    spark.streams.addListener(listener)
    ...
    listener.totals["late"]; listener.line()

Counts come with the progress of each micro-batch (see counts.py). A micro-batch that is reported again (a restart inside this
process replays the last one) takes the place of its first report.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from slidewise.engines.spark.counts import COUNTS, METRICS, OBSERVED, from_text

SUMMED = COUNTS[: COUNTS.index("state_bytes")]
"""What adds up over micro-batches; the rest says how things stand."""


@dataclass
class Batch:
    """One micro-batch of one query."""

    query: str
    number: int
    counts: dict[str, int]
    largest_share: float
    """Events of the largest bucket, of all."""
    rate: float
    """Rows a second, as Spark reports it."""
    lateness: timedelta | None
    """How far the oldest event of the batch lies behind the youngest one seen before."""
    watermark_lag: timedelta | None
    """How far the watermark lies behind the clock on the wall."""


@dataclass
class _Query:
    last: Batch | None = None
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))
    standing: dict[int, dict[str, int]] = field(default_factory=dict)
    youngest: datetime | None = None


class StreamMetrics(StreamingQueryListener):
    """Counts of all Slidewise queries of a session. `show` is called with one line after each micro-batch."""

    def __init__(self, show: Callable[[str], Any] | None = None):
        self._show = show
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}
        self._last: Batch | None = None
        self.batches = 0

    # ---- what Spark calls -------------------------------------------------------------------------------------------

    def onQueryStarted(self, event) -> None:
        pass

    def onQueryProgress(self, event) -> None:
        batch = self.add(event.progress)
        if batch is not None and self._show is not None:
            self._show(self.line(batch))

    def onQueryIdle(self, event) -> None:
        pass

    def onQueryTerminated(self, event) -> None:
        pass

    # ---- counting ---------------------------------------------------------------------------------------------------

    def add(self, progress) -> Batch | None:
        """Count one report of a micro-batch; None if nothing of ours is in it."""
        texts = [
            text
            for name, row in (progress.observedMetrics or {}).items()
            if name.startswith(OBSERVED)
            for text in (row[METRICS] or ())
        ]
        if not texts:
            return None
        found = [from_text(text) for text in texts]
        with self._lock:
            query = self._queries.setdefault(str(progress.id), _Query())
            if query.last is not None and query.last.number == progress.batchId:
                for name in SUMMED:
                    query.totals[name] -= query.last.counts[name]
            for counts in found:
                query.standing[counts["label"]] = counts
            counts = {name: sum(bucket[name] for bucket in found) for name in SUMMED}
            for name in SUMMED:
                query.totals[name] += counts[name]
            for name in COUNTS[len(SUMMED) :]:
                counts[name] = sum(bucket[name] for bucket in query.standing.values())
            query.last = Batch(
                query=str(progress.id),
                number=progress.batchId,
                counts=counts,
                largest_share=max(bucket["in"] for bucket in found) / max(1, counts["in"]),
                rate=progress.processedRowsPerSecond or 0.0,
                lateness=_lateness(progress, query),
                watermark_lag=_lag(progress),
            )
            self.batches += 1
            self._last = query.last
            return query.last

    @property
    def totals(self) -> dict[str, int]:
        """All counts since the listener was added, over all queries; `state_...` and `live_...` as they stand."""
        with self._lock:
            found = {name: sum(query.totals[name] for query in self._queries.values()) for name in SUMMED}
            for name in COUNTS[len(SUMMED) :]:
                found[name] = sum(bucket[name] for q in self._queries.values() for bucket in q.standing.values())
            return found

    @property
    def last(self) -> Batch | None:
        """The micro-batch reported last, of any query."""
        return self._last

    def line(self, batch: Batch | None = None) -> str:
        """One line: a micro-batch, or everything so far."""
        counts = self.totals if batch is None else batch.counts
        visits = counts["hits"] + counts["catch_ups"] + counts["replays"]
        parts = [
            "in all" if batch is None else f"batch {batch.number}",
            f"in {counts['in']:,}",
            f"out {counts['out']:,}",
            f"late {counts['late']:,}",
            f"corrected {counts['corrected']:,} (touching {counts['touched']:,} results)",
            f"aside {counts['side']:,}",
            f"dropped {counts['dropped']:,}",
            f"double {counts['double']:,}",
            f"bad {counts['bad']:,}",
            f"ahead {counts['ahead']:,}",
        ]
        if batch is not None:
            parts.append(f"{batch.rate:,.0f} rows/s")
            if batch.lateness is not None:
                parts.append(f"lateness {_short(batch.lateness)}")
            if batch.watermark_lag is not None:
                parts.append(f"watermark lag {_short(batch.watermark_lag)}")
            parts.append(f"largest bucket {batch.largest_share:.0%}")
        parts += [
            f"state {_size(counts['state_bytes'])} in {counts['state_entries']:,} entries",
            f"{_size(counts['bytes_written'])} written",
            f"cache hits {counts['hits']:,} of {visits:,}",
            f"replays {counts['replays']:,}",
        ]
        return " · ".join(parts)


def _moment(text: str | None) -> datetime | None:
    """A time of Spark's report; None for years that Python does not know, as numbers that are no milliseconds give."""
    try:
        return None if not text else datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None


def _lateness(progress, query: _Query) -> timedelta | None:
    """None where Spark's times say nothing (no rows, or an event without a usable time, which is counted elsewhere)."""
    times = progress.eventTime or {}
    oldest, youngest = _usable(times.get("min")), _usable(times.get("max"))
    before, query.youngest = query.youngest, max(filter(None, (query.youngest, youngest)), default=None)
    if oldest is None or before is None:
        return None
    return max(before - oldest, timedelta(0))


def _usable(text: str | None) -> datetime | None:
    """An event time of Spark's report. Events without a usable time stand there as 1970, or in the year 5 (stream.NO_TIME)."""
    found = _moment(text)
    return None if found is None or found.timestamp() == 0 or found.year < 100 else found


def _lag(progress) -> timedelta | None:
    watermark = _moment((progress.eventTime or {}).get("watermark"))
    if watermark is None or watermark.timestamp() == 0:
        return None
    return _moment(progress.timestamp) - watermark


def _short(length: timedelta) -> str:
    seconds = length.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
