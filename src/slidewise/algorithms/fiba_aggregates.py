"""Position-aware aggregates of the finger B-tree: what each node keeps, and how it is repaired.

fiba-2019 section 3.2. With children c_0 .. c_a-1 and values v_0 .. v_a-2, a node keeps, by its place:

    root          inner   v_0 c_1 v_1 .. c_a-2 v_a-2                    all but the first and last child
    left spine    left    v_0 c_1 v_1 .. v_a-2 c_a-1  (x)  parent's     all below the root's first child but c_0
    right spine   right   parent's  (x)  c_0 v_0 c_1 .. v_a-2           all below the root's last child but c_a-1
    elsewhere     up      c_0 v_0 c_1 .. v_a-2 c_a-1                    all below; kept in the parent's row, with the count

(parent's: unless the parent is the root). So a change is repaired on the way up to a spine, then down that spine to the finger,
and the whole window is left finger (x) root (x) right finger. A tree without fingers (btree) has no spines: up-aggregates all
the way, and the root's own is that of everything.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import assign, combine, get, put
from slidewise.algorithms.fiba_nodes import (
    COUNT,
    HEIGHT,
    LEFT,
    LEFTMOST,
    PARENT,
    PATH,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SPINE,
    SUFFIXES,
    TIMES,
    below,
    cap,
    child,
    child_slot,
    has_fingers,
    hi_of,
    level_of,
    lo_of,
    own_slot,
    row,
    size_of,
    slot,
)


@inlined
def span(k, op, V, u, acc, first, last, inner):
    """acc with the entries first + 1 .. last - 1 of u, each after the child before it if u is an inner node."""
    v = slot(k, u)
    if inner:
        for i in range(first + 1, last):
            acc = combine(op, acc, acc, get(op, V, child_slot(k, u, i)))
            acc = combine(op, acc, acc, get(op, V, v + i))
    else:
        for i in range(first + 1, last):
            acc = combine(op, acc, acc, get(op, V, v + i))
    return acc


@inlined
def all_below(k, op, N, V, u, out):
    """The up-aggregate of u, which is not on a spine (or, without fingers, is the root) and has an entry."""
    head = N[row(k, u)]
    lo, hi = lo_of(head), hi_of(head)
    if level_of(head) == 0:
        acc = assign(op, out, get(op, V, slot(k, u) + lo))
        return span(k, op, V, u, acc, lo, hi, False)
    acc = assign(op, out, get(op, V, child_slot(k, u, lo)))
    acc = combine(op, acc, acc, get(op, V, slot(k, u) + lo))
    acc = span(k, op, V, u, acc, lo, hi, True)
    return combine(op, acc, acc, get(op, V, child_slot(k, u, hi)))


@kernel
def repair_up(k, op, N, V, u, p, i):
    """Aggregate of everything below u, which is child i of p and not on a spine."""
    at = child_slot(k, p, i)
    put(op, V, at, all_below(k, op, N, V, u, get(op, V, at)))


@kernel
def settle(k, op, N, V, p, i):
    """Aggregate and number of entries below child i of p, unless it is on a spine."""
    u = child(k, N, p, i)
    head = N[row(k, u)]
    if head & SPINE:
        return
    repair_up(k, op, N, V, u, p, i)
    count = size_of(head)
    if level_of(head) > 0:
        for j in range(lo_of(head), hi_of(head) + 1):
            count += below(k, N, u, j)
    N[row(k, p) + TIMES + cap(k) + i] = u | count << COUNT


@inlined
def repair_suffixes(k, op, H, N, V, u, p, linked):
    """The first leaf keeps the left aggregate of each of its entries on: to evict the oldest is to look at the next."""
    head = N[row(k, u)]
    lo, i = lo_of(head), hi_of(head) - 1
    v, suffixes = slot(k, u), slot(k, H[SUFFIXES])
    if linked:
        acc = combine(op, get(op, V, suffixes + i), get(op, V, v + i), get(op, V, own_slot(k, p)))
    else:
        acc = assign(op, get(op, V, suffixes + i), get(op, V, v + i))
    put(op, V, suffixes + i, acc)
    for j in range(i - 1, lo - 1, -1):
        acc = combine(op, get(op, V, suffixes + j), get(op, V, v + j), acc)
        put(op, V, suffixes + j, acc)


@inlined
def repair_own_here(k, op, H, N, V, u):
    """Own aggregate of the root or of a spine node, from its row and its parent's own aggregate."""
    x = row(k, u)
    head = N[x]
    lo, hi = lo_of(head), hi_of(head)
    inner = level_of(head) > 0
    p = N[x + PARENT]
    linked = p != 0 and N[row(k, p) + PARENT] != 0
    if not inner and head & LEFT:
        repair_suffixes(k, op, H, N, V, u, p, linked)
        return
    at = own_slot(k, u)
    out = get(op, V, at)
    first = inner and (head & RIGHT or not has_fingers(k))
    if linked and head & RIGHT:
        acc = assign(op, out, get(op, V, own_slot(k, p)))
        if first:
            acc = combine(op, acc, acc, get(op, V, child_slot(k, u, lo)))
        acc = combine(op, acc, acc, get(op, V, slot(k, u) + lo))
    elif first:
        acc = assign(op, out, get(op, V, child_slot(k, u, lo)))
        acc = combine(op, acc, acc, get(op, V, slot(k, u) + lo))
    else:
        acc = assign(op, out, get(op, V, slot(k, u) + lo))
    acc = span(k, op, V, u, acc, lo, hi, inner)
    if inner and (head & LEFT or not has_fingers(k)):
        acc = combine(op, acc, acc, get(op, V, child_slot(k, u, hi)))
    if linked and head & LEFT:
        acc = combine(op, acc, acc, get(op, V, own_slot(k, p)))
    put(op, V, at, acc)


