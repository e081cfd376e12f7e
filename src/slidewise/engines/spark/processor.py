"""The stateful operator: what happens to one bucket in one micro-batch.

    open the log -> take the engine (hit, catch-up or replay) -> push or advance -> append, trim, merge -> commit
                 -> give the engine back -> hand out the rows, and the counts on the first of them

Every bucket that was ever written keeps a timer armed, so that it is visited in each micro-batch, with rows or without:
results that have become final come out, idle keys expire, and a checkpoint that does not fit is found out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from slidewise.engines.spark import rebucket, upgrade, workers
from slidewise.engines.spark.counts import COUNTS, METRICS, as_text
from slidewise.engines.spark.log import Limits, Log
from slidewise.engines.spark.packing import BLOB, EVENTS, FLUSH, KIND, blob_of, table_of
from slidewise.engines.spark.travel import Parcel
from slidewise.engines.spark.warm import warmed
from slidewise.errors import StateError
from slidewise.live.columns import one_array
from slidewise.live.keyed import META, Keyed, read_meta
from slidewise.live.keymap import KeyMap

if TYPE_CHECKING:
    import pandas as pd

_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs, made once on the driver."""

    spec: Parcel
    """The specification, unpickled once a worker; its token tells engines of other specifications apart."""
    buckets: int
    direct: bool
    """Whether results leave as columns; otherwise as blobs."""
    limits: Limits | None = None
    cache_bytes: int = workers.DEFAULT_BYTES


class Note(msgspec.Struct, array_like=True):
    """What the head of a log says without the engine, in ticks."""

    watermark: int | float | None = None
    youngest: int | float | None = None
    """The youngest event time seen."""


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

    def has_entries(self) -> bool:
        return self._entries.exists()

    def clear(self) -> None:
        self._entries.clear()
        self._head.clear()


