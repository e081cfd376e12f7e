"""Every operation of the trees in any order, against a sorted dict, with every invariant checked after each step."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.algorithms.fiba_support import LETTERS, TOTAL, Model, part, whole

from slidewise.algorithms import fiba_forest
from slidewise.algorithms.fiba_forest import Forest

times = st.integers(0, 120)


class Trees(RuleBasedStateMachine):
    """One tree under test and one beside it in the same arena, which must not be disturbed."""

    op, fingers = LETTERS, True

    @initialize(arity=st.sampled_from([2, 2, 2, 4]), size=st.integers(0, 60), batch=st.sampled_from([5, 1 << 14]))
    def start(self, arity, size, batch):
        fiba_forest.BATCH = batch
        self.forest = Forest(self.op, 2, arity, self.fingers)
        self.model, self.other = Model(self.op), Model(self.op)
        self.clock = 0
        for t in range(0, 2 * size, 2):
            self.insert(t)

    def teardown(self):
        fiba_forest.BATCH = 1 << 14

    @rule(t=times)
    def insert(self, t):
        self.clock += 1
        self.forest.insert(0, t, (self.clock,))
        self.model.insert(t, self.clock)

    @rule(count=st.integers(1, 12))
    def append(self, count):
        for _ in range(count):
            self.insert(max(self.model.entries, default=0) + 1)

    @rule(t=times)
    def insert_beside(self, t):
        self.forest.insert(1, t, (t,))
        self.other.insert(t, t)

    @precondition(lambda self: self.model.entries)
    @rule(count=st.integers(1, 12))
    def evict(self, count):
        for _ in range(min(count, len(self.model.entries))):
            self.forest.evict(0)
            self.model.evict()

    @rule(t=times)
    def evict_at(self, t):
        assert self.forest.evict_at(0, t) == (t in self.model.entries)
        self.model.entries.pop(t, None)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def evict_one_that_is_there(self, data):
        self.evict_at(data.draw(st.sampled_from(self.model.times)))

    @rule(t=st.integers(-1, 140))
    def bulk_evict(self, t):
        assert self.forest.bulk_evict(0, t) == self.model.bulk_evict(t)

    @rule(ts=st.lists(times, max_size=60))
    def bulk_insert(self, ts):
        xs = [self.clock + j for j in range(len(ts))]
        self.clock += len(ts)
        self.forest.bulk_insert(0, ts, (xs,))
        for t, x in zip(ts, xs):
            self.model.insert(t, x)

    @rule()
    def compact(self):
        self.forest.compact()

    @rule(first=times, last=times)
    def query_range(self, first, last):
        assert part(self.forest, first, last) == self.model.fold(first, last)

    @rule(t=times)
    def rank(self, t):
        assert self.forest.rank(0, t) == sum(time <= t for time in self.model.entries)
        assert self.forest.rank(0, t, inclusive=False) == sum(time < t for time in self.model.entries)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def select(self, data):
        j = data.draw(st.integers(0, len(self.model.entries) - 1))
        assert self.forest.select(0, j) == self.model.times[j]

    @invariant()
    def all_is_well(self):
        if not hasattr(self, "forest"):
            return
        self.forest.check()
        assert self.forest.size() == len(self.model.entries)
        if self.model.entries:
            assert whole(self.forest) == self.model.fold()
            assert self.forest.ends(0) == (min(self.model.entries), max(self.model.entries))
        for tree, model in enumerate((self.model, self.other)):
            ts, states = self.forest.export(tree)
            assert dict(zip(ts, states)) == model.entries


class CommutingTrees(Trees):
    op = TOTAL


class PlainTrees(Trees):
    fingers = False


for machine in (Trees, CommutingTrees, PlainTrees):
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestFiba = Trees.TestCase
TestFibaCommuting = CommutingTrees.TestCase
TestBtree = PlainTrees.TestCase


@pytest.mark.parametrize("fingers", [True, False], ids=["fiba", "btree"])
@pytest.mark.parametrize("arity", [2, 4, 8, 16])
def test_every_range_of_a_tree_of_several_levels(arity, fingers):
    forest, model = Forest(LETTERS, 1, arity, fingers), Model(LETTERS)
    for j in range(90):
        t = 37 * j % 90  # every time once, far from in order
        forest.insert(0, t, (j,))
        model.insert(t, j)
    forest.check()
    for first in range(-1, 91, 3):
        for last in range(first - 1, 91, 2):
            assert part(forest, first, last) == model.fold(first, last)
    assert [forest.select(0, j) for j in range(90)] == model.times


def test_times_may_be_anything_that_can_be_compared():
    forest, model = Forest(LETTERS, 1, 2), Model(LETTERS)
    for word in "the quick brown fox jumps over the lazy dog".split():
        forest.insert(0, word, (len(word),))
        model.insert(word, len(word))
    forest.check()
    assert whole(forest) == model.fold()
    assert part(forest, "c", "l") == model.fold("c", "l")
    assert forest.bulk_evict(0, "jumps") == 4
    assert forest.ends(0) == ("lazy", "the")


def test_nodes_dropped_in_bulk_are_used_again():
    forest = Forest(LETTERS, 1, 2)
    for _ in range(6):
        forest.bulk_insert(0, list(range(400)), (list(range(400)),))
        used = forest.A[fiba_forest.BUMP]
        assert forest.bulk_evict(0, 398) == 399
        forest.check()
    forest.bulk_insert(0, list(range(390)), (list(range(390)),))
    assert forest.A[fiba_forest.BUMP] == used, "what was dropped makes room for as much again"


def test_a_sparse_arena_is_compacted_by_itself():
    forest = Forest(TOTAL, 1, 2)
    forest.bulk_insert(0, list(range(9000)), ([1] * 9000,))
    before = forest.bytes_used
    forest.bulk_evict(0, 8899)
    assert forest.size() == 100 and whole(forest) == 100
    assert forest.bytes_used < before // 20
    forest.check()


@pytest.mark.parametrize("arity", [2, 4, 8, 16])
def test_a_tree_that_empties_one_by_one_gives_its_room_back(arity):
    forest = Forest(TOTAL, 1, arity)
    count = 9000
    forest.bulk_insert(0, list(range(count)), ([1] * count,))
    full = forest.bytes_used
    for left in range(count - 1, -1, -1):
        forest.evict(0)
        if left < count // 8:
            assert forest.bytes_used < full / 2, f"{left} of {count} are left"
    assert forest.bytes_used < full / 2
