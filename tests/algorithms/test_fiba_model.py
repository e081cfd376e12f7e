"""Every operation of the trees in any order, against a sorted dict, with every invariant checked after each step."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.algorithms.fiba_support import LETTERS, TOTAL, Model, levels, part, whole

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import fiba_bulk_insert, fiba_forest
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import DROPPED, INNERS, LEAVES

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


@cache
def thin(op, fingers: bool, entries: int) -> Forest:
    """A high tree of few entries: a large one, of which a few are left here and there. Times are multiples of 4."""
    forest, count = Forest(op, 2, 2, fingers), 4500
    forest.bulk_insert(0, [4 * j for j in range(count)], (list(range(count)),))
    gone = list(range(count))
    random.Random(entries).shuffle(gone)
    for j in gone[entries:]:
        assert forest.evict_at(0, 4 * j)
    return forest


class DeepTrees(Trees):
    """The same from a tree of five or six levels above its leaves, at places chosen by the level of a node."""

    @initialize(entries=st.sampled_from([200, 200, 200, 1400]), batch=st.sampled_from([5, 1 << 14]))
    def start(self, entries, batch):
        fiba_forest.BATCH = batch
        self.forest = thin(self.op, self.fingers, entries).copy()
        assert self.forest.height() >= (5 if entries < 1400 else 6)
        self.model, self.other = Model(self.op), Model(self.op)
        self.model.entries = dict(zip(*self.forest.export(0)))
        self.clock = 5000

    def place(self, data) -> int:
        """The time of an entry of a node of a level that is drawn first: of the few high nodes as often as of the leaves."""
        return data.draw(st.sampled_from(data.draw(st.sampled_from([times for times in levels(self.forest) if times]))))

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def evict_at_a_level(self, data):
        self.evict_at(self.place(data))

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data(), beside=st.integers(-2, 2), count=st.integers(1, 3))
    def insert_at_a_level(self, data, beside, count):
        t = self.place(data) + beside
        for j in range(count):
            self.insert(t + j)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data(), width=st.sampled_from([3, 40, 2000]), count=st.integers(1, 60))
    def bulk_insert_at_a_level(self, data, width, count):
        t = self.place(data)
        self.bulk_insert([t + data.draw(st.integers(-width, width)) for _ in range(count)])

    @precondition(lambda self: len(self.model.entries) > 60)
    @rule(data=st.data())
    def bulk_evict_at_a_level(self, data):
        self.bulk_evict(min(self.place(data), self.place(data)))

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def query_range_between_levels(self, data):
        self.query_range(self.place(data), self.place(data))

    @precondition(lambda self: len(self.model.entries) < 60)
    @rule()
    def high_again(self):
        """Young entries, of which few stay."""
        after = max(self.model.entries, default=0) + 1
        self.bulk_insert(list(range(after, after + 400)))
        for t in range(after, after + 400):
            if t % 5:
                self.evict_at(t)


class DeepCommutingTrees(DeepTrees):
    op = TOTAL


class DeepPlainTrees(DeepTrees):
    fingers = False


for machine in (Trees, CommutingTrees, PlainTrees):
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
for machine in (DeepTrees, DeepCommutingTrees, DeepPlainTrees):
    machine.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)

TestFiba = Trees.TestCase
TestFibaCommuting = CommutingTrees.TestCase
TestBtree = PlainTrees.TestCase
TestDeepFiba = DeepTrees.TestCase
TestDeepFibaCommuting = DeepCommutingTrees.TestCase
TestDeepBtree = DeepPlainTrees.TestCase


@pytest.mark.parametrize("fingers", [True, False], ids=["fiba", "btree"])
@pytest.mark.parametrize("seed", range(4))
def test_a_bulk_insert_plans_for_enough_nodes_and_not_for_many_more(monkeypatch, seed, fingers):
    """What a batch takes from the arena is never more than was planned before anything changed; and a plan for far too many
    would make an arena grow for nothing. No node is free, so that each one taken shows."""
    steps, plans = twin(fiba_bulk_insert), []
    units_needed, rnd = steps.units_needed, random.Random(seed)

    def planned(k, A, *arguments):
        plans.append(units_needed(k, A, *arguments))
        return plans[-1]

    monkeypatch.setitem(vars(steps), "units_needed", planned)
    forest = Forest(TOTAL, 1, 2 if seed % 2 else 4, fingers)
    forest.grow(60_000)
    taken = most = 0
    for _ in range(150):
        span = rnd.choice([30, 1000, 100_000])
        first = rnd.randrange(-span, 100_000)
        ts = [first + rnd.randrange(span) for _ in range(rnd.choice([3, 8, 40, 200]))]
        before = forest.A[fiba_forest.BUMP]
        plans.clear()
        inside = [t for t in ts if forest.size() and t <= forest.ends(0)[1]]
        forest.bulk_insert(0, inside, ([1] * len(inside),))
        if plans:
            assert forest.A[fiba_forest.BUMP] - before <= sum(plans)
            taken, most = taken + forest.A[fiba_forest.BUMP] - before, most + sum(plans)
        rest = [t for t in ts if t not in inside]
        forest.bulk_insert(0, rest, ([1] * len(rest),))
    forest.check()
    assert 0 < taken <= most <= 4 * taken
    assert not any(forest.A[word] for word in (LEAVES, INNERS, DROPPED))


@pytest.mark.parametrize("fingers", [True, False], ids=["fiba", "btree"])
def test_a_dense_bulk_from_one_entry_to_the_next(fingers):
    """Whatever the gap, in a leaf or beside an inner node: with and without the times on either side, which combine."""
    for gap in range(30):
        for first, last in ((0, 8), (1, 8), (0, 7), (1, 7)):
            forest, model = Forest(LETTERS, 1, 2, fingers), Model(LETTERS)
            ts = list(range(0, 256, 8)), list(range(8 * gap + first, 8 * gap + last + 1))
            for clock, bulk in enumerate(ts):
                forest.bulk_insert(0, bulk, ([(clock, t) for t in bulk],))
                for t in bulk:
                    model.insert(t, (clock, t))
            forest.check()
            assert dict(zip(*forest.export(0))) == model.entries


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


def test_the_minimum_arity_follows_the_cost_of_the_operator():
    """Wide nodes where a combine is cheap, or commutes and is one a level; narrow ones where it is dear, or interpreted."""

    def own(width: int, **laws):
        lift, identity = (lambda x: np.full(width, x)), np.zeros(width, np.int64)
        return sw.operator(lift=lift, combine=lambda a, b: a + b, identity=identity, name=f"wide {width}", **laws)

    i8, f8 = np.dtype("i8"), np.dtype("f8")
    expected = {
        8: [sw.sum().typed((i8,)), sw.max().typed((f8,)), sw.last().typed((f8,)), sw.bloom().typed((i8,))]
        + [own(8).typed((i8,)), own(99, commutative=True).typed((i8,))],
        4: [own(9).typed((i8,)), sw.collect().typed((object,)), TOTAL, LETTERS, sw.last().typed((object,))],
    }
    for arity, operators in expected.items():
        for op in operators:
            assert fiba_forest.default_arity(op) == Forest(op).shape.min_arity == arity, op
            assert Forest(op, 1, 2).shape.min_arity == 2, "unless it is given"


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
