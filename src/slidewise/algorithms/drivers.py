"""Compiled loops that drive an in-order algorithm over whole arrays, and the single steps behind a live window.

One source for every algorithm: the algorithm comes as a tag (protocol.py) and its kernels are inlined into these loops.
Arguments that all of them share: H, W, V and m as in protocol.py; X, the input columns; MASK, a byte for each row that
says whether it counts (an empty array: all do); OUT and OK, the results and whether they are defined; scratch, the
first slot behind the algorithm's own.
"""

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import emit, get, lift, null_when_empty, open_arrays, open_state, ptr, reset, row
from slidewise.algorithms.protocol import (
    bulk_evict_,
    entry_,
    evict_,
    evict_at_,
    fresh_,
    full_,
    insert_,
    load_,
    move_,
    query_,
    query_range_,
    query_youngest_,
    save_,
    size_,
)


@inlined
def answer(alg, op, W, V, m, st, scratch, OUT, OK, i):
    """Query, and write the lowered result into place i."""
    if size_(alg, st) > 0:
        st, total = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
        emit(op, OUT, OK, i, total)
    elif null_when_empty(op):
        OK[i] = 0
    else:
        emit(op, OUT, OK, i, reset(op, get(op, V, scratch + 1)))
    return st


@entry
def start(alg, op, H, W, V_, m):
    """Make the arrays an empty window again."""
    V = open_state(op, V_)
    save_(alg, op, H, W, V, m, fresh_(alg, op, W, V, m))


@entry
def run_rows(alg, op, H, W_, V_, m, scratch, X_, window, OUT_, OK_, lo, hi):
    """For each row: evict the oldest if the window is full, insert, query."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, m)
    for i in range(lo, hi):
        if size_(alg, st) == window:
            st = evict_(alg, op, W, V, m, st)
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
        st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
    save_(alg, op, H, W, V, m, st)


@inlined
def move_to(alg, op, W, V, m, st, scratch, first, last, start, end, X, MASK, masked):
    """Slide the window from rows [first, last) to [start, end)."""
    if start >= last:  # nothing of the old frame is left
        if last > first:
            st = fresh_(alg, op, W, V, m)
        first = last = start
    while first < start:
        if not masked or MASK[first]:
            st = evict_(alg, op, W, V, m, st)
        first += 1
    while last < end:
        if not masked or MASK[last]:
            st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, last)))
        last += 1
    return st, first, last


@entry
def run_frames(alg, op, H, W_, V_, m, scratch, carry, X_, MASK_, starts_, ends_, OUT_, OK_, lo, hi):
    """For each i in [lo, hi): the aggregate of the rows [starts[i], ends[i]) that count. Both ends never go back. The window is
    left where the next piece goes on; carry: its first row and the one behind its last, to begin with both the first start."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    MASK, starts, ends = open_arrays((MASK_, starts_, ends_))
    masked = len(MASK_) > 0
    st = load_(alg, op, H, W, V, m)
    first, last = carry[0], carry[1]
    for i in range(lo, hi):
        st, first, last = move_to(alg, op, W, V, m, st, scratch, first, last, starts[i], ends[i], X, MASK, masked)
        st = answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
    carry[0] = first
    carry[1] = last
    save_(alg, op, H, W, V, m, st)


@entry
def step_insert(alg, op, H, W, V_, m, scratch, x):
    """Insert one event; False if there is no room: the caller doubles the arrays (step_move) and comes again."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    if full_(alg, st, m):
        return False
    save_(alg, op, H, W, V, m, insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), x)))
    return True


@entry
def step_insert_many(alg, op, H, W_, V_, m, scratch, X_, lo, hi):
    """Insert rows [lo, hi) of the columns; the caller has made room."""
    W, V, X = ptr(W_), open_state(op, V_), open_arrays(X_)
    st = load_(alg, op, H, W, V, m)
    for i in range(lo, hi):
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
    save_(alg, op, H, W, V, m, st)


@entry
def step_lifts(op, V_, slot, X_, lo, hi):
    """Lift rows [lo, hi) into one slot, one over the other: whether `lift` takes them all."""
    V, X = open_state(op, V_), open_arrays(X_)
    for i in range(lo, hi):
        lift(op, get(op, V, slot), row(X, i))


@entry
def step_evict(alg, op, H, W, V_, m, count):
    """Evict the `count` oldest, one by one."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    for _ in range(count):
        st = evict_(alg, op, W, V, m, st)
    save_(alg, op, H, W, V, m, st)


@entry
def step_bulk_evict(alg, op, H, W, V_, m, count):
    """Evict the `count` oldest at once, for algorithms that offer it."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    save_(alg, op, H, W, V, m, bulk_evict_(alg, op, W, V, m, st, count))


@entry
def step_query(alg, op, H, W, V_, m, scratch, OUT, OK):
    """The lowered aggregate of the window, into place 0."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    if size_(alg, st) == 0:
        answer(alg, op, W, V, m, st, scratch, OUT, OK, 0)
        return
    st, total = query_(alg, op, W, V, m, st, get(op, V, scratch + 1))
    save_(alg, op, H, W, V, m, st)  # first: `lower` may raise
    emit(op, OUT, OK, 0, total)


@entry
def step_evict_at(alg, op, H, W, V_, m, j):
    """Evict the j-th oldest, for algorithms that offer it."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    save_(alg, op, H, W, V, m, evict_at_(alg, op, W, V, m, st, j))


@entry
def step_query_range(alg, op, H, W, V_, m, scratch, i, j, OUT, OK):
    """The lowered aggregate of the i-th up to the j-th oldest."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    st, total = query_range_(alg, op, W, V, m, st, i, j, get(op, V, scratch + 1))
    save_(alg, op, H, W, V, m, st)  # first: `lower` may raise
    emit(op, OUT, OK, 0, total)


@entry
def step_query_youngest(alg, op, H, W, V_, m, scratch, r, OUT, OK):
    """The lowered aggregate of the r youngest."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    st, total = query_youngest_(alg, op, W, V, m, st, r, get(op, V, scratch + 1))
    save_(alg, op, H, W, V, m, st)  # first: `lower` may raise
    emit(op, OUT, OK, 0, total)


@entry
def step_entry(alg, op, H, W, V_, m, scratch, j, OUT, OK):
    """The lowered state of the j-th oldest event."""
    V = open_state(op, V_)
    st = load_(alg, op, H, W, V, m)
    st, state = entry_(alg, op, W, V, m, st, j, get(op, V, scratch + 1))
    save_(alg, op, H, W, V, m, st)  # first: `lower` may raise
    emit(op, OUT, OK, 0, state)


@entry
def step_move(alg, op, H, W, V_, m, W2, V2_, m2):
    """Copy what lives into other arrays of another capacity, zeroed and blank; H is brought along."""
    move_(alg, op, H, W, open_state(op, V_), m, W2, open_state(op, V2_), m2)
