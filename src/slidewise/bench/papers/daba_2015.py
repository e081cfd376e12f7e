"""daba-2015, section 7: break-even points (Table 1) and throughput (Figure 18, top). Latency is in daba_2015_latency.py.

Tangwongsan, Hirzel, Schneider: Constant-Time Sliding-Window Aggregation, 2015. Reactive is `flatfat`, Recalc is `recalc`. DABA
is with the cache of Figure 17, and in Figure 18 without it too (daba_uncached.py); the Lite forms came later and are shown beside.
"""

from dataclasses import dataclass
from statistics import median

import numpy as np

import slidewise.operators as library
from slidewise.bench.counting import Counts
from slidewise.bench.papers.curves import is_logarithmic, span
from slidewise.bench.papers.daba_uncached import UNCACHED
from slidewise.bench.papers.rounds import BATCH, COLLECT, Function, argument, break_even, combines, filled, function
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values

FUNCTIONS = {
    "sum": function(library.sum, np.int64),
    "max": function(library.max, np.int64),
    "mean": function(library.mean, np.int64),
    "geomean": function(library.geomean, np.float64),
    "min_count": function(library.min_count, np.int64),
    "std": function(library.std, np.float64),
    "argmax": argument(library.argmax, np.int64),
    "bloom": function(lambda: library.bloom(bits=2**14), np.int64),
    "collect": COLLECT,
}
"""Table 1's functions; the Bloom filter is as large as the paper's."""

THREE = ("sum", "geomean", "bloom")
"""Cheap, medium, expensive: Figure 18."""

SWAGS = ("flatfat", "two_stacks", "aba", "daba", "two_stacks_lite", "daba_lite")
NAMES = {"flatfat": "Reactive (flatfat)", "recalc": "Recalc", "aba": "ABA", "daba": "DABA", "two_stacks": "Two-Stacks"}
NAMES |= {"two_stacks_lite": "Two-Stacks Lite", "daba_lite": "DABA Lite", "daba_uncached": "DABA, no cache"}


# ---- Table 1 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BreakEven:
    functions: tuple[str, ...]
    windows: tuple[int, ...]
    seconds: float
    algorithms: tuple[str, ...] = SWAGS


FULL_1 = BreakEven(
    tuple(FUNCTIONS),
    (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 192, 256, 384, 512, 704, 1024, 2048),
    0.008,
)
QUICK_1 = BreakEven(
    ("sum", "max", "geomean", "bloom", "collect"),
    (1, 2, 4, 8, 16, 28, 48, 64, 112, 256, 704, 1024),
    0.003,
    ("flatfat", "two_stacks", "aba", "daba"),
)
TINY_1 = BreakEven(("collect",), (1, 4, 64), 0.0005, ("flatfat", "two_stacks", "aba", "daba"))


