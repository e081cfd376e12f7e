"""Forest: an arena with its trees, as Python sees it. Allocates, grows, compacts, and calls the compiled steps or their twin.

A forest of one tree is a live window; several trees may share an arena. Times are int64 codes where the operator runs compiled,
and any objects that can be compared where it does not.
"""

import numpy as np

from slidewise.algebra.kernel import twin
from slidewise.algebra.layout import Leaf
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import fiba_check, fiba_drivers
from slidewise.algorithms.fiba_bulk_insert import WORDS as BATCH_WORDS
from slidewise.algorithms.fiba_nodes import (
    ARENA_WORDS,
    BUMP,
    FIRST_UNIT,
    HEIGHT,
    LEVELS,
    ROOT,
    SIZE,
    TREE_WORDS,
    UNITS,
    Shape,
)
from slidewise.errors import InputError

ARITIES = (2, 4, 8, 16)
SMALLEST = 16
"""Units of a new arena."""
LEAST = 1 << 12
"""An arena with room for fewer entries is not worth compacting."""
PIECE = 1 << 14
"""Rows that a loop runs over, or as many as there are units, before the arena is looked at."""
BATCH = 1 << 14
"""Entries of a bulk insert that go up together. More gain little, and want scratch words."""


def default_arity(op: TypedOperator) -> int:
    """The minimum arity that suits the operator's cost.

    Wide nodes are fewer, and what a cheap round costs is finding its way from one to the next. Narrow ones have fewer partials to
    be combined anew, which counts where a combine is expensive, unless the operator commutes: then an insert costs one
    combine a level, and wide nodes make few levels. Never the narrowest: with 2, a repair costs no less in all (nodes half as
    wide, levels twice as many) and a window takes nearly twice the memory. Measured, million rounds of evict, insert, query a
    second at d = 0, 16 and 1,024, and bytes an entry:

        sum (8 bytes)          4: 53, 17, 9.1 (29)             8: 83, 20, 10.9 (21)             16: 96, 16, 11.3 (18)
        bloom (2,048 bytes)    4: 1.11, 0.53, 0.47 (3,560)     8: 1.40, 0.65, 0.52 (2,720)
    """
    small = op.operator.cost == "cheap" and op.state.row_bytes <= 64 if op.compiled else False
    return 8 if small or (op.compiled and op.operator.commutative) else 4


def checked_arity(min_arity: int) -> int:
    """A minimum arity that there is."""
    if isinstance(min_arity, bool) or min_arity not in ARITIES:
        raise InputError(f"min_arity is one of {', '.join(map(str, ARITIES))}, not {min_arity!r}")
    return int(min_arity)


