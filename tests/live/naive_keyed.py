"""The oracle of the keyed engine: keeps every event, recomputes everything from the definitions, forgets nothing.

Plain Python on lists of rows. Windows are written down once more, from their words and not from the engine's code. It takes the
same spec, and after every push says which rows must come out, event by event.
"""

from dataclasses import dataclass

import numpy as np

from slidewise.algebra.operator import Bound


@dataclass
class Event:
    row: dict
    """Columns by name, times in ticks."""
    uid: int
    """Its number in the order of arrival: how the test knows it again."""


def last_multiple(t, slide, origin, before=False):
    b = origin + (t - origin) // slide * slide
    return b - slide if before and b == t else b


class NaiveKeyed:
    def __init__(self, spec):
        self.spec = spec
        self.events: dict[tuple, list[Event]] = {}
        self.given: dict[int, tuple] = {}
        self.ids: dict = {}
        self.watermark = None
        self.final_until = None
        self.ended = False
        self.arrived = 0
        self.all_rows: dict[int, dict] = {}

    # ---- windows -----------------------------------------------------------------------------------------------------

    def seen(self, key, i, moved=None) -> list[int]:
        """Rows up to the moment of row i, in order."""
        request, events = self.spec.request, self.events[key]
        times = [e.row[request.time] for e in events]
        right = request.closed in ("right", "both")
        if moved is None and request.ties == "arrival" and right:
            return list(range(i + 1 if right else i))
        moment = times[i] if moved is None else moved
        return [j for j, t in enumerate(times) if t < moment or (right and t == moment)]

    def frame(self, key, i, window) -> list[int]:
        request, events = self.spec.request, self.events[key]
        times = [e.row[request.time] for e in events]
        left, right = request.closed in ("left", "both"), request.closed in ("right", "both")
        t = times[i]
        if window.kind == "rows":
            last = i
            if window.slide:
                last = (i + 1) // window.slide * window.slide - 1
            last -= window.offset
            end = last + 1 if right else last
            start = last - window.range if left else last - window.range + 1
            return [j for j in range(len(events)) if start <= j < end]
        if window.kind == "time":
            moved = None
            moment = last_multiple(t, window.slide, window.origin) if window.slide else t
            if window.slide or window.offset:
                moved = moment - window.offset
            start = moment - window.offset - window.range
            return [j for j in self.seen(key, i, moved) if times[j] > start or (left and times[j] == start)]
        if window.kind == "tumbling":
            edge = last_multiple(t, window.slide, window.origin, before=not left)
            return [j for j in self.seen(key, i) if times[j] > edge or (left and times[j] == edge)]
        if window.kind == "lifetime":
            return self.seen(key, i)
        if window.kind == "session":
            seen = self.seen(key, i)
            if not seen or t - times[seen[-1]] > window.range:
                return []
            start = seen[-1]
            while start > 0 and times[start] - times[start - 1] <= window.range:
                start -= 1
            return list(range(start, seen[-1] + 1))
        end = i + 1 if right else i  # delta and punctuation go by position
        if end == 0:
            return []
        column = [e.row[window.column] for e in events]
        start = end - 1
        if window.kind == "punctuation":
            while start > 0 and not (column[start] if left else column[start - 1]):
                start -= 1
            return list(range(start, end))
        while start > 0:
            values = [v for v in column[start - 1 : end] if v is not None]
            if values and max(values) - min(values) > window.range:
                break
            start -= 1
        return list(range(start, end))

    # ---- aggregates --------------------------------------------------------------------------------------------------

    def fold(self, bound: Bound, rows: list[dict]):
        op = bound.operator
        if bound.where is not None:
            rows = [row for row in rows if row[bound.where]]
        looked_at = [
            c for k, c in enumerate(bound.columns) if k not in op.carried or len(op.carried) == len(bound.columns)
        ]
        rows = [row for row in rows if all(row[c] is not None for c in looked_at)]
        kinds = []
        for column in bound.columns:
            kind = self.spec.schema.field(column).type
            kinds.append(np.dtype(kind.to_pandas_dtype()) if str(kind) in ("int64", "double", "bool") else object)
        op = op.resolved(tuple(kinds))
        if not rows:
            return op.empty
        state = op.lift(*(rows[0][c] for c in bound.columns))
        for row in rows[1:]:
            state = op.combine(state, op.lift(*(row[c] for c in bound.columns)))
        return op.lower(state) if op.defined is None or op.defined(state) else None

    def results(self, key, i) -> tuple:
        found = []
        for output in self.spec.outputs:
            chosen = self.frame(key, i, self.spec.ticks[output.window])
            if self.spec.request.exclude_current:
                chosen = [j for j in chosen if j != i]
            rows = [self.events[key][j].row for j in chosen]
            found.append(plain(self.fold(self.spec.request.aggs[output.aggregate], rows)))
        return tuple(found)

    # ---- the stream --------------------------------------------------------------------------------------------------

    def sort_key(self, event: Event):
        parts = [event.row[self.spec.time]]
        for name in self.spec.tie_columns:
            value = event.row[name]
            parts += [value is not None, value if value is not None else 0]
        return tuple(parts)

    def key_of(self, row: dict) -> tuple:
        return tuple(row[name] for name in self.spec.by)

    def push(self, rows: list[dict], watermark=None) -> dict:
        """What must come of a batch: {"new": {uid: results}, "again": {uid: results}, "side": uids, ...}."""
        spec = self.spec
        batch = [Event(row, self.arrived + n) for n, row in enumerate(rows)]
        self.arrived += len(rows)
        self.all_rows.update({event.uid: event.row for event in batch})
        if watermark is not None and (self.watermark is None or watermark > self.watermark):
            self.watermark = watermark
        out = {"new": {}, "again": {}, "side": [], "dropped": [], "double": [], "late": 0}
        taken, wm = [], self.watermark
        limit = None if wm is None else wm - spec.keep if spec.late == "correct" else wm
        apart = lambda event: self.ended or (limit is not None and event.row[spec.time] < limit)
        # An event that is not taken in is a double of one that is, also of the same batch.
        for event in sorted(sorted(batch, key=self.sort_key), key=apart):
            t = event.row[spec.time]
            identity = (self.key_of(event.row), *(event.row[name] for name in spec.id)) if spec.id else None
            forgotten = None if wm is None else wm - spec.keep - spec.reach
            if identity in self.ids and (forgotten is None or self.ids[identity] >= forgotten):
                out["double"].append(event.uid)
                continue
            out["late"] += self.ended or (wm is not None and t < wm)
            if apart(event):
                out["dropped" if spec.late == "drop" else "side"].append(event.uid)
            else:
                if identity is not None:
                    self.ids[identity] = t
                taken.append(event)
        for event in taken:
            self.events.setdefault(self.key_of(event.row), []).append(event)
        for key in self.events:
            self.events[key].sort(key=self.sort_key)
        self._results(out)
        return out

    def advance(self, watermark=None, final=False) -> dict:
        if watermark is not None and (self.watermark is None or watermark > self.watermark):
            self.watermark = watermark
        self.ended |= final
        out = {"new": {}, "again": {}, "side": [], "dropped": [], "double": []}
        self._results(out)
        return out

    def _results(self, out: dict) -> None:
        for key, events in self.events.items():
            for i, event in enumerate(events):
                if self.spec.results == "final":
                    passed = self.ended or (self.watermark is not None and event.row[self.spec.time] < self.watermark)
                    if not passed or event.uid in self.given:
                        continue
                results = self.results(key, i)
                if event.uid not in self.given:
                    out["new"][event.uid] = results
                elif self.given[event.uid] != results:
                    out["again"][event.uid] = results
                self.given[event.uid] = results


