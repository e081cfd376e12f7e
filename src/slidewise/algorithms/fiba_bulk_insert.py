"""Bulk insert: m entries in the order of time, in amortised O(log d + m (1 + log(d / m))).

bulk-fiba-2023 section 5. Entries younger than the youngest are appended, a leaf at a time. The others
share one pass:

    search     for each entry its leaf, from the leaf of the one before: up to the lowest node that has a later time, and down,
               unless it belongs to the same place. An entry whose time is there, perhaps in an inner node, is noted to be
               combined on the right
    plan       how many nodes the pass can need: if the arena is short, nothing has changed yet
    pass up    level by level: entries that go into the same node are merged with its own; what is too much is split off, in parts
               of mu to 2 mu - 1 children. The entry between two parts goes up: until it is taken in there, it waits in the
               slot before the first entry of the part it comes before
    pass down  the spines

The split is Claim 1's in what it promises (each part a legitimate node, none so full that the next entry splits it) but not in the
parts: as few as there can be, and even, where the paper takes parts of mu + 1 and one last that has the rest. Parts of mu + 1
leave nodes little more than half full, which costs memory and height; with even parts, the more there are the fuller. The
coins of Lemma 3 pay for them too: a node of a > 2 mu children has 2 + 2 (a - 2 mu) of them; its t parts need 3 (t - 1) to be split
off and sent up, and one for each part of exactly mu. The tests of the papers hold both splits against that sum.

A level hands the next one a list of the children it has touched: a node as it was, followed by its new parts, negated. They
wait in G, 2 * BATCH words for the places found and two lists that change roles.
"""

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import combine, get, put
from slidewise.algorithms.fiba import find, insert, insert_anywhere, youngest
from slidewise.algorithms.fiba_aggregates import descend, settle
from slidewise.algorithms.fiba_balance import grow
from slidewise.algorithms.fiba_nodes import (
    BUMP,
    CHILD,
    COUNT,
    HEIGHT,
    HIGH_LEFT,
    HIGH_RIGHT,
    HIGH_ROOT,
    HIT,
    LEFT,
    NEIGHBOUR,
    ONE_MORE,
    PARENT,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SIZE,
    SPINE,
    TIMES,
    UNITS,
    cap,
    child,
    copy_child,
    copy_entry,
    has_fingers,
    has_room,
    hi_of,
    level_of,
    lo_of,
    new_node,
    open_gap,
    own_slot,
    place,
    row,
    set_child,
    size_of,
    slide,
    slot,
)

ASIDE = 1
"""The unit (and the one behind it) where a node is copied to be taken apart."""
TOUCHED = NEIGHBOUR
"""Words by level: nodes on the way to the places of a batch."""
WORDS = 6
"""Words of G for each entry of a batch."""
FEW = 2


@kernel
def bulk_insert(k, op, A, H, N, V, TS, W, lo, hi, G, batch):
    """Insert the states lo .. hi - 1 of W at the times of TS, which ascend. Returns the first that was not inserted: the arena
    is short. G has WORDS * batch words."""
    if H[SIZE] > 0:
        last = youngest(k, H, N)
        while lo < hi:
            end = min(hi, lo + batch)
            inside = first_after(TS, lo, end, last)
            if inside == lo:
                break
            if inside - lo <= FEW:
                while lo < inside:
                    if not has_room(k, A, H):
                        return lo
                    insert_anywhere(k, op, A, H, N, V, TS[lo], get(op, W, lo))
                    lo += 1
            else:
                if not insert_batch(k, op, A, H, N, V, TS, W, lo, inside, G, batch):
                    return lo
                lo = inside
    while lo < hi:
        if not has_room(k, A, H):
            return lo
        insert(k, op, A, H, N, V, TS[lo], get(op, W, lo))
        lo += 1
        if has_fingers(k):
            lo = fill_finger(k, op, H, N, V, TS, W, lo, hi)
    return lo


