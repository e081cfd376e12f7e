"""Every operation that an algorithm offers, in any order, against a plain list; growing, shrinking and moving in between."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.algorithms.cases import AFFINE, NON_COMMUTATIVE
from tests.algorithms.support import IN_ORDER, Running, result, results

import slidewise as sw
from slidewise.algebra.kernel import twin
from slidewise.algorithms import MODULES, algorithm, algorithms, drivers, require, serves, slick_deque
from slidewise.algorithms.protocol import arrays, capacity_for
from slidewise.errors import InputError, UnsupportedError

LETTERS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters")
TOTAL = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a + b, inverse=lambda total, old: total - old, identity=0, name="total"
)
GREATEST = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a if a >= b else b, identity=-(10**9), selective=True, name="greatest"
)
INTERPRETED = {op.name: op.with_(object_only=True).typed((object,)) for op in (LETTERS, TOTAL, GREATEST)}


class Model:
    """A window and the list it must equal."""

    def __init__(self, name: str, op, capacity: int = 1):
        self.window = Running(name, op, capacity)
        self.content: list[int] = []

    def fold(self, content):
        return self.window.op.operator.fold(content) if content else None

    def offers(self, what: str) -> bool:
        return what in self.window.alg.info.offers

    def step(self, what: str, a: int, b: int) -> None:
        """One operation; `a` and `b` choose its arguments. What is not offered, or finds nothing, does nothing."""
        window, content = self.window, self.content
        if what == "insert":
            window.insert(a)
            content.append(a)
        elif what == "fill":
            for k in range(a % 12 + 1):
                window.insert(b + k)
                content.append(b + k)
        elif what == "move":
            window.resize(capacity_for(max(1, len(content))) << (a % 3))
        elif not content:
            assert window.query() is None
        elif what == "evict":
            window.evict()
            del content[0]
        elif what == "bulk_evict" and self.offers(what):
            count = a % len(content) + 1
            window.bulk_evict(count)
            del content[:count]
        elif what == "evict_at" and self.offers(what):
            window.evict_at(a % len(content))
            del content[a % len(content)]
        elif what == "query":
            assert window.query() == self.fold(content)
        elif what == "query_range" and self.offers(what):
            i, j = sorted((a % len(content), b % len(content)))
            assert window.query_range(i, j) == self.fold(content[i : j + 1])
        elif what == "query_youngest" and self.offers(what):
            r = a % len(content) + 1
            assert window.query_youngest(r) == self.fold(content[-r:])
        elif what == "items" and self.offers(what):
            assert window.items() == [self.fold([x]) for x in content]


OPERATIONS = [
    *("fill", "insert", "evict", "evict", "query", "query", "move"),
    *("bulk_evict", "evict_at", "evict_at", "query_range", "query_youngest", "items"),
]
STEPS = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 99), st.integers(0, 99)), min_size=12, max_size=40
)
"""Windows of up to some dozens of events, so that rings wrap, trees have several levels and flips find something to do."""


@pytest.mark.parametrize("op", INTERPRETED.values(), ids=lambda op: op.name)
@pytest.mark.parametrize("name", IN_ORDER)
@settings(max_examples=60)
@given(steps=STEPS)
def test_any_order_of_operations(name, op, steps):
    if serves(name, op) is not None:
        return
    model = Model(name, op)
    for what, a, b in steps:
        model.step(what, a, b)
        model.window.check()
        assert len(model.window) == len(model.content)
    assert model.window.query() == model.fold(model.content)


@pytest.mark.parametrize("name", ["flatfat", "flatfit", "b_int", "amta"])
def test_compiled_operations(name):
    """What these offer beyond insert, evict and query, compiled, on an operator that does not commute."""
    rng = np.random.default_rng(11)
    model = Model(name, AFFINE.typed((np.dtype(np.int64),)), capacity=2)
    assert model.window.op.compiled
    for k in range(400):
        lean = ["insert", "insert", "evict"] if (k // 100) % 2 == 0 else ["insert", "evict", "evict"]
        what = rng.choice([*lean, *OPERATIONS[7:]]) if k % 7 else "query"
        model.step(str(what), int(rng.integers(1 << 20)), int(rng.integers(1 << 20)))
        if k % 23 == 0:
            model.window.check()


def test_evict_at_needs_no_order():
    """Holes anywhere, and a compaction when the ring is full of them: reactive-aggregator-2015 section 5.1.1."""
    window = Running("flatfat", INTERPRETED["letters"], capacity=8)
    for k in range(8):
        window.insert(k)
    for rank in (1, 1, 3):  # 1, 2 and 5 leave: holes between 0, 3, 4, 6, 7
        window.evict_at(rank)
    assert window.query() == (0, 3, 4, 6, 7)
    assert window.query_range(1, 3) == (3, 4, 6)
    window.insert(8)  # 5 of 8 live: compact, no doubling
    assert window.m + 1 == 8
    assert window.query() == (0, 3, 4, 6, 7, 8)
    assert window.H[1] - window.H[0] == 6, "no holes are left"
    window.insert(9)
    window.insert(10)
    window.evict_at(4)  # 7 of 8 live and the ring is full: double
    window.insert(11)
    assert window.m + 1 == 16
    assert window.query() == (0, 3, 4, 6, 8, 9, 10, 11)
    window.check()


# ---- many ranges over one deque --------------------------------------------------------------------------------------


def run_ranges(op, xs, starts, ends, mask=(), piece=7):
    """Piece by piece, as engines run it."""
    n, ranges = len(ends), len(starts)
    longest = max((e - s for column in starts for s, e in zip(column, ends)), default=1)
    H, W, V, m, scratch = arrays(algorithm("slick_deque"), op, capacity_for(max(1, longest)), more=ranges)
    OUT, OK = results(op, n * ranges)
    flat = [s for column in starts for s in column]
    run = twin(slick_deque).run_ranges
    if op.compiled:
        run, xs, flat, ends = slick_deque.run_ranges, np.array(xs), np.array(flat, np.int64), np.array(ends, np.int64)
        mask = np.array(mask, np.uint8)
    for lo in range(0, n, piece):
        run(op, ranges, H, W, V, m, scratch, (xs,), mask, flat, ends, OUT, OK, lo, min(lo + piece, n))
    return [[result(op, OUT, OK, q * n + i) for i in range(n)] for q in range(ranges)]


@st.composite
def frames(draw):
    """A common end that never goes back, and for each range a start that does not either."""
    n = draw(st.integers(1, 40))
    xs = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    ends = sorted(draw(st.lists(st.integers(0, n), min_size=1, max_size=n)))
    starts = []
    for _ in range(draw(st.integers(1, 4))):
        lags = draw(st.lists(st.integers(0, 12), min_size=len(ends), max_size=len(ends)))
        column = np.maximum.accumulate([max(0, e - lag) for e, lag in zip(ends, lags)]).tolist()
        starts.append([min(s, e) for s, e in zip(column, ends)])
    mask = draw(st.one_of(st.just([]), st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return xs, starts, ends, mask


@pytest.mark.parametrize("op", [TOTAL, GREATEST, sw.last(), sw.first(), sw.count("x").operator], ids=lambda op: op.name)
@given(case=frames())
def test_many_ranges_at_once(op, case):
    xs, starts, ends, mask = case
    typed = op.typed((np.dtype(np.int64),)).as_object()
    answers = run_ranges(typed, xs, starts, ends, mask)
    for column, found in zip(starts, answers):
        for s, e, answer in zip(column, ends, found):
            kept = [x for k, x in enumerate(xs[s:e], start=s) if not mask or mask[k]]
            assert answer == typed.operator.fold(kept)


@pytest.mark.parametrize("op", [TOTAL, GREATEST], ids=lambda op: op.name)
def test_many_ranges_compiled(op):
    rng = np.random.default_rng(2)
    xs = rng.integers(0, 1000, 5000)
    ends = list(range(1, 5001))
    starts = [[max(0, e - r) for e in ends] for r in (1, 3, 64, 700)]
    typed = op.typed((np.dtype(np.int64),))
    mask = rng.random(5000) < 0.9
    assert run_ranges(typed, xs, starts, ends, mask) == run_ranges(
        typed.as_object(), xs.tolist(), starts, ends, mask.tolist()
    )


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_subtract_on_evict_refuses_what_is_not_invertible():
    with pytest.raises(UnsupportedError, match=r"subtract_on_evict needs an exact inverse, and max .*two_stacks_lite"):
        require("subtract_on_evict", sw.max().typed((np.dtype(np.int64),)))


@pytest.mark.parametrize("name", ["subtract_on_evict", "slick_deque"])
def test_floats_are_refused_unless_somebody_insists(name):
    """A user's inverse on floats is a declaration; the built-in float sum declares none."""
    for typed in (TOTAL.typed((np.dtype(np.float64),)), TOTAL.typed((np.dtype(np.float64),)).as_object()):
        with pytest.raises(UnsupportedError, match="NaN or an infinity; two_stacks_lite"):
            require(name, typed)
        assert require(name, typed, insist=True).name == name
    assert serves(name, TOTAL.typed((np.dtype(np.int64),))) is None
    assert "inverse" in serves(name, sw.sum().typed((np.dtype(np.float64),)), insist=True)


