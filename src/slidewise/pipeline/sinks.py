"""Sinks: where a batch is written once, and where each micro-batch of a stream goes.

Streams go through `foreachBatch`: a micro-batch that is run again after a failure has the same number, and

    files           are written to `batch=N`, over whatever an earlier try left there          exactly once
    jdbc, merge     replaces rows by id, in one transaction                                  exactly once
    table, merge    MERGE by id                                                              exactly once
    the others      may get a micro-batch twice                                              at least once

A micro-batch must be computed exactly once: whoever needs it twice caches it first, and nobody may ask for a part of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slidewise.pipeline import schema
from slidewise.pipeline.checking import Checked
from slidewise.pipeline.latest import LATE, latest, merge_keys
from slidewise.pipeline.packages import driver_of
from slidewise.pipeline.reading import Document, is_local
from slidewise.pipeline.sources import QUOTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CSV = QUOTES | {"header": "true"}
"""How CSV is written, where a job does not say otherwise."""


def options_of(part: Any) -> dict[str, str]:
    ours = CSV if isinstance(part, schema.CsvSink) else {}
    return ours | {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in part.options.items()}


# ---- a batch ------------------------------------------------------------------------------------------------------------


def write_batch(checked: Checked, results: DataFrame, show: Callable[[pa.Table, str], None]) -> pa.Table | None:
    """Write the results of a batch; give them back if the sink is memory."""
    document, sink = checked.document, checked.job.sink
    if isinstance(sink, schema.MemorySink):
        return results.toArrow()
    if isinstance(sink, schema.ConsoleSink):
        found = results.limit(sink.rows + 1).toArrow()  # nobody counts them all; one more tells that there are more
        show(found.slice(0, sink.rows), f"the first {_rows(sink.rows)}" if found.num_rows > sink.rows else "")
    elif isinstance(sink, schema.KafkaSink):
        _to_kafka(checked, sink, results)
    else:
        writer = results.write.mode(_mode(document, sink)).options(**options_of(sink))
        if isinstance(sink, schema.FileSink):
            writer.save(document.path(sink.path), format=str(sink.__struct_config__.tag))
        elif isinstance(sink, schema.JdbcSink):
            writer.format("jdbc").options(**jdbc_options(sink)).save()
        else:
            (writer.format(sink.provider) if sink.provider else writer).saveAsTable(sink.table)
    return None


def first_rows(table: pa.Table, rows: int) -> tuple[pa.Table, str]:
    """What the console shows of it, and a word on the rest."""
    return table.slice(0, rows), f"{rows:,} of {_rows(table.num_rows)}" if table.num_rows > rows else ""


def _rows(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''}"


def _mode(document: Document, sink: Any) -> str:
    """Spark's word for it. A folder that is there and empty, as a run that was interrupted leaves it, is as good as none."""
    if sink.mode != "error":
        return sink.mode
    empty = isinstance(sink, schema.FileSink) and is_local(sink.path) and Path(document.path(sink.path)).is_dir()
    return "append" if empty else "errorifexists"  # one that is not empty was refused before


def jdbc_options(sink: schema.JdbcSink) -> dict[str, str]:
    driver = sink.driver or driver_of(sink.url)
    given = {"url": sink.url, "dbtable": sink.table, "user": sink.user, "password": sink.password, "driver": driver}
    return options_of(sink) | {key: value for key, value in given.items() if value is not None}