def measure_table_1(sizes: BreakEven, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    rng = np.random.default_rng(1)
    for name in sizes.functions:
        chosen = FUNCTIONS[name]
        op, X = chosen.typed(), chosen.columns(rng, BATCH)
        times: dict[str, list[float | None]] = {}
        for swag in ("recalc", *sizes.algorithms):
            progress(f"{name}, {swag}")
            seconds = sizes.seconds if op.compiled else min(sizes.seconds, 0.005)
            times[swag] = [filled(swag, op, window, X).nanoseconds(seconds, 5) for window in sizes.windows]
        for swag, mine in times.items():
            found = None if swag == "recalc" else break_even(sizes.windows, mine, times["recalc"])
            for window, ns, base in zip(sizes.windows, mine, times["recalc"]):
                told = {"ns": ns, "recalc_ns": base, "break_even": found}
                rows.append({"function": name, "algorithm": swag, "window": window, **told})
    return rows


def views_table_1(rows: list[Row]) -> list[View]:
    shown = "window from which on it beats recalculation (-: never)"
    return [View(shown, "function", "algorithm", "break_even", form="{:,}".format)]


def claims_table_1(rows: list[Row]) -> list[Claim]:
    points = {(r["function"], r["algorithm"]): r["break_even"] for r in rows if r["algorithm"] != "recalc"}
    cheap = [f for f in values(rows, "function") if f != "collect"]
    three = [(f, a) for f in cheap for a in ("two_stacks", "aba", "daba")]
    found = [points[key] for key in three]
    small = [point for point in found if point is not None]
    told = f"{min(small)} to {max(small)}" if small else "never"
    reactive = {f: points[f, "flatfat"] for f in cheap}

    def sooner(a: str, b: str) -> tuple[str, list[bool]]:
        tests = [_point(points[f, a]) <= _point(points[f, b]) for f in cheap]
        return f"{sum(tests)} of {len(tests)} functions", tests

    over_daba, tests_daba = sooner("two_stacks", "daba")
    aba_daba, more = sooner("aba", "daba")
    aba_stacks, tests_aba = sooner("aba", "two_stacks")
    times = {f: _point(reactive[f]) / median(_point(points[f, a]) for a in ("two_stacks", "aba", "daba")) for f in cheap}
    apart = {f: t for f, t in times.items() if f != "bloom"}
    both = {("sum", "aba"), ("bloom", "aba")} <= points.keys()
    collect = [points[f, a] for f, a in points if f == "collect"]
    return [
        claim(
            "Two-Stacks, ABA and DABA beat recalculation from windows of 4 to 112 on, for every function but Collect",
            f"from {told}" + (f", never for {len(found) - len(small)}" if len(small) < len(found) else ""),
            [point is not None and point <= 112 for point in found],
            "Recalculation is a bare compiled loop here, which cheap functions run through at several values a cycle.",
        ),
        claim(
            "Two-Stacks and ABA break even no later than DABA (they do less on average)",
            f"Two-Stacks for {over_daba}, ABA for {aba_daba}",
            tests_daba + more,
            "Counted, Two-Stacks and ABA do less, 3 combines a round against 4. In compiled loops of a few nanoseconds what is "
            "moved beside the combines decides, and Two-Stacks keeps pairs.",
        ),
        claim(
            "ABA breaks even no later than Two-Stacks: it copies nothing between two stacks",
            aba_stacks,
            tests_aba,
            "Two-Stacks here is one ring of pairs that flips in place, so it has no copying left for ABA to save.",
        ),
        claim(
            "for ABA, Sum does not break even later than Bloom, though it is much cheaper: recalculating it is, too",
            f"Sum from {points['sum', 'aba'] or 'never'} on, Bloom from {points['bloom', 'aba'] or 'never'} on" if both else "",
            [_point(points["sum", "aba"]) <= _point(points["bloom", "aba"])] if both else [],
            "Recalculating sums is a bare compiled loop, at several values a cycle; recalculating filters moves 2 KB for each.",
        ),
        claim(
            "Reactive breaks even at windows 10 to 100 times as large as the others, except for Bloom",
            ", ".join(f"{f} {t:.0f} times" for f, t in times.items()) or "",
            [10 <= t <= 130 for t in apart.values()] + ([times["bloom"] < 10] if "bloom" in times else []),
            reasons(
                (True, "The tree here is compiled with the operator inlined, and updates noted nodes level by level."),
                (min(apart.values(), default=0) < 10, "It breaks even earlier than the paper's, beside the others."),
                (min(times.values(), default=0) > 1, "It still does so later than the constant-time algorithms."),
            ),
        ),
        claim(
            "nothing ever beats recalculation for Collect, whose combine copies whole lists",
            "never"
            if collect and all(p is None for p in collect)
            else f"from windows of {min(map(_point, collect), default=0):g} on",
            [point is None for point in collect],
            "collect here joins ropes: a combine is O(1) and copies nothing, and only the answer itself is as long as the window. "
            "Recalculation joins n times, the others a few times.",
        ),
    ]


def _point(window: int | None) -> float:
    return float("inf") if window is None else window


def plots_table_1(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f,
            "window",
            "ns",
            "algorithm",
            (("function", f),),
            x_label="window size",
            y_label="ns a round",
            x_log=2,
            y_log=10,
            names=NAMES,
        )
        for f in values(rows, "function")
    ]
    return [Plot(panels, "Table 1: where the lines cross that of Recalc")]


TABLE_1 = Suite(
    name="daba-2015-table-1",
    source="daba-2015 Table 1",
    summary="break-even points: the window from which on an algorithm beats recalculation",
    run=lambda quick, progress: measure_table_1(QUICK_1 if quick else FULL_1, progress),
    tiny=lambda progress: measure_table_1(TINY_1, progress),
    views=views_table_1,
    plots=plots_table_1,
    claims=claims_table_1,
    stands_in="Reactive is flatfat; SampleStdDev and the means are the library's, with merged moments and sums that do not wrap.",
)


