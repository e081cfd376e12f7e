"""fiba-2019, section 5.1: the latency of single rounds (Figure 12), and data in order (Figure 13)."""

from dataclasses import dataclass

import slidewise.operators as library
from slidewise.bench.papers import rounds as in_order
from slidewise.bench.papers import trees
from slidewise.bench.papers.curves import is_logarithmic, log_fit
from slidewise.bench.papers.fiba_2019 import FIG_11, THREE
from slidewise.bench.papers.trees import CLASSIC, FINGERS, TWO, Tree, by, millions
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values

# ---- Figure 12 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latency:
    operators: tuple[str, ...]
    n: int
    rounds: int
    repeats: int
    shapes: tuple[Tree, ...] = (*CLASSIC, *FINGERS)


FULL_12 = Latency(THREE, 2**22, 2**16, 3)
QUICK_12 = Latency(("sum", "bloom"), 2**16, 2**14, 2, TWO)
TINY_12 = Latency(("sum",), 2**10, 2**8, 2, TWO)


def measure_12(sizes: Latency, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.operators:
        n = trees.window_of(name, sizes.n)
        for d in (0, n // 4):
            for tree in sizes.shapes:
                progress(f"{name}, {tree.name}, distance {d:,}")
                made = trees.filled(name, tree, n, d)
                ns = trees.latencies(made, lambda one, ticks: one.run(len(ticks), ticks), sizes.rounds, sizes.repeats)
                rows.append({"operator": name, "algorithm": tree.name, "n": n, "d": d, **trees.spread(ns[1:])})
    return rows


def views_12(rows: list[Row]) -> list[View]:
    found = []
    for far in (False, True):
        for name in values(rows, "operator"):
            d = max(r["d"] for r in rows if r["operator"] == name) if far else 0
            only = (("operator", name), ("d", d))
            for column, what in (("p50_ns", "median round"), ("p99_9_ns", "99.9 % of the rounds within")):
                found.append(View(f"{name}, d = {d:,}: {what}", "operator", "algorithm", column, only, form=trees.time))
    return found


def plots_12(rows: list[Row]) -> list[Plot]:
    panels = []
    for far in (False, True):
        for name in values(rows, "operator"):
            n, d = max((r["n"], r["d"]) for r in rows if r["operator"] == name)
            power = n.bit_length() - 1
            title = f"{name}, n = 2^{power}, d = " + (f"2^{d.bit_length() - 1}" if far else "0")
            panels.append(trees.violin_panel(title, (("operator", name), ("d", d if far else 0))))
    return [Plot(panels, "Figure 12: latency of a round", across=len(panels) // 2)]


def claims_12(rows: list[Row]) -> list[Claim]:
    found = by(rows, "operator", "algorithm", "d")
    names, arities = values(rows, "operator"), sorted({int(a[-1]) for a in values(rows, "algorithm")})
    far = {name: max(d for o, _, d in found if o == name) for name in names}

    def ratio(name: str, arity: int, d: int, column: str) -> float:
        return found[name, f"bclassic{arity}", d][column] / found[name, f"bfinger{arity}", d][column]

    cheap = [(name, arity) for name in names if name != "bloom" for arity in arities]
    classic = [found[name, f"bclassic{arity}", 0]["p50_ns"] for name, arity in cheap]
    shortest = [found[name, f"bfinger{arity}", 0]["min_ns"] for name, arity in cheap]
    worst = [ratio(name, arity, 0, column) for name, arity in cheap for column in ("p99_9_ns", "max_ns")]
    median = [ratio(name, arity, 0, "p50_ns") for name, arity in cheap]
    least = [ratio(name, arity, 0, "min_ns") for name, arity in cheap]
    late = [ratio(name, arity, far[name], column) for name, arity in cheap for column in ("p50_ns", "p99_9_ns")]
    bloom = [ratio("bloom", arity, 0, column) for column in ("p50_ns", "p99_9_ns") for arity in arities if "bloom" in names]
    far_bloom = [
        ratio("bloom", 2, far["bloom"], c)
        for c in ("min_ns", "p50_ns", "p99_9_ns")
        if "bloom" in names and 2 in arities
    ]
    curious = []
    if "bloom" in names and len(arities) == 3:
        curious = [found["bloom", f"bfinger{arity}", far["bloom"]]["p50_ns"] for arity in arities]

    mean = {
        (name, arity, d): ratio(name, arity, d, "mean_ns") for name in names for arity in arities for d in (0, far[name])
    }
    behind = [f"{name}, arity {arity}, d = {d:,}" for (name, arity, d), r in mean.items() if r <= 1]
    observable = {
        name: [found[name, f"bfinger{arity}", far[name]]["p50_ns"] for arity in arities]
        for name in names
        if name != "bloom" and len(arities) == 3
    }

    def span(ratios: list[float]) -> str:
        return f"{min(ratios):.1f} to {max(ratios):.1f} times" if ratios else ""

    return [
        claim(
            "fingers reduce the average latency",
            f"the classic tree's mean is {span(list(mean.values()))} the finger tree's"
            + (f"; behind at {'; '.join(behind)}" if behind else ""),
            [r > 1 for r in mean.values()],
            reasons(
                (any(r <= 1 for (_, _, d), r in mean.items() if d), "At a quarter of the window both repair nearly the whole "
                 "height, and fingers have two spines to keep beside it."),
                (any(r <= 1 for (_, _, d), r in mean.items() if not d), "In order, a mean holds the rare rounds that restructure "
                 "or that the machine interrupted."),
            ),
        ),
        claim(
            "d = 0, sum and geomean: the worst cases of classic and finger trees are similar",
            f"the classic tree's 99.9th percentile and longest round are {span(worst)} the finger tree's",
            [1 / 2 < r < 2 for r in worst],
            reasons(
                (max(worst) >= 2, "Of a thousand in-order rounds few restructure anything: the finger tree keeps its advantage "
                 "beyond the 99.9th percentile."),
                (min(worst) <= 1 / 2, "The longest round of all is one, and what the machine did in it."),
            ),
        ),
        claim(
            "d = 0, sum and geomean: minimum and median are orders of magnitude better with fingers",
            f"the classic tree's median is {span(median)} the finger tree's, its minimum {span(least)}",
            [r >= 10 for r in [*median, *least]],
            reasons(
                (min(median) > 1, "Fingers are ahead, by less than that:"),
                (True, f"a classic round takes {trees.time(min(classic))} to {trees.time(max(classic))} in the median here, as "
                 "nothing is allocated and the top of the tree stays in the cache."),
                (min(shortest) <= 1, "One nanosecond is the least that is told of a round."),
            ),
        ),
        claim(
            "d = 0, bloom: finger trees have significantly lower latency, as they repair fewer partials",
            f"the classic tree's median and 99.9th percentile are {span(bloom)} the finger tree's" if bloom else "",
            [r > 1.5 for r in bloom],
            "A filter is 2 KB: the one round in a thousand that restructures moves as many of them with fingers as without.",
        ),
        claim(
            "d = n / 4, sum and geomean: both have similar latency",
            f"the classic tree's median and 99.9th percentile are {span(late)} the finger tree's",
            [1 / 2 < r < 2 for r in late],
            reasons(
                (max(late) >= 2, "Fingers still save the levels between d and n, and the aggregates of both spines."),
                (min(late) <= 1 / 2, "Where the classic tree is ahead, it has no spines to keep."),
            ),
        ),
        claim(
            "d = n / 4, bloom, minimum arity 2: minimum, median and 99.9 % are orders of magnitude lower with fingers",
            f"{', '.join(f'{r:.2f}' for r in far_bloom)} times lower" if far_bloom else "",
            [r >= 10 for r in far_bloom],
            "An insert at a quarter of the window repairs nearly as many partials with fingers as without: "
            "O(log d) and O(log n) "
            "differ by two levels there. Orders of magnitude do not follow from the bounds either.",
        ),
        claim(
            "d = n / 4, bloom with fingers: min-arity 2 has the lowest latency, 4 is worse, 8 is better again",
            "medians " + ", ".join(f"{arity}: {trees.time(ns)}" for arity, ns in zip(arities, curious)) if curious else "",
            [curious[0] < curious[2] < curious[1]] if curious else [],
            "The paper calls it curious, a matter of window size, arity and distance; Bloom's window is another one here, and "
            "trees of arity 2 spread its filters over the most nodes.",
        ),
        claim(
            "d = n / 4, sum and geomean with fingers: the same is still observable",
            "; ".join(
                f"{name}: " + ", ".join(f"{arity} {trees.time(ns)}" for arity, ns in zip(arities, found))
                for name, found in observable.items()
            ),
            [found[0] < found[2] < found[1] for found in observable.values()],
            "As for bloom: how often a repair goes to the root and down a spine again depends on the very window and arity; and a "
            "tree of arity 2 is the highest.",
        ),
    ]  # fmt: skip


FIG_12 = Suite(
    name="fiba-2019-fig-12",
    source="fiba-2019 Figure 12",
    summary="latency of single rounds, in order and a quarter of the window out of order",
    run=lambda quick, progress: measure_12(QUICK_12 if quick else FULL_12, progress),
    tiny=lambda progress: measure_12(TINY_12, progress),
    views=views_12,
    plots=plots_12,
    claims=claims_12,
    stands_in=f"{FIG_11.stands_in} Nanoseconds, of each round the least of several runs.",
)


# ---- Figure 13 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fifo:
    operators: tuple[str, ...]
    powers: tuple[int, ...]
    seconds: float
    shapes: tuple[Tree, ...] = (*FINGERS, *CLASSIC)
    queues: tuple[str, ...] = ("two_stacks", "daba", "flatfat")


FULL_13 = Fifo(THREE, (0, 4, 8, 12, 16, 20, 22), 0.05)
QUICK_13 = Fifo(("sum", "bloom"), (0, 4, 8, 12, 16), 0.01, TWO)
TINY_13 = Fifo(("sum",), (0, 6, 9), 0.001, TWO, ("two_stacks", "daba"))

NAMES = {"two_stacks": "TwoStacks", "daba": "DABA", "flatfat": "Reactive (flatfat)"}
COUNTED = 10
"""The in-order algorithms are counted up to this power of two, interpreted; the trees everywhere."""


def measure_13(sizes: Fifo, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    counts: dict[tuple[str, int], float | None] = {}  # the same for every operator
    for name in sizes.operators:
        op, X = trees.operator(name), trees.column(name)
        for power in sizes.powers:
            if 2**power > trees.window_of(name, 2**power):
                continue
            for queue in sizes.queues:
                progress(f"{name}, {queue}, window 2^{power}")
                ns = in_order.filled(queue, op, 2**power, X).nanoseconds(sizes.seconds)
                if (queue, power) not in counts:
                    found = in_order.combines(queue, library.max(), 2**power).average if power <= COUNTED else None
                    counts[queue, power] = found
                told = {"throughput": None if ns is None else 1e9 / ns, "combines": counts[queue, power]}
                rows.append({"operator": name, "algorithm": queue, "window": 2**power, **told})
            for tree in sizes.shapes:
                progress(f"{name}, {tree.name}, window 2^{power}")
                if (tree.name, power) not in counts:
                    counts[tree.name, power] = trees.combines_a_round(trees.counted(tree, 2**power, 0).run)
                rate = trees.rounds_a_second(trees.filled(name, tree, 2**power, 0).run, sizes.seconds)
                told = {"throughput": rate, "combines": counts[tree.name, power]}
                rows.append({"operator": name, "algorithm": tree.name, "window": 2**power, **told})
    return rows


def views_13(rows: list[Row]) -> list[View]:
    def shown(name: str) -> View:
        only = (("operator", name),)
        return View(f"{name}: million rounds a second", "algorithm", "window", "throughput", only, "max", millions)

    first = (("operator", rows[0]["operator"]),)
    count = View("combines a round, counted", "algorithm", "window", "combines", first, "min", "{:.1f}".format)
    return [*map(shown, values(rows, "operator")), count]


def plots_13(rows: list[Row]) -> list[Plot]:
    names = values(rows, "operator")
    panels = [
        Panel(
            name, "window", "throughput", "algorithm", (("operator", name),), x_label="window size n",
            y_label="million rounds a second", x_log=2, times=1e-6, names=NAMES,
        )
        for name in names
    ]  # fmt: skip
    count = Panel(
        "combines a round (counted)", "window", "combines", "algorithm", (("operator", names[0]),), x_label="window size n",
        y_label="combines", x_log=2, names=NAMES,
    )  # fmt: skip
    return [Plot([*panels, count], "Figure 13: data in order", across=2)]


def claims_13(rows: list[Row]) -> list[Claim]:
    rate = {(r["operator"], r["algorithm"], r["window"]): r["throughput"] for r in rows if r["throughput"] is not None}
    count = {(r["algorithm"], r["window"]): r["combines"] for r in rows if r["combines"] is not None}
    names, kinds = values(rows, "operator"), values(rows, "algorithm")
    fingers, classic = [a for a in kinds if "finger" in a], [a for a in kinds if "classic" in a]
    windows = {name: sorted(w for o, a, w in rate if (o, a) == (name, "daba")) for name in names}
    points = [(name, w) for name in names for w in windows[name]]
    first = [all(rate[o, "two_stacks", w] >= rate[o, a, w] for a in kinds if (o, a, w) in rate) for o, w in points]
    second = [
        all(rate[o, "daba", w] >= rate[o, a, w] for a in kinds if a != "two_stacks" and (o, a, w) in rate)
        for o, w in points
    ]
    large = [w for w in windows[names[0]] if w >= 2**6]
    steady = {a: max(count[a, w] for w in large) / min(count[a, w] for w in large) for a in fingers if large}
    kept = [
        min(rates) / max(rates)
        for name in names
        for a in fingers
        if (rates := [rate[name, a, w] for w in windows[name] if w >= 2**6])
    ]
    special = [
        max(rate[o, a, w] for a in ("two_stacks", "daba")) > max(rate[o, a, w] for a in fingers) for o, w in points if w >= 2**6
    ]
    off = {}
    for name in names:
        below = [1 - max(rate[name, a, w] for a in fingers) / rate[name, "daba", w] for w in windows[name] if w >= 2**6]
        off[name] = sum(below) / max(1, len(below))
    rising = {a: log_fit(large, [count[a, w] for w in large])[2] for a in classic if len(large) > 2}

    def rises(name: str, a: str) -> bool | None:
        """Whether its time is logarithmic in the window; None where there is too little to say."""
        mine = [w for w in windows[name] if w >= 2**6 and (name, a, w) in rate]
        return is_logarithmic(mine, [1 / rate[name, a, w] for w in mine], 0.8) if len(mine) > 2 else None

    timed = {(o, a): found for o in names for a in classic if (found := rises(o, a)) is not None}
    reactive = {o: found for o in names if "flatfat" in kinds and (found := rises(o, "flatfat")) is not None}
    dear, plain = [], []
    if "flatfat" in kinds:
        ahead = {
            (o, w, kind): rate[o, "flatfat", w] > max(rate[o, a, w] for a in kind)
            for o, w in points
            if w >= 2**6
            for kind in (tuple(classic), tuple(fingers))
        }
        dear = [test for (o, _, _), test in ahead.items() if o == "bloom"]
        plain = [not test for (o, _, _), test in ahead.items() if o != "bloom"]
    return [
        claim(
            "TwoStacks has the best throughput for most window sizes, DABA is generally the second best",
            f"TwoStacks is the best at {sum(first)} of {len(first)} points, DABA the best of the others at {sum(second)}",
            [sum(first) > len(first) / 2, sum(second) > len(second) / 2],
            "A round of either is a few nanoseconds here: which is ahead is a matter of what stays in "
            "registers, not of combines "
            "(3 against 4 a round, counted).",
        ),
        claim(
            "finger B-trees have constant performance as the window grows",
            "counted from 2^6 on: "
            + ", ".join(f"{a} {count[a, large[0]]:.1f} to {count[a, large[-1]]:.1f} combines" for a in fingers)
            + f"; the least throughput is {min(kept):.2f} to {max(kept):.2f} of the greatest"
            if large
            else "",
            [r < 1.25 for r in steady.values()] + [r > 0.5 for r in kept],
            reasons(
                (all(r < 1.25 for r in steady.values()), "In combines it is."),
                (True, "Large windows come from memory, of 2 KB for each Bloom filter."),
            ),
        ),
        claim(
            "the best finger B-tree stays within 30 % of DABA for sum and geomean, about 60 % off for bloom",
            "off by " + ", ".join(f"{name} {share:.0%}" for name, share in off.items()) + " on average from 2^6 on",
            [0.4 <= share <= 0.75 if name == "bloom" else share <= 0.3 for name, share in off.items()],
            reasons(
                (any(share > 0.3 for name, share in off.items() if name != "bloom"), "The in-order algorithms here run in "
                 "registers, where the paper's also paid for deques; the tree has its nodes "
                 "to keep in any case."),
                (off.get("bloom", 0.6) < 0.4, "For bloom a tree is nearer than that: its fingers stay where they are, DABA reads "
                 "and writes at both ends of a ring."),
                (off.get("bloom", 0.6) > 0.75, "For bloom every partial of a node is 2 KB more to read."),
            ),
        ),
        claim(
            "algorithms for data in order consistently outperform finger B-trees",
            f"the better of TwoStacks and DABA is ahead of the best finger tree at {sum(special)} of {len(special)} points from "
            "2^6 on" if special else "",
            special,
            "Large rings of states are read and written twice in a round, at both ends; a tree's fingers stay where they are.",
        ),
        claim(
            "classic B-trees clearly demonstrate O(log n)",
            "counted: "
            + ", ".join(
                f"{a} {count[a, large[0]]:.0f} to {count[a, large[-1]]:.0f} combines from 2^6 on, a straight line over log n with "
                f"an R2 of {fit:.2f}" for a, fit in rising.items()
            ) + f"; so is the time at {sum(timed.values())} of {len(timed)} trees and operators" if rising else "",
            [is_logarithmic(large, [count[a, w] for w in large], 0.9) for a in rising] + list(timed.values()),
            reasons(
                (not all(timed.values()), "Of the time, what is in the cache moves some lines more than the height does."),
                (True, "Counted, the whole height of the tree is repaired."),
            ),
        ),
        claim(
            "Reactive demonstrates O(log n) too, obvious only with bloom: for sum and geomean the fixed costs dominate",
            "from 2^6 on the time is a rising straight line over log n: "
            + ", ".join(f"{o} {'yes' if found else 'no'}" for o, found in reactive.items()) if reactive else "",
            [found == (o == "bloom") for o, found in reactive.items()],
            "Nothing but the tree takes time here, so that its height shows for every operator; and large windows are out of the "
            "caches, which bends the line.",
        ),
        claim(
            "for bloom, Reactive outperforms B-tree based SWAGs: it is a tree of arity 2 and combines less a node",
            f"ahead of the best classic tree at {sum(dear[::2])} of {len(dear[::2])} windows from 2^6 on, of the best finger tree "
            f"at {sum(dear[1::2])}" if dear else "",
            dear,
            reasons(
                (dear and all(dear[::2]), "Of those that are O(log n) it is the best, as said."),
                (dear and not all(dear[::2]), "Wide nodes are fewer levels, and read one after the other."),
                (dear and not all(dear[1::2]), "A finger tree changes a constant number of nodes."),
            ),
        ),
        claim(
            "for sum and geomean it does not: what is computed to avoid pointers costs more than pointers",
            f"behind the best classic tree at {sum(plain[::2])} of {len(plain[::2])} windows from 2^6 on, behind the best finger "
            f"tree at {sum(plain[1::2])}" if plain else "",
            plain,
            "No tree here has pointers: the nodes of B-trees are rows of one array too, found by their number.",
        ),
    ]  # fmt: skip


FIG_13 = Suite(
    name="fiba-2019-fig-13",
    source="fiba-2019 Figure 13",
    summary="data in order: trees beside TwoStacks, DABA and Reactive; combines counted",
    run=lambda quick, progress: measure_13(QUICK_13 if quick else FULL_13, progress),
    tiny=lambda progress: measure_13(TINY_13, progress),
    views=views_13,
    plots=plots_13,
    claims=claims_13,
    stands_in="Reactive is flatfat; Bloom's windows end at 2^17: its states are 2 KB each.",
)
