"""Loops over rows at hand: the same states combined in the same order as by the algorithm itself, the same results to the bit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import algorithm, at_hand, drivers
from slidewise.algorithms.protocol import arrays, capacity_for

F8 = np.dtype("f8")


@st.composite
def frames(draw, most=40):
    """Frames whose starts and ends never go back; empty ones and such that begin anew among them."""
    n = draw(st.integers(1, most))
    ends = sorted(draw(st.lists(st.integers(0, n), min_size=1, max_size=most)))
    starts, start = [], 0
    for end in ends:
        start = draw(st.integers(min(start, end), end))
        start = max(start, starts[-1] if starts else 0)
        starts.append(start)
    ends = np.maximum.accumulate(np.maximum(ends, starts)).tolist()
    return n, starts, ends


def letters(log):
    """Strings joined in order, with every combine in a log: no two groupings look the same."""

    def combine(a, b):
        log.append((a, b))
        return f"({a}{b})" if a and b else a or b

    return sw.operator(lift=lambda x: x, combine=combine, lower=lambda s: s, identity="", name="letters")


def slid(name, op, X, starts, ends):
    """By the algorithm itself, entry by entry."""
    alg = algorithm(name)
    size = max((e - s for s, e in zip(starts, ends)), default=0)
    H, W, V, m, scratch = arrays(alg, op, capacity_for(max(size, 1)))
    if op.compiled:
        OUT, OK, loop = op.result.alloc(len(starts)), np.empty(len(starts), np.uint8), drivers
        mask, carry = np.zeros(0, np.uint8), np.full(2, starts[0], np.int64)
    else:
        OUT, OK, loop = [None] * len(starts), [0] * len(starts), twin(drivers)
        mask, carry = [], [starts[0]] * 2
    loop.run_frames(alg, op, H, W, V, m, scratch, carry, X, mask, starts, ends, OUT, OK, 0, len(starts))
    return OUT, OK


def in_pieces(loop, op, X, starts, ends, pieces):
    """By the loop over rows at hand, cut anywhere."""
    size = max((e - s for s, e in zip(starts, ends)), default=0)
    if op.compiled:
        OUT, OK, V = op.result.alloc(len(starts)), np.empty(len(starts), np.uint8), op.state.alloc(at_hand.slots(size))
        carry = np.full(at_hand.CARRY, starts[0], np.int64)
    else:
        OUT, OK, V = [None] * len(starts), [0] * len(starts), [op.identity] * at_hand.slots(size)
        carry = [starts[0]] * at_hand.CARRY
    cuts = sorted({0, len(starts), *(p for p in pieces if p < len(starts))})
    for lo, hi in pairwise(cuts):
        loop(op, V, carry, X, starts, ends, OUT, OK, lo, hi)
    return OUT, OK


@settings(max_examples=150, deadline=None)
@given(frames(), st.lists(st.integers(1, 39), max_size=3))
def test_the_same_combines_in_the_same_order(case, pieces):
    """Two-Stacks Lite: what is answered, and the very calls of `combine` the answers are made of."""
    n, starts, ends = case
    X = ([chr(97 + i) for i in range(n)],)
    said, done = [], []
    ours = in_pieces(twin(at_hand).front_and_back, letters(done).typed((object,)), X, starts, ends, pieces)
    theirs = slid("two_stacks_lite", letters(said).typed((object,)), X, starts, ends)
    assert ours == theirs
    assert set(done) <= set(said), "a row that has left is not combined again"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.lists(st.tuples(st.integers(1, 130), st.sampled_from([0, 1, 2])), min_size=1, max_size=4), st.data())
def test_rows_that_come_and_go_one_by_one(size, stretches, data):
    """Stretches in which each row that comes lets one go, between others where none or two do: the very same combines."""
    ends = np.cumsum([1] + [1] * size + [step for length, step in stretches for _ in range(length)])
    starts = np.maximum.accumulate(np.maximum(ends - size, 0))
    held = data.draw(st.integers(0, len(ends) - 1))
    starts[held:] = np.maximum(starts[held:], min(starts[held] + 1, ends[held]))  # one row leaves early
    X = ([chr(97 + i % 26) for i in range(ends[-1])],)
    said, done = [], []
    pieces = data.draw(st.lists(st.integers(1, len(ends)), max_size=2))
    arguments = (X, starts.tolist(), ends.tolist())
    ours = in_pieces(twin(at_hand).front_and_back, letters(done).typed((object,)), *arguments, pieces)
    assert ours == slid("two_stacks_lite", letters(said).typed((object,)), *arguments)
    assert set(done) <= set(said)


@settings(max_examples=100, deadline=None)
@given(frames(), st.lists(st.integers(1, 39), max_size=3))
def test_sums_that_are_subtracted(case, pieces):
    n, starts, ends = case
    X = ([3**i for i in range(n)],)
    op = sw.sum().typed((np.dtype("i4"),)).as_object()
    ours = in_pieces(twin(at_hand).running, op, X, starts, ends, pieces)
    assert ours == slid("subtract_on_evict", op, X, starts, ends)


@pytest.mark.parametrize("name", ["sum", "max", "std"])
def test_compiled_to_the_bit(name):
    rng = np.random.default_rng(0)
    n = 3000
    op = getattr(sw, name)().typed((F8,))
    X = (rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n),)
    ends = np.sort(rng.integers(0, n, n)).astype(np.int32)
    starts = np.maximum.accumulate(np.maximum(ends - rng.choice([0, 1, 30, 200], n), 0)).astype(np.int32)
    ends[1200:2200] = np.arange(ends[1200], ends[1200] + 1000)  # for each row that comes one leaves
    starts[1200:2200] = ends[1200:2200] - 130
    ends, starts = np.maximum.accumulate(np.minimum(ends, n)), np.maximum.accumulate(starts)
    loop = at_hand.form("two_stacks_lite", op)
    ours, ok = in_pieces(loop, op, X, starts, ends, [500, 501, 2500])
    theirs, good = slid("two_stacks_lite", op, X, starts, ends)
    assert (ok == good).all() and 0 < ok.sum() < n
    for a, b in zip(ours, theirs, strict=True):
        assert (a.view("u8")[ok == 1] == b.view("u8")[ok == 1]).all()


def test_wide_and_interpreted_states_are_lifted_but_once():
    assert at_hand.form("two_stacks_lite", sw.histogram(edges=[0.0, 1.0]).typed((F8,))) is None
    assert at_hand.form("two_stacks_lite", sw.max().typed((object,))) is None
    assert at_hand.form("recalc", sw.max().typed((F8,))) is None
    assert at_hand.form("subtract_on_evict", sw.sum().typed((np.dtype("i8"),))) is at_hand.running
