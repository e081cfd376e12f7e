"""emit="slide": a row for each key and boundary whose window is not empty.

Boundaries in time (slides, tumbling windows): a boundary is reached when the stream's clock is: the youngest event seen, or the
watermark. Eager, it is given then, and again when a late event changes it; final, once the watermark has passed it.

Windows that end with a row (every n-th row, a marked row, the last of a session) are given when that row is final: an earlier
answer could not be taken back when a late event makes another row the end.
"""

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import entry
from slidewise.live.arena import FIRST, LAST, RANK0, START
from slidewise.live.emission import Emission, FinalEvents, Results, limits
from slidewise.live.frames import frames
from slidewise.live.spec import BY_TIME, StreamSpec
from slidewise.windows.boundaries import answers, apart, ending_there, moments_of
from slidewise.windows.positions import lower_position


class Boundaries(Emission):
    """Boundaries in time, eager or final."""

    def __init__(self, spec: StreamSpec, engine):
        super().__init__(spec, engine)
        self.eager = spec.results == "eager"
        self.still = {name: ending_there(ticks) for name, ticks in spec.ticks.items()}
        self.history_until: int | float | None = None
        """Of boundaries up to it (final: before it), those are given that hold an event of the stream: the others are history."""

    def step(self, accepted, times, intake, batch, counts):
        if len(intake.rows) == 0:
            return self.due(batch, counts)
        counts["corrected"] = self.out_of_order(intake)
        given = self.engine.frontier.given
        if not self.eager or given is None:
            self.engine._merge(accepted, intake)
            return self.due(batch, counts)
        lowest, _ = limits(intake.times.dtype)
        which, moments = self.between(intake.times, intake.bounds[:-1], intake.bounds[1:], lowest, _next(given))
        slots = intake.touched[which]
        if len(moments):
            self.engine.refresh(intake.touched)
            old = self.at(slots, moments)
            untold = self.untold(intake.touched, which, moments)
        self.engine._merge(accepted, intake)
        rows = []
        if len(moments):
            self.engine.refresh(intake.touched)
            new = self.at(slots, moments)
            again = self.changed(old, new) & old.some & ~untold
            counts["touched"] = int(again.sum())
            differs = np.flatnonzero(again | (new.some & (~old.some | untold)))
            rows.append(self.boundary_rows(slots[differs], moments[differs], new.pick(differs), batch))
        return pa.concat_tables([*rows, self.due(batch, counts)])

    def due(self, batch, counts):
        engine, frontier = self.engine, self.engine.frontier
        times = engine.arena["time"]
        lowest, highest = limits(times.dtype)
        if frontier.ended and frontier.given == highest:  # all of them are out
            return self.spec.no_results
        reached = highest if frontier.ended else frontier.watermark
        if self.eager and not frontier.ended:
            seen = [t for t in (frontier.watermark, frontier.clock) if t is not None]
            reached = max(seen) if seen else None
        before = lowest if frontier.given is None else _next(frontier.given) if self.eager else frontier.given
        if reached is None:
            return self.spec.no_results
        until = _next(reached) if self.eager and not frontier.ended else reached
        slots = engine.map.slots()
        longest = max(t.range + t.offset + t.slide for t in self.still.values())
        begins = np.empty(len(slots), np.int64)
        number = times.dtype.type
        first_reaching(
            engine.arena.keys,
            times,
            slots,
            number(max(before - longest, lowest) if before > lowest else lowest),
            begins,
        )
        lasts = engine.arena.keys[slots, LAST].copy()
        since = before if self.eager or self.history_until is None else max(before, self.history_until)
        which, moments = self.between(times, begins, lasts, since, until)
        if since > before:
            told, earlier = self.of_the_stream(begins, lasts, before, min(until, since))
            which, moments = np.concatenate([told, which]), np.concatenate([earlier, moments])
            order = np.lexsort((moments, which))
            which, moments = which[order], moments[order]
        frontier.given = reached if frontier.given is None else max(frontier.given, reached)
        slots = slots[which]
        engine.refresh(np.unique(slots))
        results = self.at(slots, moments)
        some = np.flatnonzero(results.some)
        return self.boundary_rows(slots[some], moments[some], results.pick(some), batch)

    def between(self, times, begins, ends, lowest, until) -> tuple[np.ndarray, np.ndarray]:
        """(segment, boundary): for each segment [begins[j], ends[j]) of sorted times the boundaries from `lowest` up to but not
        including `until` whose windows hold one of them; each once, in order."""
        closed = self.spec.request.closed
        moments, which = moments_of(list(self.spec.ticks.values()), times, begins, ends, closed, lowest, until)
        return which, moments

    def of_the_stream(self, begins, ends, lowest, until) -> tuple[np.ndarray, np.ndarray]:
        """`between`, for the events among them that do not come from history."""
        arena = self.engine.arena
        loud = arena["quiet"] == 0
        before = np.concatenate([[0], np.cumsum(loud)])
        return self.between(arena["time"][loud], before[begins], before[ends], lowest, until)

    def untold(self, touched, which, moments) -> np.ndarray:
        """Which of these boundaries of touched keys have not been given, because only history was in them."""
        found = np.zeros(len(moments), bool)
        if self.history_until is None:
            return found
        early = np.flatnonzero(moments <= self.history_until)
        if len(early):
            keys = self.engine.arena.keys[touched]
            lowest, _ = limits(moments.dtype)
            until = _next(self.history_until)
            told = set(zip(*(part.tolist() for part in self.of_the_stream(keys[:, FIRST], keys[:, LAST], lowest, until))))
            found[early] = [place not in told for place in zip(which[early].tolist(), moments[early].tolist())]
        return found

    def at(self, slots, moments) -> Results:
        answered = None
        if len(self.spec.ticks) > 1:
            answered = {name: answers(ticks, moments) for name, ticks in self.spec.ticks.items()}
        return self.evaluate(slots, np.zeros(0, np.int64), moments, self.still, answered=answered)

    def boundary_rows(self, slots, moments, results: Results, batch: int) -> pa.Table:
        columns = dict(zip(self.spec.by, self.engine.map.columns(slots.tolist()), strict=True))
        columns[self.spec.time] = as_times(moments, self.spec)
        return self.rows(pa.table(columns), results, batch)

    def absorbed(self, meta):
        until = meta.get("clock") if meta.get("history") else meta.get("history_until")
        if until is None:
            return
        self.history_until = until if self.history_until is None else max(until, self.history_until)
        if self.eager:
            given = self.engine.frontier.given
            self.engine.frontier.given = until if given is None else max(given, until)

    def stored(self):
        return {} if self.history_until is None else {"history_until": self.history_until}


