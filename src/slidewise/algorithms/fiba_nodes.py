"""Nodes of the trees: where they live, how they are laid out, and the small moves inside one.

An arena is two arrays cut into equal units, N for words (times and links) and V for states. A leaf takes one unit, an inner
node two that follow each other; a node is known by the number u of its first unit. With mu the minimum arity and CAP = 2 mu:

    N[u * (CAP + 2)]       header: LO | HI << 8 | spine flags | level << 18
                     + 1   parent (0: the root); link of the free lists
                     + 2   times, CAP of them; entries are in [LO, HI)
             + 2 + CAP     inner nodes: children, CAP + 1 words in [LO, HI]: child | entries below it << 32
    V[u * (CAP + 1)]       values of the entries
             + CAP         own aggregate, for the root and the spines
         + CAP + 1         inner nodes: aggregates of everything below each child

The aggregate and the number of entries below a child are kept in its parent, so that to repair a node is to read its own row. They
are kept for children that are not on a spine; a spine node has its own aggregate instead (fiba_aggregates.py). A full
node has CAP - 1 entries: the slot that is left takes the entry that makes it split. Popping the first entry is `header + 1`.

One arena serves many trees. Its header A holds the free lists and scratch words, and is passed beside the header H of the tree,
in which an empty tree is all zeros and owns no node. Units below FIRST_UNIT are nobody's: state slots 0 to CAP are scratch,
the units behind are where a bulk insert puts a copy of the node it takes apart.

Freed subtrees are not taken apart when they are dropped: DROPPED is a list of inner nodes that still have their children, which
are handed out one by one when nodes are needed. So dropping costs the same whatever hangs below.
"""

from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from slidewise.algebra.cache import inlined, kernel
from slidewise.algebra.kernel import get, put

# ---- header of an arena ----------------------------------------------------------------------------------------------

BUMP, UNITS, LEAVES, INNERS, DROPPED = range(5)
"""First unit never used; units there are; free leaves; free inner nodes; inner nodes dropped with all that is below them."""
HIGH_LEFT, HIGH_RIGHT, HIGH_ROOT, HIT = range(5, 9)
"""For a bulk insert: the highest nodes touched on each spine, the root if it is, and spines of which a node has split."""
PATH = 16
"""PATH + level: the child taken at that level on the way down."""
LEVELS = 64
"""No tree is higher: even with 2 children a node that is more than any memory holds."""
NODE, NEIGHBOUR, COMMON, BELOW = (PATH + i * LEVELS for i in range(1, 5))
"""Words by level for a bulk evict: the node to cut, the next node of its level, the level where their ways part, and entries."""
ARENA_WORDS = PATH + 5 * LEVELS
FIRST_UNIT = 3

# ---- header of a tree ------------------------------------------------------------------------------------------------

ROOT, LEFTMOST, RIGHTMOST, SIZE, HEIGHT, SUFFIXES = range(6)
"""The root; the left and right finger; entries; level of the root; a unit whose state slots hold, for each entry of the first leaf,
the aggregate from it to the end of the root's first child. All zero: an empty tree."""
TREE_WORDS = 8

# ---- rows ------------------------------------------------------------------------------------------------------------

HEAD, PARENT, TIMES = 0, 1, 2
ONE_MORE = 1 << 8
LEFT, RIGHT = 1 << 16, 1 << 17
SPINE = LEFT | RIGHT
LEVEL = 18
COUNT = 32
CHILD = (1 << COUNT) - 1


class Shape:
    """What of a tree is known when it is compiled: the minimum arity, whether it has fingers (fiba) or not (btree), and whether
    states may be taken in in any order (a commutative operator)."""

    def __init__(self, min_arity: int, fingers: bool = True, commutative: bool = False):
        self.min_arity, self.fingers, self.commutative = min_arity, fingers, commutative
        self._numba_type_ = ShapeType(min_arity, fingers, commutative)

    def __repr__(self) -> str:
        return f"<{'fiba' if self.fingers else 'btree'} of min arity {self.min_arity}>"


class ShapeType(types.Type):
    """The compile-time tag of a shape."""

    def __init__(self, min_arity: int, fingers: bool, commutative: bool):
        self.min_arity, self.fingers, self.commutative = min_arity, fingers, commutative
        words = ("fingers" if fingers else "plain", "any order" if commutative else "in order")
        super().__init__(name=f"tree[{min_arity},{','.join(words)}]")


@typeof_impl.register(Shape)
def _typeof_shape(value, context):
    return value._numba_type_


register_model(ShapeType)(models.OpaqueModel)