@pytest.mark.filterwarnings("ignore::slidewise.algebra.typed.InterpretedWarning")
def test_slick_deque_takes_selective_or_invertible():
    for case in NON_COMMUTATIVE.values():
        with pytest.raises(UnsupportedError, match="selects one of its arguments or has an exact inverse"):
            require("slick_deque", case.typed)
    for op in (sw.max(), sw.argmax(), sw.first(), sw.count("x").operator):
        assert serves("slick_deque", op.typed((np.dtype(np.float64),) * op.inputs)) is None


@pytest.mark.parametrize("name", [*IN_ORDER, "btree", "fiba"])
def test_the_first_of_equals_is_kept_where_equal_is_not_the_same(name):
    op = sw.max().typed((object,))
    if serves(name, op) is not None:
        return
    w = sw.Window(sw.max(), name)
    events = list(enumerate(["1.0", "1.00", "0.5", "1.000"]))
    for t, v in events if name in IN_ORDER else events[1:] + events[:1]:
        w.insert(t, Decimal(v))
    assert str(w.query()) == "1.0"
    w.evict()
    assert str(w.query()) == "1.00"


CHOOSING = (sw.min(), sw.max(), sw.median(), sw.spread(), sw.struct(a=sw.min(), b=sw.sum()))


@pytest.mark.parametrize("op", CHOOSING, ids=lambda op: op.name)
def test_of_equals_time_decides_and_not_arrival(op):
    texts = ["0.5", "1.0", "1.00", "-0.0", "1.000", "0", "1.00000", "0.00", "1"]
    answers = set()
    for seed in range(20):
        w = sw.Window(op, "fiba", min_arity=2)
        for t in np.random.default_rng(seed).permutation(len(texts)):
            w.insert(int(t), Decimal(texts[t]))
        answers |= {str(w.query()), str(w.query(0, len(texts)))}
    assert len(answers) == 1