class BucketProcessor(StatefulProcessor):
    """Runs the live engine of each bucket of a partition."""

    def __init__(self, plan: Plan):
        self.plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self.store = SparkStore(
            handle.getValueState("head", "head binary"), handle.getMapState("log", "number bigint", "entry binary")
        )
        self._visited: set[int] = set()
        self.gone: set[int] = set()
        """Buckets that are no more: their timers are not armed again."""
        context = TaskContext.get()
        if context is None:  # Spark asks for the state's variables on the driver
            return
        self.spec = self.plan.spec.open()
        warmed(self.plan.spec.token, self.spec)
        self._query = context.getLocalProperty("sql.streaming.queryId")
        self._batch = int(context.getLocalProperty("streaming.sql.batchId"))
        workers.CACHE.limit = self.plan.cache_bytes

    def close(self) -> None:
        pass

    # ---- what Spark calls -------------------------------------------------------------------------------------------

    def handleInputRows(self, key, rows: Iterator[pd.DataFrame], timerValues) -> Iterator[pd.DataFrame]:
        label = int(key[0])
        words: dict[int, list[bytes]] = {}
        for frame in rows:
            for kind, blob in zip(frame[KIND], frame[BLOB]):
                words.setdefault(kind, []).append(blob)
        if words.keys() - {EVENTS, FLUSH}:
            rebucket.received(self, label, words, timerValues)
        if EVENTS in words or FLUSH in words:
            events = table_of(words[EVENTS], self.spec.schema) if EVENTS in words else None
            yield from self._visit(label, timerValues, events, FLUSH in words)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[pd.DataFrame]:
        label = int(key[0])
        if label in self.gone:
            return
        if label not in self._visited:
            yield from self._visit(label, timerValues, None, False)
        self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)

    def handleInitialState(self, key, initialState: pd.DataFrame, timerValues) -> None:
        def entry(engine) -> pa.Table:
            found = engine.history(table_of(initialState[BLOB], self.spec.schema))
            # A bucket's first event need not be the beginning of what is known, nor its last one the end of it.
            span = {"known_from": self.spec.known_from, "clock": self.spec.known_until}
            return noted(found, read_meta(found) | {name: value for name, value in span.items() if value is not None})

        self.load(int(key[0]), entry, timerValues)

    def load(self, label: int, make: Callable[[Any], pa.Table], timer) -> None:
        """Append an entry that comes from elsewhere than events, and absorb it."""
        log, _ = self._open(label)
        if not log.exists:
            self._begin(label, timer)
        live = self._take(label, log, workers.Traffic())
        entry = make(live.engine)
        live.engine.absorb(entry)
        live.tail[log.append(entry, self._youngest(entry)).span] = entry
        log.note(self._note(live.engine))
        log.commit()
        workers.CACHE.give(self._key(label), live, log)

    # ---- one bucket -------------------------------------------------------------------------------------------------

    def _visit(self, label: int, timer, events: pa.Table | None, flush: bool) -> Iterator[pd.DataFrame]:
        self._visited.add(label)
        watermark = self._units(timer.getCurrentWatermarkInMs())
        log, short = self._open(label)
        if not log.exists:
            self._begin(label, timer, woken=events is None and not flush)
        elif events is None and not flush and not log.upgraded and not self._due(log, watermark):
            return
        traffic = workers.Traffic()
        live = self._take(label, log, traffic)
        if short is not None:
            self._forgot(live.engine, short)
        counts = dict.fromkeys(COUNTS, 0)
        parts = []
        for outcome in self._outcomes(live.engine, timer, events, watermark, flush):
            if outcome.log is not None:
                live.tail[log.append(outcome.log, self._youngest(outcome.log)).span] = outcome.log
            for name, value in outcome.counts.items():
                counts[name] += value
            if len(outcome.rows):
                parts.append(outcome.rows)
        self._tidy(log, live)
        log.note(self._note(live.engine))
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

    def _begin(self, label: int, timer, woken: bool = False) -> None:
        """A bucket without a head: a new one, or one whose state was lost. Only a bucket that was written has a timer."""
        if woken or (label not in self.gone and list(self._handle.listTimers())):
            raise StateError(f"stored state of bucket {label}: it is missing; the checkpoint is damaged")
        self._handle.registerTimer(timer.getCurrentProcessingTimeInMs() + 1)

    def _outcomes(self, engine, timer, events: pa.Table | None, watermark, flush: bool) -> Iterator[Any]:
        if events is not None:
            now = self._units(timer.getCurrentProcessingTimeInMs())
            yield engine.push(events, watermark=watermark, batch=self._batch, now=now)
        if flush or events is None:
            yield engine.advance(watermark=watermark, batch=self._batch, final=flush)

    def _open(self, label: int) -> tuple[Log, int | float | None]:
        """The bucket's log, and how far behind the watermark it reaches if that is less than this query wants."""
        short: list[int | float | None] = [None]

        def accept(stored: bytes) -> None:
            short[0] = upgrade.check(stored, self.spec, label)

        log = Log(
            self.store,
            label=label,
            buckets=self.plan.buckets,
            signature=upgrade.encoded(self.spec),
            accept=accept,
            merge=lambda entries: merged([upgrade.conformed(entry, self.spec) for entry in entries], self.spec.by),
            limits=self.plan.limits,
        )
        return log, short[0]

    def _take(self, label: int, log: Log, traffic: workers.Traffic) -> workers.Live:
        def absorb(engine, entry: pa.Table) -> None:
            engine.absorb(upgrade.conformed(entry, self.spec))

        return workers.CACHE.take(self._key(label), log, lambda: Keyed(self.spec), traffic, absorb)

    def _key(self, label: int) -> tuple:
        return (self._query, self.plan.spec.token, label)

    def _forgot(self, engine, kept) -> None:
        """The engine was rebuilt from a log that reaches less far back than its windows: it says what it knows."""
        watermark = engine.frontier.watermark
        if watermark is not None:
            known = engine.frontier.known_from
            engine.frontier.known_from = watermark - kept if known is None else max(known, watermark - kept)

    # ---- time -------------------------------------------------------------------------------------------------------

    def _due(self, log: Log, watermark) -> bool:
        """Whether a bucket without rows has anything to do at this watermark: results that became final, or events that
        have grown old since it was last looked at."""
        spec = self.spec
        note = msgspec.msgpack.decode(log.head.note, type=Note)
        if watermark is None or note.youngest is None:
            return False
        now = watermark * spec.clock.scale
        before = note.watermark
        if before is not None and now <= before:
            return False
        pending = note.youngest if spec.emit != "slide" else note.youngest + spec.reach
        if (spec.results == "final" or spec.emit == "slide") and (before is None or pending >= before):
            return True
        kept = spec.keep + spec.reach if spec.idle is None else spec.idle
        return before is None or (now - before > kept / 8 and note.youngest + kept >= before)

    def _note(self, engine) -> bytes:
        return msgspec.msgpack.encode(Note(_plain(engine.frontier.watermark), _plain(engine.frontier.clock)))

    def _youngest(self, table: pa.Table) -> int | None:
        """The youngest time of an entry, in ticks."""
        if not len(table):
            return None
        return self.spec.clock.scale * pc.max(table[self.spec.time].cast(pa.int64())).as_py()

    def _units(self, milliseconds: int) -> int | None:
        """Spark's milliseconds in the time column's unit; Spark says 0 as long as there is no watermark."""
        if milliseconds == 0:
            return None
        return milliseconds if self.spec.clock.kind == "whole" else milliseconds * 1000

    # ---- what is kept, what goes out ----------------------------------------------------------------------------------

    def _tidy(self, log: Log, live: workers.Live) -> None:
        """Keep the stored log in proportion to what is alive."""
        if all(ticks.kind in ("time", "tumbling") for ticks in self.spec.ticks.values()):
            log.trim(live.engine.retention.horizon())
        if log.wasteful(live.engine.entries):
            retained = live.engine.retained()
            live.tail = log.rewrite([(retained, self._youngest(retained))])
        live.tail = log.compact(live.tail)

    def _handed_out(self, parts: list[pa.Table], text: str) -> Iterator[pd.DataFrame]:
        schema = self.spec.output_schema
        rows = pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()
        if not self.plan.direct:
            yield self._blobs(rows, text)
            return
        for at in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
            part = rows.slice(at, _ROWS_AT_ONCE)
            yield _frame(part, ("+" if len(part) else "-") + text if at == 0 else None)

    def _blobs(self, rows: pa.Table, text: str) -> pd.DataFrame:
        import pandas as pd

        blobs = [blob_of(rows.slice(at, _ROWS_AT_ONCE)) for at in range(0, len(rows), _ROWS_AT_ONCE)] or [None]
        return pd.DataFrame({BLOB: blobs, METRICS: ["+" + text] + [None] * (len(blobs) - 1)})


