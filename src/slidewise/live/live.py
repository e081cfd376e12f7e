"""`Live`: many windows over many keys, for programs that push events and ask at any time.

    >>> import slidewise as sw
    >>> live = sw.Live(
    ...     windows=["1h", sw.rows(2)], aggs={"total": sw.sum("amount"), "n": sw.count()}, by="card", time="ts"
    ... )
    >>> from datetime import datetime
    >>> live.push({"card": "a", "ts": datetime(2024, 1, 1, 9, 0), "amount": 20})
    >>> live.push({"card": "a", "ts": datetime(2024, 1, 1, 9, 30), "amount": 5})
    >>> live.push({"card": "a", "ts": datetime(2024, 1, 1, 9, 10), "amount": 7})  # late: any order will do
    >>> live.query("a")
    {'total_1h': 32, 'n_1h': 3, 'total_2r': 12, 'n_2r': 2}
    >>> live.query("a", at=datetime(2024, 1, 1, 10, 5))
    {'total_1h': 12, 'n_1h': 2, 'total_2r': 12, 'n_2r': 2}

A thin face over the keyed engine (keyed.py) that streams run on. Nothing is forgotten until `expire` is called, or a
`watermark=` is given: then events and results older than it are let go as on a stream.
"""

import io
from typing import Any

import numpy as np
import pyarrow as pa

from slidewise.errors import InputError, InputTypeError, StateError
from slidewise.live.arena import LAST
from slidewise.live.emission import Emission, Results
from slidewise.live.explain import StreamExplanation
from slidewise.live.given import moment
from slidewise.live.keyed import Keyed
from slidewise.live.late import LateKeys
from slidewise.live.pushed import as_table, cast, check_columns, inferred, kept_as, type_unknown
from slidewise.live.rows import Rows, check_dict
from slidewise.live.snapshot import pack, told_apart, unpack
from slidewise.live.spec import StreamSpec, stream_spec
from slidewise.planner.inputs import ORDERED, is_ordered, plain
from slidewise.planner.request import column_names, request
from slidewise.windows import spec as windows_
from slidewise.windows.bounds import sides

KIND = "live"
_NO_ROWS = np.zeros(0, np.int64)
AT_ONCE = 4096
"""Single rows wait until so many have come, or somebody asks."""


