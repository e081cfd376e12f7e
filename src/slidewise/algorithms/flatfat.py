"""FlatFAT under the Reactive Aggregator: a complete binary tree in one array, over a ring of leaves that may have gaps.

Tangwongsan, Hirzel, Schneider, Wu: reactive-aggregator-2015 sections 4 and 5. For a capacity of n = m + 1:

    slot  1                  a..h                       T(v) = T(left) (x) T(right)
          2, 3          a..d      e..h                  children of v: 2 v and 2 v + 1
          4 .. 7      ab    cd   ef    gh
          8 .. 15    a  b  c  d  e  f  g  h             leaf of a position: n + (position & m)
                        F-----------^  E                inverted, with E's leaf before F's: suffix(F) (x) prefix(E)

The paper's marker of an empty leaf, which short-circuits combine, is here a count of living leaves below each node: 0
means empty. The counts also find the j-th oldest event where there are holes.

    insert, evict, evict_at     write a leaf and note its parent               0 combines (holes: see below)
    query                       update the noted nodes level by level, at most m (1 + ceil(log2 (n / m))) combines for
                                m changes since the last one (Theorem 4.2); then 0, or 2 log2 n when inverted
    query_range                 the same, then at most 2 log2 n
    insert into a ring full of holes compacts it: at most n; not before n / 4 evictions made the holes (see `full`)

Capacity (section 5.1.1, `full` and `resized`): doubled when the ring is full and more than 3/4 of it lives, halved when less than
1/4 does.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.checking import alike, ordered
from slidewise.algorithms.dyadic import slot_of, widest
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="flatfat",
    paper="reactive-aggregator-2015 sections 4, 5",
    summary="a complete binary tree in an array over a ring; updates in bulk, holes and compaction",
    order="in",
    bounds={
        "insert": "0",
        "evict": "0",
        "evict_at": "0; with holes it updates first, as a query does",
        "query": "m (1 + ceil(log2(n / m))) for m changes, + 2 log2 n when inverted",
        "range": "2 log2 n",
    },
    offers=("items", "query_range", "query_youngest", "bulk_evict", "evict_at"),
    stores="2 n",
)

HEADER, RINGS, EXTRAS, WORDS = 4, 2, 0, 4

# Words: 0 .. 2 n - 1 living leaves below each node; then n flags, whether an inner node is noted; then n noted nodes.
# st: F, E; live, how many events; noted, how many nodes await their update.


@inlined
def fresh(op, W, V, m):
    for k in range(4 * (m + 1)):
        W[k] = 0
    return 0, 0, 0, 0


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], H[3]


@inlined
def save(op, H, W, V, m, st):
    H[0] = st[0]
    H[1] = st[1]
    H[2] = st[2]
    H[3] = st[3]


@inlined
def size(st):
    return st[2]


@inlined
def full(st, m):
    F, E, live, noted = st
    return E - F > m and 4 * live > 3 * (m + 1)


@inlined
def note(W, m, node, noted):
    """Put an inner node on the list of those to be updated, once."""
    if node > 0 and W[2 * (m + 1) + node] == 0:
        W[2 * (m + 1) + node] = 1
        W[3 * (m + 1) + noted] = node
        noted += 1
    return noted


@inlined
def refresh(op, W, V, m, noted):
    """Algorithm 2: update noted nodes level by level. A level's list of parents is written over its own, never ahead."""
    while noted > 0:
        parents = 0
        for k in range(noted):
            node = W[3 * (m + 1) + k]
            W[2 * (m + 1) + node] = 0
            left = 2 * node
            right = left + 1
            if W[left] > 0 and W[right] > 0:
                put(op, V, node, combine(op, get(op, V, node), get(op, V, left), get(op, V, right)))
            elif W[left] > 0:
                put(op, V, node, get(op, V, left))
            elif W[right] > 0:
                put(op, V, node, get(op, V, right))
            W[node] = W[left] + W[right]
            parents = note(W, m, node >> 1, parents)
        noted = parents
    return 0


@inlined
def write(op, W, V, m, noted, position, s):
    leaf = slot_of(m, position, 0)
    put(op, V, leaf, s)
    W[leaf] = 1
    return note(W, m, leaf >> 1, noted)


@inlined
def clear(W, m, noted, position):
    leaf = slot_of(m, position, 0)
    W[leaf] = 0
    return note(W, m, leaf >> 1, noted)


@inlined
def compact(op, W, V, m, st):
    """Close the holes: every event moves left as far as it can."""
    F, E, live, noted = st
    end = F
    for position in range(F, E):
        if W[slot_of(m, position, 0)] > 0:
            if end < position:
                noted = write(op, W, V, m, noted, end, get(op, V, slot_of(m, position, 0)))
                noted = clear(W, m, noted, position)
            end += 1
    return F, end, live, noted


@inlined
def insert(op, W, V, m, st, s):
    if st[1] - st[0] > m:
        st = compact(op, W, V, m, st)
    F, E, live, noted = st
    noted = write(op, W, V, m, noted, E, s)
    return F, E + 1, live + 1, noted


@inlined
def trim(W, m, F, E):
    """Both ends of a window live, if there is anything."""
    while F < E and W[slot_of(m, F, 0)] == 0:
        F += 1
    while F < E and W[slot_of(m, E - 1, 0)] == 0:
        E -= 1
    return F, E


