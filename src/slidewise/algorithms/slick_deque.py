"""SlickDeque: running answers where there is an inverse, a deque of candidates where the operator selects.

Shein, Chrysanthis, Labrinidis: slickdeque-2018 section 3, Algorithms 1 and 2. Positions only grow, so neither of the
paper's "answer loops" nor its off-by-one remain: a window of r events starts at position E - r.

Selective (x (x) y is x or y): a node is dropped as soon as a newer one wins against it.

       head                 tail                 pos[k] < pos[k+1], all in F .. E-1, the last is E-1
       |  6   5   3  |                           val[k] (x) val[k+1] = val[k], and is not val[k+1]
          0   1   4                              so: the answer from position p on is the first node with pos >= p

    query   first node                                              0 combines
    insert  drop nodes from the tail while (x) gives the new one    amortised below 2, worst n
    evict   drop the first node if it is the one that leaves        0

Invertible: exactly 2 a slide, as Subtract-on-Evict; the operator needs an exact inverse.

    insert  answer = answer (x) v          evict  answer = answer without v[F]

`run_ranges` answers many ranges over one deque, or keeps one running answer for each (the shared plan of many windows).
"""

from itertools import pairwise

from slidewise.algebra.cache import entry as compiled_entry
from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import (
    combine,
    emit,
    get,
    inverse,
    lift,
    newer_won,
    null_when_empty,
    open_arrays,
    open_state,
    ptr,
    put,
    reset,
    row,
    selective,
)
from slidewise.algorithms.checking import alike, fold, inexact, ordered
from slidewise.algorithms.protocol import Info, has_float_states

INFO = Info(
    name="slick_deque",
    paper="slickdeque-2018 section 3",
    summary="a deque of candidates (selective), or a running answer (invertible); many ranges at once",
    order="in",
    bounds={"slide": "selective: amortised below 2, worst n; invertible: exactly 2", "query": "0"},
    needs=("selective or inverse",),
    stores="selective: 1 to n; invertible: n + 1",
)

HEADER, RINGS, EXTRAS, WORDS = 4, 1, 1, 1

# Selective: node k is the state in slot k & m and its position in word k & m, for k in head .. tail - 1; the extra is
# scratch. Invertible: the state of position p is in slot p & m; the extra is the answer.


def refuse(op, insist=False):
    if op.operator.selective:
        return None
    if not op.operator.invertible:
        return (
            f"slick_deque needs an operator that selects one of its arguments or has an exact inverse, and {op.name} "
            "declares neither; two_stacks_lite and daba_lite need only associativity"
        )
    if not insist and has_float_states(op):
        return (
            f"slick_deque would subtract floating-point numbers for {op.name}: the error stays in the window, and so "
            "does a NaN or an infinity; two_stacks_lite and daba_lite do not subtract"
        )
    return None


@inlined
def fresh(op, W, V, m):
    return 0, 0, 0, 0, reset(op, get(op, V, m + 1))


@inlined
def load(op, H, W, V, m):
    return H[0], H[1], H[2], H[3], get(op, V, m + 1)


@inlined
def save(op, H, W, V, m, st):
    F, E, head, tail, answer = st
    H[0] = F
    H[1] = E
    H[2] = head
    H[3] = tail
    put(op, V, m + 1, answer)


@inlined
def size(st):
    return st[1] - st[0]


@inlined
def push(op, W, V, m, head, tail, position, s, scratch):
    """The new node, after those it wins against are dropped; gives the new tail."""
    while tail > head:
        older = get(op, V, (tail - 1) & m)
        if not newer_won(op, combine(op, scratch, older, s), older, s):
            break
        tail -= 1
    put(op, V, tail & m, s)
    W[tail & m] = position
    return tail + 1


@inlined
def insert(op, W, V, m, st, s):
    F, E, head, tail, answer = st
    if selective(op):
        tail = push(op, W, V, m, head, tail, E, s, answer)
    else:
        put(op, V, E & m, s)
        answer = combine(op, answer, answer, s)
    return F, E + 1, head, tail, answer


@inlined
def evict(op, W, V, m, st):
    F, E, head, tail, answer = st
    if selective(op):
        if W[head & m] == F:
            head += 1
    else:
        answer = inverse(op, answer, answer, get(op, V, F & m))
        if F + 1 == E:  # nothing is left: nor is an error, where someone insisted on floats
            answer = reset(op, answer)
    return F + 1, E, head, tail, answer


@inlined
def query(op, W, V, m, st, out):
    F, E, head, tail, answer = st
    if not selective(op):
        return st, answer
    if F == E:
        return st, reset(op, out)
    return st, get(op, V, head & m)


@kernel
def move(op, H, W, V, m, W2, V2, m2):
    if selective(op):
        for k in range(H[2], H[3]):
            put(op, V2, k & m2, get(op, V, k & m))
            W2[k & m2] = W[k & m]
    else:
        for position in range(H[0], H[1]):
            put(op, V2, position & m2, get(op, V, position & m))
        put(op, V2, m2 + 1, get(op, V, m + 1))


