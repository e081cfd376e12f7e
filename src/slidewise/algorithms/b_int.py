"""B-Int: base intervals, level by level on a ring. Any sub-range from few of them, nothing to do when events leave.

Arasu, Widom: Resource sharing in continuous sliding-window aggregates (2004), described in slickdeque-2018 section 2.2.

    level 2   [--------------][--------------]            an interval is computed once, when its last event comes,
    level 1   [------][------][------][------][------]    from its two halves
    level 0   [v0][v1][v2][v3][v4][v5][v6][v7][v8][v9]
                   F----------------------------------E   the fewest that cover [F, E): v1, v2-v3, v4-v7, v8-v9

    insert        amortised below 1 combine (one for each interval that becomes complete), worst log2 n
    evict         0, however many at once
    query         of any r neighbours: below 2 log2 r combines, whatever the size of the window

Invariant: every interval inside [F, E) holds the aggregate of its events. Others are never read.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import alike, ordered
from slidewise.algorithms.dyadic import slot_of, widest
from slidewise.algorithms.protocol import Info
from slidewise.algorithms.ring import bulk_evict, evict, fresh, load, save, size

__all__ = ["bulk_evict", "evict", "fresh", "load", "save", "size"]

INFO = Info(
    name="b_int",
    paper="Arasu and Widom 2004; slickdeque-2018 section 2.2",
    summary="dyadic base intervals on a ring; a range is covered by the fewest of them",
    order="in",
    bounds={
        "insert": "amortised 1, worst log2 n",
        "evict": "0",
        "bulk_evict": "0",
        "query": "2 log2 n",
        "range": "2 log2 r, of r neighbours",
    },
    offers=("items", "query_range", "query_youngest", "bulk_evict"),
    stores="2 n",
)

HEADER, RINGS, EXTRAS, WORDS = 2, 2, 0, 0


@inlined
def insert(op, W, V, m, st, s):
    F, E = st
    slot = slot_of(m, E, 0)
    put(op, V, slot, s)
    E += 1
    width = 2
    while slot > 1 and slot & 1 == 1 and E - width >= F:  # a right half is complete: so is the whole
        slot >>= 1
        put(op, V, slot, combine(op, get(op, V, slot), get(op, V, 2 * slot), get(op, V, 2 * slot + 1)))
        width *= 2
    return F, E


@inlined
def cover(op, V, m, low, high, out):
    """The aggregate of positions [low, high), from the fewest intervals."""
    level = widest(0, low, high)
    total = assign(op, out, get(op, V, slot_of(m, low, level)))
    low += 1 << level
    while low < high:
        level = widest(level, low, high)
        total = combine(op, total, total, get(op, V, slot_of(m, low, level)))
        low += 1 << level
    return total


@inlined
def query(op, W, V, m, st, out):
    if st[0] == st[1]:
        return st, reset(op, out)
    return st, cover(op, V, m, st[0], st[1], out)


@inlined
def query_range(op, W, V, m, st, i, j, out):
    return st, cover(op, V, m, st[0] + i, st[0] + j + 1, out)


@inlined
def query_youngest(op, W, V, m, st, r, out):
    return st, cover(op, V, m, st[1] - r, st[1], out)


@inlined
def entry(op, W, V, m, st, j, out):
    return st, assign(op, out, get(op, V, slot_of(m, st[0] + j, 0)))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    F, E = H[0], H[1]
    level = 0
    while 1 << level <= E - F:
        width = 1 << level
        start = (F + width - 1) & -width  # the first interval that begins in the window
        while start + width <= E:
            put(op, V2, slot_of(m2, start, level), get(op, V, slot_of(m, start, level)))
            start += width
        level += 1


def check(op, H, W, V, m):
    F, E = H
    ordered(F, E)
    assert E - F <= m + 1, "no more entries than slots"
    width = 2
    while width <= E - F:
        for start in range((F + width - 1) & -width, E - width + 1, width):
            slot = slot_of.py_func(m, start, width.bit_length() - 1)
            whole = op.combine_(V[2 * slot], V[2 * slot + 1])
            assert alike(op, V[slot], whole), f"the interval [{start}, {start + width}) holds the sum of its halves"
        width *= 2
