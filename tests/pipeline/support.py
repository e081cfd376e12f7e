"""Small jobs for the tests: events, a job file beside them, and what comes out."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def events(count: int = 200, keys: int = 3, seed: int = 1) -> pa.Table:
    """Payments with a time, an arrival up to half an hour later, a card, an amount in whole cents."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(6 * 3600) for _ in range(count))
    return pa.table(
        {
            "id": list(range(count)),
            "ts": pa.array([START + datetime.timedelta(seconds=t) for t in times], pa.timestamp("us", tz="UTC")),
            "arrived": pa.array(
                [START + datetime.timedelta(seconds=t + chance.randrange(1800)) for t in times], pa.timestamp("us", tz="UTC")
            ),
            "card": [f"c{chance.randrange(keys)}" for _ in times],
            "amount": [chance.randrange(1, 10_000) for _ in times],
            "paid": [chance.random() < 0.8 for _ in times],
        }
    )


JOB = """\
time = "ts"
by = "card"
id = "id"
windows = ["1h", { rows = 5 }]

[aggregates]
payments = "count()"
total = "sum(amount)"
largest = { operator = "argmax", columns = ["amount", "id"], where = "paid" }

[source]
format = "parquet"
path = "events.parquet"

[stream]
watermark = "10m"
checkpoint = "state"
trigger = "available_now"
ttl = "1d"

[sink]
format = "memory"
"""


def job(folder: Path, text: str = JOB, table: pa.Table | None = None) -> Path:
    """A job file in a folder, with its events."""
    pq.write_table(events() if table is None else table, folder / "events.parquet")
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return path
