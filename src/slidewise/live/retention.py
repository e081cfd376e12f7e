"""What may be forgotten: events that serve no window of any result still to be given or corrected.

    events        |......... evictable ........|.... reach ....|.... keep ....|.... still accepted in order ....
    times                                    horizon         corrected     watermark

Results from `corrected` (watermark - keep) on may still change, and their windows reach back to the horizon. Rows windows need the
last n rows in front of it, runs (session, delta, punctuation) where the run that reaches it began; of rows of one moment all or
none are kept, and in front of a run the row that ended the one before it (marked, or too far away) too: a changed query may
order ties, or take ends, otherwise. A lifetime keeps one partial of what was forgotten. A key of windows that do not end with
time is kept until its `ttl` has passed.

Forgetting changes no answer, so it need not happen at once: it is done for all keys from time to time, at a cost of
O(keys + forgotten). An idle key is gone for a new event of its own as soon as its `ttl` has passed, swept or not, and the log
says which keys began anew: answers do not depend on when a sweep came by.
"""

import base64
import io

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import entry
from slidewise.errors import StateError
from slidewise.live.arena import CAP, CHANGED, FIRST, LAST, NEVER, RANK0, START
from slidewise.live.frames import RUNS
from slidewise.live.spec import StreamSpec
from slidewise.windows.positions import lower_position

RANK_COLUMN, YOUNGEST_COLUMN = "__slidewise_rank", "__slidewise_youngest"