@unbox(ShapeType)
def _unbox_shape(kind, value, context):
    return NativeValue(context.context.get_dummy_value())


def min_arity(k):
    """Fewest children of an inner node off the root."""
    return k.min_arity


def has_fingers(k):
    return k.fingers


def in_any_order(k):
    """Whether states may be combined in any order."""
    return k.commutative


@overload(min_arity)
def _min_arity(k):
    answer = k.min_arity
    return lambda k: answer


@overload(has_fingers)
def _has_fingers(k):
    answer = k.fingers
    return lambda k: answer


@overload(in_any_order)
def _in_any_order(k):
    answer = k.commutative
    return lambda k: answer


@inlined
def cap(k):
    """Entry slots of a node: one more than it may keep."""
    return 2 * min_arity(k)


@inlined
def row(k, u):
    return u * (2 * min_arity(k) + 2)


@inlined
def slot(k, u):
    return u * (2 * min_arity(k) + 1)


@inlined
def lo_of(head):
    return head & 255


@inlined
def hi_of(head):
    return (head >> 8) & 255


@inlined
def size_of(head):
    """Entries of a node."""
    return ((head >> 8) & 255) - (head & 255)


@inlined
def level_of(head):
    return head >> LEVEL


@inlined
def child(k, N, u, i):
    return N[row(k, u) + TIMES + cap(k) + i] & CHILD


@inlined
def below(k, N, u, i):
    """Entries below child i, which is not on a spine."""
    return N[row(k, u) + TIMES + cap(k) + i] >> COUNT


@inlined
def own_slot(k, u):
    return slot(k, u) + cap(k)


@inlined
def child_slot(k, u, i):
    return slot(k, u) + cap(k) + 1 + i


@inlined
def set_child(k, N, u, i, c):
    """Make c the i-th child of u; what is below it is not counted yet."""
    N[row(k, u) + TIMES + cap(k) + i] = c
    N[row(k, c) + PARENT] = u


@inlined
def index_in_parent(k, A, N, u, p):
    """Which child of p u is: the first or last on a spine, otherwise as noted on the way down."""
    head = N[row(k, u)]
    above = N[row(k, p)]
    if head & LEFT:
        return lo_of(above)
    if head & RIGHT:
        return hi_of(above)
    return A[PATH + level_of(above)]


@inlined
def place(k, N, u, t):
    """The first entry of u that is not before t. Rows are short: looking at each is faster than halving."""
    x = row(k, u)
    head = N[x]
    i, hi = lo_of(head), hi_of(head)
    while i < hi and N[x + TIMES + i] < t:
        i += 1
    return i


@inlined
def place_after(k, N, u, t):
    """The first entry of u that is after t."""
    x = row(k, u)
    head = N[x]
    i, hi = lo_of(head), hi_of(head)
    while i < hi and not t < N[x + TIMES + i]:
        i += 1
    return i


# ---- getting and freeing nodes ---------------------------------------------------------------------------------------


@inlined
def has_room(k, A, H):
    """Whether one more insert is sure to find its nodes: a leaf, an inner node a level, a root, and a unit of suffixes."""
    return A[BUMP] + 2 * H[HEIGHT] + 6 <= A[UNITS]


@kernel
def unearth(k, A, N):
    """A leaf out of the dropped subtrees."""
    while True:
        d = A[DROPPED]
        x = row(k, d)
        head = N[x]
        c = child(k, N, d, hi_of(head))
        if size_of(head) == 0:  # its last child: now d itself is free
            A[DROPPED] = N[x + PARENT]
            N[x + PARENT] = A[INNERS]
            A[INNERS] = d
        else:
            N[x] = head - ONE_MORE
        if level_of(head) == 1:
            return c
        N[row(k, c) + PARENT] = A[DROPPED]
        A[DROPPED] = c


@kernel
def drop_children(k, A, N, u, first, last):
    """Free the children first .. last - 1 of u, with all that is below them."""
    of = LEAVES if level_of(N[row(k, u)]) == 1 else DROPPED
    for i in range(first, last):
        c = child(k, N, u, i)
        N[row(k, c) + PARENT] = A[of]
        A[of] = c


@kernel
def new_leaf(k, A, N, flags):
    """An empty leaf. Entries start at 1: there is room in front for the separator that comes down when the leaf before goes."""
    u = A[LEAVES]
    if u != 0:
        A[LEAVES] = N[row(k, u) + PARENT]
    elif A[DROPPED] != 0:
        u = unearth(k, A, N)
    else:
        u = A[BUMP]
        A[BUMP] = u + 1
    x = row(k, u)
    N[x] = 1 | ONE_MORE | flags
    N[x + PARENT] = 0
    return u


