"""The same source compiled: every operation, for scalar, struct and wide states, against the interpreted tree."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.algorithms.cases import NON_COMMUTATIVE
from tests.algorithms.support import result, results

import slidewise as sw
from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import get, lift, open_state, ptr, put, row, shift, twin
from slidewise.algorithms import fiba_drivers
from slidewise.algorithms.fiba import evict, evict_at, insert
from slidewise.algorithms.fiba_bulk_evict import bulk_evict
from slidewise.algorithms.fiba_bulk_insert import bulk_insert
from slidewise.algorithms.fiba_drivers import answer, answer_range
from slidewise.algorithms.fiba_forest import Forest
from slidewise.algorithms.fiba_nodes import SIZE, TIMES, TREE_WORDS
from slidewise.algorithms.fiba_nodes import row as node_row
from slidewise.algorithms.fiba_ranges import rank, select

INSERT, EVICT, EVICT_AT, BULK_EVICT, BULK_INSERT, RANGE = range(6)


@entry
def play(k, op, A_, H_, N_, V_, tree, SCRIPT, X, W_, TS, G, OUT, OK, SEEN, lo, hi):
    """A script of operations, (what, time, other) a row; after each: the whole, and what was counted. One compile for all."""
    A, H, N, V, W = ptr(A_), shift(ptr(H_), tree * TREE_WORDS), ptr(N_), open_state(op, V_), open_state(op, W_)
    for i in range(lo, hi):
        what, t, other = SCRIPT[i][0], SCRIPT[i][1], SCRIPT[i][2]
        seen = 0
        if what == INSERT:
            insert(k, op, A, H, N, V, t, lift(op, get(op, V, 0), row(X, i)))
        elif what == EVICT:
            if H[SIZE] > 0:
                evict(k, op, A, H, N, V)
        elif what == EVICT_AT:
            seen = 1 if H[SIZE] > 0 and evict_at(k, op, A, H, N, V, t) else 0
        elif what == BULK_EVICT:
            seen = bulk_evict(k, op, A, H, N, V, t)
        elif what == BULK_INSERT:
            for j in range(other):
                TS[j] = t + 3 * j
                put(op, W, j, lift(op, get(op, V, 0), row(X, i + j)))
            seen = bulk_insert(k, op, A, H, N, V, ptr(TS), W, 0, other, ptr(G), 64)
        if what == RANGE:
            answer_range(k, op, H, N, V, t, other, OUT, OK, i)
        else:
            answer(k, op, H, N, V, OUT, OK, i)
        ranked = rank(k, A, H, N, t, True)
        if ranked > 0:
            u, at = select(k, H, N, ranked - 1)
            seen += N[node_row(k, u) + TIMES + at]
        SEEN[i] = 1000 * seen + ranked


def make_script(steps: int) -> list[tuple[int, int, int]]:
    rnd, script = random.Random(steps), []
    for _ in range(steps):
        what = rnd.choices(range(6), weights=[8, 3, 3, 1, 3, 3])[0]
        t = rnd.randrange(300)
        if what == BULK_EVICT:
            t = rnd.randrange(40)
        script.append((what, t, rnd.randrange(300) if what == RANGE else rnd.choice([1, 3, 9, 40])))
    return script


def perform(op, script, X) -> tuple[list, list, Forest]:
    forest = Forest(op, 1, 2)
    forest.grow(4000)
    n = len(script)
    OUT, OK = results(op, n)
    words = (lambda count: np.zeros(count, np.int64)) if op.compiled else (lambda count: [0] * count)
    table = np.array(script) if op.compiled else script
    run = play if op.compiled else play.py_func
    if not op.compiled:
        space = vars(twin(fiba_drivers)) | {
            name: value for name, value in globals().items() if name not in vars(fiba_drivers)
        }
        for name in (
            "bulk_insert",
            "insert",
            "evict",
            "evict_at",
            "bulk_evict",
            "rank",
            "select",
            "answer",
            "answer_range",
        ):
            space[name] = getattr(twin(fiba_drivers), name)
        space["node_row"] = twin(fiba_drivers).node_row
        run = type(run)(run.__code__, space)
    SEEN = words(n)
    run(*forest.arrays, 0, table, X, forest._states(64), words(64), words(6 * 64), OUT, OK, SEEN, 0, n)
    forest.check()
    return [result(op, OUT, OK, i) for i in range(n)], list(SEEN), forest


@pytest.mark.parametrize("kind", ["scalar", "struct", "wide"])
def test_compiled_and_interpreted_give_the_same(kind):
    case = NON_COMMUTATIVE[kind]
    script = make_script(700)
    values = np.random.default_rng(7).integers(0, 1000, len(script) + 64)
    op = case.operator.typed((np.dtype("i8"),))
    assert op.compiled and op.kind == kind
    compiled, seen, forest = perform(op, script, (values,))
    plain, seen_plain, twin_forest = perform(op.as_object(), script, (values.tolist(),))
    assert seen == seen_plain
    assert all(np.array_equal(a, b) for a, b in zip(compiled, plain))
    assert forest.size() == twin_forest.size() > 20 and forest.height() == twin_forest.height() >= 2
    assert forest.export(0)[0].tolist() == twin_forest.export(0)[0]


TOTAL = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, commutative=True, name="total")


@pytest.fixture(scope="module")
def stream():
    """Times up to 60 places out of order, each once, and values."""
    rng = np.random.default_rng(11)
    n = 3000
    times = np.argsort(np.argsort(np.arange(n) + rng.uniform(0, 60, n)))
    return 2 * times, rng.integers(-50, 50, n), (rng.random(n) < 0.9).astype(np.uint8)


def both(op):
    return [op.typed((np.dtype("i8"),)), op.typed((np.dtype("i8"),)).as_object()]


def tell(op, *arrays):
    """Arrays as this operator's drivers take them."""
    return arrays if op.compiled else [array.tolist() for array in arrays]


