"""What the papers print: the worked example of fiba-2019, and the errata to both, each in a test that misses it when it is gone."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.algorithms.fiba_support import LETTERS, Model, infect, mutant, part, whole

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import (
    fiba,
    fiba_balance,
    fiba_bulk_evict,
    fiba_bulk_insert,
    fiba_drivers,
    fiba_ranges,
)
from slidewise.algorithms.fiba_forest import Forest


class MaxCount(NamedTuple):
    greatest: float
    count: int


def _max_count(a, b):
    if a.greatest != b.greatest:
        return a if a.greatest > b.greatest else b
    return MaxCount(a.greatest, a.count + b.count)


def test_the_worked_example_of_section_2():
    op = sw.operator(
        lift=lambda v: MaxCount(v, 1), combine=_max_count, identity=MaxCount(float("-inf"), 0), name="max_count"
    ).typed((object,))
    forest = Forest(op, 1, 2)
    for t, v in [(2.0, 4), (3.0, 3), (4.0, 0), (6.0, 4)]:
        forest.insert(0, t, (v,))
    assert whole(forest) == (4, 2)
    forest.insert(0, 6.5, (4,))
    assert whole(forest) == (4, 3)
    forest.insert(0, 2.3, (5,))  # out of order
    assert whole(forest) == (5, 1)
    assert forest.bulk_evict(0, 7.2 - 5) == 1
    assert whole(forest) == (5, 1)
    assert forest.bulk_evict(0, 7.7 - 5) == 1  # the 5 goes, and cannot be subtracted
    assert whole(forest) == (4, 2)
    assert list(forest.export(0)[0]) == [3.0, 4.0, 6.0, 6.5]


def test_the_worked_example_of_section_2_with_max():
    op = sw.operator(lift=lambda v: v, combine=max, identity=float("-inf"), name="max").typed((object,))
    forest = Forest(op, 1, 2)
    for t, v in [(2.0, 4), (3.0, 3), (4.0, 0), (6.0, 4)]:
        forest.insert(0, t, (v,))
    found = [whole(forest)]
    for t, v in [(6.5, 4), (2.3, 5)]:
        forest.insert(0, t, (v,))
        found.append(whole(forest))
    for now in (7.2, 7.7):
        forest.bulk_evict(0, now - 5)
        found.append(whole(forest))
    assert found == [4, 4, 5, 5, 4]


def test_a_time_that_is_there_combines_on_the_right():
    forest = Forest(LETTERS, 1, 2)
    for t, x in [(2, "b"), (1, "a"), (2, "c"), (1, "d")]:
        forest.insert(0, t, (x,))
    forest.bulk_insert(0, [2, 3, 2], (["e", "g", "f"],))
    assert whole(forest) == ("a", "d", "b", "c", "e", "f", "g")


def _sibling_on_the_left_spine():
    """3                 1
    0 1 2   4    ->     0   2 3        evicting 4: the right leaf takes from the left finger, which must be repaired"""
    forest = Forest(LETTERS, 1, 2)
    for t in (1, 2, 3, 4, 0):
        forest.insert(0, t, (t,))
    assert forest.evict_at(0, 4)
    forest.check()
    assert whole(forest) == (0, 1, 2, 3)


def test_errata_left_spine_sibling():
    _sibling_on_the_left_spine()


def test_errata_left_spine_sibling_is_what_the_test_sees(monkeypatch):
    infect(monkeypatch, fiba_balance, "underflow", "(first | second) & SPINE", "second & SPINE")
    with pytest.raises(AssertionError, match="left aggregate"):
        _sibling_on_the_left_spine()


def _the_last_inner_child():
    """2   5   8
    0 1 3 4 6 7 9      from 1 to 9: of the children between the ends, 3 4 and 6 7, the last one must be there too"""
    forest, model = Forest(LETTERS, 1, 2), Model(LETTERS)
    for t in range(10):
        forest.insert(0, t, (t,))
        model.insert(t, t)
    assert forest.height() == 1
    for first in range(10):
        for last in range(first, 10):
            assert part(forest, first, last) == tuple(range(first, last + 1))


def test_errata_last_inner_child():
    _the_last_inner_child()


def test_errata_last_inner_child_is_what_the_test_sees(monkeypatch):
    old, new = "span(k, op, V, u, acc, i, j, inner)", "span(k, op, V, u, acc, i, j - 1 if j - i > 2 else j, inner)"
    infect(monkeypatch, fiba_ranges, "query_range", old, new, users=[fiba_drivers])
    with pytest.raises(AssertionError):
        _the_last_inner_child()


def _all_of_the_right_spine():
    """Errata to repairAggs: each node on the way down the right spine is repaired, not only the finger."""
    forest, model = Forest(LETTERS, 1, 2), Model(LETTERS)
    for t in range(0, 200, 2):
        forest.insert(0, t, (t,))
        model.insert(t, t)
    assert forest.height() >= 3
    for d in (3, 9, 21, 45):
        forest.insert(0, 199 - d, (-d,))
        model.insert(199 - d, -d)
        forest.check()
        assert whole(forest) == model.fold()


def test_errata_every_node_down_the_right_spine():
    _all_of_the_right_spine()


def test_errata_every_node_down_the_right_spine_is_what_the_test_sees(monkeypatch):
    from slidewise.algorithms import fiba_aggregates

    old = "repair_own_here(k, op, H, N, V, z)\n"
    new = "if z == u or level_of(N[row(k, z)]) == 0:\n            repair_own_here(k, op, H, N, V, z)\n"
    changed = mutant(fiba_aggregates, "descend", old, new)
    for place in (fiba_aggregates, fiba, fiba_bulk_evict, fiba_bulk_insert):
        monkeypatch.setitem(vars(twin(place)), "descend", changed)
    with pytest.raises((AssertionError, TypeError)):  # stale, or never written at all
        _all_of_the_right_spine()


def _parts_of_the_paper(mu, arity):
    """Claim 1 as corrected: parts of mu + 1, the last one has what is left."""
    count, rest = divmod(arity, mu + 1)
    return [mu + 1] * count + [mu] if rest == mu else [mu + 1] * (count - 1) + [mu + 1 + rest]


def _parts_of_ours(mu, arity):
    class Mu:
        min_arity = mu

    steps = twin(fiba_bulk_insert)
    parts = steps.parts_of(Mu, arity)
    return [steps.arity_of_part(arity, parts, part) for part in range(parts)]


@pytest.mark.parametrize("mu", [2, 3, 4, 8, 16])
def test_claim_1_every_arity_splits_into_nodes_that_lemma_3_pays_for(mu):
    """Legitimate nodes, none of ours so full that the next entry splits it again, in as few parts as there can be; and the coins
    of an over-full node pay 3 for each part split off, and what the parts must keep: 1 where they have mu, 2 where 2 mu."""
    for arity in range(2 * mu + 1, 60 * mu):
        ours, papers = _parts_of_ours(mu, arity), _parts_of_the_paper(mu, arity)
        assert sum(ours) == sum(papers) == arity
        assert mu <= min(papers) and max(papers) <= 2 * mu
        assert mu <= min(ours) and max(ours) <= 2 * mu - 1
        assert len(ours) == -(-arity // (2 * mu - 1))
        for parts in (ours, papers):
            needed = (
                3 * (len(parts) - 1) + sum(part == mu for part in parts) + 2 * sum(part == 2 * mu for part in parts)
            )
            assert needed <= 2 + 2 * (arity - 2 * mu)


def test_bulk_evict_merges_with_a_neighbour_that_is_no_sibling():
    """bulk-fiba-2023 Figure 19, in every place: cut a deep tree everywhere, and compare."""
    for n in (60, 61, 75, 100):
        for t in range(n - 1):
            forest = Forest(LETTERS, 1, 2)
            forest.bulk_insert(0, list(range(n)), (list(range(n)),))
            assert forest.bulk_evict(0, t) == t + 1
            forest.check()
            assert whole(forest) == tuple(range(t + 1, n))


def test_bulk_evict_takes_the_root_off_when_it_keeps_nothing():
    """bulk-fiba-2023 Figure 20: t is on the right spine, the tree shrinks from the top."""
    forest = Forest(LETTERS, 1, 2)
    forest.bulk_insert(0, list(range(300)), (list(range(300)),))
    high = forest.height()
    assert forest.bulk_evict(0, 296) == 297
    assert forest.height() == 0 < high
    forest.check()
    assert whole(forest) == (297, 298, 299)
