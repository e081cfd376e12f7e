"""The papers' bounds as counts of work, amortised over many operations: combines, nodes, and words touched. No clock.

Minimum arity 2: the trees are as high as they get. Big trees are built compiled; the operations under test run interpreted.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import islice
from math import log2

import pytest
from tests.algorithms.fiba_support import Counted, Work, each, infect, levels

from slidewise.algorithms import fiba_bulk_insert, fiba_drivers, fiba_ranges
from slidewise.algorithms.fiba_forest import Forest

SIZES = (1 << 10, 1 << 15, 1 << 20)
ROUNDS = 100


def within(work: Work, combines: float, nodes: float, touches: float) -> None:
    assert work.combines <= combines and work.nodes <= nodes and work.touches <= touches, work


def no_dearer(work: Work, than: Work, factor: float) -> None:
    for ours, theirs in zip(work, than):
        assert ours <= factor * theirs, (work, than)


# ---- single operations -----------------------------------------------------------------------------------------------


@cache
def insert_cost(n: int, d: int, fingers: bool = True, shuffled: bool = False) -> Work:
    """Of a single insert d places before the youngest."""
    tree, rnd = Counted(n, fingers=fingers, shuffled=shuffled), random.Random(d)
    place = (n - 1 - d) * tree.GAP
    return each([tree.work(tree.forest.insert, place + rnd.randrange(1, tree.GAP), (1,)) for _ in range(ROUNDS)])


@pytest.mark.parametrize("d", [4, 32, 1 << 8, 1 << 10, 1 << 14, 1 << 18])
def test_an_insert_costs_log_d(d):
    within(insert_cost(1 << 20, d), 16 + 3.5 * log2(d), 12 + 1.6 * log2(d), 105 + 8 * log2(d))


def test_an_insert_costs_more_at_a_larger_distance():
    """Not only because the bound above is generous: the cost does follow log d."""
    nodes = [insert_cost(1 << 20, d).nodes for d in (4, 1 << 8, 1 << 14, 1 << 18)]
    assert nodes == sorted(nodes)
    assert nodes[-1] - nodes[0] >= 0.75 * (18 - 2)


@pytest.mark.parametrize("d", [4, 32, 1 << 10])
def test_an_insert_does_not_cost_log_n(d):
    costs = [insert_cost(n, d) for n in SIZES if d < n // 8]
    for kind in zip(*costs):
        assert max(kind) <= 1.4 * min(kind)


RANDOM_SIZES = (1 << 10, 1 << 14, 1 << 18)


@pytest.mark.parametrize("d", [4, 1 << 6, 1 << 10, 1 << 16])
def test_an_insert_costs_log_d_in_a_tree_that_grew_in_random_order(d):
    """Nodes there have any arity, not that which entries in order leave behind."""
    costs = [insert_cost(n, d, shuffled=True) for n in RANDOM_SIZES if d < n // 8]
    for cost in costs:
        within(cost, 16 + 4.2 * log2(d), 12 + 1.8 * log2(d), 105 + 9 * log2(d))
    for kind in zip(*costs):
        assert max(kind) <= 1.5 * min(kind)


@pytest.mark.parametrize("n", RANDOM_SIZES)
def test_ends_are_constant_in_a_tree_that_grew_in_random_order(n):
    tree = Counted(n, shuffled=True)
    within(each([tree.work(tree.forest.insert, (n + j) * tree.GAP, (1,)) for j in range(ROUNDS)]), 6, 5, 30)
    within(each([tree.work(tree.forest.evict) for _ in range(ROUNDS)]), 8, 6, 45)


@pytest.mark.parametrize("n", SIZES)
def test_in_order_inserts_and_evicts_are_constant(n):
    tree = Counted(n)
    within(each([tree.work(tree.forest.insert, (n + j) * tree.GAP, (1,)) for j in range(4 * ROUNDS)]), 6, 5, 30)
    within(each([tree.work(tree.forest.evict) for _ in range(4 * ROUNDS)]), 6, 5, 30)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 100, 1 << 15, 1 << 20])
def test_a_query_combines_at_most_twice(n):
    """Not amortised: each query, whatever came before."""
    tree = Counted(n)
    forest, changes = tree.forest, 0
    for j in range(60):
        forest.insert(0, ((37 * j) % 101 + n // 2) * tree.GAP + j, (1,))
        if j % 3 == 1:
            forest.evict(0)
        elif j % 3 == 2:
            forest.bulk_evict(0, forest.ends(0)[0] + j % 7 * tree.GAP)
        changes += forest.size() > 0
        within(tree.work(forest.query, [None], [0]), 2, 3, 8)
    assert changes > 20


def test_without_fingers_every_change_costs_log_n():
    """The baseline of the papers, so that the tests above are known to tell the difference."""
    small, large = (insert_cost(n, 4, False) for n in (SIZES[0], SIZES[-1]))
    assert large.combines - small.combines >= 8
    assert large.nodes - small.nodes >= 8
    assert large.nodes > 1.4 * insert_cost(SIZES[-1], 4).nodes


@pytest.mark.parametrize("d", [0, 4, 1 << 10, 1 << 16])
def test_evict_at_a_time_costs_log_d(d):
    for from_the_left in (True, False):
        tree, costs = Counted(1 << 20), []
        for j in range(ROUNDS):
            place = d + j if from_the_left else tree.n - 1 - d - j
            costs.append(tree.work(tree.forest.evict_at, place * tree.GAP))
        log_d = log2(d + 1)
        within(each(costs), 10 + 5 * log_d, 8 + 2 * log_d, 65 + 10 * log_d)


# ---- there and back, over and over -----------------------------------------------------------------------------------

FLIPS = 24


def flips(tree: Counted, there, back) -> Work:
    """The work of one operation where two that undo each other take turns. An adversary would do just that, at a place where the
    first splits nodes and the second merges them again."""
    costs = []
    for _ in range(FLIPS):
        costs += [tree.work(*there), tree.work(*back)]
    return each(costs)


def dearest(costs: list[Work]) -> Work:
    return Work(*(max(kind) for kind in zip(*costs)))


@pytest.mark.parametrize("n", [3, 1 << 10, 1 << 15])
def test_flipping_at_an_end_is_constant_whatever_the_size(n):
    """One entry more each time, so that every number of full nodes along a spine is met."""
    tree = Counted(n)
    forest, young, old = tree.forest, [], []
    for j in range(300):
        t = (n + j) * tree.GAP
        young.append(flips(tree, (forest.insert, t, (1,)), (forest.evict_at, t)))
        old.append(flips(tree, (forest.insert, -t, (1,)), (forest.evict,)))
        forest.insert(0, t, (1,))
        forest.insert(0, -t, (1,))
    within(dearest(young), 8, 8, 70)
    within(dearest(old), 8, 8, 70)
    forest.check()


@pytest.mark.parametrize("d", [1, 16, 1 << 8])
def test_flipping_at_a_distance_costs_log_d_wherever_it_is(d):
    """At 200 places that follow each other; in a tree that grows there, so that nodes of every arity are met."""
    found = []
    for n in (1 << 12, 1 << 20):
        tree, costs = Counted(n), []
        forest = tree.forest
        for j in range(200):
            t = (n - 1 - d) * tree.GAP - 1000 * j + 1
            costs.append(flips(tree, (forest.insert, t, (1,)), (forest.evict_at, t)))
            if j % 2:
                forest.insert(0, t, (1,))
        found.append(dearest(costs))
        log_d = log2(d + 200)
        within(found[-1], 24 + 3 * log_d, 12 + 2 * log_d, 65 + 12 * log_d)
    no_dearer(found[1], found[0], 1.3)


@pytest.mark.parametrize("m", [4, 16, 64])
def test_flipping_bulks_costs_no_more_than_bulks(m):
    """A bulk at the old end, and away with it."""
    found = []
    for n in (1 << 10, 1 << 20):
        tree, costs = Counted(n), []
        for j in range(40):
            ts = [-tree.GAP * (j + 2) + i for i in range(m)]
            costs.append(flips(tree, (tree.forest.bulk_insert, ts, ([1] * m,)), (tree.forest.bulk_evict, ts[-1])))
            tree.forest.insert(0, ts[-1] + 1, (1,))
        found.append(dearest(costs))
        within(found[-1], m + 20, 0.75 * m + 16, 10 * m + 175)
    no_dearer(found[1], found[0], 1.3)


# ---- in bulk ---------------------------------------------------------------------------------------------------------


def bulks(tree: Counted, m: int, d: int, seed: int):
    """Times for 20 bulks of m among the d youngest entries."""
    rnd = random.Random(seed)
    for _ in range(20):
        yield sorted(rnd.sample(range((tree.n - d) * tree.GAP, (tree.n - 1) * tree.GAP), m))


def bulk_insert_shares_its_way(n: int, rounds: int = 20):
    """m = 16 at d = 2^10: O(log d + m (1 + log(d / m)))."""
    m, d = 16, 1 << 10
    bulk, single = Counted(n), Counted(n)
    in_bulk, one_by_one = [], []
    for places in islice(bulks(bulk, m, d, 1), rounds):
        in_bulk.append(bulk.work(bulk.forest.bulk_insert, places, ([1] * m,)))
        one_by_one.append(Work(*map(sum, zip(*(single.work(single.forest.insert, t, (1,)) for t in places)))))
    ours = each(in_bulk)
    theirs = each(one_by_one)
    assert ours.combines <= 0.5 * theirs.combines and ours.nodes <= 0.5 * theirs.nodes and ours.touches <= theirs.touches
    bound = log2(d) + m * (1 + log2(d / m))
    within(ours, 2.5 * bound, 1.25 * bound, 20 * bound)
    assert ours.nodes < d // 4, "a rebuild"


def test_a_bulk_insert_shares_its_way():
    bulk_insert_shares_its_way(1 << 20)


def test_a_loop_of_single_inserts_is_what_the_bulk_test_sees(monkeypatch):
    infect(monkeypatch, fiba_bulk_insert, "bulk_insert", "inside - lo <= FEW", "True", users=[fiba_drivers])
    with pytest.raises(AssertionError):
        bulk_insert_shares_its_way(1 << 12, 2)


def test_a_rebuild_is_what_the_bulk_test_sees(monkeypatch):
    """Even one that leaves the old entries alone, and builds the d youngest anew."""

    def rebuild(forest, tree, ts, X):
        times, states = forest.export(tree)
        cut = next(i for i, t in enumerate(times) if t >= ts[0])
        for t in times[cut:]:
            forest.evict_at(tree, t)
        entries = sorted([*zip(times[cut:], states[cut:]), *zip(ts, *X)])
        forest.fill(tree, *map(list, zip(*entries)))

    monkeypatch.setattr(Forest, "bulk_insert", rebuild)
    with pytest.raises(AssertionError):
        bulk_insert_shares_its_way(1 << 12, 2)


def test_a_bulk_insert_does_not_cost_log_n():
    m, d = 16, 1 << 10
    found = []
    for n in (1 << 14, 1 << 20):
        tree = Counted(n)
        found.append(each([tree.work(tree.forest.bulk_insert, ts, ([1] * m,)) for ts in bulks(tree, m, d, 2)]))
    no_dearer(found[1], found[0], 1.25)


@pytest.mark.parametrize("n", [1 << 15, 1 << 20])
def test_a_bulk_insert_of_m_into_m_is_linear(n):
    found = []
    for m in (1 << 6, 1 << 9, 1 << 12):
        tree = Counted(n)
        work = tree.work(tree.forest.bulk_insert, next(bulks(tree, m, m, 3)), ([1] * m,))
        found.append(Work(*(kind / m for kind in work)))
        within(found[-1], 8, 4, 75)
    no_dearer(found[-1], found[0], 1.25)


@pytest.mark.parametrize("n", SIZES)
def test_a_small_bulk_at_the_young_end_costs_the_same_whatever_the_size(n):
    """One entry a few places before the youngest and two next to it: the way between them is up the right spine only as far as
    needed, not to the root."""
    tree, costs, young = Counted(n), [], (n - 1) * Counted.GAP
    for j in range(60):
        ts = [young - 7 * tree.GAP + 1, young - 2, young - 1]
        costs.append(tree.work(tree.forest.bulk_insert, ts, ([1] * 3,)))
        for _ in range(5 + j % 4):  # so that every shape of the young end is met
            young += tree.GAP
            tree.forest.insert(0, young, (1,))
    within(each(costs), 18, 15, 220)


def next_to_the_root(tree: Counted) -> int:
    """A time in the gap before the root's first entry: the way up from there leads to the root."""
    return levels(tree.forest)[-1][0] - tree.GAP + 1


