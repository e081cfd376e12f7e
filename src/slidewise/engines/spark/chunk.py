"""A piece of one key's rows, and what its windows need of the rows before it.

    left rows | middle: one state | right rows | own rows          each a row of the sequence, the state for all of its rows

Every window of the piece begins in the left rows, or in the right or own ones; none begins in the middle. So the rows of the
middle need not be there: their total is, and is slid over as if it were one row. What belongs to left, middle and right is
decided by chunk_stream.py (pieces one after the other, in one task) and giant_zones.py (pieces in many tasks); it only has to
be enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from slidewise.algorithms import algorithm
from slidewise.engines.local.keys import times_of
from slidewise.engines.local.order import Ordered
from slidewise.engines.local.run import output_columns, step_results
from slidewise.engines.local.targets import Frames, Targets, leave_out, window_column
from slidewise.engines.local.threads import Workers
from slidewise.engines.spark.chunk_sweeps import sweep
from slidewise.engines.spark.chunk_totals import Rows, Totals, steps_of
from slidewise.errors import UnsupportedError
from slidewise.planner.plan import Plan, Step
from slidewise.planner.request import Request
from slidewise.windows.boundaries import answers, ending_rows, ending_there, moments_by_key
from slidewise.windows.bounds import frames, frames_as_of, index_dtype, seen_ends, sides
from slidewise.windows.clock import Ticks
from slidewise.windows.positions import row_frames


def grows(ticks: Ticks, request: Request) -> bool:
    """Whether the window begins at some row and only grows until the next begins: a piece needs nothing but its total so far.

    (The tumbling windows that emit="slide" gives end at boundaries, and are windows of time like others.)"""
    return ticks.kind in ("session", "punctuation", "lifetime") or (ticks.kind == "tumbling" and request.emit != "slide")



@dataclass(frozen=True)
class Work:
    """What is to be done, in any piece of any key."""

    plan: Plan
    steps: tuple[Step, ...]
    types: pa.Schema
    """The columns the plan needs."""

    @staticmethod
    def of(plan: Plan, types: pa.Schema) -> Work:
        return Work(plan, steps_of(plan), types)

    @property
    def request(self) -> Request:
        return self.plan.request

    @property
    def ticks(self) -> dict[str, Ticks]:
        return self.plan.ticks

    def times(self, table: pa.Table) -> np.ndarray:
        return times_of(table.column(self.request.time), self.plan.clock, self.request.time)

    def nothing(self) -> pa.Table:
        return self.types.empty_table()


@dataclass
class Middle:
    """Rows that are in every window of a piece, as states."""

    rows: int
    last_time: Any
    totals: list[Totals]
    """One state for each step."""
    marked: bool = False
    """punctuation: whether the last of these rows is marked."""
    extremes: tuple | None = None
    """delta: the least and the greatest value of the column."""


@dataclass
class Before:
    """What one window of a piece needs of the rows before it."""

    left: pa.Table | None = None
    middle: Middle | None = None
    right: pa.Table | None = None


@dataclass
class Piece:
    """Neighbouring rows of one key, sorted by (time, order). Rows of one time are never in two pieces."""

    table: pa.Table
    times: np.ndarray
    position: int
    """How many rows of the key come before."""
    begins: Any = None
    """emit="slide": the boundaries of this piece are those from here ..."""
    ends: Any = None
    """... up to, but not including, here. None: all of them."""
    next_time: Any = None
    """The time of the key's next row; None: this piece is the last."""

    @property
    def last(self) -> bool:
        return self.next_time is None


