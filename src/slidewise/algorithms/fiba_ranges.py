"""Looking into a tree: the aggregate of a range of times, ranks and the j-th oldest entry, and everything in order.

Range queries are those of fiba-2019 section 4, without recursion. Below the lowest node that has a time of the range, one chain of
nodes leads to its first entry and one to its last; all that lies between the chains is taken from stored aggregates:

                           .. | v_i  c  v  c  v_j-1 | ..         the lowest node with times in the range
                             /                       \
             first    .. | v c v c                  c v c v | ..    last
                         /                                  \
                    .. | v v                                v v v | ..

Nodes of the first chain are never on the right spine, nodes of the last never on the left: every aggregate needed is stored.

Ranks are counted from the nearer finger. Entries below the first child of a left-spine node (the last of a right-spine node) are
not stored anywhere, but are exactly those passed on the way up from the finger.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put
from slidewise.algorithms.fiba_aggregates import span
from slidewise.algorithms.fiba_nodes import (
    BELOW,
    HEIGHT,
    LEFTMOST,
    PARENT,
    PATH,
    RIGHTMOST,
    ROOT,
    SIZE,
    TIMES,
    below,
    child,
    child_slot,
    has_fingers,
    hi_of,
    level_of,
    lo_of,
    place,
    place_after,
    row,
    size_of,
    slot,
)

RESULT, PART = 1, 2
"""Scratch slots: the aggregate of a range, and a part of it."""


@kernel
def query_range(k, op, H, N, V, first, last):
    """Whether there are entries from `first` to `last`, both included, and their aggregate (in scratch slot RESULT)."""
    acc = get(op, V, RESULT)
    if H[SIZE] == 0 or last < first:
        return False, acc
    u = H[ROOT]
    x = row(k, u)
    if has_fingers(k) and H[HEIGHT] > 0:
        if last < N[x + TIMES + lo_of(N[x])]:
            u = H[LEFTMOST]
            x = row(k, u)
            while N[x + TIMES + hi_of(N[x]) - 1] < last and N[row(k, N[x + PARENT]) + PARENT] != 0:
                u = N[x + PARENT]
                x = row(k, u)
        elif N[x + TIMES + hi_of(N[x]) - 1] < first:
            u = H[RIGHTMOST]
            x = row(k, u)
            while first < N[x + TIMES + lo_of(N[x])] and N[row(k, N[x + PARENT]) + PARENT] != 0:
                u = N[x + PARENT]
                x = row(k, u)
    while True:
        i = place(k, N, u, first)
        j = place_after(k, N, u, last)
        inner = level_of(N[row(k, u)]) > 0
        if i < j:
            break
        if not inner:
            return False, acc
        u = child(k, N, u, i)
    acc = assign(op, acc, get(op, V, slot(k, u) + i))
    acc = span(k, op, V, u, acc, i, j, inner)
    if not inner:
        return True, acc
    w = child(k, N, u, i)
    while True:
        i = place(k, N, w, first)
        head = N[row(k, w)]
        hi = hi_of(head)
        inner = level_of(head) > 0
        if i < hi:
            part = assign(op, get(op, V, PART), get(op, V, slot(k, w) + i))
            part = span(k, op, V, w, part, i, hi, inner)
            if inner:
                part = combine(op, part, part, get(op, V, child_slot(k, w, hi)))
            acc = combine(op, acc, part, acc)
        if not inner:
            break
        w = child(k, N, w, i)
    w = child(k, N, u, j)
    while True:
        j = place_after(k, N, w, last)
        head = N[row(k, w)]
        lo = lo_of(head)
        inner = level_of(head) > 0
        if lo < j:
            acc = span(k, op, V, w, acc, lo - 1, j, inner)
        if not inner:
            break
        w = child(k, N, w, j)
    return True, acc


@inlined
def cut(k, N, u, t, inclusive):
    return place_after(k, N, u, t) if inclusive else place(k, N, u, t)


@inlined
def children_below(k, N, u, first, last):
    """Entries below the children first .. last - 1."""
    count = 0
    for j in range(first, last):
        count += below(k, N, u, j)
    return count


@kernel
def rank(k, A, H, N, t, inclusive):
    """How many entries are before t, or (inclusive) at or before it."""
    if H[SIZE] == 0:
        return 0
    u = H[ROOT]
    x = row(k, u)
    if has_fingers(k) and N[x + TIMES + hi_of(N[x]) - 1] < t:
        return H[SIZE] - count_after(k, A, H, N, t, inclusive)
    count = 0
    if has_fingers(k):
        u = H[LEFTMOST]
        while True:
            x = row(k, u)
            head = N[x]
            A[BELOW + level_of(head)] = count
            i = cut(k, N, u, t, inclusive)
            if i < hi_of(head) or N[x + PARENT] == 0:
                break
            count += size_of(head)
            if level_of(head) > 0:
                count += children_below(k, N, u, lo_of(head) + 1, hi_of(head) + 1)
            u = N[x + PARENT]
        if i == lo_of(head) and level_of(head) > 0:  # t is below the spine node we came from
            u = child(k, N, u, i)
            head = N[row(k, u)]
            i = cut(k, N, u, t, inclusive)
        count = A[BELOW + level_of(head)] + i - lo_of(head)
        if level_of(head) == 0:
            return count
        count += children_below(k, N, u, lo_of(head) + 1, i)
        u = child(k, N, u, i)
    while True:
        i = cut(k, N, u, t, inclusive)
        head = N[row(k, u)]
        count += i - lo_of(head)
        if level_of(head) == 0:
            return count
        count += children_below(k, N, u, lo_of(head), i)
        u = child(k, N, u, i)


@kernel
def count_after(k, A, H, N, t, inclusive):
    """How many entries are after t (inclusive), or at or after it; counted from the right finger."""
    u = H[RIGHTMOST]
    count = 0
    while True:
        x = row(k, u)
        head = N[x]
        A[BELOW + level_of(head)] = count
        i = cut(k, N, u, t, inclusive)
        if i > lo_of(head) or N[x + PARENT] == 0:
            break
        count += size_of(head)
        if level_of(head) > 0:
            count += children_below(k, N, u, lo_of(head), hi_of(head))
        u = N[x + PARENT]
    if i == hi_of(head) and level_of(head) > 0:
        u = child(k, N, u, i)
        head = N[row(k, u)]
        i = cut(k, N, u, t, inclusive)
    count = A[BELOW + level_of(head)] + hi_of(head) - i
    if level_of(head) == 0:
        return count
    count += children_below(k, N, u, i + 1, hi_of(head))
    u = child(k, N, u, i)
    while True:
        i = cut(k, N, u, t, inclusive)
        head = N[row(k, u)]
        count += hi_of(head) - i
        if level_of(head) == 0:
            return count
        count += children_below(k, N, u, i + 1, hi_of(head) + 1)
        u = child(k, N, u, i)


@kernel
def select(k, H, N, j):
    """Node and place of the j-th oldest entry, 0 <= j < size."""
    if has_fingers(k) and H[HEIGHT] > 0:
        return select_left(k, H, N, j) if 2 * j < H[SIZE] else select_right(k, H, N, H[SIZE] - 1 - j)
    return select_below(k, N, H[ROOT], j)


@kernel
def select_below(k, N, u, j):
    """The j-th oldest below u, whose children (but for the last) are counted."""
    while True:
        head = N[row(k, u)]
        i, hi = lo_of(head), hi_of(head)
        if level_of(head) == 0:
            return u, i + j
        while i < hi and j > below(k, N, u, i):
            j -= below(k, N, u, i) + 1
            i += 1
        if i < hi and j == below(k, N, u, i):
            return u, i
        u = child(k, N, u, i)


@kernel
def select_left(k, H, N, j):
    """The j-th oldest, from the left finger."""
    u = H[LEFTMOST]
    rest = j  # of the entries that are not below the first child of u
    while True:
        x = row(k, u)
        head = N[x]
        up = size_of(head)
        if N[x + PARENT] == 0:
            break
        if level_of(head) > 0:
            up += children_below(k, N, u, lo_of(head) + 1, hi_of(head) + 1)
        if rest < up:
            break
        rest -= up
        u = N[x + PARENT]
    i = lo_of(head)
    if level_of(head) == 0:
        return u, i + rest
    while rest > 0:
        i += 1
        rest -= 1
        if (i == hi_of(head) and N[row(k, u) + PARENT] == 0) or rest < below(k, N, u, i):
            return select_below(k, N, child(k, N, u, i), rest)
        rest -= below(k, N, u, i)
    return u, i


@kernel
def select_right(k, H, N, j):
    """The j-th youngest, from the right finger."""
    u = H[RIGHTMOST]
    rest = j  # of the entries that are not below the last child of u
    while True:
        x = row(k, u)
        head = N[x]
        up = size_of(head)
        if N[x + PARENT] == 0:
            break
        if level_of(head) > 0:
            up += children_below(k, N, u, lo_of(head), hi_of(head))
        if rest < up:
            break
        rest -= up
        u = N[x + PARENT]
    i = hi_of(head) - 1
    if level_of(head) == 0:
        return u, i - rest
    while rest > 0:
        rest -= 1
        if i == lo_of(head) and N[row(k, u) + PARENT] == 0:
            return select_left(k, H, N, H[SIZE] - 1 - j)
        if rest < below(k, N, u, i):
            return select_below(k, N, child(k, N, u, i), below(k, N, u, i) - 1 - rest)
        rest -= below(k, N, u, i)
        i -= 1
    return u, i


@kernel
def first(k, A, H, N):
    """Node and place of the oldest entry of a tree that is not empty. The way is noted in A, for `following`."""
    u = H[ROOT]
    while level_of(N[row(k, u)]) > 0:
        i = lo_of(N[row(k, u)])
        A[PATH + level_of(N[row(k, u)])] = i
        u = child(k, N, u, i)
    return u, lo_of(N[row(k, u)])


@kernel
def following(k, A, N, u, i):
    """Node and place of the entry after entry i of u, which is not the youngest."""
    head = N[row(k, u)]
    if level_of(head) == 0:
        if i + 1 < hi_of(head):
            return u, i + 1
        while True:
            u = N[row(k, u) + PARENT]
            head = N[row(k, u)]
            i = A[PATH + level_of(head)]
            if i < hi_of(head):
                return u, i
    A[PATH + level_of(head)] = i + 1
    u = child(k, N, u, i + 1)
    while level_of(N[row(k, u)]) > 0:
        i = lo_of(N[row(k, u)])
        A[PATH + level_of(N[row(k, u)])] = i
        u = child(k, N, u, i)
    return u, lo_of(N[row(k, u)])


@kernel
def export(k, op, A, H, N, V, TS, W, at):
    """Times and states in order, into places of TS and W from `at` on; returns the place behind the last."""
    u, i = 0, 0
    for j in range(H[SIZE]):
        u, i = first(k, A, H, N) if j == 0 else following(k, A, N, u, i)
        TS[at] = N[row(k, u) + TIMES + i]
        put(op, W, at, get(op, V, slot(k, u) + i))
        at += 1
    return at