@kernel
def new_inner(k, A, N, level, flags):
    """An inner node without entries; it wants its first child at 1."""
    u = A[INNERS]
    if u != 0:
        A[INNERS] = N[row(k, u) + PARENT]
    elif A[DROPPED] != 0:
        u = A[DROPPED]
        x = row(k, u)
        A[DROPPED] = N[x + PARENT]
        drop_children(k, A, N, u, lo_of(N[x]), hi_of(N[x]) + 1)
    else:
        u = A[BUMP]
        A[BUMP] = u + 2
    x = row(k, u)
    N[x] = 1 | ONE_MORE | flags | level << LEVEL
    N[x + PARENT] = 0
    return u


@inlined
def new_node(k, A, N, level, flags):
    return new_leaf(k, A, N, flags) if level == 0 else new_inner(k, A, N, level, flags)


@inlined
def free_node(k, A, N, u):
    """Free a node whose children, if it had any, belong to others now."""
    of = LEAVES if level_of(N[row(k, u)]) == 0 else INNERS
    N[row(k, u) + PARENT] = A[of]
    A[of] = u


# ---- moves inside a node and between two -----------------------------------------------------------------------------


@inlined
def copy_entry(k, op, N, V, u, i, w, j):
    N[row(k, w) + TIMES + j] = N[row(k, u) + TIMES + i]
    put(op, V, slot(k, w) + j, get(op, V, slot(k, u) + i))


@inlined
def copy_child(k, op, N, V, u, i, w, j):
    """Child, aggregate and number of entries; the child's parent is left to the caller."""
    N[row(k, w) + TIMES + cap(k) + j] = N[row(k, u) + TIMES + cap(k) + i]
    put(op, V, child_slot(k, w, j), get(op, V, child_slot(k, u, i)))


@kernel
def slide(k, op, N, V, u, by):
    """Move all that is in u by so many places."""
    x = row(k, u)
    head = N[x]
    lo, hi = lo_of(head), hi_of(head)
    inner = level_of(head) > 0
    if by < 0:
        for i in range(lo, hi):
            copy_entry(k, op, N, V, u, i, u, i + by)
        if inner:
            for i in range(lo, hi + 1):
                copy_child(k, op, N, V, u, i, u, i + by)
    else:
        for i in range(hi - 1, lo - 1, -1):
            copy_entry(k, op, N, V, u, i, u, i + by)
        if inner:
            for i in range(hi, lo - 1, -1):
                copy_child(k, op, N, V, u, i, u, i + by)
    N[x] = head + by * (1 + ONE_MORE)


@inlined
def open_gap_here(k, op, N, V, u, i):
    """Make place for an entry before the i-th, and for the child to its right; returns where. The shorter side moves."""
    x = row(k, u)
    head = N[x]
    lo, hi = lo_of(head), hi_of(head)
    inner = level_of(head) > 0
    if hi < cap(k) and (lo == 0 or 2 * i >= lo + hi):
        for j in range(hi, i, -1):
            copy_entry(k, op, N, V, u, j - 1, u, j)
            if inner:
                copy_child(k, op, N, V, u, j, u, j + 1)
        N[x] = head + ONE_MORE
        return i
    if inner:
        copy_child(k, op, N, V, u, lo, u, lo - 1)
    for j in range(lo, i):
        copy_entry(k, op, N, V, u, j, u, j - 1)
        if inner:
            copy_child(k, op, N, V, u, j + 1, u, j)
    N[x] = head - 1
    return i - 1


@kernel
def open_gap(k, op, N, V, u, i):
    return open_gap_here(k, op, N, V, u, i)


@kernel
def close_gap(k, op, N, V, u, i):
    """Remove entry i and the child to its left; returns where the child to its right is now. The shorter side moves."""
    x = row(k, u)
    head = N[x]
    lo, hi = lo_of(head), hi_of(head)
    inner = level_of(head) > 0
    if 2 * i < lo + hi:
        for j in range(i, lo, -1):
            copy_entry(k, op, N, V, u, j - 1, u, j)
            if inner:
                copy_child(k, op, N, V, u, j - 1, u, j)
        N[x] = head + 1
        return i + 1
    for j in range(i, hi - 1):
        copy_entry(k, op, N, V, u, j + 1, u, j)
    if inner:
        for j in range(i, hi):
            copy_child(k, op, N, V, u, j + 1, u, j)
    N[x] = head - ONE_MORE
    return i
