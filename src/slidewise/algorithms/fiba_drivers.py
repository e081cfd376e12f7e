"""What Python calls: single steps on one tree of a forest, and loops over whole arrays.

Every entry point takes (k, op, A, H, N, V, tree, ...): k the Shape, op the typed operator, A the arena's header (ARENA_WORDS),
H the headers of all trees one after the other (TREE_WORDS each), N and V the arena's words and states, tree the number of
the tree. An entry point that would need more nodes than there are says so before it changes anything; the caller grows N and
V and comes again. X are the input columns, MASK a byte for each row that says whether it counts (an empty array: all do),
OUT and OK the results and whether they are defined. fiba_forest.py allocates and grows.
"""

from slidewise.algebra.cache import entry, inlined
from slidewise.algebra.kernel import (
    combine,
    emit,
    get,
    lift,
    null_when_empty,
    open_arrays,
    open_state,
    ptr,
    put,
    reset,
    row,
    shift,
)
from slidewise.algorithms.fiba import evict, evict_at, insert, oldest, youngest
from slidewise.algorithms.fiba_aggregates import total
from slidewise.algorithms.fiba_bulk_evict import bulk_evict
from slidewise.algorithms.fiba_bulk_insert import bulk_insert
from slidewise.algorithms.fiba_nodes import SIZE, TIMES, TREE_WORDS, has_room, slot
from slidewise.algorithms.fiba_nodes import row as node_row
from slidewise.algorithms.fiba_ranges import export, first, following, query_range, rank, select

LIFTED, RESULT = 0, 1
"""Scratch slots of the arena."""


@inlined
def answer(k, op, H, N, V, OUT, OK, i):
    """Query, and write the lowered result into place i."""
    if H[SIZE] > 0:
        emit(op, OUT, OK, i, total(k, op, H, N, V, get(op, V, RESULT)))
    elif null_when_empty(op):
        OK[i] = 0
    else:
        emit(op, OUT, OK, i, reset(op, get(op, V, RESULT)))


@inlined
def answer_range(k, op, H, N, V, first, last, OUT, OK, i):
    found, state = query_range(k, op, H, N, V, first, last)
    if found:
        emit(op, OUT, OK, i, state)
    elif null_when_empty(op):
        OK[i] = 0
    else:
        emit(op, OUT, OK, i, reset(op, get(op, V, RESULT)))
    return found


# ---- single steps ----------------------------------------------------------------------------------------------------


@entry
def step_insert(k, op, A_, H_, N_, V_, tree, t, x):
    """Insert the event x at time t; False if the arena is short."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    if not has_room(k, A, H):
        return False
    insert(k, op, A, H, N, V, t, lift(op, get(op, V, LIFTED), x))
    return True


@entry
def step_evict(k, op, A_, H_, N_, V_, tree):
    """Remove the oldest entry, if there is one."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    if H[SIZE] > 0:
        evict(k, op, A, H, N, V)


@entry
def step_evict_at(k, op, A_, H_, N_, V_, tree, t):
    """Remove exactly time t; whether it was there."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    return H[SIZE] > 0 and evict_at(k, op, A, H, N, V, t)


@entry
def step_bulk_evict(k, op, A_, H_, N_, V_, tree, t):
    """Remove everything at or before t; how many entries went."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    return bulk_evict(k, op, A, H, N, V, t)


