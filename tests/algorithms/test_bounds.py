"""The papers' bounds as counts of combines, on every call where they hold on every call. No clock."""

from __future__ import annotations

import math
import random

import pytest
from tests.algorithms.support import IN_ORDER, Counter, Running

import slidewise as sw
from slidewise.algorithms import algorithm
from slidewise.algorithms.protocol import arrays

LETTERS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters")
TOTAL = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a + b, inverse=lambda total, old: total - old, identity=0, name="total"
)
GREATEST = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a if a >= b else b, identity=-(10**9), selective=True, name="greatest"
)

GENERAL = [name for name in IN_ORDER if not algorithm(name).info.needs]


class Counted:
    """An algorithm at work on a counting operator: each call gives how many combines it made."""

    def __init__(self, name: str, op=TOTAL, capacity: int = 1, filled: int = 0):
        self.counter = Counter(op)
        self.window = Running(name, self.counter.typed, capacity)
        self.size = 0
        for k in range(filled):
            self.insert(k)

    def __getattr__(self, call):
        method = getattr(self.window, call)
        return lambda *arguments: self.counter.during(method, *arguments)

    def insert(self, x) -> int:
        self.size += 1
        return self.counter.during(self.window.insert, x)

    def evict(self) -> int:
        self.size -= 1
        return self.counter.during(self.window.evict)

    def bulk_evict(self, count: int) -> int:
        self.size -= count
        if "bulk_evict" in self.window.alg.info.offers:
            return self.counter.during(self.window.bulk_evict, count)
        return self.counter.during(self.window.evict, count)

    def query(self) -> int:
        return self.counter.during(self.window.query)

    def slide(self, x, query: bool = True) -> int:
        return self.evict() + self.insert(x) + (self.query() if query else 0)


def interleavings(seed: int, steps: int, most: int):
    """insert, evict and query in any order; windows that grow, shrink, empty out and stay."""
    rng = random.Random(seed)
    size, lean = 0, 0.5
    for step in range(steps):
        if step % 50 == 0:
            lean = rng.choice([0.2, 0.5, 0.5, 0.8])
        what = "query" if rng.random() < 0.3 else "insert" if rng.random() < lean else "evict"
        if (what == "evict" and size == 0) or (what == "insert" and size == most):
            continue
        size += {"insert": 1, "evict": -1, "query": 0}[what]
        yield what


# ---- DABA: Theorem 9 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
@pytest.mark.parametrize("seed", range(5))
def test_daba_ceilings_hold_on_every_call(name, seed):
    """At most 1 combine a query, 3 an insert, 2 an evict. Always."""
    counted = Counted(name, LETTERS)
    for k, what in enumerate(interleavings(seed, 3000, 60)):
        if what == "insert":
            assert counted.insert(k) <= 3
        elif what == "evict":
            assert counted.evict() <= 2
        else:
            assert counted.query() <= 1


def test_daba_reaches_its_ceilings():
    """The bounds are the paper's constants, not looser ones."""
    counted = Counted("daba", capacity=64)
    inserts = {counted.insert(k) for k in range(40)}
    evicts = {counted.evict() for _ in range(40)}
    assert max(inserts) == 3
    assert max(evicts) == 2


def test_daba_averages():
    """Theorem 9: on average 2 an insert and 1 an evict while the window slides."""
    counted = Counted("daba", capacity=64, filled=50)
    inserts = evicts = 0
    for k in range(1000):
        evicts += counted.evict()
        inserts += counted.insert(k)
    assert inserts <= 2 * 1000 + 50
    assert evicts <= 1000 + 50


@pytest.mark.parametrize("name", ["daba", "two_stacks"])
def test_a_query_is_cached(name):
    counted = Counted(name, capacity=16, filled=9)
    counted.evict()
    counted.insert(1)
    assert counted.query() == 1
    assert counted.query() == 0
    counted.evict()
    assert counted.query() == 1


# ---- Two-Stacks, ABA: Theorems 4 and 6 -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two_stacks", "two_stacks_lite", "aba"])
@pytest.mark.parametrize("seed", range(3))
def test_two_stacks_and_aba_are_amortised(name, seed):
    """1 combine for each query and insert; a flip is paid by the inserts before it."""
    counted = Counted(name, LETTERS)
    inserts = flips = 0
    for k, what in enumerate(interleavings(seed, 3000, 60)):
        if what == "insert":
            assert counted.insert(k) <= 1
            inserts += 1
        elif what == "evict":
            flips += counted.evict()
            assert flips <= inserts
        else:
            assert counted.query() <= 1


