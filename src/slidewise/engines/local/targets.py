"""What the results are for: each row, each key's youngest row, each boundary, or each query; and the frames of each.

A target has a place in sorted order. `restore` brings results back to the order of the table they are added to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slidewise.algebra.cache import entry
from slidewise.engines.local.columns import one_array, truth_bytes, valid_bytes
from slidewise.engines.local.order import NotAsAssumed, Ordered
from slidewise.errors import InputError
from slidewise.planner.inputs import plain
from slidewise.planner.plan import Plan
from slidewise.windows.boundaries import answers, ending_rows, ending_there, moments_by_key
from slidewise.windows.bounds import end_rule, frames, frames_as_of, index_dtype, on_demand
from slidewise.windows.clock import DAY_NS, Ticks
from slidewise.windows.deltas import delta_numbers
from slidewise.windows.positions import without_ties


@dataclass
class Frames:
    """The frames of one window, for all targets."""

    starts: np.ndarray
    ends: np.ndarray
    behind: tuple[np.ndarray, np.ndarray] | None = None
    """exclude_current among peers: the frames behind the row that is left out; `starts` and `ends` are those before it."""
    answered: np.ndarray | None = None
    """A byte for each target: whether this window has an answer there at all."""


class Passing:
    """Frames of which but one pass makes use: found piece by piece while it runs, so that they never leave the cache; found
    all at once as soon as somebody asks for `starts` or `ends`. check: of rows whose order is only assumed."""

    behind = answered = None

    def __init__(self, fill, ordered: Ordered):
        self.fill, self.check, self.rows = fill, ordered.check, len(ordered.times)
        self._run = ordered.workers.spread
        self.kind = index_dtype(self.rows)

    @cached_property
    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        if self.check is not None:
            raise NotAsAssumed
        starts, ends = np.empty(self.rows, self.kind), np.empty(self.rows, self.kind)
        self._run(lambda lo, hi: self.fill(lo, hi, starts[lo:hi], ends[lo:hi]), self.rows)
        return starts, ends

    @property
    def starts(self) -> np.ndarray:
        return self._all[0]

    @property
    def ends(self) -> np.ndarray:
        return self._all[1]


@dataclass
class Targets:
    table: pa.Table
    """What the results are added to."""
    frames: Mapping[str, Frames | Passing]
    offsets: np.ndarray | None
    """Where each key's targets begin, if known."""
    ordered: Ordered | None = None
    """How to bring results back to the table's order ..."""
    rows: np.ndarray | None = None
    """... or: the target of each of its rows."""

    def restored(self, values, width: int | None = None):
        """Results by target -> by row of the table; width: numbers a result."""
        index = self.rows if self.ordered is None else self.ordered.place
        if index is None:
            return values
        if isinstance(values, list):
            return [values[i] for i in index.tolist()]
        if width is not None:
            return values.reshape(-1, width)[index].reshape(-1)
        return values[index] if self.ordered is None else self.ordered.restored(values)


def for_rows(plan: Plan, table: pa.Table, ordered: Ordered) -> Targets:
    """emit="event": a result for each row."""
    once = len(plan.steps) == 1 and not plan.request.exclude_current
    return Targets(table, _row_frames(plan, table, ordered, once=once), ordered.offsets, ordered)


def for_youngest(plan: Plan, table: pa.Table, ordered: Ordered) -> Targets:
    """emit="latest": a result for each key, at its youngest row; keys in the order of their first row."""
    places = (ordered.offsets[1:] - 1)[np.diff(ordered.offsets) > 0]
    found = _pick(_row_frames(plan, table, ordered), places)
    return _listed(plan, table, ordered, places, None, found)


def for_boundaries(plan: Plan, table: pa.Table, ordered: Ordered) -> Targets:
    """emit="slide": a result for each key and boundary with a window that is not empty."""
    request = plan.request
    first = next(iter(plan.ticks.values()))
    if first.kind in ("time", "tumbling"):
        windows = list(plan.ticks.values())
        moments, moment_offsets = moments_by_key(windows, ordered.times, ordered.offsets, request.closed)
        found = {}
        for name, ticks in plan.ticks.items():
            starts, ends = frames_as_of(
                ending_there(ticks),
                moments,
                moment_offsets,
                ordered.times,
                ordered.offsets,
                closed=request.closed,
                run=ordered.workers.spread,
            )
            found[name] = Frames(starts, ends, answered=answers(ticks, moments) if len(plan.ticks) > 1 else None)
        keys = np.repeat(np.arange(len(moment_offsets) - 1), np.diff(moment_offsets))
        return _listed(plan, table, ordered, ordered.offsets[keys], moments, found)
    marks = None
    if first.kind == "punctuation":
        marks = window_column(first, table, ordered)[0]
    places = ending_rows(first, ordered.times, ordered.offsets, marks)
    whole = "right" if first.kind == "session" else request.closed
    found = _pick(_row_frames(plan, table, ordered, closed=whole), places)
    some = np.zeros(len(places), bool)
    for window in found.values():
        some |= window.ends > window.starts
    if not some.all():
        kept = np.flatnonzero(some)
        found, places = _pick(found, kept), places[kept]
    return _listed(plan, table, ordered, places, None, found)


def for_queries(plan: Plan, queries: pa.Table, asked: Ordered, table: pa.Table, ordered: Ordered) -> Targets:
    """as_of: a result for each query."""
    found, known = {}, {}
    for name, ticks in plan.ticks.items():
        rule = end_rule(ticks)
        rule = rule if rule[0] in ("moment", "rows") else ("moment", 0, 0, 0)
        column = window_column(ticks, table, ordered)
        starts, ends = frames_as_of(
            ticks,
            asked.times,
            asked.offsets,
            ordered.times,
            ordered.offsets,
            closed=plan.request.closed,
            column=column,
            ends=known.get(rule),
            run=ordered.workers.spread,
        )
        known[rule] = ends
        found[name] = Frames(starts, ends)
    return Targets(queries, found, asked.offsets, asked)