class Forest:
    """Trees over one arena. `tree` is a number below `trees`; the trees of a new forest are empty and own no node."""

    def __init__(self, op: TypedOperator, trees: int = 1, min_arity: int | None = None, fingers: bool = True):
        arity = default_arity(op) if min_arity is None else checked_arity(min_arity)
        self.op, self.shape = op, Shape(arity, fingers, op.operator.commutative)
        self.steps = fiba_drivers if op.compiled else twin(fiba_drivers)
        self.A, self.H, self.N, self.V = self._words(ARENA_WORDS), self._words(trees * TREE_WORDS), self._words(0), self._states(0)
        self._gone = 0
        self.A[BUMP] = FIRST_UNIT
        self.grow(SMALLEST)

    def _words(self, count: int):
        return np.zeros(count, np.int64) if self.op.compiled else [0] * count

    def _states(self, slots: int):
        return self.op.state.alloc(slots) if self.op.compiled else [None] * slots

    @property
    def arrays(self) -> tuple:
        """What every entry point of fiba_drivers takes first."""
        return self.shape, self.op, self.A, self.H, self.N, self.V

    @property
    def trees(self) -> int:
        return len(self.H) // TREE_WORDS

    def size(self, tree: int = 0) -> int:
        return int(self.H[tree * TREE_WORDS + SIZE])

    @property
    def entries(self) -> int:
        """Of all trees."""
        return int(np.sum(self.H[SIZE::TREE_WORDS]))

    def height(self, tree: int = 0) -> int:
        """Levels above the leaves."""
        return int(self.H[tree * TREE_WORDS + HEIGHT])

    @property
    def bytes_used(self) -> int:
        """Bytes of the arena up to the last unit ever used: growth slack apart."""
        arity, units = self.shape.min_arity, int(self.A[BUMP])
        state = self.op.state.row_bytes if self.op.compiled else 8
        return units * (8 * (2 * arity + 2) + state * (2 * arity + 1))

    # ---- room ------------------------------------------------------------------------------------------------------

    def grow(self, units: int = 0) -> None:
        """Make room for that many units in all, and for half as many again as there are at least."""
        have = int(self.A[UNITS])
        units = max(units, have + have // 2)
        words, slots = units * (2 * self.shape.min_arity + 2), units * (2 * self.shape.min_arity + 1)
        if not self.op.compiled:
            self.N += [0] * (words - len(self.N))
            self.V += [None] * (slots - len(self.V))
        else:
            N, V = np.empty(words, np.int64), self._states(slots)
            used = int(self.A[BUMP])
            live = min(len(self.N), used * (2 * self.shape.min_arity + 2))
            N[:live] = self.N[:live]
            for new, old in zip(V, self.V, strict=True):
                live = min(len(old), used * (2 * self.shape.min_arity + 1) * (self.op.state.width or 1))
                new[:live] = old[:live]
            self.N, self.V = N, V
        self.A[UNITS] = units

    def compact(self) -> None:
        """Build all trees anew, full and without free nodes, in an arena that fits."""
        full = 2 * self.shape.min_arity - 1
        leaves = self.entries // full + sum(1 for tree in range(self.trees) if self.size(tree))
        units = FIRST_UNIT + leaves + 2 * (leaves // self.shape.min_arity) + SMALLEST
        while True:
            new = Forest(self.op, self.trees, self.shape.min_arity, self.shape.fingers)
            new.grow(units)
            if all(self.steps.step_rebuild(*self.arrays, tree, new.A, new.H, new.N, new.V) for tree in range(self.trees)):
                break
            units += units // 4
        self.A, self.H, self.N, self.V = new.A, new.H, new.N, new.V

    def compact_if_sparse(self) -> None:
        """Compact when less than a quarter of the arena is in use. A rebuild costs what lives, and leaves the arena of one tree
        half full or more (7/8 at arity 8): until it is sparse again, entries have come and gone in proportion. Of many small
        trees it gains little; but `evicted` looks rarely enough for less than 2 mu entries to be moved for each that went."""
        room = int(self.A[BUMP]) * (2 * self.shape.min_arity - 1)
        if room > LEAST and 4 * self.entries < room:
            self.compact()

    def copy(self) -> "Forest":
        """An independent copy."""
        other = object.__new__(Forest)
        other.__dict__.update(self.__dict__)
        for name in ("A", "H", "N"):
            setattr(other, name, getattr(self, name).copy())
        other.V = tuple(array.copy() for array in self.V) if self.op.compiled else list(self.V)
        return other

    # ---- one entry -------------------------------------------------------------------------------------------------

    def insert(self, tree: int, t, x: tuple) -> None:
        while not self.steps.step_insert(*self.arrays, tree, t, x):
            self.grow()

    def evict(self, tree: int) -> None:
        self.steps.step_evict(*self.arrays, tree)
        self.evicted(1)

    def evict_at(self, tree: int, t) -> bool:
        found = bool(self.steps.step_evict_at(*self.arrays, tree, t))
        self.evicted(1 if found else 0)
        return found

    def evicted(self, count: int) -> None:
        """So many entries have gone. Look at the arena once in a while: after a quarter as many as it has units."""
        self._gone += count
        if 4 * self._gone > self.A[BUMP]:  # a leaf of the least arity holds three: looked at well before it is empty
            self._gone = 0
            self.compact_if_sparse()

    def run(self, loop, tree: int, T, *arguments) -> None:
        """A loop over all rows, by its name in fiba_drivers: `run_rows` for the last n of them, `run_cuts` for windows by time; or
        another of the same form."""
        steps, at = getattr(self.steps, loop) if isinstance(loop, str) else loop, 0
        while at < len(T):
            before, done, end = self.size(tree), at, min(len(T), at + max(PIECE, int(self.A[BUMP])))
            at = steps(*self.arrays, tree, T, *arguments, done, end)
            self.evicted(before + at - done - self.size(tree))  # at most: a repeated time adds no entry
            if at < end:
                self.grow()

    # ---- many entries ----------------------------------------------------------------------------------------------

    def bulk_evict(self, tree: int, t) -> int:
        """Remove everything at or before t; how many entries went."""
        count = int(self.steps.step_bulk_evict(*self.arrays, tree, t))
        self.evicted(count)
        return count

    def bulk_insert(self, tree: int, ts, X: tuple) -> None:
        """Insert events in any order; those of one time combine in the order they are given."""
        count = len(ts)
        if self.op.compiled:
            ordered = count < 2 or bool((ts[1:] >= ts[:-1]).all())
            order = np.empty(0, np.int64) if ordered else np.argsort(ts, kind="stable")
        else:
            order = sorted(range(count), key=ts.__getitem__)
        TS, W = self._words(count), self._states(count + 1)
        self.fill(tree, TS, W, self.steps.step_gather(self.shape, self.op, ts, X, order, TS, W))

    def fill(self, tree: int, TS, W, count: int | None = None) -> None:
        """Insert states at times that ascend: what `export` gives, into an empty tree or any other."""
        count = len(TS) if count is None else int(count)
        batch = min(max(count, 1), BATCH)
        G, at = self._words(BATCH_WORDS * batch), 0
        while True:
            at = self.steps.step_bulk_insert(*self.arrays, tree, TS, W, at, count, G, batch)
            if at == count:
                return
            self.grow(int(self.A[BUMP]) + self._units_for(min(count - at, batch)))

    def _units_for(self, count: int) -> int:
        """Units that so many appended entries need, and some."""
        arity = self.shape.min_arity
        return count // (arity - 1) + 2 * LEVELS

    # ---- answers ---------------------------------------------------------------------------------------------------

    def query(self, tree: int, OUT, OK) -> None:
        """The lowered aggregate, into place 0 of OUT and OK."""
        self.steps.step_query(*self.arrays, tree, OUT, OK)

    def query_range(self, tree: int, first, last, OUT, OK) -> bool:
        """That of the times from first to last, both included; whether there are any."""
        return bool(self.steps.step_query_range(*self.arrays, tree, first, last, OUT, OK))

    def rank(self, tree: int, t, inclusive: bool = True) -> int:
        """How many entries are at or before t (inclusive), or before it."""
        return int(self.steps.step_rank(*self.arrays, tree, t, inclusive))

    def select(self, tree: int, j: int):
        """The time of the j-th oldest entry."""
        if not 0 <= j < self.size(tree):
            raise InputError(f"there is no entry {j} among {self.size(tree)}")
        return self.steps.step_select(*self.arrays, tree, j)

    def ends(self, tree: int) -> tuple:
        """The oldest and the youngest time of a tree that is not empty."""
        return self.steps.step_ends(*self.arrays, tree)

    def export(self, tree: int) -> tuple:
        """Times and states of all entries, in order: an array (or list), and state arrays (or a list)."""
        count = self.size(tree)
        TS, W = self._words(count), self._states(count)
        self.steps.step_export(*self.arrays, tree, TS, W)
        return TS, W

    # ---- invariants ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert every invariant of every tree and of the free lists."""
        H = [[int(self.H[i + w]) for w in range(TREE_WORDS)] for i in range(0, len(self.H), TREE_WORDS)]
        N = self.N[: int(self.A[BUMP]) * (2 * self.shape.min_arity + 2)]
        N = N.tolist() if self.op.compiled else N
        fiba_check.check(self.shape, self.op, [int(word) for word in self.A[:5]], H, N, _States(self.op, self.V))

    def __repr__(self) -> str:
        filled = sum(1 for i in range(self.trees) if self.H[i * TREE_WORDS + ROOT])
        return f"<Forest {self.shape} of {self.op!r}: {filled} of {self.trees} trees with entries>"


class _States:
    """State slots, each as the Python object that the interpreted path would hold."""

    def __init__(self, op: TypedOperator, V):
        self.op, self.V = op, V

    def __getitem__(self, i: int):
        if not self.op.compiled:
            return self.V[i]
        if self.op.kind == "wide":
            width = self.op.state.width
            return self.V[0][i * width : (i + 1) * width]
        leaves = iter(self.V)

        def build(shape):
            if isinstance(shape, Leaf):
                value = next(leaves)[i].item()
                return bool(value) if shape.dtype == np.bool_ else value
            parts = [build(part) for part in shape[1:]]
            return tuple(parts) if shape[0] is None else shape[0](*parts)

        return build(self.op.state.shape)
