"""FlatFIT: partials and pointers that say how far they reach; a query that walks the pointers shortens them.

Shein, Chrysanthis, Labrinidis: FlatFIT (2017), as described in slickdeque-2018 sections 2.2 and 4.1.

      F                                   E
      | p    p    p    p    p    p    p   |         p[i] = v[i] (x) ... (x) v[reach[i] - 1]
        '--------------^'---------^'---^--^         reach[i] > i

    query   walk F -> reach[F] -> ... -> E with the positions on a stack, then pop: each of them takes in what lies
            behind it and reaches E from now on
    insert  append v, it reaches one further           0 combines
    evict   drop p[F]                                  0 combines

Each slide of a full window costs 3 combines amortised (n - 1 in the worst: the window reset, once in n + 1 slides). Of
the r youngest for *every* r up to n, all in one slide: 1 combine an answer.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import combine, get, put, reset
from slidewise.algorithms.checking import alike, ordered
from slidewise.algorithms.protocol import Info
from slidewise.algorithms.ring import bulk_evict, evict, fresh, load, save, size

__all__ = ["bulk_evict", "evict", "fresh", "load", "save", "size"]

INFO = Info(
    name="flatfit",
    paper="Shein et al. 2017; slickdeque-2018 sections 2.2, 4.1",
    summary="partials with pointers; a query shortens the paths it walks",
    order="in",
    bounds={"insert": "0", "evict": "0", "query": "amortised 3 a slide, worst n - 1", "all suffixes": "1 an answer"},
    offers=("query_youngest", "bulk_evict"),
    stores="n",
)

HEADER, RINGS, EXTRAS, WORDS = 2, 1, 0, 2

# reach in words 0 .. m, the stack of positions in words m + 1 .. 2 m + 1


@inlined
def insert(op, W, V, m, st, s):
    F, E = st
    put(op, V, E & m, s)
    W[E & m] = E + 1
    return F, E + 1


@inlined
def walk(op, W, V, m, start, E):
    """Make `start`, and every position on its way, reach E."""
    depth = 0
    position = start
    while W[position & m] != E:
        W[m + 1 + depth] = position
        depth += 1
        position = W[position & m]
    while depth > 0:
        behind = position & m
        depth -= 1
        position = W[m + 1 + depth]
        slot = position & m
        put(op, V, slot, combine(op, get(op, V, slot), get(op, V, slot), get(op, V, behind)))
        W[slot] = E
    return get(op, V, start & m)


@inlined
def query(op, W, V, m, st, out):
    if st[0] == st[1]:
        return st, reset(op, out)
    return st, walk(op, W, V, m, st[0], st[1])


@inlined
def query_youngest(op, W, V, m, st, r, out):
    return st, walk(op, W, V, m, st[1] - r, st[1])


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[1]):
        put(op, V2, position & m2, get(op, V, position & m))
        W2[position & m2] = W[position & m]


def check(op, H, W, V, m):
    F, E = H
    ordered(F, E)
    assert E - F <= m + 1, "no more entries than slots"
    for p in range(F, E):
        reach = W[p & m]
        assert p < reach <= E, f"the partial at {p} reaches further, and no further than the window"
        after = W[(p + 1) & m]
        if op.operator.selective and p + 1 < reach and after == reach:
            whole, rest = V[p & m], V[(p + 1) & m]
            assert alike(op, op.combine_(whole, rest), whole), f"the partial at {p} covers the one at {p + 1}"
