"""DABA without the caching of Figure 17, for Figure 18 of daba-2015 alone: the paper shows what the cache saves.

Everything is as in algorithms/daba.py, whose picture this is, but that the sum of l_R and l_A is made anew in each step (line 29
of Figure 14), and the answer with each query: at most 1 combine for a query, 4 for an insert, 3 for an evict.
"""

import sys

from slidewise.algebra.cache import inlined
from slidewise.algebra.kernel import assign, combine, get, put, reset
from slidewise.algorithms.daba import EXTRAS, HEADER, RINGS, WORDS, fresh, load, move, save, size
from slidewise.algorithms.protocol import Algorithm, Info

__all__ = ["EXTRAS", "HEADER", "RINGS", "UNCACHED", "WORDS", "fresh", "load", "move", "save", "size"]

INFO = Info(
    name="daba_uncached",
    paper="daba-2015 section 6, Figure 14",
    summary="DABA without its caches",
    order="in",
    bounds={"insert": "4", "evict": "3", "query": "1"},
    offers=(),
    stores="2 n",
)


@inlined
def fixup(op, V, m, st):
    F, L, R, A, B, E, valid, rest, cached = st
    if F == B:
        B = E
        A = E
        R = E
        L = E
    else:
        if L == B:
            L = F
            A = E
            B = E
        if L == R:
            A += 1
            R += 1
            L += 1
        else:
            agg = m + 1 + (L & m)
            put(op, V, agg, combine(op, get(op, V, agg), get(op, V, agg), get(op, V, m + 1 + ((A - 1) & m))))
            if A < B:
                put(op, V, agg, combine(op, get(op, V, agg), get(op, V, agg), get(op, V, m + 1 + (A & m))))
            L += 1
            A -= 1
            agg = m + 1 + (A & m)
            if A + 1 == B:
                put(op, V, agg, get(op, V, A & m))
            else:
                put(op, V, agg, combine(op, get(op, V, agg), get(op, V, A & m), get(op, V, m + 1 + ((A + 1) & m))))
    return F, L, R, A, B, E, 0, rest, cached


@inlined
def insert(op, W, V, m, st, s):
    F, L, R, A, B, E, valid, rest, cached = st
    put(op, V, E & m, s)
    agg = m + 1 + (E & m)
    if B == E:
        put(op, V, agg, s)
    else:
        put(op, V, agg, combine(op, get(op, V, agg), get(op, V, m + 1 + ((E - 1) & m)), s))
    return fixup(op, V, m, (F, L, R, A, B, E + 1, valid, rest, cached))


@inlined
def evict(op, W, V, m, st):
    F, L, R, A, B, E, valid, rest, cached = st
    return fixup(op, V, m, (F + 1, L, R, A, B, E, valid, rest, cached))


@inlined
def query(op, W, V, m, st, out):
    F, L, R, A, B, E, valid, rest, cached = st
    if F == E:
        out = reset(op, out)
    elif B == E:
        out = assign(op, out, get(op, V, m + 1 + (F & m)))
    else:
        out = combine(op, out, get(op, V, m + 1 + (F & m)), get(op, V, m + 1 + ((E - 1) & m)))
    return st, out


UNCACHED = Algorithm(sys.modules[__name__])
