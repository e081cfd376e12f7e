"""slickdeque-2018, section 5, Experiments 1 and 2: throughput, of a single query (Figures 10, 11) and of all ranges at once
(Figures 12, 13). Latency and memory are in slickdeque_2018_costs.py.

Shein, Chrysanthis, Labrinidis: SlickDeque, 2018. Naive is `recalc`. Sum is exact on integers, so SlickDeque may subtract; Max is
selective, so it keeps a deque.
"""

from dataclasses import dataclass
from functools import cache
from math import log2
from typing import Any

import numpy as np

import slidewise.operators as library
from slidewise.algebra.kernel import twin
from slidewise.algorithms import algorithm
from slidewise.algorithms.protocol import arrays, capacity_for
from slidewise.bench.counting import Counter
from slidewise.bench.papers import multi_query
from slidewise.bench.papers.rounds import combines, filled
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values
from slidewise.bench.timing import best_of, per_round

OPERATORS = {"sum": library.sum, "max": library.max}
SINGLE = ("recalc", "flatfat", "b_int", "flatfit", "two_stacks", "daba", "slick_deque")
MULTI = ("recalc", "flatfat", "b_int", "flatfit", "slick_deque")
NAMES = {"recalc": "Naive", "flatfat": "FlatFAT", "b_int": "B-Int", "flatfit": "FlatFIT", "two_stacks": "TwoStacks"}
NAMES |= {"daba": "DABA", "slick_deque": "SlickDeque"}
CONSTANT = ("slick_deque", "flatfit", "two_stacks", "daba")

STANDS_IN = (
    "In place of the DEBS12 readings: made-up energy readings of a machine at 100 Hz, levels that switch, drift and noise, in "
    "whole milliwatts. Windows go to 2^{most} instead of 2^27."
)