@pytest.mark.parametrize("n", [1 << 10, 1 << 15])
def test_a_bulk_into_one_gap_looks_for_it_once(n):
    """All entries but the first know their place by the next time behind it."""
    tree, m = Counted(n), 256
    first = next_to_the_root(tree)
    work = tree.work(tree.forest.bulk_insert, [first + j for j in range(m)], ([1] * m,))
    within(work, 1.5 * m, m, 14 * m)


EVICTED = (8, 1 << 5, 1 << 8, 1 << 12, 1 << 16)


@cache
def bulk_evict_costs(n: int) -> dict[int, Work]:
    """By m, where half of the tree stays: nothing is compacted meanwhile."""
    tree, gone, found = Counted(n), 0, {}
    for m in EVICTED:
        costs = []
        while len(costs) < 6 and 2 * (gone + m + 40) < n:
            gone += m + len(costs)  # so that the cuts fall everywhere
            costs.append(tree.work(tree.forest.bulk_evict, (gone - 1) * tree.GAP))
        if costs:
            found[m] = each(costs)
    assert tree.forest.size() == n - gone
    return found


@pytest.mark.parametrize("n", SIZES)
def test_a_bulk_evict_costs_log_m(n):
    costs = bulk_evict_costs(n)
    assert len(costs) >= 2
    for m, cost in costs.items():
        within(cost, 24 + 2.4 * log2(m), 12 + 3.2 * log2(m), 250 + 23 * log2(m))