class Live:
    """The keyed, many-window structure. Arguments as for `rolling`; types are fixed by the first push, or by `schema=`.

    id: columns that identify an event; one seen twice counts once. watermark: how long out-of-order events are waited for
    behind the youngest (default: for ever); keep: how much longer they are still taken in; ttl: how long an idle key's events
    serve windows that do not end with time.
    """

    def __init__(
        self,
        *,
        windows,
        aggs,
        by=None,
        time,
        closed="right",
        ties="peers",
        order=None,
        origin=None,
        exclude_current=False,
        id=None,
        watermark=None,
        keep=None,
        ttl=None,
        schema=None,
    ):
        self._request = request(
            time=time,
            by=by,
            windows=windows,
            aggs=aggs,
            closed=closed,
            ties=ties,
            order=order,
            origin=origin,
            exclude_current=exclude_current,
            emit="latest",
        )
        for name, length in (("watermark", watermark), ("keep", keep), ("ttl", ttl)):
            if length is not None:
                windows_._length(length, name, zero=True)
        if watermark is None and keep is not None:
            raise InputError("keep= says how far behind the watermark= events are taken in; give both")
        self._options: dict[str, Any] = {"id": id, "watermark": watermark, "keep": keep, "ttl": ttl}
        self._columns = list(dict.fromkeys([*self._request.needed, *column_names("id", id)]))
        self._engine: Keyed | None = None
        self._asked: Asked | None = None
        self._pending: list[dict] = []
        self._rows: Rows | None = None
        self._counts: dict[str, int] = {}
        if schema is not None:
            try:
                schema = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
            except (TypeError, ValueError) as error:
                raise InputTypeError(f"schema= takes a pyarrow.Schema, or names and types of columns: {error}") from None
            self._begin(schema)

    # ---- events --------------------------------------------------------------------------------------------------------------

    def push(self, events) -> None:
        """Take in one event (a dict), several (a list of dicts), or a frame: pandas, Polars or PyArrow. Any order."""
        if isinstance(events, dict):
            self._push_rows([events])
        elif isinstance(events, (list, tuple)):
            self._push_rows(events)
        else:
            self._push_table(as_table(events, self._columns))

    def _push_rows(self, rows) -> None:
        if not rows:
            return
        if self._engine is None:
            for row in rows:
                check_dict(row)
            self._begin(inferred(rows, self._columns))
        for row in rows:
            self._rows.check(row)
        self._pending.extend(map(dict, rows))  # the caller may write the next event into the same dict
        if len(self._pending) >= AT_ONCE:
            self._flush()

    def _push_table(self, table: pa.Table) -> None:
        check_columns(self._columns, table.column_names)
        if self._engine is None:
            unknown = [name for name in self._columns if pa.types.is_null(plain(table.schema.field(name).type))]
            if unknown and not len(table):
                return
            if unknown:
                raise type_unknown(unknown[0], "as no event has one")
            self._begin(table.schema)
        schema = self._engine.spec.schema
        table = pa.table([cast(table.column(field.name), field) for field in schema], schema)
        times = table.column(self._request.time)
        if times.null_count:
            raise InputError(
                f"time column {self._request.time!r} has {times.null_count} null(s); an event without a time has no "
                "place in any window"
            )
        self._flush()
        self._take(table)

    def _flush(self) -> None:
        if self._pending:
            table, self._pending = self._rows.table(self._pending), []
            self._take(table)

    def _settle(self) -> None:
        """All that was pushed is in the engine's arena."""
        self._flush()
        if self._engine is not None:
            self._asked.settle()

    def _take(self, table: pa.Table) -> None:
        engine = self._engine
        self._asked.mend()
        outcome = engine.push(table)
        for name, count in outcome.counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        delay, clock = engine.spec.delay, engine.frontier.clock
        if delay is not None and clock is not None:
            before = engine.frontier.watermark
            engine.frontier.watermark = clock - delay if before is None else max(before, clock - delay)
            engine.retention.maybe()
        if outcome.counts.get("bad"):
            low, high = engine.spec.room
            raise InputError(
                f"{outcome.counts['bad']} event(s) were not taken in: their times {self._request.time!r} are not finite, or not "
                f"between {low} and {high}, where these windows can be counted"
            )

    def _begin(self, schema: pa.Schema) -> None:
        check_columns(self._columns, schema.names)
        looked_at = set(self._request.order)
        for bound in self._request.leaves.values():
            looked_at |= set(bound.columns[:1]) if bound.operator.name in ORDERED else set()
        for name in looked_at:
            if is_ordered(schema.field(name).type):
                raise InputTypeError(f"column {name!r} has ordered categories, which Live knows no order of; push text or codes")
        kinds = pa.schema([pa.field(n, kept_as(n, schema.field(n).type, n in self._request.by)) for n in self._columns])
        spec = stream_spec(self._request, kinds, late="correct", arrival=True, **self._options)
        self._engine = Keyed(spec)
        self._engine.emission = self._asked = Asked(spec, self._engine)
        self._rows = Rows(spec.schema, self._request.time)

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def query(self, key=None, at=None) -> dict:
        """The results of the windows that end at `at` (default: the key's youngest event, or the earliest moment that is still
        kept, where that is later), by name.

        A key that is not known has empty windows, and so has one that can be no value of the column (1.5 among whole numbers).
        `at` is never rounded: between two ticks of the time column it is as in `as_of`, or refused. Without by=, leave the key
        out: `live.query()`, `live.query(at=...)`."""
        if key is not None and not self._request.by:
            raise InputError(
                f"there is no by=, so no key to ask for, and {key!r} would be one; for a moment write at=: live.query(at={key!r})"
            )
        self._flush()
        if self._engine is None:
            return self._empty()
        engine = self._engine
        slots = self._there(engine.map.find([engine.map.normal(key)]))
        if not len(slots):
            return self._empty()
        return {name: column[0].as_py() for name, column in self._answers(slots, at).items()}

    def results(self, at=None) -> pa.Table:
        """The same for every key, as an Arrow table: key columns, then results."""
        self._settle()
        if self._engine is None:
            raise InputError("nothing has been pushed yet, so the types of the results are not known; give schema=")
        engine = self._engine
        slots = self._there(engine.map.slots())
        columns = dict(zip(self._request.by, engine.map.columns(slots.tolist()), strict=True))
        return pa.table({**columns, **self._answers(slots, at)})

    def _there(self, slots: np.ndarray) -> np.ndarray:
        """Those of these keys (-1: none) that have an event which may be in a window, whether a sweep came by or not."""
        retention = self._engine.retention
        slots = slots[slots >= 0]
        if retention.expires:
            return slots[~np.isin(slots, retention.idle_among(slots))]
        return slots if self._engine.spec.endless else slots[self._youngest(slots) >= retention.horizon()]

    def _youngest(self, slots: np.ndarray) -> np.ndarray:
        """The time of each key's youngest event."""
        found = self._engine.retention.youngest_of(slots)
        for slot, youngest in self._asked.late.youngest.items():
            found[slots == slot] = youngest
        return found

    def _answers(self, slots: np.ndarray, at) -> dict[str, pa.Array]:
        since = self._engine.retention.corrected()
        if at is not None:
            tick, behind = self._moment(at)
            tick = self._between(at, tick) if behind else tick
            if since is not None and tick < since:
                raise InputError(
                    f"windows that end at {at!r} reach back before what is kept; ask for a later time, or give a "
                    "longer keep= or a later expire()"
                )
            return self._columns_of(slots, tick)
        if since is None or not (old := self._youngest(slots) < since).any():
            return self._columns_of(slots, None)
        if old.all():
            return self._columns_of(slots, since)
        parts = [self._columns_of(slots[which], tick) for which, tick in ((~old, None), (old, since))]
        order = pa.array(np.argsort(np.concatenate([np.flatnonzero(~old), np.flatnonzero(old)])))
        return {name: pa.concat_arrays([part[name] for part in parts]).take(order) for name in parts[0]}

    def _columns_of(self, slots: np.ndarray, tick) -> dict[str, pa.Array]:
        found = self._asked.asked(slots, tick)
        return {output.column: self._engine.emission.column(output, found) for output in self._request.outputs}

    def _empty(self) -> dict:
        """The results of windows without events."""
        leaves = self._request.leaves

        def empty(leaf):
            value = leaves[leaf].operator.without_values()
            return value.tolist() if isinstance(value, np.ndarray) else value

        return {o.column: self._request.put_together(o.aggregate, empty, dict) for o in self._request.outputs}

    def _moment(self, at) -> tuple[int | float, bool]:
        """The last tick at or before a time as the user gives it, and whether the time lies behind that tick."""
        spec = self._engine.spec
        ticks, behind = moment(at, spec.schema.field(self._request.time).type, spec.clock)
        low, high = spec.room
        if not low <= ticks <= high:  # NaN is not, either
            raise InputError(f"{at!r} is not a time that these windows can be counted at")
        return ticks, behind

    def _between(self, at, tick):
        """The tick at which windows hold the same events as at a time between it and the next one. There is one where only one
        end of a window moves over the events, or both do at the same ticks."""
        left, right = sides(self._request.closed)
        for window in self._request.windows.values():
            same_ticks = left != right and (right or not (window.slide or window.calendar))
            if window.kind not in ("rows", "delta", "punctuation", "lifetime") and not (window.kind == "time" and same_ticks):
                raise InputError(
                    f"{at!r} lies between two ticks of the time column, where {window} with closed={self._request.closed!r} is not "
                    "counted; ask at one of its ticks, or give schema= with times of a finer type"
                )
        return tick if right else tick + 1

    def explain(self) -> StreamExplanation:
        """What each aggregate is kept in, why, at which cost, and why not otherwise: print it, or take `as_dict()`."""
        if self._engine is None:
            raise InputError("nothing has been pushed yet, so types, and what suits them, are not known; give schema=")
        return StreamExplanation(self._engine.spec)

    # ---- what is held --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many events are held."""
        self._settle()
        return 0 if self._engine is None else self._engine.entries

    def keys(self) -> list:
        """Every key that is held: values, or tuples of them where by= names several columns."""
        self._flush()
        if self._engine is None or not self._request.by:
            return []
        columns = [c.to_pylist() for c in self._engine.map.columns(self._engine.map.slots().tolist())]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def __contains__(self, key) -> bool:
        """Whether it is among `keys()`: without by= there are none."""
        self._flush()
        if self._engine is None or not self._request.by:
            return False
        return int(self._engine.map.find([self._engine.map.normal(key)])[0]) >= 0

    @property
    def counts(self) -> dict[str, int]:
        """Events so far: in, accepted, double (by id), late, dropped because they came too late, out of order (corrected)."""
        self._flush()
        names = ("in", "accepted", "double", "late", "corrected")
        found = {name: self._counts.get(name, 0) for name in names}
        found["dropped"] = self._counts.get("side", 0) + self._counts.get("dropped", 0)
        return found

    @property
    def nbytes(self) -> int:
        """Memory held, roughly."""
        self._settle()
        return 0 if self._engine is None else self._engine.nbytes + self._asked.late.nbytes

    def expire(self, before) -> int:
        """No event before this time will come and no window ending before it be asked for: forget what no other needs.

        How many events were forgotten. Events that come before it after all are not taken in, and counted as late."""
        self._flush()
        if self._engine is None:
            return 0
        engine, held = self._engine, len(self)
        moment = self._moment(before)[0] + engine.spec.keep
        if engine.frontier.watermark is None or moment > engine.frontier.watermark:
            engine.frontier.watermark = moment
        engine.retention.sweep()
        return held - engine.entries

    # ---- snapshots -----------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything that is held, as bytes: events and times, never code."""
        for bound in self._request.leaves.values():
            told_apart(bound.operator)
        self._settle()
        description: dict[str, Any] = {"signature": self._signature(), "counts": self._counts}
        sections = {}
        if self._engine is not None:
            description["origins"] = self._origins()
            sections = {"schema": _schema_bytes(self._engine.spec), "events": _stream_bytes(self._engine.retained())}
        return pack(KIND, description, sections)

    @classmethod
    def from_bytes(cls, data, **arguments) -> "Live":
        """The structure back from bytes; the arguments are those it was made with, as operators are never stored."""
        description, sections = unpack(KIND, data)
        live = cls(**arguments)
        if description.get("signature") != live._signature():
            raise StateError(
                f"this state was stored for {description.get('signature')!r}, and is to be read as "
                f"{live._signature()!r}; give the same windows, aggregates, keys and options"
            )
        counts = description.get("counts")
        if not isinstance(counts, dict) or not all(isinstance(v, int) for v in counts.values()):
            raise StateError("stored state is damaged: its counts")
        live._counts = counts
        if "events" in sections:
            try:
                schema = pa.ipc.read_schema(pa.py_buffer(sections.get("schema", b"")))
                entry = pa.ipc.open_stream(sections["events"]).read_all()
                entry.validate(full=True)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise StateError(f"stored state is damaged: {error}") from error
            if live._engine is not None and live._engine.spec.schema != schema:
                raise StateError(
                    f"this state was stored with the columns {_said(schema)}, and is to be read with "
                    f"{_said(live._engine.spec.schema)}; leave out schema=, or give the same"
                )
            try:
                live._begin(schema)
            except (InputError, InputTypeError) as error:
                raise StateError(f"stored state does not fit: {error}") from error
            stored = description.get("origins", {})
            if stored != live._origins():
                raise StateError(
                    f"this state was stored for windows whose boundaries are counted from {stored or 'the default origin'}, and is "
                    f"to be read with {live._origins() or 'the default one'}; give the same origin="
                )
            live._engine.absorb(entry)
        return live

    def _signature(self) -> str:
        asked = self._request
        aggs = ", ".join(
            f"{n}={b.operator.signature}({', '.join(b.columns)}; {b.where})" for n, b in asked.leaves.items()
        )
        windows = ", ".join(f"{n}={window}" for n, window in asked.windows.items())
        options = (
            asked.closed,
            asked.ties,
            asked.order,
            asked.exclude_current,
            sorted(map(str, self._options.items())),
        )
        return f"windows {windows}; aggs {aggs}; by {asked.by}; time {asked.time}; {options}"

    def _origins(self) -> dict[str, int | float]:
        """Where the boundaries of windows are counted from, however that was written, where it is not the default: a number, or
        nanoseconds. Bytes from before these were stored have none."""
        spec = self._engine.spec
        tick = spec.clock.tick_ns if spec.clock.kind == "instant" else 1
        return {name: window.origin * tick for name, window in spec.ticks.items() if window.slide and window.origin}

    def __repr__(self) -> str:
        windows = ", ".join(self._request.windows)
        return f"<Live of {', '.join(self._request.aggs)} over {windows}: {len(self)} events>"


