"""Between the two passes over a giant key: what each chunk needs of the others, from their summaries, on the driver.

For each window of a chunk: where do its left ends lie, and where its right ends? Panes that may hold one are needed row by
row, those between only as one total:

    panes      . . . . | L L L L | m m m m m m m m m m | own chunk          a long window of time, or many rows
               not     |  left   |  middle: a state    | right ends
               needed  |  ends   |                     |

Both zones are about as long as the chunk itself, however long the window is. Everything here errs towards too many rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slidewise.engines.spark.chunk import Middle, Work, grows
from slidewise.engines.spark.chunk_stream import earlier, reached_back, slack_of, up_to_last
from slidewise.engines.spark.chunk_totals import Totals, joined_totals
from slidewise.engines.spark.giant_panes import Run, Summary
from slidewise.windows.bounds import frames
from slidewise.windows.clock import Ticks


@dataclass
class Need:
    """What one window of a chunk needs: panes by (label, number), and a state."""

    left: list[tuple[int, int]] = field(default_factory=list)
    middle: Middle | None = None
    right: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Needs:
    """What a chunk needs to know of its key."""

    position: int
    begins: Any
    ends: Any
    next_time: Any
    windows: dict[str, Need]

    @property
    def panes(self) -> set[tuple[int, int]]:
        return {pane for need in self.windows.values() for pane in (*need.left, *need.right)}


class Key:
    """The summaries of one key's chunks, in the order of time."""

    def __init__(self, work: Work, summaries: list[Summary]):
        self.work, self.summaries = work, summaries
        self.rows = np.concatenate([s.rows for s in summaries])
        self.first = np.concatenate([s.first for s in summaries])
        self.last = np.concatenate([s.last for s in summaries])
        self.chunk = np.cumsum([0, *(len(s.rows) for s in summaries)])
        """The pane each chunk begins with, and the number of panes at the end."""
        self.position = np.cumsum([0, *self.rows])
        self.names = [(s.label, pane) for s in summaries for pane in range(len(s.rows))]
        steps = range(len(work.steps))
        self.totals = [Totals.concat([s.totals[k] for s in summaries]) for k in steps]
        self._whole: list[list[Totals | None]] = [[None] * len(summaries) for _ in steps]
        self._open = {name: self._open_runs(name) for name, t in work.ticks.items() if grows(t, work.request)}
        self._edges = {name: self._delta_edges(name, t) for name, t in work.ticks.items() if t.kind == "delta"}

    def needs(self, number: int) -> Needs:
        """What the chunk of this number needs."""
        a, b = self.chunk[number], self.chunk[number + 1]
        following = self._time(b)
        begins = None if number == 0 else self._begin(number)
        ends = None if number + 1 == len(self.summaries) else self._begin(number + 1)
        windows = {}
        for name, ticks in self.work.ticks.items():
            if grows(ticks, self.work.request):
                windows[name] = Need(middle=self._open[name][number])
            elif ticks.kind == "rows":
                windows[name] = self._rows_window(ticks, number)
            elif ticks.kind == "delta":
                edges = self._edges[name]
                windows[name] = self._zones(a, slice(edges[number], edges[number + 1] + 1), slice(a, a), name)
            else:
                windows[name] = self._time_window(ticks, number)
        return Needs(int(self.position[a]), begins, ends, following, windows)

    def _time(self, pane: int) -> Any:
        return self.first[pane] if pane < len(self.first) else None

    def _begin(self, number: int) -> Any:
        """The time from which on boundaries belong to a chunk: that of its first row (or of the next chunk that has one)."""
        return self._time(self.chunk[number])

    # ---- windows that slide ---------------------------------------------------------------------------------------------

    def _moments(self, number: int) -> tuple[Any, Any] | None:
        """The first and the last moment that a window of the chunk ends at (before slide and offset move it)."""
        a, b = self.chunk[number], self.chunk[number + 1]
        request, asked = self.work.request, self.summaries[number].asked
        if request.as_of:
            return asked
        if a == b:
            return None
        if request.emit != "slide":
            return self.first[a], self.last[b - 1]
        following = self._time(b)
        if following is not None:
            return self.first[a], following
        longest = max(t.range + t.offset + t.slide for t in self.work.ticks.values())
        return self.first[a], earlier(self.last[b - 1], -longest)

    def _time_window(self, ticks: Ticks, number: int) -> Need:
        asked = self._moments(number)
        if asked is None:
            return Need()
        a = self.chunk[number]
        slack = slack_of(ticks, self.work)
        left = earlier(asked[1], ticks.range + ticks.offset - slack)
        right = earlier(asked[0], ticks.offset + ticks.slide + slack)
        begin = np.searchsorted(self.last[:a], reached_back(ticks, asked[0], self.work), side="left")
        middle = np.searchsorted(self.first[:a], left, side="right")
        until = np.searchsorted(self.last[:a], right, side="left")
        end = np.searchsorted(self.first[:a], earlier(asked[1], ticks.offset), side="right")
        return self._zones(a, slice(begin, middle), slice(until, end), None)

    def _rows_window(self, ticks: Ticks, number: int) -> Need:
        a, b = self.chunk[number], self.chunk[number + 1]
        low, high = self.position[a], self.position[b]
        if self.work.request.as_of:
            asked = self._moments(number)
            if asked is None:
                return Need()
            low = self.position[np.searchsorted(self.last, asked[0], side="left")]
            high = self.position[np.searchsorted(self.first, asked[1], side="right")]
        right = low - ticks.slide - ticks.offset - 1
        begin = np.searchsorted(self.position[1 : a + 1], right - ticks.range - 1, side="right")
        middle = np.searchsorted(self.position[:a], high - ticks.offset - ticks.range + 1, side="left")
        until = np.searchsorted(self.position[1 : a + 1], right, side="right")
        return self._zones(a, slice(begin, middle), slice(until, a), None)

    def _zones(self, a: int, left: slice, right: slice, delta: str | None) -> Need:
        """Panes left.start .. left.stop - 1 and right.start .. right.stop - 1 by rows, those between as a total."""
        begin, stop = int(left.start), int(min(left.stop, a))
        resume, end = int(right.start), int(right.stop)
        if stop >= resume:  # the zones meet: rows all the way
            return Need(self.names[begin : max(stop, end)])
        middle = Middle(
            rows=int(self.position[resume] - self.position[stop]),
            last_time=self.last[resume - 1],
            totals=[self._joined(k, stop, resume) for k in range(len(self.totals))],
            extremes=None if delta is None else self._extremes(delta, stop, resume),
        )
        return Need(self.names[begin:stop], middle, self.names[resume:end])

    def _joined(self, step: int, begin: int, end: int) -> Totals:
        """The total of the panes begin .. end - 1; of whole chunks where they are whole."""
        parts = []
        pane = begin
        while pane < end:
            number = int(np.searchsorted(self.chunk, pane, side="right")) - 1
            stop = int(self.chunk[number + 1])
            if pane == self.chunk[number] and stop <= end:
                parts.append(self._whole_chunk(step, number))
            else:
                stop = min(stop, end)
                parts.append(self.totals[step].part(pane, stop))
            pane = stop
        return joined_totals(self.work.steps[step], Totals.concat(parts))

    def _whole_chunk(self, step: int, number: int) -> Totals:
        found = self._whole[step][number]
        if found is None:
            part = self.totals[step].part(int(self.chunk[number]), int(self.chunk[number + 1]))
            found = self._whole[step][number] = joined_totals(self.work.steps[step], part)
        return found

    # ---- windows that only grow -----------------------------------------------------------------------------------------

    def _open_runs(self, name: str) -> list[Middle | None]:
        """For each chunk: the window that the last row before it is in, up to that row."""
        runs = [s.runs[name] for s in self.summaries]
        connected = self._connected(name, runs)
        starts = np.concatenate([run.starts for run in runs])
        marks = np.concatenate([run.last_marks for run in runs])
        tails = [Totals.concat([run.tails[k] for run in runs]) for k in range(len(self.totals))]
        found: list[Middle | None] = []
        current: list[Totals] | None = None
        for number in range(len(runs)):
            a, b = int(self.chunk[number]), int(self.chunk[number + 1])
            found.append(None if a == 0 else Middle(0, self.last[a - 1], current, bool(marks[a - 1])))
            if a == b:
                continue
            begun = [pane for pane in range(a, b) if starts[pane] > 0 or not connected[pane]]
            joined = []
            for k, step in enumerate(self.work.steps):
                if begun:
                    pane = begun[-1]
                    parts = [tails[k].part(pane, pane + 1), self.totals[k].part(pane + 1, b)]
                else:
                    parts = [current[k], self.totals[k].part(a, b)]
                joined.append(joined_totals(step, Totals.concat(parts)))
            current = joined
        return found

    def _connected(self, name: str, runs: list[Run]) -> np.ndarray:
        """For each pane: whether its first row is in the window of the row before it."""
        n = len(self.first)
        times = np.empty(2 * n, self.first.dtype)
        times[0::2], times[1::2] = np.concatenate([self.first[:1], self.last[:-1]]), self.first
        marks = np.zeros(2 * n, np.uint8)
        marks[2::2] = np.concatenate([run.last_marks for run in runs])[:-1]
        marks[1::2] = np.concatenate([run.first_marks for run in runs])
        starts, _ = frames(self.work.ticks[name], times, np.arange(0, 2 * n + 1, 2), closed=up_to_last(self.work), ties="arrival",
                           column=(marks, None))
        found = starts[1::2] == np.arange(0, 2 * n, 2)
        found[:1] = False
        return found

    # ---- delta windows --------------------------------------------------------------------------------------------------

    def _delta_edges(self, name: str, ticks: Ticks) -> list[int]:
        """For each chunk: the pane in which the run of the last row before it begins. (And one more, for the end.)"""
        extremes = [s.extremes[name] for s in self.summaries]
        panes = [(e.least[k].item(), e.greatest[k].item(), bool(e.numbers[k]), bool(e.nans[k]))
                 for e in extremes for k in range(len(e.least))]
        found = []
        for number in range(len(self.summaries) + 1):
            pane = int(self.chunk[number])
            least = greatest = None
            nan = False
            while pane > 0:
                pane -= 1
                low, high, numbers, nans = panes[pane]
                if numbers:
                    least = low if least is None else min(least, low)
                    greatest = high if greatest is None else max(greatest, high)
                nan = nan or nans
                if least is not None and (nan or greatest - least > ticks.range):
                    break
            found.append(pane)
        return found

    def _extremes(self, name: str, begin: int, end: int) -> tuple | None:
        least = np.concatenate([s.extremes[name].least for s in self.summaries])[begin:end]
        greatest = np.concatenate([s.extremes[name].greatest for s in self.summaries])[begin:end]
        numbers = np.concatenate([s.extremes[name].numbers for s in self.summaries])[begin:end]
        nans = np.concatenate([s.extremes[name].nans for s in self.summaries])[begin:end]
        if numbers.any():
            return least[numbers].min(), greatest[numbers].max()
        return (np.nan, np.nan) if nans.any() else None
