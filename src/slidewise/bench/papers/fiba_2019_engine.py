"""In the engine: fiba-2019 Figures 16, 17 and 18, bulk-fiba-2023 Figure 17, with Spark where the papers have Flink.

Each algorithm runs where a user's own would: in a Python worker of Spark, over the batches of one task (mapInArrow), compiled.
All rows travel from Spark to the worker and back. Spark's built-in windows stand beside them:

    frame     sum over (order by t rows between n - 1 preceding and current row), re-aggregated for each row
    window()  each row in n / slide hopping windows, then grouped
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slidewise.bench.papers import trees
from slidewise.bench.papers.trees import Tree, by
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, picked, values
from slidewise.bench.timing import best_of
from slidewise.bench.tree_rounds import HIGH

SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
STANDS_IN = (
    "Spark for Flink, batch jobs of one task for Flink's stream. Integer sums only. Scotty, which the paper "
    "compares with, has no "
    "connector for Spark. Spark's window() is measured where a row is in at most 256 windows: it plans a projection for each."
)
KINDS = {"bfinger4": Tree(4), "bfinger8": Tree(8), "bclassic4": Tree(4, False), "bclassic8": Tree(8, False)}


@contextmanager
def session() -> Iterator[Any]:
    from slidewise.engines.spark.session import local_session

    with tempfile.TemporaryDirectory(prefix="slidewise-bench-") as folder:
        spark = local_session("slidewise-bench", cores=2, log=Path(folder) / "spark.log")
        try:
            yield spark
        finally:
            spark.stop()


def events(spark, rows: int, d: int = 0):
    """Rows in the order of arrival, one partition: times that ascend, after d that are younger than all others."""
    from pyspark.sql import functions as F

    at = F.col("id")
    made = spark.range(0, rows, 1, 1).select(
        F.when(at < d, at + F.lit(HIGH)).otherwise(at).alias("t"), (at % 1000).alias("x")
    )
    return made


def finish(df) -> None:
    """Compute everything, keep nothing."""
    df.write.format("noop").mode("overwrite").save()


# ---- what runs in the workers ----------------------------------------------------------------------------------------


def in_worker(make: Callable[[], Callable]):
    """mapInArrow: `make()` gives, in the worker, a function of (t, x) to results and whether there is one."""

    def copies(batches):
        import pyarrow as pa

        step = make()
        for batch in batches:
            t, x = batch["t"].to_numpy(zero_copy_only=False), batch["x"].to_numpy(zero_copy_only=False)
            result, ok = step(np.ascontiguousarray(t), np.ascontiguousarray(x))
            yield pa.RecordBatch.from_arrays([batch["t"], pa.array(result, mask=ok == 0)], names=["t", "r"])

    return lambda df: df.mapInArrow(copies, "t long, r long")


def counting_window(name: str, n: int):
    """The last n rows: insert, evict, query for each."""

    def make():
        from slidewise.algorithms import algorithm, drivers
        from slidewise.algorithms.fiba_forest import Forest
        from slidewise.algorithms.protocol import arrays, capacity_for

        op = trees.operator("sum")
        if name in KINDS:
            forest, everything = Forest(op, 1, KINDS[name].min_arity, KINDS[name].fingers), np.empty(0, np.uint8)

            def run(t, x, OUT, OK):
                forest.run("run_rows", 0, t, (x,), everything, n, OUT, OK)
        else:
            alg = algorithm(name)
            H, W, V, m, scratch = arrays(alg, op, capacity_for(n))
            drivers.start(alg, op, H, W, V, m)

            def run(t, x, OUT, OK):
                drivers.run_rows(alg, op, H, W, V, m, scratch, (x,), n, OUT, OK, 0, len(x))

        return _stepper(op, run)

    return in_worker(make)


def hopping_window(tree: Tree, n: int, slide: int, coarse: bool, bulk: bool):
    """The last n moments at the end of each slide."""

    def make():
        from slidewise.algorithms.fiba_forest import Forest
        from slidewise.bench.tree_rounds import run_slides

        op = trees.operator("sum")
        forest = Forest(op, 1, tree.min_arity, tree.fingers)
        return _stepper(op, lambda t, x, OUT, OK: run_slides(forest, t, (x,), n, slide, coarse, bulk, OUT, OK))

    return in_worker(make)


def _stepper(op, run):
    def step(t, x):
        OUT, OK = op.result.alloc(len(t)), np.ones(len(t), np.uint8)
        run(t, x, OUT, OK)
        return OUT[0], OK

    return step


# ---- what Spark has --------------------------------------------------------------------------------------------------


def frame(n: int, segment_tree: bool):
    def made(df):
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        df.sparkSession.conf.set(SEGMENT_TREE, str(segment_tree).lower())
        return df.select("t", F.sum("x").over(Window.orderBy("t").rowsBetween(1 - n, 0)).alias("r"))

    return made


def hops(n: int, slide: int):
    def made(df):
        from pyspark.sql import functions as F

        timed = df.select(F.timestamp_seconds("t").alias("ts"), "x")
        return timed.groupBy(F.window("ts", f"{n} seconds", f"{slide} seconds")).agg(F.sum("x"))

    return made


# ---- measuring -------------------------------------------------------------------------------------------------------


MOST_WINDOWS = 2**8
"""Spark plans and compiles a projection for each window that a row is in: thousands of them take minutes before any row moves."""


@dataclass(frozen=True)
class Engine:
    n: int
    rows: int
    """Through the workers."""
    few: int
    """Through Spark's frames, beyond one window: at least."""
    work: int
    """Additions that Spark's frames are given, so that small windows do not measure the start of a job."""
    hopped: int
    """Through Spark's hopping windows, at a slide of 1."""
    repeats: int
    distances: tuple[int, ...]
    windows: tuple[int, ...]
    slides: tuple[int, ...]
    names: tuple[str, ...] = ("bfinger4", "bfinger8", "bclassic4", "bclassic8")


