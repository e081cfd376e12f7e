"""The keyed engine: many windows over many keys, events in any order, for one bucket of keys. Knows nothing of Spark.

A push takes a batch of events in and says what comes out:

    1. sort out what is late, ahead, bad or seen before                      judge
    2. group by key, sort by time, order ties                                intake.py
    3. the results already given that may change, as they are                windows -> frames.py, aggregates -> folds.py
    4. merge the events into the arena                                       arena.py
    5. results of the new events; those of step 3 again, and which differ
    6. the log entry from which `absorb` makes the same state again

The state is a function of the set of events taken in and of the watermark: not of the order of arrival, nor of how events were cut
into batches. Times are ticks of the spec's clock inside, and the time column's own unit at the border.
"""

import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from slidewise.errors import InputError, StateError
from slidewise.live import emission
from slidewise.live.arena import FIRST, LAST, Arena
from slidewise.live.columns import one_array, time_ticks, valid_bytes
from slidewise.live.folds import mark_fresh
from slidewise.live.frames import RUNS, refresh_runs
from slidewise.live.ids import Seen, id_words
from slidewise.live.intake import Intake, take_in
from slidewise.live.keymap import KeyMap
from slidewise.live.partials import Partials
from slidewise.live.retention import Retention
from slidewise.live.rowstore import RowStore
from slidewise.live.spec import HISTORY_COLUMN, StreamSpec
from slidewise.windows.deltas import delta_dtype, delta_numbers

META = b"slidewise"
LOG_VERSION = 1
TAKE, SIDE, DROP, DOUBLE = range(4)
"""What becomes of an event: taken in, handed out apart, dropped, or known already."""


@dataclass
class Outcome:
    """What a step gives."""

    rows: pa.Table
    log: pa.Table | None
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Frontier:
    """How far the stream has come, in ticks. None: not yet."""

    watermark: int | float | None = None
    """Events before it are late."""
    given: int | float | None = None
    """Final results before it have been given."""
    clock: int | float | None = None
    """The youngest event time seen."""
    known_from: int | float | None = None
    ended: bool = False


