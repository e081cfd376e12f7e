"""AMTA, the Amortised Monoid Tree Aggregator: O(1) amortised, and one bulk evict of any size in O(log n).

Villalba, Berral, Carrera: Constant-time sliding window framework with reduced memory footprint and efficient bulk
evictions (2019), as described in bulk-fiba-2023 sections 2 and 7. A forest of dyadic intervals (dyadic.py), filled like a
binary counter:

                          [---------------]
              [-------]   [-------]           [-------]
          [ ] [ ]   [ ]   [ ]   [ ]   [ ]     [ ]   [ ]  [ ]
           F .-----------------------------.B.------------. E
           front: suffix sums over its cover      back: one running aggregate

The front [F, B) is covered by its largest intervals. Each of these holds, in its own place, the aggregate of everything
from its start up to B (what it held alone is not needed again: to evict from it, it is cut into its parts). So:

    query        first interval of the front (x) back                                     1 combine
    insert       append v, back = back (x) v, and one for each interval that becomes      amortised below 2,
                 complete behind B                                                        worst 1 + log2 n
    evict        cut the first interval along its left edge; if the front is empty,       amortised below 2,
                 cover all of the back instead                                            worst 2 log2 n
    bulk_evict   drop whole intervals, cut one along the path of the new F                worst 2 log2 n

Invariants: intervals inside [B, E), and those strictly inside an interval of the front's cover, hold their own
aggregate.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import combine, get, put, reset
from slidewise.algorithms.checking import alike, fold, ordered
from slidewise.algorithms.dyadic import slot_of, widest, widest_before
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="amta",
    paper="Villalba et al. 2019; bulk-fiba-2023 section 7",
    summary="a forest like a binary counter; evicting any number cuts it along one path",
    order="in",
    bounds={
        "insert": "amortised 2, worst 1 + log2 n",
        "evict": "amortised 2, worst 2 log2 n",
        "bulk_evict": "worst 2 log2 n",
        "query": "1",
    },
    offers=("bulk_evict",),
    stores="2 n + 1",
)

HEADER, RINGS, EXTRAS, WORDS = 3, 2, 1, 0


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, reset(op, get(op, V, 2 * (m + 1)))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], get(op, V, 2 * (m + 1))


@inlined
def save(op, H, W, V, m, st):
    F, B, E, back = st
    H[0] = F
    H[1] = B
    H[2] = E
    put(op, V, 2 * (m + 1), back)


@inlined
def size(st):
    return st[2] - st[0]


@inlined
def insert(op, W, V, m, st, s):
    F, B, E, back = st
    slot = slot_of(m, E, 0)
    put(op, V, slot, s)
    E += 1
    width = 2
    while slot > 1 and slot & 1 == 1 and E - width >= B:  # intervals that begin before B are never asked for
        slot >>= 1
        put(op, V, slot, combine(op, get(op, V, slot), get(op, V, 2 * slot), get(op, V, 2 * slot + 1)))
        width *= 2
    return F, B, E, combine(op, back, back, s)


@inlined
def cover(op, V, m, low, high, B):
    """Turn the intervals that cover [low, high) into suffix sums up to B; one that begins at `high` is so already."""
    if high < B:
        behind = slot_of(m, high, widest(0, high, B))
        level = 0
    else:  # the last one ends at B: it is its own suffix sum
        level = widest_before(0, low, high)
        high -= 1 << level
        behind = slot_of(m, high, level)
    while low < high:
        level = widest_before(level, low, high)
        high -= 1 << level
        slot = slot_of(m, high, level)
        put(op, V, slot, combine(op, get(op, V, slot), get(op, V, slot), get(op, V, behind)))
        behind = slot


@inlined
def evict(op, W, V, m, st):
    return bulk_evict(op, W, V, m, st, 1)


@inlined
def bulk_evict(op, W, V, m, st, count):
    F, B, E, back = st
    new = F + count
    if new > B:  # the front is gone, and part of the back: the rest of it becomes the front
        if new < E:
            cover(op, V, m, new, E, E)
        B = E
        back = reset(op, back)
    elif new < B:
        level = widest(0, F, B)
        while F + (1 << level) <= new:  # intervals that leave whole
            F += 1 << level
            level = widest(level, F, B)
        if F < new:
            cover(op, V, m, new, F + (1 << level), B)
    return new, B, E, back


@inlined
def query(op, W, V, m, st, out):
    F, B, E, back = st
    if F == B:
        return st, back
    first = get(op, V, slot_of(m, F, widest(0, F, B)))
    if B == E:
        return st, first
    return st, combine(op, out, first, back)


@inlined
def move_intervals(op, V, m, V2, m2, low, high):
    level = 0
    while 1 << level <= high - low:
        width = 1 << level
        start = (low + width - 1) & -width
        while start + width <= high:
            put(op, V2, slot_of(m2, start, level), get(op, V, slot_of(m, start, level)))
            start += width
        level += 1


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    move_intervals(op, V, m, V2, m2, H[0], H[1])
    move_intervals(op, V, m, V2, m2, H[1], H[2])
    put(op, V2, 2 * (m2 + 1), get(op, V, 2 * (m + 1)))


def check(op, H, W, V, m):
    F, B, E = H
    ordered(F, B, E)
    assert E - F <= m + 1, "no more entries than slots"
    node = slot_of.py_func
    assert alike(op, V[2 * m + 2], fold(op, (V[node(m, p, 0)] for p in range(B, E)))), "back is the sum of [B, E)"
    tops = []
    while F < B:
        level = widest.py_func(0, F, B)
        tops.append((F, level))
        F += 1 << level
    for k, (start, level) in enumerate(tops):
        for inner in range(1, level):
            _check_level(op, V, m, start, start + (1 << level), inner)
        if level > 0:  # a single event of the front is not kept alone
            slot = node(m, start, level)
            whole = op.combine_(V[2 * slot], V[2 * slot + 1])
            if k + 1 < len(tops):
                whole = op.combine_(whole, V[node(m, *tops[k + 1])])
            assert alike(op, V[slot], whole), f"the interval at {start} reaches to the end of the front"
    level = 1
    while 1 << level <= E - B:
        _check_level(op, V, m, B, E, level)
        level += 1


def _check_level(op, V, m, low, high, level):
    width = 1 << level
    for start in range((low + width - 1) & -width, high - width + 1, width):
        slot = slot_of.py_func(m, start, level)
        whole = op.combine_(V[2 * slot], V[2 * slot + 1])
        assert alike(op, V[slot], whole), f"the interval [{start}, {start + width}) holds the sum of its halves"
