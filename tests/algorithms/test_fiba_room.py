"""Memory of an arena is given back: exactly when less than a quarter of it is in use, however entries go, and at a cost that the
operations before have paid for."""

from __future__ import annotations

import random

import pytest
from tests.algorithms.fiba_support import TOTAL, whole

from slidewise.algorithms import algorithm, fiba_forest
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import BUMP
from slidewise.algorithms.tree_frames import Slider

N = 2000


@pytest.fixture(autouse=True)
def small_arenas_too(monkeypatch):
    monkeypatch.setattr(fiba_forest, "LEAST", 600)


def filled(count: int, arity: int = 2) -> Forest:
    forest = Forest(TOTAL, 1, arity)
    forest.bulk_insert(0, list(range(count)), ([1] * count,))
    return forest


def room(forest: Forest) -> int:
    """Entries that the arena would hold if all its units were full leaves."""
    return forest.A[BUMP] * (2 * forest.shape.min_arity - 1)


WAYS = {
    "evict": lambda forest, t: forest.evict(0),
    "evict_at": lambda forest, t: forest.evict_at(0, t),
    "bulk_evict": lambda forest, t: forest.bulk_evict(0, t),
}


@pytest.mark.parametrize("arity", [2, 4, 8, 16])
@pytest.mark.parametrize("way", WAYS)
def test_an_arena_is_compacted_when_less_than_a_quarter_is_in_use(way, arity):
    """Not before, and not long after: looked at after a quarter as many evicts as there are units."""
    forest = filled(N, arity)
    compacted = 0
    for t in range(N):
        units, live = forest.A[BUMP], forest.size() - 1
        full = room(forest)
        WAYS[way](forest, t)
        assert forest.size() == live
        if forest.A[BUMP] < units:
            compacted += 1
            assert 4 * live < full, "too early"
            forest.check()
        elif full > fiba_forest.LEAST:
            assert 4 * (live + units // 4 + 1) >= full, "too late"
    assert compacted >= 1


@pytest.mark.parametrize("way", WAYS)
def test_an_arena_is_looked_at_once_in_a_while(monkeypatch, way):
    """To look at it costs as much as there are trees."""
    looks = []
    monkeypatch.setattr(Forest, "compact_if_sparse", lambda self: looks.append(1))
    forest = filled(N)
    for t in range(N):
        WAYS[way](forest, t)
    assert len(looks) == N // (forest.A[BUMP] // 4 + 1) >= 5


def test_what_is_not_there_is_not_counted_as_gone(monkeypatch):
    looks = []
    monkeypatch.setattr(Forest, "compact_if_sparse", lambda self: looks.append(1))
    forest = filled(N)
    for t in range(N):
        assert not forest.evict_at(0, N + t)
    assert not looks


@pytest.mark.parametrize("arity", [2, 8])
def test_rebuilding_is_paid_for_by_what_came_and_went(monkeypatch, arity):
    """All that was built anew is no more than all that was changed, whatever is done; and an arena that was built anew is half
    full at least."""
    rebuilt, compact = [], Forest.compact

    def counted(self):
        rebuilt.append(self.size())
        compact(self)
        assert 2 * self.size() >= room(self) - 40 * arity

    monkeypatch.setattr(Forest, "compact", counted)
    rnd, forest, changes = random.Random(arity), Forest(TOTAL, 1, arity), 0
    for cycle in range(12):
        live = set(forest.export(0)[0])
        new = rnd.sample(range(10**6), rnd.choice([100, 500, 2000]))
        if cycle % 2:
            for t in new:
                forest.insert(0, t, (1,))
        else:
            forest.bulk_insert(0, new, ([1] * len(new),))
        live |= set(new)
        gone = rnd.sample(sorted(live), int(len(live) * rnd.choice([0.5, 0.8, 0.95])))
        if cycle % 3:
            for t in gone:
                assert forest.evict_at(0, t)
        else:
            gone = sorted(live)[: len(gone)]
            forest.bulk_evict(0, gone[-1])
        changes += len(new) + len(gone)
        assert sum(rebuilt) <= changes
    assert len(rebuilt) >= 2
    assert whole(forest) == forest.size()


def test_rebuilding_many_small_trees_is_paid_for_too(monkeypatch):
    """A leaf for each entry: however often it is built anew, the arena is never a quarter full."""
    rebuilt, compact = [], Forest.compact
    monkeypatch.setattr(Forest, "compact", lambda self: (rebuilt.append(self.entries), compact(self)))
    forest = Forest(TOTAL, 300, 4)
    for tree in range(300):
        forest.insert(tree, 0, (1,))
    for j in range(1000):
        forest.insert(j % 300, 1 + j, (1,))
        forest.evict(j % 300)
    assert rebuilt and sum(rebuilt) <= 7 * 1000
    forest.check()


def test_back_and_forth_at_the_threshold_does_not_rebuild_each_time(monkeypatch):
    forest = filled(N)
    before, t = forest.A[BUMP], 0
    while forest.A[BUMP] == before:
        forest.evict(0)
        t += 1
    rebuilt = []
    monkeypatch.setattr(Forest, "compact", lambda self: rebuilt.append(1))
    for _ in range(2 * N):
        forest.insert(0, t, (1,))
        forest.evict(0)
    assert not rebuilt


def test_a_loop_over_arrays_gives_room_back(monkeypatch):
    """Time windows: N entries, of which a cut leaves five; and from then on few."""
    monkeypatch.setattr(fiba_forest, "PIECE", 64)
    times = list(range(N + 500))
    cuts = [-1] * N + [t - 5 for t in range(N, N + 500)]
    OUT, OK = [None] * len(times), [0] * len(times)
    forest = Forest(TOTAL, 1, 2)
    forest.run("run_cuts", 0, times[:N], ([1] * N,), [], cuts[:N], OUT, OK)
    full = forest.bytes_used
    forest.run("run_cuts", 0, times, ([1] * len(times),), [], cuts, OUT, OK)
    forest.check()
    assert forest.bytes_used < full / 20
    assert len(forest.N) < 2 * full / 20 / 8, "the arrays themselves too"
    assert OUT[N - 1] == 2 * N and OUT[-1] == 5


def test_sliding_over_frames_gives_room_back():
    starts = [0] * N + [t - 4 for t in range(N, N + 500)]
    ends = [t + 1 for t in range(N + 500)]
    OUT, OK = [None] * len(starts), [0] * len(starts)
    slider = Slider(algorithm("fiba"), TOTAL, 0)
    arguments = list(range(N + 500)), ([1] * (N + 500),), [], starts, ends, OUT, OK
    slider.run(*arguments, 0, N)
    full = slider.forest.bytes_used
    slider.run(*arguments, N, N + 500)
    slider.forest.check()
    assert slider.forest.bytes_used < full / 10
    assert (OUT[N - 1], OUT[-1]) == (N, 5)