FULL = Engine(
    2**13, 2_000_000, 4_000, 200_000_000, 1_000, 2, (0, 2**4, 2**8, 2**12), (1, 2**4, 2**8, 2**13), (1, 2**3, 2**6, 2**9, 2**12)
)
QUICK = Engine(2**13, 200_000, 1_000, 1_000_000, 200, 1, (0, 2**12), (2**4, 2**13), (1, 2**5, 2**10), ("bfinger4", "bclassic4"))
TINY = Engine(2**6, 2_000, 100, 100, 100, 1, (0, 2**5), (2**3, 2**6), (1, 2**4), ("bfinger4", "bclassic4"))


def rate(spark, rows: int, d: int, query, repeats: int, progress: Progress, what: str) -> float:
    """Rows a second of a whole job, after one that was not counted."""
    progress(what)
    df = events(spark, rows, d)
    finish(query(events(spark, min(rows, 2_000), 0)))
    return rows / best_of(repeats, lambda: finish(query(df)))


def measure_16_to_18(sizes: Engine, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    with session() as spark:

        def note(figure: int, name: str, x: int, query, count: int, d: int = 0) -> None:
            found = rate(spark, count, d, query, sizes.repeats, progress, f"Figure {figure}: {name}, {x:,}")
            rows.append({"figure": figure, "algorithm": name, "x": x, "n": sizes.n, "rows": count, "throughput": found})

        def built_in(n: int) -> int:
            return n + max(sizes.few, min(sizes.rows // 4, sizes.work // n))

        for d in sizes.distances:
            for name in sizes.names:
                note(16, name, d, counting_window(name, sizes.n), sizes.rows, d)
            note(16, "Spark's frame", d, frame(sizes.n, False), built_in(sizes.n), d)
        for n in sizes.windows:
            for name in (*[a for a in sizes.names if "finger" in a], "two_stacks"):
                note(17, name, n, counting_window(name, n), sizes.rows)
            note(17, "Spark's frame", n, frame(n, False), built_in(n))
            note(17, "Spark's frame, segment tree", n, frame(n, True), sizes.rows // 4)
        for slide in sizes.slides:
            for name in [a for a in sizes.names if "finger" in a]:
                note(18, name, slide, hopping_window(KINDS[name], sizes.n, slide, False, False), sizes.rows)
                note(18, f"cg_{name}", slide, hopping_window(KINDS[name], sizes.n, slide, True, False), sizes.rows)
            if sizes.n // slide <= MOST_WINDOWS:
                note(18, "Spark's window()", slide, hops(sizes.n, slide), min(sizes.rows, sizes.hopped * slide))
    return rows


AXES = {16: "out-of-order distance d", 17: "window size n", 18: "slide granularity"}
TITLES = {16: "Figure 16: out of order, n = 8,192", 17: "Figure 17: in order", 18: "Figure 18: coarse-grained sliding"}


def plots(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            TITLES[figure], "at", "throughput", "algorithm", (("figure", figure),), x_label=AXES[figure],
            y_label="rows a second", x_log=2, y_log=10,
        )
        for figure in values(rows, "figure")
    ]  # fmt: skip
    return [Plot(panels, "Figures 16 to 18: in the engine (Spark)")]


def with_places(rows: list[Row]) -> list[Row]:
    for row in rows:
        row["at"] = row["x"] if row["x"] else 0.5
    return rows


def _thousands(value: float) -> str:
    return f"{value / 1000:,.1f}"


def views(rows: list[Row]) -> list[View]:
    return [
        View(f"Figure {f}: thousand rows a second", "algorithm", "x", "throughput", (("figure", f),), "max", _thousands)
        for f in values(rows, "figure")
    ]


def _line(rows: list[Row], figure: int, name: str) -> dict[int, float]:
    return {r["x"]: r["throughput"] for r in picked(rows, (("figure", figure), ("algorithm", name)))}


def _lines(rows: list[Row], figure: int, start: str) -> dict[str, dict[int, float]]:
    """The lines whose names begin so."""
    names = values(picked(rows, (("figure", figure),)), "algorithm")
    return {name: _line(rows, figure, name) for name in names if name.startswith(start)}


def claims(rows: list[Row]) -> list[Claim]:
    return [*_claims_16(rows), *_claims_17(rows), *_claims_18(rows)]


def _claims_16(rows: list[Row]) -> list[Claim]:
    frames, fingers = _line(rows, 16, "Spark's frame"), _lines(rows, 16, "bfinger")
    flat = max(frames.values()) / min(frames.values())
    ahead = [line[d] / frames[d] for line in fingers.values() for d in line]
    classic = _lines(rows, 16, "bclassic")
    near, far = min(frames), max(frames)
    gains = {
        d: [line[d] / classic[f"bclassic{a[-1]}"][d] for a, line in fingers.items() if f"bclassic{a[-1]}" in classic]
        for d in (near, far)
    }
    return [
        claim(
            "Figure 16: the built-in algorithm's throughput does not depend on the distance, and is orders of "
            "magnitude lower",
            f"Spark's frame varies by {flat:.2f} times; FiBA is {min(ahead):.0f} to {max(ahead):.0f} times as fast",
            [flat < 1.5, *[r >= 10 for r in ahead]],
            "A row's trip to the worker and back is what FiBA mostly pays for, whatever the distance.",
        ),
        claim(
            "Figure 16: FiBA and the classic B-tree perform as seen before: fingers are far ahead at small distances",
            f"FiBA is {min(gains[near]):.2f} to {max(gains[near]):.2f} times as fast as the classic tree at d = {near:,}, "
            f"{min(gains[far]):.2f} to {max(gains[far]):.2f} times at {far:,}"
            if gains[near]
            else "",
            [r >= 1.5 for r in gains[near]] + [a > b for a, b in zip(gains[near], gains[far])],
            "What a tree takes for a row is small beside the row's trip to the worker and back.",
        ),
    ]


def _claims_17(rows: list[Row]) -> list[Claim]:
    fingers, stacks, sizes = _lines(rows, 17, "bfinger"), _line(rows, 17, "two_stacks"), _line(rows, 17, "Spark's frame")
    against = [line[n] / stacks[n] for line in fingers.values() for n in line]
    competitive = [line[n] / sizes[n] for line in fingers.values() for n in line]
    kept = {a: min(line.values()) / max(line.values()) for a, line in fingers.items()}
    before, last = sorted(sizes)[-2:]
    falling, wanted = sizes[before] / sizes[last], last / before
    return [
        claim(
            "Figure 17: in the engine, FiBA (bfinger4 and bfinger8) outperforms TwoStacks",
            f"{min(against):.2f} to {max(against):.2f} times as fast as two_stacks",
            [r > 1 for r in against],
            "It did in Java, where TwoStacks paid for its boxed stacks. Here both are compiled, and moving rows "
            "between Spark and the worker takes "
            "most of the time of either.",
        ),
        claim(
            "Figure 17: the general trends of data in order: FiBA is O(1), and keeps its throughput whatever the window",
            ", ".join(f"{a} keeps {share:.2f} of its best at its slowest window" for a, share in kept.items()),
            [share > 0.7 for share in kept.values()],
            "A whole job is timed, and what else Spark does in it is no part of the tree's work.",
        ),
        claim(
            "Figure 17: the built-in algorithm's throughput falls linearly with the window and is never competitive",
            f"from n = {before:,} to {last:,}, {wanted:.0f} times, Spark's frame gets {falling:.1f} times slower; FiBA is "
            f"{min(competitive):.1f} to {max(competitive):.0f} times as fast",
            [wanted / 2 <= falling <= 2 * wanted, *[r > 1 for r in competitive]],
            "What the frame costs a row beside its additions, and the start of a job, keep small windows from being as fast as a "
            "straight line would have them.",
        ),
    ]


def _claims_18(rows: list[Row]) -> list[Claim]:
    vanilla, coarse, hop = _lines(rows, 18, "bfinger"), _lines(rows, 18, "cg_"), _line(rows, 18, "Spark's window()")
    slides = sorted(next(iter(coarse.values())))
    first, last, least = slides[0], slides[-1], min(hop)
    gain = {a: line[last] / line[first] for a, line in (vanilla | coarse).items()}
    best = {s: max(line[s] for line in coarse.values()) for s in slides}
    others = {s: max(hop.get(s, 0), *[line[s] for line in vanilla.values()]) for s in slides}
    rise, wanted = hop[last] / hop[least], last / least
    return [
        claim(
            "Figure 18: vanilla FiBA gains practically nothing from coarser slides",
            f"from slide {first:,} to {last:,} " + ", ".join(f"{a} {gain[a]:.2f} times as fast" for a in vanilla),
            [0.8 < gain[a] < 1.25 for a in vanilla],
            "One answer for many rows is less to write and to hand back than an answer for each.",
        ),
        claim(
            "Figure 18: coarse-grained FiBA gets faster with coarser slides",
            f"from slide {first:,} to {last:,} " + ", ".join(f"{a} {gain[a]:.2f} times as fast" for a in coarse),
            [gain[a] > 1.05 for a in coarse],
            "What coarse slides save is tens of nanoseconds a row; a row's trip to the worker and back takes hundreds.",
        ),
        claim(
            "Figure 18: coarse-grained FiBA has the best throughput for the whole range of granularities",
            f"at {sum(best[s] > others[s] for s in slides)} of {len(slides)} slides, "
            f"{min(best[s] / others[s] for s in slides):.2f} to "
            f"{max(best[s] / others[s] for s in slides):.2f} times the best of the others",
            [best[s] > others[s] for s in slides],
            "What coarse slides save is tens of nanoseconds a row; a row's trip to the worker and back takes hundreds.",
        ),
        claim(
            "Figure 18: the built-in aggregation improves linearly with the slide and is never competitive",
            f"from slide {least:,} to {last:,}, {wanted:.0f} times, Spark's window() gets {rise:.0f} times as fast; coarse-grained "
            f"FiBA is {min(best[s] / hop[s] for s in hop):.1f} to {max(best[s] / hop[s] for s in hop):,.0f} times as fast",
            [wanted / 2 <= rise <= 2 * wanted, *[best[s] > hop[s] for s in hop]],
            "A row is in n / slide windows, and that work does shrink with the slide; what is left at coarse slides is reading a "
            "row and grouping it.",
        ),
        Claim(
            "Figure 18: Scotty improves with coarser slides and ultimately outperforms vanilla FiBA",
            "Scotty has no connector for Spark",
            "unmeasured",
        ),
    ]


FIGS_16_TO_18 = Suite(
    name="fiba-2019-figs-16-18",
    source="fiba-2019 Figures 16, 17 and 18",
    summary="in the engine: distance, window size, coarse-grained sliding; beside Spark's own windows",
    run=lambda quick, progress: with_places(measure_16_to_18(QUICK if quick else FULL, progress)),
    tiny=lambda progress: with_places(measure_16_to_18(TINY, progress)),
    views=views,
    plots=plots,
    claims=claims,
    stands_in=STANDS_IN,
)


# ---- bulk-fiba-2023 Figure 17 ----------------------------------------------------------------------------------------


def measure_bulk(sizes: Engine, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    with session() as spark:
        for m in sizes.slides:
            trees_ = [KINDS[a] for a in sizes.names if "finger" in a]
            queries = {
                f"{kind}_fiba{tree.min_arity}": hopping_window(tree, sizes.n, m, False, kind == "b")
                for tree in trees_
                for kind in ("b", "nb")
            }
            if sizes.n // m <= MOST_WINDOWS:
                queries["Spark's window()"] = hops(sizes.n, m)
            for name, query in queries.items():
                count = min(sizes.rows, sizes.hopped * m) if name.startswith("Spark") else sizes.rows
                found = rate(spark, count, 0, query, sizes.repeats, progress, f"{name}, m = {m:,}")
                rows.append({"algorithm": name, "m": m, "n": sizes.n, "rows": count, "throughput": found})
    return rows


def claims_bulk(rows: list[Row]) -> list[Claim]:
    found = {key: row["throughput"] for key, row in by(rows, "algorithm", "m").items()}
    ms, kinds = values(rows, "m"), [a for a in values(rows, "algorithm") if a.startswith("b_")]
    own = {m: rate for (a, m), rate in found.items() if a.startswith("Spark")}
    single = [found[f"n{a}", m] / own[m] for a in kinds for m in own]
    bulk = {(a, m): found[a, m] / found[f"n{a}", m] for a in kinds for m in ms}
    rise = {a: found[a, max(ms)] / found[a, min(ms)] for a in kinds}
    return [
        claim(
            "even without bulk evict FiBA is much faster than the engine's own",
            f"{min(single):.1f} to {max(single):,.0f} times Spark's window()",
            [r > 2 for r in single],
            "At large slides a row is in a few windows only, and Spark's own work on it costs less than a trip "
            "to a Python worker.",
        ),
        claim(
            "bulk evictions widen the gap",
            f"b_fiba is {min(bulk.values()):.2f} to {max(bulk.values()):.2f} times as fast as nb_fiba",
            [r > 1 for (_, m), r in bulk.items() if m > 1],
            "What they save is nanoseconds a row, beside a trip to the worker that takes hundreds.",
        ),
        claim(
            "throughput improves with the bulk size m",
            ", ".join(f"{a} is {r:.2f} times" for a, r in rise.items()) + f" as fast at m = {max(ms):,} as at {min(ms):,}",
            [r > 1.05 for r in rise.values()],
            "A row's trip to the worker and back takes most of the time, whatever the bulk.",
        ),
    ]


def plots_bulk(rows: list[Row]) -> list[Plot]:
    panel = Panel(
        f"n = {rows[0]['n']:,}", "m", "throughput", "algorithm", x_label="bulk size m", y_label="rows a second", x_log=2, y_log=10
    )  # fmt: skip
    return [Plot([panel], "Figure 17: bulk evict only, in the engine (Spark)")]


FIG_17_BULK = Suite(
    name="bulk-fiba-2023-fig-17",
    source="bulk-fiba-2023 Figure 17",
    summary="in the engine: bulk evict, beside Spark's own hopping windows",
    run=lambda quick, progress: measure_bulk(QUICK if quick else FULL, progress),
    tiny=lambda progress: measure_bulk(TINY, progress),
    views=lambda rows: [View("thousand rows a second", "algorithm", "m", "throughput", (), "max", _thousands)],
    plots=plots_bulk,
    claims=claims_bulk,
    stands_in="Spark for Flink, batch jobs of one task for its stream. Integer sums only.",
)
