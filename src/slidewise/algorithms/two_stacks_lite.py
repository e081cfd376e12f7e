"""Two-Stacks Lite: amortised O(1) in one array of n partials and one more.

Tangwongsan, Hirzel, Schneider: daba-2015 section 4 (Two-Stacks), named "Lite" in bulk-fiba-2023 section 7. Instead of
two stacks of (value, aggregate), one queue whose front part holds suffix aggregates in place of values:

      F                 B              E
      | s  s  s  s  s   | v  v  v  v   |        s[i] = v[i] (x) ... (x) v[B-1]
      '---- front ------'---- back ----'        back = v[B] (x) ... (x) v[E-1]

    query   s[F] (x) back                          1 combine
    insert  append v, back = back (x) v            1 combine
    evict   drop s[F]; if the front is empty, first turn the back into the front: n - 1 combines, amortised 1

Positions only grow; a slot is `position & m`.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import combine, get, put, reset
from slidewise.algorithms.checking import alike, fold, ordered
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="two_stacks_lite",
    paper="daba-2015 section 4; bulk-fiba-2023 section 7",
    summary="one queue; its front part holds suffix aggregates in place of values",
    order="in",
    bounds={"insert": "1", "evict": "amortised 1, worst n - 1", "query": "1"},
    stores="n + 1",
)

HEADER, RINGS, EXTRAS, WORDS = 3, 1, 1, 0


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, reset(op, get(op, V, m + 1))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], get(op, V, m + 1)


@inlined
def save(op, H, W, V, m, st):
    F, B, E, back = st
    H[0] = F
    H[1] = B
    H[2] = E
    put(op, V, m + 1, back)


@inlined
def size(st):
    return st[2] - st[0]


@inlined
def insert(op, W, V, m, st, s):
    F, B, E, back = st
    put(op, V, E & m, s)
    return F, B, E + 1, combine(op, back, back, s)


@inlined
def evict(op, W, V, m, st):
    F, B, E, back = st
    if F == B:
        total = get(op, V, (E - 1) & m)
        for position in range(E - 2, F - 1, -1):
            slot = position & m
            total = combine(op, get(op, V, slot), get(op, V, slot), total)
            put(op, V, slot, total)
        B = E
        back = reset(op, back)
    return F + 1, B, E, back


@inlined
def query(op, W, V, m, st, out):
    F, B, E, back = st
    if F == B:
        return st, back
    return st, combine(op, out, get(op, V, F & m), back)


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[2]):
        put(op, V2, position & m2, get(op, V, position & m))
    put(op, V2, m2 + 1, get(op, V, m + 1))


def check(op, H, W, V, m):
    F, B, E = H
    ordered(F, B, E)
    assert E - F <= m + 1, "no more entries than slots"
    assert alike(op, V[m + 1], fold(op, (V[p & m] for p in range(B, E)))), "back is the aggregate of the back part"
    if op.operator.selective:  # s[i] holds v[i] or s[i + 1]; the values themselves are gone
        for p in range(F, B - 1):
            whole, rest = V[p & m], V[(p + 1) & m]
            assert alike(op, op.combine_(whole, rest), whole), f"s[{p}] covers s[{p + 1}]"