class Asked(Emission):
    """Nothing comes out by itself."""

    def __init__(self, spec: StreamSpec, engine: Keyed):
        super().__init__(spec, engine)
        self.late = LateKeys(spec, engine)

    def step(self, accepted, times, intake, batch, counts):
        if len(intake.rows):
            counts["corrected"] = self.late.out_of_order(intake)
            self.late.take(intake, self.engine._stored(accepted, intake))
        return self.spec.no_results

    def asked(self, slots: np.ndarray, tick) -> Results:
        """Results of these keys at a moment, or (None) at each one's youngest event."""
        if len(slots) == 1 and int(slots[0]) in self.late:
            return Results(self.late.answers(int(slots[0]), tick), np.ones(1, bool), np.ones(1, bool))
        self.mend()
        self.engine.refresh(slots)
        if tick is None:
            return self.at_rows(slots, self.engine.arena.keys[slots, LAST] - 1)
        return self.evaluate(slots, _NO_ROWS, np.full(len(slots), tick, self.spec.clock.dtype))

    def settle(self):
        self.late.settle()

    def mend(self) -> None:
        """What waits for a key whose trees were given up half-way goes where it will be looked for."""
        if self.late.fallen:
            self.late.settle()

    def swept(self):
        self.late.swept()

    def dropped(self, slots):
        self.late.dropped(slots)


def _said(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _schema_bytes(spec: StreamSpec) -> bytes:
    return spec.schema.serialize().to_pybytes()


def _stream_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
