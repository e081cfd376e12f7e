"""The papers' bounds as counts of combines and of nodes looked at, amortised over many operations. No clock.

Minimum arity 2: the trees are as high as they get. Big trees are built compiled; the operations under test run interpreted.
"""

from __future__ import annotations

import random
from functools import cache
from math import log2
from statistics import mean

import pytest
from tests.algorithms.fiba_support import Counted

SIZES = (1 << 10, 1 << 15, 1 << 20)
ROUNDS = 100


def late_inserts(n: int, d: int, fingers: bool = True) -> list[tuple[int, int]]:
    """Combines and nodes of single inserts, each d places before the youngest."""
    tree, rnd = Counted(n, fingers=fingers), random.Random(d)
    return [tree.work(tree.forest.insert, (n - 1 - d) * tree.GAP + rnd.randrange(1, tree.GAP), (1,)) for _ in range(ROUNDS)]


@cache
def insert_costs(n: int, d: int, fingers: bool = True) -> tuple[float, float]:
    costs = late_inserts(n, d, fingers)
    return mean(c for c, _ in costs), mean(nodes for _, nodes in costs)


@pytest.mark.parametrize("d", [4, 32, 1 << 8, 1 << 10, 1 << 14, 1 << 18])
def test_an_insert_costs_log_d(d):
    combines, nodes = insert_costs(1 << 20, d)
    assert combines <= 16 + 4 * log2(d)
    assert nodes <= 12 + 1.75 * log2(d)


def test_an_insert_costs_more_at_a_larger_distance():
    """Not only because the bound above is generous: the cost does follow log d."""
    nodes = [insert_costs(1 << 20, d)[1] for d in (4, 1 << 8, 1 << 14, 1 << 18)]
    assert nodes == sorted(nodes)
    assert nodes[-1] - nodes[0] >= 0.75 * (18 - 2)


