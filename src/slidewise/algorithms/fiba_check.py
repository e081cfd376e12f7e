"""Every invariant of the trees of an arena, asserted: height, order, arity, links, spines, fingers, aggregates, counts, free lists.

Plain Python, over words and states that can be indexed. Partials are compared with folds over the entries below, so it costs
O(n log n). Whatever it lets pass is safe to run compiled code on.
"""

from itertools import pairwise

from slidewise.algebra.kernel import twin
from slidewise.algorithms import fiba_nodes
from slidewise.algorithms.checking import alike, fold
from slidewise.algorithms.fiba_nodes import (
    BUMP,
    DROPPED,
    FIRST_UNIT,
    HEIGHT,
    INNERS,
    LEAVES,
    LEFT,
    LEFTMOST,
    LEVELS,
    PARENT,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SIZE,
    SPINE,
    SUFFIXES,
    TIMES,
    TREE_WORDS,
    UNITS,
    Shape,
)

nodes = twin(fiba_nodes)


def check(shape: Shape, op, A, heads, N, states) -> None:
    """`heads`: the header of every tree; `states[i]`: the state in slot i as a Python object."""
    arena = _Arena(shape, op, A, N, states)
    for head in heads:
        arena.tree(head)
    arena.free_lists()


class _Arena:
    def __init__(self, shape, op, A, N, states):
        self.k, self.op, self.A, self.N, self.states = shape, op, A, N, states
        self.owner: dict[int, str] = {}
        assert FIRST_UNIT <= A[BUMP] <= A[UNITS], "the arena ends behind its last node"

    def tree(self, H) -> None:
        root = H[ROOT]
        if root == 0:
            assert not any(H[i] for i in range(TREE_WORDS)), "an empty tree is all zeros"
            return
        self.spine = {0: [], LEFT: [], RIGHT: []}
        self.root = root
        assert 0 <= H[HEIGHT] < LEVELS, "the height is sane"
        entries = self.node(root, 0, H[HEIGHT])
        assert H[HEIGHT] < 2 or self.k.min_arity ** (H[HEIGHT] - 2) <= len(entries), "no higher than 2 + log_mu(n)"
        assert len(entries) == H[SIZE], f"{len(entries)} entries, counted as {H[SIZE]}"
        times = [t for t, _ in entries]
        assert all(a < b for a, b in pairwise(times)), "times are in order, and each is there once"
        if self.k.fingers:
            assert self.spine[LEFT] == self.chain(root, nodes.lo_of), "left flags are on the left spine, and only there"
            assert self.spine[RIGHT] == self.chain(root, nodes.hi_of), "right flags are on the right spine, and only there"
            assert H[LEFTMOST] == (self.spine[LEFT] or [root])[-1], "the left finger is on the first leaf"
            assert H[RIGHTMOST] == (self.spine[RIGHT] or [root])[-1], "the right finger is on the last leaf"
            for u in [root, *self.spine[LEFT][:-1], *self.spine[RIGHT]]:
                self.own(u)
            self.suffixes(H)
        else:
            assert not self.spine[LEFT] + self.spine[RIGHT], "no flags without fingers"
            assert alike(self.op, self.state(nodes.own_slot(self.k, root)), fold(self.op, [v for _, v in entries]))

    def head(self, u):
        return self.N[nodes.row(self.k, u)]

    def state(self, i):
        return self.states[i]

    def chain(self, u, side) -> list:
        found = []
        while nodes.level_of(self.head(u)) > 0:
            u = nodes.child(self.k, self.N, u, side(self.head(u)))
            found.append(u)
        return found

    def claim(self, u, level, what) -> None:
        """No unit has two owners, and none lies outside."""
        for unit in range(u, u + (2 if level else 1)):
            assert FIRST_UNIT <= unit < self.A[BUMP], f"unit {unit} of a {what} is in the arena"
            assert unit not in self.owner, f"unit {unit} is part of a {what} and of a {self.owner[unit]}"
            self.owner[unit] = what

    def node(self, u, parent, level) -> list:
        """Checks u and all below it; returns its entries in order."""
        k, N = self.k, self.N
        self.claim(u, level, "node")
        head = self.head(u)
        lo, hi = nodes.lo_of(head), nodes.hi_of(head)
        assert nodes.level_of(head) == level, "all leaves are at the same depth"
        assert N[nodes.row(k, u) + PARENT] == parent, "a child knows its parent"
        flags = head & SPINE
        assert flags in self.spine, "at most one spine flag"
        assert parent or not flags, "no spine flag at the root"
        if flags:
            self.spine[flags].append(u)
        assert 0 <= lo <= hi <= nodes.cap(k), "entries lie in the row"
        fewest = 1 if parent == 0 or flags else k.min_arity - 1
        assert fewest <= hi - lo <= nodes.cap(k) - 1, f"{hi - lo} entries at level {level}, arity is out of bounds"
        entries = []
        for i in range(lo, hi + 1):
            if level:
                c = nodes.child(k, N, u, i)
                inside = self.node(c, u, level - 1)
                if not self.head(c) & SPINE:
                    count, at = nodes.below(k, N, u, i), nodes.child_slot(k, u, i)
                    assert count == len(inside), f"{len(inside)} entries below a child, counted as {count}"
                    assert alike(self.op, self.state(at), fold(self.op, [v for _, v in inside])), "an up-aggregate is stale"
                entries += inside
            if i < hi:
                entries.append((N[nodes.row(k, u) + TIMES + i], self.state(nodes.slot(k, u) + i)))
        return entries

    def suffixes(self, H) -> None:
        """The first leaf of a tree with a left spine: the left aggregate from each entry on."""
        assert bool(H[SUFFIXES]) == bool(H[HEIGHT]), "suffixes are kept exactly where there is a left spine"
        if not H[HEIGHT]:
            return
        k, u = self.k, H[LEFTMOST]
        self.claim(H[SUFFIXES], 0, "unit of suffixes")
        p = self.N[nodes.row(k, u) + PARENT]
        above = [] if p == self.root else [self.state(nodes.own_slot(k, p))]
        lo, hi = nodes.lo_of(self.head(u)), nodes.hi_of(self.head(u))
        for i in range(lo, hi):
            values = [self.state(nodes.slot(k, u) + j) for j in range(i, hi)]
            found = self.state(nodes.slot(k, H[SUFFIXES]) + i)
            assert alike(self.op, found, fold(self.op, values + above)), "the left aggregate of an entry of the first leaf is stale"

    def own(self, u) -> None:
        """The inner, left or right aggregate, from its definition."""
        k, N = self.k, self.N
        head = self.head(u)
        lo, hi, inner = nodes.lo_of(head), nodes.hi_of(head), nodes.level_of(head) > 0
        parts = []
        for i in range(lo, hi + 1):
            first_or_last = (i == lo and not head & RIGHT) or (i == hi and not head & LEFT)
            if inner and not first_or_last:
                parts.append(self.state(nodes.child_slot(k, u, i)))
            if i < hi:
                parts.append(self.state(nodes.slot(k, u) + i))
        p = N[nodes.row(k, u) + PARENT]
        if p and p != self.root:
            above = self.state(nodes.own_slot(k, p))
            parts = [*parts, above] if head & LEFT else [above, *parts]
        kind = "left" if head & LEFT else "right" if head & RIGHT else "inner"
        found = self.state(nodes.own_slot(k, u))
        level = nodes.level_of(head)
        assert alike(self.op, found, fold(self.op, parts)), f"the {kind} aggregate of a node at level {level} is stale"

    def free_lists(self) -> None:
        k, N = self.k, self.N
        for of, what in ((LEAVES, "free leaf"), (INNERS, "free inner node"), (DROPPED, "dropped node")):
            u = self.A[of]
            while u:
                level = 0 if of == LEAVES else 1
                self.claim(u, level, what)
                if of == DROPPED:
                    self.dropped(u)
                u = N[nodes.row(k, u) + PARENT]
        lost = set(range(FIRST_UNIT, self.A[BUMP])) - set(self.owner)
        assert not lost, f"units {sorted(lost)[:8]} are neither in a tree nor free"

    def dropped(self, u) -> None:
        head = self.head(u)
        level = nodes.level_of(head)
        assert 0 < level < LEVELS, "only inner nodes are dropped with their children"
        assert nodes.lo_of(head) <= nodes.hi_of(head) <= nodes.cap(self.k), "children of a dropped node lie in its row"
        for i in range(nodes.lo_of(head), nodes.hi_of(head) + 1):
            c = nodes.child(self.k, self.N, u, i)
            self.claim(c, level - 1, "dropped node")
            if level > 1:
                self.dropped(c)
