"""Run the passes of a step: give an algorithm its arrays, cut the frames into parts for threads, call the compiled loops.

    rows      sweep            an entry for each row; where the algorithm has a form for rows at hand (algorithms/at_hand.py), that
    passing   sweep_passing    the same, where frames are found on the way
    around    sweep_around     the same, with the row itself left out
    ranges    sweep_ranges     several windows with common ends in one pass, for algorithms that offer it
    runs      sweep_runs       rows that leave together are one entry
    tree      sweep_tree       rows or runs as the entries of a tree

Each gives (OUT, OK): results in the layout of the operator's result, and a byte for each that says whether there is one. Slices
have a file of their own, slicing.py.
Interpreted operators go through the same loops as their interpreted twins.
"""

import itertools
from functools import cached_property
from typing import Any

import numpy as np

from slidewise.algebra.kernel import twin
from slidewise.algebra.narrow import fitting
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import at_hand, drivers, tree_frames
from slidewise.algorithms.protocol import Algorithm, arrays, capacity_for
from slidewise.engines.local import loops
from slidewise.engines.local.order import NotAsAssumed
from slidewise.engines.local.targets import Passing
from slidewise.engines.local.threads import Workers
from slidewise.operators import OPERATORS

PARTS, FEW_PARTS = 16, 4
ROWS_A_PART, MANY_ROWS = 1 << 15, 1 << 18
"""Frames are cut into at most PARTS, of at least ROWS_A_PART rows; into no more than FEW_PARTS unless each has MANY_ROWS: a cut
costs as much as some thousand rows."""
BLOCK = 1 << 17
"""Rows whose frames are found at a time where they are found while a pass runs: two arrays that fit the cache, and blocks long
enough that threads seldom wait for each other's Python between them."""
_ALL = np.zeros(0, np.uint8)


class Store:
    """An algorithm's arrays for windows of at most `size` entries, as an empty window; one more slot where asked for."""

    def __init__(self, alg: Algorithm, typed: TypedOperator, size: int, first=0, more: int = 0):
        self.H, self.W, self.V, self.m, self.scratch = arrays(alg, typed, capacity_for(max(size, 1)), more)
        self.carry = np.zeros(loops.CARRY, np.int64) if typed.compiled else [0] * loops.CARRY
        self.carry[0] = self.carry[1] = self.carry[3] = first

    @property
    def all(self):
        return self.H, self.W, self.V, self.m, self.scratch, self.carry


def kernels(typed: TypedOperator, module=loops):
    """The compiled loops, or their interpreted twins."""
    return module if typed.compiled else twin(module)


class Job:
    """A typed operator over sorted rows: what all passes of a step share."""

    def __init__(self, workers: Workers, alg: Algorithm, typed: TypedOperator, X: tuple, mask: np.ndarray | None):
        self.workers, self.alg, self.typed = workers, alg, typed
        self.mask: Any = _ALL if mask is None else mask
        self.X = X
        self.loops = kernels(typed)
        if not typed.compiled:
            self.mask = self.mask.tolist()
            self.X = tuple(values if isinstance(values, list) else values.tolist() for values in X)

    def results(self, count: int):
        if self.typed.compiled:
            return self.typed.result.alloc(count), np.empty(count, np.uint8)
        return [None] * count, bytearray(count)

    def indexes(self, *frames: np.ndarray):
        """Positions as the loops read them: arrays, or lists for interpreted ones."""
        return frames if self.typed.compiled else tuple(frame.tolist() for frame in frames)

    @cached_property
    def counting(self):
        """(columns, before): the rows that count, one behind the other, and how many of them lie before each row."""
        if not len(self.mask):
            return self.X, None
        before = np.empty(len(self.mask) + 1, np.int32 if len(self.mask) < 2**31 - 1 else np.int64)
        kept = int(loops.count_before(self.mask, before))
        columns = tuple(np.empty(kept, values.dtype) for values in self.X)
        for values, out in zip(self.X, columns):
            self.workers.spread(
                lambda lo, hi, v=values, o=out: loops.keep(v, self.mask, before, o, lo, hi), len(self.mask)
            )
        return columns, before

    def among_counting(self, positions: np.ndarray) -> np.ndarray:
        """Positions among all rows -> among those that count."""
        before = self.counting[1]
        if before is None:
            return positions
        out = np.empty(len(positions), before.dtype)
        self.workers.spread(lambda lo, hi: loops.look_up(before, positions, out, lo, hi), len(positions))
        return out

    def parts(self, part, starts, ends, offsets) -> None:
        """part(lo, hi) over all frames, at the same time where they can be cut."""
        self.parts_of(part, len(starts), lambda at: int(ends[at - 1]) - int(starts[at]), offsets)

    def parts_of(self, part, count: int, twice, offsets) -> None:
        """As `parts`. twice(at): how many rows of frame at - 1 are in frame `at` too."""
        cuts = cut(count, twice, offsets) if self.typed.compiled else [0, count]
        self.workers.each([lambda lo=lo, hi=hi: part(lo, hi) for lo, hi in itertools.pairwise(cuts) if lo < hi])

    def done(self, OUT, OK):
        """Results; the second is None where there is one for every frame."""
        if not self.typed.compiled:
            return OUT, np.frombuffer(OK, np.uint8)
        return OUT, None if self.workers.every(lambda lo, hi: loops.all_set(OK, lo, hi), len(OK)) else OK