class Sequence:
    """The rows that one window of a piece sees."""

    def __init__(self, work: Work, ticks: Ticks, piece: Piece, before: Before):
        self.ticks, self.piece, self.middle = ticks, piece, before.middle
        blank = 0 if before.middle is None else 2 if ticks.kind == "delta" else 1
        left = before.left if before.left is not None else work.nothing()
        right = before.right if before.right is not None else work.nothing()
        hole = pa.table({f.name: pa.nulls(blank, f.type) for f in work.types})
        self.table = pa.concat_tables([left, hole, right, piece.table]) if work.types.names else piece.table
        self.at, self.blank = (len(left), blank) if blank else (-1, 0)
        self.own = len(left) + blank + len(right)
        self.right = len(right)
        stand = np.full(blank, 0 if before.middle is None else before.middle.last_time, piece.times.dtype)
        self.times = np.concatenate([work.times(left), stand, work.times(right), piece.times])
        self.offsets = np.array([0, len(self.times)], np.int64)
        self._workers = Workers(1)

    def column(self):
        """(values, valid) of the column that a delta or punctuation window goes by."""
        found = window_column(self.ticks, self.table, Ordered(None, self.times, self.offsets, self._workers))
        if found is None or not self.blank:
            return found
        values, valid = found
        values = values.copy()
        if self.ticks.kind == "punctuation":
            values[self.at] = self.middle.marked
            return values, valid
        valid = valid.copy()
        if self.middle.extremes is not None:
            valid[self.at : self.at + 2] = 1
            values[self.at : self.at + 2] = self.middle.extremes
        return values, valid

    def place(self, relative: np.ndarray) -> np.ndarray:
        """Places of rows that are counted from the first own one on (those before it are negative)."""
        found = relative + self.own
        if self.blank:
            between = self.middle.rows - self.blank
            found = np.where(relative < -self.right, found + between, found)
        return np.clip(found, 0, len(self.times)).astype(index_dtype(len(self.times)))

    def relative(self, place: np.ndarray) -> np.ndarray:
        found = place.astype(np.int64) - self.own
        return np.where(place <= self.at, found - (self.middle.rows - self.blank), found) if self.blank else found

    def rows(self, number: int, step: Step) -> Rows:
        """The columns of a step of the work."""
        return Rows(step, self.table, self.at, None if self.middle is None else self.middle.totals[number], self.blank)


# ---- frames ----------------------------------------------------------------------------------------------------------------


def chosen(found: Frames, targets: np.ndarray) -> Frames:
    behind = None if found.behind is None else (found.behind[0][targets], found.behind[1][targets])
    return Frames(found.starts[targets], found.ends[targets], behind)


def frames_of_rows(request: Request, sequence: Sequence, closed: str) -> Frames:
    """The frames of the piece's own rows."""
    ticks, piece = sequence.ticks, sequence.piece
    if ticks.kind == "rows":
        n = len(piece.times)
        starts, ends = np.empty(n, np.int64), np.empty(n, np.int64)
        key = np.array([-piece.position, n], np.int64)
        row_frames(key, ticks.range, ticks.slide, ticks.offset, *sides(closed), starts, ends, 0, n)
        found = _without_self(starts, ends) if request.exclude_current else Frames(starts, ends)
        behind = None if found.behind is None else (sequence.place(found.behind[0]), sequence.place(found.behind[1]))
        return Frames(sequence.place(found.starts), sequence.place(found.ends), behind)
    starts, ends = frames(ticks, sequence.times, sequence.offsets, closed=closed, ties=request.ties, column=sequence.column())
    found = _without_self(starts, ends) if request.exclude_current else Frames(starts, ends)
    return chosen(found, np.arange(sequence.own, len(starts)))


def frames_of_moments(sequence: Sequence, ticks: Ticks, moments: np.ndarray, closed: str) -> Frames:
    """The frames of windows that end at these moments, which are sorted."""
    asked = np.array([0, len(moments)], np.int64)
    if ticks.kind != "rows":
        return Frames(*frames_as_of(ticks, moments, asked, sequence.times, sequence.offsets, closed=closed,
                                    column=sequence.column()))
    seen = seen_ends(moments, asked, sequence.times, sequence.offsets, closed=closed)
    first = -sequence.piece.position
    ends = sequence.relative(seen.astype(np.int64))
    if ticks.slide:
        ends = first + (ends - first) // ticks.slide * ticks.slide
    ends = np.maximum(first, ends - ticks.offset)
    return Frames(sequence.place(np.maximum(first, ends - ticks.range)), sequence.place(ends))


def _without_self(starts: np.ndarray, ends: np.ndarray) -> Frames:
    parts = [np.empty_like(starts) for _ in range(4)]
    two = leave_out(starts, ends, *parts)
    return Frames(parts[0], parts[1], (parts[2], parts[3]) if two else None)


# ---- results ---------------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """What a piece gives: which of its rows the results are for (None: all), or which moments, and the result columns."""

    rows: np.ndarray | None
    moments: np.ndarray | None
    columns: list[tuple[str, pa.Array]]