def _row_frames(
    plan: Plan, table: pa.Table, ordered: Ordered, closed: str | None = None, once: bool = False
) -> dict[str, Any]:
    """once: every window's frames are passed over but once."""
    request = plan.request
    found: dict[str, Any] = {}
    known: dict = {}
    distinct = ordered.distinct
    if distinct is None:
        distinct = bool(without_ties(ordered.times, ordered.offsets))
    for name, ticks in plan.ticks.items():
        if once:
            rules = dict(closed=request.closed, ties=request.ties, distinct=distinct)
            fill = on_demand(ticks, ordered.times, ordered.offsets, **rules)
            if fill is not None:
                found[name] = Passing(fill, ordered)
                continue
        if ordered.check is not None:
            raise NotAsAssumed
        rule = end_rule(ticks, request.ties, closed or request.closed)
        starts, ends = frames(
            ticks,
            ordered.times,
            ordered.offsets,
            closed=closed or request.closed,
            ties=request.ties,
            column=window_column(ticks, table, ordered),
            ends=known.get(rule),
            distinct=distinct,
            run=ordered.workers.spread,
        )
        known[rule] = ends
        found[name] = _without_self(starts, ends) if request.exclude_current else Frames(starts, ends)
    return found


def _without_self(starts: np.ndarray, ends: np.ndarray) -> Frames:
    before, behind = (np.empty_like(starts), np.empty_like(ends)), (np.empty_like(starts), np.empty_like(ends))
    two = leave_out(starts, ends, *before, *behind)
    return Frames(*before, behind if two else None)


def _pick(found: dict[str, Frames], places: np.ndarray) -> dict[str, Frames]:
    return {
        name: Frames(
            f.starts[places],
            f.ends[places],
            None if f.behind is None else (f.behind[0][places], f.behind[1][places]),
            None if f.answered is None else f.answered[places],
        )
        for name, f in found.items()
    }


def _listed(
    plan: Plan, table: pa.Table, ordered: Ordered, places: np.ndarray, moments, found: dict[str, Frames]
) -> Targets:
    """A new table of key and time, a row for each target: keys in the order of their first row, then by time."""
    n = len(ordered.times)
    rows = np.arange(n) if ordered.place is None else None
    if rows is None:
        rows = np.empty(n, np.int64)
        rows[ordered.place] = np.arange(n)
    begins = ordered.offsets[:-1][np.diff(ordered.offsets) > 0]
    first_row = np.minimum.reduceat(rows, begins) if len(begins) else np.zeros(0, np.int64)
    by_appearance = np.argsort(first_row[np.searchsorted(begins, places, side="right") - 1], kind="stable")
    at = rows[places[by_appearance]]
    columns = {name: table.column(name).take(pa.array(at)) for name in plan.request.by}
    kind = table.schema.field(plan.request.time).type
    if moments is None:
        columns[plan.request.time] = table.column(plan.request.time).take(pa.array(at))
    else:
        columns[plan.request.time] = as_times(moments[by_appearance], plan, plain(kind))
    return Targets(pa.table(columns), found, None, rows=by_appearance)


def as_times(moments: np.ndarray, plan: Plan, kind: pa.DataType) -> pa.Array:
    """Boundaries as the time column's own type, or a finer timestamp where a boundary falls between its ticks."""
    if plan.clock.kind != "instant":
        values = pa.array(moments)
        try:
            return values if pa.types.is_floating(kind) or pa.types.is_int64(kind) else values.cast(kind)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"a boundary of these windows does not fit the time column {plan.request.time!r}, {kind}: {error}; cast the column "
                "to int64 first"
            ) from None
    scale = plan.clock.scale
    whole = DAY_NS // plan.clock.tick_ns if pa.types.is_date64(kind) else scale  # date64 counts milliseconds, but means days
    if not any(t % whole for ticks in plan.ticks.values() for t in (ticks.slide, ticks.origin)):
        ticks = moments // scale
        return pa.array(ticks).cast(pa.int32()).view(kind) if pa.types.is_date32(kind) else pa.array(ticks).view(kind)
    unit = next(u for u, ns in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)) if plan.clock.tick_ns % ns == 0)
    ns = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    values = pa.array(moments * (plan.clock.tick_ns // ns))
    return values.view(pa.duration(unit) if pa.types.is_duration(kind) else pa.timestamp(unit, plan.clock.zone))


def window_column(ticks: Ticks, table: pa.Table, ordered: Ordered):
    """(values, valid) of the column a delta or punctuation window goes by, sorted."""
    if ticks.column is None:
        return None
    array = one_array(table.column(ticks.column))
    if ticks.kind == "punctuation":
        return ordered.sorted(truth_bytes(array, f"sw.punctuation({ticks.column!r})")), None
    valid = valid_bytes(array)
    return ordered.sorted(delta_numbers(array)), None if valid is None else ordered.sorted(valid)


@entry
def leave_out(starts, ends, starts1, ends1, starts2, ends2):
    """Each row's frame without the row: the part before it and the part behind it. Whether any part behind is not empty."""
    two = False
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        if start <= i and i < end:
            starts1[i] = start
            ends1[i] = i
            starts2[i] = i + 1
            ends2[i] = end
            two = two or end > i + 1
        else:
            starts1[i] = start
            ends1[i] = end
            starts2[i] = end
            ends2[i] = end
    return two