def sweep(job: Job, starts, ends, offsets):
    """The aggregate of the rows that count in each frame [starts[i], ends[i])."""
    OUT, OK = job.results(len(starts))
    loop = at_hand.form(job.alg.name, job.typed)
    if loop is not None:
        X, held = job.counting[0], (job.among_counting(starts), job.among_counting(ends))

        def at_once(lo, hi):
            size = int(loops.longest(held[0], held[1], lo, hi))
            V = job.typed.state.alloc(at_hand.slots(size))
            carry = np.full(at_hand.CARRY, held[0][lo], np.int64)
            job.workers.pieces(lambda i, j: loop(job.typed, V, carry, X, *held, OUT, OK, i, j), lo, hi)

        job.parts(at_once, starts, ends, offsets)
        return job.done(OUT, OK)
    frames, typed = job.indexes(starts, ends), fitting(job.typed, job.X)  # the same results in smaller states, where they serve
    run = kernels(typed, drivers).run_frames

    def part(lo, hi):
        store = Store(job.alg, typed, loops.longest(starts, ends, lo, hi), int(starts[lo]))
        job.workers.pieces(
            lambda i, j: run(job.alg, typed, *store.all, job.X, job.mask, *frames, OUT, OK, i, j), lo, hi
        )

    job.parts(part, starts, ends, offsets)
    return job.done(OUT, OK)


def can_pass(job: Job) -> bool:
    """Whether frames may be found while the pass runs: `sweep_passing`."""
    return not len(job.mask) and at_hand.form(job.alg.name, job.typed) is not None


def sweep_passing(job: Job, passing: Passing, offsets):
    """As `sweep`, for frames that are found block by block."""
    fill, rows, kind = passing.fill, passing.rows, passing.kind
    OUT, OK = job.results(rows)
    typed = total_of(job.typed)
    loop = at_hand.form(job.alg.name, typed)
    width = typed.result.width or 1
    gaps: list[int] = []
    spare: list[_Block] = []  # of parts that are done: new memory costs more than the loops over it

    def part(lo, hi):
        held = spare.pop() if spare else _Block(typed, min(BLOCK, rows), kind)
        carry = np.empty(at_hand.CARRY, np.int64)
        reached = (0, 0)

        def block(a, b):
            nonlocal reached
            if passing.check is not None and not passing.check(a, b):
                raise NotAsAssumed
            starts, ends = held.starts, held.ends
            fill(a, b, starts, ends)
            if a == lo:
                carry[:] = starts[0]
            elif starts[0] < reached[0] or ends[0] < reached[1]:  # rows before this part, which others look at, are not in order
                raise NotAsAssumed  # (the loops rely on it)
            reached = starts[b - a - 1], ends[b - a - 1]
            # no frame is longer than this, as neither end goes back
            held.make_room(int(ends[b - a - 1]) - int(starts[0]), kept=at_hand.slots(max(int(carry[1] - carry[0]), 0)))
            results, good = tuple(leaf[a * width : b * width] for leaf in OUT), OK[a:b]
            loop(typed, held.V, carry, job.X, starts, ends, results, good, 0, b - a)
            if typed is not job.typed:
                loops.by_length(results[0], starts, ends, b - a)
            if not loops.all_set(good, 0, b - a):
                gaps.append(a)

        def piece(a, b):
            for at in range(a, b, BLOCK):
                block(at, min(at + BLOCK, b))

        job.workers.pieces(piece, lo, hi, BLOCK)
        spare.append(held)

    def twice(at):
        starts, ends = np.empty(2, kind), np.empty(2, kind)
        fill(at - 1, at + 1, starts, ends)
        return int(ends[0]) - int(starts[1])

    job.parts_of(part, rows, twice, offsets)
    return OUT, OK if gaps else None


class _Block:
    """What a pass that finds its frames on the way needs at a time: the frames of a block, and states."""

    def __init__(self, typed: TypedOperator, rows: int, kind: np.dtype):
        self.typed, self.size = typed, 0
        self.starts, self.ends = np.empty(rows, kind), np.empty(rows, kind)
        self.V = typed.state.alloc(at_hand.slots(0))

    def make_room(self, size: int, kept: int) -> None:
        """For frames of so many rows. Slots are counted from the front: the `kept` that are in use stay where they are."""
        if size > self.size:
            self.size = max(size, 2 * self.size)
            held, self.V = self.V, self.typed.state.alloc(at_hand.slots(self.size))
            for new, old in zip(self.V, held, strict=True):
                new[:kept] = old[:kept]


