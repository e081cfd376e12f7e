"""Sources as Spark frames."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slidewise.pipeline import schema
from slidewise.pipeline.reading import Document
from slidewise.pipeline.replay import lay_out, read_file
from slidewise.pipeline.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUOTES = {"escape": '"'}
"""A quote inside quoted text is doubled, as everyone but Spark writes it: by itself it wants a backslash."""
_STRICT = {"csv": QUOTES | {"mode": "FAILFAST"}, "json": {"mode": "FAILFAST"}}
"""What cannot be read is an error: Spark by itself takes it as null, and nobody is told. A job's own options win."""


def batch_frame(spark: SparkSession, document: Document, source: schema.Source) -> DataFrame:
    """Everything that is there now."""
    if isinstance(source, schema.ReplaySource):
        table = read_file(document.path(source.path))
        return spark.createDataFrame(table)
    if isinstance(source, schema.KafkaSource):
        return _parsed(_kafka(spark.read, source).load(), source)
    return _files(spark.read, document, source)


def stream_frame(spark: SparkSession, document: Document, source: schema.Source) -> DataFrame:
    """What is there, and whatever comes."""
    reader = spark.readStream
    if isinstance(source, schema.RateSource):
        return reader.format("rate").options(**_options(source)).option("rowsPerSecond", source.rows_per_second).load()
    if isinstance(source, schema.SocketSource):
        reader = reader.format("socket").options(**_options(source)).option("host", source.host).option("port", source.port)
        return _parsed(reader.option("includeTimestamp", True).load(), source)
    if isinstance(source, schema.KafkaSource):
        reader = _kafka(reader, source)
        return _parsed((reader.option("maxOffsetsPerTrigger", source.max_rows) if source.max_rows else reader).load(), source)
    if isinstance(source, schema.ReplaySource):
        folder, kinds = _laid_out(document, source)
        return reader.schema(kinds).option("maxFilesPerTrigger", 1).parquet(folder)
    return _files(reader, document, source)


def _laid_out(document: Document, source: schema.ReplaySource) -> tuple[str, Any]:
    """The folder of the pieces (beside the checkpoint, so that a restart finds them), and their schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    table = read_file(document.path(source.path))
    stream = document.job.stream
    if stream is not None and stream.checkpoint is not None:
        checkpoint = Path(document.path(stream.checkpoint))
        folder = checkpoint.with_name(f"{checkpoint.name}-replay")
    else:
        place = tempfile.mkdtemp(prefix="slidewise-replay-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        folder = Path(place) / "pieces"
    lay_out(table, folder, order_by=source.order_by, rows=source.rows, step=source.step)
    return str(folder), from_arrow_schema(table.schema)


def _files(reader: Any, document: Document, source: Any) -> DataFrame:
    kind = str(source.__struct_config__.tag)
    reader = reader.format(kind).options(**_STRICT.get(kind, {}) | _options(source))
    if getattr(source, "schema", None):
        reader = reader.schema(spark_schema(source.schema))
    elif isinstance(source, schema.ParquetSource):
        from pyspark.sql.pandas.types import from_arrow_schema

        from slidewise.pipeline.columns import columns_of

        known, _ = columns_of(document, source, ("source",), streams=False)
        reader = reader if known is None else reader.schema(from_arrow_schema(known))
    if isinstance(source, schema.CsvSource):
        reader = reader.option("header", source.header)
        if source.header and "enforceSchema" not in source.options:
            reader = reader.option("enforceSchema", False)  # Spark takes columns by place: let it look at their names
    if source.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files)
    return reader.load(document.path(source.path))


def _kafka(reader: Any, source: schema.KafkaSource) -> Any:
    topics = source.topic if isinstance(source.topic, str) else ",".join(source.topic)
    reader = reader.format("kafka").option("kafka.bootstrap.servers", source.servers).option("subscribe", topics)
    return reader.option("startingOffsets", source.starting).options(**_options(source))


def _parsed(raw: DataFrame, source: schema.SocketSource | schema.KafkaSource) -> DataFrame:
    """The columns of a message. One that cannot be read gives nulls: its time is null, which the engine counts as bad."""
    from pyspark.sql import functions as F

    text = F.col("value").cast("string")
    if source.value == "text":
        return raw.select(text.alias("value"), F.col("timestamp"))
    kinds = spark_schema(source.schema)
    row = F.from_json(text, kinds) if source.value == "json" else F.from_csv(text, kinds, QUOTES)
    return raw.select(row.alias("row")).select("row.*")


def _options(source: Any) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in source.options.items()}