@entry
def step_bulk_insert(k, op, A_, H_, N_, V_, tree, TS, W_, lo, hi, G, batch):
    """Insert the states lo .. hi - 1 of W at the times of TS, which ascend; the first that was not inserted (hi: none)."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    return bulk_insert(k, op, A, H, N, V, ptr(TS), open_state(op, W_), lo, hi, ptr(G), batch)


@entry
def step_gather(k, op, T, X, ORDER, TS, W_):
    """Lift the events in the order given (empty: as they are, which is sorted), into TS and W; those of one time are combined.
    Returns how many entries there are. W has a scratch slot behind the last."""
    W = open_state(op, W_)
    scratch = len(TS)
    sorted_already = len(ORDER) == 0
    count = 0
    for j in range(len(T)):
        i = j if sorted_already else ORDER[j]
        s = lift(op, get(op, W, scratch), row(X, i))
        if count > 0 and TS[count - 1] == T[i]:
            put(op, W, count - 1, combine(op, get(op, W, count - 1), get(op, W, count - 1), s))
        else:
            TS[count] = T[i]
            put(op, W, count, s)
            count += 1
    return count


@entry
def step_query(k, op, A_, H_, N_, V_, tree, OUT, OK):
    """The lowered aggregate of the tree, into place 0."""
    answer(k, op, shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_), OUT, OK, 0)


@entry
def step_query_range(k, op, A_, H_, N_, V_, tree, first, last, OUT, OK):
    """The lowered aggregate of the times from first to last, both included, into place 0; whether there are any."""
    return answer_range(k, op, shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_), first, last, OUT, OK, 0)


@entry
def step_rank(k, op, A_, H_, N_, V_, tree, t, inclusive):
    """How many entries are before t, or (inclusive) at or before it."""
    return rank(k, ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), t, inclusive)


@entry
def step_select(k, op, A_, H_, N_, V_, tree, j):
    """The time of the j-th oldest entry, 0 <= j < size."""
    N = ptr(N_)
    u, i = select(k, shift(ptr(H_), tree * TREE_WORDS), N, j)
    return N[node_row(k, u) + TIMES + i]


@entry
def step_ends(k, op, A_, H_, N_, V_, tree):
    """The oldest and the youngest time of a tree that is not empty."""
    H, N = shift(ptr(H_), tree * TREE_WORDS), ptr(N_)
    return oldest(k, H, N), youngest(k, H, N)


@entry
def step_export(k, op, A_, H_, N_, V_, tree, TS, W_):
    """Times and states of all entries, in order, into TS and W."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    return export(k, op, A, H, N, V, ptr(TS), open_state(op, W_), 0)


@entry
def step_rebuild(k, op, A_, H_, N_, V_, tree, A2, H2, N2, V2):
    """Append all entries of a tree to the tree of the same number in another arena; False if that is short."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    B, J, M, U = ptr(A2), shift(ptr(H2), tree * TREE_WORDS), ptr(N2), open_state(op, V2)
    u, i = 0, 0
    for j in range(H[SIZE]):
        if not has_room(k, B, J):
            return False
        u, i = first(k, A, H, N) if j == 0 else following(k, A, N, u, i)
        insert(k, op, B, J, M, U, N[node_row(k, u) + TIMES + i], get(op, V, slot(k, u) + i))
    return True


@entry
def step_items(k, op, A_, H_, N_, V_, tree, W_, OUT, OK, lo, hi):
    """Lowered values of the states lo .. hi - 1 of W."""
    W = open_state(op, W_)
    for i in range(lo, hi):
        emit(op, OUT, OK, i, get(op, W, i))


# ---- loops over arrays -----------------------------------------------------------------------------------------------


@entry
def run_rows(k, op, A_, H_, N_, V_, tree, T, X_, MASK, window, OUT_, OK_, lo, hi):
    """For each row: insert, evict the oldest while there are more than `window`, query. Returns the row it came to."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    masked = len(MASK) > 0
    for i in range(lo, hi):
        if not has_room(k, A, H):
            return i
        if not masked or MASK[i]:
            insert(k, op, A, H, N, V, T[i], lift(op, get(op, V, LIFTED), row(X, i)))
            if H[SIZE] > window:
                evict(k, op, A, H, N, V)
        answer(k, op, H, N, V, OUT, OK, i)
    return hi


@entry
def run_cuts(k, op, A_, H_, N_, V_, tree, T, X_, MASK, CUT, OUT_, OK_, lo, hi):
    """For each row: insert, evict everything at or before CUT, query. Returns the row it came to."""
    A, H, N, V = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_)
    X, OUT, OK = open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    masked = len(MASK) > 0
    for i in range(lo, hi):
        if not has_room(k, A, H):
            return i
        if not masked or MASK[i]:
            insert(k, op, A, H, N, V, T[i], lift(op, get(op, V, LIFTED), row(X, i)))
        if H[SIZE] > 0 and not CUT[i] < oldest(k, H, N):
            evict(k, op, A, H, N, V)
            if H[SIZE] > 0 and not CUT[i] < oldest(k, H, N):
                bulk_evict(k, op, A, H, N, V, CUT[i])
        answer(k, op, H, N, V, OUT, OK, i)
    return hi
