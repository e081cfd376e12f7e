"""Spark streams: ours beside plain per-key state, a stateless pass-through and native hopping windows. One run, one session.

10,000 keys, windows of 1 h and 24 h, three aggregates each; 10 % of the events are out of order by up to 10 minutes. A
micro-batch is a file that spans 30 minutes of event time, so a day's window holds 48 of them. All queries read the same
files and write Parquet.

    plain      transformWithStateInPandas by key, the events of a key in a list state, windows summed anew; beside ours on the
               same micro-batches, a few, as each takes it half a minute
    ours       sw.rolling(stream, ...)
    through    mapInArrow that appends as many copied columns: no shuffle, no state; the limit of this road
    hopping    window(ts, '10 minutes', '1 second') beside sw.time("10m", slide="1s"), closed="left"

Before anything is timed, the last revisions of ours over a small stream are compared with windows that NumPy cuts out of all
its events. A difference ends the suite.

Rates are rows by the time from trigger to commit, in the median of warm micro-batches: the first three of a query are not
counted (of hopping windows, and in quick runs of plain state and ours beside it, the first). Latency: events of a rate source,
from their own time to the commit of the micro-batch that gives their result.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slidewise as sw
from slidewise.bench.suite import Progress, Row, Suite, View, picked, values, wanted, with_ratio
from slidewise.engines.spark.counts import METRICS, OBSERVED, from_text
from slidewise.engines.spark.session import local_session
from slidewise.errors import SlidewiseError

KEYS = 10_000
SPAN = 1_800 * 1_000_000
DAY = 86_400 * 1_000_000
WINDOWS = {"hour": "1h", "day": "24h"}
AGGS = {"n": sw.count(), "total": sw.sum("amount"), "peak": sw.max("amount")}
DDL = "id long, card string, ts timestamp, amount double"
HOPS = 1_000
"""Rows a micro-batch of hopping windows: each of them is in 600."""
WARM_UP = 3
"""Micro-batches that are not counted: workers start, code is loaded."""
ANSWERS, COMPARED, COMPARED_KEYS = "answers compared", 500, 20
"""Rows of a micro-batch of which answers are compared, and their keys."""
PLAIN, BESIDE_PLAIN = "beside plain per-key state", "ours, the same micro-batches"
PARTS = {
    "beside pass-through": "through",
    PLAIN: "plain",
    "hopping": "hopping",
}
"""What is measured on the same files, and what the others of a part are divided by."""


def events(rng: np.random.Generator, rows: int, batch: int, keys: int = KEYS) -> pa.Table:
    """One micro-batch: times within its span, one in ten moved back by up to 10 minutes."""
    times = 1_600_000_000_000_000 + batch * SPAN + np.sort(rng.integers(0, SPAN, rows))
    late = rng.random(rows) < 0.1
    times[late] -= rng.integers(0, 600_000_000, late.sum())
    cards = np.char.add("card ", rng.integers(0, keys, rows).astype(str))
    return pa.table(
        {
            "id": np.arange(batch * rows, (batch + 1) * rows),
            "card": pa.array(cards),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "amount": np.round(rng.gamma(2.0, 20.0, rows), 2),
        }
    )


def files(folder: Path, rows: int, batches: Iterable[int], keys: int = KEYS) -> Path:
    """A file for each of the micro-batches, by their numbers in time."""
    rng = np.random.default_rng(rows)
    folder.mkdir(parents=True)
    for batch in batches:
        path = folder / f"{batch:04}.parquet"
        # Several row groups: a task for each core may read the file.
        pq.write_table(events(rng, rows, batch, keys), path, row_group_size=max(1, rows // 2))
        os.utime(path, (1_700_000_000 + batch,) * 2)
    return folder


# ---- the queries ------------------------------------------------------------------------------------------------------------


def ours(stream):
    return sw.rolling(stream, time="ts", by="card", windows=WINDOWS, aggs=AGGS, watermark="15m", id="id", keep="1h")


def through(stream):
    names = [f"{a}_{w}" for w in WINDOWS for a in AGGS]
    kinds = ["long" if name.startswith("n_") else "double" for name in names]
    schema = DDL + "".join(f", {name} {kind}" for name, kind in zip(names, kinds, strict=True)) + ", revision long"

    def copy(batches):
        for batch in batches:
            copies = [batch["id"] if kind == "long" else batch["amount"] for kind in kinds]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *copies, batch["id"]], names=[*batch.schema.names, *names, "revision"]
            )

    return stream.mapInArrow(copy, schema)


def plain(stream):
    """What one writes first: a list of events for each key, and a loop."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class PerKey(StatefulProcessor):
        def init(self, handle):
            self.kept = handle.getListState("kept", "ts timestamp, amount double")

        def handleInputRows(self, key, rows, timerValues):
            old = pd.DataFrame(list(self.kept.get()), columns=["ts", "amount"])
            new = pd.concat(list(rows))
            every = pd.concat([old, new[["ts", "amount"]]]).sort_values("ts")
            self.kept.appendList(list(new[["ts", "amount"]].itertuples(index=False, name=None)))
            times, amounts = every["ts"].to_numpy(), every["amount"].to_numpy()
            found = new.copy()
            for name, hours in (("hour", 1), ("day", 24)):
                parts = [amounts[(times <= t) & (times > t - np.timedelta64(hours, "h"))] for t in new["ts"].to_numpy()]
                found[f"n_{name}"] = [len(p) for p in parts]
                found[f"total_{name}"] = [p.sum() for p in parts]
                found[f"peak_{name}"] = [p.max() for p in parts]
            yield found

        def close(self):
            pass

    schema = DDL + "".join(f", n_{w} long, total_{w} double, peak_{w} double" for w in WINDOWS)
    return stream.groupBy("card").transformWithStateInPandas(PerKey(), schema, "append", "None")