@pytest.mark.parametrize("op", both(TOTAL), ids=["compiled", "interpreted"])
def test_rows_windows_over_a_stream_out_of_order(op, stream):
    times, values, mask = tell(op, *stream)
    n, window = len(times), 100
    forest, (OUT, OK) = Forest(op, 1, 8), results(op, n)
    assert forest.run("run_rows", 0, times, (values,), mask, window, OUT, OK) is None
    live: dict = {}
    for i in range(n):
        if mask[i]:
            live[times[i]] = values[i]
            if len(live) > window:
                del live[min(live)]
        assert result(op, OUT, OK, i) == (sum(live.values()) if live else None)
    forest.check()


@pytest.mark.parametrize("op", both(TOTAL), ids=["compiled", "interpreted"])
def test_time_windows_over_a_stream_out_of_order(op, stream):
    """For each event: insert, evict what is at or before the cut, query. Some cuts take hundreds of entries at once."""
    cuts = np.maximum.accumulate(stream[0]) - np.where(np.arange(len(stream[0])) % 1000 < 900, 900, 150)
    cuts = np.maximum.accumulate(cuts)
    times, values, mask, cuts = tell(op, *stream, cuts)
    n = len(times)
    forest, (OUT, OK) = Forest(op, 1, 8), results(op, n)
    forest.run("run_cuts", 0, times, (values,), mask, cuts, OUT, OK)
    live: dict = {}
    for i in range(n):
        if mask[i]:
            live[times[i]] = values[i]
        live = {t: v for t, v in live.items() if t > cuts[i]}
        assert result(op, OUT, OK, i) == (sum(live.values()) if live else None)
    forest.check()


def test_a_forest_serves_many_trees():
    op = TOTAL.typed((np.dtype("i8"),))
    forest, rng = Forest(op, 60, 8), np.random.default_rng(3)
    assert forest.A[0] == 3, "empty trees own no node"
    keys, times = rng.integers(0, 60, 4000), rng.permutation(4000)
    for key, t in zip(keys.tolist(), times.tolist()):
        forest.insert(key, t, (t,))
    for key in range(0, 60, 7):
        forest.bulk_evict(key, 2000)
    forest.compact()
    forest.check()
    OUT, OK = results(op, 1)
    for key in range(60):
        forest.query(key, OUT, OK)
        kept = times[(keys == key) & ((times > 2000) | (key % 7 != 0))]
        assert result(op, OUT, OK, 0) == kept.sum() and forest.size(key) == len(kept)


def test_floats_taken_in_as_they_arrive_leave_no_trace_when_they_go():
    """A commutative operator takes inserts in where they arrive; infinities and NaN among them go without a trace."""
    op = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0.0, commutative=True, name="floats").typed(
        (object,)
    )
    forest, rnd, live = Forest(op, 1, 2), random.Random(9), {}
    OUT, OK = [None], [0]
    for step in range(600):
        t = rnd.randrange(4000)
        x = rnd.choice([float("inf"), float("-inf"), float("nan")]) if step % 10 == 0 else rnd.uniform(-1e6, 1e6)
        if t not in live:
            live[t] = x
            forest.insert(0, t, (x,))
        forest.query(0, OUT, OK)
        assert (OUT[0] == OUT[0]) <= all(v == v for v in live.values())
    forest.check()
    for t in [t for t, x in live.items() if not abs(x) < float("inf")]:
        assert forest.evict_at(0, t)
        del live[t]
    while live:
        forest.query(0, OUT, OK)
        assert abs(OUT[0] - sum(live.values())) <= 1e-12 * sum(map(abs, live.values()))
        del live[min(live)]
        forest.evict(0)
