"""What the tests of streams share: events cut into micro-batches, a query run to its end, and its results as rows."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slidewise.engines.spark.counts import METRICS, OBSERVED, from_text

SECOND = 1_000_000
START = 1_600_000_000 * SECOND
"""Some moment, in microseconds: a multiple of an hour's worth of seconds would hide boundaries at the origin."""

EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("card", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("amount", pa.int64()),
        ("price", pa.float64()),
        ("shop", pa.string()),
        ("paid", pa.bool_()),
        ("tags", pa.list_(pa.string())),
    ]
)
DDL = "id long, card string, ts timestamp, amount long, price double, shop string, paid boolean, tags array<string>"
PLAIN = EVENTS.remove(EVENTS.get_field_index("tags"))
PLAIN_DDL = DDL.removesuffix(", tags array<string>")


def events(count: int, seed: int, *, seconds: int = 1200, cards: int = 6, jitter: int = 0) -> list[dict]:
    """Events in the order of their arrival: ties (one in four has time and card of another), nulls, and up to `jitter`
    seconds out of order."""
    rng = random.Random(seed)
    found: list[dict] = []
    for number in range(count):
        at, card = rng.randrange(seconds), rng.choice([*(f"card {i}" for i in range(cards)), None])
        if found and rng.random() < 0.25:
            other = rng.choice(found)
            at, card = (other["ts"] - START) // SECOND, other["card"]
        found.append(
            {
                "id": number,
                "card": card,
                "ts": START + at * SECOND,
                "amount": rng.choice([None, *range(-5, 20)]),
                "price": rng.choice([None, *(i / 4 for i in range(40))]),
                "shop": rng.choice(["a", "b", "c", None]),
                "paid": rng.choice([True, True, True, False, None]),
                "tags": rng.choice([None, [], ["x"], ["x", None, "y"]]),
                "_arrival": at + rng.uniform(0, jitter),
            }
        )
    found.sort(key=lambda event: event["_arrival"])
    return found


def ties(rows: Sequence[dict]) -> int:
    """How many events share card and time with an earlier one."""
    return len(rows) - len({(row["card"], row["ts"]) for row in rows})


def table(rows: Sequence[dict], schema: pa.Schema = EVENTS) -> pa.Table:
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)


def cut(rows: list, seed: int, pieces: int) -> list[list]:
    """Cut at random places; no piece is empty."""
    rng = random.Random(seed)
    places = sorted(rng.sample(range(1, len(rows)), pieces - 1))
    return [rows[i:j] for i, j in zip([0, *places], [*places, len(rows)])]


def write_batches(directory: Path, batches: Sequence[pa.Table], first: int = 0) -> None:
    """One file for each micro-batch; Spark takes files in the order of their times."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, first):
        path = directory / f"{number:05}.parquet"
        pq.write_table(batch, directory / f".{path.name}")
        os.utime(directory / f".{path.name}", (1_700_000_000 + number,) * 2)
        os.replace(directory / f".{path.name}", path)


def source(spark, directory: Path, ddl: str = DDL):
    directory.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(directory))


def start(result, root: Path):
    """The query on a Parquet sink, until its source has nothing more."""
    return (
        result.writeStream.format("parquet")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def run(result, root: Path) -> list[dict]:
    """Run to the end; the counts of each bucket and micro-batch."""
    query = start(result, root)
    query.awaitTermination()
    return counts_of(query)


def counts_of(query) -> list[dict]:
    return [
        from_text(text)
        for progress in query.recentProgress
        for name, row in progress["observedMetrics"].items()
        if name.startswith(OBSERVED)
        for text in row[METRICS]
    ]


def total(counts: list[dict], name: str) -> int:
    return sum(bucket[name] for bucket in counts)


def out(root: Path) -> list[dict]:
    """All rows of the sink; times as microseconds."""
    return sink_rows(root / "out")


def sink_rows(folder: Path, batch: int | None = None) -> list[dict]:
    """What the sink holds (of one micro-batch): the files that its log names, and no others."""
    names: dict[str, None] = {}
    logs = folder / "_spark_metadata"
    found = [p for p in logs.iterdir() if p.name.removesuffix(".compact").isdigit()] if logs.exists() else []
    for log in sorted(found, key=lambda p: int(p.name.removesuffix(".compact"))):
        if batch is None or log.name == str(batch):
            for line in log.read_text().splitlines()[1:]:
                names[Path(json.loads(line)["path"]).name] = None
    return [row for name in names for row in rows_of(pq.read_table(folder / name))]


def rows_of(found: pa.Table) -> list[dict]:
    for i, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            found = found.set_column(i, field.name, found.column(i).cast(pa.timestamp("us", found.schema.field(i).type.tz))
                                     .cast(pa.int64()))
    return found.to_pylist()


def final(rows: Sequence[dict], key: str = "id") -> dict[Any, dict]:
    """The last revision of each event that was taken in."""
    found: dict[Any, dict] = {}
    for row in rows:
        if row.get("late"):
            continue
        if row[key] not in found or row["revision"] > found[row[key]]["revision"]:
            found[row[key]] = row
    return found


def without(row: dict, *names: str) -> dict:
    return {name: value for name, value in row.items() if name not in names}
