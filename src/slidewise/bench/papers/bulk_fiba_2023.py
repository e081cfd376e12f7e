"""bulk-fiba-2023, section 7.1: the latency of bulk evict and bulk insert (Figures 7, 8, 9), and the free list (Figure 10).

Hirzel, Schneider, Tangwongsan: Out-of-Order Sliding-Window Aggregation with Efficient Bulk Evictions and Insertions, 2023.
"""

from dataclasses import dataclass

from slidewise.bench.papers import trees
from slidewise.bench.papers.bulk_fiba_2023_rounds import QUEUES, TREES, Window, combines_of
from slidewise.bench.papers.curves import span
from slidewise.bench.papers.trees import by
from slidewise.bench.suite import Claim, Plot, Progress, Row, Suite, View, claim, reasons, values
from slidewise.bench.tree_rounds import EVICT, INSERT

THREE = ("sum", "geomean", "bloom")
BLOOM = "Bloom's window is 2^17, not 2^22: its states are 2 KB each. Of each round the least of several runs counts."


@dataclass(frozen=True)
class Latency:
    operators: tuple[str, ...]
    n: int
    m: int
    rounds: int
    repeats: int
    algorithms: tuple[str, ...]


def sizes(quick: bool | None, m: int, algorithms: tuple[str, ...]) -> Latency:
    """Of a figure: full, quick, or (None) tiny."""
    if quick is None:
        few = tuple(a for a in algorithms if a in ("b_fiba4", "nb_fiba4", "amta", "twostacks_lite"))
        return Latency(("sum",), 2**9, 2**5, 24, 2, few)
    if quick:
        return Latency(("sum",), 2**16, m, 2**9, 3, algorithms)  # most of a short run is compiling
    return Latency(THREE, 2**22, m, 2**11, 3, algorithms)


