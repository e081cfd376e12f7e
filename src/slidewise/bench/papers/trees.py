"""What the experiments on trees share: which trees, which operators, rates, and the spread of latencies as a violin.

bfinger is FiBA, bclassic the B-tree without fingers (fiba-2019's names), the number is the minimum arity. b_fiba works in bulk,
nb_fiba one by one on the same tree (bulk-fiba-2023's names).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from slidewise.algebra.typed import TypedOperator
from slidewise.bench import clock
from slidewise.bench.fifo import OPERATORS
from slidewise.bench.suite import Panel, Row
from slidewise.bench.tally import combines, tallied
from slidewise.bench.timing import per_round
from slidewise.bench.tree_rounds import BATCH, Rounds

BLOOM_LIMIT = 2**17
"""Largest window of Bloom filters: 2 KB each, and a window as long as the paper's would take 10 GB and more."""


@dataclass(frozen=True)
class Tree:
    """A kind of tree."""

    min_arity: int
    fingers: bool = True

    @property
    def name(self) -> str:
        return f"b{'finger' if self.fingers else 'classic'}{self.min_arity}"


FINGERS = tuple(Tree(arity) for arity in (2, 4, 8))
CLASSIC = tuple(Tree(arity, False) for arity in (2, 4, 8))
TWO = Tree(4), Tree(4, False)
FOUR = Tree(4), Tree(8), Tree(4, False), Tree(8, False)
"""Of a quick run: each kind of tree is compiled for each operator."""


@cache
def operator(name: str) -> TypedOperator:
    make, dtype = OPERATORS[name]
    return make().typed((np.dtype(dtype),))


@cache
def column(name: str) -> tuple:
    """Values for one batch of rounds."""
    return ((np.random.default_rng(11).random(BATCH) * 1e6 + 1).astype(OPERATORS[name][1]),)


def window_of(name: str, n: int) -> int:
    return min(n, BLOOM_LIMIT) if name == "bloom" else n


def filled(name: str, tree: Tree, n: int, d: int, trees: int = 1) -> Rounds:
    return Rounds(operator(name), tree.min_arity, tree.fingers, column(name), n, d, trees)


@cache
def counter() -> TypedOperator:
    return tallied()


def counted(tree: Tree, n: int, d: int, trees: int = 1) -> Rounds:
    """The same over the operator that counts."""
    return Rounds(counter(), tree.min_arity, tree.fingers, column("sum"), n, d, trees)


def combines_a_round(run: Callable[[int], object], rounds: int = 2**12) -> float:
    run(min(rounds, 2**10))
    return combines(lambda: run(rounds)) / rounds


def rounds_a_second(run: Callable[[int], object], seconds: float, repeats: int = 3, cycle: int = 1) -> float:
    """The best of several turns of about that many seconds, each of whole cycles (of those that flip: a window's worth)."""
    return 1 / per_round(seconds, run, repeats, cycle)


# ---- latencies -------------------------------------------------------------------------------------------------------

STEPS = 6
"""Steps of an octave in which latencies are binned."""


def latencies(made: Rounds, run: Callable[[Rounds, np.ndarray], object], rounds: int, repeats: int) -> np.ndarray:
    """Nanoseconds of each round. The same rounds run several times from the same start, and of each the least time counts."""
    least = np.full(rounds, np.iinfo(np.int64).max)
    start, first = made.forest, made.next
    for _ in range(repeats):
        made.forest, made.next = start.copy(), first
        run(made, least)
    made.forest, made.next = start, first
    return nanoseconds(least)


def nanoseconds(ticks: np.ndarray) -> np.ndarray:
    return np.maximum(1.0, (ticks - clock.overhead_ticks()) * clock.nanoseconds_per_tick())


def spread(ns: np.ndarray) -> Row:
    """A distribution as columns: quantiles, and bins for the violin."""
    low, middle, p99_9, p99_999 = np.quantile(ns, [0.0, 0.5, 0.999, 0.99999]).tolist()
    bins, counts = np.unique(np.round(np.log2(ns) * STEPS).astype(int), return_counts=True)
    return {
        "mean_ns": float(ns.mean()),
        "min_ns": low,
        "p50_ns": middle,
        "p99_9_ns": p99_9,
        "p99_999_ns": p99_999,
        "max_ns": float(ns.max()),
        "bins": " ".join(f"{b}:{c}" for b, c in zip(bins.tolist(), counts.tolist())),
    }


def violins(axes, rows: list[Row]) -> None:
    """One for each row: mean as a red dot, median as a thick line, 99.9 % and 99.999 % as thin ones."""
    for k, row in enumerate(rows):
        bins = {int(b): int(count) for b, count in (pair.split(":") for pair in row["bins"].split())}
        levels = np.arange(min(bins) - 1, max(bins) + 2)
        width = np.sqrt([float(bins.get(int(level), 0)) for level in levels])
        width *= 0.42 / width.max()
        axes.fill_betweenx(2.0 ** (levels / STEPS), k - width, k + width, color="#9ecae1", linewidth=0)
        for value, half, thick in (
            (row["p50_ns"], 0.3, 2.5),
            (row["p99_9_ns"], 0.2, 1.0),
            (row["p99_999_ns"], 0.2, 1.0),
        ):
            axes.plot([k - half, k + half], [value, value], color="#08519c", linewidth=thick, solid_capstyle="butt")
        axes.plot([k], [row["mean_ns"]], "o", color="#d62728", markersize=4)
    axes.set_yscale("log", base=10)
    axes.set_xticks(range(len(rows)), [row["algorithm"] for row in rows], rotation=35, ha="right")
    axes.grid(False, axis="x")


def violin_panel(title: str, only: Sequence[tuple]) -> Panel:
    return Panel(
        title, only=tuple(only), x_label=" ", y_label="ns (dot: mean, lines:\n50, 99.9, 99.999 %)", draw=violins
    )


# ---- judging ---------------------------------------------------------------------------------------------------------


def by(rows: Iterable[Row], *keys: str) -> dict[tuple, Row]:
    """Rows by the values of some columns."""
    return {tuple(row[key] for key in keys): row for row in rows}


def middle(values: Iterable[float]) -> float:
    """The geometric mean: a rate that stands for several."""
    return float(np.exp(np.mean(np.log(list(values)))))


def millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
