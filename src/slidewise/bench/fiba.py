"""Trees, rounds of evict, insert, query: throughput and latency over the distance from the young end, single and in bulk.

    rounds   fiba-2019 Figures 11 and 12: n entries, every insert d places from the young end. btree pays for n, fiba for d
    bulk     bulk-fiba-2023 Figures 7 to 14: a round evicts the m oldest, inserts m and queries. `singles` does it one by
             one, `sorted` in bulk, `unsorted` in bulk with the events of a bulk shuffled: they are sorted on the way, with
             calls from Python for each bulk, which is what a small one mostly pays for

Operators run in the form that a live window has for such values: sums of int64 in one word (algebra/narrow.py).

Latency: the same rounds are run several times from the same start, and of each round the least time counts, as in `fifo`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import slidewise.operators as library
from slidewise.algebra.narrow import fitting
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.fiba_forest import Forest, default_arity
from slidewise.algorithms.fiba_nodes import BUMP, UNITS
from slidewise.bench import clock
from slidewise.bench.suite import Panel, Plot, Progress, Row, Suite, View, values, with_ratio
from slidewise.bench.timing import best_of
from slidewise.bench.tree_rounds import BATCH, BULK, SINGLY, WHOLE, Rounds

OPERATORS: dict[str, tuple[Callable, type]] = {
    "sum": (library.sum, np.int64),
    "geomean": (library.geomean, np.float64),
    "bloom": (lambda: library.bloom(bits=2**14), np.int64),
}
"""Cheap, medium, expensive."""

DISTANCES = (0, 1, 16, 1024, 2**20)
BULKS = (1, 16, 1024, 2**16)
BULK_DISTANCES = (0, 1024, "m")
SINGLES, SORTED, UNSORTED = "singles", "sorted", "unsorted"
ALGORITHMS = {"btree": False, "fiba": True}
"""Name -> whether it has fingers."""
QUANTILES = {"p50_ns": 0.5, "p99_9_ns": 0.999, "p99_999_ns": 0.99999, "max_ns": 1.0}


@dataclass(frozen=True)
class Sizes:
    window: dict[str, int]
    rounds: int
    """Rounds of a measurement for a cheap operator; an expensive one makes fewer."""
    least: int
    """But so many at least: there must be some beyond the last quantile."""
    repeats: int
    bulks: tuple[int, ...]

    def distances(self, operator: str) -> list[int]:
        """Those that fit; a window too small for the largest has one of a quarter of it instead."""
        n = self.window[operator]
        return sorted({min(d, n // 4) for d in DISTANCES})


FULL = Sizes({"sum": 2**22, "geomean": 2**22, "bloom": 2**16}, 2**21, 2**17, 3, BULKS)
QUICK = Sizes({"sum": 2**18, "geomean": 2**18, "bloom": 2**12}, 2**18, 2**14, 3, (1, 16, 1024, 2**13))
TINY = Sizes({"sum": 2**10, "geomean": 2**10, "bloom": 2**6}, 2**8, 2**6, 1, (1, 16))


def fitted(forest: Forest) -> Forest:
    """A copy with little room to spare: it is copied again for every run, and states may be large."""
    units = int(forest.A[BUMP]) + int(forest.A[BUMP]) // 8 + 256
    arity, width = forest.shape.min_arity, forest.op.state.width or 1
    if units >= forest.A[UNITS]:
        return forest.copy()
    other = object.__new__(Forest)
    other.__dict__.update(forest.__dict__)
    other.A, other.H = forest.A.copy(), forest.H.copy()
    other.A[UNITS] = units
    other.N = forest.N[: units * (2 * arity + 2)].copy()
    other.V = tuple(array[: units * (2 * arity + 1) * width].copy() for array in forest.V)
    return other


class Bench:
    """A tree in the state from which every measurement starts."""

    def __init__(self, op: TypedOperator, X: tuple, fingers: bool, n: int, d: int):
        self.rounds = Rounds(op, default_arity(op), fingers, X, n, d)
        self.start = self.rounds.forest = fitted(self.rounds.forest)

    def again(self) -> Rounds:
        """Back to the start."""
        self.rounds.forest, self.rounds.next = self.start.copy(), 0
        return self.rounds

    def least(self, count: int, repeats: int, run: Callable[[Rounds, np.ndarray], None]) -> np.ndarray:
        """Nanoseconds of each of so many rounds, the least of several runs. The first is left out: it holds the call."""
        ticks = np.full(count, np.iinfo(np.int64).max)
        for _ in range(repeats):
            run(self.again(), ticks)
        return np.maximum(0, ticks[1:] - clock.overhead_ticks()) * clock.nanoseconds_per_tick()


def latencies(ns: np.ndarray) -> Row:
    """The distribution; a quantile of which there is no round beyond is not told."""
    found = np.quantile(ns, list(QUANTILES.values())).tolist()
    return {
        key: x if q in (0.5, 1.0) or len(ns) * (1 - q) >= 1 else None for (key, q), x in zip(QUANTILES.items(), found)
    }


def measure_rounds(op: TypedOperator, X: tuple, fingers: bool, n: int, d: int, sizes: Sizes) -> Row:
    """Rounds of single operations."""
    bench = Bench(op, X, fingers, n, d)
    bench.rounds.run(64)
    probe = best_of(3, lambda: bench.rounds.run(256)) / 256
    rounds = int(max(sizes.least, min(sizes.rounds, 0.25 / probe)))
    bench.again().run(rounds)  # a window later, nodes are as the rounds leave them, not as the fill did
    best = best_of(sizes.repeats, lambda: bench.rounds.run(rounds))
    ns = bench.least(rounds, min(3, sizes.repeats), lambda tree, ticks: tree.run(rounds, ticks))
    return {"throughput": rounds / best, **latencies(ns)}


def measure_bulk(bench: Bench, m: int, how: str, sizes: Sizes) -> Row:
    """Rounds of m evicts, m inserts and a query; throughput in inserted items."""
    rounds = max(4, min(sizes.rounds // m, 2**15))
    tree = bench.again()
    if how == UNSORTED:
        rounds = min(rounds, 2**12)
        bulks = Shuffled(tree, m)
        bulks.run(2)
        return {
            "throughput": rounds * m / best_of(sizes.repeats, lambda: bulks.run(rounds)),
            **dict.fromkeys(QUANTILES),
        }
    bulk = BULK if how == SORTED else SINGLY
    tree.run_bulk(rounds, m, bulk, bulk)
    best = best_of(sizes.repeats, lambda: tree.run_bulk(rounds, m, bulk, bulk))
    ns = bench.least(rounds, sizes.repeats, lambda tree, ticks: tree.run_bulk(rounds, m, bulk, bulk, WHOLE, ticks))
    return {"throughput": rounds * m / best, **latencies(ns)}


class Shuffled:
    """Bulks in no order, through the same calls that a live window makes."""

    def __init__(self, tree: Rounds, m: int):
        self.tree, self.m = tree, m
        self.order = np.random.default_rng(m).permutation(m)
        self.X = tuple(np.resize(x, m) for x in tree.X)

    def run(self, rounds: int) -> None:
        forest: Forest = self.tree.forest
        for _ in range(rounds):
            forest.bulk_evict(0, forest.ends(0)[0] + self.m - 1)
            forest.bulk_insert(0, self.tree.next + self.order, self.X)
            forest.query(0, self.tree.OUT, self.tree.OK)
            self.tree.next += self.m


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(22)
    rows: list[Row] = []
    inputs = {}
    for name, (make, dtype) in OPERATORS.items():
        n = sizes.window[name]
        X = ((rng.random(BATCH) * 1e6 + 1).astype(dtype),)
        op = fitting(make().typed((np.dtype(dtype),)), X, n)
        inputs[name] = op, X
        for algorithm, fingers in ALGORITHMS.items():
            for d in sizes.distances(name):
                progress(f"{name}, {algorithm}, window {n}, distance {d}")
                found = measure_rounds(op, X, fingers, n, d, sizes)
                what = {
                    "part": "rounds",
                    "operator": name,
                    "algorithm": algorithm,
                    "n": n,
                    "d": d,
                    "m": 1,
                    "how": SINGLES,
                }
                rows.append(what | found)
    op, X = inputs["sum"]
    n = sizes.window["sum"]
    for m in sizes.bulks:
        for d in dict.fromkeys(min(far, n // 4) if isinstance(far, int) else m for far in BULK_DISTANCES):
            bench = Bench(op, X, True, n, d)
            for how in (SINGLES, SORTED, UNSORTED):
                progress(f"bulks of {m}, {how}, window {n}, distance {d}")
                what = {"part": "bulk", "operator": "sum", "algorithm": "fiba", "n": n, "d": d, "m": m, "how": how}
                rows.append(what | measure_bulk(bench, m, how, sizes))
    with_ratio(rows, "throughput", ("algorithm", "btree"), ("part", "operator", "n", "d", "m", "how"), "times_btree")
    with_ratio(rows, "throughput", ("how", SINGLES), ("part", "operator", "algorithm", "n", "d", "m"), "times_singles")
    return rows


def run(quick: bool, progress: Progress) -> list[Row]:
    return measure(QUICK if quick else FULL, progress)


def tiny(progress: Progress) -> list[Row]:
    return measure(TINY, progress)


# ---- what is shown ---------------------------------------------------------------------------------------------------


def views(rows: list[Row]) -> list[View]:
    found = []
    singles = [r for r in rows if r["part"] == "rounds"]
    for name in values(singles, "operator"):
        only = (("part", "rounds"), ("operator", name))
        found.append(
            View(f"{name}: million rounds a second, by d", "algorithm", "d", "throughput", only, "max", _millions)
        )
        for key, title in (
            ("p50_ns", "median"),
            ("p99_9_ns", "99.9 %"),
            ("p99_999_ns", "99.999 %"),
            ("max_ns", "worst"),
        ):
            found.append(View(f"{name}: {title} round, by d", "algorithm", "d", key, only, "", _time))
    bulks = [r for r in rows if r["part"] == "bulk"]
    for m in values(bulks, "m"):
        only = (("part", "bulk"), ("m", m))
        found.append(
            View(f"bulks of {m}: million items a second, by d", "how", "d", "throughput", only, "max", _millions)
        )
        found.append(View(f"bulks of {m}: times single operations, by d", "how", "d", "times_singles", only))
        found.append(View(f"bulks of {m}: worst round, by d", "how", "d", "max_ns", only, "", _time))
    return found


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def _time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def plots(rows: list[Row]) -> list[Plot]:
    def bars(title: str, part: str, key: str, value, line: str) -> Panel:
        only = (("part", part), (key, value))
        return Panel(title, "d", "throughput", line, only, "bars", "distance", "million a second", times=1e-6)

    rounds = values([r for r in rows if r["part"] == "rounds"], "operator")
    singles = [bars(name, "rounds", "operator", name, "algorithm") for name in rounds]
    bulks = [
        bars(f"bulks of {m}", "bulk", "m", m, "how") for m in values([r for r in rows if r["part"] == "bulk"], "m")
    ]
    return [
        Plot(singles, "rounds of evict, insert, query", "rounds"),
        Plot(bulks, "evict m, insert m, query", "bulk", 2),
    ]


def verdicts(rows: list[Row]) -> list[str]:
    """What bulks must gain, what fingers do, and which it was."""
    found = []
    bulk = {(r["m"], r["d"]): r["times_singles"] for r in rows if r["part"] == "bulk" and r["how"] == SORTED}
    for (m, d), times in bulk.items():
        if m == d == 1024:
            found.append(
                _judged(f"bulks of {m} at distance {d}: {times:.2f} times the items of single operations", times, 3)
            )
        elif m >= 1024 and d == 0:
            found.append(_judged(f"bulks of {m} in order: {times:.2f} times the items of single operations", times, 1))
    fingers = [r for r in rows if r["part"] == "rounds" and r["algorithm"] == "fiba"]
    for name in values(fingers, "operator"):
        at = {r["d"]: r["times_btree"] for r in fingers if r["operator"] == name}
        times = ", ".join(f"{x:.2f}" for x in at.values())
        found.append(f"{name}: fiba makes {times} times the rounds of btree at d = {', '.join(map(str, at))}")
    return found


def _judged(sentence: str, value: float, bound: float) -> str:
    return f"{sentence} ({'holds' if value >= bound else 'MISSED'}: at least {bound})"


SUITE = Suite(
    name="fiba",
    source="fiba-2019 Figures 11 and 12, bulk-fiba-2023 Figures 7 to 14",
    summary="btree and fiba: rounds by distance from the young end, and bulks against single operations",
    run=run,
    views=views,
    verdicts=verdicts,
    plots=plots,
    tiny=tiny,
)