def total_of(typed: TypedOperator) -> TypedOperator:
    """Where every row counts, a mean of floats is the sum over the length of the frame, to the last bit: half as much to keep and
    to combine. Other operators are themselves."""
    op = typed.operator
    if op.own and op.name == "mean" and not op.params and typed.inputs == (np.dtype(np.float64),):
        return OPERATORS["sum"]().typed(typed.inputs)
    return typed


def sweep_around(job: Job, before, behind, offsets):
    """The aggregate of two frames, one before and one behind a row that is left out."""
    OUT, OK = job.results(len(before[0]))
    frames = job.indexes(*before, *behind)

    def part(lo, hi):
        a, b = (Store(job.alg, job.typed, loops.longest(*one, lo, hi), int(one[0][lo])) for one in (before, behind))
        job.workers.pieces(
            lambda i, j: job.loops.slide_around(
                job.alg, job.typed, *a.all, *b.all, job.X, job.mask, *frames, OUT, OK, i, j
            ),
            lo,
            hi,
        )

    job.parts(part, before[0], behind[1], offsets)
    return job.done(OUT, OK)


def sweep_ranges(job: Job, starts: list[np.ndarray], ends, offsets):
    """Several windows that end together, in one pass: results of the first window, then of the second ..."""
    n = len(ends)
    OUT, OK = job.results(n * len(starts))
    size = max(loops.longest(one, ends, 0, n) for one in starts)
    frames = job.indexes(np.concatenate(starts), ends)
    module = job.alg.module if job.typed.compiled else twin(job.alg.module)

    def part(lo, hi):
        store = Store(job.alg, job.typed, size, more=len(starts))
        arrays = store.H, store.W, store.V, store.m, store.scratch
        job.workers.pieces(
            lambda i, j: module.run_ranges(
                job.typed, len(starts), *arrays, job.X, job.mask, *frames, OUT, OK, i, j
            ),
            lo,
            hi,
        )

    job.parts(part, min(starts, key=lambda one: int(one.sum())), ends, offsets)
    return job.done(OUT, OK)


def sweep_runs(job: Job, starts, ends, offsets):
    """As `sweep`, for windows that begin anew or slide in steps: rows that leave together are one entry."""
    n = len(starts)
    OUT, OK = job.results(n)
    edges = np.empty(n, starts.dtype)
    edges = edges[: int(loops.run_edges(starts, edges))]
    size = loops.most_runs(starts, ends, edges) + 1
    frames = job.indexes(edges, starts, ends)

    def part(lo, hi):
        store = Store(job.alg, job.typed, size, int(starts[lo]), more=1)
        store.carry[4] = int(np.searchsorted(edges, starts[lo], side="right"))
        began = np.zeros(store.m + 1, np.int64) if job.typed.compiled else [0] * (store.m + 1)
        job.workers.pieces(
            lambda i, j: job.loops.slide_runs(
                job.alg, job.typed, *store.all, began, frames[0], job.X, job.mask, *frames[1:], OUT, OK, i, j
            ),
            lo,
            hi,
        )

    job.parts(part, starts, ends, offsets)
    return job.done(OUT, OK)


def sweep_tree(job: Job, starts, ends, coarse: bool):
    """As `sweep` (coarse: as `sweep_runs`), with a tree: for whoever asks for one by name, as rows come sorted."""
    n = len(starts)
    OUT, OK = job.results(n)
    places = np.arange(int(ends[-1]) if n else 0, dtype=np.int64)
    if coarse and n:
        edges = np.unique(np.append(starts, 0))
        places = edges[np.searchsorted(edges, places, side="right") - 1].astype(np.int64)
    filed, first, behind = job.indexes(places, starts, ends)
    if n:
        slider = tree_frames.Slider(job.alg, job.typed, int(starts[0]))
        job.workers.pieces(lambda i, j: slider.run(filed, job.X, job.mask, first, behind, OUT, OK, i, j), 0, n)
    return job.done(OUT, OK)


def cut(n: int, twice, offsets: np.ndarray | None) -> list[int]:
    """Where to cut n frames into parts, by the data alone: at the start of a key where one is near, and only as often as
    what must be read twice (the frames at the cuts) stays small."""
    parts = min(PARTS, n // ROWS_A_PART, max(FEW_PARTS, n // MANY_ROWS))
    while parts > 1:
        ahead = max(twice(n // parts), 0)  # about what each part but the first has to read before its own rows
        share = (n + (parts - 1) * ahead) // parts
        cuts, again = [0], 0
        for k in range(1, parts):
            place = min(k * share - (k - 1) * ahead, n)
            if offsets is not None:
                near = int(offsets[np.searchsorted(offsets, place)])
                if near - place <= n // (4 * parts):
                    place = near
            if cuts[-1] < place < n:
                cuts.append(place)
                again += max(twice(place), 0)
        if again <= n // (2 if parts == 2 else 4):
            return [*cuts, n]
        parts //= 2
    return [0, n]
