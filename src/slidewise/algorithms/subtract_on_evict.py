"""Subtract-on-Evict: one running aggregate, and the inverse of what leaves.

daba-2015 section 8, Figure 19 (also Panes for invertible aggregates, and R-Int).

      F                       E
      | v  v  v  v  v  v  v   |        agg = v[F] (x) ... (x) v[E-1]

    query   agg                                   0 combines
    insert  append v, agg = agg (x) v             1 combine
    evict   agg = agg without v[F]                1 inverse

Only for operators that declare an exact inverse. Floating-point states are refused even then: what was added and taken
away leaves its rounding error behind, and one infinity or NaN poisons the window for good. Whoever wants it all the
same insists.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, inverse, put, reset
from slidewise.algorithms.checking import alike, fold, inexact, ordered
from slidewise.algorithms.protocol import Info, has_float_states

INFO = Info(
    name="subtract_on_evict",
    paper="daba-2015 section 8, Figure 19",
    summary="one running aggregate; what leaves is subtracted",
    order="in",
    bounds={"insert": "1", "evict": "1 inverse", "query": "0"},
    needs=("inverse",),
    offers=("items",),
    stores="n + 1",
)

HEADER, RINGS, EXTRAS, WORDS = 2, 1, 1, 0


def refuse(op, insist=False):
    if not op.operator.invertible:
        return (
            f"subtract_on_evict needs an exact inverse, and {op.name} declares none; two_stacks_lite and daba_lite need "
            "only associativity"
        )
    if not insist and has_float_states(op):
        return (
            f"subtract_on_evict would subtract floating-point numbers for {op.name}: the error stays in the window, "
            "and so does a NaN or an infinity; two_stacks_lite and daba_lite do not subtract"
        )
    return None


@inlined
def fresh(op, W, V, m):
    return 0, 0, reset(op, get(op, V, m + 1))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], get(op, V, m + 1)


@inlined
def save(op, H, W, V, m, st):
    H[0] = st[0]
    H[1] = st[1]
    put(op, V, m + 1, st[2])


@inlined
def size(st):
    return st[1] - st[0]


@inlined
def insert(op, W, V, m, st, s):
    F, E, agg = st
    put(op, V, E & m, s)
    return F, E + 1, combine(op, agg, agg, s)


@inlined
def evict(op, W, V, m, st):
    F, E, agg = st
    agg = inverse(op, agg, agg, get(op, V, F & m))
    if F + 1 == E:  # nothing is left: nor is an error, where someone insisted on floats
        agg = reset(op, agg)
    return F + 1, E, agg


@inlined
def query(op, W, V, m, st, out):
    return st, st[2]


@inlined
def entry(op, W, V, m, st, j, out):
    return st, assign(op, out, get(op, V, (st[0] + j) & m))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for position in range(H[0], H[1]):
        put(op, V2, position & m2, get(op, V, position & m))
    put(op, V2, m2 + 1, get(op, V, m + 1))


def check(op, H, W, V, m):
    F, E = H
    ordered(F, E)
    assert E - F <= m + 1, "no more entries than slots"
    rounded = inexact(V[m + 1])  # someone has insisted
    assert rounded or alike(op, V[m + 1], fold(op, (V[p & m] for p in range(F, E)))), "agg is the aggregate of the window"
