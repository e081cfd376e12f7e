"""Words to a running query, as data: a directory of small files that is one more source of the stream.

What arrives by a source is part of the micro-batch: it is replayed with it after a crash and counted once. So the end of a
bounded run is told by a file, not by a flag. A stream that ends needs to be told: results that wait for the watermark
would otherwise wait for ever.

    query = results.writeStream ... .trigger(availableNow=True).start(); query.awaitTermination()
    sw.flush(control); the same query once more: one micro-batch, and everything still due is given

`run_bounded` does both. After a flush the stream has ended: events that come later are late.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from slidewise.engines.spark.buckets import labels
from slidewise.engines.spark.packing import BLOB, FLUSH, KIND, LABEL, PACKED
from slidewise.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERY = -1
"""A word to all buckets."""
SCHEMA = pa.schema([(LABEL, pa.int32()), (KIND, pa.int32()), (BLOB, pa.binary())])


def flush(control: str | os.PathLike[str]) -> None:
    """Tell the query that listens to this directory (`rolling(..., control=...)`) that its stream has ended: its next
    micro-batch gives all results that are still due."""
    say(control, [(EVERY, FLUSH, None)])


def run_bounded(start: Callable[[], Any], control: str | os.PathLike[str]) -> None:
    """Run a bounded stream to its end. `start()` starts the query (trigger availableNow) and returns it; it is called
    twice: once for the data, once for the results that are still due then."""
    start().awaitTermination()
    flush(control)
    start().awaitTermination()


def say(control: str | os.PathLike[str], words: list[tuple[int, int, bytes | None]]) -> None:
    """Put words (label, kind, blob) into the directory, all of them in one micro-batch."""
    path = os.fspath(control)
    table = pa.Table.from_pylist([{LABEL: a, KIND: b, BLOB: c} for a, b, c in words], schema=SCHEMA)
    name = f"{uuid.uuid4().hex}.parquet"
    if "://" not in path:
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        # Spark does not look at names with a dot in front: the file is there whole or not at all.
        pq.write_table(table, folder / f".{name}")
        os.replace(folder / f".{name}", folder / name)
        return
    try:
        from pyarrow.fs import FileSystem

        filesystem, root = FileSystem.from_uri(path)
        filesystem.create_dir(root, recursive=True)
        pq.write_table(table, f"{root}/{name}", filesystem=filesystem)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot write into the control directory {path}: {error}") from error


def listened(spark: SparkSession, control: str | os.PathLike[str], buckets: int) -> DataFrame:
    """The words as a stream of packed rows."""
    from pyspark.sql import functions as F

    path = os.fspath(control)
    if "://" not in path:
        Path(path).mkdir(parents=True, exist_ok=True)
    words = spark.readStream.schema(PACKED).parquet(path)
    whom = F.when(F.col(LABEL) == EVERY, F.array(*map(F.lit, labels(buckets)))).otherwise(F.array(LABEL))
    return words.select(F.explode(whom).alias(LABEL), KIND, BLOB)
