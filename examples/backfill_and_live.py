"""Backfill and live with one job file, `payments.toml`: the same windows over everything there is, and over a stream.

    python examples/backfill_and_live.py [FOLDER]

Job file, payments and results are left in the folder, to go on with; without one nothing is left.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from fraud_features import payments

from slidewise.pipeline import latest, load, run

JOB = Path(__file__).with_name("payments.toml")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    job = Path(shutil.copy(JOB, folder))
    (folder / "incoming").mkdir(exist_ok=True)
    events = payments()
    for number in range(2):
        pq.write_table(events.slice(number * 150, 150), folder / "incoming" / f"{number}.parquet")

    # slidewise run payments.toml --set mode=batch --set engine=local ...
    backfill = run(load(job, ["mode=batch", "engine=local", "sink={format='memory'}"])).table
    # slidewise run payments.toml
    summary = run(load(job), log=folder / "spark.log")  # Spark says much that nobody asked for
    print(f"live: {len(summary.steps)} micro-batches, {summary.counts['out']} results for {summary.rows} payments")
    live = ds.dataset(folder / "live", format="parquet", partitioning="hive").to_table()

    last, backfill = latest(live, "payment").sort_by("payment"), backfill.sort_by("payment")
    for column in ("payments_1h", "spent_1h", "payments_10r", "spent_10r"):
        assert last[column].to_pylist() == backfill[column].to_pylist(), column
    print(f"{last.num_rows} payments: the stream's last word is the backfill's")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