@inlined
def write(op, V, OUT, OK, place, some, slot, scratch):
    """The lowered state of a slot, or what an empty window gives."""
    if some:
        emit(op, OUT, OK, place, get(op, V, slot))
    elif null_when_empty(op):
        OK[place] = 0
    else:
        emit(op, OUT, OK, place, reset(op, get(op, V, scratch)))


@inlined
def finger(W, m, head, tail, node, start):
    """The first node at or after `start`, looked for from `node` on. Back only if what was under the finger is dropped."""
    node = min(max(node, head), tail)
    while node > head and W[(node - 1) & m] >= start:
        node -= 1
    while node < tail and W[node & m] < start:
        node += 1
    return node


@compiled_entry
def run_ranges(op, ranges, H, W_, V_, m, scratch, X_, MASK_, STARTS_, ends_, OUT_, OK_, lo, hi):
    """Many frames with a common end, in one pass: for each i in [lo, hi) and each range q the aggregate of the rows
    [STARTS[q * n + i], ends[i]) that count, into place q * n + i, where n = len(ends). No start and no end goes back.

    Selective: one deque, and for each range a finger on its node, kept in word m + 1 + q; fingers move on with the
    frames, so an answer is amortised O(1) and costs no combine. Invertible: a running answer for each range in slot
    scratch + 2 + q, and how many rows it holds in word m + 1 + q. Rows go by their number: m + 1 is at least the
    longest frame. The arrays come from `arrays(..., more=ranges)`. What the next piece goes on with is in H: frames answered, the
    row behind the last, head and tail."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    MASK, STARTS, ends = open_arrays((MASK_, STARTS_, ends_))
    n = len(ends_)
    masked = len(MASK_) > 0
    answered, last, head, tail = H[0], H[1], H[2], H[3]
    if answered == 0:
        for q in range(ranges):
            W[m + 1 + q] = 0
            put(op, V, scratch + 2 + q, reset(op, get(op, V, scratch)))
    for i in range(lo, hi):
        oldest = ends[i]
        for q in range(ranges):
            oldest = min(oldest, STARTS[q * n + i])
        if answered == 0:
            last = oldest
        if selective(op):
            while head < tail and W[head & m] < oldest:
                head += 1
            while last < ends[i]:
                if last >= oldest and (not masked or MASK[last]):
                    s = lift(op, get(op, V, scratch), row(X, last))
                    tail = push(op, W, V, m, head, tail, last, s, get(op, V, scratch + 1))
                last += 1
            for q in range(ranges):
                node = finger(W, m, head, tail, W[m + 1 + q], STARTS[q * n + i])
                W[m + 1 + q] = node
                write(op, V, OUT, OK, q * n + i, node < tail, node & m, scratch)
        else:
            for q in range(ranges):
                answer = get(op, V, scratch + 2 + q)
                count = W[m + 1 + q]
                if answered > 0:  # rows between two starts were in the frame when they came, if they came
                    for leaving in range(STARTS[q * n + i - 1], min(STARTS[q * n + i], last)):
                        if not masked or MASK[leaving]:
                            answer = inverse(op, answer, answer, get(op, V, leaving & m))
                            count -= 1
                if count == 0:
                    answer = reset(op, answer)
                put(op, V, scratch + 2 + q, answer)
                W[m + 1 + q] = count
            while last < ends[i]:
                if not masked or MASK[last]:
                    s = lift(op, get(op, V, scratch), row(X, last))
                    put(op, V, last & m, s)
                    for q in range(ranges):
                        if last >= STARTS[q * n + i]:
                            answer = get(op, V, scratch + 2 + q)
                            put(op, V, scratch + 2 + q, combine(op, answer, answer, s))
                            W[m + 1 + q] += 1
                last += 1
            for q in range(ranges):
                write(op, V, OUT, OK, q * n + i, W[m + 1 + q] > 0, scratch + 2 + q, scratch)
        answered += 1
    H[0] = answered
    H[1] = last
    H[2] = head
    H[3] = tail


def check(op, H, W, V, m):
    F, E, head, tail = H
    ordered(F, E)
    ordered(head, tail)
    assert E - F <= m + 1, "no more entries than slots"
    if not op.operator.selective:
        values = (V[p & m] for p in range(F, E))
        rounded = inexact(V[m + 1])  # someone has insisted
        assert rounded or alike(op, V[m + 1], fold(op, values)), "the answer is the aggregate of the window"
        return
    assert tail - head <= E - F, "no more nodes than events"
    nodes = [(W[k & m], V[k & m]) for k in range(head, tail)]
    assert (len(nodes) > 0) == (E > F), "a window with events has a candidate"
    if nodes:
        assert nodes[0][0] >= F, "nodes are events of the window"
        assert nodes[-1][0] == E - 1, "the youngest event is a node"
    for (p, a), (q, b) in pairwise(nodes):
        assert p < q, "nodes are in order"
        kept = op.combine_(a, b)
        assert alike(op, kept, a), f"the node at {p} wins against the one at {q}"
