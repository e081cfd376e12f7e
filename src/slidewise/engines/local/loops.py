"""Compiled loops that slide an algorithm over frames; each has an interpreted twin (algebra.kernel.twin). The plain one, with an
entry for each row, is `run_frames` of algorithms/drivers.py.

The algorithm comes as a tag from the plan (algorithms/protocol.py): these loops know none by name. They run piece by piece: what
is needed to go on is in the algorithm's own arrays and in `carry`.
"""

from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import assign, combine, emit, get, lift, open_arrays, open_state, ptr, put, row
from slidewise.algorithms.drivers import answer, move_to
from slidewise.algorithms.protocol import evict_, fresh_, insert_, load_, query_, save_, size_

CARRY = 7
"""Words of `carry`: first row (or slice) in the window, the one behind the last; for runs: rows in the open one, where it began,
the next edge, the oldest and the next run closed."""


@entry
def longest(starts_, ends_, lo, hi):
    """The most rows a frame of [lo, hi) holds."""
    starts, ends = open_arrays((starts_, ends_))
    most = ends[lo] - starts[lo] if lo < hi else 0
    for i in range(lo, hi):
        most = max(most, ends[i] - starts[i])
    return most


@entry
def count_before(MASK_, before_):
    """before[i]: how many rows before row i count; and how many count at all."""
    MASK, before = open_arrays((MASK_, before_))
    count = 0
    for i in range(len(MASK_)):
        before[i] = count
        count += MASK[i] != 0
    before[len(MASK_)] = count
    return count


@entry
def keep(values_, MASK_, before_, out_, lo, hi):
    """The values of rows that count, one behind the other."""
    values, MASK, before, out = open_arrays((values_, MASK_, before_, out_))
    for i in range(lo, hi):
        if MASK[i]:
            out[before[i]] = values[i]


@entry
def look_up(table_, places_, out_, lo, hi):
    table, places, out = open_arrays((table_, places_, out_))
    for i in range(lo, hi):
        out[i] = table[places[i]]


@entry
def by_length(totals_, starts_, ends_, count):
    """Sums over the rows of frames -> their means."""
    totals, starts, ends = open_arrays((totals_, starts_, ends_))
    for i in range(count):  # in floats from the start: processors divide several at once then, which they cannot from int64
        length = float(ends[i]) - float(starts[i])
        totals[i] /= length if length > 0.0 else 1.0


@entry
def all_set(OK_, lo, hi):
    OK = ptr(OK_)
    for block in range(lo, hi, 4096):
        missing = False
        for i in range(block, min(block + 4096, hi)):
            missing |= OK[i] == 0
        if missing:
            return False
    return True


# ---- the row itself is left out --------------------------------------------------------------------------------------


@entry
def slide_around(
    alg,
    op,
    H,
    W_,
    V_,
    m,
    scratch,
    carry,
    H2,
    W2_,
    V2_,
    m2,
    scratch2,
    carry2,
    X_,
    MASK_,
    starts_,
    ends_,
    starts2_,
    ends2_,
    OUT_,
    OK_,
    lo,
    hi,
):
    """Two windows side by side, and the results of both together: a row's frame without the row."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    W2, V2 = ptr(W2_), open_state(op, V2_)
    MASK, starts, ends, starts2, ends2 = open_arrays((MASK_, starts_, ends_, starts2_, ends2_))
    masked = len(MASK_) > 0
    st = load_(alg, op, H, W, V, m)
    st2 = load_(alg, op, H2, W2, V2, m2)
    first, last, first2, last2 = carry[0], carry[1], carry2[0], carry2[1]
    for i in range(lo, hi):
        st, first, last = move_to(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked)
        st2, first2, last2 = move_to(
            alg, op, W2, V2, m2, st2, scratch2, first2, last2, starts2[i], ends2[i], X, MASK, masked
        )
        if size_(alg, st) == 0:
            st2 = answer(alg, op, W2, V2, m2, st2, scratch2, OUT, OK, i)
        elif size_(alg, st2) == 0:
            st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
        else:
            st, older = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
            st2, newer = query_(alg, op, W2, V2, m2, st2, get(op, V2, scratch2 + 1))
            emit(op, OUT, OK, i, combine(op, get(op, V, scratch), older, newer))
    carry[0] = first
    carry[1] = last
    carry2[0] = first2
    carry2[1] = last2
    save_(alg, op, H, W, V, m, st)
    save_(alg, op, H2, W2, V2, m2, st2)


# ---- each run of rows that leave together is an entry (coarse-grained sliding) -----------------------------------------------


@entry
def run_edges(starts, edges):
    """The distinct starts of frames, and how many: rows between two of them leave together."""
    count = 0
    for i in range(len(starts)):
        if count == 0 or edges[count - 1] != starts[i]:
            edges[count] = starts[i]
            count += 1
    return count


@entry
def most_runs(starts, ends, edges):
    """The most edges inside one frame."""
    most = 0
    a = b = 0
    for i in range(len(starts)):
        while a < len(edges) and edges[a] < starts[i]:
            a += 1
        b = max(a, b)
        while b < len(edges) and edges[b] < ends[i]:
            b += 1
        most = max(most, b - a)
    return most


@entry
def slide_runs(alg, op, H, W_, V_, m, scratch, carry, began_, edges_, X_, MASK_, starts_, ends_, OUT_, OK_, lo, hi):
    """As `run_frames`, but an entry is a run of rows between two edges. The open run is in slot scratch + 2: a window may end
    inside it (Cutty). began: where each closed run began, a ring like the algorithm's own."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    began, edges, MASK, starts, ends = open_arrays((began_, edges_, MASK_, starts_, ends_))
    masked, count = len(MASK_) > 0, len(edges_)
    st = load_(alg, op, H, W, V, m)
    first, last, rows, opened, edge, oldest, closed = (
        carry[0],
        carry[1],
        carry[2],
        carry[3],
        carry[4],
        carry[5],
        carry[6],
    )
    run = get(op, V, scratch + 2)
    for i in range(lo, hi):
        start, end = starts[i], ends[i]
        if start >= last:
            if last > first:
                st = fresh_(alg, op, W, V, m)
            first = last = opened = start
            rows = 0
            oldest = closed
            while edge < count and edges[edge] <= start:
                edge += 1
        while oldest < closed and began[oldest & m] < start:
            st = evict_(alg, op, W, V, m, st)
            oldest += 1
        first = start
        while last < end:
            if edge < count and last == edges[edge]:
                if rows > 0:
                    st = insert_(alg, op, W, V, m, st, run)
                    began[closed & m] = opened
                    closed += 1
                    rows = 0
                opened = last
                edge += 1
            if not masked or MASK[last]:
                s = lift(op, get(op, V, scratch), row(X, last))
                run = combine(op, run, run, s) if rows > 0 else assign(op, run, s)
                rows += 1
            last += 1
        if rows == 0 or opened < start:
            st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
        elif size_(alg, st) == 0:
            emit(op, OUT, OK, i, run)
        else:
            st, older = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
            emit(op, OUT, OK, i, combine(op, get(op, V, scratch), older, run))
    carry[0] = first
    carry[1] = last
    carry[2] = rows
    carry[3] = opened
    carry[4] = edge
    carry[5] = oldest
    carry[6] = closed
    put(op, V, scratch + 2, run)
    save_(alg, op, H, W, V, m, st)


