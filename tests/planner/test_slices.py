"""Panes, pairs, Cutty slices and shared plans: the papers' example, and windows put together from slices by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidewise.errors import InputError
from slidewise.planner.slices import MOST_EDGES, TECHNIQUES, Query, best_plan, shared_plan
from slidewise.windows.bounds import sides


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


closed = st.sampled_from(["right", "left", "both", "neither"])


@given(queries, st.sampled_from(TECHNIQUES), closed)
def test_every_window_is_made_of_whole_slices(found, technique, closed):
    """No slice has a window's start inside it; unless it is Cutty, no window's end either. At its end a query answers."""
    plan = shared_plan(found, technique, closed)
    left, right = sides(closed)
    assert sum(plan.lengths) == plan.composite
    edges = {(edge.at % plan.composite, edge.beyond): edge for edge in plan.edges}
    assert len(edges) == len(plan.edges)
    inside = {(edge.at % plan.composite, edge.beyond): edge for edge in plan.inside}
    assert technique == "cutty" or not inside
    for query in found:
        held = []
        for answer in range(query.origin, query.origin + 2 * plan.composite, query.slide):
            end = answer - query.offset
            assert ((end - query.range) % plan.composite, not left) in edges
            assert query.name in (edges | inside)[end % plan.composite, right].answers
            sides_of_moments = [(t, beyond) for t in range(end - query.range, end + 1) for beyond in (False, True)]
            within = [place for place in sides_of_moments if (end - query.range, not left) <= place < (end, right)]
            held.append(sum((t % plan.composite, beyond) in edges for t, beyond in within))
        assert plan.slices_of(query) == max(held) > 0


@given(queries, closed)
def test_pairs_never_have_more_slices_than_panes_and_cutty_never_more_than_pairs(found, closed):
    panes, pairs, cutty = (len(shared_plan(found, technique, closed).edges) for technique in TECHNIQUES)
    assert cutty <= pairs <= panes
    best = best_plan(found, closed)
    assert len(best.edges) == cutty and (best.technique == "pairs") == (cutty == pairs)
    assert pairs <= shared_plan(found, "pairs", closed).separate


def test_moments_that_windows_end_and_begin_with_are_slices_of_their_own():
    """closed="both": the row at 4 is in the window that ends there and in the one that begins there."""
    for closed in ("both", "neither"):
        plan = shared_plan([Query("Q", 8, 4)], "pairs", closed)
        assert sorted(plan.lengths) == [0, 4] and plan.separate == 2
        assert [edge.answers for edge in plan.edges] == [("Q",) if edge.beyond == (closed == "both") else () for edge in plan.edges]
        assert best_plan([Query("Q", 8, 4)], closed).technique == "cutty"
    assert shared_plan([Query("Q", 8, 4)], "pairs", "both").window == 5
    assert shared_plan([Query("Q", 8, 4)], "pairs", "neither").window == 3


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
