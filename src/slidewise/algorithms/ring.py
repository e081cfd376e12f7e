"""The two positions of a ring, for algorithms whose whole state they are: evicting moves one of them and nothing else.

    F                            E
    | v  v  v  v  v  v  v  v  v  |      st = (F, E); both only grow, and `position & m` is the slot
"""

from slidewise.algebra.cache import inlined


@inlined
def fresh(op, W, V, m):
    return 0, 0


@inlined
def load(op, H, W, V, m):
    return H[0], H[1]


@inlined
def save(op, H, W, V, m, st):
    H[0] = st[0]
    H[1] = st[1]


@inlined
def size(st):
    return st[1] - st[0]


@inlined
def evict(op, W, V, m, st):
    return st[0] + 1, st[1]


@inlined
def bulk_evict(op, W, V, m, st, count):
    return st[0] + count, st[1]