def measure(chosen: Latency, part: int, d: int, bulk_insert: bool, progress: Progress) -> list[Row]:
    """Rows of Figures 7, 8 and 9: one part of a round timed; its combines counted on a small window, for m and for m / 4."""
    rows: list[Row] = []
    counts: dict[str, tuple[float, float]] = {}
    for name in chosen.operators:
        n = trees.window_of(name, chosen.n)
        for algorithm in chosen.algorithms:
            progress(f"{name}, {algorithm}")
            if algorithm not in counts:
                whole = combines_of(algorithm, part, chosen.m, d, bulk_insert)
                counts[algorithm] = whole, combines_of(algorithm, part, chosen.m // 4, d // 4, bulk_insert)
            made = Window(algorithm, name, n, min(d, n // 4))
            rounds = chosen.rounds if name != "bloom" else chosen.rounds // 8
            if algorithm in QUEUES:
                rounds = max(rounds, n // chosen.m + 2)  # a whole window: with one flip of those that flip
            made.run(8, chosen.m, bulk_insert)
            ns = made.latencies(rounds, chosen.m, bulk_insert, part, chosen.repeats)
            told = dict(zip(("combines", "combines_of_a_quarter"), counts[algorithm])) | trees.spread(ns[1:])
            rows.append({"operator": name, "algorithm": algorithm, "n": n, "m": chosen.m, "d": d, **told})
    return rows


def views(rows: list[Row]) -> list[View]:
    found = []
    for column, what in (("p50_ns", "median"), ("p99_9_ns", "99.9 % within"), ("max_ns", "worst")):
        found.append(View(f"latency, {what}", "algorithm", "operator", column, (), "min", trees.time))
    if "combines" in rows[0]:
        found.append(View("combines, counted", "algorithm", "operator", "combines", (), "min", "{:.1f}".format))
    return found


def plots(title: str):
    def drawn(rows: list[Row]) -> list[Plot]:
        panels = []
        for name in values(rows, "operator"):
            n = next(r["n"] for r in rows if r["operator"] == name)
            panels.append(trees.violin_panel(f"{name}, n = 2^{n.bit_length() - 1}", (("operator", name),)))
        return [Plot(panels, f"{title}, m = {rows[0]['m']:,}", across=3)]

    return drawn


def _median(rows: list[Row], column: str = "p50_ns") -> dict[tuple, float]:
    return {key: row[column] for key, row in by(rows, "operator", "algorithm").items()}


def _lower(rows: list[Row], mine: list[str], others: list[str]) -> dict[tuple, bool]:
    """(operator, one of mine, one of the others, quantile) -> whether mine is the lower."""
    return {
        (o, a, b, column): took[o, a] < took[o, b]
        for column in ("p50_ns", "p99_9_ns")
        for took in [_median(rows, column)]
        for o in values(rows, "operator")
        for a in mine
        for b in others
    }


def _lost(tests: dict[tuple, bool]) -> str:
    """To whom, in words."""
    ahead = dict.fromkeys((o, b) for (o, _, b, _), lower in tests.items() if not lower)
    return f"; not lower than {', '.join(f'{b} ({o})' for o, b in ahead)}" if ahead else ""


def _counts(rows: list[Row]) -> tuple[dict[str, float], dict[str, float]]:
    """Combines by algorithm, for bulks of m and of m / 4."""
    whole, quarter = ({r["algorithm"]: r[column] for r in rows} for column in ("combines", "combines_of_a_quarter"))
    return whole, quarter


def _pairs(rows: list[Row]) -> list[tuple[str, str, str]]:
    """(operator, b_fiba, nb_fiba) of the same arity."""
    kinds = values(rows, "algorithm")
    return [(o, b, f"n{b}") for o in values(rows, "operator") for b in kinds if b.startswith("b_") and f"n{b}" in kinds]


# ---- Figure 7 --------------------------------------------------------------------------------------------------------


def claims_7(rows: list[Row]) -> list[Claim]:
    took = _median(rows)
    kinds = values(rows, "algorithm")
    native = [a for a in kinds if a.startswith("b_fiba") or a == "amta"]
    looped = [a for a in kinds if a not in native]
    tests = _lower(rows, native, looped)
    ahead = dict.fromkeys(
        o for (o, _, b, column), lower in tests.items() if (b, column) == ("twostacks_lite", "p50_ns") and not lower
    )
    ratios = [took[o, nb] / took[o, b] for o, b, nb in _pairs(rows)]
    counts, fewer = _counts(rows)
    return [
        claim(
            "b_fiba and amta have the best latencies of evicting m entries in bulk; the others loop over them",
            f"in {sum(tests.values())} of {len(tests)} comparisons of medians and 99.9th percentiles; b_fiba's median is "
            f"{min(ratios):.0f} to {max(ratios):.0f} times lower than nb_fiba's{_lost(tests)}",
            tests.values(),
            reasons(
                (ahead, f"twostacks_lite evicts by moving an index: a thousand of them take less than one cut through a tree "
                 f"({', '.join(ahead)})."),
                (any(b != "twostacks_lite" for (_, _, b, _), lower in tests.items() if not lower), "Where a single evict is cheap, "
                 "a loop over a thousand is not far from one cut."),
                (any(column == "p99_9_ns" for (*_, column), lower in tests.items() if not lower), "The 99.9th percentile of a few "
                 "thousand rounds is the longest two or three."),
            ),
        ),
        claim(
            "a bulk evict takes O(log m) with b_fiba, O(log n) with amta; one by one O(m)",
            f"counted for m = {rows[0]['m'] // 4:,} and {rows[0]['m']:,}: "
            + ", ".join(f"{a} {fewer[a]:.0f} and {c:.0f}" for a, c in counts.items()) + " combines",
            [counts[a] < 1.5 * fewer[a] + 8 for a in native] + [counts[a] > 3 * fewer[a] for a in looped],
            "Counted with the library's algorithms as they are.",
        ),
    ]  # fmt: skip


ALL = (*TREES, *QUEUES)

FIG_7 = Suite(
    name="bulk-fiba-2023-fig-7",
    source="bulk-fiba-2023 Figure 7",
    summary="latency of evicting 1,024 entries, in order; combines counted",
    run=lambda quick, progress: measure(sizes(quick, 2**10, ALL), EVICT, 0, False, progress),
    tiny=lambda progress: measure(sizes(None, 2**10, ALL), EVICT, 0, False, progress),
    views=views,
    plots=plots("Figure 7: latency, bulk evict only, d = 0"),
    claims=claims_7,
    stands_in=BLOOM,
)

# ---- Figure 8 --------------------------------------------------------------------------------------------------------


def claims_8(rows: list[Row]) -> list[Claim]:
    took = _median(rows)
    kinds = values(rows, "algorithm")
    lean = [a for a in kinds if a.endswith("_lite")]
    others = [a for a in kinds if a not in lean]
    tests = _lower(rows, lean, others)
    worse = [took[o, b] / took[o, nb] for o, b, nb in _pairs(rows)]
    counts, fewer = _counts(rows)
    return [
        claim(
            "daba_lite and twostacks_lite have the best latencies of inserting m entries in order",
            f"in {sum(tests.values())} of {len(tests)} comparisons of medians and 99.9th percentiles; {' and '.join(lean)} take "
            + ", ".join(f"{o} {'/'.join(trees.time(took[o, a]) for a in lean)}" for o in values(rows, "operator")) + _lost(tests),
            tests.values(),
            reasons(
                (any(b == "amta" for (_, _, b, _), lower in tests.items() if not lower), "amta appends nearly as cheaply."),
                (any(a == "daba_lite" for (_, a, _, _), lower in tests.items() if not lower), "daba_lite does its share of the "
                 "reversal with each insert."),
                (any(a == "twostacks_lite" for (_, a, _, _), lower in tests.items() if not lower), "twostacks_lite moves as many "
                 "bytes as the others, and where a state is large that is all there is."),
            ),
        ),
        claim(
            "with d = 0 the complexity of bulk insert boils down to O(m) for all",
            "counted: " + ", ".join(f"{a} {c / rows[0]['m']:.2f}" for a, c in counts.items())
            + f" combines an entry, those of bulks of {rows[0]['m'] // 4:,} alike; b_fiba "
            f"takes {min(worse):.2f} to {max(worse):.2f} times as long as nb_fiba",
            [c > 0 and abs(c - 4 * fewer[a]) <= 0.25 * c + 8 for a, c in counts.items()],
            "Counted with the library's algorithms as they are.",
        ),
    ]  # fmt: skip


FIG_8 = Suite(
    name="bulk-fiba-2023-fig-8",
    source="bulk-fiba-2023 Figure 8",
    summary="latency of inserting 1,024 entries, in order; combines counted",
    run=lambda quick, progress: measure(sizes(quick, 2**10, ALL), INSERT, 0, True, progress),
    tiny=lambda progress: measure(sizes(None, 2**10, ALL), INSERT, 0, True, progress),
    views=views,
    plots=plots("Figure 8: latency, bulk insert only, d = 0"),
    claims=claims_8,
    stands_in=BLOOM,
)

# ---- Figure 9 --------------------------------------------------------------------------------------------------------


def claims_9(rows: list[Row]) -> list[Claim]:
    took, rare = _median(rows), _median(rows, "p99_9_ns")
    ratios = {(o, b): took[o, nb] / took[o, b] for o, b, nb in _pairs(rows)}
    tails = [rare[o, nb] / rare[o, b] for o, b, nb in _pairs(rows)]
    counts, _ = _counts(rows)
    fewer = {b: counts[f"n{b}"] / counts[b] for b in counts if f"n{b}" in counts}
    return [
        claim(
            "out of order, bulk insert takes O(m log(d / m)), one by one O(m log d): b_fiba has lower latency than nb_fiba",
            ", ".join(f"{o} {b[2:]} {r:.1f} times" for (o, b), r in ratios.items())
            + f" lower in the median, {span(tails, '.1f')} times in the 99.9th percentile; counted: "
            + ", ".join(f"{b} {r:.1f} times fewer combines" for b, r in fewer.items()),
            [r > 1 for r in (*ratios.values(), *tails, *fewer.values())],
            "The 99.9th percentile of a few thousand rounds is the longest two or three, and what the machine did in them.",
        )
    ]


FIG_9 = Suite(
    name="bulk-fiba-2023-fig-9",
    source="bulk-fiba-2023 Figure 9",
    summary="latency of inserting 1,024 entries 1,024 places out of order; combines counted",
    run=lambda quick, progress: measure(sizes(quick, 2**10, tuple(TREES)), INSERT, 2**10, True, progress),
    tiny=lambda progress: measure(sizes(None, 2**10, tuple(TREES)), INSERT, 2**5, True, progress),
    views=views,
    plots=plots("Figure 9: latency, bulk insert only, d = 1,024"),
    claims=claims_9,
    stands_in=BLOOM,
)

# ---- Figure 10 -------------------------------------------------------------------------------------------------------


def measure_10(chosen: Latency, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in chosen.operators:
        n = trees.window_of(name, chosen.n)
        for algorithm in chosen.algorithms:
            for eager in (False, True):
                progress(f"{name}, {algorithm}, {'without' if eager else 'with'} the free list")
                made = Window(algorithm, name, n, 0)
                made.run(8, chosen.m, False, eager=eager)
                rounds = chosen.rounds if name != "bloom" else chosen.rounds // 8
                ns = made.latencies(rounds, chosen.m, False, EVICT, chosen.repeats, eager)
                shown = f"{algorithm}{'_nofl' if eager else ''}"
                rows.append({"operator": name, "algorithm": shown, "n": n, "m": chosen.m, **trees.spread(ns[1:])})
    return rows


def claims_10(rows: list[Row]) -> list[Claim]:
    took = _median(rows)
    ratios = {(o, a): took[o, f"{a}_nofl"] / t for (o, a), t in took.items() if not a.endswith("_nofl")}
    return [
        claim(
            "the deferred free list is indispensable: without it, bulk evict performs much worse",
            "without it the median is "
            + ", ".join(f"{r:.1f} times ({o}, {a})" for (o, a), r in ratios.items()) + " as long",
            [r > 2 for r in ratios.values()],
            "Where a bulk evict has dear combines to make (2 KB each for bloom), they hide what the free list saves.",
        ),
        Claim(
            "another allocator (mimalloc) makes little difference",
            "nodes live in one array: no allocator is called for them",
            "unmeasured",
        ),
    ]  # fmt: skip


def sizes_10(quick: bool | None) -> Latency:
    return sizes(quick, 2**12, ("b_fiba4", "b_fiba8"))


FIG_10 = Suite(
    name="bulk-fiba-2023-fig-10",
    source="bulk-fiba-2023 Figure 10",
    summary="latency of evicting 4,096 entries with and without the deferred free list",
    run=lambda quick, progress: measure_10(sizes_10(quick), progress),
    tiny=lambda progress: measure_10(sizes_10(None), progress),
    views=views,
    plots=plots("Figure 10: memory management, bulk evict only, d = 0"),
    claims=claims_10,
    stands_in=f"{BLOOM} Without the free list (nofl) each node is put on a free list of the arena at once. The paper also compares "
    "two allocators: there is none here, nodes live in one array.",
)
