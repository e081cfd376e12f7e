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
    """Through Spark's frames, beyond one window."""
    hopped: int
    """Through Spark's hopping windows, at a slide of 1."""
    repeats: int
    distances: tuple[int, ...]
    windows: tuple[int, ...]
    slides: tuple[int, ...]
    names: tuple[str, ...] = ("bfinger4", "bfinger8", "bclassic4", "bclassic8")


FULL = Engine(
    2**13, 2_000_000, 4_000, 1_000, 2, (0, 2**4, 2**8, 2**12), (1, 2**4, 2**8, 2**13), (1, 2**3, 2**6, 2**9, 2**12)
)
QUICK = Engine(2**13, 200_000, 1_000, 200, 1, (0, 2**12), (2**4, 2**13), (1, 2**5, 2**10), ("bfinger4", "bclassic4"))
TINY = Engine(2**6, 2_000, 100, 100, 1, (0, 2**5), (2**3, 2**6), (1, 2**4), ("bfinger4", "bclassic4"))


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

        built_in = sizes.n + sizes.few
        for d in sizes.distances:
            for name in sizes.names:
                note(16, name, d, counting_window(name, sizes.n), sizes.rows, d)
            note(16, "Spark's frame", d, frame(sizes.n, False), built_in, d)
        for n in sizes.windows:
            for name in (*[a for a in sizes.names if "finger" in a], "two_stacks"):
                note(17, name, n, counting_window(name, n), sizes.rows)
            note(17, "Spark's frame", n, frame(n, False), built_in)
            note(17, "Spark's frame, segment tree", n, frame(n, True), sizes.rows // 4)
        for slide in sizes.slides:
            note(18, "bfinger4", slide, hopping_window(Tree(4), sizes.n, slide, False, False), sizes.rows)
            note(18, "cg_bfinger4", slide, hopping_window(Tree(4), sizes.n, slide, True, False), sizes.rows)
            if sizes.n // slide <= MOST_WINDOWS:
                note(18, "Spark's window()", slide, hops(sizes.n, slide), sizes.hopped * min(slide, 64))
    return rows


AXES = {16: "out-of-order distance d (leftmost: 0)", 17: "window size n", 18: "slide granularity"}
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


def claims(rows: list[Row]) -> list[Claim]:
    frames, ours = _line(rows, 16, "Spark's frame"), _line(rows, 16, "bfinger4")
    flat = max(frames.values()) / min(frames.values())
    ahead = [ours[d] / frames[d] for d in ours]
    fifo, stacks, sizes = _line(rows, 17, "bfinger4"), _line(rows, 17, "two_stacks"), _line(rows, 17, "Spark's frame")
    against = [fifo[n] / stacks[n] for n in fifo]
    falling = sizes[min(sizes)] / sizes[max(sizes)]
    vanilla, coarse, hop = (_line(rows, 18, a) for a in ("bfinger4", "cg_bfinger4", "Spark's window()"))
    last, first, least = max(coarse), min(coarse), min(hop)
    return [
        claim(
            "Figure 16: the built-in algorithm's throughput does not depend on the distance, and is orders of "
            "magnitude lower",
            f"Spark's frame varies by {flat:.2f} times; bfinger4 is {min(ahead):.0f} to {max(ahead):.0f} times as fast",
            [flat < 1.5, *[r >= 10 for r in ahead]],
        ),
        claim(
            "Figure 17: in the engine, FiBA outperforms TwoStacks",
            f"bfinger4 is {min(against):.2f} to {max(against):.2f} times as fast as two_stacks",
            [r > 1 for r in against],
            "It did in Java, where TwoStacks paid for its boxed stacks. Here both are compiled, and moving rows "
            "between Spark and the worker takes "
            "most of the time of either.",
        ),
        claim(
            "Figure 17: the built-in algorithm's throughput falls linearly with the window and is never competitive",
            f"Spark's frame is {falling:.1f} times slower at n = {max(sizes):,} than at {min(sizes):,}; bfinger4 is "
            f"{min(fifo[n] / sizes[n] for n in fifo):.1f} to {max(fifo[n] / sizes[n] for n in fifo):.0f} times as fast",
            [falling > 2, *[fifo[n] > sizes[n] for n in fifo]],
            "A small frame in Spark's own process beats a trip to a Python worker; the job's fixed cost hides "
            "what it costs a row.",
        ),
        claim(
            "Figure 18: vanilla FiBA gains nothing from coarser slides; coarse-grained FiBA gains, and is the "
            "fastest throughout",
            f"from slide {first:,} to {last:,} vanilla is {vanilla[last] / vanilla[first]:.2f} times as fast, "
            f"coarse-grained "
            f"{coarse[last] / coarse[first]:.2f}; at {last:,} coarse-grained is "
            f"{coarse[last] / vanilla[last]:.2f} times vanilla",
            [vanilla[last] / vanilla[first] < 1.5, coarse[last] > coarse[first], coarse[last] > vanilla[last]],
            "What coarse slides save is tens of nanoseconds a row; a row's trip to the worker and back takes hundreds.",
        ),
        claim(
            "Figure 18: the built-in aggregation improves linearly with the slide and is never competitive",
            f"Spark's window() is {hop[last] / hop[least]:.0f} times as fast at slide {last:,} as at {least:,}; "
            f"coarse-grained FiBA is "
            f"{min(coarse[s] / hop[s] for s in hop):.1f} to {max(coarse[s] / hop[s] for s in hop):,.0f} times as fast",
            [hop[last] > 4 * hop[least], *[coarse[s] > hop[s] for s in hop]],
        ),
    ]  # fmt: skip


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
            queries = {f"{kind}_fiba4": hopping_window(Tree(4), sizes.n, m, False, kind == "b") for kind in ("b", "nb")}
            if sizes.n // m <= MOST_WINDOWS:
                queries["Spark's window()"] = hops(sizes.n, m)
            for name, query in queries.items():
                count = sizes.hopped * min(m, 64) if name.startswith("Spark") else sizes.rows
                found = rate(spark, count, 0, query, sizes.repeats, progress, f"{name}, m = {m:,}")
                rows.append({"algorithm": name, "m": m, "n": sizes.n, "rows": count, "throughput": found})
    return rows


def claims_bulk(rows: list[Row]) -> list[Claim]:
    found = {key: row["throughput"] for key, row in by(rows, "algorithm", "m").items()}
    ms = values(rows, "m")
    single = [found["nb_fiba4", m] / found["Spark's window()", m] for m in ms if ("Spark's window()", m) in found]
    bulk = [found["b_fiba4", m] / found["nb_fiba4", m] for m in ms]
    rise = found["b_fiba4", max(ms)] / found["b_fiba4", min(ms)]
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
            f"b_fiba4 is {min(bulk):.2f} to {max(bulk):.2f} times as fast as nb_fiba4",
            [r > 1 for m, r in zip(ms, bulk) if m > 1],
            "What they save is nanoseconds a row, beside a trip to the worker that takes hundreds.",
        ),
        claim(
            "throughput improves with the bulk size m",
            f"b_fiba4 is {rise:.2f} times as fast at m = {max(ms):,} as at {min(ms):,}",
            [rise > 1],
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