@kernel
def descend(k, op, H, N, V, u, hit):
    """Repair u, the root or a spine node, and the spines below it that its change concerns (hit: those touched under the root)."""
    concerns = N[row(k, u)] & SPINE if N[row(k, u) + PARENT] != 0 else hit
    z, side = u, concerns & LEFT
    while True:
        repair_own_here(k, op, H, N, V, z)
        head = N[row(k, z)]
        if level_of(head) == 0 or not concerns:
            if not (side and concerns & RIGHT and H[HEIGHT] > 0):
                return
            side = 0
            z = u
            head = N[row(k, u)]
        z = child(k, N, z, lo_of(head) if side else hi_of(head))


@kernel
def rise(k, op, A, H, N, V, u, level, delta, hit):
    """Repair what is above u, which has changed: up to the spine, at least up to `level`, then down to the finger.

    delta: how many entries more there are below u; the way down to u is in A.
    """
    while True:
        x = row(k, u)
        head = N[x]
        p = N[x + PARENT]
        if p == 0:
            break
        if head & SPINE:
            if level_of(head) >= level:
                break
            hit |= head & SPINE
        else:
            i = A[PATH + level_of(head) + 1]
            repair_up(k, op, N, V, u, p, i)
            N[row(k, p) + TIMES + cap(k) + i] += delta << COUNT
        u = p
    descend(k, op, H, N, V, u, hit)


@inlined
def rise_with(k, op, A, H, N, V, u, delta, s):
    """As `rise`, for one state more below u and an operator that commutes: each aggregate takes it in, one combine each.

    Of floats, aggregates are then sums in the order of arrival instead of that of time: as exact, but other roundings. What is
    evicted is never subtracted; a node that loses something is combined anew."""
    while True:
        x = row(k, u)
        p = N[x + PARENT]
        if p == 0 or N[x] & SPINE:
            break
        i = A[PATH + level_of(N[x]) + 1]
        at = child_slot(k, p, i)
        put(op, V, at, combine(op, get(op, V, at), get(op, V, at), s))
        N[row(k, p) + TIMES + cap(k) + i] += delta << COUNT
        u = p
    while True:
        head = N[row(k, u)]
        level = level_of(head)
        if level == 0 and head & LEFT:  # the suffixes of the first leaf: which of them depends on the place
            descend(k, op, H, N, V, u, 0)
            return
        at = own_slot(k, u)
        put(op, V, at, combine(op, get(op, V, at), get(op, V, at), s))
        if level == 0 or not head & SPINE:
            return
        u = child(k, N, u, lo_of(head) if head & LEFT else hi_of(head))


@inlined
def total(k, op, H, N, V, out):
    """The aggregate of the whole tree, which is not empty: at most two combines."""
    root = get(op, V, own_slot(k, H[ROOT]))
    if H[HEIGHT] == 0 or not has_fingers(k):
        return root
    left = get(op, V, slot(k, H[SUFFIXES]) + lo_of(N[row(k, H[LEFTMOST])]))
    both = combine(op, out, left, root)
    return combine(op, both, both, get(op, V, own_slot(k, H[RIGHTMOST])))
