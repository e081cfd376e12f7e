"""What comes out, and when: a row for each event, for each key's youngest event, or for each boundary (slides.py).

Eager: results of new events at once, and of earlier ones again where they changed. Final: each once, when the watermark has
passed it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import entry
from slidewise.live.arena import FIRST, LAST, ranges
from slidewise.live.frames import frames
from slidewise.live.intake import Intake
from slidewise.live.outputs import Answers, differ
from slidewise.live.partials import NO_SKIPS
from slidewise.live.spec import COMPLETE, LATE_COLUMN, StreamSpec
from slidewise.planner.request import Output
from slidewise.windows.clock import HIGHEST, LOWEST
from slidewise.windows.positions import lower_position

_NO_POSITIONS = np.zeros(0, np.int64)


@dataclass
class Results:
    """The results of a number of queries, by (aggregate, window); whether every window was known whole, and whether any held
    an event."""

    answers: dict[tuple[str, str], Answers]
    whole: np.ndarray
    some: np.ndarray

    def pick(self, which) -> "Results":
        answers = {place: found.pick(which) for place, found in self.answers.items()}
        return Results(answers, self.whole[which], self.some[which])


class Emission:
    """What the modes share: evaluating queries and building rows."""

    def __init__(self, spec: StreamSpec, engine):
        self.spec, self.engine = spec, engine

    # ---- to be said by each mode ------------------------------------------------------------------------------------------

    def step(self, accepted: pa.Table, times, intake: Intake, batch: int, counts: dict) -> pa.Table:
        """Merge the accepted events, and give the rows that come out."""
        raise NotImplementedError

    def due(self, batch: int, counts: dict) -> pa.Table:
        """Rows that come out because time went on."""
        return self.spec.no_results

    def absorbed(self, meta: dict) -> None:
        """A log entry was taken in."""

    def stored(self) -> dict:
        """What must be stored beside the frontier."""
        return {}

    def dropped(self, slots) -> None:
        """These keys are gone."""

    def settle(self) -> None:
        """All events are to be in the arena now."""

    def swept(self) -> None:
        """Events were forgotten."""

    # ---- evaluating ----------------------------------------------------------------------------------------------------------

    def evaluate(self, slots, positions, moments, ticks=None, closed=None, answered=None) -> Results:
        """Results of queries: rows at `positions`, or the moments where there are no positions.

        ticks, closed: other windows than the spec's; answered: for each window a byte for each query, whether it has an answer.
        """
        engine, request = self.engine, self.spec.request
        known = engine.frontier.known_from if self.spec.complete else None
        known = None if known == LOWEST else known
        whole, some = np.ones(len(slots), bool), np.zeros(len(slots), bool)
        found: dict[tuple[str, str], Answers] = {}
        ends: dict[tuple, np.ndarray] = {}
        skips = positions if request.exclude_current else NO_SKIPS
        for name, window in (ticks or self.spec.ticks).items():
            los, his, short = frames(
                window,
                name,
                engine.arena,
                slots,
                positions,
                moments,
                closed or request.closed,
                request.ties,
                known,
                ends,
            )
            asked = None if answered is None else answered[name]
            whole &= (short == 0) if asked is None else (short == 0) | (asked == 0)
            some |= (his > los) if asked is None else (his > los) & (asked == 1)
            for partials in engine.partials:
                lifetime = window.kind == "lifetime"
                for aggregate, answers in partials.answer(slots, los, his, skips, lifetime, asked).items():
                    found[aggregate, name] = answers
        return Results(found, whole, some)

    def at_rows(self, slots, positions) -> Results:
        return self.evaluate(slots, positions, self.engine.arena["time"][positions])

    def changed(self, old: Results, new: Results) -> np.ndarray:
        """Which results differ."""
        found = old.whole != new.whole if self.spec.complete else np.zeros(len(old.whole), bool)
        for place, answers in old.answers.items():
            found |= differ(answers, new.answers[place], self.engine.lookup)
        return found

    # ---- rows ----------------------------------------------------------------------------------------------------------------

    def rows(self, riding: pa.Table, results: Results | None, batch: int, late: bool = False) -> pa.Table:
        """Output rows: riding columns (null where they were not stored), results (None: nulls), revision and flags."""
        schema, n = self.spec.output_schema, riding.num_rows
        columns = []
        for name in self.spec.riding_columns:
            there = riding.schema.get_field_index(name) >= 0
            columns.append(riding.column(name) if there else pa.nulls(n, schema.field(name).type))
        for output in self.spec.outputs:
            columns.append(
                pa.nulls(n, schema.field(output.column).type) if results is None else self.column(output, results)
            )
        columns.append(pa.repeat(pa.scalar(batch, pa.int64()), n))
        if LATE_COLUMN in schema.names[-2:]:
            columns.append(pa.repeat(pa.scalar(late), n))
        if schema.names[-1] == COMPLETE:
            columns.append(pa.nulls(n, pa.bool_()) if results is None else pa.array(results.whole))
        return pa.table(columns, schema=schema)

    def column(self, output: Output, results: Results) -> pa.Array:
        """One result column; the members of a struct are put together."""
        return self.spec.request.put_together(
            output.aggregate,
            lambda leaf: results.answers[leaf, output.window].arrow(self.engine.lookup),
            lambda parts: pa.StructArray.from_arrays(list(parts.values()), list(parts)),
        )

    def stored_rows(self, positions: np.ndarray, results: Results, batch: int) -> pa.Table:
        """Output rows of stored events."""
        numbers = self.engine.arena["number"][positions]
        order = np.argsort(numbers)  # rows lie in the order of their numbers
        return self.rows(self.engine.store.take(numbers[order]), results.pick(order), batch)

    # ---- corrections ---------------------------------------------------------------------------------------------------------

    def affected(self, intake: Intake) -> tuple[np.ndarray, np.ndarray]:
        """(touched key, position) of stored rows, given already, whose results the new events may change."""
        arena, spec = self.engine.arena, self.spec
        number = arena["time"].dtype.type
        rows = max((t.range + t.offset + 1 for t in spec.ticks.values() if t.kind == "rows"), default=0)
        to_end = any(
            t.kind in ("session", "delta", "punctuation", "lifetime") or (t.kind == "rows" and t.slide)
            for t in spec.ticks.values()
        )
        arguments = (
            arena.keys,
            arena["time"],
            arena["quiet"],
            intake.touched,
            intake.bounds,
            intake.times,
            intake.lows,
            intake.places,
            number(min(spec.reach, HIGHEST) if number is np.int64 else spec.reach),
            rows,
            to_end,
        )
        count = list_affected(*arguments, _NO_POSITIONS, _NO_POSITIONS)
        which, positions = np.empty(count, np.int64), np.empty(count, np.int64)
        if count:
            list_affected(*arguments, which, positions)
        return which, positions

    def out_of_order(self, intake: Intake) -> int:
        """New events that come before one their key has."""
        lasts = self.engine.arena.keys[intake.touched, LAST]
        return int((intake.places < np.repeat(lasts, np.diff(intake.bounds))).sum())

    def merge(self, accepted: pa.Table, intake: Intake) -> np.ndarray:
        written = self.engine._merge(accepted, intake)
        self.engine.refresh(intake.touched)
        return written


class EagerEvents(Emission):
    """A row for each new event, and again for each one that changed."""

    def step(self, accepted, times, intake, batch, counts):
        arena = self.engine.arena
        if len(intake.rows) == 0:
            return self.spec.no_results
        counts["corrected"] = self.out_of_order(intake)
        which, positions = self.affected(intake)
        firsts = arena.keys[intake.touched, FIRST].copy()
        if len(positions):
            self.engine.refresh(intake.touched)
            old = self.at_rows(intake.touched[which], positions)
        written = self.merge(accepted, intake)
        slots = np.repeat(intake.touched, np.diff(intake.bounds))
        if len(positions) == 0:
            new = self.at_rows(slots, written)
        else:
            moved = np.empty(len(positions), np.int64)
            where_moved(arena.keys, intake.touched, intake.bounds, intake.places, firsts, which, positions, moved)
            new = self.at_rows(np.concatenate([slots, intake.touched[which]]), np.concatenate([written, moved]))
        place = np.empty(len(intake.rows), np.int64)
        place[intake.rows] = np.arange(len(place))
        out = self.rows(accepted, new.pick(place), batch)
        if len(positions):
            again = new.pick(slice(len(place), None))
            differs = np.flatnonzero(self.changed(old, again))
            counts["touched"] = len(differs)
            if len(differs):
                out = pa.concat_tables([out, self.stored_rows(moved[differs], again.pick(differs), batch)])
        return out


class FinalEvents(Emission):
    """A row for each event, once the watermark has passed it."""

    behind: int | float = 0
    """How far the watermark must have passed it."""

    def step(self, accepted, times, intake, batch, counts):
        if len(intake.rows):
            counts["corrected"] = self.out_of_order(intake)
            self.engine._merge(accepted, intake)
        return self.due(batch, counts)

    def due(self, batch, counts):
        slots, positions = self.passed()
        if len(positions) == 0:
            return self.spec.no_results
        self.engine.refresh(np.unique(slots))
        return self.stored_rows(positions, self.at_rows(slots, positions), batch)

    def passed(self) -> tuple[np.ndarray, np.ndarray]:
        """(key, position) of rows that the watermark has passed since the last time; the frontier moves on."""
        engine = self.engine
        frontier, arena = engine.frontier, engine.arena
        lowest, highest = limits(arena["time"].dtype)
        before = lowest if frontier.given is None else frontier.given
        until = frontier.watermark
        if frontier.ended:
            until = highest
        elif until is not None:
            until -= self.behind
        if until is None or until <= before:
            return _NO_POSITIONS, _NO_POSITIONS
        slots = engine.map.slots()
        number = arena["time"].dtype.type
        starts, counts = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
        between(arena.keys, arena["time"], slots, number(before), number(until), frontier.ended, starts, counts)
        frontier.given = until
        return self.told(np.repeat(slots, counts), ranges(starts, counts))

    def told(self, slots, positions) -> tuple[np.ndarray, np.ndarray]:
        """Those of these rows that do not come from history."""
        which = np.flatnonzero(self.engine.arena["quiet"][positions] == 0)
        return slots[which], positions[which]


class EagerLatest(Emission):
    """A row for each key whose youngest event is new, or has another result than before."""

    def step(self, accepted, times, intake, batch, counts):
        arena, touched = self.engine.arena, intake.touched
        if len(intake.rows) == 0:
            return self.spec.no_results
        counts["corrected"] = self.out_of_order(intake)
        had = np.flatnonzero(arena.keys[touched, LAST] > arena.keys[touched, FIRST])
        youngest = arena.keys[touched[had], LAST] - 1
        numbers = np.full(len(touched), -1, np.int64)
        numbers[had] = np.where(heard(arena, touched[had], youngest), arena["number"][youngest], -1)
        if len(had):
            self.engine.refresh(touched[had])
            old = self.at_rows(touched[had], youngest)
        self.merge(accepted, intake)
        positions = arena.keys[touched, LAST] - 1
        new = self.at_rows(touched, positions)
        give = numbers != arena["number"][positions]
        if len(had):
            same = self.changed(old, new.pick(had)) & ~give[had]
            counts["touched"] = int(same.sum())
            give[had] |= same
        chosen = np.flatnonzero(give)
        return self.stored_rows(positions[chosen], new.pick(chosen), batch)


class FinalLatest(FinalEvents):
    """A row for each key with events that the watermark has passed: the youngest of them, of history too."""

    def passed(self):
        slots, positions = super().passed()
        last = np.ones(len(slots), bool)
        last[:-1] = slots[1:] != slots[:-1]
        slots, positions = slots[last], positions[last]
        which = np.flatnonzero(heard(self.engine.arena, slots, positions))
        return slots[which], positions[which]

    def told(self, slots, positions):
        return slots, positions


def heard(arena, slots, positions) -> np.ndarray:
    """Which of these keys have, up to these positions, an event that is not of history."""
    found = arena["quiet"][positions] == 0
    for i in np.flatnonzero(~found):
        found[i] = not arena["quiet"][arena.keys[slots[i], FIRST] : positions[i]].all()
    return found


def for_spec(spec: StreamSpec, engine) -> Emission:
    """The mode that a spec asks for."""
    if spec.emit == "slide":
        from slidewise.live.slides import for_slides

        return for_slides(spec, engine)
    eager = spec.results == "eager"
    if spec.emit == "event":
        return EagerEvents(spec, engine) if eager else FinalEvents(spec, engine)
    return EagerLatest(spec, engine) if eager else FinalLatest(spec, engine)


def limits(dtype):
    """The lowest and the highest time."""
    return (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)


# ---- compiled ------------------------------------------------------------------------------------------------------------


@entry
def list_affected(keys, times, quiet, touched, bounds, new_times, lows, places, reach, rows, to_end, which, positions):
    """Stored rows whose windows a new event may have entered, each once; only counted where there is no room."""
    count = 0
    for j in range(len(touched)):
        k = touched[j]
        last = keys[k, LAST]
        done = keys[k, FIRST]
        for i in range(bounds[j], bounds[j + 1]):
            begin = max(lows[i], done)
            if begin >= last:
                break
            end = last
            if not to_end:
                until = new_times[i] + reach
                end = last if until < new_times[i] else lower_position(times, begin, last, until, True)
                end = max(end, min(last, places[i] + rows))
            for p in range(begin, end):
                if quiet[p]:
                    continue
                if len(positions):
                    which[count] = j
                    positions[count] = p
                count += 1
            done = max(done, end)
    return count


@entry
def where_moved(keys, touched, bounds, places, firsts, which, positions, moved):
    """Where rows that lay at these positions lie after the merge."""
    i = 0
    for m in range(len(positions)):
        j = which[m]
        p = positions[m]
        if m == 0 or which[m - 1] != j:
            i = bounds[j]
        while i < bounds[j + 1] and places[i] <= p:
            i += 1
        moved[m] = keys[touched[j], FIRST] + (p - firsts[j]) + (i - bounds[j])


@entry
def between(keys, times, slots, before, until, to_end, starts, counts):
    """The rows of each key with before <= time < until."""
    for j in range(len(slots)):
        k = slots[j]
        first, last = keys[k, FIRST], keys[k, LAST]
        counts[j] = 0
        starts[j] = last
        if first == last or times[last - 1] < before:
            continue
        starts[j] = lower_position(times, first, last, before, False)
        counts[j] = (last if to_end else lower_position(times, starts[j], last, until, False)) - starts[j]
