"""Arity: splits, merges and moves between neighbours, and the height of the tree.

fiba-2019 section 3.3, with MAX_ARITY = 2 mu = 2 MIN_ARITY: a node off the spines has mu to 2 mu children (a leaf one entry less
than that), and every node at least one entry. The spines are laxer than in the paper: their nodes may have as few as 2
children, the leaves under the fingers as little as one entry. In-order inserts and evicts then move next to nothing: the right
side leaves full nodes behind, the left side runs down and hands over to the next. (Only what comes at the very end or goes from
the very front is treated so: an insert further in splits spine nodes in the middle, like all others.) The bounds hold: every
spine node has a child off the spine, with mu^level entries below it or more, so a finger search takes O(log d) steps and the height
is at most 2 + log_mu(n); and rebalancing is amortised O(1) by the coins of Lemma 9, with one coin on a spine node of 2
children and two on one that has lost the second: a split at 2 mu + 1 (four coins) into 2 mu - 1 and 2 leaves two for the
parent, a merge of 1 with at most 2 mu - 2 (two coins) leaves one.

One more freedom that the coins pay for, because it moves entries between neighbours once and then stops: a node that overflows
gives to its left neighbour, if that has room for mu / 2 or more, before it splits (so a run of inserts at one place leaves full
nodes behind). A node that falls short takes half of what its neighbour has more.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algorithms.fiba_aggregates import settle
from slidewise.algorithms.fiba_nodes import (
    HEIGHT,
    LEFT,
    LEFTMOST,
    ONE_MORE,
    PARENT,
    PATH,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SPINE,
    SUFFIXES,
    cap,
    child,
    close_gap,
    copy_child,
    copy_entry,
    free_node,
    has_fingers,
    hi_of,
    index_in_parent,
    level_of,
    lo_of,
    min_arity,
    new_inner,
    new_leaf,
    new_node,
    open_gap,
    row,
    set_child,
    size_of,
    slide,
)


@kernel
def give_left(k, op, N, V, a, p, i, b, count):
    """Move `count` entries, and as many children, from the front of b to the end of a, through entry i of p that parts them."""
    if hi_of(N[row(k, a)]) + count > cap(k):
        slide(k, op, N, V, a, -lo_of(N[row(k, a)]))
    inner = level_of(N[row(k, a)]) > 0
    end = hi_of(N[row(k, a)])
    lo = lo_of(N[row(k, b)])
    copy_entry(k, op, N, V, p, i, a, end)
    for j in range(1, count):
        copy_entry(k, op, N, V, b, lo + j - 1, a, end + j)
    copy_entry(k, op, N, V, b, lo + count - 1, p, i)
    if inner:
        for j in range(count):
            copy_child(k, op, N, V, b, lo + j, a, end + 1 + j)
            N[row(k, child(k, N, b, lo + j)) + PARENT] = a
    N[row(k, a)] += count * ONE_MORE
    N[row(k, b)] += count


@kernel
def give_right(k, op, N, V, a, p, i, b, count):
    """Move `count` entries, and as many children, from the end of a to the front of b, through entry i of p that parts them."""
    if lo_of(N[row(k, b)]) < count:
        slide(k, op, N, V, b, count - lo_of(N[row(k, b)]))
    inner = level_of(N[row(k, a)]) > 0
    hi = hi_of(N[row(k, a)])
    front = lo_of(N[row(k, b)])
    copy_entry(k, op, N, V, p, i, b, front - 1)
    for j in range(1, count):
        copy_entry(k, op, N, V, a, hi - j, b, front - 1 - j)
    copy_entry(k, op, N, V, a, hi - count, p, i)
    if inner:
        for j in range(count):
            copy_child(k, op, N, V, a, hi - j, b, front - 1 - j)
            N[row(k, child(k, N, a, hi - j)) + PARENT] = b
    N[row(k, a)] -= count * ONE_MORE
    N[row(k, b)] -= count


@kernel
def pour(k, op, N, V, a, p, i, b):
    """Put what is in a, and entry i of p behind it, in front of what is in b. a may be any node next before b, empty even."""
    count = size_of(N[row(k, a)]) + 1
    if lo_of(N[row(k, b)]) < count:
        slide(k, op, N, V, b, count - lo_of(N[row(k, b)]))
    inner = level_of(N[row(k, a)]) > 0
    hi = hi_of(N[row(k, a)])
    front = lo_of(N[row(k, b)])
    copy_entry(k, op, N, V, p, i, b, front - 1)
    for j in range(1, count):
        copy_entry(k, op, N, V, a, hi - j, b, front - 1 - j)
    if inner:
        for j in range(count):
            copy_child(k, op, N, V, a, hi - j, b, front - 1 - j)
            N[row(k, child(k, N, a, hi - j)) + PARENT] = b
    N[row(k, b)] -= count


@kernel
def merge(k, op, A, H, N, V, p, i):
    """Merge child i of p into child i + 1; returns where that is now."""
    a, b = child(k, N, p, i), child(k, N, p, i + 1)
    pour(k, op, N, V, a, p, i, b)
    if N[row(k, a)] & LEFT:
        N[row(k, b)] |= LEFT
        if H[LEFTMOST] == a:
            H[LEFTMOST] = b
    free_node(k, A, N, a)
    return close_gap(k, op, N, V, p, i)


@kernel
def grow(k, A, H, N, u):
    """Put a new root above u."""
    level = H[HEIGHT] + 1
    p = new_inner(k, A, N, level, 0)
    set_child(k, N, p, 1, u)
    A[PATH + level] = 1
    H[ROOT] = p
    H[HEIGHT] = level
    if has_fingers(k):
        N[row(k, u)] |= SPINE
        if level == 1:
            H[SUFFIXES] = new_leaf(k, A, N, 0)
    return p


@kernel
def split(k, op, A, H, N, V, u, at):
    """Split u at its entry `at`, which goes up; returns the parent and where the entry is in it."""
    p = N[row(k, u) + PARENT]
    if p == 0:
        p = grow(k, A, H, N, u)
    i = index_in_parent(k, A, N, u, p)
    head = N[row(k, u)]
    level, hi = level_of(head), hi_of(head)
    y = new_node(k, A, N, level, head & RIGHT)
    for j in range(at + 1, hi):
        copy_entry(k, op, N, V, u, j, y, j - at)
    if level > 0:
        for j in range(at + 1, hi + 1):
            copy_child(k, op, N, V, u, j, y, j - at)
            N[row(k, child(k, N, u, j)) + PARENT] = y
    elif head & RIGHT:
        H[RIGHTMOST] = y
    N[row(k, y)] += (hi - at - 1) * ONE_MORE
    N[row(k, u)] = (head & ~RIGHT) - (hi - at) * ONE_MORE
    i = open_gap(k, op, N, V, p, i)
    copy_entry(k, op, N, V, u, at, p, i)
    set_child(k, N, p, i + 1, y)
    settle(k, op, N, V, p, i)
    settle(k, op, N, V, p, i + 1)
    return p, i


@kernel
def overflow(k, op, A, H, N, V, u, at):
    """u has one entry too many, the new one at `at`. Returns its parent, where an entry came in it, and the spines touched."""
    x = row(k, u)
    head = N[x]
    lo, hi = lo_of(head), hi_of(head)
    p = N[x + PARENT]
    hit = head & SPINE if p != 0 else SPINE
    late = 2 * at >= lo + hi
    if has_fingers(k):
        # What is left behind lacks one entry of a full node. Of three, that is too many.
        at_the_end = late if level_of(head) == 0 else at == hi - 1 and min_arity(k) > 2
        if at_the_end and (p == 0 or head & RIGHT):
            p, i = split(k, op, A, H, N, V, u, hi - 2)
            return p, i, hit
        if at == lo and (p == 0 or head & LEFT):
            p, i = split(k, op, A, H, N, V, u, lo + 1)
            return p, i, hit
    if late and p != 0:
        i = index_in_parent(k, A, N, u, p)
        if i > lo_of(N[row(k, p)]):
            before = N[row(k, child(k, N, p, i - 1))]
            count = min(cap(k) - 1 - size_of(before), min_arity(k))
            if 2 * count >= min_arity(k):
                give_left(k, op, N, V, child(k, N, p, i - 1), p, i - 1, u, count)
                settle(k, op, N, V, p, i - 1)
                settle(k, op, N, V, p, i)
                return p, -1, hit | before & SPINE
    p, i = split(k, op, A, H, N, V, u, lo + min_arity(k))
    return p, i, hit


@inlined
def merged_below(k, level):
    """Two nodes are merged if they have fewer entries together: inner nodes must not be full afterwards, or they might split again
    at once, and so on upwards."""
    return cap(k) if level == 0 else cap(k) - 1


@kernel
def underflow(k, op, A, H, N, V, u):
    """u, not the root, is too small: take from a neighbour, or merge. Returns its parent and the spines touched."""
    p = N[row(k, u) + PARENT]
    i = index_in_parent(k, A, N, u, p)
    if i == hi_of(N[row(k, p)]):
        i -= 1
    a, b = child(k, N, p, i), child(k, N, p, i + 1)
    first, second = N[row(k, a)], N[row(k, b)]
    # Both neighbours count: the errata to Figure 7 of fiba-2019, where a sibling on the left spine is forgotten.
    hit = (first | second) & SPINE
    left, right = size_of(first), size_of(second)
    if left + right + 1 < merged_below(k, level_of(first)):
        i = merge(k, op, A, H, N, V, p, i)
        settle(k, op, N, V, p, i)
    else:
        if left < right:
            give_left(k, op, N, V, a, p, i, b, (right - left + 1) >> 1)
        else:
            give_right(k, op, N, V, a, p, i, b, (left - right + 1) >> 1)
        settle(k, op, N, V, p, i)
        settle(k, op, N, V, p, i + 1)
    return p, hit


@kernel
def shrink(k, op, A, H, N, V, u, hit):
    """Restore the arity of u, which has lost entries, and of those above it. Returns where it ended (0: the tree is empty)
    and the spines touched."""
    while True:
        x = row(k, u)
        head = N[x]
        size, level = size_of(head), level_of(head)
        if N[x + PARENT] == 0:
            if size == 0 and level > 0:
                u = lower_root(k, A, H, N, u)
                hit = SPINE
            elif size == 0:
                free_node(k, A, N, u)
                H[ROOT] = 0
                H[LEFTMOST] = 0
                H[RIGHTMOST] = 0
                u = 0
            return u, hit
        if size >= (1 if head & SPINE else min_arity(k) - 1):
            return u, hit
        u, touched = underflow(k, op, A, H, N, V, u)
        hit |= touched


@kernel
def lower_root(k, A, H, N, u):
    """The root has one child left, which becomes the root."""
    c = child(k, N, u, lo_of(N[row(k, u)]))
    make_root(k, A, H, N, c)
    free_node(k, A, N, u)
    return c


@kernel
def make_root(k, A, H, N, c):
    x = row(k, c)
    N[x + PARENT] = 0
    N[x] &= ~SPINE
    H[ROOT] = c
    H[HEIGHT] = level_of(N[x])
    if has_fingers(k) and H[HEIGHT] == 0:
        H[LEFTMOST] = c
        H[RIGHTMOST] = c
        free_suffixes(k, A, H, N)


@kernel
def free_suffixes(k, A, H, N):
    """A tree of one leaf has no left side of its own."""
    if H[SUFFIXES] != 0:
        free_node(k, A, N, H[SUFFIXES])
        H[SUFFIXES] = 0