@inlined
def evict(op, W, V, m, st):
    F, E, live, noted = st
    noted = clear(W, m, noted, F)
    F, E = trim(W, m, F + 1, E)
    return F, E, live - 1, noted


@inlined
def bulk_evict(op, W, V, m, st, count):
    for _ in range(count):
        st = evict(op, W, V, m, st)
    return st


@inlined
def position_of(W, m, st, j):
    """The position of the j-th oldest event. With holes it is found by the counts, which must be up to date."""
    F, E, live, noted = st
    if live == E - F:
        return F + j
    node = slot_of(m, F, 0)
    while node > 1:  # in the order of leaves, those before F are the youngest
        if node & 1 == 1:
            j += W[node - 1]
        node >>= 1
    if j >= live:
        j -= live
    node = 1
    while node <= m:
        node *= 2
        if j >= W[node]:
            j -= W[node]
            node += 1
    return F + ((node - F) & m)


@inlined
def evict_at(op, W, V, m, st, j):
    F, E, live, noted = st
    if live < E - F:
        noted = refresh(op, W, V, m, noted)
    position = position_of(W, m, (F, E, live, noted), j)
    noted = clear(W, m, noted, position)
    F, E = trim(W, m, F, E)
    return F, E, live - 1, noted


@inlined
def gather(op, W, V, m, low, high, total, some):
    """Take in the leaves [low, high) of the array, from the fewest nodes; `some`: whether total holds anything yet."""
    level = 0
    while low < high:
        level = widest(level, low, high)
        node = slot_of(m, low, level)
        if W[node] > 0:
            if some:
                total = combine(op, total, total, get(op, V, node))
            else:
                total = assign(op, total, get(op, V, node))
                some = True
        low += 1 << level
    return total, some


@inlined
def between(op, W, V, m, first, last, out):
    """The aggregate of positions first .. last; the tree must be up to date. Across the ring's end: suffix (x) prefix."""
    low, high = first & m, last & m
    total = reset(op, out)
    if low <= high:
        total, some = gather(op, W, V, m, low, high + 1, total, False)
    else:
        total, some = gather(op, W, V, m, low, m + 1, total, False)
        total, some = gather(op, W, V, m, 0, high + 1, total, some)
    return total


@inlined
def query(op, W, V, m, st, out):
    F, E, live, noted = st
    noted = refresh(op, W, V, m, noted)
    if live == 0:
        total = reset(op, out)
    elif (F & m) <= ((E - 1) & m):
        total = get(op, V, 1)
    else:
        total = between(op, W, V, m, F, E - 1, out)
    return (F, E, live, noted), total


@inlined
def query_range(op, W, V, m, st, i, j, out):
    F, E, live, noted = st
    st = F, E, live, refresh(op, W, V, m, noted)
    return st, between(op, W, V, m, position_of(W, m, st, i), position_of(W, m, st, j), out)


@inlined
def query_youngest(op, W, V, m, st, r, out):
    return query_range(op, W, V, m, st, st[2] - r, st[2] - 1, out)


@inlined
def entry(op, W, V, m, st, j, out):
    F, E, live, noted = st
    if live < E - F:
        noted = refresh(op, W, V, m, noted)
    st = F, E, live, noted
    return st, assign(op, out, get(op, V, slot_of(m, position_of(W, m, st, j), 0)))


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    """Algorithm 1 on the living leaves: n2 - 1 combines at most."""
    F, E, live = H[0], H[1], H[2]
    noted, end = 0, F
    for position in range(F, E):
        if W[slot_of(m, position, 0)] > 0:
            noted = write(op, W2, V2, m2, noted, end, get(op, V, slot_of(m, position, 0)))
            end += 1
    H[1] = end
    H[2] = live
    H[3] = refresh(op, W2, V2, m2, noted)


def resized(capacity: int, live: int) -> int:
    """The capacity that section 5.1.1 asks for after an event left. (`full` says when one that comes finds too little room.)"""
    return max(1, capacity // 2) if 4 * live < capacity else capacity


def check(op, H, W, V, m):
    F, E, live, noted = H
    n = m + 1
    ordered(F, E)
    assert E - F <= n, "no more entries than slots"
    assert 0 <= noted < max(n, 1), "no more nodes are noted than there are"
    living = {n + (p & m) for p in range(F, E) if W[n + (p & m)] == 1}
    assert all(W[k] == (k in living) for k in range(n, 2 * n)), "leaves outside the window are empty"
    assert len(living) == live, "live counts the living leaves"
    if live:
        assert {n + (F & m), n + ((E - 1) & m)} <= living, "both ends of the window live"
    else:
        assert F == E, "a window without events has no leaves"
    listed = W[3 * n : 3 * n + noted]
    assert all(n // 2 <= k < n for k in listed), "only parents of leaves are noted"
    assert sorted(listed) == [k for k in range(n) if W[2 * n + k]], "the flags say which nodes are noted"
    stale = set(listed)
    for node in range(n - 1, 0, -1):
        left, right = 2 * node, 2 * node + 1
        if node in stale:
            stale.add(node >> 1)
            assert 0 <= W[node] <= n, "counts are in range"
            continue
        assert W[node] == W[left] + W[right], f"node {node} counts the living leaves below it"
        if W[node]:
            parts = [V[k] for k in (left, right) if W[k]]
            whole = parts[0] if len(parts) == 1 else op.combine_(*parts)
            assert alike(op, V[node], whole), f"node {node} holds the sum of its children"
