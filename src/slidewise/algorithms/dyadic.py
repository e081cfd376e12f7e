"""Dyadic intervals on a ring, as B-Int, AMTA and FlatFAT keep them: level k holds intervals of 2^k neighbours.

    slot  1                  [      0 .. 7      ]        level 3
          2, 3               [  0..3  ][  4..7  ]        level 2
          4 .. 7             [0,1][2,3][4,5][6,7]        level 1
          8 .. 15            [0][1][2][3][4][5][6][7]    level 0, the leaves of a ring of m + 1 = 8

The children of slot i are 2 i and 2 i + 1. Positions only grow; a position's leaf is `m + 1 + (position & m)`, and
because the ring is a power of two long, an interval that is aligned on the line is aligned on the ring. Slot 0 is free.
"""

from slidewise.algebra.cache import inlined


@inlined
def slot_of(m, position, level):
    """The slot of the interval of 2^level positions that begins at `position`."""
    return ((m + 1) >> level) + ((position & m) >> level)


@inlined
def widest(level, low, high):
    """The level of the largest interval that begins at `low` and ends before or at `high`.

    `level` is where to start looking: that of the interval just left of it, or 0. A cover from left to right first
    climbs, then descends, so that finding all its intervals takes two steps for each level."""
    while (low >> level) & 1 == 0 and low + (2 << level) <= high:
        level += 1
    while low + (1 << level) > high:
        level -= 1
    return level


@inlined
def widest_before(level, low, high):
    """The level of the largest interval that ends at `high` and begins at or after `low`: covers from right to left."""
    while (high >> level) & 1 == 0 and high - (2 << level) >= low:
        level += 1
    while high - (1 << level) < low:
        level -= 1
    return level