# ---- Figure 18, top --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Throughput:
    functions: dict[str, Function]
    powers: dict[str, tuple[int, ...]]
    seconds: float
    algorithms: tuple[str, ...] = ("recalc", *SWAGS, "daba_uncached")
    counted: int = 10
    """Combines are counted up to this power of two."""


FULL_18 = Throughput(
    {f: FUNCTIONS[f] for f in THREE},
    {"sum": tuple(range(0, 23, 2)), "geomean": tuple(range(0, 23, 2)), "bloom": tuple(range(0, 19, 2))},
    0.05,
)
QUICK_18 = Throughput(
    FULL_18.functions, {"sum": (0, 4, 8, 14, 20), "geomean": (0, 4, 8, 14, 20), "bloom": (0, 4, 8, 12)}, 0.01, counted=8
)
TINY_18 = Throughput({"collect": COLLECT}, {"collect": (0, 3, 6)}, 0.001, counted=6)

STOP = 10
"""Recalc stops here, as in the paper."""


def measure_top(sizes: Throughput, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    rng = np.random.default_rng(18)
    counts: dict[tuple[str, int], Counts] = {}  # the same for every function
    for name, chosen in sizes.functions.items():
        op, X = chosen.typed(), chosen.columns(rng, BATCH)
        for swag in sizes.algorithms:
            run = UNCACHED if swag == UNCACHED.name else swag
            for power in sizes.powers[name]:
                if swag == "recalc" and power > STOP:
                    continue
                progress(f"{name}, {swag}, window 2^{power}")
                ns = filled(run, op, 2**power, X).nanoseconds(sizes.seconds, most=2e6)
                if power <= sizes.counted and (swag, power) not in counts:
                    counts[swag, power] = combines(run, library.max(), 2**power)
                count = counts.get((swag, power))
                rows.append(
                    {
                        "function": name,
                        "algorithm": swag,
                        "window": 2**power,
                        "throughput": None if ns is None else 1e9 / ns,
                        "combines": None if count is None else count.average,
                        "worst_combines": None if count is None else float(count.worst),
                    }
                )
    return rows


def views_top(rows: list[Row]) -> list[View]:
    def million(rate: float) -> str:
        return f"{rate / 1e6:.3g}"

    found = [
        View(f"{f}: million rounds a second", "algorithm", "window", "throughput", (("function", f),), "max", million)
        for f in values(rows, "function")
    ]
    first = (("function", rows[0]["function"]),)
    found.append(View("combines a round", "algorithm", "window", "combines", first, "min", "{:.2f}".format))
    found.append(
        View("combines in the worst round", "algorithm", "window", "worst_combines", first, "min", "{:.0f}".format)
    )
    return found


def plots_top(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f,
            "window",
            "throughput",
            "algorithm",
            (("function", f),),
            x_label="window size",
            y_label="million rounds a second",
            x_log=2,
            times=1e-6,
            names=NAMES,
        )
        for f in values(rows, "function")
    ]
    count = Panel(
        "combines a round (counted)",
        "window",
        "combines",
        "algorithm",
        (("function", rows[0]["function"]),),
        x_label="window size",
        y_label="combines",
        x_log=2,
        y_log=2,
        names=NAMES,
    )
    return [Plot([*panels, count], "Figure 18, top: throughput", across=2)]


