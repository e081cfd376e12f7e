"""DABA, the De-Amortised Banker's Aggregator: O(1) combines on every call, whatever came before.

Tangwongsan, Hirzel, Schneider: daba-2015 section 6, Figures 10 and 14, with the caching of Figure 17. The flip of ABA,
done a little with each insert and evict, so that it is finished exactly when it is needed:

            F        L         R         A        B           E
    vals    | v  v   | v  v  v | v  v  v | v  v   | v  v  v   |
    aggs    | o--------------------------------->|| |<------o |
                     | o--->|  | |<----o | o---->||
            '        ' l_L     ' l_R     ' l_A    '    l_B    '
            '---------------- l_F ----------------'

    aggs[i] = vals[i] (x) ... (x) vals[B-1]     in F .. L-1 and in A .. B-1
    aggs[i] = vals[i] (x) ... (x) vals[R-1]     in L .. R-1
    aggs[i] = vals[R] (x) ... (x) vals[i]       in R .. A-1
    aggs[i] = vals[B] (x) ... (x) vals[i]       in B .. E-1
    |l_L| = |l_R|  and  |l_L| + |l_R| + |l_A| + 1 = |l_F| - |l_B|,  or the window is empty

    rest   = vals[R] (x) ... (x) vals[B-1] while l_L and l_R shrink      "cachedRplusA"
    cached = the answer, until the next change                          "cachedFplusB"

Theorem 9: at most 1 combine for a query, 3 for an insert, 2 for an evict. Always.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import alike, assert_alike, fold, ordered, prefixes, suffixes
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="daba",
    paper="daba-2015 section 6, Figure 17",
    summary="ABA with its flip spread over all calls",
    order="in",
    bounds={"insert": "3, average 2", "evict": "2, average 1", "query": "1, cached"},
    offers=("items",),
    stores="2 n + 2",
)

HEADER, RINGS, EXTRAS, WORDS = 7, 2, 2, 0

# vals in slots 0 .. m, aggs in slots m + 1 .. 2 m + 1, then rest and cached


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, 0, 0, 0, 0, reset(op, get(op, V, 2 * (m + 1))), reset(op, get(op, V, 2 * (m + 1) + 1))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], H[3], H[4], H[5], H[6], get(op, V, 2 * (m + 1)), get(op, V, 2 * (m + 1) + 1)


@inlined
def save(op, H, W, V, m, st):
    F, L, R, A, B, E, valid, rest, cached = st
    H[0] = F
    H[1] = L
    H[2] = R
    H[3] = A
    H[4] = B
    H[5] = E
    H[6] = valid
    put(op, V, 2 * (m + 1), rest)
    put(op, V, 2 * (m + 1) + 1, cached)


@inlined
def size(st):
    return st[5] - st[0]


@inlined
def fixup(op, V, m, st):
    F, L, R, A, B, E, valid, rest, cached = st
    if F == B:  # the window is empty, or its one element moves from l_B to l_F as it is
        B = E
        A = E
        R = E
        L = E
    else:
        if L == B:  # flip: the old l_F and l_B become l_L and l_R
            L = F
            A = E
            B = E
            rest = assign(op, rest, get(op, V, m + 1 + ((E - 1) & m)))
        if L == R:  # free ride: all of l_F reaches to its end already
            A += 1
            R += 1
            L += 1
        else:  # shrink l_L and l_R by one
            agg = m + 1 + (L & m)
            put(op, V, agg, combine(op, get(op, V, agg), get(op, V, agg), rest))
            L += 1
            A -= 1
            agg = m + 1 + (A & m)
            if A + 1 == B:
                put(op, V, agg, get(op, V, A & m))
            else:
                put(op, V, agg, combine(op, get(op, V, agg), get(op, V, A & m), get(op, V, m + 1 + ((A + 1) & m))))
    return F, L, R, A, B, E, 0, rest, cached


@inlined
def insert(op, W, V, m, st, s):
    F, L, R, A, B, E, valid, rest, cached = st
    put(op, V, E & m, s)
    agg = m + 1 + (E & m)
    if B == E:
        put(op, V, agg, s)
    else:
        put(op, V, agg, combine(op, get(op, V, agg), get(op, V, m + 1 + ((E - 1) & m)), s))
    return fixup(op, V, m, (F, L, R, A, B, E + 1, valid, rest, cached))


@inlined
def evict(op, W, V, m, st):
    F, L, R, A, B, E, valid, rest, cached = st
    return fixup(op, V, m, (F + 1, L, R, A, B, E, valid, rest, cached))


@inlined
def query(op, W, V, m, st, out):
    F, L, R, A, B, E, valid, rest, cached = st
    if valid == 0:
        if F == E:
            cached = reset(op, cached)
        elif B == E:
            cached = assign(op, cached, get(op, V, m + 1 + (F & m)))
        else:  # l_F is never empty when l_B is not
            cached = combine(op, cached, get(op, V, m + 1 + (F & m)), get(op, V, m + 1 + ((E - 1) & m)))
    return (F, L, R, A, B, E, 1, rest, cached), cached


@inlined
def entry(op, W, V, m, st, j, out):
    return st, assign(op, out, get(op, V, (st[0] + j) & m))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[5]):
        put(op, V2, position & m2, get(op, V, position & m))
        put(op, V2, m2 + 1 + (position & m2), get(op, V, m + 1 + (position & m)))
    put(op, V2, 2 * (m2 + 1), get(op, V, 2 * (m + 1)))
    put(op, V2, 2 * (m2 + 1) + 1, get(op, V, 2 * (m + 1) + 1))


def check(op, H, W, V, m):
    F, L, R, A, B, E, valid = H
    ordered(F, L, R, A, B, E)
    assert E - F <= m + 1, "no more entries than slots"
    assert valid in (0, 1), "a cache is valid or not"
    if E > F:
        assert R - L == A - R, "l_L and l_R are equally long"
        assert (B - L) + 1 == (B - F) - (E - B), "the reversal will be finished exactly on time"
    vals = [V[p & m] for p in range(F, E)]
    aggs = [V[m + 1 + (p & m)] for p in range(F, E)]
    f, l, r, a, b = 0, L - F, R - F, A - F, B - F
    whole = suffixes(op, vals[:b])
    assert_alike(op, aggs[f:l], whole[f:l], "aggs in F .. L-1 reaches to B")
    assert_alike(op, aggs[l:r], suffixes(op, vals[l:r]), "aggs in l_L reaches to R")
    assert_alike(op, aggs[r:a], prefixes(op, vals[r:a]), "aggs in l_R reaches from R")
    assert_alike(op, aggs[a:b], whole[a:b], "aggs in l_A reaches to B")
    assert_alike(op, aggs[b:], prefixes(op, vals[b:]), "aggs in l_B reaches from B")
    if L < R:
        assert alike(op, V[2 * m + 2], fold(op, vals[r:b])), "rest is the sum of l_R and l_A"
    if valid:
        assert alike(op, V[2 * m + 3], fold(op, vals)), "what is cached is the answer"
