"""One key that is longer than what a task wants to hold: its rows come piece by piece, in order, and so do the results.

Between two pieces are kept: the rows that a later window can still reach (needed columns only), and for windows that only grow one
state for each aggregate. Memory is that of a piece and of the longest sliding window, whatever the length of the key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slidewise.engines.spark.chunk import Answer, Before, Middle, Piece, Sequence, Work, answer, answer_moments, grows
from slidewise.windows.bounds import frames, sides
from slidewise.windows.clock import DAY_NS, Ticks


class LongKey:
    """The rows of one key so far, as far as they still matter."""

    def __init__(self, work: Work):
        self.work = work
        self.position = 0
        self.tail = work.nothing()
        self.open: dict[str, Middle | None] = dict.fromkeys(work.ticks)
        self.seen_until: Any = None

    def push(self, table: pa.Table, next_time: Any, moments: np.ndarray | None = None) -> Answer:
        """The next rows, sorted, and the time of the row that follows them (None: there is none); the results they give.

        as_of: the sorted moments asked for, from the time of the first row on and before `next_time`."""
        times = self.work.times(table)
        piece = Piece(table, times, self.position, self.seen_until, next_time, next_time)
        before = {
            name: Before(middle=self.open[name]) if grows(ticks, self.work.request) else Before(left=self.tail)
            for name, ticks in self.work.ticks.items()
        }
        found = answer(self.work, piece, before) if moments is None else answer_moments(self.work, piece, before, moments)
        self.seen_until = next_time
        if next_time is not None and len(times):
            self._keep(piece, before)
        return found

    def _keep(self, piece: Piece, before: dict[str, Before]) -> None:
        work = self.work
        start = None
        for name, ticks in work.ticks.items():
            sequence = Sequence(work, ticks, piece, before[name])
            if grows(ticks, work.request):
                self.open[name] = open_run(work, sequence)
            else:
                reach = first_needed(ticks, sequence, work)
                start = reach if start is None else min(start, reach)
        self.position += len(piece.times)
        if start is not None:
            self.tail = pa.concat_tables([self.tail, piece.table]).slice(start)


def open_run(work: Work, sequence: Sequence) -> Middle:
    """The window that the last row is in, up to that row."""
    run = [open_since(work, sequence)], [len(sequence.times)]
    return Middle(
        rows=0,
        last_time=sequence.times[-1],
        totals=[sequence.rows(number, step).totals(*run) for number, step in enumerate(work.steps)],
        marked=sequence.ticks.kind == "punctuation" and bool(sequence.column()[0][-1]),
    )


def open_since(work: Work, sequence: Sequence) -> int:
    """Where the window begins that the last row is in."""
    starts, _ = frames(sequence.ticks, sequence.times, sequence.offsets, closed=up_to_last(work), column=sequence.column())
    return int(starts[-1])


def up_to_last(work: Work) -> str:
    """The request's rule for where windows begin, with the right end closed."""
    return "both" if sides(work.request.closed)[0] else "right"


def first_needed(ticks: Ticks, sequence: Sequence, work: Work) -> int:
    """The first row of the sequence that a window which ends later can hold."""
    n = len(sequence.times)
    if ticks.kind == "rows":
        return int(max(0, n - ticks.range - ticks.slide - ticks.offset - 1))
    if ticks.kind == "delta":
        return open_since(work, sequence)
    return int(np.searchsorted(sequence.times, reached_back(ticks, sequence.times[-1], work), side="left"))


def reached_back(ticks: Ticks, moment: Any, work: Work) -> Any:
    """No window of this kind that ends at the moment or later holds anything before this."""
    return earlier(moment, ticks.range + ticks.offset + ticks.slide + slack_of(ticks, work))


def slack_of(ticks: Ticks, work: Work) -> int:
    """How much longer or shorter than its range a window may be: a local day has 23 to 25 hours."""
    return 2 * DAY_NS // work.plan.clock.tick_ns if ticks.calendar else 0


def earlier(moment: Any, by: Any) -> Any:
    """moment - by, or the lowest or highest time where that leaves int64."""
    if isinstance(moment, (float, np.floating)):
        return moment - by
    return min(max(int(moment) - int(by), np.iinfo(np.int64).min), np.iinfo(np.int64).max)