def test_a_bulk_evict_does_not_cost_m():
    """256 times as many entries for at most 2.5 times the work; what is dropped is not looked at."""
    costs = bulk_evict_costs(SIZES[-1])
    no_dearer(costs[1 << 16], costs[1 << 8], 2.5)


def test_a_bulk_evict_does_not_cost_log_n():
    small, large = bulk_evict_costs(SIZES[0]), bulk_evict_costs(SIZES[-1])
    for m in small:
        no_dearer(large[m], small[m], 1.15)


# ---- looking into a tree ---------------------------------------------------------------------------------------------


@cache
def looked_at(n: int) -> Counted:
    """A tree that is not changed."""
    return Counted(n)


def range_cost(tree: Counted, start: int, length: int) -> Work:
    """Of a query of so many entries from the start-th of those that are left; several that follow each other."""
    oldest, costs = tree.forest.ends(0)[0] // tree.GAP, []
    for j in range(30):
        a = oldest + start + 3 * j
        costs.append(tree.work(tree.forest.query_range, a * tree.GAP, (a + length - 1) * tree.GAP, [None], [0]))
    return each(costs)


NEAR = [(start, length) for start in (0, 64, 1 << 10) for length in (1, 8, 64)]


def ranges_cost_the_logarithms_of_their_distances_and_sizes(tree: Counted):
    """Near the ends, where a search from the root would cost log n, and elsewhere."""
    n = tree.forest.size()
    places = list(NEAR)
    places += [(n - 90 - start - length, length) for start, length in NEAR]
    places += [(0, n // 4), (1 << 10, n // 2), (n // 2, 1 << 6), (n // 8, n - n // 4)]
    for start, length in places:
        distances = [min(place, n - place) for place in (start + 45, start + 45 + length)]
        bound = sum(log2(d) for d in distances) + log2(length)
        within(range_cost(tree, start, length), 4 + 1.5 * bound, 6 + bound, 35 + 3.5 * bound)


def test_a_range_query_costs_the_logarithms_of_its_distances_and_its_size():
    ranges_cost_the_logarithms_of_their_distances_and_sizes(looked_at(1 << 20))


@pytest.mark.parametrize("gone", [1 << 10, 300_001, (1 << 19) - 1])
def test_a_range_query_costs_no_more_after_the_window_has_moved(gone):
    """The left spine is as thin as evicts leave it."""
    tree = Counted(1 << 20)
    tree.forest.bulk_evict(0, (gone - 1) * tree.GAP)
    for _ in range(100):
        tree.forest.evict(0)
    ranges_cost_the_logarithms_of_their_distances_and_sizes(tree)


@pytest.mark.parametrize(("start", "length"), [(start, length) for start, length in NEAR if start < 1 << 7])
def test_a_range_query_near_an_end_does_not_cost_log_n(start, length):
    for from_the_left in (True, False):
        costs = []
        for n in SIZES:
            tree = looked_at(n)
            costs.append(range_cost(tree, start if from_the_left else n - 90 - start - length, length))
        for kind in zip(*costs):
            assert max(kind) <= 1.4 * min(kind)


def test_a_search_from_the_root_is_what_the_range_tests_see(monkeypatch):
    infect(monkeypatch, fiba_ranges, "query_range", "has_fingers(k) and H[HEIGHT] > 0", "False", users=[fiba_drivers])
    with pytest.raises(AssertionError):
        test_a_range_query_costs_the_logarithms_of_its_distances_and_its_size()
    for start, length in NEAR[:6]:
        with pytest.raises(AssertionError):
            test_a_range_query_near_an_end_does_not_cost_log_n(start, length)


@pytest.mark.parametrize("d", [1, 1 << 5, 1 << 10, 1 << 18])
def test_rank_and_select_cost_log_d(d):
    tree = looked_at(1 << 20)
    for place in (d, tree.n - 1 - d):
        assert tree.forest.rank(0, place * tree.GAP) == place + 1
        within(tree.work(tree.forest.rank, place * tree.GAP), 0, 12 + 2 * log2(d), 60 + 10 * log2(d))
        assert tree.forest.select(0, place) == place * tree.GAP
        within(tree.work(tree.forest.select, place), 0, 12 + 2 * log2(d), 60 + 10 * log2(d))


def test_the_height_stays_logarithmic_after_the_window_shrinks():
    tree = Counted(1 << 15)
    forest = tree.forest
    for left in (1 << 12, 1 << 8, 1 << 4, 3):
        while forest.size() > left:
            forest.evict(0)
        assert forest.height() <= log2(left) + 1
    forest.check()
