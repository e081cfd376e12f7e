"""Two-Stacks: amortised O(1) from a queue made of two stacks of (value, aggregate).

Tangwongsan, Hirzel, Schneider: daba-2015 section 4, Figures 4 and 5, with the cached query of its last remark. Both
stacks share one array; they grow towards each other, so their n entries never meet:

    slot   0                 f-1            m-b+1                 m
    val  | v4   v3   v2   v1  |      .      |  v7    v6     v5    |      v1 is the oldest, v7 the youngest
    agg  | 4..4 3..4 2..4 1..4|      .      | 5..7   5..6   5..5  |
         '---- front, top ->--'             '-<- top, back -------'

    front.agg[i] = val[i] (x) ... (x) val[0]             cumulative from the bottom, older on the left
    back.agg[k]  = val of the bottom (x) ... (x) val[k]

    query   top of front (x) top of back, cached until the next change         at most 1 combine
    insert  push on the back                                                   at most 1 combine
    evict   pop the front; if it is empty, first flip the back onto it         amortised 1, worst n - 1
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import alike, assert_alike, fold, prefixes, suffixes
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="two_stacks",
    paper="daba-2015 section 4, Figure 5",
    summary="a queue from two stacks that keep a running aggregate",
    order="in",
    bounds={"insert": "1", "evict": "amortised 1, worst n - 1", "query": "1, cached"},
    offers=("items",),
    stores="2 n + 1",
)

HEADER, RINGS, EXTRAS, WORDS = 3, 2, 1, 0

# st: f and b, the heights of the stacks; valid, whether `cached` is the answer; cached


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, reset(op, get(op, V, 2 * (m + 1)))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], get(op, V, 2 * (m + 1))


@inlined
def save(op, H, W, V, m, st):
    f, b, valid, cached = st
    H[0] = f
    H[1] = b
    H[2] = valid
    put(op, V, 2 * (m + 1), cached)


@inlined
def size(st):
    return st[0] + st[1]


@inlined
def insert(op, W, V, m, st, s):
    f, b, valid, cached = st
    slot = m - b
    put(op, V, slot, s)
    agg = m + 1 + slot
    if b == 0:
        put(op, V, agg, s)
    else:
        put(op, V, agg, combine(op, get(op, V, agg), get(op, V, agg + 1), s))
    return f, b + 1, 0, cached


@inlined
def flip(op, V, m, f, b):
    """Pop the back and push on the front, value by value. The slot pushed to is free, or the one just popped."""
    while b > 0:
        popped = m - b + 1
        put(op, V, f, get(op, V, popped))
        agg = m + 1 + f
        if f == 0:
            put(op, V, agg, get(op, V, f))
        else:
            put(op, V, agg, combine(op, get(op, V, agg), get(op, V, f), get(op, V, agg - 1)))
        f += 1
        b -= 1
    return f, b


@inlined
def evict(op, W, V, m, st):
    f, b, valid, cached = st
    if f == 0:
        f, b = flip(op, V, m, f, b)
    return f - 1, b, 0, cached


@inlined
def query(op, W, V, m, st, out):
    f, b, valid, cached = st
    if valid == 0:
        if f == 0:
            if b == 0:
                cached = reset(op, cached)
            else:
                cached = assign(op, cached, get(op, V, m + 1 + m - b + 1))
        elif b == 0:
            cached = assign(op, cached, get(op, V, m + f))
        else:
            cached = combine(op, cached, get(op, V, m + f), get(op, V, m + 1 + m - b + 1))
    return (f, b, 1, cached), cached


@inlined
def entry(op, W, V, m, st, j, out):
    f = st[0]
    return st, assign(op, out, get(op, V, f - 1 - j if j < f else m - (j - f)))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    for i in range(H[0]):
        put(op, V2, i, get(op, V, i))
        put(op, V2, m2 + 1 + i, get(op, V, m + 1 + i))
    for k in range(H[1]):
        put(op, V2, m2 - k, get(op, V, m - k))
        put(op, V2, m2 + 1 + m2 - k, get(op, V, m + 1 + m - k))
    put(op, V2, 2 * (m2 + 1), get(op, V, 2 * (m + 1)))


def check(op, H, W, V, m):
    f, b, valid = H
    assert min(f, b) >= 0, "a stack has no negative height"
    assert f + b <= m + 1, "the stacks do not meet"
    assert valid in (0, 1), "a cache is valid or not"
    front, back = V[:f], [V[m - k] for k in range(b)]
    fronts, backs = [V[m + 1 + i] for i in range(f)], [V[2 * m + 1 - k] for k in range(b)]
    assert_alike(op, fronts[::-1], suffixes(op, front[::-1]), "front.agg is the sum of the front from its bottom")
    assert_alike(op, backs, prefixes(op, back), "back.agg is the sum of the back from its bottom")
    if valid:
        assert alike(op, V[2 * m + 2], fold(op, front[::-1] + back)), "what is cached is the answer"
