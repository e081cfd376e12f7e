"""Recalc: combine the whole window again for every query. The oracle that every other algorithm must equal.

No paper: the naive way (reactive-aggregator-2015 calls it "recalculate from scratch"; daba-2015 Figure 20).

    F                            E
    | v  v  v  v  v  v  v  v  v  |      query: v[F] (x) ... (x) v[E-1], n - 1 combines, from the oldest on
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import ordered
from slidewise.algorithms.protocol import Info
from slidewise.algorithms.ring import bulk_evict, evict, fresh, load, save, size

__all__ = ["bulk_evict", "evict", "fresh", "load", "save", "size"]

INFO = Info(
    name="recalc",
    paper="naive; daba-2015 Figure 20",
    summary="combine the whole window again for every query",
    order="in",
    bounds={"insert": "0", "evict": "0", "query": "n - 1"},
    offers=("items", "query_range", "bulk_evict"),
    stores="n",
)

HEADER, RINGS, EXTRAS, WORDS = 2, 1, 0, 0


@inlined
def insert(op, W, V, m, st, s):
    put(op, V, st[1] & m, s)
    return st[0], st[1] + 1


@inlined
def query(op, W, V, m, st, out):
    if st[0] == st[1]:
        return st, reset(op, out)
    return query_range(op, W, V, m, st, 0, st[1] - st[0] - 1, out)


@inlined
def query_range(op, W, V, m, st, i, j, out):
    total = assign(op, out, get(op, V, (st[0] + i) & m))
    for position in range(st[0] + i + 1, st[0] + j + 1):
        total = combine(op, total, total, get(op, V, position & m))
    return st, total


@inlined
def entry(op, W, V, m, st, j, out):
    return st, assign(op, out, get(op, V, (st[0] + j) & m))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[1]):
        put(op, V2, position & m2, get(op, V, position & m))


def check(op, H, W, V, m):
    ordered(H[0], H[1])
    assert H[1] - H[0] <= m + 1, "no more entries than slots"