def claims_top(rows: list[Row]) -> list[Claim]:
    rate = {(r["function"], r["algorithm"], r["window"]): r["throughput"] for r in rows if r["throughput"] is not None}
    places = [
        (f, w) for f, a, w in rate if a == "daba" and all((f, o, w) in rate for o in ("two_stacks", "aba", "flatfat"))
    ]
    others = ("daba", "daba_uncached", "flatfat", "recalc")
    best = {
        a: [rate[f, a, w] >= 0.97 * max(rate[f, o, w] for o in others if (f, o, w) in rate) for f, w in places]
        for a in ("two_stacks", "aba")
    }
    over = [max(rate[f, "two_stacks", w], rate[f, "aba", w]) / rate[f, "daba", w] for f, w in places]
    beaten = {
        (f, w): all(rate[f, a, w] > rate[f, "flatfat", w] for a in ("two_stacks", "aba", "daba")) for f, w in places if w > 1
    }
    spared = {key for key in beaten if key[0] == "bloom" and key[1] < 2**8}
    as_said = {key: found for key, found in beaten.items() if key not in spared}
    not_so = [f"{f} {w:,}" for (f, w), found in as_said.items() if not found]
    ratios = [rate[f, "daba", w] / rate[f, "flatfat", w] for f, w in places if w > 1]
    counted = [
        r for r in rows if r["combines"] is not None and r["function"] == rows[0]["function"] and r["window"] >= 8
    ]
    by = {a: [r["combines"] for r in counted if r["algorithm"] == a] for a in values(counted, "algorithm")}
    windows = [r["window"] for r in counted if r["algorithm"] == "flatfat"]
    worst = max((r["worst_combines"] for r in counted if r["algorithm"] == "daba"), default=0)
    return [
        claim(
            "Two-Stacks and ABA have the best throughput at all window sizes, DABA is a constant behind",
            ", ".join(f"{NAMES[a]} is as fast as any other at {sum(found)} of {len(found)} points" for a, found in best.items())
            + f"; the better of the two is {span(over)} times as fast as DABA",
            [test for found in best.values() for test in found] + ([max(over) < 4 * min(over)] if over else []),
            "Counted, both combine less than DABA. Two-Stacks keeps pairs here, twice the bytes to copy when it flips; at the "
            "smallest windows there is nothing to save, and Recalc is the shortest loop.",
        ),
        claim(
            "Reactive is consistently outperformed by Two-Stacks, ABA and DABA, for Bloom from 2^8 on",
            f"at {sum(as_said.values())} of {len(as_said)} points; DABA is {span(ratios, '.1f')} times as fast as Reactive"
            + (f"; not so at {', '.join(not_so)}" if not_so else "")
            if ratios
            else "",
            as_said.values(),
            "A small tree is a few nanoseconds high. Where a combine reads and writes 2 KB, what is near in memory decides: the "
            "tree's combines are on what was touched last, a flip's are not.",
        ),
        claim(
            "the exception: for Bloom below 2^8 Reactive is not outperformed",
            f"it is outperformed by all three at {sum(beaten[key] for key in spared)} of {len(spared)} windows",
            [not beaten[key] for key in spared],
            "All of them keep flat arrays here, and a small window of filters is in a near cache of any.",
        ),
        _caching(rate),
        _recalc(rate),
        _small_windows(rate),
        _large_windows(rate),
        _sum_last(rate),
        claim(
            "a round takes O(1) combines: 3 with Two-Stacks and ABA, about 4 and at most 6 with DABA; O(log n) with Reactive",
            ", ".join(
                f"{a} {min(c):.2f} to {max(c):.2f}"
                for a, c in by.items()
                if a in ("two_stacks", "aba", "daba", "flatfat")
            )
            + f"; DABA's worst round {worst:.0f}",
            [bound / 2 < max(by[a]) <= bound for a, bound in (("two_stacks", 3), ("aba", 3), ("daba", 4.5)) if a in by]
            + ([worst <= 6] if by else [])
            + ([is_logarithmic(windows, by["flatfat"], 0.9)] if len(by.get("flatfat", ())) > 2 else []),
            "Counted over two windows' worth of rounds, with the library's algorithms as they are.",
        ),
    ]


def _caching(rate: dict) -> Claim:
    gains: dict[str, list[float]] = {}
    for f, a, w in rate:
        if a == "daba_uncached" and w >= 8 and (f, "daba", w) in rate:
            gains.setdefault(f, []).append(rate[f, "daba", w] / rate[f, a, w])
    means = {f: float(np.exp(np.mean(np.log(found)))) for f, found in gains.items()}
    more = [f for f, mean in means.items() if f != "bloom" and mean >= 1.25]
    less = [f for f, mean in means.items() if f != "bloom" and mean <= 0.8]
    return claim(
        "caching makes a marginal difference for Sum and GeometricMean, a modest but consistent one for Bloom",
        ", ".join(f"{f} {mean:.2f} times ({min(gains[f]):.2f} to {max(gains[f]):.2f})" for f, mean in means.items())
        + " as fast with it, windows of 8 and more"
        if means
        else "",
        [min(gains[f]) > 1 and mean < 2 if f == "bloom" else 0.8 < mean < 1.25 for f, mean in means.items()],
        reasons(
            (more, f"More than marginal for {', '.join(more)}: half of the calls save a combine, and a call is little beside it."),
            (less, f"For {', '.join(less)} the cache, two more states to carry along, costs more than it saves."),
            (min(gains.get("bloom", [2])) <= 1, "For Bloom not consistent: behind at some windows."),
            (means.get("bloom", 0) >= 2, "For Bloom more than modest: a combine that is saved is most of a call."),
        ),
    )  # fmt: skip


