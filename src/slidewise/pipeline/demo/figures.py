"""What the report shows, as plain numbers: worked out from the flights, the stream's results and its micro-batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.pipeline.demo.job import WATERMARK_HOURS, WINDOWS
from slidewise.pipeline.progress import Step

HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True)
class Day:
    """One airport's day, for the first plot."""

    origin: str
    date: str
    start: int
    """Midnight in New York, in microseconds."""
    rows: pa.Table
    """The day's results in the order of departure."""
    moment: int
    """The row that the windows are drawn for."""


def microseconds(column: pa.ChunkedArray) -> np.ndarray:
    return column.cast(pa.int64()).to_numpy()


def worst_day(results: pa.Table) -> Day:
    """The airport and day with the longest mean delay over 24 hours, among days with many flights."""
    ordered = results.sort_by("departed")
    busy = pc.greater_equal(ordered["flights_24h"], 0.6 * pc.max(ordered["flights_24h"]).as_py())
    candidates = ordered.filter(busy)
    mean = candidates["mean_delay_24h"].to_numpy(zero_copy_only=False)
    row = int(np.argmax(mean))
    origin = candidates["origin"][row].as_py()
    peak = candidates["departed"][row].as_py().astimezone(NEW_YORK)
    # At its highest the window reaches back a day: the day that made it is the one it ends in, unless that has only begun.
    date = (peak - timedelta(hours=6)).date()
    midnight = datetime(date.year, date.month, date.day, tzinfo=NEW_YORK)
    start = int(midnight.timestamp()) * 1_000_000
    times = microseconds(ordered["departed"])
    inside = (times >= start) & (times < start + 24 * HOUR_US) & (ordered["origin"].to_numpy(zero_copy_only=False) == origin)
    rows = ordered.filter(pa.array(inside))
    delays = rows["mean_delay_1h"].to_numpy(zero_copy_only=False)
    hours = (microseconds(rows["departed"]) - start) / HOUR_US
    # Late enough for the windows to show on the left, early enough for words on the right.
    moment = int(np.argmax(np.where((hours >= 9) & (hours <= 16), delays, -np.inf)))
    return Day(origin, date.strftime("%A, %-d %B %Y"), start, rows, moment)


def hardest_days(results: pa.Table, count: int = 6) -> list[dict]:
    """For each airport and day the last departure, whose 24-hour window is that day; the worst of them."""
    found: dict[tuple, dict] = {}
    columns = ["origin", "departed", *(f"{name}_24h" for name in ("flights", "mean_delay", "p95_delay", "worst", "destinations"))]
    for row in results.select(columns).sort_by("departed").to_pylist():
        day = (row["departed"].astimezone(NEW_YORK) - timedelta(hours=3)).date()
        found[row["origin"], day] = row | {"day": day}
    return sorted(found.values(), key=lambda row: -row["mean_delay_24h"])[:count]


@dataclass(frozen=True)
class Lateness:
    """How far behind the youngest departure a flight is when it is heard of."""

    hours: np.ndarray
    """Edges of the histogram."""
    counts: np.ndarray
    median_minutes: float
    most_minutes: float
    out_of_order: float
    """The share of flights that come after one that departed later."""
    behind: float
    """The share that lies behind the watermark's delay."""


def lateness(flights: pa.Table) -> Lateness:
    departed = microseconds(flights.sort_by([("landed", "ascending"), ("id", "ascending")])["departed"])
    behind = (np.maximum.accumulate(departed) - departed) / MINUTE_US
    edges = np.arange(0, max(np.ceil(behind.max() / 60), WATERMARK_HOURS + 1) + 0.25, 0.25)
    counts, _ = np.histogram(behind / 60, edges)
    late = behind[behind > 0]
    return Lateness(
        hours=edges,
        counts=counts,
        median_minutes=float(np.median(late)) if len(late) else 0.0,
        most_minutes=float(behind.max()),
        out_of_order=float((behind > 0).mean()),
        behind=float((behind > WATERMARK_HOURS * 60).mean()),
    )


@dataclass(frozen=True)
class Corrections:
    """How often results came again."""

    batches: list[tuple[int, int, int]]
    """(micro-batch, results given for the first time, results given again)."""
    times: np.ndarray
    """How many results came once, twice, ..."""


def corrections(revisions: pa.Table) -> Corrections:
    """From every revision of every result."""
    ordered = revisions.select(["id", "revision"]).sort_by([("id", "ascending"), ("revision", "ascending")])
    ids = ordered["id"].combine_chunks().dictionary_encode()
    codes = (ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids).indices.to_numpy()
    revision = ordered["revision"].to_numpy()
    first = np.ones(len(codes), bool)
    first[1:] = codes[1:] != codes[:-1]
    batches = []
    for number in np.unique(revision):
        here = revision == number
        batches.append((int(number), int((here & first).sum()), int((here & ~first).sum())))
    return Corrections(batches, np.bincount(np.bincount(codes))[1:])


def settling(revisions: pa.Table) -> list[dict]:
    """The revisions of one result, of those that came most often the one that moved furthest: how it settled."""
    column = "mean_delay_24h"
    counted = revisions.group_by("id").aggregate([("revision", "count"), (column, "min"), (column, "max")])
    counted = counted.filter(pc.equal(counted["revision_count"], pc.max(counted["revision_count"])))
    moved = pc.subtract(counted[f"{column}_max"], counted[f"{column}_min"])
    chosen = counted["id"][pc.index(moved, pc.max(moved)).as_py()]
    return revisions.filter(pc.equal(revisions["id"], chosen)).sort_by("revision").to_pylist()


def by_airport(results: pa.Table, column: str, points: int = 500) -> dict[str, list[tuple[float, float]]]:
    """A result column over time for each airport, thinned to the highest value of each step so that no peak is lost."""
    found = {}
    for origin in sorted(pc.unique(results["origin"]).to_pylist()):
        rows = results.filter(pc.equal(results["origin"], origin)).sort_by("departed")
        times, values = microseconds(rows["departed"]), rows[column].to_numpy(zero_copy_only=False).astype(float)
        step = max(1, -(-len(times) // points))
        starts = np.arange(0, len(times), step)
        peaks = [int(s + np.argmax(values[s : s + step])) for s in starts]
        found[origin] = [(float(times[k]), float(values[k])) for k in peaks]
    return found


def throughput(steps: list[Step]) -> list[tuple[int, int, float]]:
    """(micro-batch, rows, seconds)."""
    return [(step.number, step.rows, step.seconds) for step in steps]


RESULT_COLUMNS = tuple(
    f"{name}_{window}" for window in WINDOWS for name in ("flights", "mean_delay", "p95_delay", "worst", "destinations")
)
