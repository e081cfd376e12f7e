"""fiba-2019, section 5.1: the out-of-order distance (Figure 11) and window sharing (Figure 14).

Tangwongsan, Hirzel, Schneider: Optimal and General Out-of-Order Sliding-Window Aggregation, 2019. Rounds of evict, insert, query
over a window of n, every insert d places from the young end (tree_rounds.py).
"""

from dataclasses import dataclass
from itertools import pairwise

from slidewise.bench.papers import trees
from slidewise.bench.papers.curves import is_logarithmic, log_fit, span
from slidewise.bench.papers.trees import CLASSIC, FINGERS, TWO, Tree, by, middle, millions
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, picked, reasons, values

THREE = ("sum", "geomean", "bloom")

# ---- Figure 11 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distance:
    operators: tuple[str, ...]
    n: int
    step: int
    """Between powers of two that are measured."""
    seconds: float
    shapes: tuple[Tree, ...] = (*FINGERS, *CLASSIC)


FULL_11 = Distance(THREE, 2**22, 1, 0.05)
QUICK_11 = Distance(("sum", "bloom"), 2**16, 4, 0.01, TWO)
TINY_11 = Distance(("sum",), 2**10, 3, 0.001, TWO)


def distances(n: int, step: int) -> list[int]:
    powers = range(0, n.bit_length() - 1, step)
    return [0, *(2**p for p in powers if 2**p <= n // 4), n // 4, n // 2, n] if n > 4 else [0, n]


def measure_11(sizes: Distance, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    counts: dict[tuple, float] = {}
    for name in sizes.operators:
        n = trees.window_of(name, sizes.n)
        for tree in sizes.shapes:
            for d in dict.fromkeys(distances(n, sizes.step)):
                progress(f"{name}, {tree.name}, distance {d:,}")
                if (tree, n, d) not in counts:
                    counts[tree, n, d] = trees.combines_a_round(trees.counted(tree, n, d).run)
                rate = trees.rounds_a_second(trees.filled(name, tree, n, d).run, sizes.seconds)
                told = {"throughput": rate, "combines": counts[tree, n, d]}
                rows.append({"operator": name, "algorithm": tree.name, "n": n, "d": d, **told})
    return rows


def views_11(rows: list[Row]) -> list[View]:
    def shown(name: str) -> View:
        return View(
            f"{name}: million rounds a second", "algorithm", "d", "throughput", (("operator", name),), "max", millions
        )

    first = (("operator", rows[0]["operator"]),)
    count = View("combines a round, counted", "algorithm", "d", "combines", first, "min", "{:.1f}".format)
    return [*map(shown, values(rows, "operator")), count]


def plots_11(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f"{name}, n = 2^{picked(rows, (('operator', name),))[0]['n'].bit_length() - 1}",
            "at",
            "throughput",
            "algorithm",
            (("operator", name),),
            x_label="out-of-order distance d",
            y_label="million rounds a second",
            x_log=2,
            times=1e-6,
        )
        for name in values(rows, "operator")
    ]
    count = Panel(
        "combines a round (counted)",
        "at",
        "combines",
        "algorithm",
        (("operator", rows[0]["operator"]),),
        x_label="out-of-order distance d",
        y_label="combines",
        x_log=2,
    )
    return [Plot([*panels, count], "Figure 11: out-of-order distance", across=2)]


def with_places(rows: list[Row], key: str = "d") -> list[Row]:
    """Where a point stands on a logarithmic axis: 0 has its place left of 1."""
    for row in rows:
        row["at"] = row[key] if row[key] else 0.5
    return rows


SAID = {"sum": 3.4, "geomean": 2.5, "bloom": 4.9}
"""By how much the best finger tree outperforms the same tree without fingers at the smallest distances."""


def claims_11(rows: list[Row]) -> list[Claim]:
    found = by(rows, "operator", "algorithm", "d")
    names, arities = values(rows, "operator"), sorted({int(a[-1]) for a in values(rows, "algorithm")})

    def line(name: str, algorithm: str, column: str) -> dict[int, float]:
        return {d: row[column] for (o, a, d), row in found.items() if (o, a) == (name, algorithm)}

    ends = {name: max(line(name, rows[0]["algorithm"], "throughput")) for name in names}
    flat = {}
    for name in names:
        for arity in arities:
            rates = [r for d, r in line(name, f"bclassic{arity}", "throughput").items() if d < ends[name] // 2]
            flat[name, arity] = max(rates) / min(rates)
    gains = {}
    for name in names:
        best = max(arities, key=lambda arity: found[name, f"bfinger{arity}", 0]["throughput"])
        gains[name] = found[name, f"bfinger{best}", 0]["throughput"] / found[name, f"bclassic{best}", 0]["throughput"]
    return [
        claim(
            "the classic B-tree's throughput is mostly unaffected by the distance",
            f"its fastest distance below n / 2 is {min(flat.values()):.2f} to {max(flat.values()):.2f} times as "
            f"fast as its slowest",
            [ratio < 1.5 for ratio in flat.values()],
            "Where an insert and the evict share their nodes, or follow the last insert's path, the tree's rows "
            "are in the cache.",
        ),
        claim(
            "at the smallest distances the best finger B-tree outperforms the corresponding classic one by 3.4 "
            "times for sum, 2.5 for "
            "geomean, 4.9 for bloom",
            ", ".join(f"{name} {gain:.1f} times" for name, gain in gains.items()),
            [gain >= 0.9 * SAID[name] for name, gain in gains.items()],
            "The classic tree here is the same compiled code without fingers: nodes that keep their aggregates "
            "in the parent's row "
            "make its way to the root cheaper than the paper's pointers.",
        ),
        _logarithm(rows, arities),
        _steps(rows, arities),
        _uptick(found, names, arities, ends),
        _best_arity(rows, names, arities),
    ]


def _logarithm(rows: list[Row], arities: list[int]) -> Claim:
    """Both what is counted and what is timed: a straight line that rises over log d."""
    told, tests, timed, counted = [], [], [], []
    for arity in arities:
        for name in values(rows, "operator"):
            one = picked(rows, (("operator", name), ("algorithm", f"bfinger{arity}")))
            mine = [r for r in one if 1 <= r["d"] <= r["n"] // 16]
            if len(mine) < 3:
                continue
            xs, ys = [r["d"] for r in mine], [1 / r["throughput"] for r in mine]
            timed.append(log_fit(xs, ys)[2])
            tests.append(is_logarithmic(xs, ys))
            if name == rows[0]["operator"]:
                counts = [r["combines"] for r in mine]
                _, slope, fit = log_fit(xs, counts)
                told.append(f"bfinger{arity} {slope:.2f} combines more for each doubling (R2 {fit:.2f})")
                counted.append(is_logarithmic(xs, counts))
    return claim(
        "for larger d, finger B-trees follow a log d trend",
        f"counted: {', '.join(told)}; the time of a round is a straight line over log d with an R2 of {min(timed):.2f} to "
        f"{max(timed):.2f}"
        if told
        else "",
        tests + counted,
        reasons(
            (all(counted), "What is counted does."),
            (not all(tests), "Times are those of single points, and which levels of the tree are in the cache moves them more."),
            (not all(counted), "Few distances were measured."),
        ),
    )


def _steps(rows: list[Row], arities: list[int]) -> Claim:
    """By what is counted, where every doubling of d was measured: how many of them pass until a round takes a tenth more."""
    lengths: dict[int, float] = {}
    for arity in arities:
        one = picked(rows, (("operator", rows[0]["operator"]), ("algorithm", f"bfinger{arity}")))
        mine = {r["d"]: r["combines"] for r in one if 1 <= r["d"] <= r["n"] // 4}
        rises = [mine[2 * d] > 1.1 * count for d, count in mine.items() if 2 * d in mine]
        if len(rises) >= 8:
            lengths[arity] = len(rises) / max(1, sum(rises))
    several = len(lengths) > 1
    return claim(
        "the curves of finger B-trees are step-like: a larger minimum arity makes longer sections of the same height",
        "counted: a round takes a tenth more combines after each "
        + ", ".join(f"{length:.1f} doublings of d (bfinger{arity})" for arity, length in lengths.items())
        if several
        else "",
        [length >= 1.5 for length in lengths.values()] + [a < b for a, b in pairwise(lengths.values())] if several else [],
        "Counted with the library's trees as they are: how full the nodes on the way are blurs the steps.",
    )


def _uptick(found: dict, names: list[str], arities: list[int], ends: dict[str, int]) -> Claim:
    kinds = [f"b{kind}{arity}" for kind in ("finger", "classic") for arity in arities]
    gains = {
        (name, a): found[name, a, ends[name]]["throughput"] / found[name, a, ends[name] // 2]["throughput"]
        for name in names
        for a in kinds
    }
    none = [key for key, gain in gains.items() if gain <= 1.1]
    return claim(
        "all variants have an uptick when d = n: insert and evict are both at the old end, and nothing is restructured",
        f"{span(gains.values(), '.1f')} times as fast as at d = n / 2"
        + (f"; not: {', '.join(f'{name} {a}' for name, a in none)}" if none else ""),
        [gain > 1.1 for gain in gains.values()],
        reasons(
            (any("classic" in a for _, a in none), "Without fingers an insert at the old end still walks and repairs the whole "
             "height of the tree."),
            (any("finger" in a for _, a in none), "With fingers both ends are near, and n / 2 may be in the cache."),
        ),
    )  # fmt: skip


def _best_arity(rows: list[Row], names: list[str], arities: list[int]) -> Claim:
    best = {}
    for name in names:
        rates = {
            arity: middle(r["throughput"] for r in picked(rows, (("operator", name), ("algorithm", f"bfinger{arity}"))))
            for arity in arities
        }
        best[name] = max(arities, key=rates.__getitem__)
    tests = [best[name] == min(arities) if name == "bloom" else best[name] > min(arities) for name in names]
    return claim(
        "expensive operators want a small minimum arity (fewer partials combined in a node), cheap ones a larger one",
        ", ".join(f"{name}: {arity}" for name, arity in best.items()) + " is the fastest arity over all distances",
        tests if len(arities) > 1 else [],
        reasons(
            (best.get("bloom") != min(arities), "Bitsets of 2^14 bits combine at memory speed here, and a tree of arity 2 has half "
             "as many entries again in inner nodes."),
            (any(best[name] == min(arities) for name in names if name != "bloom"), "Small nodes are a cache line or two, and "
             "repaired in a few instructions."),
        ),
    )  # fmt: skip


FIG_11 = Suite(
    name="fiba-2019-fig-11",
    source="fiba-2019 Figure 11",
    summary="throughput over the out-of-order distance; combines counted",
    run=lambda quick, progress: with_places(measure_11(QUICK_11 if quick else FULL_11, progress)),
    tiny=lambda progress: with_places(measure_11(TINY_11, progress)),
    views=views_11,
    plots=plots_11,
    claims=claims_11,
    stands_in="Bloom's window is 2^17, not 2^22: its states are 2 KB each.",
)


# ---- Figure 14 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sharing:
    operators: tuple[str, ...]
    n: int
    step: int
    seconds: float
    arities: tuple[int, ...] = (4, 8)


FULL_14 = Sharing(THREE, 2**22, 4, 0.05)
QUICK_14 = Sharing(("sum", "bloom"), 2**16, 4, 0.01, (4,))
TINY_14 = Sharing(("sum",), 2**9, 4, 0.001, (4,))


def shared(made: trees.Rounds, small: int, twin: bool):
    """A function of rounds: two trees, or a range of one. The small window holds small / 2 high times and the youngest low ones."""
    d = small // 2
    if twin:
        made.fill(1, small, d)
    return lambda rounds: made.run_shared(rounds, 1 + twin, small - d - 1)


def measure_14(sizes: Sharing, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    counts: dict[tuple, float] = {}
    for name in sizes.operators:
        n = trees.window_of(name, sizes.n)
        for tree in map(Tree, sizes.arities):
            for twin in (True, False):
                for small in dict.fromkeys([*(2**p for p in range(0, n.bit_length(), sizes.step)), n]):
                    kind = "twin" if twin else "range"
                    progress(f"{name}, {tree.name}_{kind}, small window {small:,}")
                    key = tree, n, small, twin
                    if key not in counts:
                        counts[key] = trees.combines_a_round(
                            shared(trees.counted(tree, n, small // 2, 1 + twin), small, twin)
                        )
                    made = trees.filled(name, tree, n, small // 2, 1 + twin)
                    rate = trees.rounds_a_second(shared(made, small, twin), sizes.seconds)
                    told = {"throughput": rate, "combines": counts[key], "bytes": made.forest.bytes_used}
                    rows.append({
                        "operator": name, "algorithm": f"{tree.name}_{kind}", "tree": tree.name, "kind": kind, "n": n,
                        "small": small, **told,
                    })  # fmt: skip
    return rows


def views_14(rows: list[Row]) -> list[View]:
    def shown(name: str) -> View:
        only = (("operator", name),)
        return View(f"{name}: million rounds a second", "algorithm", "small", "throughput", only, "max", millions)

    first = (("operator", rows[0]["operator"]),)
    count = View("combines a round, counted", "algorithm", "small", "combines", first, "min", "{:.1f}".format)
    return [*map(shown, values(rows, "operator")), count]


def plots_14(rows: list[Row]) -> list[Plot]:
    def panel(title: str, y: str, label: str, name: str, times: float = 1.0) -> Panel:
        return Panel(
            title, "small", y, "algorithm", (("operator", name),), x_label="small window; d is half of it", y_label=label, x_log=2,
            times=times,
        )  # fmt: skip

    names = values(rows, "operator")
    rates = [panel(name, "throughput", "million rounds a second", name, 1e-6) for name in names]
    more = [
        panel("combines a round (counted)", "combines", "combines", names[0]),
        panel(f"{names[0]}: memory", "bytes", "MB", names[0], 1e-6),
    ]
    return [Plot([*rates, *more], "Figure 14: window sharing", across=2 if len(rates) % 2 == 0 else 3)]


def claims_14(rows: list[Row]) -> list[Claim]:
    found = by(rows, "operator", "tree", "small", "kind")
    keys = list(dict.fromkeys((o, t, s) for o, t, s, _ in found))

    def ratio(column: str) -> list[float]:
        return [found[*key, "range"][column] / found[*key, "twin"][column] for key in keys]

    speed, space = ratio("throughput"), ratio("bytes")
    faster, big = sum(r > 1 for r in speed), rows[0]["n"]
    return [
        claim(
            "window sharing does not consistently improve throughput",
            f"one tree with a range query is {min(speed):.2f} to {max(speed):.2f} times as fast as two trees, "
            f"faster at {faster} of "
            f"{len(speed)} points",
            [faster <= 0.75 * len(speed)],
            reasons(
                (True, "A second tree costs more than the range query, which starts at the finger,"),
                (faster == len(speed), "at every point."),
                (faster < len(speed), "at nearly every point."),
            ),
        ),
        claim(
            "window sharing is slightly more expensive in practice",
            f"{middle(speed):.2f} times as fast in the geometric mean",
            [0.75 <= middle(speed) < 1],
            reasons(
                (middle(speed) >= 1, "Not here: a second tree costs more than a range query on the first."),
                (middle(speed) < 0.75, "More than slightly: a range combines at every level on its way."),
            ),
        ),
        claim(
            "both stay in the same ballpark",
            f"{middle(speed):.2f} times in the geometric mean, within a factor of two at "
            f"{sum(0.5 <= r <= 2 for r in speed)} of {len(speed)} points",
            [0.5 <= r <= 2 for r in speed],
            "A range query ends far from both spines for middling windows and combines at every level there, which shows most "
            "where a combine is dear or a node wide.",
        ),
        claim(
            "its primary benefits are space and windows of any size on the fly",
            f"one tree takes {min(space):.2f} to {max(space):.2f} of the memory of two",
            [r < 1 for (_, _, small), r in zip(keys, space) if small > 2**8] + [r <= 1.01 for r in space]
            + [r < 0.6 for (_, _, small), r in zip(keys, space) if small == big],
            "A small second tree takes a node or two, and arenas grow in steps.",
        ),
    ]  # fmt: skip


FIG_14 = Suite(
    name="fiba-2019-fig-14",
    source="fiba-2019 Figure 14",
    summary="two windows: two trees, or a range of one; throughput, memory, combines counted",
    run=lambda quick, progress: measure_14(QUICK_14 if quick else FULL_14, progress),
    tiny=lambda progress: measure_14(TINY_14, progress),
    views=views_14,
    plots=plots_14,
    claims=claims_14,
    stands_in=FIG_11.stands_in,
)