@pytest.mark.parametrize("d", [4, 32, 1 << 10])
def test_an_insert_does_not_cost_log_n(d):
    costs = [insert_costs(n, d) for n in SIZES if d < n // 8]
    for kind in (0, 1):
        cheapest, dearest = min(c[kind] for c in costs), max(c[kind] for c in costs)
        assert dearest <= 1.4 * cheapest


@pytest.mark.parametrize("n", SIZES)
def test_in_order_inserts_and_evicts_are_constant(n):
    tree = Counted(n)
    inserts = [tree.work(tree.forest.insert, (n + j) * tree.GAP, (1,)) for j in range(4 * ROUNDS)]
    evicts = [tree.work(tree.forest.evict) for _ in range(4 * ROUNDS)]
    for costs in (inserts, evicts):
        assert mean(c for c, _ in costs) <= 6
        assert mean(nodes for _, nodes in costs) <= 5


@pytest.mark.parametrize("n", [0, 1, 3, 4, 100, 1 << 15])
def test_a_query_combines_at_most_twice(n):
    tree = Counted(n)
    for j in range(50):
        tree.forest.insert(0, (37 * j) % 101 * tree.GAP, (1,))
        combines, nodes = tree.work(tree.forest.query, [None], [0])
        assert combines <= 2 and nodes <= 3


def test_without_fingers_every_change_costs_log_n():
    """The baseline of the papers, so that the tests above are known to tell the difference."""
    small, large = (insert_costs(n, 4, False) for n in (SIZES[0], SIZES[-1]))
    assert large[0] - small[0] >= 8
    assert large[1] - small[1] >= 8
    assert large[1] > 1.4 * insert_costs(SIZES[-1], 4)[1]


@pytest.mark.parametrize("d", [0, 4, 1 << 10, 1 << 16])
def test_evict_at_a_time_costs_log_d(d):
    for from_the_left in (True, False):
        tree, costs = Counted(1 << 20), []
        for j in range(ROUNDS):
            place = d + j if from_the_left else tree.n - 1 - d - j
            costs.append(tree.work(tree.forest.evict_at, place * tree.GAP))
        assert mean(c for c, _ in costs) <= 20 + 5 * log2(d + 1)
        assert mean(nodes for _, nodes in costs) <= 16 + 2.5 * log2(d + 1)


def test_a_bulk_insert_shares_its_way():
    """m = 16 at d = 2^10, n = 2^20: O(log d + m (1 + log(d / m))). A loop of single inserts or a rebuild takes more."""
    m, d, n = 16, 1 << 10, 1 << 20
    bulk, single, rnd = Counted(n), Counted(n), random.Random(1)
    in_bulk, one_by_one = [], []
    for _ in range(20):
        places = sorted(rnd.sample(range((n - d) * bulk.GAP, n * bulk.GAP - bulk.GAP), m))
        in_bulk.append(bulk.work(bulk.forest.bulk_insert, places, ([1] * m,)))
        costs = [single.work(single.forest.insert, t, (1,)) for t in places]
        one_by_one.append((sum(c for c, _ in costs), sum(nodes for _, nodes in costs)))
    bound = log2(d) + m * (1 + log2(d / m))
    for kind in (0, 1):
        ours, theirs = mean(c[kind] for c in in_bulk), mean(c[kind] for c in one_by_one)
        assert ours <= 0.75 * theirs, "a loop of single inserts"
        assert ours <= (3.5, 1.5)[kind] * bound
    assert mean(nodes for _, nodes in in_bulk) < d // 4, "a rebuild"


def test_a_bulk_insert_does_not_cost_log_n():
    m, d = 16, 1 << 10
    found = []
    for n in (1 << 14, 1 << 20):
        tree, rnd, costs = Counted(n), random.Random(2), []
        for _ in range(20):
            places = sorted(rnd.sample(range((n - d) * tree.GAP, (n - 1) * tree.GAP), m))
            costs.append(tree.work(tree.forest.bulk_insert, places, ([1] * m,)))
        found.append((mean(c for c, _ in costs), mean(nodes for _, nodes in costs)))
    assert found[1][0] <= 1.25 * found[0][0]
    assert found[1][1] <= 1.25 * found[0][1]


def test_a_bulk_insert_of_m_into_m_is_linear():
    each = []
    for m in (1 << 6, 1 << 9, 1 << 12):
        tree, rnd = Counted(1 << 15), random.Random(3)
        places = sorted(rnd.sample(range((tree.n - m) * tree.GAP, (tree.n - 1) * tree.GAP), m))
        combines, nodes = tree.work(tree.forest.bulk_insert, places, ([1] * m,))
        each.append((combines / m, nodes / m))
    assert max(c for c, _ in each) <= 8 and max(nodes for _, nodes in each) <= 4
    assert each[-1][0] <= 1.25 * each[0][0] and each[-1][1] <= 1.25 * each[0][1]


def test_a_bulk_evict_costs_log_m():
    """256 times as many entries for at most 2.5 times the work; and what is dropped is not looked at."""
    found = {}
    for m in (1 << 8, 1 << 16):
        tree, costs, gone = Counted(1 << 20), [], 0
        for j in range(8):  # half of the tree stays: nothing is compacted meanwhile
            count = m + 7 * j  # so that the cuts fall everywhere
            gone += count
            costs.append(tree.work(tree.forest.bulk_evict, (gone - 1) * tree.GAP))
        found[m] = mean(c for c, _ in costs), mean(nodes for _, nodes in costs)
        assert tree.forest.size() == tree.n - gone
    assert found[1 << 16][0] <= 2.5 * found[1 << 8][0]
    assert found[1 << 16][1] <= 2.5 * found[1 << 8][1]


@pytest.mark.parametrize(("first", "length"), [(0, 1 << 18), (1 << 10, 1 << 5), (1 << 19, 1 << 6), (-(1 << 8), 1 << 7)])
def test_a_range_query_costs_the_logarithms_of_its_distances_and_its_size(first, length):
    tree, costs = Counted(1 << 20), []
    start = first if first >= 0 else tree.n + first
    for j in range(30):
        a, b = start + 3 * j, start + 3 * j + length - 1
        costs.append(tree.work(tree.forest.query_range, a * tree.GAP, b * tree.GAP, [None], [0]))
    distances = [min(place, tree.n - place) + 2 for place in (start, start + length)]
    bound = sum(map(log2, distances)) + log2(length)
    assert mean(nodes for _, nodes in costs) <= 4 + 2.5 * bound
    assert mean(c for c, _ in costs) <= 4 + 4 * bound


@pytest.mark.parametrize("d", [1, 1 << 5, 1 << 10, 1 << 18])
def test_rank_and_select_cost_log_d(d):
    tree = Counted(1 << 20)
    for place in (d, tree.n - 1 - d):
        assert tree.forest.rank(0, place * tree.GAP) == place + 1
        assert tree.work(tree.forest.rank, place * tree.GAP)[1] <= 12 + 2 * log2(d)
        assert tree.forest.select(0, place) == place * tree.GAP
        assert tree.work(tree.forest.select, place)[1] <= 12 + 2 * log2(d)


def test_the_height_stays_logarithmic_after_the_window_shrinks():
    tree = Counted(1 << 15)
    forest = tree.forest
    for left in (1 << 12, 1 << 8, 1 << 4, 3):
        while forest.size() > left:
            forest.evict(0)
        assert forest.height() <= log2(left) + 1
    forest.check()