def merged(entries: Sequence[pa.Table], by: Sequence[str] = ()) -> pa.Table:
    """Several log entries as one: the rows of all, but for those of a key before it began anew; of each thing that is noted, the
    last word."""
    notes: dict[str, Any] = {}
    anew: list[int] = []
    count = 0
    for entry in entries:
        notes.pop("history", None)  # what it says of the frontier, the entries after it say themselves
        told = read_meta(entry)
        anew += [count + row for row in told.pop("anew", ())]
        count += len(entry)
        notes.update(told)
    rows = pa.concat_tables([entry.replace_schema_metadata(None) for entry in entries]).combine_chunks()
    if anew:
        rows, notes["anew"] = _last_lives(rows, np.array(anew), np.cumsum([0, *map(len, entries)]), by)
    return noted(rows, notes)


def _last_lives(rows: pa.Table, anew: np.ndarray, bounds: np.ndarray, by: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """Rows without those of keys that began anew in a later entry, and where those begin now."""
    columns = [one_array(rows[name]) for name in by]
    codes, keys = KeyMap([column.type for column in columns]).codes(columns, len(rows))
    since = np.zeros(len(keys), np.int64)
    since[codes[anew]] = bounds[np.searchsorted(bounds, anew, side="right") - 1]  # entries in order: the last word holds
    kept = np.arange(len(rows)) >= since[codes]
    places = np.cumsum(kept) - 1
    return rows.filter(pa.array(kept)), places[anew[kept[anew]]].tolist()


def noted(entry: pa.Table, notes: dict[str, Any]) -> pa.Table:
    return entry.replace_schema_metadata({META: json.dumps(notes).encode()})


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def _frame(rows: pa.Table, text: str | None) -> pd.DataFrame:
    """Rows and the counts on the first of them, as pandas columns that are still Arrow's: Spark takes them as they are."""
    import pandas as pd

    if text is not None and not len(rows):
        rows = pa.Table.from_pylist([{}], schema=rows.schema)
    texts = pa.array([text], pa.string()) if len(rows) else pa.array([], pa.string())
    if len(rows) > 1:
        texts = pa.concat_arrays([texts, pa.nulls(len(rows) - 1, pa.string())])
    return rows.append_column(METRICS, texts).to_pandas(types_mapper=pd.ArrowDtype)
