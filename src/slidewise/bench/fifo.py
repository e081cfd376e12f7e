"""In-order algorithms, rounds of evict, insert, query: throughput, and the latency of single rounds.

daba-2015 Figure 18 (throughput over window sizes for a cheap, a medium and an expensive operator; latency) and Table 2. Each round
evicts the oldest event, inserts one and queries. An algorithm drops out where a round takes over a millisecond. Operators run in
the form that loops over such columns give them: sums of int64 in one word (algebra/narrow.py). The paper's algorithms, with more
windows and a third function, are in `daba-2015-fig-18-top`; here is every in-order algorithm, with its latency.

Latency: the same rounds are run several times from the same start, and of each round the least time counts. What the
algorithm does in a round is the same every time; what the rest of the machine does to it is not.
"""

import os

import numpy as np

import slidewise.operators as library
from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import get, lift, open_arrays, open_state, ptr, row
from slidewise.algebra.narrow import fitting
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import MODULES, algorithm, drivers, serves
from slidewise.algorithms.protocol import Algorithm, arrays, capacity_for, evict_, insert_, load_, save_, size_
from slidewise.bench import clock
from slidewise.bench.suite import Progress, Row, Suite, View, with_ratio
from slidewise.bench.timing import best_of, per_round

OPERATORS = {
    "sum": (library.sum, np.int64),
    "geomean": (library.geomean, np.float64),
    "bloom": (lambda: library.bloom(bits=2**14), np.int64),
}
"""Cheap, medium, expensive; the Bloom filter is as large as the paper's."""

SIZES: dict[str, tuple[int, ...]] = {"sum": (0, 4, 8, 12, 16, 20), "bloom": (0, 4, 8, 12, 16)}
QUICK_SIZES: dict[str, tuple[int, ...]] = {"sum": (4, 10, 16), "bloom": (4, 10)}
"""Window sizes as powers of two. Every kind of operator is compiled for every algorithm: a short run has two."""

BATCH = 2**14
"""Rounds for one call of a driver: its inputs and results stay in the cache, as they would in a stream."""

DROP_OUT_SECONDS = 1e-3


@entry
def insert_all(alg, op, H, W_, V_, m, scratch, X_, rounds):
    """Insert without a query: fill a window."""
    W, V, X = ptr(W_), open_state(op, V_), open_arrays(X_)
    st = load_(alg, op, H, W, V, m)
    for i in range(rounds):
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
    save_(alg, op, H, W, V, m, st)


@entry
def timed_rounds(alg, op, H, W_, V_, m, scratch, X_, OUT_, OK_, TICKS, first, rounds):
    """Rounds of evict, insert, query; of each, the least time so far in TICKS[first ...]."""
    W, V, X, OUT, OK = ptr(W_), open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    st = load_(alg, op, H, W, V, m)
    began = clock.ticks()
    for i in range(rounds):
        if size_(alg, st) > 0:
            st = evict_(alg, op, W, V, m, st)
        st = insert_(alg, op, W, V, m, st, lift(op, get(op, V, scratch), row(X, i)))
        st = drivers.answer(alg, op, W, V, m, st, scratch, OUT, OK, i)
        ended = clock.ticks()
        TICKS[first + i] = min(TICKS[first + i], ended - began)
        began = ended
    save_(alg, op, H, W, V, m, st)


class Bench:
    """One algorithm, operator and window size, with its arrays."""

    def __init__(self, alg: Algorithm, op: TypedOperator, window: int, X: tuple):
        self.alg, self.op, self.window, self.X = alg, op, window, X
        self.arrays = arrays(alg, op, capacity_for(window))
        self.OUT, self.OK = op.result.alloc(BATCH), np.zeros(BATCH, np.uint8)

    def fill(self) -> None:
        """A full window, as if nothing had been before."""
        H, W, V, m, scratch = self.arrays
        drivers.start(self.alg, self.op, H, W, V, m)
        for done in range(0, self.window, BATCH):
            insert_all(self.alg, self.op, H, W, V, m, scratch, self.X, min(BATCH, self.window - done))

    def run(self, rounds: int) -> None:
        H, W, V, m, scratch = self.arrays
        for done in range(0, rounds, BATCH):
            count = min(BATCH, rounds - done)
            drivers.run_rows(self.alg, self.op, H, W, V, m, scratch, self.X, self.window, self.OUT, self.OK, 0, count)

    def latencies(self, rounds: int, repeats: int) -> np.ndarray:
        """Nanoseconds of each round, the least of several runs."""
        H, W, V, m, scratch = self.arrays
        least = np.full(rounds, np.iinfo(np.int64).max)
        for _ in range(repeats):
            self.fill()
            for done in range(0, rounds, BATCH):
                count = min(BATCH, rounds - done)
                timed_rounds(self.alg, self.op, H, W, V, m, scratch, self.X, self.OUT, self.OK, least, done, count)
        return np.maximum(0, least - clock.overhead_ticks()) * clock.nanoseconds_per_tick()


