"""slickdeque-2018, section 5, Experiments 3 and 4: the latency of an answer (Figure 14), and memory (Figure 15).

Latency: windows of 1,024, each answer timed by the processor's counter, of several runs the least; the highest 0.005 % are
dropped, as in the paper. Memory: what the process holds more once the window is full and has been slid through its arrays.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slidewise.algorithms import algorithm
from slidewise.bench.fifo import BATCH, Bench, fits
from slidewise.bench.memory import give_back
from slidewise.bench.papers.rounds import Rounds
from slidewise.bench.papers.slickdeque_2018 import NAMES, OPERATORS, SINGLE, STANDS_IN, readings
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values

QUANTILES = {"least": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "greatest": 1.0}
DROPPED = 0.00005
GAIN = {"sum": 0.75, "max": 0.08}
"""By how much SlickDeque is ahead of the second best, over all figures of Figure 14."""
NEAR, TICK = 0.25, 10.0
"""What is nearly identical: a quarter, or nanoseconds that one tick of a slow counter takes."""
LABELS = {"slick_deque": {"sum": "SlickDeque (Inv)", "max": "SlickDeque (Non-Inv)"}}


def label(swag: str, name: str) -> str:
    """The others are alike for Sum and Max; SlickDeque is two algorithms."""
    return LABELS.get(swag, {}).get(name, NAMES[swag])


# ---- Figure 14 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latency:
    window: int
    rounds: int
    repeats: int
    algorithms: tuple[str, ...] = SINGLE
    functions: tuple[str, ...] = ("sum", "max")


FULL_14 = Latency(1024, 1_000_000, 3)
QUICK_14 = Latency(1024, 60_000, 3)
TINY_14 = Latency(64, 500, 2, ("two_stacks", "daba", "slick_deque"), ("sum",))


def measure_14(sizes: Latency, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        op = OPERATORS[name]().typed((np.dtype(np.int64),))
        X = (readings(BATCH),)
        for swag in sizes.algorithms:
            progress(f"{name}, {swag}: {sizes.rounds:,} answers")
            rounds = sizes.rounds if swag != "recalc" else min(sizes.rounds, 200_000)
            found = np.sort(Bench(algorithm(swag), op, sizes.window, X).latencies(rounds + 1, sizes.repeats)[1:])
            found = found[: len(found) - int(np.ceil(DROPPED * len(found)))]
            told = {
                "mean": float(found.mean()),
                **{word: float(np.quantile(found, q)) for word, q in QUANTILES.items()},
            }
            common = {"function": name, "algorithm": swag, "label": label(swag, name), "window": sizes.window}
            rows += [{**common, "figure": word, "ns": ns} for word, ns in told.items()]
    return rows


def views_14(rows: list[Row]) -> list[View]:
    return [
        View(f"{name}: ns of an answer", "label", "figure", "ns", (("function", name),), "min", "{:.1f}".format)
        for name in values(rows, "function")
    ]


def _boxes(axes, rows: list[Row]) -> None:
    """SlickDeque for both; the others for Sum, as the paper puts both together."""
    first = rows[0]["function"]
    shown = [row for row in rows if row["algorithm"] == "slick_deque" or row["function"] == first]
    keys = {"whislo": "least", "q1": "25 %", "med": "median", "q3": "75 %", "whishi": "greatest", "mean": "mean"}
    stats = []
    for name in values(shown, "label"):
        told = {row["figure"]: row["ns"] for row in shown if row["label"] == name}
        stats.append({"label": name, **{key: told[word] for key, word in keys.items()}})
    axes.bxp(stats, showfliers=False, showmeans=True)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", rotation=30)
    for tick in axes.get_xticklabels():
        tick.set_horizontalalignment("right")


def plots_14(rows: list[Row]) -> list[Plot]:
    title = f"Figure 14: latency of an answer, windows of {rows[0]['window']:,}"
    return [
        Plot([Panel("quartiles, least and greatest; triangle: mean (others: Sum)", x_label=" ", y_label="ns", draw=_boxes)], title)
    ]


def claims_14(rows: list[Row]) -> list[Claim]:
    tick = min([r["ns"] for r in rows if r["figure"] != "mean" and r["ns"] > 0], default=1.0)
    """The least that the clock told; what it did not tell counts as so much."""
    ns = {(r["function"], r["algorithm"], r["figure"]): max(r["ns"], tick) for r in rows}
    others = [a for a in values(rows, "algorithm") if a != "slick_deque"]
    tests, told, alike = [], [], 0
    ahead: dict[str, list[float]] = {name: [] for name in values(rows, "function")}
    for name in values(rows, "function"):
        for word in values(rows, "figure"):
            best, mine = min(others, key=lambda a: ns[name, a, word]), ns[name, "slick_deque", word]
            if mine == ns[name, best, word] == tick:  # nobody is ahead
                alike += 1
                continue
            ahead[name].append(ns[name, best, word] / mine)
            tests.append(mine <= ns[name, best, word])
            if not tests[-1]:
                told.append(
                    f"{label('slick_deque', name)} {word} {mine:.0f} ns, {NAMES[best]} {ns[name, best, word]:.0f}"
                )
    worst = {(f, a): x for (f, a, word), x in ns.items() if word == "greatest"}
    spikes = {f: worst[f, "daba"] / worst[f, "slick_deque"] for f in values(rows, "function")}
    amortised = [a for a in ("two_stacks", "flatfit") if a in others]
    stacks = {(f, a): worst[f, a] / worst[f, "daba"] for f in values(rows, "function") for a in amortised}
    late = [f for f in values(rows, "function") if spikes[f] < 1]
    means = {f: float(np.mean(found)) for f, found in ahead.items() if found}
    short = [f for f, x in means.items() if x < 1 + 0.9 * GAIN[f]]
    same = {
        (a, word): abs(ns["sum", a, word] - ns["max", a, word]) <= max(NEAR * ns["sum", a, word], TICK)
        for f, a, word in ns
        if f == "max" and a != "slick_deque" and ("sum", a, word) in ns
    }
    apart = [f"{NAMES[a]}'s {word}" for (a, word), near in same.items() if not near]
    return [
        claim(
            "SlickDeque has the lowest least, greatest, mean, median and quartiles of all, both ways",
            f"in {sum(tests)} of {len(tests)} figures" + (f"; not: {', '.join(told[:4])}" if told else "")
            + (f"; {alike} more are nothing that the clock can tell, for SlickDeque and another" if alike else ""),
            tests,
            reasons(
                (True, "An answer takes a few nanoseconds, which is what the processor's counter can tell apart."),
                (any("Non-Inv" in one for one in told), "The deque of Max waits for branches that nobody can predict, where "
                 "TwoStacks and DABA have none that depends on the values."),
            ),
        ),
        claim(
            "over all figures it is ahead of the second best by 75 % on average for Sum, by 8 % for Max",
            ", ".join(f"{f}: the second best takes {x:.2f} times as long" for f, x in means.items()),
            [f not in short for f in means],
            reasons(
                ("sum" in short, "For Sum, the second best is nearer than with the paper's chunks: all are compiled rings here."),
                ("max" in short, "For Max, a deque has a branch for each value that nobody can predict."),
                (alike, "Where both are nothing that the clock can tell, a figure does not count."),
            ),
        ),
        claim(
            "the latencies of the others are nearly identical for Sum and Max, so that the figure shows them once",
            f"to a quarter, or ten nanoseconds, in {sum(same.values())} of {len(same)} figures"
            + (f"; not: {', '.join(apart)}" if apart else "") if same else "",
            same.values(),
            "A sum that must not wrap is two words here and a maximum is one; and the greatest is a single slide, with what the "
            "machine did in it. The tables show both.",
        ),
        claim(
            "the greatest latency of SlickDeque is far below that of DABA, the second best (283 % on average)",
            ", ".join(f"{f}: DABA's is {x:.1f} times SlickDeque's" for f, x in spikes.items()),
            [float(np.mean(list(spikes.values()))) >= 1 + 0.9 * 2.83, *(x > 1 for x in spikes.values())],
            reasons(
                (True, "DABA's longest rounds are a few combines here, without the paper's chunks to allocate."),
                ("max" in late, "The longest rounds of the deque drop a run of nodes."),
            ),
        ),
        claim(
            "TwoStacks and FlatFIT have spikes of latency, as some slides walk the whole window; DABA has none (section 4)",
            ", ".join(f"{f}: the greatest of {NAMES[a]} is {x:.1f} times DABA's" for (f, a), x in stacks.items()),
            [x > 10 for x in stacks.values()],
            "A flip of a window of a thousand is too short here to stand out from what the machine does by itself.",
        ),
    ]  # fmt: skip


FIG_14 = Suite(
    name="slickdeque-2018-fig-14",
    source="slickdeque-2018 Figure 14 (Experiment 3)",
    summary="latency of an answer: least, quartiles, mean, greatest; windows of 1,024",
    run=lambda quick, progress: measure_14(QUICK_14 if quick else FULL_14, progress),
    tiny=lambda progress: measure_14(TINY_14, progress),
    views=views_14,
    plots=plots_14,
    claims=claims_14,
    stands_in=STANDS_IN.split(" Windows")[0],
)


# ---- Figure 15 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    windows: tuple[int, ...]
    functions: tuple[str, ...] = ("sum", "max")
    interpreted: bool = False


def _with_odd(powers) -> tuple[int, ...]:
    """Powers of two, and the sizes half-way between them."""
    return tuple(sorted({2**p for p in powers} | {3 * 2 ** (p - 1) for p in powers[:-1]}))


FULL_15 = Memory(_with_odd(range(16, 23, 2)))
QUICK_15 = Memory(_with_odd(range(17, 20)))
TINY_15 = Memory((64, 96), ("max",), interpreted=True)


def resident() -> int | None:
    """Bytes that this process holds in memory; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def slid(made: Rounds, rounds: int) -> None:
    """Fill and slide; from scratch no answer is asked, since each would walk the whole window."""
    if made.alg.name != "recalc":
        made.run(rounds)
        return
    arguments, count = (made.alg, made.op, made.H, made.W, made.V, made.m), len(made.OK)
    for done in range(0, rounds, count):
        over = int(made.H[1] - made.H[0]) + count - made.window
        if over > 0:
            made.steps.step_evict(*arguments, min(over, int(made.H[1] - made.H[0])))
        made.steps.step_insert_many(*arguments, made.scratch, made.X, 0, min(count, made.window, rounds - done))