def _to_kafka(checked: Checked, sink: schema.KafkaSink, rows: DataFrame) -> None:
    from pyspark.sql import functions as F

    by = checked.arguments["by"]
    key = F.to_json(F.struct(*by)) if by else F.lit(None).cast("string")
    messages = rows.select(key.alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = messages.write.format("kafka").options(**options_of(sink))
    writer.option("kafka.bootstrap.servers", sink.servers).option("topic", sink.topic).save()


# ---- a stream -----------------------------------------------------------------------------------------------------------


@dataclass
class StreamSink:
    """What is called for each micro-batch."""

    checked: Checked
    show: Callable[[pa.Table, str], None]
    kept: list[pa.Table] = field(default_factory=list)
    """Micro-batches of the sink `memory`."""
    begun: int = -1
    """The number of the last micro-batch that was handed to it."""

    def __call__(self, rows: DataFrame, number: int) -> None:
        self.begun = number
        with self._without_dead_letters(rows, number) as results:
            self._write(results, number)

    def table(self) -> pa.Table | None:
        """Everything that the sink `memory` got; merged if that was asked for."""
        sink = self.checked.job.sink
        if not isinstance(sink, schema.MemorySink) or not self.kept:
            return None
        found = pa.concat_tables(self.kept)
        return latest(found, merge_keys(self.checked.job)) if sink.merge else found

    @contextlib.contextmanager
    def _without_dead_letters(self, rows: DataFrame, number: int) -> Iterator[DataFrame]:
        letters = self.checked.job.dead_letters
        if letters is None or LATE not in rows.columns:
            yield rows
            return
        from pyspark.sql import functions as F

        rows = rows.persist()
        try:
            late = F.coalesce(F.col(LATE), F.lit(False))
            given = {output for output in rows.columns if output not in self._input_columns(rows)}
            dead = rows.where(late).drop(*given)
            path = batch_folder(self.checked.document, letters.path, number)
            options = CSV if letters.format == "csv" else {}
            dead.write.mode("overwrite").format(letters.format).options(**options).save(path)
            yield rows.where(~late).drop(LATE)
        finally:
            rows.unpersist()

    def _input_columns(self, rows: DataFrame) -> set[str]:
        """A late event goes as it came: without the columns of results."""
        results = {f"{name}_{window}" for name in self.checked.arguments["aggs"] for window in self._window_names()}
        return {name for name in rows.columns if name not in results | {LATE, "revision", "complete"}}

    def _window_names(self) -> list[str]:
        from slidewise.windows.spec import named_windows

        return list(named_windows(self.checked.arguments["windows"]))

    def _write(self, rows: DataFrame, number: int) -> None:
        sink, document = self.checked.job.sink, self.checked.document
        if isinstance(sink, schema.FileSink):
            writer = rows.write.mode("overwrite").options(**options_of(sink)).format(str(sink.__struct_config__.tag))
            writer.save(batch_folder(document, sink.path, number))
        elif isinstance(sink, schema.MemorySink):
            self.kept.append(rows.toArrow())
        elif isinstance(sink, schema.ConsoleSink):
            shown, title = first_rows(rows.toArrow(), sink.rows)
            if shown.num_rows:
                self.show(shown, f"micro-batch {number}{f': {title}' if title else ''}")
        elif isinstance(sink, schema.KafkaSink):
            _to_kafka(self.checked, sink, rows)
        elif isinstance(sink, schema.JdbcSink):
            self._to_jdbc(sink, rows)
        else:
            self._to_table(sink, rows, number)

    def _to_jdbc(self, sink: schema.JdbcSink, rows: DataFrame) -> None:
        from slidewise.pipeline.merging import merge_jdbc

        if sink.merge:
            merge_jdbc(rows, sink, jdbc_options(sink), merge_keys(self.checked.job))
        else:
            rows.write.format("jdbc").mode("append").options(**jdbc_options(sink)).save()

    def _to_table(self, sink: schema.TableSink, rows: DataFrame, number: int) -> None:
        from slidewise.pipeline.merging import merge_table

        if sink.merge:
            merge_table(rows, sink, merge_keys(self.checked.job))
            return
        writer = rows.write.mode("append").options(**options_of(sink))
        if sink.provider == "delta":
            # Delta remembers the number, and leaves out a micro-batch that it has already.
            query = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            writer = writer.option("txnAppId", query).option("txnVersion", number)
        (writer.format(sink.provider) if sink.provider else writer).saveAsTable(sink.table)


def batch_folder(document: Document, path: str, number: int) -> str:
    return f"{document.path(path).rstrip('/')}/batch={number}"