@inlined
def fill_finger(k, op, H, N, V, TS, W, lo, hi):
    """Append as many of the entries lo .. hi - 1, all younger than the youngest, as the right finger has room for. Returns the
    first that is left."""
    u = H[RIGHTMOST]
    x = row(k, u)
    head = N[x]
    free = hi_of(head)
    count = min(hi - lo, cap(k) - 1 - size_of(head), cap(k) - free)
    N[x] = head + count * ONE_MORE
    H[SIZE] += count
    at, own = slot(k, u) + free, own_slot(k, u)
    whole = get(op, V, own)
    for j in range(count):
        N[x + TIMES + free + j] = TS[lo + j]
        put(op, V, at + j, get(op, W, lo + j))
        whole = combine(op, whole, whole, get(op, W, lo + j))
    put(op, V, own, whole)
    return lo + count


@kernel
def first_after(TS, lo, hi, t):
    while lo < hi:
        middle = (lo + hi) >> 1
        if t < TS[middle]:
            hi = middle
        else:
            lo = middle + 1
    return lo


@kernel
def insert_batch(k, op, A, H, N, V, TS, W, lo, hi, G, batch):
    """Insert entries none of which is younger than the youngest; False if the arena is short."""
    new = find_places(k, A, H, N, TS, lo, hi, G)
    if A[BUMP] + units_needed(k, A, H, N, lo, hi, G) > A[UNITS]:
        return False
    H[SIZE] += new
    here, there = 2 * batch, 4 * batch
    size = 0  # of the list for the next level
    for word in range(HIGH_LEFT, HIT + 1):
        A[word] = 0
    j = lo
    while j < hi:
        u = G[2 * (j - lo)]
        first = j
        count = 0
        while j < hi and G[2 * (j - lo)] == u:
            found = G[2 * (j - lo) + 1]
            if found == 0:
                count += 1
            else:
                w = found & CHILD
                at = slot(k, w) + (found >> COUNT)
                put(op, V, at, combine(op, get(op, V, at), get(op, V, at), get(op, W, j)))
                note(k, A, N, w)
            j += 1
        parts = take_in(k, op, A, N, V, TS, W, u, lo, first, j, count, G, here + size + 1)
        size = pass_on(k, A, H, N, u, parts, G, here, size)
    while size > 0:
        total = size
        size = 0
        i = 0
        while i < total:
            p = N[row(k, G[here + i]) + PARENT]
            first = i
            count = 0
            while i < total and (G[here + i] < 0 or N[row(k, G[here + i]) + PARENT] == p):
                if G[here + i] < 0:
                    count += 1
                i += 1
            parts = adopt(k, op, A, N, V, p, G, here + first, here + i, count, there + size + 1)
            settle_all(k, op, N, V, G, here + first, here + i)
            size = pass_on(k, A, H, N, p, parts, G, there, size)
        here, there = there, here
    if A[HIGH_ROOT] != 0:
        descend(k, op, H, N, V, H[ROOT], A[HIT])
    if A[HIGH_LEFT] != 0:
        descend(k, op, H, N, V, A[HIGH_LEFT], 0)
    if A[HIGH_RIGHT] != 0:
        descend(k, op, H, N, V, A[HIGH_RIGHT], 0)
    return True


# ---- search and plan -------------------------------------------------------------------------------------------------


@kernel
def find_places(k, A, H, N, TS, lo, hi, G):
    """For each entry its leaf and, if its time is there, where (child | place << COUNT). Returns how many are new."""
    for level in range(H[HEIGHT] + 1):
        A[TOUCHED + level] = 1
    u, i = find(k, A, H, N, TS[lo])
    new = 0
    after = TS[lo]  # the first time behind the place of the entry before, where it is known
    for j in range(lo, hi):
        t = TS[j]
        if t < after:  # the same place
            new += 1
            G[2 * (j - lo)] = u
            G[2 * (j - lo) + 1] = 0
            continue
        x = row(k, u)
        while N[x + TIMES + hi_of(N[x]) - 1] < t and N[x + PARENT] != 0 and not N[x] & RIGHT:
            u = N[x + PARENT]
            x = row(k, u)
        found = 0
        after = t
        while True:
            x = row(k, u)
            head = N[x]
            i = place(k, N, u, t)
            if i < hi_of(head):
                after = N[x + TIMES + i]
                if after == t:
                    found = u | i << COUNT  # what follows leads to the leaf before it
            if level_of(head) == 0:
                break
            u = child(k, N, u, i)
            A[TOUCHED + level_of(head) - 1] += 1
        if found == 0:
            new += 1
        G[2 * (j - lo)] = u
        G[2 * (j - lo) + 1] = found
    return new


