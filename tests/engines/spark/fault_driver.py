"""A driver program for the tests of faults: one stream on a cluster of executors in processes of their own.

    python fault_driver.py ROOT [NAME=VALUE ...]

Reads ROOT/in, writes ROOT/out, checkpoint in ROOT/checkpoint, counts of each micro-batch into ROOT/counts.jsonl. Nothing is
mocked: an operator tells in which process it runs and waits where it is told to, and the test sends the signal.

runs=NAME,NAME,...: several runs in this one session, each with its own checkpoint (`checkpoint` or `checkpoint-NAME`) and sink.
Before each but the first the program writes ROOT/ready-NUMBER and waits for ROOT/go-NUMBER.
results=final: final results; it listens to ROOT/control.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path

DDL = "id long, card string, ts timestamp, amount long, shop string"
PATIENCE = 300


def settings() -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in sys.argv[2:])


def aggregates(root: str) -> dict:
    """Some that care for the order of rows, and one whose workers can be found."""
    import slidewise as sw

    return {"total": sw.sum("amount"), "n": watched(root)("id"), "tail": sw.last("shop"), "line": sw.concat("shop", sep="")}


def watched(root: str):
    """A count whose workers can be found. ROOT/watch holds the number of an event: who lifts it writes the numbers of its
    process and attempt into ROOT/pids, and waits as long as there is a file ROOT/hold-NUMBER."""
    import slidewise as sw

    def lift(number):
        folder = Path(root)
        try:
            wanted = int((folder / "watch").read_text())
        except (OSError, ValueError):
            return 1
        if number == wanted:
            _tell(folder)
            _wait_while(lambda: (folder / f"hold-{number}").exists())
        return 1

    return sw.operator(lift=lift, combine=lambda a, b: a + b, identity=0, commutative=True, name="watched")


def _wait_while(what) -> None:
    deadline = time.monotonic() + PATIENCE
    while what() and time.monotonic() < deadline:
        time.sleep(0.05)


def _tell(folder: Path) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    with open(folder / "pids", "a") as file:
        file.write(json.dumps({
            "pid": os.getpid(), "parent": os.getppid(), "attempt": context.attemptNumber(),
            "partition": context.partitionId(), "batch": int(context.getLocalProperty("streaming.sql.batchId")),
        }) + "\n")  # fmt: skip


def noted(root: str):
    """For mapInArrow: rows as they are; ROOT/orders tells in which order each task of a micro-batch had them."""

    def note(batches):
        from pyspark import TaskContext

        context, ids = TaskContext.get(), []
        for batch in batches:
            ids += batch["id"].to_pylist()
            yield batch
        if ids:
            folder = Path(root) / "orders" / context.getLocalProperty("streaming.sql.batchId")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{time.time_ns()}-{uuid.uuid4().hex}").write_text(json.dumps(ids))

    return note


def main() -> None:
    root, given = Path(sys.argv[1]), settings()
    import pyspark
    from pyspark.sql import SparkSession

    from slidewise.engines.spark.java import use_java
    from slidewise.engines.spark.session import STREAMING

    use_java()
    os.environ.update(SPARK_HOME=str(Path(pyspark.__file__).parent), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    builder = SparkSession.builder.master(given.get("master", "local-cluster[2,1,1024]")).config(map={
        **STREAMING,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executorEnv.SLIDEWISE_CACHE_DIR": os.environ.get("SLIDEWISE_CACHE_DIR", ""),
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **{name: value for name, value in given.items() if name.startswith("spark.")},
    })  # fmt: skip
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for number, name in enumerate(given.get("runs", "").split(",")):
        if number:
            (root / f"ready-{number}").write_text("")
            _wait_while(lambda number=number: not (root / f"go-{number}").exists())
        run(spark, root, given, f"-{name}" if name else "")
    spark.stop()


def run(spark, root: Path, given: dict[str, str], suffix: str) -> None:
    """On a busy machine Spark may wait in vain for the Python that it starts beside the driver: then the query starts again."""
    from pyspark.errors import StreamingQueryException

    for left in reversed(range(5)):
        try:
            once(spark, root, given, suffix)
            break
        except StreamingQueryException as error:
            if not left or "worker failed to connect back" not in str(error):
                raise


def once(spark, root: Path, given: dict[str, str], suffix: str) -> None:
    import slidewise as sw
    from slidewise.engines.spark.counts import METRICS

    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(root / "in"))
    if "shuffle" in given:  # the same rows, in another order
        stream = stream.repartition(int(given["shuffle"]))
    kind = {"results": given["results"], "control": root / "control"} if "results" in given else {"keep": "3m"}
    result = sw.rolling(
        stream.mapInArrow(noted(str(root)), DDL), time="ts", by="card", windows={"w": "10m"}, watermark="2m", id="id",
        aggs=aggregates(str(root)), order="id", buckets=4, **kind,
    )  # fmt: skip
    query = (
        result.writeStream.format("parquet")
        .option("path", str(root / f"out{suffix}"))
        .option("checkpointLocation", str(root / f"checkpoint{suffix}"))
        .trigger(**({"availableNow": True} if "every" not in given else {"processingTime": given["every"]}))
        .start()
    )
    seen = -1
    while True:
        ended = query.awaitTermination(1)
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["numInputRows"] > 0:  # a trigger without data bears the next number
                seen = progress["batchId"]
                texts = [text for row in progress["observedMetrics"].values() for text in row[METRICS]]
                with open(root / f"counts{suffix}.jsonl", "a") as file:
                    file.write(json.dumps({"batch": seen, "texts": texts}) + "\n")
        if ended:
            break
    query.stop()


if __name__ == "__main__":
    main()