def held(swag: str, op, window: int, X: tuple) -> tuple[int | None, int]:
    """Bytes more in memory once the window is full and every slot was written, and the partials that are then alive."""
    slid(Rounds(swag, op, 16, X), 64)  # compiled
    give_back()
    before = resident()
    made = Rounds(swag, op, window, X)
    slid(made, window + made.m + 1)
    after = resident()
    module = made.alg.module
    alive = window * module.RINGS + module.EXTRAS
    if swag == "slick_deque" and op.operator.selective:
        alive = int(made.H[3] - made.H[2])
    return None if before is None or after is None else after - before, alive


def measure_15(sizes: Memory, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        op = OPERATORS[name]().typed((np.dtype(np.int64),))
        X: tuple = (readings(2**21),)
        if sizes.interpreted:
            op, X = op.as_object(), (X[0][:4096].tolist(),)
        for swag in SINGLE:
            for window in sizes.windows:
                progress(f"{name}, {swag}, window {window:,}")
                some = not op.compiled or fits(algorithm(swag), op, window)
                found, alive = held(swag, op, window, X) if some else (None, None)
                rows.append(
                    {
                        "function": name,
                        "algorithm": swag,
                        "label": label(swag, name),
                        "window": window,
                        "megabytes": None if found is None else found / 1e6,
                        "bytes_an_event": None if found is None else found / window,
                        "partials": alive,
                    }
                )
    return rows


def views_15(rows: list[Row]) -> list[View]:
    found = []
    for name in values(rows, "function"):
        only = (("function", name),)
        found.append(View(f"{name}: MB", "label", "window", "megabytes", only, "min", "{:.1f}".format))
        found.append(View(f"{name}: partials alive", "label", "window", "partials", only, "min", "{:,}".format))
    return found


def plots_15(rows: list[Row]) -> list[Plot]:
    panels = []
    for name in values(rows, "function"):
        names = {**NAMES, "slick_deque": label("slick_deque", name)}
        common: dict[str, Any] = {
            "x": "window",
            "line": "algorithm",
            "only": (("function", name),),
            "x_label": "window size",
            "x_log": 2,
        }
        common["names"] = names
        panels.append(Panel(f"{name}: resident", y="megabytes", y_label="MB", y_log=10, **common))
        panels.append(Panel(f"{name}: partials alive", y="partials", y_label="partials", y_log=10, **common))
    return [Plot(panels, "Figure 15: memory", across=2)]


def claims_15(rows: list[Row]) -> list[Claim]:
    mb = {(r["function"], r["algorithm"], r["window"]): r["megabytes"] for r in rows if r["megabytes"] is not None}
    alive = {(r["function"], r["algorithm"], r["window"]): r["partials"] for r in rows if r["partials"] is not None}
    windows = [w for w in values(rows, "window") if w >= 2**18] or values(rows, "window")  # below, pages count

    def ratios(name: str, a: str, b: str) -> list[float]:
        return [mb[name, a, w] / mb[name, b, w] for w in windows if (name, a, w) in mb and mb.get((name, b, w), 0) > 0]

    inverse = ratios("sum", "slick_deque", "recalc")
    selective = ratios("max", "recalc", "slick_deque")
    others = [
        x
        for f in values(rows, "function")
        for a in ("flatfat", "b_int", "flatfit", "two_stacks", "daba")
        for x in ratios(f, a, "recalc")
    ]
    fewer = [
        alive["max", "recalc", w] / alive["max", "slick_deque", w]
        for w in windows
        if ("max", "slick_deque", w) in alive
    ]
    return [
        claim(
            "SlickDeque (Inv) needs as much memory as Naive: n partials",
            f"{min(inverse):.2f} to {max(inverse):.2f} times Naive's" if inverse else "",
            [0.8 < x < 1.25 for x in inverse],
            "What the allocator rounds up counts more, the smaller the window.",
        ),
        claim(
            "SlickDeque (Non-Inv) needs less than Naive: half of it on average",
            f"Naive's is {min(selective):.2f} to {max(selective):.2f} times SlickDeque's" if selective else "",
            [x >= 1.8 for x in selective],
            "The deque lives in a ring as large as the window, so that no insert allocates, and its nodes wander through it: pages "
            "that were touched stay, though few nodes are alive. The paper frees chunks.",
        ),
        claim(
            "counted: few partials are alive in the deque of Max, n in Naive",
            f"Naive keeps {min(fewer):,.0f} to {max(fewer):,.0f} times as many" if fewer else "",
            [x >= 10 for x in fewer],
            "How many are alive depends on the data: falling readings keep them all.",
        ),
        claim(
            "FlatFAT and B-Int, and FlatFIT, TwoStacks and DABA, need twice the memory of Naive",
            f"{min(others):.2f} to {max(others):.2f} times" if others else "",
            [1.75 < x < 2.5 for x in others],
            "FlatFAT keeps a count and a note for each node beside its partial, FlatFIT a place for each partial: with one word "
            "for a partial they come to more.",
        ),
    ]


FIG_15 = Suite(
    name="slickdeque-2018-fig-15",
    source="slickdeque-2018 Figure 15 (Experiment 4)",
    summary="memory of a window, measured as resident bytes, and the partials that are alive",
    run=lambda quick, progress: measure_15(QUICK_15 if quick else FULL_15, progress),
    tiny=lambda progress: measure_15(TINY_15, progress),
    views=views_15,
    plots=plots_15,
    claims=claims_15,
    stands_in=STANDS_IN.format(most=22) + " They begin at 2^16, and claims are judged from 2^18 on: what smaller ones take is lost "
    "among the pages that the process touches anyway. What the process holds more than before, in place of all it holds.",
)
