"""The printed traces of the papers, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.support import IN_ORDER, Counter, Running, result, results

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import algorithm, slick_deque
from slidewise.algorithms.protocol import arrays

GREATEST = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a if a >= b else b, identity=-(10**9), selective=True, name="greatest"
)
TOTAL = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a + b, inverse=lambda total, old: total - old, identity=0, name="total"
)
LETTERS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters")


# ---- daba-2015 Figures 1, 3, 9 and 15 --------------------------------------------------------------------------------
#
#   (a) 2 6 3 5 3   (b) 6 3 5 3   (c) 6 3 5 3 1   (d) 3 5 3 1   then insert, evict, insert, evict, insert
#
# The text names the events up to (d) and what each algorithm does in every step up to (i); the values inserted after
# (d) are in the drawing only, and any will do.

FIGURE_1 = [  # what happens, the window, its maximum
    ("evict", None, [6, 3, 5, 3], 6),
    ("insert", 1, [6, 3, 5, 3, 1], 6),
    ("evict", None, [3, 5, 3, 1], 5),
    ("insert", 4, [3, 5, 3, 1, 4], 5),
    ("evict", None, [5, 3, 1, 4], 5),
    ("insert", 2, [5, 3, 1, 4, 2], 5),
    ("evict", None, [3, 1, 4, 2], 4),
    ("insert", 6, [3, 1, 4, 2, 6], 6),
]


def steps_of_figure_1(window: Running):
    """Run the trace from state (a) on, and yield after every step."""
    assert window.query() == 6
    for what, value, _, greatest in FIGURE_1:
        if what == "insert":
            window.insert(value)
        else:
            window.evict()
        assert window.query() == greatest
        window.check()
        yield


@pytest.mark.parametrize("name", [name for name in IN_ORDER if name != "subtract_on_evict"])
def test_figure_1(name):
    window = Running(name, GREATEST.typed((np.dtype(np.int64),)).as_object())
    for value in (2, 6, 3, 5, 3):
        window.insert(value)
    for (_, _, content, _), _ in zip(FIGURE_1, steps_of_figure_1(window)):
        assert len(window) == len(content)
        if "items" in window.alg.info.offers:
            assert window.items() == content


@pytest.mark.parametrize("name", ["two_stacks", "aba"])
def test_two_stacks_flips_where_figures_3_and_9_say(name):
    """(a) has 2 and 6 in front: evict takes from there, until (e) -> (f) finds it empty and flips."""
    window = Running(name, GREATEST.typed((np.dtype(np.int64),)).as_object(), capacity=8)
    for value in (0, 2, 6):
        window.insert(value)
    window.evict()  # flips: the front is 2 6
    for value in (3, 5, 3):
        window.insert(value)

    def front():
        return window.H[0] if name == "two_stacks" else window.H[1] - window.H[0]

    assert front() == 2
    assert [front() for _ in steps_of_figure_1(window)] == [1, 1, 0, 0, 4, 4, 3, 3]


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
def test_daba_moves_as_figure_15_says(name):
    """Shrink; free ride three times; flip and shrink; shrink; free ride twice. Sizes of l_F, l_L, l_R, l_A, l_B."""
    window = Running(name, GREATEST.typed((np.dtype(np.int64),)).as_object(), capacity=8)
    for value in (0, 0, 2, 6, 3):
        window.insert(value)
    window.evict()
    window.insert(5)
    window.insert(3)
    window.evict()

    def sizes():
        F, L, R, A, B, E = window.H[:6]
        return B - F, R - L, A - R, B - A, E - B

    assert sizes() == (5, 1, 1, 2, 0)
    assert [sizes() for _ in steps_of_figure_1(window)] == [
        (4, 0, 0, 3, 0),  # (b) shrink
        (4, 0, 0, 2, 1),  # (c) free ride
        (3, 0, 0, 1, 1),  # (d) free ride
        (3, 0, 0, 0, 2),  # (e) free ride
        (4, 1, 1, 1, 0),  # (f) flip, then shrink
        (4, 0, 0, 2, 1),  # (g) shrink
        (3, 0, 0, 1, 1),  # (h) free ride
        (3, 0, 0, 0, 2),  # (i) free ride
    ]


# ---- slickdeque-2018 Examples 2 and 3 --------------------------------------------------------------------------------

TUPLES = [6, 5, 0, 1, 3, 4, 2, 7]
EXAMPLE_2 = [(6, 6), (11, 11), (11, 11), (6, 12), (4, 15), (8, 13), (9, 10), (13, 17)]  # sums over 3 and over 5
EXAMPLE_3 = [(6, 6), (6, 6), (6, 6), (5, 6), (3, 6), (4, 5), (4, 4), (7, 7)]  # maxima
DEQUES = [[6], [6, 5], [6, 5, 0], [6, 5, 1], [6, 5, 3], [5, 4], [4, 2], [7]]


def both_queries(op, ranges=(3, 5)) -> list[tuple]:
    """Every answer of both queries, from the shared form."""
    n = len(TUPLES)
    H, W, V, m, scratch = arrays(algorithm("slick_deque"), op, 8, more=len(ranges))
    OUT, OK = results(op, n * len(ranges))
    starts = [max(0, i + 1 - r) for r in ranges for i in range(n)]
    ends = [i + 1 for i in range(n)]
    X, mask, run = (TUPLES,), (), twin(slick_deque).run_ranges
    if op.compiled:
        X, mask, run = (np.array(TUPLES),), np.empty(0, np.uint8), slick_deque.run_ranges
        starts, ends = np.array(starts), np.array(ends)
    run(op, len(ranges), H, W, V, m, scratch, X, mask, starts, ends, OUT, OK, 0, n)
    return [tuple(result(op, OUT, OK, q * n + i) for q in range(len(ranges))) for i in range(n)]


@pytest.mark.parametrize(("op", "answers"), [(TOTAL, EXAMPLE_2), (GREATEST, EXAMPLE_3)], ids=["example 2", "example 3"])
def test_slick_deque_answers_of_both_queries(op, answers):
    typed = op.typed((np.dtype(np.int64),))
    assert typed.compiled
    assert both_queries(typed.as_object()) == answers
    assert both_queries(typed) == answers


@pytest.mark.parametrize(("op", "answers"), [(TOTAL, EXAMPLE_2), (GREATEST, EXAMPLE_3)], ids=["example 2", "example 3"])
@pytest.mark.parametrize(("query", "size"), [(0, 3), (1, 5)])
def test_slick_deque_of_one_window(op, answers, query, size):
    window = Running("slick_deque", op.typed((np.dtype(np.int64),)).as_object(), capacity=8)
    for step, value in enumerate(TUPLES):
        if step >= size:
            window.evict()
        window.insert(value)
        window.check()
        assert window.query() == answers[step][query]


def test_the_deque_of_example_3_holds_what_figure_9_shows():
    window = Running("slick_deque", GREATEST.typed((np.dtype(np.int64),)).as_object(), capacity=8)
    for step, value in enumerate(TUPLES):
        if step >= 5:
            window.evict()
        window.insert(value)
        _, _, head, tail = window.H
        assert [window.V[k & window.m] for k in range(head, tail)] == DEQUES[step]


def test_example_3_takes_the_papers_11_operations():
    counter = Counter(GREATEST)
    assert both_queries(counter.typed) == EXAMPLE_3
    assert counter.count == 11


# ---- reactive-aggregator-2015 Figure 5 -------------------------------------------------------------------------------


def test_reactive_aggregator_figure_5():
    """A window of the latest 4 in 4 slots, and the inverted buffer of its last event."""
    figure = [  # event, slots a[1] .. a[4] with None for an empty one, F, B, window
        (4, [4, None, None, None], 1, 1, (4,)),
        (7, [4, 7, None, None], 1, 2, (4, 7)),
        (3, [4, 7, 3, None], 1, 3, (4, 7, 3)),
        (2, [4, 7, 3, 2], 1, 4, (4, 7, 3, 2)),
        ("leaves", [None, 7, 3, 2], 2, 4, (7, 3, 2)),
        (9, [9, 7, 3, 2], 2, 1, (7, 3, 2, 9)),
    ]
    window = Running("flatfat", LETTERS.typed((object,)), capacity=4)
    for event, slots, front, back, content in figure:
        if event == "leaves":
            window.evict()
        else:
            window.insert(event)
        leaves = [window.V[4 + k][0] if window.W[4 + k] else None for k in range(4)]
        F, E = window.H[:2]
        assert (leaves, F % 4 + 1, (E - 1) % 4 + 1) == (slots, front, back)
        assert window.query() == content
        window.check()
    assert window.V[1] == (9, 7, 3, 2), "aggregate() alone would be wrong here: suffix(F) (x) prefix(B) is right"