@cache
def readings(n: int, seed: int = 12) -> np.ndarray:
    """Energy readings in the shape of a machine's: a level for each step of its cycle, drift, and noise."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(200, 2000, n // 200 + 2))
    level = rng.integers(5_000, 20_000, len(steps))[np.searchsorted(steps, np.arange(n), side="right")]
    drift = np.cumsum(rng.normal(0, 1, n))
    return (level + drift + rng.normal(0, 150, n)).astype(np.int64)


# ---- Figures 10 and 11: a single query -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Single:
    powers: tuple[int, ...]
    seconds: float
    counted: int
    data: int = 2**21
    interpreted: bool = False


FULL = Single(tuple(range(0, 23, 2)), 0.05, 10)
QUICK = Single((0, 2, 4, 8, 12, 18), 0.01, 8)
TINY = Single((0, 2, 5), 0.001, 5, 4096, interpreted=True)


def measure_single(name: str, sizes: Single, progress: Progress) -> list[Row]:
    made = OPERATORS[name]()
    op = made.typed((np.dtype(np.int64),))
    X: tuple = (readings(sizes.data),)
    if sizes.interpreted:
        op, X = op.as_object(), (X[0].tolist(),)
    rows: list[Row] = []
    for swag in SINGLE:
        for power in sizes.powers:
            window = 2**power
            progress(f"{name}, {swag}, window {window:,}")
            ns = None if swag == "recalc" and power > 12 else filled(swag, op, window, X).nanoseconds(sizes.seconds)
            values_ = readings(sizes.data)[: 3 * window + 64].tolist()
            count = combines(swag, made, window, values=values_) if power <= sizes.counted else None
            rows.append(
                {
                    "function": name,
                    "algorithm": swag,
                    "window": window,
                    "throughput": None if ns is None else 1e9 / ns,
                    "combines": None if count is None else count.average,
                    "worst_combines": None if count is None else float(count.worst),
                }
            )
    return rows


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def views_single(rows: list[Row]) -> list[View]:
    return [
        View("million answers a second", "algorithm", "window", "throughput", best="max", form=_millions),
        View("combines a slide", "algorithm", "window", "combines", best="min", form="{:.2f}".format),
        View("combines of the worst slide", "algorithm", "window", "worst_combines", best="min", form="{:.0f}".format),
    ]


def plots_of(title: str, what: str):
    def plots(rows: list[Row]) -> list[Plot]:
        common: dict[str, Any] = {
            "x": "window",
            "line": "algorithm",
            "x_label": "window size",
            "x_log": 2,
            "names": NAMES,
        }
        return [
            Plot(
                [
                    Panel("throughput", y="throughput", y_label=what, y_log=10, **common),
                    Panel("combines (counted)", y="combines", y_label="combines a slide", y_log=10, **common),
                ],
                title,
            )
        ]

    return plots


def rates(rows: list[Row]) -> dict[tuple[str, int], float]:
    return {(r["algorithm"], r["window"]): r["throughput"] for r in rows if r["throughput"] is not None}


def gains(rows: list[Row]) -> dict[int, tuple[float, str]]:
    """Window -> SlickDeque over the best of the others, and which that is."""
    rate = rates(rows)
    found = {}
    for window in values(rows, "window"):
        others = {a: rate[a, window] for a in values(rows, "algorithm") if a != "slick_deque" and (a, window) in rate}
        if others and ("slick_deque", window) in rate:
            best = max(others, key=others.__getitem__)
            found[window] = rate["slick_deque", window] / others[best], best
    return found


def _gain_claim(rows: list[Row], start: int, gain: float, ahead: str) -> Claim:
    """Ahead everywhere, and in the mean by what the paper reports (nine tenths of it will do)."""
    paper = f"SlickDeque is {100 * gain:.0f} % faster than the second best on average, and {ahead}"
    found = {w: one for w, one in gains(rows).items() if w >= start}
    ratios = [ratio for ratio, _ in found.values()]
    if not ratios:
        return claim(paper, "", [])
    seconds = sorted({NAMES[name] for _, name in found.values()})
    lost = [w for w, (ratio, _) in found.items() if ratio <= 1]
    mean = float(np.mean(ratios))
    slower = mean < 1 and len(lost) > len(ratios) / 2  # the claim is of the mean: a window or two do not save it
    return claim(
        paper,
        f"{mean:.2f} times the second best ({', '.join(seconds)}) in the mean, {min(ratios):.2f} to {max(ratios):.2f}"
        + (f"; behind at {', '.join(f'{w:,}' for w in lost)}" if lost else ""),
        [mean >= 1 + 0.9 * gain, *(ratio > 1 and not slower for ratio in ratios)],
        reasons(
            (True, "All algorithms are compiled here with their state in registers and flat rings, so the others lose less than "
             "with the paper's lists and chunks."),
            (rows[0]["function"] == "max", "What is left differs with the branch that a deque needs for each value."),
        ),
    )  # fmt: skip


def _small_claim(rows: list[Row], start: int, paper: str) -> Claim:
    """Others may be ahead on small windows, and only by little: a tenth will do, where a slide is a few nanoseconds."""
    small = {w: ratio for w, (ratio, _) in gains(rows).items() if w < start}
    return claim(
        paper,
        ", ".join(f"{ratio:.2f} times the best of the others at {w:,}" for w, ratio in small.items()),
        [0.9 <= ratio <= 1.0 for ratio in small.values()],
        reasons(
            (min(small.values(), default=1) < 0.9, "Where a window is a few values, going through them is the shortest loop."),
            (max(small.values(), default=1) > 1, "Where SlickDeque is ahead on small windows too, it has less to keep than the "
             "others, and no system around it."),
        ),
    )  # fmt: skip


def _second_claim(rows: list[Row]) -> Claim:
    second = {w: best for w, (_, best) in gains(rows).items()}
    tests = [best == ("flatfat" if w <= 16 else "flatfit") for w, best in second.items()]
    return claim(
        "the second best is FlatFAT up to windows of 16, and FlatFIT beyond",
        f"at {sum(tests)} of {len(tests)} windows: " + ", ".join(f"{NAMES[best]} at {w:,}" for w, best in second.items()),
        tests,
        "TwoStacks and DABA are rings here, with nothing to allocate; and small windows are soonest gone through.",
    )


def claims_single(name: str):
    def claims(rows: list[Row]) -> list[Claim]:
        rate = rates(rows)
        windows = [w for w in values(rows, "window") if w >= 16]
        flat = {a: min(rate[a, w] for w in windows) / max(rate[a, w] for w in windows) for a in CONSTANT if windows}
        falling = {a: [rate[a, w] for w in windows if (a, w) in rate] for a in ("flatfat", "b_int", "recalc")}
        counted = [r for r in rows if r["combines"] is not None and r["window"] >= 8]
        by = {a: max((r["combines"] for r in counted if r["algorithm"] == a), default=0.0) for a in SINGLE}
        bounds, largest = {"two_stacks": 3.0, "flatfit": 3.0, "daba": 5.0}, max((r["window"] for r in counted), default=0)
        lost = {a: ys[-1] / ys[0] for a, ys in falling.items() if len(ys) > 1}
        at_last = [a for a in flat if flat[a] <= 0.5 and rate[a, windows[-1]] < 1.5 * min(rate[a, w] for w in windows)]
        return [
            claim(
                "two groups: SlickDeque, FlatFIT, TwoStacks and DABA keep their throughput whatever the window, "
                "FlatFAT, B-Int and Naive lose it",
                "least over greatest from 16 on: " + ", ".join(f"{NAMES[a]} {x:.2f}" for a, x in flat.items())
                + "; what is left at the largest: " + ", ".join(f"{NAMES[a]} {x:.2f}" for a, x in lost.items())
                if flat
                else "",
                [x > 0.5 for x in flat.values()] + [x < 0.5 for x in lost.values()],
                reasons(
                    (at_last, f"Large rings no longer fit the caches ({', '.join(NAMES[a] for a in at_last)} at the largest)."),
                    (not at_last, "A slide is a few nanoseconds, and what is in the caches moves it as much as the window does."),
                ),
            ),
            _gain_claim(rows, 4, 0.15, "ahead from windows of 4 on")
            if name == "sum"
            else _gain_claim(rows, 16, 0.07, "ahead from windows of 16 on"),
            _small_claim(rows, 4, "on smaller windows another is ahead (FlatFAT), by 1 % at most")
            if name == "sum"
            else _small_claim(rows, 16, "on smaller windows another is ahead (FlatFAT), by 7 % at most"),
            *([_second_claim(rows)] if name == "sum" else []),
            claim(
                f"combines a slide: SlickDeque {'exactly' if name == 'sum' else 'below'} 2, TwoStacks and FlatFIT 3, DABA 5 "
                "amortised, FlatFAT log n, Naive n",
                ", ".join(f"{NAMES[a]} {by[a]:.3f}" for a in SINGLE) + f" at most, up to windows of {largest:,}" if counted else "",
                [
                    by["slick_deque"] == 2 if name == "sum" else by["slick_deque"] < 2,
                    *(bound / 2 < by[a] <= bound for a, bound in bounds.items()),
                    *(log2(largest) <= by[a] for a in ("flatfat", "b_int")),
                    *(by[a] <= 2 * log2(largest) for a in ("flatfat", "b_int")),
                    by["recalc"] == largest - 1,
                ]
                if counted
                else [],
                "FlatFAT updates a path and, where its ring is inverted, looks up another.",
            ),
        ]

    return claims


def single_suite(number: int, name: str) -> Suite:
    return Suite(
        name=f"slickdeque-2018-fig-{number}",
        source=f"slickdeque-2018 Figure {number} (Experiment 1)",
        summary=f"throughput of a single {name.capitalize()} query over window sizes; combines counted",
        run=lambda quick, progress: measure_single(name, QUICK if quick else FULL, progress),
        tiny=lambda progress: measure_single(name, TINY, progress),
        views=views_single,
        plots=plots_of(f"Figure {number}: a single query ({name.capitalize()})", "answers a second"),
        claims=claims_single(name),
        stands_in=STANDS_IN.format(most=22),
    )


FIG_10, FIG_11 = single_suite(10, "sum"), single_suite(11, "max")


# ---- Figures 12 and 13: all ranges at once ---------------------------------------------------------------------------


class Ranges:
    """A full window on which every range is asked after each slide."""

    def __init__(self, swag: str, op, n: int, X: tuple):
        self.alg, self.op, self.n, self.X = algorithm(swag), op, n, X
        self.steps = multi_query if op.compiled else twin(multi_query)
        self.H, self.W, self.V, self.m, self.scratch = arrays(self.alg, op, capacity_for(n), more=n)
        self.OUT = op.result.alloc(n) if op.compiled else [None] * n
        self.OK = np.zeros(n, np.uint8) if op.compiled else [0] * n
        self._fill(n)
        if swag == "recalc":
            self.slide = self.steps.from_scratch
        elif swag != "slick_deque":
            self.slide = self.steps.youngest_of_all
        elif op.operator.selective:
            self.slide = self.steps.along_the_deque
        else:
            self.slide = self.steps.running_answers
            self.steps.start_answers(*self._arguments, n)

    @property
    def _arguments(self) -> tuple:
        return self.alg, self.op, self.H, self.W, self.V, self.m, self.scratch

    def _fill(self, n: int) -> None:
        from slidewise.algorithms import drivers

        steps = drivers if self.op.compiled else twin(drivers)
        steps.start(*self._arguments[:-1])
        steps.step_insert_many(*self._arguments, self.X, 0, n)

    def run(self, slides: int) -> None:
        total = len(self.X[0])
        for done in range(0, slides, total):
            self.slide(*self._arguments, self.X, self.OUT, self.OK, self.n, min(total, slides - done))

    def slides_a_second(self, seconds: float, least: float) -> float | None:
        """None where there are less than `least`."""
        self.run(1)
        probe = best_of(2, lambda: self.run(1))
        if probe > 1 / least:
            return None
        return 1 / per_round(seconds, self.run)


def ranges_counted(swag: str, made, n: int, slides: int, data: list) -> float:
    """Combines a slide."""
    counter = Counter(made)
    ranges = Ranges(swag, counter.typed, n, (data,))
    ranges.run(n)
    return counter.during(ranges.run, slides) / slides


@dataclass(frozen=True)
class Many:
    powers: tuple[int, ...]
    seconds: float
    counted: int
    least: float = 20.0
    """Slides a second below which an algorithm drops out."""
    data: int = 2**15
    interpreted: bool = False


FULL_MANY = Many(tuple(range(15)), 0.1, 7)
QUICK_MANY = Many((0, 1, 2, 4, 6, 8, 10), 0.01, 5, 200.0)
TINY_MANY = Many((0, 2, 4), 0.001, 4, 20.0, 64, interpreted=True)


def measure_many(name: str, sizes: Many, progress: Progress) -> list[Row]:
    made = OPERATORS[name]()
    op = made.typed((np.dtype(np.int64),))
    X: tuple = (readings(sizes.data),)
    plain = X[0].tolist()
    if sizes.interpreted:
        op, X = op.as_object(), (plain,)
    rows: list[Row] = []
    for swag in MULTI:
        dropped = False
        for power in sizes.powers:
            n = 2**power
            progress(f"{name}, {swag}, all ranges up to {n:,}")
            rate = None if dropped else Ranges(swag, op, n, X).slides_a_second(sizes.seconds, sizes.least)
            dropped = rate is None
            count = ranges_counted(swag, made, n, min(64, 4 * n), plain) if power <= sizes.counted else None
            rows.append(
                {
                    "function": name,
                    "algorithm": swag,
                    "window": n,
                    "throughput": rate,
                    "answers": None if rate is None else rate * n,
                    "combines": count,
                }
            )
    return rows


def views_many(rows: list[Row]) -> list[View]:
    return [
        View("slides a second (each answers all ranges)", "algorithm", "window", "throughput", best="max"),
        View("million answers a second", "algorithm", "window", "answers", best="max", form=_millions),
        View("combines a slide", "algorithm", "window", "combines", best="min", form="{:.1f}".format),
    ]


def plots_many(number: int, name: str):
    def plots(rows: list[Row]) -> list[Plot]:
        common: dict[str, Any] = {
            "x": "window",
            "line": "algorithm",
            "x_label": "window size = number of ranges",
            "x_log": 2,
            "names": NAMES,
        }
        return [
            Plot(
                [
                    Panel("slides", y="throughput", y_label="slides a second", y_log=10, **common),
                    Panel("answers", y="answers", y_label="million answers a second", times=1e-6, **common),
                    Panel("combines (counted)", y="combines", y_label="combines a slide", y_log=10, **common),
                ],
                f"Figure {number}: all ranges from 1 to the window ({name.capitalize()})",
            )
        ]

    return plots


def claims_many(name: str):
    def claims(rows: list[Row]) -> list[Claim]:
        mine = [r for r in rows if r["algorithm"] == "slick_deque" and r["answers"] is not None]
        answers, slides = [r["answers"] for r in mine], [r["throughput"] for r in mine]
        counted = {(r["algorithm"], r["window"]): r["combines"] for r in rows if r["combines"] is not None}
        largest = max((w for a, w in counted), default=0)
        fewest = counted.get(("slick_deque", largest), 0.0)
        return [
            _gain_claim(rows, 4, 0.45 if name == "sum" else 2.66, "ahead from windows of 4 on"),
            _small_claim(rows, 4, f"on windows of 1 and 2 it falls behind, by {'2 or 3 %' if name == 'sum' else '7 % on average'}"),
            claim(
                "throughput rises with the number of ranges, as they share, until the window outweighs it",
                f"SlickDeque's answers a second rise {max(answers) / answers[0]:.1f} times from one range to the best, slides a "
                f"second {max(slides) / slides[0]:.1f} times"
                if answers
                else "",
                [max(answers) > 1.1 * answers[0], max(slides) > 1.1 * slides[0]] if answers else [],
                reasons(
                    (slides and max(slides) <= 1.1 * slides[0], "The paper's axis is slides a second. Those can only fall, as a "
                     "slide answers every range."),
                    (answers and max(answers) > 1.1 * answers[0], "Answers a second rise."),
                    (answers and max(answers) <= 1.1 * answers[0], "Answers a second do not rise either: one takes as long as many "
                     "do together."),
                ),
            ),
            claim(
                "combines a slide for n ranges: "
                + ("SlickDeque exactly 2 n" if name == "sum" else "SlickDeque below 2")
                + ", FlatFIT n - 1, FlatFAT n log n, Naive n (n - 1) / 2",
                f"for {largest} ranges: " + ", ".join(f"{NAMES[a]} {counted[a, largest]:.1f}" for a in MULTI)
                if largest
                else "",
                [
                    fewest == 2 * largest if name == "sum" else fewest < 2,
                    counted["flatfit", largest] == largest - 1,
                    0.5 * largest * log2(largest) <= counted["flatfat", largest] <= largest * log2(largest),
                    counted["recalc", largest] == largest * (largest - 1) / 2,
                ]
                if largest
                else [],
                "Counted with the library's algorithms as they are.",
            ),
        ]

    return claims


def many_suite(number: int, name: str) -> Suite:
    return Suite(
        name=f"slickdeque-2018-fig-{number}",
        source=f"slickdeque-2018 Figure {number} (Experiment 2)",
        summary=f"throughput with {name.capitalize()} over all ranges from 1 to the window after each slide; combines counted",
        run=lambda quick, progress: measure_many(name, QUICK_MANY if quick else FULL_MANY, progress),
        tiny=lambda progress: measure_many(name, TINY_MANY, progress),
        views=views_many,
        plots=plots_many(number, name),
        claims=claims_many(name),
        stands_in=STANDS_IN.format(most=14) + " TwoStacks and DABA answer one range only.",
    )


FIG_12, FIG_13 = many_suite(12, "sum"), many_suite(13, "max")
