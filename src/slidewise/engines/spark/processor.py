"""The stateful operator: what happens to one bucket in one micro-batch.

    open the log -> take the engine (hit, catch-up or replay) -> push or advance -> append, trim, merge -> commit
                 -> give the engine back -> hand out the rows, and the counts on the first of them

Every bucket that was ever written keeps a timer armed, so that it is visited in each micro-batch, with rows or without:
results that have become final come out, idle keys expire, and a checkpoint that does not fit is found out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from slidewise.engines.spark import workers
from slidewise.engines.spark.counts import COUNTS, METRICS, as_text
from slidewise.engines.spark.log import Limits, Log
from slidewise.engines.spark.packing import BLOB, FLUSH, KIND, blob_of, table_of

if TYPE_CHECKING:
    import pandas as pd

_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs, made once on the driver."""

    token: str
    """Names this call of `rolling`: engines of another one are never taken for its own."""
    spec: bytes
    """The pickled specification (cloudpickle), unpickled once a worker."""
    engine: Any
    """Makes a live engine from the specification."""
    buckets: int
    direct: bool
    """Whether results leave as columns; otherwise as blobs."""
    limits: Limits | None = None
    cache_bytes: int = workers.DEFAULT_BYTES


class Note(msgspec.Struct, array_like=True):
    """What the head of a log says without the engine."""

    watermark: int | float | None
    due: int | float | None
    """The smallest watermark at which a quiet bucket has something to do."""


class SparkStore:
    """One bucket's log in Spark's state: the current grouping key's head and entries."""

    def __init__(self, head, entries):
        self._head, self._entries = head, entries

    def read_head(self) -> bytes | None:
        found = self._head.get()
        return None if found is None else bytes(found[0])

    def write_head(self, data: bytes) -> None:
        self._head.update((data,))

    def read(self, number: int) -> bytes | None:
        found = self._entries.getValue((number,))
        return None if found is None else bytes(found[0])

    def write(self, number: int, data: bytes) -> None:
        self._entries.updateValue((number,), (data,))

    def remove(self, number: int) -> None:
        self._entries.removeKey((number,))