def hopping(stream):
    from pyspark.sql import functions as F

    cut = stream.withWatermark("ts", "15 minutes")
    return cut.groupBy(F.window("ts", "10 minutes", "1 second"), "card").agg(F.sum("amount"), F.count("id"))


def our_hopping(stream):
    return sw.rolling(
        stream, time="ts", by="card", windows={"w": sw.time("10m", slide="1s")}, aggs={"t": sw.sum("amount"), "n": sw.count()},
        closed="left", emit="slide", results="final", watermark="15m", id="id",
    )  # fmt: skip


# ---- measuring -----------------------------------------------------------------------------------------------------------------


def measured(spark, make, source: Path, root: Path, batches: int, read=None) -> list[dict]:
    """The progress of each micro-batch of a query over the first files of `source`, and `read(folder)` of what it wrote. `root`
    must be a name not used before: Spark's state store may still write into it when the query has stopped."""
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(source))
    query = (
        make(stream).writeStream.format("parquet").option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    try:
        while query.isActive:
            query.awaitTermination(1)
            last = query.lastProgress
            if last is not None and last["batchId"] + 1 >= batches:
                break
        if read is not None:
            query.stop()
            read(root / "out")
        return [dict(progress) for progress in query.recentProgress if progress["numInputRows"]][:batches]
    finally:
        query.stop()
        shutil.rmtree(root, ignore_errors=True)


def cut_out(table: pa.Table) -> dict[str, np.ndarray]:
    """Our columns for these events in the order of their ids, each window cut out of all events of its key."""
    table = table.sort_by("id")
    cards = np.array(table["card"].to_pylist())
    times, amounts = table["ts"].cast("int64").to_numpy(), table["amount"].to_numpy()
    found = {f"{a}_{w}": np.zeros(len(times)) for w in WINDOWS for a in AGGS}
    for card in np.unique(cards):
        mine = np.flatnonzero(cards == card)
        for k in mine:
            for name, span in (("hour", 3_600_000_000), ("day", DAY)):
                inside = amounts[mine[(times[mine] <= times[k]) & (times[mine] > times[k] - span)]]
                found[f"n_{name}"][k], found[f"total_{name}"][k] = len(inside), inside.sum()
                found[f"peak_{name}"][k] = inside.max()
    return found


def last_revisions(table: pa.Table) -> pa.Table:
    """Of each id the row that was written last, in the order of the ids."""
    table = table.sort_by([("id", "ascending"), ("revision", "ascending")])
    ids = table["id"].to_numpy()
    return table.filter(pa.array(np.append(ids[1:] != ids[:-1], True)))


def same(ours: pa.Table, given: pa.Table) -> int:
    """How many events were compared, by their last revisions. Sums may differ in the last digits."""
    last = last_revisions(ours)
    if not np.array_equal(last["id"].to_numpy(), np.sort(given["id"].to_numpy())):
        raise SlidewiseError(f"the stream gave answers for {last.num_rows:,} events, not for the {given.num_rows:,} that it had")
    for name, column in cut_out(given).items():
        agree = np.isclose(last[name].to_numpy(), column, rtol=1e-9)
        if not agree.all():
            at = int(np.flatnonzero(~agree)[0])
            raise SlidewiseError(
                f"{name} differs in {int((~agree).sum()):,} of {len(agree):,} last revisions; first for id {last['id'][at]}: ours "
                f"{last[name][at]}, wanted {column[at]}"
            )
    return last.num_rows


def compared(spark, root: Path) -> int:
    """Answers of ours over four micro-batches of a few keys, in which late events revise what was told; by the last of them the
    first has left the day's window, and the hour's has nothing of the others."""
    source = files(root / "in-answers", COMPARED, (0, 1, 2, 49), COMPARED_KEYS)
    found: list[int] = []
    measured(spark, ours, source, root / "answers", 4, lambda out: found.append(same(pq.read_table(out), pq.read_table(source))))
    return found[0]


def rate(progress: list[dict], skip: int) -> float:
    """Rows a second, trigger to commit: the median of the warm micro-batches."""
    warm = progress[skip:] or progress[-1:]
    return statistics.median(p["numInputRows"] / (p["durationMs"]["triggerExecution"] / 1000) for p in warm)


def written(progress: list[dict]) -> list[int]:
    """State bytes written in each micro-batch, as the workers count them."""
    found = []
    for one in progress:
        texts = [
            text for name, row in one["observedMetrics"].items() if name.startswith(OBSERVED) for text in row[METRICS]
        ]
        found.append(sum(from_text(text)["bytes_written"] for text in texts))
    return found


def state(written: list[int], size: int) -> dict[str, float]:
    """What is written for an event when nothing else is written with it, and what in the last third of the micro-batches, with
    what the longest window holds then."""
    third = max(1, len(written) // 3)
    held = [min(k + 1, DAY // SPAN) for k in range(len(written))]
    return {
        "bytes_an_event": min(written) / size,
        "bytes_an_event_late": sum(written[-third:]) / third / size,
        "batches_in_window_late": sum(held[-third:]) / third,
    }


def latencies(spark, root: Path, rows_a_second: int, seconds: int) -> tuple[float, float]:
    """(p50, p99) seconds from an event's own time to the commit of its result."""
    from pyspark.sql import functions as F

    stream = spark.readStream.format("rate").option("rowsPerSecond", rows_a_second).load()
    stream = stream.select(
        F.col("value").alias("id"),
        F.concat(F.lit("card "), F.pmod(F.xxhash64("value"), F.lit(KEYS)).cast("string")).alias("card"),
        F.col("timestamp").alias("ts"),
        F.pmod("value", F.lit(97)).cast("double").alias("amount"),
    )
    query = (
        ours(stream).writeStream.format("parquet").option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint")).start()
    )  # fmt: skip
    done: dict[int, float] = {}
    deadline = time.time() + seconds
    while time.time() < deadline:
        time.sleep(0.2)
    for progress in query.recentProgress:
        begun = np.datetime64(progress["timestamp"].rstrip("Z"), "us").astype(np.int64)
        done[progress["batchId"]] = begun / 1e6 + progress["durationMs"]["triggerExecution"] / 1000
    query.stop()
    found = spark.read.parquet(str(root / "out")).select("revision", F.unix_micros("ts").alias("ts")).toArrow()
    shutil.rmtree(root, ignore_errors=True)
    batch, ts = found["revision"].to_numpy(), found["ts"].to_numpy() / 1e6
    warm = [number for number in done if number >= 3]
    waits = np.concatenate([done[number] - ts[batch == number] for number in warm])
    return float(np.quantile(waits, 0.5)), float(np.quantile(waits, 0.99))


def run(quick: bool, progress: Progress) -> list[Row]:
    spark = local_session("slidewise-bench", cores=2, log=tempfile.mktemp(prefix="slidewise-bench-", suffix=".log"))
    root = Path(tempfile.mkdtemp(prefix="slidewise-bench-"))
    rows: list[Row] = []

    def note(part: str, what: str, size: int, **values) -> None:
        blank = dict.fromkeys(("rows_s", "bytes_an_event", "bytes_an_event_late", "batches_in_window_late", "p50_s", "p99_s"))
        rows.append({"part": part, "what": what, "rows_a_batch": size, **blank, **values})

    try:
        progress("comparing answers")
        note(ANSWERS, ANSWERS, compared(spark, root))
        plan = {20_000: (12 if quick else 60), 200_000: (6 if quick else 14)}
        for size, count in plan.items():
            source = files(root / f"in-{size}", size, range(count))
            for name, make in (("through", through), ("ours", ours)):
                progress(f"{name}, {size:,} rows a micro-batch")
                found = measured(spark, make, source, root / f"{name}-{size}", count)
                values: dict = {"rows_s": rate(found, WARM_UP)}
                if name == "ours":
                    values |= state(written(found), size)
                note("beside pass-through", name, size, **values)
            if size == 20_000:
                skip, few = (1, 2) if quick else (WARM_UP, WARM_UP + 2)
                progress(f"plain per-key state, {size:,} rows a micro-batch")
                for name, of in (("plain", measured(spark, plain, source, root / "plain", few)), (BESIDE_PLAIN, found)):
                    note(PLAIN, name, size, rows_s=rate(of[:few], skip))
        hops = files(root / "in-hops", HOPS, range(3))
        for name, make in (("hopping", hopping), ("our hopping", our_hopping)):
            progress(name)
            note("hopping", name, HOPS, rows_s=rate(measured(spark, make, hops, root / name, 3), 1))
        progress("latency")
        p50, p99 = latencies(spark, root / "latency", 5_000, 25 if quick else 45)
        note("latency", "latency at 5,000 rows/s", 5_000, p50_s=p50, p99_s=p99)
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)
    for part, base in PARTS.items():
        with_ratio(picked(rows, (("part", part),)), "rows_s", ("what", base), ("rows_a_batch",), "times")
    return [{"times": None, **row} for row in rows]


def views(rows: list[Row]) -> list[View]:
    if "part" not in rows[0]:  # filed before there were parts
        return [View("thousand rows a second, by rows a micro-batch", "what", "rows_a_batch", "rows_s", form=_thousands)]
    found = []
    for part in [part for part in values(rows, "part") if part in PARTS]:
        only = (("part", part),)
        found.append(
            View(
                f"{part}: times the rate of {PARTS[part]}, by rows a micro-batch", "what", "rows_a_batch", "times", only,
                form="{:.2f}".format,
            )
        )  # fmt: skip
        found.append(View(f"{part}: thousand rows a second", "what", "rows_a_batch", "rows_s", only, form=_thousands))
    only = (("part", "latency"),)
    return [
        *found,
        View("seconds from event to result, half of the events within", "what", "rows_a_batch", "p50_s", only, form=_seconds),
        View("seconds from event to result, 99 % within", "what", "rows_a_batch", "p99_s", only, form=_seconds),
    ]


def _thousands(value) -> str:
    return "" if value is None else f"{value / 1000:,.2f}" if value < 10_000 else f"{value / 1000:,.1f}"


def _seconds(value) -> str:
    return "" if value is None else f"{value:.2f}"


def verdicts(rows: list[Row]) -> list[str]:
    by = {(row["what"], row["rows_a_batch"]): row for row in rows}
    said = []
    for size, least in ((20_000, 0.35), (200_000, 0.4)):
        mine, limit = by["ours", size], by["through", size]
        share = mine["rows_s"] / limit["rows_s"]
        said.append(
            f"{size:,} rows a micro-batch: ours {mine['rows_s']:,.0f} rows/s, {share:.0%} of the pass-through's "
            f"{limit['rows_s']:,.0f}{wanted(share, least, '{:.0%}')}"
        )
        said.append(f"{size:,} rows a micro-batch: {_proportion(mine)}")
    # results that were filed before have one rate of ours
    beside, other = by.get((BESIDE_PLAIN, 20_000)), by["plain", 20_000]["rows_s"]
    times = (beside or by["ours", 20_000])["rows_s"] / other
    which = " in the same micro-batches" if beside else ""
    said.append(f"ours{which} is {times:,.1f} times plain per-key state ({other:,.0f} rows/s){wanted(times, 20)}")
    mine, other = by["our hopping", HOPS]["rows_s"], by["hopping", HOPS]["rows_s"]
    said.append(
        f"hopping 10 minutes by 1 second: ours {mine:,.0f} rows/s, {mine / other:,.1f} times Spark's window() ({other:,.0f})"
    )
    wait = by["latency at 5,000 rows/s", 5_000]
    said.append(f"event to result at 5,000 rows/s: p50 {wait['p50_s']:.2f} s, p99 {wait['p99_s']:.2f} s")
    said += [
        f"answers compared on {size:,} rows, last revisions with windows cut out of all events: the same"
        for what, size in by if what == ANSWERS
    ]  # fmt: skip
    return said


def _proportion(row: Row) -> str:
    """The log is merged by tiers, of which there are two until a segment is full: in the long run an event is written three
    times, and in some third of a run up to five. Who writes windows writes it as often as the window holds micro-batches."""
    times, window = row["bytes_an_event_late"] / row["bytes_an_event"], row["batches_in_window_late"]
    sentence = "in proportion to the events, not to the window" if times <= min(5, window / 2) else "growing with the window"
    return (
        f"{row['bytes_an_event']:.0f} bytes of state an event, written {times:.1f} times over in the last third, where whole "
        f"windows would be {window:.0f} times: {sentence}"
    )


SUITE = Suite(
    name="spark-stream",
    source="Spark Structured Streaming, transformWithStateInPandas, window()",
    summary="Streams on Spark: rows a second, state written, latency",
    run=run,
    views=views,
    verdicts=verdicts,
)