@inlined
def parts_of(k, arity):
    """How many nodes so many children make."""
    return 1 if arity <= cap(k) else (arity + cap(k) - 2) // (cap(k) - 1)


@inlined
def arity_of_part(arity, parts, part):
    """Even parts of at least mu and at most 2 mu - 1 children."""
    return arity // parts + (1 if part < arity % parts else 0)


@kernel
def units_needed(k, A, H, N, lo, hi, G):
    """Units for all nodes that a batch can need."""
    split = 0  # nodes split off at a level, which is how many entries go up
    j = lo
    while j < hi:
        u = G[2 * (j - lo)]
        count = size_of(N[row(k, u)]) + 1
        while j < hi and G[2 * (j - lo)] == u:
            if G[2 * (j - lo) + 1] == 0:
                count += 1
            j += 1
        split += parts_of(k, count) - 1
    units = split + 1  # one for the suffixes, if it is no longer a single leaf
    level = 1
    while split > 0:
        if level <= H[HEIGHT]:  # a node splits off one for the first entry, and one more for each 2 mu - 1 of them
            split = min(split, A[TOUCHED + level] + split // (cap(k) - 1))
            units += 2 * split
        else:
            made = (split + cap(k) - 1) // (cap(k) - 1)
            units += 2 * made
            split = made - 1
        level += 1
    return units


# ---- pass up ---------------------------------------------------------------------------------------------------------


@kernel
def note(k, A, N, u):
    """Remember u if it is the root, or the highest node touched on its spine."""
    head = N[row(k, u)]
    if N[row(k, u) + PARENT] == 0:
        A[HIGH_ROOT] = u
    elif head & SPINE:
        word = HIGH_LEFT if head & LEFT else HIGH_RIGHT
        if A[word] == 0 or level_of(head) > level_of(N[row(k, A[word])]):
            A[word] = u


@kernel
def pass_on(k, A, H, N, u, parts, G, base, size):
    """Enter u, and its new parts that are behind it in the list already, for the next level, if it is of any concern there."""
    x = row(k, u)
    if parts == 1:
        if N[x + PARENT] == 0 or N[x] & SPINE:
            note(k, A, N, u)
            return size
    else:
        if N[x + PARENT] == 0:
            grow(k, A, H, N, u)
            A[HIT] = SPINE
        A[HIT] |= N[x] & SPINE
        if N[x] & RIGHT:
            last = -G[base + size + parts - 1]
            N[x] &= ~RIGHT
            N[row(k, last)] |= RIGHT
            if level_of(N[x]) == 0:
                H[RIGHTMOST] = last
            if A[HIGH_RIGHT] == u:
                A[HIGH_RIGHT] = last
    G[base + size] = u
    return size + parts


@kernel
def take_in(k, op, A, N, V, TS, W, u, lo, first, end, count, G, out):
    """Merge `count` new entries, among first .. end - 1 of the batch, into the leaf u. Returns how many leaves it makes."""
    head = N[row(k, u)]
    size = size_of(head)
    if size + count < cap(k):
        merge_into_leaf(k, op, N, V, TS, W, u, lo, end, count, G)
        return 1
    parts = parts_of(k, size + count + 1)
    for i in range(lo_of(head), hi_of(head)):
        copy_entry(k, op, N, V, u, i, ASIDE, i)
    N[row(k, u)] = head - lo_of(head) - hi_of(head) * ONE_MORE + 1 + ONE_MORE
    aside = row(k, ASIDE) + TIMES
    i, j = lo_of(head), first
    part, filled = 0, 0
    limit = arity_of_part(size + count + 1, parts, 0) - 1
    for _ in range(size + count):
        while j < end and G[2 * (j - lo) + 1] != 0:
            j += 1
        at = 1 + filled
        if filled == limit:
            N[row(k, u)] += filled * ONE_MORE
            u = new_node(k, A, N, 0, 0)
            G[out + part] = -u
            part += 1
            limit = arity_of_part(size + count + 1, parts, part) - 1
            filled = 0
            at = 0
        else:
            filled += 1
        if j < end and (i == hi_of(head) or TS[j] < N[aside + i]):
            N[row(k, u) + TIMES + at] = TS[j]
            put(op, V, slot(k, u) + at, get(op, W, j))
            j += 1
        else:
            copy_entry(k, op, N, V, ASIDE, i, u, at)
            i += 1
    N[row(k, u)] += filled * ONE_MORE
    return parts


@kernel
def merge_into_leaf(k, op, N, V, TS, W, u, lo, end, count, G):
    """There is room: from the last entry on, to where it will stay."""
    x = row(k, u)
    if hi_of(N[x]) + count > cap(k):
        slide(k, op, N, V, u, -lo_of(N[x]))
    i, j = hi_of(N[x]) - 1, end - 1
    first = lo_of(N[x])
    N[x] += count * ONE_MORE
    while count > 0:
        while G[2 * (j - lo) + 1] != 0:
            j -= 1
        if i >= first and TS[j] < N[x + TIMES + i]:
            copy_entry(k, op, N, V, u, i, u, i + count)
            i -= 1
        else:
            N[x + TIMES + i + count] = TS[j]
            put(op, V, slot(k, u) + i + count, get(op, W, j))
            j -= 1
            count -= 1


@kernel
def adopt(k, op, A, N, V, p, G, first, end, count, out):
    """Take in the `count` new children among those listed in first .. end - 1. Returns how many nodes p makes."""
    if count == 0:
        return 1
    head = N[row(k, p)]
    size = size_of(head)
    i = lo_of(head)
    if size + count < cap(k):
        for r in range(first, end):
            if G[r] > 0:
                while child(k, N, p, i) != G[r]:
                    i += 1
            else:
                i = open_gap(k, op, N, V, p, i)
                copy_entry(k, op, N, V, -G[r], 0, p, i)
                set_child(k, N, p, i + 1, -G[r])
                i += 1
        return 1
    arity = size + count + 1
    parts = parts_of(k, arity)
    for i in range(lo_of(head), hi_of(head)):
        copy_entry(k, op, N, V, p, i, ASIDE, i)
    for i in range(lo_of(head), hi_of(head) + 1):
        copy_child(k, op, N, V, p, i, ASIDE, i)
    N[row(k, p)] = head - lo_of(head) - hi_of(head) * ONE_MORE + 1 + ONE_MORE
    part, filled = 0, 0
    limit = arity_of_part(arity, parts, 0)
    r = first
    for i in range(lo_of(head), hi_of(head) + 1):
        c = child(k, N, ASIDE, i)
        before, at = ASIDE, i - 1  # the entry that comes before the child
        fresh = False
        while True:
            if filled == limit:
                N[row(k, p)] += (filled - 1) * ONE_MORE
                p = new_node(k, A, N, level_of(head), 0)
                G[out + part] = -p
                part += 1
                limit = arity_of_part(arity, parts, part)
                filled = 0
                copy_entry(k, op, N, V, before, at, p, 0)
            elif filled > 0:
                copy_entry(k, op, N, V, before, at, p, filled)
            filled += 1
            if not fresh:
                copy_child(k, op, N, V, ASIDE, i, p, filled)
                N[row(k, c) + PARENT] = p
                if r < end and G[r] == c:
                    r += 1
            else:
                set_child(k, N, p, filled, c)
            if r == end or G[r] > 0:
                break
            c = -G[r]
            before, at = c, 0
            fresh = True
            r += 1
    N[row(k, p)] += (filled - 1) * ONE_MORE
    return parts


@kernel
def settle_all(k, op, N, V, G, first, end):
    """Aggregates and counts of the children listed in first .. end - 1, which are in their places now."""
    p, i = 0, 0
    for r in range(first, end):
        c = G[r] if G[r] > 0 else -G[r]
        if N[row(k, c) + PARENT] != p:
            p = N[row(k, c) + PARENT]
            i = lo_of(N[row(k, p)])
        while child(k, N, p, i) != c:
            i += 1
        settle(k, op, N, V, p, i)