class BucketProcessor(StatefulProcessor):
    """Runs the live engine of each bucket of a partition."""

    def __init__(self, plan: Plan):
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = SparkStore(
            handle.getValueState("head", "head binary"), handle.getMapState("log", "number bigint", "entry binary")
        )
        self._visited: set[int] = set()
        context = TaskContext.get()
        if context is None:  # Spark asks for the state's variables on the driver
            return
        self._spec = workers.spec_of(self._plan.token, self._plan.spec)
        self._query = context.getLocalProperty("sql.streaming.queryId")
        self._batch = int(context.getLocalProperty("streaming.sql.batchId"))
        workers.CACHE.limit = self._plan.cache_bytes

    def close(self) -> None:
        pass

    # ---- what Spark calls -------------------------------------------------------------------------------------------

    def handleInputRows(self, key, rows: Iterator[pd.DataFrame], timerValues) -> Iterator[pd.DataFrame]:
        blobs: list[bytes] = []
        flush = False
        for frame in rows:
            for kind, blob in zip(frame[KIND], frame[BLOB]):
                if kind == FLUSH:
                    flush = True
                else:
                    blobs.append(blob)
        events = table_of(blobs, self._spec.schema) if blobs else None
        yield from self._visit(int(key[0]), timerValues, events, flush)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[pd.DataFrame]:
        label = int(key[0])
        if label not in self._visited:
            yield from self._visit(label, timerValues, None, False)
        self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)

    def handleInitialState(self, key, initialState: pd.DataFrame, timerValues) -> None:
        label = int(key[0])
        log = self._open(label)
        if not log.exists:
            self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
        live = workers.CACHE.take(self._key(label), log, self._build, workers.Traffic())
        entry = live.engine.history(table_of(initialState[BLOB], self._spec.schema))
        live.tail[log.append(entry, self._youngest(entry))] = entry
        log.commit()
        workers.CACHE.give(self._key(label), live, log)

    # ---- one bucket -------------------------------------------------------------------------------------------------

    def _visit(self, label: int, timer, events: pa.Table | None, flush: bool) -> Iterator[pd.DataFrame]:
        self._visited.add(label)
        watermark = self._ticks(timer.getCurrentWatermarkInMs())
        log = self._open(label)
        if not log.exists:
            self._handle.registerTimer(timer.getCurrentProcessingTimeInMs() + 1)
        elif events is None and not flush and not self._due(log, watermark):
            return
        traffic = workers.Traffic()
        live = workers.CACHE.take(self._key(label), log, self._build, traffic)
        counts = dict.fromkeys(COUNTS, 0)
        parts = []
        for outcome in self._outcomes(live.engine, timer, events, watermark, flush):
            if outcome.log is not None:
                live.tail[log.append(outcome.log, self._youngest(outcome.log))] = outcome.log
            for name, value in outcome.counts.items():
                counts[name] = counts.get(name, 0) + value
            if len(outcome.rows):
                parts.append(outcome.rows)
        self._tidy(log, live, watermark)
        log.note(msgspec.msgpack.encode(Note(watermark, getattr(live.engine, "due", None))))
        log.commit()
        counts.update(
            hits=traffic.hits,
            catch_ups=traffic.catch_ups,
            replays=traffic.replays,
            entries_read=log.reads,
            bytes_written=log.bytes_written,
            state_bytes=log.nbytes,
            state_entries=len(log.head.segments),
            live_events=live.engine.entries,
            live_keys=live.engine.keys,
            live_bytes=live.engine.nbytes,
        )
        workers.CACHE.give(self._key(label), live, log)
        yield from self._handed_out(parts, as_text(label, self._batch, counts))

    def _outcomes(self, engine, timer, events: pa.Table | None, watermark, flush: bool) -> Iterator[Any]:
        if events is not None:
            yield engine.push(
                events, watermark=watermark, batch=self._batch, now=self._ticks(timer.getCurrentProcessingTimeInMs())
            )
        if flush or events is None:
            yield engine.advance(watermark=watermark, batch=self._batch, final=flush)

    def _open(self, label: int) -> Log:
        spec = self._spec
        return Log(
            self._store,
            label=label,
            buckets=self._plan.buckets,
            signature=msgspec.json.encode(spec.state_signature),
            accept=lambda stored: spec.accept(msgspec.json.decode(stored)),
            limits=self._plan.limits,
        )

    def _build(self):
        return self._plan.engine(self._spec)

    def _key(self, label: int) -> tuple:
        return (self._query, self._plan.token, label)

    def _due(self, log: Log, watermark) -> bool:
        """Whether a bucket without rows has anything to do at this watermark."""
        note = msgspec.msgpack.decode(log.head.note, type=Note) if log.head.note else Note(None, None)
        if watermark is None or watermark == note.watermark:
            return False
        return note.due is not None and watermark >= note.due

    def _tidy(self, log: Log, live: workers.Live, watermark) -> None:
        """Keep the stored log in proportion to what is alive."""
        spec = self._spec
        if watermark is not None and not spec.endless:
            log.trim(watermark - spec.keep - spec.reach)
        if log.wasteful(live.engine.entries):
            retained = live.engine.retained()
            step = max(1, int(log.full * len(retained) // max(1, retained.nbytes)))
            parts = [retained.slice(at, step) for at in range(0, max(1, len(retained)), step)]
            log.rewrite([(part, self._youngest(part)) for part in parts])
            live.tail = {}
        live.tail = log.compact(live.tail)

    def _youngest(self, table: pa.Table) -> int | None:
        """The youngest time of an entry, in ticks."""
        if not len(table):
            return None
        return self._spec.clock.scale * pc.max(table[self._spec.time].cast(pa.int64())).as_py()

    def _ticks(self, milliseconds: int) -> int | None:
        """Spark's milliseconds in the ticks of the time column; Spark says 0 before there is a watermark."""
        if milliseconds == 0:
            return None
        clock = self._spec.clock
        return milliseconds if clock.kind == "whole" else milliseconds * 1_000_000 // clock.tick_ns

    def _handed_out(self, parts: list[pa.Table], text: str) -> Iterator[pd.DataFrame]:
        schema = self._spec.output_schema
        rows = pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()
        if not self._plan.direct:
            yield self._blobs(rows, text)
            return
        for at in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
            part = rows.slice(at, _ROWS_AT_ONCE)
            yield _frame(part, ("+" if len(part) else "-") + text if at == 0 else None)

    def _blobs(self, rows: pa.Table, text: str) -> pd.DataFrame:
        import pandas as pd

        blobs = [blob_of(rows.slice(at, _ROWS_AT_ONCE)) for at in range(0, len(rows), _ROWS_AT_ONCE)] or [None]
        return pd.DataFrame({BLOB: blobs, METRICS: ["+" + text] + [None] * (len(blobs) - 1)})


def _frame(rows: pa.Table, text: str | None) -> pd.DataFrame:
    """Rows and the counts on the first of them, as pandas columns that are still Arrow's: Spark takes them as they are."""
    import pandas as pd

    if text is not None and not len(rows):
        rows = pa.Table.from_pylist([{}], schema=rows.schema)
    texts = pa.array([text], pa.string()) if len(rows) else pa.array([], pa.string())
    if len(rows) > 1:
        texts = pa.concat_arrays([texts, pa.nulls(len(rows) - 1, pa.string())])
    return rows.append_column(METRICS, texts).to_pandas(types_mapper=pd.ArrowDtype)