def plain(value):
    """Results as plain Python values, lists for what is listed."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, np.ndarray)):
        return [plain(v) for v in value]
    return value


class NaiveLatest(NaiveKeyed):
    """emit="latest": results by key, at its youngest event (final: the youngest that the watermark has passed)."""

    def _results(self, out: dict) -> None:
        for key, events in self.events.items():
            which = range(len(events))
            if self.spec.results == "final" and not self.ended:
                which = [
                    i for i in which if self.watermark is not None and events[i].row[self.spec.time] < self.watermark
                ]
            if not which:
                continue
            i = which[-1]
            found = (events[i].uid, self.results(key, i))
            if self.given.get(key, (None,))[0] != found[0]:
                out["new"][key] = (events[i].row[self.spec.time], found[1])
            elif self.given[key] != found and self.spec.results == "eager":
                out["again"][key] = (events[i].row[self.spec.time], found[1])
            self.given[key] = found


class NaiveSlides(NaiveKeyed):
    """emit="slide": results by (key, boundary), for every boundary whose window is not empty and that has been reached."""

    def at(self, key, window, b) -> list[int]:
        closed = self.spec.request.closed
        left, right = closed in ("left", "both"), closed in ("right", "both")
        end, start = b - window.offset, b - window.offset - window.range
        return [
            j
            for j, e in enumerate(self.events[key])
            if (start < (t := e.row[self.spec.time]) or (left and t == start)) and (t < end or (right and t == end))
        ]

    def reached(self, b) -> bool:
        if self.ended:
            return True
        if self.spec.results == "final":
            return self.watermark is not None and b < self.watermark
        seen = [e.row[self.spec.time] for events in self.events.values() for e in events]
        return b <= max([*seen, *([] if self.watermark is None else [self.watermark])])

    def _results(self, out: dict) -> None:
        windows = self.spec.ticks
        for key, events in self.events.items():
            times = [e.row[self.spec.time] for e in events]
            longest = max(w.range + w.offset + w.slide for w in windows.values())
            for b in range(min(times) - longest, max(times) + longest + 1):
                own = {name: (b - w.origin) % w.slide == 0 for name, w in windows.items()}
                frames = {name: self.at(key, w, b) for name, w in windows.items() if own[name]}
                if not any(frames.values()) or not self.reached(b):
                    continue
                results = tuple(
                    plain(self.fold(self.spec.request.aggs[o.aggregate], [events[j].row for j in frames[o.window]]))
                    if own[o.window]
                    else None
                    for o in self.spec.outputs
                )
                if (key, b) not in self.given:
                    out["new"][key, b] = results
                elif self.given[key, b] != results and self.spec.results == "eager":
                    out["again"][key, b] = results
                self.given[key, b] = results
