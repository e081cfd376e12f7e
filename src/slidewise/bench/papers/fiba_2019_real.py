"""Real data: fiba-2019 Figure 15 (time windows of 1/4 day to 32 days) and bulk-fiba-2023 Figures 15 and 16.

The papers' bike rides are not at hand: flights (bench/data.py) are real, and rides are drawn in the shape that the papers report.
fiba-2019 evicts one by one; bulk-fiba-2023 in bulk, and inserts one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from slidewise.algorithms.fiba_forest import Forest
from slidewise.bench import data
from slidewise.bench.fifo import OPERATORS
from slidewise.bench.papers import trees
from slidewise.bench.papers.trees import CLASSIC, FINGERS, FOUR, TWO, Tree, by, middle, millions
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values
from slidewise.bench.tally import combines
from slidewise.bench.timing import best_of
from slidewise.bench.tree_rounds import BATCH, run_times

STANDS_IN = (
    "The flights out of New York in 2013 (a third of a million, heard of when they land), and rides drawn in "
    "the shape that the "
    "papers report of the bike data. Bloom filters see a twentieth of the rides. One turn each: whole streams are long."
)


@dataclass(frozen=True)
class Real:
    operators: tuple[str, ...]
    rides: int
    days: tuple[float, ...]
    repeats: int
    flights: bool = True
    shapes: tuple[Tree, ...] = FOUR


THREE = ("sum", "geomean", "bloom")
WINDOWS = (0.25, 2, 8, 32)
FULL_15 = Real(THREE, data.RIDES, WINDOWS, 1, True, (*FINGERS, *CLASSIC))
QUICK_15 = Real(("sum", "bloom"), 200_000, (0.25, 2, 32), 1, True, TWO)
TINY_15 = Real(("sum",), 4_000, (0.25, 32), 1, False, TWO)
FULL_16 = Real(THREE, data.RIDES, WINDOWS, 1, True, (Tree(4), Tree(8)))
QUICK_16 = Real(("sum", "bloom"), 200_000, (0.25, 2, 32), 1, True, (Tree(4), Tree(8)))
TINY_16 = Real(("sum",), 4_000, (0.25, 32), 1, False, (Tree(4),))


COUNTED = 4
"""Combines are counted for trees of this arity: another loop to compile for each."""


@cache
def stream(kind: str, events: int) -> data.Stream:
    return data.flights() if kind == "flights" else data.bikes(events)


def source(kind: str, sizes: Real, name: str) -> data.Stream:
    return stream(kind, max(1000, sizes.rides // 20) if name == "bloom" else sizes.rides)


def seconds(op, tree: Tree, of: data.Stream, X: np.ndarray, window: int, bulk: bool, repeats: int) -> float:
    """A whole stream through a time window, from an empty tree on."""
    cuts = of.cuts(window)
    OUT, OK = op.result.alloc(BATCH), np.zeros(BATCH, np.uint8)

    def run(events: int) -> None:
        forest = Forest(op, 1, tree.min_arity, tree.fingers)
        run_times(forest, of.times[:events], (X[:events],), cuts[:events], bulk, OUT, OK)

    run(1)  # compiled now
    return best_of(repeats, lambda: run(len(of)))


def counted(tree: Tree, of: data.Stream, window: int, bulk: bool) -> float:
    """Combines an event."""
    made = combines(lambda: seconds(trees.counter(), tree, of, of.amounts, window, bulk, 1))
    return made / len(of)


def measure(sizes: Real, bulks: tuple[bool, ...], named: Callable[[Tree, bool], str], progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for kind in ("flights", "bikes")[0 if sizes.flights else 1 :]:
        for name in sizes.operators:
            op, of = trees.operator(name), source(kind, sizes, name)
            X = (of.places if name == "bloom" else of.amounts).astype(OPERATORS[name][1])
            for days in sizes.days:
                window = int(days * data.DAY)
                held = float(data.sizes_and_bulks(of, window)[0].mean())
                for tree in sizes.shapes:
                    for bulk in bulks:
                        progress(f"{kind}, {name}, {days} days, {named(tree, bulk)}")
                        took = seconds(op, tree, of, X, window, bulk, sizes.repeats)
                        some = name == sizes.operators[0] and tree.min_arity == COUNTED
                        made = counted(tree, of, window, bulk) if some else None
                        rows.append({
                            "data": kind, "operator": name, "algorithm": named(tree, bulk), "days": days, "events": len(of),
                            "mean_window": held, "throughput": len(of) / took, "combines": made,
                        })  # fmt: skip
    return rows


def views(rows: list[Row]) -> list[View]:
    found = []
    for kind in values(rows, "data"):
        for name in values(rows, "operator"):
            only = (("data", kind), ("operator", name))
            title = f"{kind}, {name}: million events a second, by days"
            found.append(View(title, "algorithm", "days", "throughput", only, "max", millions))
        only = (("data", kind), ("operator", rows[0]["operator"]))
        found.append(
            View(f"{kind}: combines an event, counted", "algorithm", "days", "combines", only, "min", "{:.2f}".format)
        )
    return found


def plots(title: str) -> Callable[[list[Row]], list[Plot]]:
    def drawn(rows: list[Row]) -> list[Plot]:
        panels = []
        for kind in values(rows, "data"):
            for name in values(rows, "operator"):
                panels.append(Panel(
                    f"{kind}, {name}", "days", "throughput", "algorithm", (("data", kind), ("operator", name)),
                    x_label="window, days", y_label="million events a second", x_log=2, times=1e-6,
                ))  # fmt: skip
        return [Plot(panels, title, across=len(values(rows, "operator")))]

    return drawn


# ---- fiba-2019 Figure 15 ---------------------------------------------------------------------------------------------

TOLD = {0.25: 11_000, 32: 991_000}
"""Entries in windows of so many days, in the paper."""


def claims_15(rows: list[Row]) -> list[Claim]:
    rate = {key: row["throughput"] for key, row in by(rows, "data", "operator", "days", "algorithm").items()}
    arities = sorted({int(a[-1]) for a in values(rows, "algorithm")})
    ratios = {
        (kind, name, days, a[-1]): r / rate[kind, name, days, f"bclassic{a[-1]}"]
        for (kind, name, days, a), r in rate.items()
        if "finger" in a
    }
    best: dict[str, int] = {}
    for name in values(rows, "operator"):
        means = {
            arity: middle(r for (_, o, _, a), r in rate.items() if o == name and a == f"bfinger{arity}")
            for arity in arities
        }
        best[name] = max(arities, key=means.__getitem__)
    fewer = [
        row["combines"] / other["combines"]
        for key, other in by(rows, "data", "operator", "days", "algorithm").items()
        if "finger" in key[3] and other["combines"]
        for row in [by(rows, "data", "operator", "days", "algorithm")[*key[:3], f"bclassic{key[3][-1]}"]]
    ]
    rides = [r for r in rows if r["data"] == "bikes" and r["operator"] == rows[0]["operator"]]
    windows = {r["days"]: r["mean_window"] for r in rides}
    scale = rides[0]["events"] / data.RIDES
    near = {days: windows[days] / (told * scale) for days, told in TOLD.items() if days in windows}
    behind = {key: r for key, r in ratios.items() if r <= 1}
    held = {(r["data"], r["operator"], r["days"]): r["mean_window"] for r in rows}
    smallest = bool(behind) and max(held[key[:3]] for key in behind) < 2 * min(held.values())
    return [
        claim(
            "finger B-trees consistently outperform their classic counterparts",
            f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f} times as fast; counted: {min(fewer):.1f} "
            f"to {max(fewer):.1f} times "
            "fewer combines",
            [r > 1 for r in ratios.values()] + [r > 1 for r in fewer],
            reasons(
                (behind, "Behind at " + ", ".join(f"{kind} {name} {days:g} days (arity {a})" for kind, name, days, a in behind)
                 + (": the smallest windows there are, whose low trees leave fingers little to save." if smallest
                    else ", and not in the smallest windows alone.")),
                (min(fewer, default=2) <= 1, "What comes far out of order is repaired all the way up, with fingers too."),
            ),
        ),
        claim(
            "trees of lower arity perform better with more expensive operators",
            ", ".join(f"{name}: {arity}" for name, arity in best.items()) + " is the fastest arity with fingers",
            [best["bloom"] < best[name] for name in best if name != "bloom"]
            if "bloom" in best and len(arities) > 1
            else [],
            "Bitsets of 2^14 bits combine at memory speed here, and small nodes are many: the levels they add may cost more than "
            "the combines they save.",
        ),
        claim(
            "windows hold about 11,000 elements for 1/4 day up to about 991,000 for 32 days",
            f"rides: {windows[min(windows)]:,.0f} for {min(windows):g} days, {windows[max(windows)]:,.0f} for {max(windows):g}, in "
            f"the mean over {rides[0]['events']:,} events"
            + ("" if scale == 1 else f": {' and '.join(f'{r:.2f}' for r in near.values())} times the paper's for as many rides"),
            [0.75 <= r <= 1.25 for r in near.values()],
            "The paper does not say what its figures are the mean of. Its 8 million rides of five months (153 days) are 13,000 in "
            "a quarter of a day and 1.7 million in 32 days; a mean over events is above that, as more of them come when the window "
            "is full, and below it while the first window fills.",
        ),
    ]  # fmt: skip


FIG_15 = Suite(
    name="fiba-2019-fig-15",
    source="fiba-2019 Figure 15",
    summary="real data: time windows of 1/4 day to 32 days; combines counted",
    run=lambda quick, progress: measure(
        QUICK_15 if quick else FULL_15, (False,), lambda tree, bulk: tree.name, progress
    ),
    tiny=lambda progress: measure(TINY_15, (False,), lambda tree, bulk: tree.name, progress),
    views=views,
    plots=plots("Figure 15: real data, time windows"),
    claims=claims_15,
    stands_in=STANDS_IN,
)


# ---- bulk-fiba-2023 Figure 16 ----------------------------------------------------------------------------------------


def _bulk_name(tree: Tree, bulk: bool) -> str:
    return f"{'b' if bulk else 'nb'}_fiba{tree.min_arity}"


def claims_16(rows: list[Row]) -> list[Claim]:
    found = by(rows, "data", "operator", "days", "algorithm")
    ratios, fewer = {}, []
    for (kind, name, days, a), row in found.items():
        if a.startswith("b_"):
            other = found[kind, name, days, f"n{a}"]
            ratios[kind, name, days, a] = row["throughput"] / other["throughput"]
            if row["combines"]:
                fewer.append(other["combines"] / row["combines"])
    told = {
        (kind, name): middle(r for (k, o, *_), r in ratios.items() if (k, o) == (kind, name))
        for kind, name, *_ in ratios
    }
    return [
        claim(
            "on real data, bulk evicts of varying m give b_fiba an advantage over nb_fiba",
            ", ".join(f"{kind} {name} {r:.2f} times" for (kind, name), r in told.items())
            + f" as fast in the geometric mean; counted: {min(fewer):.2f} to {max(fewer):.2f} times fewer combines",
            [r > 1 for r in told.values()] + [r >= 1 for r in fewer],
            "Most events push out one other or none: there is little for the few large bulks to save, and one of one is not free.",
        )
    ]


FIG_16 = Suite(
    name="bulk-fiba-2023-fig-16",
    source="bulk-fiba-2023 Figure 16",
    summary="real data: bulk evict against single evicts in time windows; combines counted",
    run=lambda quick, progress: measure(QUICK_16 if quick else FULL_16, (True, False), _bulk_name, progress),
    tiny=lambda progress: measure(TINY_16, (True, False), _bulk_name, progress),
    views=views,
    plots=plots("Figure 16: real data, window sizes, bulks and distances as they come"),
    claims=claims_16,
    stands_in=STANDS_IN,
)