class Retention:
    """Decides when and what the engine forgets."""

    def __init__(self, spec: StreamSpec, engine):
        self.spec, self.engine = spec, engine
        kinds = [ticks.kind for ticks in spec.ticks.values()]
        self.by_time = any(kind in ("time", "tumbling", "session") for kind in kinds)
        self.lifetime = "lifetime" in kinds
        self.rows = max((t.range + t.offset + t.slide + 1 for t in spec.ticks.values() if t.kind == "rows"), default=-1)
        self.expires = spec.endless and spec.idle is not None
        self.youngest = np.zeros(0, spec.clock.dtype)
        """The youngest event of each key, as far as a sweep has seen it: a lifetime outlives all its events."""
        self._lowest = -np.inf if spec.clock.kind == "real" else int(np.iinfo(np.int64).min)
        self._swept_at = None
        self._left = 0

    def corrected(self):
        """Results before this time change no more; None: all may."""
        frontier = self.engine.frontier
        if frontier.watermark is None:
            return None
        if self.spec.results == "final":
            return frontier.given
        return max(frontier.watermark - self.spec.keep, self._lowest)

    def horizon(self):
        """Events before this time serve no window that ends with time."""
        since = self.corrected()
        return self._lowest if since is None else max(since - self.spec.reach, self._lowest)

    def forgotten(self):
        """Ids of events before this time are known no more."""
        watermark = self.engine.frontier.watermark
        return self._lowest if watermark is None else max(watermark - self.spec.keep - self.spec.reach, self._lowest)

    def maybe(self) -> None:
        """Sweep if enough can have become evictable since the last time."""
        since = self.corrected()
        if since is None:
            return
        grown = self.engine.arena.entries > 2 * self._left + 1024
        if self._swept_at is None or grown or since - self._swept_at >= (self.spec.reach + self.spec.keep) / 8:
            self.sweep()

    def sweep(self) -> None:
        """Forget all that can be forgotten now."""
        since = self.corrected()
        if since is None:
            return
        engine, spec = self.engine, self.spec
        engine.emission.settle()
        arena = engine.arena
        slots = engine.map.slots()
        number = arena["time"].dtype.type
        firsts = arena.keys[slots, LAST].copy()
        for name, ticks in spec.ticks.items():
            if ticks.kind in RUNS:
                engine.refresh(slots[arena.keys[slots, CHANGED] < NEVER])
                gap = number(min(ticks.range, since - self._lowest) if ticks.kind == "session" else 0)
                keep_runs(
                    arena.keys,
                    arena["time"],
                    arena[f"run:{name}"],
                    slots,
                    number(since),
                    ticks.kind == "session",
                    gap,
                    firsts,
                )
        keep_from(
            arena.keys, arena["time"], slots, number(since), number(self.horizon()), self.by_time, self.rows, firsts
        )
        if spec.endless:
            ended = any(t.kind in ("punctuation", "delta") for t in spec.ticks.values())
            keep_ties(arena.keys, arena["time"], slots, ended, firsts)
        if spec.emit == "latest":
            keep_heard(arena.keys, arena["time"], arena["quiet"], slots, number(since), firsts)
        dropped = slots[firsts == arena.keys[slots, LAST]]
        if spec.endless:
            idle = self._idle(slots)
            firsts[idle] = arena.keys[slots[idle], LAST]
            dropped = slots[idle]
        self._forget(slots, firsts, dropped)
        if arena.wasteful():
            self.compact()
        engine.emission.swept()
        self._swept_at, self._left = since, arena.entries

    def drop(self, slots: np.ndarray) -> None:
        """Forget these keys and all they have."""
        if len(slots):
            self._forget(slots, self.engine.arena.keys[slots, LAST].copy(), slots)

    def _forget(self, slots: np.ndarray, firsts: np.ndarray, dropped: np.ndarray) -> None:
        """Forget the events of keys before these positions, and keys."""
        engine = self.engine
        arena = engine.arena
        if self.lifetime:
            for partials in engine.partials:
                partials.collapse(slots, arena.keys[slots, FIRST], firsts, dropped)
        gone = arena.evict(slots, firsts)
        if engine.store.forget(gone):
            engine.store.keep(arena["number"][arena.live(engine.map.slots())])
        if len(dropped):
            arena.keys[dropped] = 0  # a key that comes again begins anew
            engine.map.drop(dropped)
            engine.emission.dropped(dropped)

    def idle_among(self, slots: np.ndarray) -> np.ndarray:
        """Those of these keys (-1: none) that have had no event for longer than the time to live."""
        slots = slots[slots >= 0]
        return slots[self._idle(slots)]

    def compact(self) -> None:
        """Give back the room of keys that are gone or have shrunk."""
        self.engine.arena.compact()
        for partials in self.engine.partials:
            partials.begin_anew()

    def _idle(self, slots: np.ndarray) -> np.ndarray:
        """Which keys have had no event for longer than the time to live."""
        youngest, idle, watermark = self.youngest_of(slots), self.spec.idle, self.engine.frontier.watermark
        if idle is None or watermark is None:
            return np.zeros(len(slots), bool)
        return youngest < watermark - idle

    def youngest_of(self, slots: np.ndarray) -> np.ndarray:
        """The time of each key's youngest event, forgotten or not."""
        arena = self.engine.arena
        if len(self.youngest) < len(arena.keys):
            grown = np.zeros(len(arena.keys), self.youngest.dtype)
            grown[: len(self.youngest)] = self.youngest
            self.youngest = grown
        held = slots[arena.keys[slots, LAST] > arena.keys[slots, FIRST]]
        self.youngest[held] = arena["time"][arena.keys[held, LAST] - 1]
        return self.youngest[slots]

    # ---- what a log entry cannot say by its events alone ---------------------------------------------------------------------

    def stored_keys(self) -> str:
        """Keys whose first events are forgotten: how many, and their lifetime's partials; as text for the description."""
        engine = self.engine
        slots = engine.map.slots()
        keys = engine.arena.keys
        ranks = keys[slots, RANK0] + keys[slots, FIRST] - keys[slots, START]
        some = ranks > 0
        slots, ranks = slots[some], ranks[some]
        columns = dict(zip(self.spec.by, engine.map.columns(slots), strict=True))
        columns[RANK_COLUMN] = pa.array(ranks)
        self._idle(slots)
        columns[YOUNGEST_COLUMN] = pa.array(self.youngest[slots])
        if self.lifetime:
            for partials in engine.partials:
                columns[f"__slidewise_{partials.step.name}"] = partials.stored_bases(slots)
        sink = io.BytesIO()
        table = pa.table(columns)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return base64.b64encode(sink.getvalue()).decode()

    def restore_keys(self, text: str) -> None:
        engine = self.engine
        if len(engine.map):
            raise StateError("a compacted log entry must be the first that is absorbed")
        try:
            table = pa.ipc.open_stream(base64.b64decode(text, validate=True)).read_all()
            table.validate(full=True)
            ranks = table.column(RANK_COLUMN).to_numpy()
            youngest = table.column(YOUNGEST_COLUMN).to_numpy().astype(self.youngest.dtype)
            columns = [table.column(name).combine_chunks() for name in self.spec.by]
        except (ValueError, KeyError, OSError, pa.ArrowException) as error:
            raise StateError(f"the keys of a log entry are damaged: {error}") from error
        columns = [c.chunk(0) if isinstance(c, pa.ChunkedArray) and c.num_chunks else c for c in columns]
        if len(ranks) == 0:
            return
        if (ranks < 0).any():
            raise StateError("the keys of a log entry are damaged: a negative rank")
        codes, keys = engine.map.codes(columns, len(ranks))
        slots = engine.map.add(keys)[codes]
        engine.arena.reserve_keys(engine.map.size)
        engine.arena.keys[slots, RANK0] = ranks
        self._idle(slots)
        self.youngest[slots] = youngest
        if self.lifetime:
            for partials in engine.partials:
                partials.restore_bases(slots, table.column(f"__slidewise_{partials.step.name}").to_pylist())