class Keyed:
    """One bucket of keys."""

    def __init__(self, spec: StreamSpec):
        self.spec = spec
        types = [spec.schema.field(name).type for name in spec.by]
        self.map = KeyMap(types)
        self.arena = Arena()
        self.arena.add_column("time", spec.clock.dtype)
        self.arena.add_column("number", np.int64)
        self.arena.add_column("quiet", np.uint8)
        for name, ticks in spec.ticks.items():
            if ticks.kind in RUNS:
                self.arena.add_column(f"run:{name}", np.int64)
            if ticks.column is not None and f"by:{ticks.column}" not in self.arena.columns:
                self.arena.add_column(f"by:{ticks.column}", _window_dtype(spec, ticks))
                self.arena.add_column(f"valid:{ticks.column}", np.uint8)
        lifetime = any(ticks.kind == "lifetime" for ticks in spec.ticks.values())
        aggregates = {a.name: a for a in spec.aggregates}
        self.partials = [Partials(step, aggregates, self.arena, lifetime) for step in spec.steps]
        self.store = RowStore(spec.log_schema)
        self.seen = Seen() if spec.id else None
        self.frontier = Frontier(known_from=spec.known_from)
        self.retention = Retention(spec, self)
        self.emission = emission.for_spec(spec, self)

    # ---- steps -----------------------------------------------------------------------------------------------------------

    def push(self, events: pa.Table, *, watermark=None, batch: int = 0, now=None) -> Outcome:
        """Take a batch in. watermark, now: in the time column's unit; events before the watermark are late, and
        `max_ahead` counts from now."""
        events = self._conform(events)
        self._advance_watermark(watermark)
        times, good = time_ticks(one_array(events.column(self.spec.time)), self.spec)
        fates, reasons = self._judge(times, good, now)
        taken = np.flatnonzero(fates == TAKE)
        accepted = events if len(taken) == len(fates) else events.take(pa.array(taken))
        times = times if len(taken) == len(fates) else times[taken]
        codes, keys = self.map.codes(self._key_columns(accepted), len(times))
        early = self._expire(keys, batch)
        begun = self.map.find(keys) < 0 if self.retention.expires else np.zeros(len(keys), bool)
        intake = self._intake(accepted, times, codes, keys)
        if len(intake.rows) < len(times):
            kept = np.sort(intake.rows)
            fates[np.delete(taken, kept)] = DOUBLE
            place = np.full(len(times), -1, np.int64)
            place[kept] = np.arange(len(kept))
            accepted, times = accepted.take(pa.array(kept)), times[kept]
            intake.rows = place[intake.rows]
        counts = self._counted(events, fates, reasons)
        if len(times) and self.frontier.known_from is None:
            self.frontier.known_from = times.min()
        rows = self.emission.step(accepted, times, intake, batch, counts)
        side = self._side(events, fates, batch)
        rows = pa.concat_tables([*early, rows, side]) if early or side.num_rows else rows
        counts["out"] = rows.num_rows
        self.retention.maybe()
        anew = intake.rows[intake.bounds[:-1]][np.isin(intake.touched, self.map.find(keys)[begun])] if begun.any() else ()
        return Outcome(rows, self._log(accepted, anew), counts)

    def advance(self, *, watermark=None, batch: int = 0, final: bool = False) -> Outcome:
        """Time went on without events. final: the stream has ended, so everything still due is given."""
        self._advance_watermark(watermark)
        self.frontier.ended |= final
        counts = _counts(0)
        rows = self.emission.due(batch, counts)
        counts["out"] = rows.num_rows
        self.retention.maybe()
        return Outcome(rows, self._log(self.spec.schema.empty_table()), counts)

    def absorb(self, entry: pa.Table) -> None:
        """Take a stored log entry in: the state is then as after the step that wrote it."""
        meta = read_meta(entry)
        if not entry.schema.equals(self.spec.log_schema, check_metadata=False):
            raise StateError(
                f"a log entry has the columns {entry.schema.names}, expected {self.spec.log_schema.names}; "
                "the state was written by a stream with other columns or aggregates"
            )
        times, good = time_ticks(one_array(entry.column(self.spec.time)), self.spec)
        if good is not None and not good.all():
            raise StateError("a log entry holds events without a time")
        if "keys" in meta:
            self.retention.restore_keys(meta["keys"])
        own = self.frontier  # first: an id that was forgotten when the entry was written may be in it again
        for name in ("watermark", "given", "clock"):
            value = meta.get(name)
            if value is not None:
                mine = getattr(own, name)
                setattr(own, name, value if mine is None else max(mine, value))
        if meta.get("known_from") is not None:
            own.known_from = meta["known_from"]
        own.ended |= bool(meta.get("ended"))
        codes, keys = self.map.codes(self._key_columns(entry), len(times))
        expired = self.map.find([keys[code] for code in codes[meta.get("anew", [])]])
        self.retention.drop(expired[expired >= 0])
        intake = self._intake(entry, times, codes, keys)
        if len(intake.rows) != len(times):
            raise StateError("a log entry holds events twice: it was absorbed already, or belongs to another state")
        self._merge(entry, intake)
        self.emission.absorbed(meta)
        self.retention.maybe()

    def retained(self) -> pa.Table:
        """All that must be kept, as one log entry."""
        self.emission.settle()
        self.retention.sweep()
        positions = self.arena.live(self.map.slots())
        table = self.store.take(np.sort(self.arena["number"][positions]))
        return self._with_meta(table, {"keys": self.retention.stored_keys(), **self.emission.stored()})

    def history(self, table: pa.Table) -> pa.Table:
        """A batch of older events, each once, as a log entry that fills windows and gives nothing out."""
        table = self._conform(table)
        times, good = time_ticks(one_array(table.column(self.spec.time)), self.spec)
        if good is not None and not good.all():
            raise InputError(f"history: the time column {self.spec.time!r} has nulls, or times without room for the windows")
        if self.seen is not None:
            chosen = self._not_seen(table, times)
            table, times = table.take(pa.array(chosen)), times[chosen]
        entry = self._entry(table, history=True)
        known = None if len(times) == 0 else times.min().item()
        meta = {
            "version": LOG_VERSION,
            "history": True,
            "known_from": known,
            "clock": None if known is None else times.max().item(),
        }
        return entry.replace_schema_metadata({META: json.dumps(meta).encode()})

    # ---- sorting out -----------------------------------------------------------------------------------------------------

    def _conform(self, events: pa.Table) -> pa.Table:
        """The batch with exactly the columns and types of the spec."""
        if events.schema.equals(self.spec.schema, check_metadata=False):
            return events
        missing = [name for name in self.spec.schema.names if name not in events.schema.names]
        if missing:
            raise InputError(
                f"the events have no column {missing[0]!r}; they have {', '.join(map(repr, events.schema.names))}"
            )
        return events.select(self.spec.schema.names).cast(self.spec.schema)

    def _advance_watermark(self, watermark) -> None:
        if watermark is None:
            return
        ticks = watermark * self.spec.clock.scale
        if self.frontier.watermark is None or ticks > self.frontier.watermark:
            self.frontier.watermark = ticks

    def _judge(self, times, good, now) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """What becomes of each event, as far as its time tells, and what is the matter with it."""
        spec, wm = self.spec, self.frontier.watermark
        reasons: dict[str, np.ndarray] = {}
        fates = np.zeros(len(times), np.uint8)
        apart = DROP if spec.late == "drop" else SIDE
        late = np.zeros(len(times), bool)
        if self.frontier.ended:
            late[:] = True
            fates[:] = apart
        elif wm is not None:
            expired = spec.arrival and spec.delay is None  # `Live.expire` alone has moved it, and says from where on
            late = times < (self._earliest(wm) if expired else wm)
            fates[late if spec.late != "correct" else times < self._earliest(wm)] = apart
        if spec.max_ahead is not None and now is not None:
            ahead = times > now * spec.clock.scale + spec.max_ahead
            reasons["ahead"] = ahead
            fates[ahead] = apart
        if good is not None:
            late &= good
            fates[~good] = apart
            reasons["bad"] = ~good
        return fates, {"late": late, **reasons}

    def _counted(self, events, fates, reasons) -> dict[str, int]:
        """Every event once: taken in, put aside, dropped or double. A double is nothing else: neither late, nor ahead, nor bad.

        Seen before is seen before, however late it comes again. What was put aside or dropped was not taken in, and is not
        remembered: an event with a wrong time may come again with the right one."""
        which = np.flatnonzero((fates == SIDE) | (fates == DROP))
        if self.seen is not None and len(which):
            fates[which[self._seen_before(events.take(pa.array(which)))]] = DOUBLE
        counts = _counts(len(fates))
        for name, fate in (("accepted", TAKE), ("side", SIDE), ("dropped", DROP), ("double", DOUBLE)):
            counts[name] = int((fates == fate).sum())
        for name, which in reasons.items():
            counts[name] = int((which & (fates != DOUBLE)).sum())
        return counts

    def _seen_before(self, events: pa.Table) -> np.ndarray:
        """Which events are known by their ids."""
        codes, keys = self.map.codes(self._key_columns(events), len(events))
        slots = self.map.find(keys)[codes]
        known = self.seen.known(*id_words(slots, self._id_columns(events)), self.retention.forgotten())
        return (known == 1) & (slots >= 0)

    def _not_seen(self, events: pa.Table, times: np.ndarray) -> np.ndarray:
        """Rows of events that are not known, of each the first by time."""
        codes, _ = self.map.codes(self._key_columns(events), len(events))
        first, second = id_words(codes, self._id_columns(events))
        order = np.lexsort((times, second, first))
        first, second = first[order], second[order]
        begins = np.ones(len(order), bool)
        begins[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        once = np.zeros(len(order), bool)
        once[order[begins]] = True
        return np.flatnonzero(once & ~self._seen_before(events))

    def _earliest(self, watermark):
        """Events before this are beyond `keep`."""
        return watermark - self.spec.keep

    def _side(self, events: pa.Table, fates: np.ndarray, batch: int) -> pa.Table:
        """Events handed out apart: untouched, without results."""
        which = np.flatnonzero(fates == SIDE)
        if len(which) == 0:
            return self.spec.no_results
        return self.emission.rows(events.take(pa.array(which)), None, batch, late=True)

    def _key_columns(self, table: pa.Table) -> list[pa.Array]:
        return [one_array(table.column(name)) for name in self.spec.by]

    def _id_columns(self, table: pa.Table) -> list[pa.Array]:
        return [one_array(table.column(name)) for name in self.spec.id]

    # ---- taking in -------------------------------------------------------------------------------------------------------

    def _expire(self, keys: list, batch: int) -> list[pa.Table]:
        """Keys of new events that were idle for longer than `ttl` begin anew, whether a sweep came by meanwhile or not. Results
        that were due before come first."""
        if not self.retention.expires:
            return []
        idle = self.retention.idle_among(self.map.find(keys))
        if len(idle) == 0:
            return []
        early = self.emission.due(batch, {})
        self.retention.drop(idle)
        return [early]

    def _intake(self, table: pa.Table, times: np.ndarray, codes: np.ndarray, keys: list) -> Intake:
        slots = self.map.add(keys)
        self.arena.reserve_keys(self.map.size)
        ties = list(self.spec.tie_columns)
        found = take_in(
            self.arena,
            codes,
            slots,
            times,
            lambda rows: table.select(ties).take(pa.array(rows)),
            lambda positions: self.store.take(self.arena["number"][positions], ties),
            self.spec.arrival,
        )
        if self.seen is not None and len(times):
            words = id_words(slots[codes], self._id_columns(table))
            first, second = (word[found.rows] for word in words)
            found.keep(self._first_of_each(first, second, found))
        return found

    def _first_of_each(self, first: np.ndarray, second: np.ndarray, found: Intake) -> np.ndarray:
        """Remember ids, and tell which rows had not been seen: of several in one batch the first by time, or by arrival."""
        if not self.spec.arrival:
            return self.seen.add(first, second, found.times, self.retention.forgotten())
        order = np.argsort(found.rows, kind="stable")
        new = np.empty(len(order), np.uint8)
        new[order] = self.seen.add(first[order], second[order], found.times[order], self.retention.forgotten())
        return new

    def _merge(self, table: pa.Table, intake: Intake) -> np.ndarray:
        """Store the events and put them into the arena; their positions, by sorted place."""
        return self.arena.merge(intake.touched, intake.bounds, intake.places, self._stored(table, intake))

    def _stored(self, table: pa.Table, intake: Intake) -> dict[str, np.ndarray]:
        """Store the events; the arena's columns of them, by sorted place."""
        numbers = self.store.append(self._entry(table))
        rows = intake.rows
        new: dict[str, np.ndarray] = {"time": intake.times, "number": numbers[rows]}
        arrays: dict[str, pa.Array] = {}

        def column(name: str) -> pa.Array:
            if name not in arrays:
                arrays[name] = one_array(table.column(name))
            return arrays[name]

        quiet = table.schema.get_field_index(HISTORY_COLUMN) >= 0
        new["quiet"] = (
            column(HISTORY_COLUMN).to_numpy(zero_copy_only=False)[rows] if quiet else np.zeros(len(rows), np.uint8)
        )
        for name, ticks in self.spec.ticks.items():
            if ticks.kind in RUNS:
                new[f"run:{name}"] = np.zeros(len(rows), np.int64)
            if ticks.column is not None and f"by:{ticks.column}" not in new:
                values, valid = _window_values(column(ticks.column), ticks.kind)
                new[f"by:{ticks.column}"] = values[rows]
                new[f"valid:{ticks.column}"] = np.ones(len(rows), np.uint8) if valid is None else valid[rows]
        for partials in self.partials:
            partials.read(column, new, rows)
        if len(rows):
            youngest = intake.times.max().item()
            clock = self.frontier.clock
            self.frontier.clock = youngest if clock is None else max(clock, youngest)
        return new

    def refresh(self, touched: np.ndarray) -> None:
        """Bring runs and partials of these keys up to date, before they are asked."""
        for name, ticks in self.spec.ticks.items():
            if ticks.kind in RUNS:
                refresh_runs(ticks, name, self.arena, touched, self.spec.request.closed)
        for partials in self.partials:
            partials.refresh(touched)
        mark_fresh(self.arena.keys, touched)

    def lookup(self, column: str, numbers: np.ndarray, mask) -> pa.Array:
        """Values of a stored column by row number; null where masked."""
        if mask is None:
            return one_array(self.store.take(numbers, [column]).column(column))
        found = self.store.take(numbers[~mask], [column]).column(column)
        places = np.cumsum(~mask) - 1
        return one_array(found).take(pa.array(places, mask=mask))

    # ---- the log ---------------------------------------------------------------------------------------------------------

    def _entry(self, table: pa.Table, history: bool = False) -> pa.Table:
        if table.schema.get_field_index(HISTORY_COLUMN) >= 0:
            return table
        found = table.select(list(self.spec.stored_columns))
        flags = pa.repeat(pa.scalar(history), table.num_rows)
        return found.append_column(pa.field(HISTORY_COLUMN, pa.bool_()), flags).replace_schema_metadata(None)

    def _log(self, accepted: pa.Table, anew=()) -> pa.Table:
        """anew: a row for each key that begins in it, to be told from one that goes on when the entry is absorbed."""
        extra = {"anew": [int(row) for row in anew]} if len(anew) else {}
        return self._with_meta(self._entry(accepted), self.emission.stored() | extra)

    def _with_meta(self, table: pa.Table, extra: dict) -> pa.Table:
        state = {
            name: _plain(getattr(self.frontier, name))
            for name in ("watermark", "given", "clock", "known_from", "ended")
        }
        return table.replace_schema_metadata({META: json.dumps({"version": LOG_VERSION, **state, **extra}).encode()})

    # ---- metrics ---------------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        return self.arena.entries

    @property
    def keys(self) -> int:
        return len(self.map)

    @property
    def nbytes(self) -> int:
        """Memory held, roughly: objects behind Python values are not counted."""
        held = self.arena.nbytes + self.store.nbytes + sum(p.nbytes for p in self.partials) + 200 * len(self.map)
        return held + (self.seen.nbytes if self.seen is not None else 0)

    def check(self) -> None:
        """Assert every invariant."""
        self.arena.check()
        slots = self.map.slots()
        held = self.arena.keys[slots, LAST] - self.arena.keys[slots, FIRST]
        assert held.sum() == self.arena.entries, "every event belongs to a key that is known"
        assert self.store.live == self.arena.entries, "every event has its row"


def read_meta(entry: pa.Table) -> dict:
    """What a log entry says beside its rows; StateError where it is none."""
    raw = (entry.schema.metadata or {}).get(META)
    if raw is None:
        raise StateError("this table is not a log entry: it carries no description")
    try:
        meta = json.loads(raw)
        version = meta["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"the description of a log entry is damaged: {error}") from error
    if version != LOG_VERSION:
        raise StateError(f"a log entry has version {version}, this program reads version {LOG_VERSION}")
    return meta


def _counts(rows: int) -> dict[str, int]:
    names = ("accepted", "out", "late", "corrected", "touched", "side", "dropped", "double", "bad", "ahead")
    return {"in": rows, **dict.fromkeys(names, 0)}


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _window_dtype(spec: StreamSpec, ticks) -> np.dtype:
    kind = spec.schema.field(ticks.column).type
    if ticks.kind == "punctuation":
        return np.dtype(np.bool_)
    return delta_dtype(kind)


def _window_values(array: pa.Array, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The column that a delta or punctuation window goes by, and which of its values are not null."""
    valid = valid_bytes(array)
    if kind == "punctuation":
        return array.fill_null(False).to_numpy(zero_copy_only=False), valid
    return delta_numbers(array), valid
