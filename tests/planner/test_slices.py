"""Panes, pairs, Cutty slices and shared plans: the papers' example, and windows put together from slices by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidewise.errors import InputError
from slidewise.planner.slices import MOST_EDGES, TECHNIQUES, Query, best_plan, shared_plan


def test_figure_7():
    """slickdeque-2018, Example 1: two queries over one stream, (range 6, slide 2) and (range 8, slide 4).

    Partials are computed once every 2 tuples; the first query uses the last three of them, the second the last four.
    """
    first, second = Query("Q1", 6, 2), Query("Q2", 8, 4)
    plan = shared_plan([first, second])
    assert plan.composite == 4
    assert [(edge.at, edge.answers) for edge in plan.edges] == [(2, ("Q1",)), (4, ("Q1", "Q2"))]
    assert plan.lengths == (2, 2)
    assert (plan.slices_of(first), plan.slices_of(second), plan.window) == (3, 4, 4)
    assert plan.separate == 3, "two slices of the first query and one of the second in a composite slide"


def test_pairs_cut_a_slide_in_two_where_the_range_does_not_divide():
    """slickdeque-2018 section 2.1: f2 = range mod slide, f1 = slide - f2."""
    plan = shared_plan([Query("Q", 7, 5)], "pairs")
    assert plan.lengths == (3, 2)
    assert shared_plan([Query("Q", 10, 5)], "pairs").lengths == (5,)


def test_panes_are_the_common_divisor_and_cutty_only_cuts_where_windows_begin():
    query = Query("Q", 6, 4)
    assert shared_plan([query], "panes").lengths == (2, 2)
    assert shared_plan([query], "cutty").lengths == (4,)
    assert [len(shared_plan([Query("Q", 7, 5)], technique).edges) for technique in TECHNIQUES] == [5, 2, 1]


queries = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=3
).map(lambda found: [Query(f"Q{k}", r, s, o, f) for k, (r, s, o, f) in enumerate(found)])


@given(queries, st.sampled_from(TECHNIQUES))
def test_every_window_is_made_of_whole_slices(found, technique):
    """No slice has a window's start inside it; unless it is Cutty, no window's end either. At its end a query answers."""
    plan = shared_plan(found, technique)
    assert sum(plan.lengths) == plan.composite
    edges = {edge.at % plan.composite: edge for edge in plan.edges}
    for query in found:
        for answer in range(query.origin, query.origin + 2 * plan.composite, query.slide):
            end = answer - query.offset
            assert (end - query.range) % plan.composite in edges
            if technique != "cutty":
                assert query.name in edges[end % plan.composite].answers
            else:
                assert any(
                    edge.at % plan.composite == end % plan.composite and query.name in edge.answers
                    for edge in (*plan.edges, *plan.inside)
                )
            begun = [t for t in range(end - query.range, end) if t % plan.composite in edges]
            assert 0 < len(begun) <= plan.slices_of(query)


@given(queries)
def test_pairs_never_have_more_slices_than_panes_and_cutty_never_more_than_pairs(found):
    panes, pairs, cutty = (len(shared_plan(found, technique).edges) for technique in TECHNIQUES)
    assert cutty <= pairs <= panes
    best = best_plan(found)
    assert len(best.edges) == cutty and (best.technique == "pairs") == (cutty == pairs)
    assert pairs <= shared_plan(found).separate


def test_slides_that_hardly_meet_are_not_written_out():
    plan = best_plan([Query("a", 10**9 + 7, 999_983), Query("b", 10**9, 1_000_003)])
    assert plan.edges == () and plan.lengths == ()
    assert plan.composite == 999_983 * 1_000_003 > MOST_EDGES


def test_what_a_window_holds_is_counted_without_going_through_the_pattern():
    """4,000 edges and as many answers: sixteen million steps if each answer looked at each edge."""
    plan = shared_plan([Query("often", 60, 1), Query("seldom", 5000, 4000)], "cutty")
    assert len(plan.edges) == 4000 and [plan.slices_of(query) for query in plan.queries] == [60, 5000]


def test_wrong_techniques_are_named():
    with pytest.raises(InputError, match="pairs"):
        shared_plan([Query("Q", 1, 1)], "slabs")
    with pytest.raises(InputError, match="at least one"):
        shared_plan([])
