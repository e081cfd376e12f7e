"""bulk-fiba-2023, section 7.2: throughput over bulk sizes (Figures 11, 12) and over the distance (Figures 13, 14)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slidewise.bench.papers import trees
from slidewise.bench.papers.bulk_fiba_2023 import ALL, BLOOM
from slidewise.bench.papers.bulk_fiba_2023_rounds import TREES, Window
from slidewise.bench.papers.curves import span
from slidewise.bench.papers.fiba_2019 import with_places
from slidewise.bench.papers.trees import by, middle, millions
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values

THREE = ("sum", "geomean", "bloom")


@dataclass(frozen=True)
class Throughput:
    operators: tuple[str, ...]
    n: int
    ms: tuple[int, ...]
    ds: tuple[int, ...]
    seconds: float
    algorithms: tuple[str, ...]


def over_m(quick: bool | None) -> Throughput:
    if quick is None:
        return Throughput(("sum",), 2**9, (1, 2**4), (0,), 0.001, ("b_fiba4", "nb_fiba4", "amta", "twostacks_lite"))
    if quick:
        return Throughput(("sum",), 2**16, (1, 2**5, 2**10, 2**14), (0,), 0.01, ALL)
    return Throughput(THREE, 2**22, tuple(2**p for p in range(0, 21, 4)), (0,), 0.05, ALL)


def over_d(quick: bool | None, m: int) -> Throughput:
    if quick is None:
        return Throughput(("sum",), 2**9, (min(m, 2**4),), (0, 2**6), 0.001, ("b_fiba4", "nb_fiba4"))
    if quick:
        return Throughput(("sum",), 2**16, (m,), (0, 2**4, 2**10, 2**14), 0.01, tuple(TREES))
    return Throughput(THREE, 2**22, (m,), (0, *(2**p for p in range(4, 21, 4))), 0.05, tuple(TREES))


def measure(chosen: Throughput, bulk_insert: bool, progress: Progress) -> list[Row]:
    """Entries a second through rounds of m evicts, m inserts and a query; combines an entry, counted for trees."""
    rows: list[Row] = []
    counts: dict[tuple, float] = {}
    for name in chosen.operators:
        n = trees.window_of(name, chosen.n)
        for algorithm in chosen.algorithms:
            for d in [d for d in chosen.ds if d <= n // 4]:
                made = Window(algorithm, name, n, d)
                for m in [m for m in chosen.ms if m <= n // 4]:
                    progress(f"{name}, {algorithm}, m = {m:,}, d = {d:,}")
                    key = algorithm, m, d
                    if key not in counts and algorithm in TREES:
                        one = Window(algorithm, "sum", max(n, 4 * m), d, trees.counter())
                        counts[key] = trees.combines_a_round(one.rounds_of(m, bulk_insert), 8 + 2**10 // m) / m
                    cycle = 1 if algorithm in TREES else n // m
                    rate = trees.rounds_a_second(made.rounds_of(m, bulk_insert), chosen.seconds, cycle=cycle) * m
                    told = {"throughput": rate, "combines": counts.get(key)}
                    rows.append({"operator": name, "algorithm": algorithm, "n": n, "m": m, "d": d, **told})
    return rows


def views(across: str) -> Callable[[list[Row]], list[View]]:
    def shown(rows: list[Row]) -> list[View]:
        found = [
            View(
                f"{name}: million entries a second",
                "algorithm",
                across,
                "throughput",
                (("operator", name),),
                "max",
                millions,
            )
            for name in values(rows, "operator")
        ]
        only = (("operator", rows[0]["operator"]),)
        return [
            *found,
            View("combines an entry, counted", "algorithm", across, "combines", only, "min", "{:.2f}".format),
        ]

    return shown


def plots(title: str, x: str, label: str) -> Callable[[list[Row]], list[Plot]]:
    def drawn(rows: list[Row]) -> list[Plot]:
        def panel(shown: str, y: str, what: str, name: str, times: float = 1.0) -> Panel:
            return Panel(
                shown, x, y, "algorithm", (("operator", name),), x_label=label, y_label=what, x_log=2, times=times
            )

        names = values(rows, "operator")
        rates = [panel(name, "throughput", "million entries a second", name, 1e-6) for name in names]
        return [Plot([*rates, panel("combines an entry (counted)", "combines", "combines", names[0])], title, across=2)]

    return drawn


def _lines(rows: list[Row], x: str) -> dict[tuple[str, str], dict[int, float]]:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["operator"], row["algorithm"]), {})[row[x]] = row["throughput"]
    return found


def _against(rows: list[Row], x: str) -> dict[tuple, float]:
    """(operator, arity, x) -> b_fiba's rate by nb_fiba's."""
    rate = {key: row["throughput"] for key, row in by(rows, "operator", "algorithm", x).items()}
    return {(o, a[2:], at): r / rate[o, f"n{a}", at] for (o, a, at), r in rate.items() if (o, f"n{a}", at) in rate}


def _fewer(rows: list[Row], x: str) -> str:
    count = {key: row["combines"] for key, row in by(rows, "algorithm", x).items() if row["combines"] is not None}
    last = max(at for _, at in count)
    return ", ".join(f"{a} {c:.2f}" for (a, at), c in count.items() if at == last) + " combines an entry"


def claims_11(rows: list[Row]) -> list[Claim]:
    lines = _lines(rows, "m")
    gain = {key: line[max(line)] / line[min(line)] for key, line in lines.items()}
    native = {key: g for key, g in gain.items() if key[1].startswith("b_") or key[1] == "amta"}
    looped = {key: g for key, g in gain.items() if key not in native}
    leaders = {
        (o, m): max((line[m], a) for (p, a), line in lines.items() if p == o and m in line)
        for o in values(rows, "operator")
        for m in lines.get((o, "twostacks_lite"), {})
    }
    best = [lines[o, "twostacks_lite"][m] >= 0.98 * rate for (o, m), (rate, _) in leaders.items()]
    ahead = sorted({a for won, (_, a) in zip(best, leaders.values()) if not won})
    return [
        claim(
            "the throughput of b_fiba and amta improves with larger bulks",
            f"the largest is {span(native.values(), '.1f')} times as fast as m = 1; counted at the largest: {_fewer(rows, 'm')}",
            [g > 1.1 for g in native.values()],
            "The largest bulks are a quarter of the window, which does not fit the near caches.",
        ),
        claim(
            "that of the algorithms without bulk evict improves too",
            f"{span(looped.values(), '.1f')} times as fast at the largest m as at m = 1",
            [g > 1.05 for g in looped.values()],
            "Fewer queries for each entry is all that a larger m saves them.",
        ),
        claim(
            "in order, twostacks_lite has the best throughput",
            f"at {sum(best)} of {len(best)} points" + (f"; ahead at the others: {', '.join(ahead)}" if ahead else ""),
            best,
            "A flip writes the whole window again, where the others write a partial once or a few times, on what is near.",
        ),
    ]  # fmt: skip


def claims_12(rows: list[Row]) -> list[Claim]:
    lines = _lines(rows, "m")
    rise = {}
    for key, line in lines.items():
        upto = [m for m in line if m <= 2**12]
        rise[key] = line[max(upto)] / line[min(upto)]
    drop = {
        key: float(np.median([r for m, r in line.items() if min(line) < m < max(line)])) / line[max(line)]
        for key, line in lines.items()
        if key[1].startswith("b_") and max(line) >= 2**15 and len(line) > 2
    }
    return [
        claim(
            "all algorithms improve as m grows from 1 to about 2^12, although in-order data gains nothing from "
            "bulk insert in theory",
            f"{min(rise.values()):.2f} to {max(rise.values()):.2f} times as fast; counted at the largest: "
            f"{_fewer(rows, 'm')}",
            [r > 1.05 for r in rise.values()],
            "What improves here is one query for m entries; where a round is a few nanoseconds anyway, that is "
            "all there is.",
        ),
        claim(
            "throughput drops when m gets very large, because items wait in temporary space",
            ", ".join(f"{o} {a} by {r:.2f}" for (o, a), r in drop.items()) + ": the median rate between the smallest and the "
            "largest m, divided by that at the largest" if drop else "",
            [r > 1.15 for r in drop.values()],
            "The temporary space is one array that is used again in every round: nothing is allocated for it.",
        ),
    ]  # fmt: skip


def claims_13(rows: list[Row]) -> list[Claim]:
    ratio = _against(rows, "d")
    lines = {key: line for key, line in _lines(rows, "d").items() if key[1].startswith("b_")}
    slow = {key: max(line.values()) / min(line.values()) for key, line in lines.items()}
    beyond = {
        key: max(far) / min(far) for key, line in lines.items() if len(far := [rate for d, rate in line.items() if d]) > 1
    }
    behind = sorted({at for (_, _, at), r in ratio.items() if r <= 1})
    return [
        claim(
            "higher d does not slow bulk insert down: the search is done once for a bulk",
            f"at its slowest d b_fiba is {span(slow.values())} times slower than at its best"
            + (f", among d > 0 {span(beyond.values())}" if beyond else ""),
            [r < 1.5 for r in slow.values()],
            reasons(
                (max(beyond.values(), default=1) < 1.5, "In order (d = 0) entries are appended, the cheapest case of all; among d "
                 "> 0 the curve is flat."),
                (max(beyond.values(), default=1) >= 1.5, "Far from the young end a bulk meets nodes that are in no near cache."),
            ),
        ),
        claim(
            "b_fiba outperforms nb_fiba",
            f"{min(ratio.values()):.2f} to {max(ratio.values()):.2f} times over all d; counted at the largest d: "
            f"{_fewer(rows, 'd')}",
            [r > 1 for r in ratio.values()],
            reasons(
                (behind == [0], "Behind in order only (d = 0), where a single insert has nothing to search for, and a bulk nothing "
                 "to save."),
                (behind != [0], f"Behind at d = {', '.join(f'{d:,}' for d in behind)}, where a bulk costs more than it saves."),
            ),
        ),
    ]  # fmt: skip


def claims_14(rows: list[Row]) -> list[Claim]:
    ratio = _against(rows, "d")
    told = {o: middle(r for (p, _, _), r in ratio.items() if p == o) for o in values(rows, "operator")}
    return [
        claim(
            "with m = 1, b_fiba does worse than nb_fiba on sum and geomean, and slightly better on bloom",
            ", ".join(f"{o} {r:.2f} times" for o, r in told.items())
            + " as fast as nb_fiba in the geometric mean over d",
            [1 < r <= 1.25 if o == "bloom" else r < 1 for o, r in told.items()],
            "A bulk of one goes through the code for bulks: what that costs or saves beside a single operation differs with the "
            "size of a state.",
        )
    ]


def suite(figure: int, summary: str, run, x: str, label: str, claims) -> Suite:
    return Suite(
        name=f"bulk-fiba-2023-fig-{figure}",
        source=f"bulk-fiba-2023 Figure {figure}",
        summary=f"{summary}; combines counted",
        run=run,
        tiny=lambda progress: run(None, progress),
        views=views("m" if x == "m" else "d"),
        plots=plots(f"Figure {figure}: {summary}", x, label),
        claims=claims,
        stands_in=BLOOM.split(" Of each")[0] + " The best of several turns, where the paper shows the spread of five runs.",
    )


def _run(make, bulk_insert: bool):
    return lambda quick, progress: with_places(measure(make(quick), bulk_insert, progress))


M, D = "bulk size m", "out-of-order distance d"
FIG_11 = suite(11, "throughput, bulk evict only, in order", _run(over_m, False), "m", M, claims_11)
FIG_12 = suite(12, "throughput, bulk evict and insert, in order", _run(over_m, True), "m", M, claims_12)
FIG_13 = suite(
    13,
    "throughput, bulk evict and insert, m = 1,024",
    _run(lambda quick: over_d(quick, 2**10), True),
    "at",
    D,
    claims_13,
)
FIG_14 = suite(
    14, "throughput, bulk evict and insert, m = 1", _run(lambda quick: over_d(quick, 1), True), "at", D, claims_14
)
