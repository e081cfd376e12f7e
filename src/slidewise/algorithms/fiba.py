"""FiBA, the finger B-tree aggregator: any order, any operator, O(log d) for a change d places from the nearer end.

Tangwongsan, Hirzel, Schneider: fiba-2019 (single operations, range queries), bulk-fiba-2023 (bulk operations).

                      +-------- g  o --------+                     root: inner aggregate  g h..n o
                      |         |            |
               +-- c  f      i  l          r  t --+                spines: left  aggregate  c d e f
               |     |      |  |  |       |  |    |                        right aggregate  p q r s t
     left    a b   d e     h  jk  mn     pq  s   u v    right
     finger                                             finger     query: (a b c d e f) (g h..n o) (p q r s t u v)

All times in one B-tree, entries in inner nodes too; minimum arity mu = 2, 4, 8 or 16, maximum 2 mu; all leaves at one depth. A
search starts at the nearer finger. Which aggregate a node keeps depends on its place, so that a change is repaired on the way to a
finger instead of the root (fiba_aggregates.py). Arity is restored after the fact, amortised O(1) (fiba_balance.py).

    insert       O(log d) amortised; at the young end O(1). A time that is there combines on the right: old (x) new
    evict        oldest: O(1) amortised; at any time t: O(log d) amortised
    query        at most 2 combines; of a range: O(log d_from + log d_to + log n_range)           (fiba_ranges.py)
    rank, select O(log d): how many entries are at or before t; the j-th oldest                   (fiba_ranges.py)
    bulk evict   all at or before t: O(log m) amortised for m entries, and how many there were    (fiba_bulk_evict.py)
    bulk insert  m entries: O(log d + m (1 + log(d / m))) amortised                               (fiba_bulk_insert.py)
    height       2 + log_mu(n) at most

The kernels take (k, op, A, H, N, V, ...): k the Shape (minimum arity, fingers or not), op the typed operator, A the header of
the arena, H that of the tree, N words and V states (fiba_nodes.py), all as pointers (`ptr`, `open_state`). They find room or
are not called: `has_room` first. Python calls the entry points of fiba_drivers.py, or the class Forest (fiba_forest.py),
which does all of it:

    trees = Forest(op, trees=1, min_arity=None)          an arena, and as many empty trees
    trees.insert(0, t, (x,)); trees.evict(0); trees.query(0); trees.query_range(0, t_from, t_to) ...
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put
from slidewise.algorithms.fiba_aggregates import descend, rise, rise_with, span
from slidewise.algorithms.fiba_balance import overflow, shrink, split
from slidewise.algorithms.fiba_nodes import (
    COUNT,
    HEIGHT,
    LEFT,
    LEFTMOST,
    ONE_MORE,
    PARENT,
    PATH,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SIZE,
    SPINE,
    TIMES,
    cap,
    child,
    child_slot,
    close_gap,
    copy_entry,
    free_node,
    has_fingers,
    hi_of,
    in_any_order,
    level_of,
    lo_of,
    min_arity,
    new_leaf,
    open_gap_here,
    own_slot,
    place,
    row,
    set_child,
    size_of,
    slide,
    slot,
)
from slidewise.algorithms.protocol import Info

INFO = Info(
    name="fiba",
    paper="fiba-2019; bulk-fiba-2023",
    summary="finger B-tree with position-aware aggregates: any order, single and in bulk, any range",
    order="any",
    bounds={
        "insert": "amortised O(log d), in order O(1)",
        "evict": "amortised O(1), at any time O(log d)",
        "query": "2",
        "query_range": "O(log d_from + log d_to + log n_range)",
        "bulk_evict": "amortised O(log m)",
        "bulk_insert": "amortised O(log d + m (1 + log(d / m)))",
    },
    offers=("items", "evict_at", "query_range", "bulk_evict", "bulk_insert"),
    stores="n + n / mu",
)
FINGERS = True


@kernel
def leftmost(k, H, N):
    if has_fingers(k):
        return H[LEFTMOST]
    u = H[ROOT]
    while level_of(N[row(k, u)]) > 0:
        u = child(k, N, u, lo_of(N[row(k, u)]))
    return u


@kernel
def rightmost(k, H, N):
    if has_fingers(k):
        return H[RIGHTMOST]
    u = H[ROOT]
    while level_of(N[row(k, u)]) > 0:
        u = child(k, N, u, hi_of(N[row(k, u)]))
    return u


@inlined
def oldest(k, H, N):
    """The oldest time of a tree that is not empty."""
    x = row(k, leftmost(k, H, N))
    return N[x + TIMES + lo_of(N[x])]


@inlined
def youngest(k, H, N):
    x = row(k, rightmost(k, H, N))
    return N[x + TIMES + hi_of(N[x]) - 1]


@inlined
def find(k, A, H, N, t):
    """The node that has t, or the leaf where it belongs, and the place in it. The tree is not empty.

    Up from the nearer finger to the first spine node that has t below it, then down; the way down is noted in A. Above the
    root's first and last child there is no need to look: the root's own times say on which side t is.
    """
    u = H[ROOT]
    x = row(k, u)
    head = N[x]
    if has_fingers(k) and H[HEIGHT] > 0:
        if t < N[x + TIMES + lo_of(head)]:
            u = H[LEFTMOST]
            x = row(k, u)
            while N[x + TIMES + hi_of(N[x]) - 1] < t and N[row(k, N[x + PARENT]) + PARENT] != 0:
                u = N[x + PARENT]
                x = row(k, u)
        elif N[x + TIMES + hi_of(head) - 1] < t:
            u = H[RIGHTMOST]
            x = row(k, u)
            while t < N[x + TIMES + lo_of(N[x])] and N[row(k, N[x + PARENT]) + PARENT] != 0:
                u = N[x + PARENT]
                x = row(k, u)
    while True:
        i = place(k, N, u, t)
        x = row(k, u)
        head = N[x]
        if level_of(head) == 0 or (i < hi_of(head) and N[x + TIMES + i] == t):
            return u, i
        A[PATH + level_of(head)] = i
        u = child(k, N, u, i)


@kernel
def insert_anywhere(k, op, A, H, N, V, t, s):
    """Insert into a tree that is not empty."""
    u, i = find(k, A, H, N, t)
    x = row(k, u)
    delta = 0
    if i < hi_of(N[x]) and N[x + TIMES + i] == t:
        at = slot(k, u) + i
        put(op, V, at, combine(op, get(op, V, at), get(op, V, at), s))
    else:
        i = open_gap_here(k, op, N, V, u, i)
        N[x + TIMES + i] = t
        put(op, V, slot(k, u) + i, s)
        H[SIZE] += 1
        delta = 1
        if size_of(N[x]) == cap(k):
            insert_too_many(k, op, A, H, N, V, u, i)
            return
    if in_any_order(k):
        rise_with(k, op, A, H, N, V, u, delta, s)
    else:
        rise(k, op, A, H, N, V, u, 0, delta, 0)


@kernel
def insert_too_many(k, op, A, H, N, V, u, i):
    """The entry that came to place i of u is one too many."""
    hit = 0
    while size_of(N[row(k, u)]) == cap(k):
        u, i, touched = overflow(k, op, A, H, N, V, u, i)
        hit |= touched
    rise(k, op, A, H, N, V, u, 0, 1, hit)


@kernel
def append_to_full(k, op, A, H, N, V, t, s):
    """The right finger is full: its last entry goes up as a separator, and (t, s) starts a leaf of its own."""
    u = H[RIGHTMOST]
    x = row(k, u)
    p = N[x + PARENT]
    if p != 0 and size_of(N[row(k, p)]) < cap(k) - 1 and hi_of(N[row(k, p)]) < cap(k):
        append_leaf(k, op, A, H, N, V, u, p, t, s)
        return
    hit = SPINE if p == 0 else RIGHT
    p, i = split(k, op, A, H, N, V, u, hi_of(N[x]) - 1)
    y = H[RIGHTMOST]
    x = row(k, y)
    N[x + TIMES + 1] = t
    N[x] += ONE_MORE
    put(op, V, slot(k, y) + 1, s)
    while size_of(N[row(k, p)]) == cap(k):
        p, i, touched = overflow(k, op, A, H, N, V, p, i)
        hit |= touched
    descend(k, op, H, N, V, p, hit)


@inlined
def append_leaf(k, op, A, H, N, V, u, p, t, s):
    """The same where the parent p of the full leaf u has room: its aggregate goes on where it ended, with the leaf that is now
    behind it and the separator."""
    x, z = row(k, u), row(k, p)
    head, above = (N[x] & ~RIGHT) - ONE_MORE, N[z]
    lo, last, i = lo_of(head), hi_of(head), hi_of(above)
    y = new_leaf(k, A, N, RIGHT)
    H[RIGHTMOST] = y
    N[row(k, y)] += ONE_MORE
    N[x] = head
    N[z] = above + ONE_MORE
    N[z + TIMES + i] = N[x + TIMES + last]
    N[z + TIMES + cap(k) + i] = u | size_of(head) << COUNT
    set_child(k, N, p, i + 1, y)
    N[row(k, y) + TIMES + 1] = t
    put(op, V, slot(k, y) + 1, s)
    at = child_slot(k, p, i)
    acc = assign(op, get(op, V, at), get(op, V, slot(k, u) + lo))
    acc = span(k, op, V, u, acc, lo, last, False)
    put(op, V, at, acc)
    own = own_slot(k, p)
    whole = combine(op, get(op, V, own), get(op, V, own), acc)
    whole = combine(op, whole, whole, get(op, V, slot(k, u) + last))
    put(op, V, own, whole)
    put(op, V, slot(k, p) + i, get(op, V, slot(k, u) + last))
    at = own_slot(k, y)
    put(op, V, at, s if N[z + PARENT] == 0 else combine(op, get(op, V, at), whole, s))


@inlined
def insert(k, op, A, H, N, V, t, s):
    """Insert the state s at time t; the caller has seen to it that there is room."""
    u = H[RIGHTMOST]
    if u == 0 and H[ROOT] == 0:
        u = new_leaf(k, A, N, 0)
        x = row(k, u)
        N[x + TIMES + 1] = t
        N[x] += ONE_MORE
        put(op, V, slot(k, u) + 1, s)
        put(op, V, own_slot(k, u), s)
        H[ROOT] = u
        H[SIZE] = 1
        if has_fingers(k):
            H[LEFTMOST] = u
            H[RIGHTMOST] = u
        return
    if has_fingers(k):
        x = row(k, u)
        head = N[x]
        hi = hi_of(head)
        if N[x + TIMES + hi - 1] < t:
            H[SIZE] += 1
            if size_of(head) == cap(k) - 1:
                append_to_full(k, op, A, H, N, V, t, s)
                return
            if hi == cap(k):
                slide(k, op, N, V, u, 1 - lo_of(head))
                head = N[x]
                hi = hi_of(head)
            N[x] = head + ONE_MORE
            N[x + TIMES + hi] = t
            put(op, V, slot(k, u) + hi, s)
            at = own_slot(k, u)
            put(op, V, at, combine(op, get(op, V, at), get(op, V, at), s))
            return
    insert_anywhere(k, op, A, H, N, V, t, s)


@kernel
def evict_last_of_leaf(k, op, A, H, N, V, u):
    """The left finger has run empty: the separator behind it goes into the next leaf, which is the first one now."""
    p = N[row(k, u) + PARENT]
    if p != 0:
        i = lo_of(N[row(k, p)])
        b = child(k, N, p, i + 1)
        head = N[row(k, b)]
        if lo_of(head) > 0 and not head & RIGHT and size_of(head) + 1 < cap(k) and size_of(N[row(k, p)]) > 1:
            copy_entry(k, op, N, V, p, i, b, lo_of(head) - 1)
            N[row(k, b)] = (head - 1) | LEFT
            N[row(k, p)] += 1
            H[LEFTMOST] = b
            free_node(k, A, N, u)
            descend(k, op, H, N, V, p, LEFT)
            return
    u, hit = shrink(k, op, A, H, N, V, u, LEFT)
    if u != 0:
        descend(k, op, H, N, V, u, hit)


@inlined
def evict(k, op, A, H, N, V):
    """Remove the oldest entry of a tree that is not empty."""
    if has_fingers(k):
        u = H[LEFTMOST]
        x = row(k, u)
        head = N[x] + 1
        N[x] = head
        H[SIZE] -= 1
        if size_of(head) == 0:
            evict_last_of_leaf(k, op, A, H, N, V, u)
        elif H[HEIGHT] == 0:
            lo, at = lo_of(head), own_slot(k, u)
            acc = assign(op, get(op, V, at), get(op, V, slot(k, u) + lo))
            put(op, V, at, span(k, op, V, u, acc, lo, hi_of(head), False))
    else:
        evict_at(k, op, A, H, N, V, oldest(k, H, N))


@kernel
def evict_at(k, op, A, H, N, V, t):
    """Remove exactly time t; whether it was there. The tree is not empty.

    An entry of an inner node is replaced by the next one in a leaf below, and that leaf is where the tree shrinks.
    """
    u, i = find(k, A, H, N, t)
    x = row(k, u)
    if i == hi_of(N[x]) or N[x + TIMES + i] != t:
        return False
    H[SIZE] -= 1
    level = level_of(N[x])
    hit = N[x] & SPINE
    if level > 0:
        inner, at = u, i
        if size_of(N[row(k, child(k, N, u, at + 1))]) >= min_arity(k):
            A[PATH + level] = at + 1
            u = child(k, N, u, at + 1)
            while level_of(N[row(k, u)]) > 0:
                i = lo_of(N[row(k, u)])
                A[PATH + level_of(N[row(k, u)])] = i
                u = child(k, N, u, i)
            i = lo_of(N[row(k, u)])
        else:
            A[PATH + level] = at
            u = child(k, N, u, at)
            while level_of(N[row(k, u)]) > 0:
                i = hi_of(N[row(k, u)])
                A[PATH + level_of(N[row(k, u)])] = i
                u = child(k, N, u, i)
            i = hi_of(N[row(k, u)]) - 1
        copy_entry(k, op, N, V, u, i, inner, at)
    close_gap(k, op, N, V, u, i)
    hit |= N[row(k, u)] & SPINE
    u, touched = shrink(k, op, A, H, N, V, u, hit)
    if u != 0:
        rise(k, op, A, H, N, V, u, level, -1, touched)
    return True