@pytest.mark.parametrize("name", ["two_stacks", "two_stacks_lite", "aba"])
def test_one_flip_costs_the_window(name):
    """What DABA has, these lack: the worst evict combines all but one."""
    counted = Counted(name, capacity=128, filled=100)
    assert counted.evict() == 99
    assert [counted.evict() for _ in range(50)] == [0] * 50


# ---- storage ---------------------------------------------------------------------------------------------------------


class Recording(list):
    """Slots that remember where they were written."""

    def __init__(self, items):
        super().__init__(items)
        self.written: set[int] = set()

    def __setitem__(self, k, value):
        self.written.add(k)
        super().__setitem__(k, value)


PARTIALS = {
    "recalc": lambda n: n,
    "subtract_on_evict": lambda n: n + 1,
    "two_stacks_lite": lambda n: n + 1,
    "daba_lite": lambda n: n + 2,
    "two_stacks": lambda n: 2 * n + 1,
    "aba": lambda n: 2 * n,
    "daba": lambda n: 2 * n + 2,
    "flatfit": lambda n: n,
    "flatfat": lambda n: 2 * n - 1,
    "b_int": lambda n: 2 * n - 1,
    "amta": lambda n: 2 * n,
}
"""How many partials a window of n keeps, its caches included: the Lite ones n + 1 and n + 2."""


def stored(window: Running) -> int:
    """How many partials the window lives on. It moves into blank arrays of the same size: what it does not take along it cannot
    read any more."""
    capacity = window.m + 1
    _, W, V, m, scratch = arrays(window.alg, window.op, capacity)
    V = Recording(V)
    window.steps.step_move(*window.args, W, V, m)
    window.W, window.V = W, V
    return len({slot for slot in V.written if slot < scratch})


@pytest.mark.parametrize("name", PARTIALS)
def test_stored_partials_in_full_arrays(name):
    """Every slot that is ever written to, in arrays of just the size of the window."""
    n = 32
    window = Running(name, Counter(TOTAL).typed, capacity=n)
    window.V = Recording(window.V)
    for k in range(5 * n):
        if len(window) == n:
            window.evict()
        window.insert(k)
        window.query()
    own = {slot for slot in window.V.written if slot < window.scratch}
    assert len(own) <= PARTIALS[name](n)


@pytest.mark.parametrize("name", ["two_stacks_lite", "daba_lite"])
@pytest.mark.parametrize("n", [*range(1, 24), 31, 33, 47, 63, 64, 65, 100])
def test_stored_partials_of_every_size(name, n):
    """n + 1 and n + 2, however large the window and wherever the algorithm stands: growing, sliding, shrinking."""
    window, content = Running(name, Counter(LETTERS).typed, capacity=2), []
    for k in range(4 * n + 4):
        if len(content) == n:
            window.evict()
            del content[0]
        window.insert(k)
        content.append(k)
        assert stored(window) == PARTIALS[name](len(content))
        assert window.query() == tuple(content)
    while content:
        window.evict()
        del content[0]
        assert stored(window) == PARTIALS[name](len(content))
        assert window.query() == (tuple(content) or None)


def test_a_selective_deque_keeps_only_candidates():
    window = Running("slick_deque", Counter(GREATEST).typed, capacity=64)
    kept = []
    for k in range(640):
        if len(window) == 64:
            window.evict()
        window.insert(k % 17)
        kept.append(window.H[3] - window.H[2])
    assert max(kept) <= 17


# ---- FlatFAT: Theorem 4.2 --------------------------------------------------------------------------------------------


def update_bound(m: int, n: int) -> int:
    return m * (1 + math.ceil(math.log2(n / m)))