def test_who_refuses_names_one_that_serves():
    for name in IN_ORDER:
        for op in (TOTAL, GREATEST, LETTERS):
            for dtype in (np.dtype(np.int64), np.dtype(np.float64)):
                typed = op.with_(object_only=True).typed((dtype,))
                reason = serves(name, typed)
                if reason is not None:
                    named = [other for other in MODULES if other in reason and other != name]
                    assert named
                    assert all(serves(other, typed) is None for other in named)


def test_unknown_algorithm():
    with pytest.raises(InputError, match="no algorithm 'quick'; there are recalc"):
        algorithm("quick")


@pytest.mark.parametrize("window", [1, 2, 3, 7])
@pytest.mark.parametrize("name", IN_ORDER)
def test_the_last_rows_of_a_column(name, window):
    """The driver of benchmarks: evict if the window is full, insert, query; piece by piece."""
    xs = [5, 3, 8, 8, 1, 9, 2, 7, 7, 7, 0, 4, 6, 3, 3, 1]
    for op in INTERPRETED.values():
        if serves(name, op) is not None:
            continue
        H, W, V, m, scratch = arrays(algorithm(name), op, capacity_for(window))
        OUT, OK = results(op, len(xs))
        for lo, hi in ((0, 1), (1, 9), (9, 16)):
            twin(drivers).run_rows(algorithm(name), op, H, W, V, m, scratch, (xs,), window, OUT, OK, lo, hi)
        assert OUT == [op.operator.fold(xs[max(0, i + 1 - window) : i + 1]) for i in range(len(xs))]


@pytest.mark.parametrize("name", IN_ORDER)
def test_new_arrays_are_an_empty_window(name):
    """So nothing need be compiled to begin: `start` is for windows that begin again."""
    for op in INTERPRETED.values():
        H, W, V, m, _ = arrays(algorithm(name), op, 8)
        begun = H[:], W[:], V[:]
        twin(drivers).start(algorithm(name), op, *begun, m)
        assert begun == (H, W, V)


def test_a_capacity_is_a_power_of_two():
    with pytest.raises(InputError, match="power of two"):
        arrays(algorithm("recalc"), INTERPRETED["total"], 12)


# ---- what sw.algorithms() says ---------------------------------------------------------------------------------------


def test_algorithms_describe_themselves():
    words = {"items": "entry"}
    for info in algorithms():
        assert info.name in MODULES
        assert info.paper and info.summary and info.bounds and info.stores
        assert info.order in ("in", "any")
        if info.order == "in":
            module = algorithm(info.name).module
            assert all(hasattr(module, words.get(what, what)) for what in info.offers)
            for word in ("bulk_evict", "evict_at", "query_range", "query_youngest"):
                assert hasattr(module, word) == (word in info.offers) or (info.name == "amta" and word == "evict")
