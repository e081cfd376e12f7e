r"""Ropes: sequences of Python values that join in O(1) and share their parts.

A tuple joined anew for every partial would cost O(n) time a combine and O(n^2) memory in a structure that holds the aggregates
of all suffixes. A rope is a tuple of up to LEAF values, or a pair of ropes; it is only walked when a result is asked for.

                    Rope                      Ropes never change. Small pieces at either end are joined into one leaf,
                 /        \                   so a rope of n values has about n / LEAF nodes however it came about.
             Rope          (7, 8)
           /      \
    (1, 2, 3)    (4, 5, 6)
"""

LEAF = 64


class Rope:
    """Two ropes, one after the other."""

    __slots__ = ("left", "right", "size")

    def __init__(self, left, right):
        self.left, self.right = left, right
        self.size = size(left) + size(right)

    def __eq__(self, other):
        return values(self) == values(other) if isinstance(other, (Rope, tuple)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"Rope({values(self)!r})"

    def __deepcopy__(self, memo):
        return rope(values(self))


def size(r) -> int:
    return len(r) if type(r) is tuple else r.size


def join(a, b):
    """The values of a, then those of b. O(1)."""
    m, n = size(a), size(b)
    if m == 0:
        return b
    if n == 0:
        return a
    if m + n <= LEAF:
        return a + b
    if n < LEAF and type(b) is tuple and type(a) is Rope and type(a.right) is tuple and len(a.right) + n <= LEAF:
        return Rope(a.left, a.right + b)
    if m < LEAF and type(a) is tuple and type(b) is Rope and type(b.left) is tuple and m + len(b.left) <= LEAF:
        return Rope(a + b.left, b.right)
    return Rope(a, b)


def values(r) -> list:
    """All values in order, as a new list. O(n), without recursion."""
    out: list = []
    todo = [r]
    while todo:
        part = todo.pop()
        if type(part) is tuple:
            out.extend(part)
        else:
            todo.append(part.right)
            todo.append(part.left)
    return out


def rope(items):
    """A balanced rope of a sequence."""
    parts: list = [tuple(items[k : k + LEAF]) for k in range(0, len(items), LEAF)] or [()]
    while len(parts) > 1:
        parts = [Rope(*parts[k : k + 2]) if k + 1 < len(parts) else parts[k] for k in range(0, len(parts), 2)]
    return parts[0]


def encode(r) -> list:
    """A rope as a plain list, to be stored."""
    return values(r)


def decode(items):
    """A rope from its stored list."""
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"a stored sequence is a list, not {type(items).__name__}")
    return rope(items)
