"""What the tests of the trees share: operators that tell everything, a window by a dict, and counts of work."""

from __future__ import annotations

import inspect
import textwrap
from functools import cache
from statistics import mean
from typing import NamedTuple

import numpy as np

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import fiba_nodes
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import ARENA_WORDS, ROOT, TIMES, TREE_WORDS

LETTERS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters").typed((object,))
"""Concatenation: any entry lost, doubled or out of place shows."""
TOTAL = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, commutative=True, name="total").typed((object,))
"""Commutes: inserts take the short way."""


class Model:
    """The oracle: a dict, sorted when asked."""

    def __init__(self, op):
        self.op, self.entries = op, {}

    def insert(self, t, x):
        s = self.op.lift_(x)
        self.entries[t] = self.op.combine_(self.entries[t], s) if t in self.entries else s

    def evict(self):
        del self.entries[min(self.entries)]

    def bulk_evict(self, t) -> int:
        gone = [time for time in self.entries if time <= t]
        for time in gone:
            del self.entries[time]
        return len(gone)

    @property
    def times(self) -> list:
        return sorted(self.entries)

    def fold(self, first=None, last=None):
        """The aggregate of a range of times; None where there are none."""
        found = None
        for t in self.times:
            if (first is None or first <= t) and (last is None or t <= last):
                found = self.entries[t] if found is None else self.op.combine_(found, self.entries[t])
        return found


def whole(forest: Forest, tree: int = 0):
    """The answer of an interpreted tree."""
    OUT, OK = [None], [0]
    forest.query(tree, OUT, OK)
    return OUT[0]


def part(forest: Forest, first, last, tree: int = 0):
    OUT, OK = [None], [0]
    return OUT[0] if forest.query_range(tree, first, last, OUT, OK) else None


class Work(NamedTuple):
    """What an operation did. `nodes` are units of the arena, each counted once; `touches` is every word read or written, however
    often: a walk over the same nodes again and again shows there only."""

    combines: float
    nodes: float
    touches: float


class Words(list):
    """Words of an arena that remember which units were looked at, and how often words were."""

    def watch(self, width: int):
        self.width = width
        self.forget()
        return self

    def forget(self):
        self.seen, self.touches = set(), 0

    def __getitem__(self, i):
        if not isinstance(i, slice):
            self.seen.add(i // self.width)
            self.touches += 1
        return super().__getitem__(i)

    def __setitem__(self, i, value):
        self.seen.add(i // self.width)
        self.touches += 1
        super().__setitem__(i, value)


@cache
def grown(n: int, gap: int, min_arity: int, fingers: bool, shuffled: bool) -> tuple[list, ...]:
    """The arena of a tree of n ones, as lists. Shuffled: of entries that came in random order, so few at a time that each finds a
    leaf of its own."""
    op = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, name="plain").typed((np.dtype("i8"),))
    forest = Forest(op, 1, min_arity, fingers)
    times, few = np.arange(n) * gap, n
    if shuffled:
        times, few = np.random.default_rng(n).permutation(times), 64
    for first in range(0, n, max(few, 1)):
        bulk = times[first : first + few]
        forest.bulk_insert(0, bulk, (np.ones(len(bulk), np.int64),))
    return forest.A.tolist(), forest.H.tolist(), forest.N.tolist(), forest.V[0].tolist()


class Counted:
    """A tree of n entries at 0, GAP, 2 GAP ..., built compiled, then run interpreted with its work counted."""

    GAP = 1 << 20

    def __init__(self, n: int, min_arity: int = 2, fingers: bool = True, shuffled: bool = False):
        self.combines = 0

        def combine(a, b):
            self.combines += 1
            return a + b

        op = sw.operator(lift=lambda x: x, combine=combine, identity=0, name="counted").typed((object,))
        self.forest = forest = Forest(op, 1, min_arity, fingers)
        A, H, N, V = grown(n, self.GAP, min_arity, fingers, shuffled)
        forest.A, forest.H, forest.N, forest.V = A[:], H[:], Words(N).watch(2 * min_arity + 2), V[:]
        assert len(forest.A) == ARENA_WORDS and len(forest.H) == TREE_WORDS
        self.n = n

    def work(self, call, *arguments) -> Work:
        """The work of one call."""
        self.combines = 0
        self.forest.N.forget()
        call(0, *arguments)
        return Work(self.combines, len(self.forest.N.seen), self.forest.N.touches)


def each(costs: list[Work]) -> Work:
    """The work of one operation, amortised over all."""
    return Work(*(mean(kind) for kind in zip(*costs)))


def levels(forest: Forest, tree: int = 0) -> list[list]:
    """The times of an interpreted tree by the level of their nodes, leaves first."""
    nodes = twin(fiba_nodes)
    k, N, found = forest.shape, forest.N, [[] for _ in range(forest.height(tree) + 1)]

    def walk(u):
        x = nodes.row(k, u)
        lo, hi, level = nodes.lo_of(N[x]), nodes.hi_of(N[x]), nodes.level_of(N[x])
        found[level] += N[x + TIMES + lo : x + TIMES + hi]
        for i in range(lo, hi + 1 if level else lo):
            walk(nodes.child(k, N, u, i))

    if forest.size(tree):
        walk(forest.H[tree * TREE_WORDS + ROOT])
    return found


def mutant(module, function: str, old: str, new: str):
    """The interpreted twin of a kernel with one piece of its source replaced."""
    kernel = getattr(module, function)
    source = textwrap.dedent(inspect.getsource(kernel.py_func))
    assert source.count(old) == 1, f"{function} does not hold {old!r} once"
    source = source[source.index("def ") :].replace(old, new)
    space: dict = {}
    exec(compile(source, f"<mutant of {function}>", "exec"), vars(twin(module)), space)
    return space[function]


def infect(monkeypatch, module, function: str, old: str, new: str, users=()) -> None:
    """Put a mutant in place of a kernel in the twin of its module, and of the modules that use it."""
    changed = mutant(module, function, old, new)
    for place in (module, *users):
        monkeypatch.setitem(vars(twin(place)), function, changed)