class EndingRows(FinalEvents):
    """Windows that end with a row: given when the row is final and can no longer be followed."""

    def __init__(self, spec: StreamSpec, engine):
        super().__init__(spec, engine)
        self.name, self.window = next(iter(spec.ticks.items()))
        if self.window.kind == "session":
            self.behind = self.window.range

    def passed(self):
        slots, positions = super().passed()
        arena, window = self.engine.arena, self.window
        if window.kind == "punctuation":
            ends = arena[f"by:{window.column}"][positions] != 0
        elif window.kind == "rows":
            ranks = arena.keys[slots, RANK0] + positions - arena.keys[slots, START]
            ends = (ranks + 1) % window.slide == 0
        else:
            times = arena["time"]
            following = np.minimum(positions + 1, len(times) - 1)
            ends = (positions + 1 == arena.keys[slots, LAST]) | apart(times[positions], times[following], window.range)
        return slots[ends], positions[ends]

    def told(self, slots, positions):
        return slots, positions  # a row of history may end a window that holds an event of the stream

    def at_rows(self, slots, positions) -> Results:
        arena, request = self.engine.arena, self.spec.request
        closed = "right" if self.window.kind == "session" else request.closed
        moments = arena["time"][positions]
        found = self.evaluate(slots, positions, moments, closed=closed)
        if len(positions) and arena["quiet"][positions].any():
            los, his, _ = frames(self.window, self.name, arena, slots, positions, moments, closed, request.ties, None, {})
            loud = np.concatenate([[0], np.cumsum(arena["quiet"] == 0)])
            found.some &= (loud[his] > loud[los]) | (arena["quiet"][positions] == 0)
        return found

    def due(self, batch, counts):
        slots, positions = self.passed()
        if len(positions) == 0:
            return self.spec.no_results
        self.engine.refresh(np.unique(slots))
        results = self.at_rows(slots, positions)
        some = np.flatnonzero(results.some)
        return self.stored_rows(positions[some], results.pick(some), batch)


def for_slides(spec: StreamSpec, engine) -> Emission:
    """The mode of a spec with emit="slide"."""
    kinds = {ticks.kind for ticks in spec.ticks.values()}
    return Boundaries(spec, engine) if kinds <= BY_TIME else EndingRows(spec, engine)


def as_times(moments: np.ndarray, spec: StreamSpec) -> pa.Array:
    """Ticks as the time column's own type."""
    kind, clock = spec.schema.field(spec.time).type, spec.clock
    values = moments // clock.scale if clock.scale != 1 else moments
    if clock.kind != "instant":
        return pa.array(values).cast(kind)
    return pa.array(values).cast(pa.int32()).view(kind) if pa.types.is_date32(kind) else pa.array(values).view(kind)


def _next(t):
    """The next time."""
    return float(np.nextafter(t, np.inf)) if isinstance(t, float) else t + 1


# ---- compiled ------------------------------------------------------------------------------------------------------------


@entry
def first_reaching(keys, times, slots, since, begins):
    """The first event of each key at or after `since`."""
    for j in range(len(slots)):
        k = slots[j]
        begins[j] = lower_position(times, keys[k, FIRST], keys[k, LAST], since, False)
