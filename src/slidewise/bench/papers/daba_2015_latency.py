"""daba-2015, section 7.3: the latency of single rounds over time (Figure 18, bottom), its mean and deviation (Table 2).

A window of 2^14, a million rounds of evict, insert, query. In cycles of the processor's reference clock; of each round the least of
several runs from the same start counts: what the algorithm does is the same every time, what the rest of the machine does
to it is not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from slidewise.algorithms import algorithm
from slidewise.bench import clock
from slidewise.bench.fifo import BATCH, Bench
from slidewise.bench.papers.daba_2015 import FUNCTIONS, NAMES, THREE
from slidewise.bench.papers.rounds import combines
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, picked, reasons, values

SWAGS = ("two_stacks", "aba", "daba")
POINTS = 400
"""Points of a time series: each is the longest round of its stretch, so no spike is lost."""


@dataclass(frozen=True)
class Latency:
    functions: tuple[str, ...]
    window: int
    rounds: int
    repeats: int


SEVEN = ("sum", "max", "mean", "geomean", "std", "argmax", "bloom")
FULL_18 = Latency(THREE, 2**14, 1_000_000, 3)
QUICK_18 = Latency(THREE, 2**14, 100_000, 2)
TINY = Latency(("sum",), 64, 600, 2)
FULL_2 = Latency(SEVEN, 2**14, 1_000_000, 3)
QUICK_2 = Latency(("sum", "geomean", "bloom"), 2**14, 100_000, 2)


def ticks(swag: str, name: str, sizes: Latency) -> np.ndarray:
    """Reference cycles of each round, the least of several runs."""
    chosen = FUNCTIONS[name]
    X = chosen.columns(np.random.default_rng(2), BATCH)
    bench = Bench(algorithm(swag), chosen.typed(), sizes.window, X)
    found = bench.latencies(sizes.rounds + 1, sizes.repeats)
    return found[1:] / clock.nanoseconds_per_tick()  # the first round also holds the call


# ---- Figure 18, bottom -----------------------------------------------------------------------------------------------


def measure_bottom(sizes: Latency, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        for swag in SWAGS:
            progress(f"{name}, {swag}: {sizes.rounds:,} rounds")
            found = ticks(swag, name, sizes)
            stretch = max(1, len(found) // POINTS)
            for first in range(0, len(found) - stretch + 1, stretch):
                worst = float(found[first : first + stretch].max())
                rows.append(
                    {"function": name, "algorithm": swag, "round": first, "window": sizes.window, "cycles": worst}
                )
    return rows


def _worst(rows: list[Row]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["function"], row["algorithm"]
        found[key] = max(found.get(key, 0), row["cycles"])
    return found


def claims_bottom(rows: list[Row]) -> list[Claim]:
    worst, window = _worst(rows), rows[0]["window"]
    told = [
        f"{f} {', '.join(f'{NAMES[a]} {worst[f, a]:,.0f}' for a in SWAGS)} cycles" for f in values(rows, "function")
    ]
    tests = [worst[f, a] > 10 * worst[f, "daba"] for f in values(rows, "function") for a in ("two_stacks", "aba")]
    spikes = {
        (f, a): [r["round"] for r in picked(rows, (("function", f), ("algorithm", a))) if r["cycles"] > worst[f, a] / 3]
        for f in values(rows, "function")
        for a in ("two_stacks", "aba")
    }
    last = rows[-1]["round"]
    wanted = max(1, last // window)
    gaps = {key: np.diff(found) / window if len(found) > 1 else np.zeros(1) for key, found in spikes.items()}
    apart = [((0.6 < gap) & (gap < 1.4)).mean() for gap in gaps.values()]
    periodic = [
        0.8 * wanted <= len(found) <= 1.2 * wanted + 1 and (wanted < 3 or share > 0.9)
        for found, share in zip(spikes.values(), apart)
    ]
    return [
        claim(
            "Two-Stacks and ABA have rounds as long as the window, DABA's are all bound at the bottom of the graph",
            "worst rounds: " + "; ".join(told),
            tests,
            "A flip of this window is too short here to stand out from what the machine does by itself.",
        ),
        claim(
            "the spikes are periodic: one flip for each window's worth of rounds",
            f"{wanted} flips are due in the run; spikes seen: "
            + ", ".join(f"{f} {a} {len(found)}" for (f, a), found in spikes.items())
            + f"; a window apart: {min(apart):.0%} of them or more",
            periodic,
            "Where a flip is short, rounds that the machine interrupted in every repeat count as spikes too.",
        ),
    ]


def plots_bottom(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f,
            "round",
            "cycles",
            "algorithm",
            (("function", f),),
            kind="points",
            x_label="round",
            y_label="cycles of the longest round of a stretch",
            y_log=10,
            names=NAMES,
        )
        for f in values(rows, "function")
    ]
    return [Plot(panels, f"Figure 18, bottom: latency over time, windows of {rows[0]['window']:,}")]


BOTTOM = Suite(
    name="daba-2015-fig-18-bottom",
    source="daba-2015 Figure 18, bottom",
    summary="latency of single rounds over a million rounds, windows of 2^14",
    run=lambda quick, progress: measure_bottom(QUICK_18 if quick else FULL_18, progress),
    tiny=lambda progress: measure_bottom(TINY, progress),
    plots=plots_bottom,
    claims=claims_bottom,
    stands_in="The scale is logarithmic where the paper's is linear: DABA would be invisible for Bloom, as it is there.",
)


# ---- Table 2 ---------------------------------------------------------------------------------------------------------


def measure_table_2(sizes: Latency, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    counted = {}
    for swag in SWAGS:
        progress(f"combines of {swag}")
        counted[swag] = combines(swag, FUNCTIONS["max"].make(), min(sizes.window, 2**10))
    for name in sizes.functions:
        for swag in SWAGS:
            progress(f"{name}, {swag}: {sizes.rounds:,} rounds")
            found = ticks(swag, name, sizes)
            rows.append(
                {
                    "function": name,
                    "algorithm": swag,
                    "window": sizes.window,
                    "average_cycles": float(found.mean()),
                    "deviation_cycles": float(found.std()),
                    "worst_cycles": float(found.max()),
                    "combines": counted[swag].average,
                    "worst_combines": float(counted[swag].worst),
                }
            )
    return rows


def views_table_2(rows: list[Row]) -> list[View]:
    form = "{:,.0f}".format
    return [
        View("average cycles of a round", "function", "algorithm", "average_cycles", form=form),
        View("standard deviation", "function", "algorithm", "deviation_cycles", form=form),
        View("worst round", "function", "algorithm", "worst_cycles", form=form),
        View("combines of a round, counted", "function", "algorithm", "combines", form="{:.2f}".format),
        View("combines of the worst round, counted", "function", "algorithm", "worst_combines", form=form),
    ]


def claims_table_2(rows: list[Row]) -> list[Claim]:
    by = {(r["function"], r["algorithm"]): r for r in rows}
    names = values(rows, "function")
    lower = {
        (f, a): by[f, a]["average_cycles"] < by[f, "daba"]["average_cycles"] for f in names for a in ("two_stacks", "aba")
    }
    ratios = {
        (f, a): by[f, a]["deviation_cycles"] / max(by[f, "daba"]["deviation_cycles"], 1e-9)
        for f in names
        for a in ("two_stacks", "aba")
    }
    counted = min(rows[0]["window"], 2**10)
    worst = {a: next(r["worst_combines"] for r in rows if r["algorithm"] == a) for a in SWAGS}
    return [
        claim(
            "Two-Stacks and ABA have lower average latency than DABA",
            f"in {sum(lower.values())} of {len(lower)} cases"
            + ("" if all(lower.values()) else f"; not {', '.join(f'{f} {NAMES[a]}' for (f, a), x in lower.items() if not x)}"),
            lower.values(),
            "A flip walks the whole window at once, out of the near caches where states are large; DABA does the same work a "
            "little at a time, on what is near. And Two-Stacks keeps pairs, twice the bytes.",
        ),
        claim(
            "DABA's standard deviation is around 3 to 25 times lower",
            f"{min(ratios.values()):.1f} to {max(ratios.values()):.0f} times lower than that of Two-Stacks and ABA",
            [3 <= ratio <= 50 for ratio in ratios.values()],
            reasons(
                (min(ratios.values()) < 3, "Rounds of a few nanoseconds are at the resolution of the clock, which adds the same "
                 "deviation to all."),
                (max(ratios.values()) > 50, "Where it is lower still: of each round the least of several runs counts, which leaves "
                 "DABA almost nothing to deviate by, and a flip as long as it is."),
            ),
        ),
        claim(
            "counted: a round of DABA never takes more than 6 combines, one of Two-Stacks or ABA as many as the window is long",
            ", ".join(f"{NAMES[a]} {n:.0f}" for a, n in worst.items()) + " combines in the worst round of a window of "
            f"{counted:,}",
            [worst["daba"] <= 6, *(0.9 * counted <= worst[a] <= 2 * counted for a in ("two_stacks", "aba"))],
            "Counted with the library's algorithms as they are.",
        ),
    ]  # fmt: skip


def plots_table_2(rows: list[Row]) -> list[Plot]:
    common: dict[str, Any] = {"x": "function", "line": "algorithm", "kind": "bars", "y_log": 10, "names": NAMES}
    return [
        Plot(
            [
                Panel("average", y="average_cycles", y_label="cycles", **common),
                Panel("standard deviation", y="deviation_cycles", y_label="cycles", **common),
            ],
            "Table 2: latency of a round",
        )
    ]


TABLE_2 = Suite(
    name="daba-2015-table-2",
    source="daba-2015 Table 2",
    summary="average and deviation of the latency of a round, windows of 2^14; combines counted",
    run=lambda quick, progress: measure_table_2(QUICK_2 if quick else FULL_2, progress),
    tiny=lambda progress: measure_table_2(TINY, progress),
    views=views_table_2,
    plots=plots_table_2,
    claims=claims_table_2,
)