def _recalc(rate: dict) -> Claim:
    """Linear: 16 times the window, 16 times the time."""
    fell = {f: rate[f, "recalc", 2**6] / rate[f, "recalc", 2**10] for f, a, w in rate if (a, w) == ("recalc", 2**10)
            and (f, a, 2**6) in rate}  # fmt: skip
    return claim(
        "Recalc clearly has O(n) behaviour",
        ", ".join(f"{f} {fall:.1f} times slower" for f, fall in fell.items()) + " at 2^10 than at 2^6" if fell else "",
        [8 <= fall <= 32 for fall in fell.values()],
        reasons(
            (min(fell.values(), default=8) < 8, "What a round costs whatever the window (the logarithm of a geometric mean) is the "
             "greater part of a small one."),
            (max(fell.values(), default=8) > 32, "The window of 2^10 no longer fits where that of 2^6 did."),
        ),
    )  # fmt: skip


def _small_windows(rate: dict) -> Claim:
    tests, told = [], []
    for f in ("sum", "geomean"):
        for a in ("aba", "daba"):
            if (f, a, 16) in rate and (f, a, 2**8) in rate:
                gain = rate[f, a, 2**8] / rate[f, a, 16]
                tests.append(gain > 1.02)
                told.append(f"{f}, {a}: {gain:.2f} times")
    return claim(
        "with Sum and GeometricMean, ABA and DABA get faster up to windows of 2^8, as flips get rarer",
        "from 2^4 to 2^8 " + ", ".join(told) if told else "",
        tests,
        "A flip here is a few instructions of the same loop; what it costs at small windows is less than the noise.",
    )


def _large_windows(rate: dict) -> Claim:
    tests, told = [], []
    for f in values([{"f": f} for f, _, _ in rate], "f"):
        windows = sorted(w for g, a, w in rate if (g, a) == (f, "daba"))
        if windows and windows[-1] >= 2**12:
            drops = {
                a: max(rate[f, a, w] for w in windows if (f, a, w) in rate) / rate[f, a, windows[-1]]
                for a in ("two_stacks", "aba", "daba")
                if (f, a, windows[-1]) in rate
            }
            tests += [drop > 1.1 for drop in drops.values()]
            told.append(f"{f} by {span(drops.values())} at 2^{windows[-1].bit_length() - 1}")
    return claim(
        "all lose throughput at large windows, to the memory and not to combines",
        "Two-Stacks, ABA and DABA lose " + ", ".join(told) if told else "",
        tests,
        "The paper's machine had a cache of 4 MB; a window of 2^20 small states fits the last-level cache of a large one.",
    )


def _sum_last(rate: dict) -> Claim:
    """The window from which on ABA, the paper's example, has lost a fifth of its best."""
    from_ = {}
    for f in THREE:
        windows = sorted(w for g, a, w in rate if (g, a) == (f, "aba"))
        if windows and windows[-1] >= 2**16:
            best = max(rate[f, "aba", w] for w in windows)
            kept = [w for w in windows if rate[f, "aba", w] >= 0.8 * best]
            from_[f] = windows[min(windows.index(kept[-1]) + 1, len(windows) - 1)]
    others = [f for f in from_ if f != "sum"]
    return claim(
        "Sum's loss comes much later than that of the others: its states are smaller",
        "ABA is a fifth below its best from " + ", ".join(f"{f} 2^{w.bit_length() - 1}" for f, w in from_.items()) + " on"
        if "sum" in from_ and others
        else "",
        [from_["sum"] >= 4 * from_[f] for f in others] if "sum" in from_ else [],
        "A sum of integers that must not wrap takes two words here, as a geometric mean does; and a filter 2 KB, as there.",
    )


TOP = Suite(
    name="daba-2015-fig-18-top",
    source="daba-2015 Figure 18, top, and Theorems 4, 6, 9",
    summary="throughput over window sizes for a cheap, a medium and an expensive function; combines counted",
    run=lambda quick, progress: measure_top(QUICK_18 if quick else FULL_18, progress),
    tiny=lambda progress: measure_top(TINY_18, progress),
    views=views_top,
    plots=plots_top,
    claims=claims_top,
    stands_in="Reactive is flatfat. Bloom's windows end at 2^18: its states are 2 KB each.",
)
