"""ABA, the Amortised Banker's Aggregator: Two-Stacks in place, in one queue of values and one of aggregates.

Tangwongsan, Hirzel, Schneider: daba-2015 section 5, Figures 6 and 7.

            F                 B              E
    vals    | v  v  v  v  v   | v  v  v  v   |
    aggs    | o--------->|    | |<---------o |      aggs[i] = vals[i] (x) ... (x) vals[B-1]    in F .. B-1
            '----- l_F -------'----- l_B ----'      aggs[i] = vals[B] (x) ... (x) vals[i]      in B .. E-1

    query   aggs[F] (x) aggs[E-1]                          at most 1 combine
    insert  append v and aggs[E-1] (x) v                   at most 1 combine
    evict   drop the first; if l_F is empty, first flip    amortised 1, worst n - 1

No value is ever moved: the flip rewrites aggs from right to left.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import assert_alike, ordered, prefixes, suffixes
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="aba",
    paper="daba-2015 section 5, Figure 7",
    summary="two-stacks in place: a queue of values beside a queue of aggregates",
    order="in",
    bounds={"insert": "1", "evict": "amortised 1, worst n - 1", "query": "1"},
    offers=("items",),
    stores="2 n",
)

HEADER, RINGS, EXTRAS, WORDS = 3, 2, 0, 0

# vals in slots 0 .. m, aggs in slots m + 1 .. 2 m + 1


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2]


@inlined
def save(op, H, W, V, m, st):
    H[0] = st[0]
    H[1] = st[1]
    H[2] = st[2]


@inlined
def size(st):
    return st[2] - st[0]


@inlined
def insert(op, W, V, m, st, s):
    F, B, E = st
    put(op, V, E & m, s)
    agg = m + 1 + (E & m)
    if B == E:
        put(op, V, agg, s)
    else:
        put(op, V, agg, combine(op, get(op, V, agg), get(op, V, m + 1 + ((E - 1) & m)), s))
    return F, B, E + 1


@inlined
def evict(op, W, V, m, st):
    F, B, E = st
    if F == B:
        total = assign(op, get(op, V, m + 1 + ((E - 1) & m)), get(op, V, (E - 1) & m))
        put(op, V, m + 1 + ((E - 1) & m), total)
        for position in range(E - 2, F - 1, -1):
            agg = m + 1 + (position & m)
            total = combine(op, get(op, V, agg), get(op, V, position & m), total)
            put(op, V, agg, total)
        B = E
    return F + 1, B, E


@inlined
def query(op, W, V, m, st, out):
    F, B, E = st
    if F == E:
        return st, reset(op, out)
    if F == B:
        return st, get(op, V, m + 1 + ((E - 1) & m))
    if B == E:
        return st, get(op, V, m + 1 + (F & m))
    return st, combine(op, out, get(op, V, m + 1 + (F & m)), get(op, V, m + 1 + ((E - 1) & m)))


@inlined
def entry(op, W, V, m, st, j, out):
    return st, assign(op, out, get(op, V, (st[0] + j) & m))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[2]):
        put(op, V2, position & m2, get(op, V, position & m))
        put(op, V2, m2 + 1 + (position & m2), get(op, V, m + 1 + (position & m)))


def check(op, H, W, V, m):
    F, B, E = H
    ordered(F, B, E)
    assert E - F <= m + 1, "no more entries than slots"
    vals, aggs = [V[p & m] for p in range(F, E)], [V[m + 1 + (p & m)] for p in range(F, E)]
    assert_alike(op, aggs[: B - F], suffixes(op, vals[: B - F]), "aggs in l_F reaches to its end")
    assert_alike(op, aggs[B - F :], prefixes(op, vals[B - F :]), "aggs in l_B reaches from its start")