def answer(work: Work, piece: Piece, before: dict[str, Before]) -> Answer:
    """The results of a piece, for the request's `emit`. before: what each window needs of the rows before."""
    request = work.request
    sequences = {name: Sequence(work, ticks, piece, before[name]) for name, ticks in work.ticks.items()}
    if request.emit == "slide":
        return _at_boundaries(work, piece, sequences)
    found = {name: frames_of_rows(request, sequence, request.closed) for name, sequence in sequences.items()}
    rows = None
    if request.emit == "latest":
        rows = np.array([len(piece.times) - 1] if piece.last else [], np.int64)
        found = {name: chosen(part, rows) for name, part in found.items()}
    return Answer(rows, None, _columns(work, sequences, found))


def answer_moments(work: Work, piece: Piece, before: dict[str, Before], moments: np.ndarray) -> Answer:
    """as_of: the results at these moments, which are sorted."""
    sequences = {name: Sequence(work, ticks, piece, before[name]) for name, ticks in work.ticks.items()}
    found = {
        name: frames_of_moments(sequence, sequence.ticks, moments, work.request.closed) for name, sequence in sequences.items()
    }
    return Answer(None, moments, _columns(work, sequences, found))


def _at_boundaries(work: Work, piece: Piece, sequences: dict[str, Sequence]) -> Answer:
    """As the local engine's `for_boundaries`, for the boundaries that belong to this piece."""
    closed, first = work.request.closed, next(iter(sequences.values()))
    if first.ticks.kind in ("time", "tumbling"):
        moments = np.unique(np.concatenate([
            _own(piece, moments_by_key([s.ticks], s.times, s.offsets, closed)[0]) for s in sequences.values()
        ]))
        found = {}
        for name, sequence in sequences.items():
            ticks = sequence.ticks
            found[name] = frames_of_moments(sequence, ending_there(ticks), moments, closed)
            found[name].answered = answers(ticks, moments) if len(sequences) > 1 else None
        return Answer(None, moments, _columns(work, sequences, found))
    rows = _ending_rows(first, piece)
    whole = "right" if first.ticks.kind == "session" else closed
    found = {name: chosen(frames_of_rows(work.request, s, whole), rows) for name, s in sequences.items()}
    some = np.zeros(len(rows), bool)
    for part in found.values():
        some |= part.ends > part.starts
    found = {name: chosen(part, np.flatnonzero(some)) for name, part in found.items()}
    return Answer(rows[some], None, _columns(work, sequences, found))


def _own(piece: Piece, moments: np.ndarray) -> np.ndarray:
    kept = np.ones(len(moments), bool)
    if piece.begins is not None:
        kept &= moments >= piece.begins
    if piece.ends is not None:
        kept &= moments < piece.ends
    return moments[kept]


def _ending_rows(sequence: Sequence, piece: Piece) -> np.ndarray:
    """Own rows at which windows end."""
    ticks, n = sequence.ticks, len(piece.times)
    if ticks.kind == "rows":
        return np.flatnonzero((piece.position + np.arange(n) + 1) % ticks.slide == 0)
    marks = sequence.column()[0][sequence.own :] if ticks.kind == "punctuation" else None
    times = piece.times if piece.last else np.append(piece.times, piece.times.dtype.type(piece.next_time))
    ending = ending_rows(ticks, times, np.array([0, len(times)], np.int64), marks)
    return ending[ending < n]


def _columns(work: Work, sequences: dict[str, Sequence], found: dict[str, Frames]) -> list[tuple[str, pa.Array]]:
    results: dict[tuple[str, str], pa.Array] = {}
    for number, step in enumerate(work.steps):
        for name, sequence in sequences.items():
            rows, frame = sequence.rows(number, step), found[name]
            alg = algorithm(step.algorithm)
            if alg.info.order == "any":
                raise UnsupportedError(f"{alg.name} is a tree, and long keys go in pieces over many tasks; take \"auto\" or "
                                       "daba_lite")
            out, ok = sweep(alg, step.typed, rows.X, rows.mask, rows.state, rows.at, frame.starts,
                            frame.ends, frame.behind)
            if frame.answered is not None:
                ok = ok & frame.answered
            for view, array in step_results(step, cast(Any, rows), _AS_THEY_ARE, out, ok, frame.answered):
                results[view.aggregate, name] = array
    return list(output_columns(work.request, results))


_AS_THEY_ARE = Targets(pa.table({}), {}, None)
"""Targets in the order of their results."""