# ---- each slice of the shared plan is an entry -----------------------------------------------------------------------------


@entry
def fold_slices(op, V_, X_, MASK_, begins_, stops_, INSIDE_, P_, SOME_, lo, hi):
    """The partial of each piece [begins[k], stops[k]), and whether any of its rows counts. A piece that begins inside a slice goes
    on from the one before it: its partial is the slice's so far, and that of a slice's last piece is the slice's. V: two scratch
    states."""
    V, X, P = open_state(op, V_), open_arrays(X_), open_state(op, P_)
    MASK, begins, stops, INSIDE, SOME = open_arrays((MASK_, begins_, stops_, INSIDE_, SOME_))
    masked = len(MASK_) > 0
    for k in range(lo, hi):
        some = False
        partial = get(op, V, 1)
        if INSIDE[k] and SOME[k - 1]:
            partial = assign(op, partial, get(op, P, k - 1))
            some = True
        for i in range(begins[k], stops[k]):
            if not masked or MASK[i]:
                s = lift(op, get(op, V, 0), row(X, i))
                partial = combine(op, partial, partial, s) if some else assign(op, partial, s)
                some = True
        if some:
            put(op, P, k, partial)
        SOME[k] = 1 if some else 0


@entry
def slide_slices(
    alg, op, H, W_, V_, m, scratch, carry, P_, SOME_, WHOLE_, starts_, ends_, tails_, places_, OUT_, OK_, lo, hi
):
    """As `run_frames`, over slices [starts[i], ends[i]) whose partials are there already, WHOLE[slice] among them, and where a
    window ends inside the slice behind them, tails[i]; -1 where it does not. The result goes into place places[i]."""
    W, V, P, OUT, OK = ptr(W_), open_state(op, V_), open_state(op, P_), open_arrays(OUT_), ptr(OK_)
    SOME, WHOLE, starts, ends, tails, places = open_arrays((SOME_, WHOLE_, starts_, ends_, tails_, places_))
    st = load_(alg, op, H, W, V, m)
    first, last = carry[0], carry[1]
    for i in range(lo, hi):
        start, end, tail = starts[i], ends[i], tails[i]
        if start >= last:
            if last > first:
                st = fresh_(alg, op, W, V, m)
            first = last = start
        while first < start:
            if SOME[WHOLE[first]]:
                st = evict_(alg, op, W, V, m, st)
            first += 1
        while last < end:
            if SOME[WHOLE[last]]:
                st = insert_(alg, op, W, V, m, st, get(op, P, WHOLE[last]))
            last += 1
        if tail < 0 or not SOME[tail]:
            st = answer(alg, op, W, V, m, st, scratch, OUT, OK, places[i])
        elif size_(alg, st) == 0:
            emit(op, OUT, OK, places[i], get(op, P, tail))
        else:
            st, older = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
            emit(op, OUT, OK, places[i], combine(op, get(op, V, scratch), older, get(op, P, tail)))
    carry[0] = first
    carry[1] = last
    save_(alg, op, H, W, V, m, st)