@entry
def keep_from(keys, times, slots, since, horizon, by_time, rows, firsts):
    """firsts[j]: the earlier of what it is and what time and rows windows of key slots[j] need."""
    for j in range(len(slots)):
        k = slots[j]
        first, last = keys[k, FIRST], keys[k, LAST]
        if keys[k, CAP] == 0:
            continue
        # Results still to be given or corrected: their rows are needed anyhow.
        current = lower_position(times, first, last, since, False)
        need = min(firsts[j], current)
        if by_time:
            need = min(need, lower_position(times, first, last, horizon, False))
        if rows >= 0:
            need = min(need, current - rows)
        firsts[j] = max(first, need)


@entry
def keep_ties(keys, times, slots, ended, firsts):
    """firsts[j]: the first row of the moment of that row (ended: of the row in front of it)."""
    for j in range(len(slots)):
        first, need = keys[slots[j], FIRST], firsts[j]
        if first < need < keys[slots[j], LAST]:
            need -= ended
            firsts[j] = lower_position(times, first, need, times[need], False)


@entry
def keep_heard(keys, times, quiet, slots, since, firsts):
    """Of keys whose youngest event is history and still to be passed, keep the youngest of the stream: it says that the key
    is one to give."""
    for j in range(len(slots)):
        k = slots[j]
        first, last = keys[k, FIRST], keys[k, LAST]
        if first == last or not quiet[last - 1] or times[last - 1] < since:
            continue
        p = last - 1
        while p >= first and quiet[p]:
            p -= 1
        if p >= first:
            firsts[j] = min(firsts[j], p)


@entry
def keep_runs(keys, times, begun, slots, since, session, gap, firsts):
    for j in range(len(slots)):
        k = slots[j]
        first, last = keys[k, FIRST], keys[k, LAST]
        if first == last:
            continue
        current = lower_position(times, first, last, since, False)
        need = current
        if current > first and not (session and times[current - 1] < since - gap):
            need = begun[current - 1] - keys[k, RANK0] + keys[k, START]
        firsts[j] = max(first, min(firsts[j], need))
