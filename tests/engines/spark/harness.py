"""The stateful operator without Spark: its states are dicts, its micro-batches are calls. For what needs many short runs;
what Spark itself does is tested on Spark.

`Harness.batch(tables, watermark)` runs one micro-batch: rows by bucket, then the timers of all buckets, then a commit. A
failed batch leaves the states as they were, like a state store does."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

from slidewise.engines.spark import processor as glue
from slidewise.engines.spark.buckets import labels
from slidewise.engines.spark.counts import METRICS, from_text
from slidewise.engines.spark.log import Limits
from slidewise.engines.spark.packing import BLOB, EVENTS, FLUSH, KIND, blob_of, fitted
from slidewise.engines.spark.travel import Parcel
from slidewise.engines.spark.workers import Cache


class Value:
    def __init__(self, home: Harness, name: str):
        self.home, self.name = home, name

    def _key(self):
        return self.name, self.home.key

    def get(self):
        return self.home.state.get(self._key())

    def update(self, value):
        self.home.state[self._key()] = value

    def clear(self):
        self.home.state.pop(self._key(), None)


class Map(Value):
    def _of(self) -> dict:
        return self.home.state.setdefault(self._key(), {})

    def getValue(self, key):
        return self._of().get(key)

    def updateValue(self, key, value):
        self._of()[key] = value

    def exists(self):
        return bool(self._of())

    def removeKey(self, key):
        self._of().pop(key, None)


class Handle:
    def __init__(self, home: Harness):
        self.home = home

    def getValueState(self, name, schema):
        return Value(self.home, name)

    def getMapState(self, name, key, value):
        return Map(self.home, name)

    def registerTimer(self, at):
        self.home.timers.setdefault(self.home.key, set()).add(at)

    def listTimers(self):
        return iter(sorted(self.home.timers.get(self.home.key, ())))


class Times:
    def __init__(self, now: int, watermark: int):
        self.now, self.watermark = now, watermark

    def getCurrentProcessingTimeInMs(self):
        return self.now

    def getCurrentWatermarkInMs(self):
        return self.watermark


class Context:
    def __init__(self, home: Harness):
        self.home = home

    def getLocalProperty(self, name):
        return {"sql.streaming.queryId": self.home.query, "streaming.sql.batchId": str(self.home.number)}[name]


class Harness:
    """One query: its stored state, and as many workers (caches) as are named."""

    def __init__(self, spec: Any, buckets: int = 4, limits: Limits | None = None):
        self.state: dict = {}
        self.timers: dict[int, set[int]] = {}
        self.number = 0
        self.query = "a query"
        self.key = 0
        self.now = 1_000
        self.caches: dict[str, Cache] = {}
        self.use(spec, buckets, limits)

    def use(self, spec: Any, buckets: int = 4, limits: Limits | None = None) -> None:
        """Go on with this specification, as a restarted query does."""
        self.spec, self.labels = spec, labels(buckets)
        self.plan = glue.Plan(spec=Parcel(spec), buckets=buckets, direct=True, limits=limits)

    def fork(self) -> Harness:
        """A copy of the checkpoint; the workers are the same."""
        other = copy.copy(self)
        other.state, other.timers = copy.deepcopy((self.state, self.timers))
        return other

    def label(self, row: dict) -> int:
        key = tuple(row[name] for name in self.spec.by)
        return self.labels[sum(repr(key).encode()) % len(self.labels)]

    def batch(
        self,
        events: pa.Table | None = None,
        watermark: int = 0,
        *,
        worker: str = "a",
        words: list[tuple[int, int, bytes | None]] = (),
        history: pa.Table | None = None,
        fail: bool = False,
        during: Callable[[], None] | None = None,
    ) -> tuple[list[dict], list[dict]]:
        """(rows, counts) of one micro-batch; watermark in milliseconds. fail: Python is done, the commit fails."""
        before = copy.deepcopy((self.state, self.timers))
        glue.workers.CACHE = self.caches.setdefault(worker, Cache())
        glue.TaskContext = type("TaskContext", (), {"get": staticmethod(lambda: Context(self))})
        self.now += 10_000
        times = Times(self.now, watermark)
        operator = glue.BucketProcessor(self.plan)
        operator.init(Handle(self))
        frames: list[pd.DataFrame] = []
        try:
            if history is not None:
                for label, frame in self._packed(history, ()).items():
                    self.key = label
                    operator.handleInitialState((label,), frame, times)
            for label, frame in self._packed(events, words).items():
                self.key = label
                frames += operator.handleInputRows((label,), iter([frame]), times)
            if during is not None:
                during()
            due = [(label, at) for label, every in self.timers.items() for at in sorted(every) if at <= self.now]
            for label, at in due:
                self.key = label
                frames += operator.handleExpiredTimer(key=(label,), timerValues=times, expiredTimerInfo=None)
                self.timers[label].discard(at)
        except BaseException:
            self.state, self.timers = before
            raise
        if fail:
            self.state, self.timers = before
        else:
            self.number += 1
        return self._rows(frames)

    def _packed(self, events: pa.Table | None, words) -> dict[int, pd.DataFrame]:
        found: dict[int, list[tuple[int, bytes | None]]] = {}
        if events is not None and len(events):
            owners = [self.label(row) for row in events.to_pylist()]
            for label in dict.fromkeys(owners):
                part = events.filter(pa.array([owner == label for owner in owners]))
                found.setdefault(label, []).append((EVENTS, blob_of(fitted(part, self.spec.schema))))
        for label, kind, blob in words:
            for each in self.labels if label == -1 else [label]:
                found.setdefault(each, []).append((kind, blob))
        return {label: pd.DataFrame(rows, columns=[KIND, BLOB]) for label, rows in found.items()}

    def _rows(self, frames: list[pd.DataFrame]) -> tuple[list[dict], list[dict]]:
        rows, counts = [], []
        for frame in frames:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            for row in table.to_pylist():
                text = row.pop(METRICS)
                if text is not None:
                    counts.append(from_text(text))
                if text is None or not text.startswith("-"):
                    rows.append(row)
        return rows, counts

    def flush(self, watermark: int = 0):
        return self.batch(None, watermark, words=[(-1, FLUSH, None)])


def unique_query() -> str:
    return os.urandom(8).hex()