def fits(alg: Algorithm, op: TypedOperator, window: int) -> bool:
    """Whether its arrays take no more than a quarter of the memory."""
    slots = alg.module.RINGS * capacity_for(window)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**33
    return slots * op.state.row_bytes + 8 * alg.module.WORDS * capacity_for(window) <= memory / 4


NOTHING: Row = {"throughput": None, "p50_ns": None, "p99_9_ns": None, "max_ns": None}


def measure(alg: Algorithm, op: TypedOperator, window: int, X: tuple, quick: bool) -> Row:
    """Rounds a second, and nanoseconds of single rounds. Nothing where a round takes too long."""
    bench = Bench(alg, op, window, X)
    bench.fill()
    bench.run(1)
    if best_of(3, lambda: bench.run(8)) / 8 > DROP_OUT_SECONDS:
        return NOTHING
    bench.fill()
    cycle = 1 if alg.name == "recalc" else window  # from scratch, all rounds are alike
    spent = per_round(0.02 if quick else 0.05, bench.run, cycle=cycle)
    timed = max(2 * cycle + 1, int(min(2**15 if quick else 2**17, 0.5 / spent)))
    ns = bench.latencies(max(2, timed), 3)[1:]  # the first round also holds the call
    p50, p99_9 = np.quantile(ns, [0.5, 0.999]).tolist()
    return {"throughput": 1 / spent, "p50_ns": p50, "p99_9_ns": p99_9, "max_ns": float(ns.max())}


def run(quick: bool, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(18)
    rows: list[Row] = []
    for name, powers in (QUICK_SIZES if quick else SIZES).items():
        make, dtype = OPERATORS[name]
        X = ((rng.random(BATCH) * 1e6 + 1).astype(dtype),)
        op = fitting(make().typed((np.dtype(dtype),)), X, 2 ** max(powers))
        for module in MODULES:
            alg = algorithm(module)
            if alg.info.order != "in" or serves(module, op) is not None:
                continue
            dropped = False
            for power in powers:
                window = 2**power
                progress(f"{name}, {module}, window {window}")
                dropped = dropped or not fits(alg, op, window)
                found = NOTHING if dropped else measure(alg, op, window, X, quick)
                dropped = found["throughput"] is None
                rows.append({"operator": name, "algorithm": module, "window": window, **found})
    with_ratio(rows, "throughput", ("algorithm", "two_stacks_lite"), ("operator", "window"), "times_two_stacks_lite")
    with_ratio(rows, "max_ns", ("algorithm", "two_stacks_lite"), ("operator", "window"), "worst_times_two_stacks_lite")
    return rows


def views(rows: list[Row]) -> list[View]:
    def view(name: str, what: str, value: str, best: str, form) -> View:
        return View(f"{name}: {what}", "algorithm", "window", value, (("operator", name),), best, form)

    found = []
    for name in _operators(rows):
        found.append(view(name, "million rounds a second", "throughput", "max", _millions))
        found.append(view(name, "median round", "p50_ns", "", _time))
        found.append(view(name, "99.9 % of the rounds within", "p99_9_ns", "", _time))
        found.append(view(name, "worst round", "max_ns", "min", _time))
    return found


def _operators(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(r["operator"] for r in rows))


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def _time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def verdicts(rows: list[Row]) -> list[str]:
    """daba-2015 section 7.3: Two-Stacks and ABA have rounds as long as the window, DABA has none."""
    found = []
    measured = {(r["operator"], r["algorithm"], r["window"]): r for r in rows if r["throughput"] is not None}
    for name in _operators(rows):
        for stacks, daba in (("two_stacks", "daba"), ("two_stacks_lite", "daba_lite")):
            windows = [w for o, a, w in measured if (o, a) == (name, stacks) and (name, daba, w) in measured]
            if not windows:
                continue
            window = max(windows)
            worst = measured[name, stacks, window]["max_ns"], measured[name, daba, window]["max_ns"]
            found.append(
                f"{name}, window {window}: the worst round of {daba} takes {_time(worst[1])}, that of {stacks} "
                f"{_time(worst[0])}, {worst[0] / worst[1]:.0f} times as long"
            )
    return found


SUITE = Suite(
    name="fifo",
    source="daba-2015 Figure 18 and Table 2",
    summary="throughput and latency of every in-order algorithm over window sizes",
    run=run,
    views=views,
    verdicts=verdicts,
)
