"""Trees over frames of sorted rows: what `rolling(..., algorithm="fiba")` runs.

A tree's times are the rows' places. A row that belongs to a run of rows that leave together takes the place of the run's first one:
trees combine a repeated time, so a run is one entry (coarse-grained sliding, bulk-fiba-2023 section 3).

    evict    everything before the frame: the oldest by itself, more of them in bulk
    insert   at the young end, amortised O(1)
    query    of the whole tree, at most 2 combines
"""

import sys

from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import get, lift, open_arrays, open_state, ptr, row, shift, twin
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.fiba import evict, insert, oldest
from slidewise.algorithms.fiba_bulk_evict import bulk_evict
from slidewise.algorithms.fiba_drivers import LIFTED, answer
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import SIZE, TREE_WORDS, has_room
from slidewise.algorithms.protocol import Algorithm


class Slider:
    """One tree that is slid over frames, piece by piece."""

    def __init__(self, alg: Algorithm, op: TypedOperator, first: int):
        self.forest = Forest(op, 1, fingers=alg.module.FINGERS)
        self.loop = run_frames if op.compiled else twin(sys.modules[__name__]).run_frames
        self.last = first

    def run(self, places, X, MASK, starts, ends, OUT, OK, lo: int, hi: int) -> None:
        """Results of the frames lo .. hi - 1. places: where each row is filed."""
        while lo < hi:
            before, row = self.forest.size(), self.last
            arguments = (row, places, X, MASK, starts, ends, OUT, OK, lo, hi)
            lo, self.last = self.loop(*self.forest.arrays, 0, *arguments)
            self.forest.evicted(before + self.last - row - self.forest.size())  # at most: rows may share an entry
            if lo < hi:
                self.forest.grow()


@entry
def run_frames(k, op, A_, H_, N_, V_, tree, last, places_, X_, MASK_, starts_, ends_, OUT_, OK_, lo, hi):
    """(frame, row) it came to: fewer than asked for where the arena is short. The rest as in fiba_drivers.py."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    places, MASK, starts, ends = open_arrays((places_, MASK_, starts_, ends_))
    masked = len(MASK_) > 0
    for i in range(lo, hi):
        start, end = starts[i], ends[i]
        if H[SIZE] > 0 and oldest(k, H, N) < start:
            evict(k, op, A, H, N, V)
            if H[SIZE] > 0 and oldest(k, H, N) < start:
                bulk_evict(k, op, A, H, N, V, start - 1)
        last = max(last, start)
        while last < end:
            if not has_room(k, A, H):
                return i, last
            if not masked or MASK[last]:
                insert(k, op, A, H, N, V, places[last], lift(op, get(op, V, LIFTED), row(X, last)))
            last += 1
        answer(k, op, H, N, V, OUT, OK, i)
    return hi, last
