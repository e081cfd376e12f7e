"""`check()` of a tree sees damage wherever it is: every word and every state that anybody reads, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.algorithms.fiba_support import LETTERS

from slidewise.algebra.kernel import twin
from slidewise.algorithms import fiba_nodes
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import (
    BUMP,
    DROPPED,
    HEIGHT,
    INNERS,
    LEAVES,
    LEFT,
    LEFTMOST,
    PARENT,
    RIGHT,
    RIGHTMOST,
    ROOT,
    SIZE,
    SPINE,
    SUFFIXES,
    TIMES,
)

nodes = twin(fiba_nodes)


def grown(fingers: bool) -> Forest:
    """Three levels above the leaves, with nodes on each of the free lists."""
    forest = Forest(LETTERS, 1, 2, fingers)
    forest.bulk_insert(0, list(range(0, 600, 3)), (list(range(200)),))
    forest.bulk_evict(0, 300)
    for t in range(390, 480, 3):
        forest.evict_at(0, t)
    assert forest.height() >= 3
    assert forest.A[LEAVES] and forest.A[INNERS] and forest.A[DROPPED]
    forest.check()
    return forest


def all_nodes(forest: Forest) -> Iterator[tuple[int, int]]:
    """Every node with its parent."""
    k, N, waiting = forest.shape, forest.N, [(forest.H[ROOT], 0)]
    while waiting:
        u, p = waiting.pop()
        yield u, p
        head = N[nodes.row(k, u)]
        if nodes.level_of(head):
            waiting += [(nodes.child(k, N, u, i), u) for i in range(nodes.lo_of(head), nodes.hi_of(head) + 1)]


def places(forest: Forest) -> Iterator[tuple[str, str, int]]:
    """(what, array, place) of all that a tree relies on."""
    k, N, H = forest.shape, forest.N, forest.H
    yield from ((f"header word {word}", "H", word) for word in (ROOT, SIZE, HEIGHT))
    yield from ((f"free list {word}", "A", word) for word in (LEAVES, INNERS, DROPPED, BUMP))
    if k.fingers:
        yield from ((f"header word {word}", "H", word) for word in (LEFTMOST, RIGHTMOST, SUFFIXES))
        first = N[nodes.row(k, H[LEFTMOST])]
        suffixes = nodes.slot(k, H[SUFFIXES])
        yield from (("suffix", "V", suffixes + i) for i in range(nodes.lo_of(first), nodes.hi_of(first)))
    for u, p in all_nodes(forest):
        x, v = nodes.row(k, u), nodes.slot(k, u)
        head = N[x]
        lo, hi, level = nodes.lo_of(head), nodes.hi_of(head), nodes.level_of(head)
        yield "head", "N", x
        yield "parent", "N", x + PARENT
        for i in range(lo, hi):
            yield "time", "N", x + TIMES + i
            yield "value", "V", v + i
        if p == 0 or head & RIGHT or (head & LEFT and level):
            yield "own aggregate", "V", nodes.own_slot(k, u)
        for i in range(lo, hi + 1) if level else ():
            yield "child", "N", x + TIMES + nodes.cap(k) + i
            if not N[nodes.row(k, nodes.child(k, N, u, i))] & SPINE:
                yield "count below", "N", x + TIMES + nodes.cap(k) + i
                yield "aggregate below", "V", nodes.child_slot(k, u, i)


@pytest.mark.parametrize("fingers", [True, False], ids=["fiba", "btree"])
def test_damage_is_seen_wherever_it_is(fingers):
    forest = grown(fingers)
    ends, seen = forest.ends(0), set()
    for what, array, place in list(places(forest)):
        words = getattr(forest, array)
        was = words[place]
        others = [("other",)] if array == "V" else [was + 1, was - 1]
        if what == "time":
            others = [end for end in ends if end != was]
        elif what == "head":
            others += [was ^ LEFT, was ^ RIGHT, was + (1 << 8), was - (1 << 8), was + (1 << 18)]
        elif what == "count below":
            others = [was + (1 << 32), was - (1 << 32)]
        for other in others:
            words[place] = other
            with pytest.raises((AssertionError, IndexError, TypeError, RecursionError)):
                forest.check()
                pytest.fail(f"{what} at {array}[{place}]: {was} became {other}", pytrace=False)
        words[place] = was
        seen.add(what)
    forest.check()
    assert {"head", "time", "value", "own aggregate", "aggregate below", "count below", "child", "parent"} <= seen
