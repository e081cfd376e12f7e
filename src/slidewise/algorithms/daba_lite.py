"""DABA Lite: O(1) combines on every call, in one array of n partials and two more.

DABA (daba-2015 section 6) with the storage of bulk-fiba-2023 section 7: the incremental reversal writes aggregates over
values in place, and keeps two partials aside:

      F        L         R         A        B           E
      | s  s   | t  t  t | v  v  v | s  s   | v  v  v   |
      '        ' l_L     ' l_R     ' l_A    '    l_B    '
      '---------------- l_F ----------------'

    s[i] = v[i] (x) ... (x) v[B-1]      in F .. L-1 and in A .. B-1
    t[i] = v[i] (x) ... (x) v[R-1]      in l_L
    mid  = v[R] (x) ... (x) v[B-1]      of l_R and l_A
    back = v[B] (x) ... (x) v[E-1]      of l_B
    |l_L| = |l_R|  and  |l_L| + |l_R| + |l_A| + 1 = |l_F| - |l_B|,  or the window is empty

    query   s[F] (x) back                              1 combine
    insert  append v, back = back (x) v, then step     at most 3
    evict   drop s[F], then step                       at most 2
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import alike, fold, ordered
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="daba_lite",
    paper="daba-2015 section 6; bulk-fiba-2023 section 7",
    summary="DABA in one array: the incremental reversal writes over the values",
    order="in",
    bounds={"insert": "3", "evict": "2", "query": "1"},
    stores="n + 2",
)

HEADER, RINGS, EXTRAS, WORDS = 6, 1, 2, 0


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, 0, 0, 0, reset(op, get(op, V, m + 1)), reset(op, get(op, V, m + 2))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], H[3], H[4], H[5], get(op, V, m + 1), get(op, V, m + 2)


@inlined
def save(op, H, W, V, m, st):
    F, L, R, A, B, E, mid, back = st
    H[0] = F
    H[1] = L
    H[2] = R
    H[3] = A
    H[4] = B
    H[5] = E
    put(op, V, m + 1, mid)
    put(op, V, m + 2, back)


@inlined
def size(st):
    return st[5] - st[0]


@inlined
def step(op, V, m, st):
    """One unit of reversal."""
    F, L, R, A, B, E, mid, back = st
    if L == B:  # flip: what was the front becomes l_L, what was the back l_R
        L = F
        R = B
        A = E
        B = E
        mid = assign(op, mid, back)
        back = reset(op, back)
    if F != B:
        if A != R:  # the last of l_R becomes the first of l_A
            A -= 1
            if A + 1 != B:
                slot = A & m
                put(op, V, slot, combine(op, get(op, V, slot), get(op, V, slot), get(op, V, (A + 1) & m)))
        if L != R:  # the first of l_L reaches to B now
            slot = L & m
            put(op, V, slot, combine(op, get(op, V, slot), get(op, V, slot), mid))
            L += 1
        else:  # free ride: all of l_F reaches to B already
            L += 1
            R += 1
            A += 1
            if A == B:
                mid = reset(op, mid)
            else:
                mid = assign(op, mid, get(op, V, A & m))
    else:
        mid = reset(op, mid)
        back = reset(op, back)
    return F, L, R, A, B, E, mid, back


@inlined
def insert(op, W, V, m, st, s):
    F, L, R, A, B, E, mid, back = st
    put(op, V, E & m, s)
    return step(op, V, m, (F, L, R, A, B, E + 1, mid, combine(op, back, back, s)))


@inlined
def evict(op, W, V, m, st):
    F, L, R, A, B, E, mid, back = st
    return step(op, V, m, (F + 1, L, R, A, B, E, mid, back))


@inlined
def query(op, W, V, m, st, out):
    F, L, R, A, B, E, mid, back = st
    if F == B:
        return st, back
    return st, combine(op, out, get(op, V, F & m), back)


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[5]):
        put(op, V2, position & m2, get(op, V, position & m))
    put(op, V2, m2 + 1, get(op, V, m + 1))
    put(op, V2, m2 + 2, get(op, V, m + 2))


def check(op, H, W, V, m):
    F, L, R, A, B, E = H
    ordered(F, L, R, A, B, E)
    assert E - F <= m + 1, "no more entries than slots"
    if E > F:
        assert R - L == A - R, "l_L and l_R are equally long"
        assert (B - L) + 1 == (B - F) - (E - B), "the reversal will be finished exactly on time"
    values = [V[p & m] for p in range(R, A)] + ([V[A & m]] if A < B else [])
    assert alike(op, V[m + 1], fold(op, values)), "mid is the sum of l_R and l_A"
    assert alike(op, V[m + 2], fold(op, (V[p & m] for p in range(B, E)))), "back is the sum of l_B"
    if L < R:  # s[L-1] = v[L-1] (x) t[L] (x) mid; of the reversal done so far only this link can be seen
        middle = op.combine_(V[L & m], V[m + 1])
        if op.operator.selective and F < L:
            assert alike(op, op.combine_(V[(L - 1) & m], middle), V[(L - 1) & m]), "s[L-1] covers l_L, l_R and l_A"
    if op.operator.selective:
        for start, end in ((F, L), (L, R), (A, B)):
            for p in range(start, end - 1):
                whole, rest = V[p & m], V[(p + 1) & m]
                assert alike(op, op.combine_(whole, rest), whole), f"the aggregate at {p} covers the one at {p + 1}"