@pytest.mark.parametrize("n", [1, 2, 8, 64, 256])
def test_flatfat_update_of_m_leaves(n):
    """Inserts and evicts write leaves and combine nothing; the query after m of them updates the tree within the bound. What the
    query itself takes, where the ring is inverted, is what it takes again when nothing was changed."""
    rng = random.Random(n)
    counted, content = Counted("flatfat", LETTERS, capacity=n, filled=n), list(range(n))
    counted.query()
    counted.slide(n, query=False)  # into the same leaf, all others living: a path to the root, no more and no less
    assert counted.query() - counted.query() == math.log2(n)
    content = [*content[1:], n]
    for m in sorted({1, 2, 3, 5, n // 4, n // 2, n} & set(range(1, n + 1))) * 8:
        changed: set[int] = set()
        while len(changed) < m:
            if counted.size == n or (counted.size > 1 and rng.random() < 0.5):
                changed.add(counted.window.H[0] % n)
                assert counted.evict() == 0
                del content[0]
            else:
                changed.add(counted.window.H[1] % n)
                assert counted.insert(len(changed)) == 0
                content.append(len(changed))
        first, again = counted.query(), counted.query()
        F, E = counted.window.H[:2]
        inverted = bool(content) and F % n > (E - 1) % n
        assert again <= (2 * math.log2(n) if inverted else 0)
        assert first - again <= update_bound(m, n)
        assert counted.window.answer() == (tuple(content) or None)
        counted.window.check()


def test_flatfat_new_prefix_and_suffix():
    n = 64
    counted = Counted("flatfat", LETTERS, capacity=n, filled=n)
    assert counted.resize(n) <= n - 1, "new makes n - 1 combines"
    for i in range(n):
        assert counted.query_range(0, i) <= math.log2(n)
        assert counted.query_range(i, n - 1) <= math.log2(n)


def test_flatfat_resizes_amortised():
    """Doubling at 3/4, halving at 1/4, compacting holes: a constant number of combines for each event."""
    from slidewise.algorithms.flatfat import resized

    rng = random.Random(5)
    counted = Counted("flatfat", LETTERS)
    window, events, spent = counted.window, 0, 0
    content: list[int] = []
    for k in range(4000):
        events += 1
        before, live, full = window.m + 1, len(content), window.H[1] - window.H[0] == window.m + 1
        if rng.random() < (0.65 if (k // 500) % 2 == 0 else 0.35) or not content:
            spent += counted.counter.during(window.insert, k)
            content.append(k)
            assert window.m + 1 == (2 * before if full and 4 * live > 3 * before else before)
        else:
            j = rng.randrange(len(content))
            spent += counted.counter.during(window.evict_at, j)
            del content[j]
            capacity = resized(before, len(content))
            assert capacity == (max(1, before // 2) if 4 * len(content) < before else before)
            if capacity != before:
                spent += counted.resize(capacity)
    window.query()
    assert window.answer() == (tuple(content) if content else None)
    assert spent <= 12 * events, "evict_at with holes looks up its event: log2 n; everything else is constant"


# ---- SlickDeque: Table 1 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_slick_deque_invertible_takes_exactly_2_a_slide(size):
    counted = Counted("slick_deque", TOTAL, capacity=64, filled=size)
    assert {counted.slide(k) for k in range(200)} == {2}


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize(
    "stream", [range(500), range(500, 0, -1), [3] * 500, [k % 9 for k in range(500)], [-(k % 65) for k in range(500)],
               [random.Random(k).random() for k in range(500)]],
    ids=["rising", "falling", "constant", "saw", "long saw", "random"],
)  # fmt: skip
def test_slick_deque_selective_takes_below_2_amortised(size, stream):
    counted = Counted("slick_deque", GREATEST, capacity=64)
    spent = 0
    for slides, x in enumerate(stream, start=1):
        if counted.size == size:
            assert counted.evict() == 0
        spent += counted.insert(x)
        assert counted.query() == 0
        assert spent < 2 * slides


# ---- AMTA ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [16, 64, 256])
def test_amta_bulk_evict_is_logarithmic(n):
    """Any number at once, at any moment: at most 2 log2 n combines, and the answer is one more."""
    rng = random.Random(n)
    counted = Counted("amta", LETTERS, capacity=n)
    for k in range(400):
        while counted.size < n and rng.random() < 0.97:
            assert counted.insert(k) <= 1 + math.log2(n)
        if counted.size:
            assert counted.bulk_evict(rng.randint(1, counted.size)) <= 2 * math.log2(n)
        assert counted.query() <= 1


def test_amta_is_amortised_constant():
    counted = Counted("amta", LETTERS)
    inserts = evicts = spent_in = spent_out = 0
    for k, what in enumerate(interleavings(3, 6000, 200)):
        if what == "insert":
            spent_in += counted.insert(k)
            inserts += 1
        elif what == "evict":
            spent_out += counted.evict()
            evicts += 1
        else:
            assert counted.query() <= 1
    assert spent_in <= 2 * inserts
    assert spent_out <= 2 * inserts


# ---- FlatFIT, B-Int --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 16, 50])
def test_flatfit_takes_3_a_slide_over_its_period(n):
    """slickdeque-2018 section 4.1: a window reset of n - 1, one slide of 1 on either side, the others 2: 3 (n - 1)."""
    counted = Counted("flatfit", LETTERS, capacity=64, filled=n)
    counted.query()
    period = [1, *[2] * (n - 2), 1, n - 1]
    assert [counted.slide(k) for k in range(4 * (n + 1))] == 4 * period
    assert sum(period) == 3 * (n - 1)


def test_flatfit_answers_every_suffix_with_1_combine_each():
    n = 64
    counted = Counted("flatfit", LETTERS, capacity=n, filled=n)
    for r in range(n, 0, -1):
        counted.query_youngest(r)
    for k in range(100):
        counted.evict()
        counted.insert(k)
        assert sum(counted.query_youngest(r) for r in range(n, 0, -1)) == n - 1


def test_b_int_bounds():
    """Insert amortised below 1 and at most log2 n; evict nothing; any r neighbours below 2 log2 r."""
    n = 256
    counted = Counted("b_int", LETTERS, capacity=n, filled=n)
    inserts = []
    for k in range(1000):
        assert counted.evict() == 0
        inserts.append(counted.insert(k))
    assert max(inserts) <= math.log2(n)
    assert sum(inserts) < len(inserts)
    rng = random.Random(1)
    for _ in range(500):
        i = rng.randrange(n)
        j = rng.randrange(i, n)
        r = j - i + 1
        assert counted.query_range(i, j) <= max(0, 2 * math.ceil(math.log2(r)) - 1)


# ---- each has one that the others lack -------------------------------------------------------------------------------

N = 256


def worst_slide(name: str) -> float:
    counted = Counted(name, TOTAL, capacity=N, filled=N)
    return max(counted.slide(k) for k in range(3 * N))


def average_slide(name: str) -> float:
    counted = Counted(name, TOTAL, capacity=N, filled=N)
    return sum(counted.slide(k) for k in range(3 * N)) / (3 * N)


def bulk_evict_and_query(name: str) -> float:
    worst = 0
    for warm in (0, 1, 77, 200):
        for count in (1, N // 4, N // 2, N - 3):
            counted = Counted(name, TOTAL, capacity=N, filled=N)
            for k in range(warm):
                counted.slide(k)
            worst = max(worst, counted.bulk_evict(count) + counted.query())
    return worst


def rebuilt(name: str, values) -> int:
    """Combines to answer from a window of its own: for whoever has no operation for the question."""
    counted = Counted(name, TOTAL, capacity=N)
    return sum(counted.insert(x) for x in values) + counted.query()


def every_suffix(name: str) -> float:
    """Combines for all n suffixes in a slide, on average. Whoever is not asked for suffixes evicts from a copy."""
    counted = Counted(name, TOTAL, capacity=N, filled=N)
    asked = "query_youngest" in counted.window.alg.info.offers

    def suffixes() -> int:
        if asked:
            return sum(counted.query_youngest(r) for r in range(N, 0, -1))
        window = counted.window
        kept = window.H[:], window.W[:], window.V[:], counted.size
        spent = counted.query() + sum(counted.evict() + counted.query() for _ in range(N - 1))
        window.H, window.W, window.V, counted.size = kept
        return spent

    suffixes()
    slides = 10
    return sum(counted.slide(k, query=False) + suffixes() for k in range(slides)) / slides


def slide_and_small_range(name: str) -> float:
    """Combines to slide and to answer for 16 neighbours in the middle of the window, on average."""
    counted = Counted(name, TOTAL, capacity=N, filled=N)
    if "query_range" not in counted.window.alg.info.offers:
        return sum(counted.slide(k, query=False) + rebuilt(name, range(16)) for k in range(N)) / N
    return sum(counted.slide(k, query=False) + counted.query_range(N // 2, N // 2 + 15) for k in range(N)) / N


def evict_in_the_middle(name: str) -> float:
    """The most combines to take out an event of the middle and to answer."""
    counted = Counted(name, TOTAL, capacity=N, filled=N)
    counted.query()
    if "evict_at" not in counted.window.alg.info.offers:
        return rebuilt(name, range(N - 1))
    return max(counted.evict_at(len(counted.window) // 2) + counted.query() for _ in range(N // 4))


def within(measure, bound: float) -> set[str]:
    return {name for name in GENERAL if measure(name) <= bound}


def test_each_has_a_bound_that_the_others_lack():
    """Of the algorithms that need associativity only, by count: none is another one renamed."""
    log = math.log2(N)
    assert within(worst_slide, 3 + 2 + 1) == {"daba", "daba_lite"}
    constant = within(average_slide, 6)
    assert constant == {"two_stacks", "two_stacks_lite", "aba", "daba", "daba_lite", "flatfit", "amta"}
    assert constant & within(bulk_evict_and_query, 2 * log + 1) == {"amta"}
    assert within(every_suffix, N) == {"flatfit"}
    assert within(slide_and_small_range, 1 + 2 * math.log2(16)) == {"b_int"}
    assert within(evict_in_the_middle, 1 + log) == {"flatfat"}
