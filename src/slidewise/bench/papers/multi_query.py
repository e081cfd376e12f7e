"""The max-multi-query setting of slickdeque-2018: after each slide, the aggregates of the 1, 2, ... n youngest, for all n at once.

    youngest_of_all     a structure that answers a range (FlatFAT, B-Int, FlatFIT), asked n times
    from_scratch        every range by itself: n (n - 1) / 2 combines a slide
    along_the_deque     selective: one walk along the deque answers every range (Algorithm 2)
    running_answers     invertible: a running answer for each range, 2 n combines a slide (Algorithm 1)

The engines have their own form of this (`slick_deque.run_ranges`), for the few ranges that people ask for; here every range
is asked. The window is full when these begin.
"""

from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import combine, emit, get, inverse, lift, open_arrays, open_state, ptr, put, row
from slidewise.algorithms.protocol import evict_, insert_, load_, query_range_, query_youngest_, save_


@entry
def youngest_of_all(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, n, slides):
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, m)
    for i in range(slides):
        st = evict_(alg, op, W, V, m, st)
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
        for r in range(1, n + 1):
            st, total = query_youngest_(alg, op, W, V, m, st, r, get(op, V, scratch + 1))
            emit(op, OUT, OK, r - 1, total)
    save_(alg, op, H, W, V, m, st)


@entry
def from_scratch(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, n, slides):
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, m)
    for i in range(slides):
        st = evict_(alg, op, W, V, m, st)
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
        for r in range(1, n + 1):
            st, total = query_range_(alg, op, W, V, m, st, n - r, n - 1, get(op, V, scratch + 1))
            emit(op, OUT, OK, r - 1, total)
    save_(alg, op, H, W, V, m, st)


@entry
def along_the_deque(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, n, slides):
    """Slots and words as in algorithms/slick_deque.py: node k is in place k & m, its position in W."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, m)
    for i in range(slides):
        st = evict_(alg, op, W, V, m, st)
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
        end, node = st[1], st[2]
        for r in range(n, 0, -1):
            while W[node & m] < end - r:
                node += 1
            emit(op, OUT, OK, r - 1, get(op, V, node & m))
    save_(alg, op, H, W, V, m, st)


@entry
def running_answers(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, n, slides):
    """The answer of the r youngest is in slot scratch + 1 + r; H[0] and H[1] are the window's ends, as in slick_deque."""
    V, X, OUT, OK = open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    first, end = H[0], H[1]
    for i in range(slides):
        s = lift(op, get(op, V, scratch), row(X, i))
        for r in range(1, n + 1):
            answer = get(op, V, scratch + 1 + r)
            answer = inverse(op, answer, answer, get(op, V, (end - r) & m))
            answer = combine(op, answer, answer, s)
            put(op, V, scratch + 1 + r, answer)
            emit(op, OUT, OK, r - 1, answer)
        put(op, V, end & m, s)
        first += 1
        end += 1
    H[0] = first
    H[1] = end


@entry
def start_answers(alg, op, H, W_, V_, m, scratch, n):
    """The running answers of a full window: each range is the one before and one event more."""
    V = open_state(op, V_)
    end = H[1]
    for r in range(1, n + 1):
        answer = get(op, V, scratch + 1 + r)
        if r == 1:
            put(op, V, scratch + 2, get(op, V, (end - 1) & m))
        else:
            put(op, V, scratch + 1 + r, combine(op, answer, get(op, V, (end - r) & m), get(op, V, scratch + r)))
