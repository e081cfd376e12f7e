"""Rows cut into the slices of the plan, each aggregated once, and windows that slide put together from them.

    rows        . . . | . . . . | . . | . . . . |        cut at the plan's marks (planner/slices.py), key by key
    slices      |--0--|---1-----|--2--|----3----|        only where there are rows
    pieces      |--0--|-1-|--2--|--3--|----4----|        and where windows end inside a slice (Cutty)
    a window    |-----------------------|                slices 0 to 1 whole, and slice 2 as far as piece 3

`Cut` is made once for a call, `Slices` once for each step: the windows and aggregates of a plan read the same partials. Rows and
queries behind one boundary have the same frame, which is answered once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slidewise.algebra.cache import entry
from slidewise.algebra.typed import TypedOperator
from slidewise.engines.local import loops
from slidewise.engines.local.sweeps import Job, Store
from slidewise.engines.local.targets import Frames, Passing
from slidewise.planner.slices import SharedPlan
from slidewise.windows.bounds import index_dtype
from slidewise.windows.clock import HIGHEST


@dataclass(frozen=True)
class Span:
    """The answers of one window in slices."""

    count: int
    """So many results, of which these places have an answer ..."""
    places: np.ndarray
    repeats: np.ndarray | None
    """... and for how many targets each stands; None: for one."""
    first: np.ndarray
    behind: np.ndarray
    tails: np.ndarray
    """The piece a window ends with inside a slice, or -1."""


class Cut:
    """Where the plan cuts these rows, and the windows in terms of that."""

    def __init__(
        self,
        plan: SharedPlan,
        times: np.ndarray,
        offsets: np.ndarray,
        windows: Mapping[str, Frames | Passing],
    ):
        frames = {}
        for name in (query.name for query in plan.queries):
            found = windows[name]
            count, repeats = len(found.starts), None
            places = np.flatnonzero(first_of_equals(found) if found.answered is None else found.answered)
            starts, ends = found.starts[places], found.ends[places]
            if found.answered is None and len(places) < count:
                repeats = np.diff(places, append=count)
                count, places = len(places), np.arange(len(places))
            frames[name] = (count, places, repeats), starts, ends
        begun = slice_starts(plan, times, offsets)
        marks = np.zeros(len(times) + 1, np.uint8)  # 1: a slice begins here; 2: a window ends here
        for _, _, ends in frames.values():
            marks[ends] = 2
        marks[begun] = marks[-1] = 1
        edges = np.flatnonzero(marks)
        edge_at = np.cumsum(marks != 0, dtype=index_dtype(len(marks))) - 1
        inside = (marks[edges] == 2).view(np.uint8)
        slice_of = np.cumsum(inside == 0) - 1
        entered = np.zeros(len(edges), np.int64)
        self.spans: dict[str, Span] = {}
        for name, (results, starts, ends) in frames.items():
            start, end = edge_at[starts], edge_at[ends]
            entered += np.bincount(start, minlength=len(edges)) - np.bincount(end, minlength=len(edges))
            tails = np.where((inside[end] != 0) & (start < end), end - 1, -1)
            self.spans[name] = Span(*results, slice_of[start], slice_of[end], tails)
        self.begins, self.inside = edges[:-1], inside[:-1]
        self.stops = np.where(np.cumsum(entered)[:-1] > 0, edges[1:], edges[:-1])
        """Pieces that are in no window, where slides are longer than ranges, end where they begin: none of their rows is read."""
        self.whole = np.flatnonzero(inside == 0)[1:] - 1
        """The last piece of each slice: its partial is that of the whole slice."""


class Slices:
    """The partials of a step."""

    def __init__(self, job: Job, cut: Cut):
        self.job, self.cut = job, cut
        count, typed = len(cut.begins), job.typed
        self.partials = typed.state.alloc(count) if typed.compiled else [None] * count
        self.some = np.empty(count, np.uint8) if typed.compiled else bytearray(count)
        pieces = job.indexes(cut.begins, cut.stops, cut.inside)
        first = np.append(0, cut.whole + 1)

        def fold(lo, hi):
            """The pieces of slices lo .. hi - 1: what no other part goes on from."""
            scratch = typed.state.alloc(2) if typed.compiled else [None] * 2
            job.loops.fold_slices(
                typed, scratch, job.X, job.mask, *pieces, self.partials, self.some, int(first[lo]), int(first[hi])
            )

        job.workers.spread(fold, len(cut.whole))

    def sweep(self, window: str):
        """Results of one window, for each target."""
        job, span = self.job, self.cut.spans[window]
        OUT, OK = job.results(span.count)
        whole, *frames = job.indexes(self.cut.whole, span.first, span.behind, span.tails, span.places)

        def part(lo, hi):
            size = loops.longest(span.first, span.behind, lo, hi)
            store = Store(job.alg, job.typed, size, int(span.first[lo]))
            job.workers.pieces(
                lambda i, j: job.loops.slide_slices(
                    job.alg, job.typed, *store.all, self.partials, self.some, whole, *frames, OUT, OK, i, j
                ),
                lo,
                hi,
            )

        job.parts(part, span.first, span.behind, None)
        if span.repeats is not None:
            OUT, OK = _repeated(OUT, OK, span.repeats, job.typed)
        return job.done(OUT, OK)


def _repeated(OUT, OK, repeats: np.ndarray, typed: TypedOperator):
    """Each result as often as there are targets it stands for."""
    if not typed.compiled:
        at = np.repeat(np.arange(len(repeats)), repeats).tolist()
        return [OUT[i] for i in at], bytearray(OK[i] for i in at)
    width = typed.result.width or 1
    return tuple(np.repeat(leaf.reshape(-1, width), repeats, axis=0).reshape(-1) for leaf in OUT), np.repeat(OK, repeats)


def first_of_equals(frames: Frames | Passing) -> np.ndarray:
    """A truth value for each target: whether its frame is another than that of the target before."""
    own = np.ones(len(frames.starts), bool)
    np.not_equal(frames.starts[1:], frames.starts[:-1], out=own[1:])
    own[1:] |= frames.ends[1:] != frames.ends[:-1]
    return own


def slice_starts(plan: SharedPlan, times: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The rows that begin a slice: the first of each key, and the first behind an edge."""
    marks = zip(*((mark.at, mark.every, mark.beyond) for mark in plan.marks))
    columns = (np.array(column, kind) for column, kind in zip(marks, (np.int64, np.int64, np.bool_)))
    begun = np.empty(len(times), np.int64)
    return begun[: int(find_slices(times, offsets, *columns, HIGHEST, begun))]


@entry
def find_slices(times, offsets, at, every, beyond, highest, begun):
    """The first row of each slice into `begun`, and how many. An edge that a row at its own moment lies before, not behind, is
    `beyond` that row."""
    count = 0
    for key in range(len(offsets) - 1):
        until = highest
        for i in range(offsets[key], offsets[key + 1]):
            t = times[i]
            if i > offsets[key] and t < until:
                continue
            begun[count] = i
            count += 1
            until = highest
            for k in range(len(at)):
                since = (t % every[k] - at[k]) % every[k]  # since the last edge at or before t
                step = every[k] - since
                if beyond[k]:
                    step = (step if since > 0 else 0) + 1
                if t <= highest - step:
                    until = min(until, t + step)
    return count
