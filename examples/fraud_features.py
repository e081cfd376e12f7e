"""Fraud features per card, defined once: a training set (`as_of`) from the past, and the same features live on a Spark stream.

    python examples/fraud_features.py
"""

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import slidewise as sw
from slidewise.engines.spark.session import local_session
from slidewise.pipeline import latest

FEATURES = {
    "time": "ts",
    "by": "card",
    "windows": ["1h", "24h"],
    "aggs": {"payments": sw.count(), "spent": sw.sum("cents"), "largest": sw.max("cents")},
    "closed": "left",  # what was known before the payment: a model that sees the payment itself would be another one
}
"""The one definition. Both sides below use it, so what the model is asked is what it was trained on."""


def payments(count: int = 300, seed: int = 7) -> pa.Table:
    """Two days of payments of five cards, in the order in which they arrive: not the order in which they were made."""
    chance = random.Random(seed)
    start = datetime(2026, 5, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=chance.randrange(2 * 86_400)) for _ in range(count)]
    return pa.table({
        "payment": list(range(count)),
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "card": [f"card-{chance.randrange(5)}" for _ in range(count)],
        "cents": [chance.randrange(100, 50_000) for _ in range(count)],
    })


def training_set(history: pa.Table, labels: pa.Table) -> pa.Table:
    """Features as they were just before each label's moment: nothing of the moment itself leaks in."""
    return sw.as_of(labels, history, **FEATURES)


def live_features(folder: Path) -> pa.Table:
    """The same features for each payment as it arrives; given again where an earlier payment comes after it."""
    spark = local_session("fraud-features", log=folder / "spark.log")
    reader = spark.readStream.schema("payment long, ts timestamp, card string, cents long").option("maxFilesPerTrigger", 1)
    stream = reader.parquet(str(folder / "payments"))
    features = sw.rolling(stream, **FEATURES, watermark="2d", id="payment")
    writer = features.writeStream.format("memory").queryName("features").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "state")).start().awaitTermination()
    found = spark.table("features").toArrow()
    spark.stop()
    return found


def main() -> None:
    history = payments()
    labels = history.select(["payment", "ts", "card"]).slice(0, 100)
    train = training_set(history, labels)
    print(f"training set: {train.num_rows} labels, {', '.join(train.column_names[3:])}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "payments").mkdir()
        for number in range(2):
            pq.write_table(history.slice(number * 150, 150), folder / "payments" / f"{number}.parquet")
        given = live_features(folder)
    live = latest(given, "payment").sort_by("payment")
    print(f"live: {live.num_rows} payments, {given.num_rows - live.num_rows} results given again")

    labelled = live.take(train["payment"])
    for column in train.column_names[3:]:
        assert labelled[column].to_pylist() == train[column].to_pylist(), column
    print("the stream's last word on the labelled payments is the training set")


if __name__ == "__main__":
    main()
