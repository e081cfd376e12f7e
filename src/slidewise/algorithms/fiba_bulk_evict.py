"""Bulk evict: cut the tree along the line between what goes and what stays, in amortised O(log m) for m entries.

bulk-fiba-2023 section 4. Nothing is done for a single evicted entry: subtrees are dropped whole.

    few        what goes is in the first leaves, as it mostly is: these are emptied one by one, FEW at most
    search     from the left finger up to the first node that keeps an entry, then down along t. For each node on the way: its
               neighbour, the next node of the same level, perhaps not a sibling, and where their ways part
    pass up    each node on the way that is now too small takes from its neighbour (`give_left`), or is poured into it, through
               the entry that parts them: always the first one left of the node `common` to both. When a node is poured out,
               those between it and the common one had no other child and go too
    above      from the top of the cut on as for a single evict
    pass down  spine flags and aggregates

If even the root's entries all go, the tree shrinks from the top first: the new root is the highest node of the right spine that
keeps an entry.
"""

from slidewise.algebra.cache import kernel
from slidewise.algorithms.fiba import evict, oldest
from slidewise.algorithms.fiba_aggregates import descend, settle
from slidewise.algorithms.fiba_balance import free_suffixes, give_left, make_root, merged_below, pour, shrink
from slidewise.algorithms.fiba_nodes import (
    COMMON,
    DROPPED,
    HEIGHT,
    LEAVES,
    LEFT,
    LEFTMOST,
    NEIGHBOUR,
    NODE,
    ONE_MORE,
    PARENT,
    RIGHTMOST,
    ROOT,
    SIZE,
    SPINE,
    TIMES,
    child,
    drop_children,
    free_node,
    has_fingers,
    hi_of,
    level_of,
    lo_of,
    min_arity,
    place_after,
    row,
    size_of,
)
from slidewise.algorithms.fiba_ranges import rank

FEW = 2
"""Leaves that are emptied before the tree is cut: a cut costs as much as several of them."""


@kernel
def bulk_evict(k, op, A, H, N, V, t):
    """Remove everything at or before t; returns how many entries went."""
    few = first_leaves(k, op, A, H, N, V, t) if has_fingers(k) else 0
    if H[SIZE] == 0 or t < oldest(k, H, N):
        return few
    gone = rank(k, A, H, N, t, True)
    if gone == H[SIZE]:
        clear(k, A, H, N)
        return few + gone
    H[SIZE] -= gone
    top, hit = top_of_cut(k, A, H, N, t)
    cut_down(k, A, N, top, t)
    hit |= mend(k, op, A, N, V, level_of(N[row(k, top)]))
    top, hit = shrink(k, op, A, H, N, V, top, hit)
    new_left_side(k, op, H, N, V, top)
    descend(k, op, H, N, V, top, hit)
    return few + gone


@kernel
def first_leaves(k, op, A, H, N, V, t):
    """Remove what is at or before t in the first leaves; returns how many entries went. The leaf under the finger may shrink to
    one entry, and keeps the aggregate from each of its entries on: nothing is repaired until it has run empty."""
    gone = 0
    for _ in range(FEW):
        if H[HEIGHT] == 0:
            return gone
        x = row(k, H[LEFTMOST])
        head = N[x]
        lo, hi = lo_of(head), hi_of(head)
        i = place_after(k, N, H[LEFTMOST], t)
        count = i - lo
        gone += count
        if i < hi:
            N[x] = head + count
            H[SIZE] -= count
            return gone
        N[x] = head + (count - 1)
        H[SIZE] -= count - 1
        evict(k, op, A, H, N, V)
    return gone


@kernel
def clear(k, A, H, N):
    """Drop a whole tree, which is not empty."""
    of = LEAVES if H[HEIGHT] == 0 else DROPPED
    N[row(k, H[ROOT]) + PARENT] = A[of]
    A[of] = H[ROOT]
    H[ROOT] = 0
    H[LEFTMOST] = 0
    H[RIGHTMOST] = 0
    H[SIZE] = 0
    H[HEIGHT] = 0
    free_suffixes(k, A, H, N)


@kernel
def top_of_cut(k, A, H, N, t):
    """The lowest node of the left side that keeps an entry, and spines to repair; a root that keeps none is taken off first."""
    u = H[ROOT]
    x = row(k, u)
    if not t < N[x + TIMES + hi_of(N[x]) - 1]:
        while not t < N[x + TIMES + hi_of(N[x]) - 1]:
            c = child(k, N, u, hi_of(N[x]))
            N[x] -= ONE_MORE
            N[x + PARENT] = A[DROPPED]
            A[DROPPED] = u
            u = c
            x = row(k, u)
        make_root(k, A, H, N, u)
        return u, SPINE
    if has_fingers(k) and t < N[x + TIMES + lo_of(N[x])]:
        u = H[LEFTMOST]
        x = row(k, u)
        while not t < N[x + TIMES + hi_of(N[x]) - 1]:
            u = N[x + PARENT]
            x = row(k, u)
    return u, LEFT


@kernel
def cut_down(k, A, N, top, t):
    """Drop what is at or before t in the nodes from the top of the cut down to a leaf, and note the way and the neighbours."""
    u, neighbour, common = top, 0, 0
    while True:
        x = row(k, u)
        head = N[x]
        level = level_of(head)
        A[NODE + level] = u
        A[NEIGHBOUR + level] = neighbour
        A[COMMON + level] = common
        i = place_after(k, N, u, t)
        N[x] += i - lo_of(head)
        if level == 0:
            return
        drop_children(k, A, N, u, lo_of(head), i)
        if i < hi_of(head):
            neighbour = child(k, N, u, i + 1)
            common = level
        else:
            neighbour = child(k, N, neighbour, lo_of(N[row(k, neighbour)]))
        u = child(k, N, u, i)


@kernel
def mend(k, op, A, N, V, top):
    """Restore the arity of the nodes that were cut, below level `top`. Returns the spines of neighbours that were touched.

    Nodes between one that is too small and `common` have no entry left: they take or are poured out in their turn, and so all
    that changes below a neighbour is settled level by level."""
    hit = 0
    level = 0
    while level < top:
        u, w, above = A[NODE + level], A[NEIGHBOUR + level], A[COMMON + level]
        size = size_of(N[row(k, u)])
        common = A[NODE + above]
        first = lo_of(N[row(k, common)])
        enough = 1 if has_fingers(k) else min_arity(k) - 1
        if size < enough:
            hit |= N[row(k, w)] & SPINE
            more = size_of(N[row(k, w)])
            if size + more + 1 < merged_below(k, level):
                pour(k, op, N, V, u, common, first, w)
                for dead in range(level, above):
                    free_node(k, A, N, A[NODE + dead])
                N[row(k, common)] += 1
                level = above
                continue
            give_left(k, op, N, V, u, common, first, w, (more - size + 1) >> 1)
            p = N[row(k, w) + PARENT]
            settle(k, op, N, V, p, lo_of(N[row(k, p)]) if level + 1 < above else first + 1)
        level += 1
    return hit


@kernel
def new_left_side(k, op, H, N, V, top):
    """Flags of the spine below top and the finger; without fingers, aggregates of the first nodes of each level."""
    u = top
    while level_of(N[row(k, u)]) > 0:
        u = child(k, N, u, lo_of(N[row(k, u)]))
        if has_fingers(k):
            N[row(k, u)] |= LEFT
    if has_fingers(k):
        H[LEFTMOST] = u
    else:
        while u != top:
            u = N[row(k, u) + PARENT]
            settle(k, op, N, V, u, lo_of(N[row(k, u)]))
