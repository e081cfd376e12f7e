"""Run a job that was checked: on Spark or in this process, as a batch or as a stream."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import slidewise as sw
from slidewise.errors import RunError, SlidewiseError
from slidewise.pipeline import meaning, schema
from slidewise.pipeline.checking import Checked
from slidewise.pipeline.failing import words
from slidewise.pipeline.ownership import check_owner, note_owner
from slidewise.pipeline.progress import Step, Summary, step_of, tasks_told
from slidewise.pipeline.reading import Document

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from slidewise.pipeline.sinks import StreamSink

_GRACE_SECONDS = 60
"""How long a micro-batch that runs may take to end after a stop was asked for."""

_STARTS = 5
"""How often a stream is started whose first Python does not come up in time."""

Show = Callable[[pa.Table, str], None]


def run(
    checked: Checked,
    *,
    on_step: Callable[[Step], None] = lambda step: None,
    stop: threading.Event | None = None,
    show: Show | None = None,
    log: Path | None = None,
    on_session: Callable[[], None] = lambda: None,
    note: Callable[[str], None] | None = None,
) -> Summary:
    """Run the job to its end, or until `stop` is set: a stream then ends after a micro-batch, a batch is given up.

    on_step is told of each micro-batch; show is given the rows of the sink `console`; log is a file for Spark's own words;
    on_session is called when Spark is up (it sets signal handlers of its own when it starts); note is told what is being done.
    """
    job, document = checked.job, checked.document
    summary = Summary(document.name, job.mode, _sink_name(checked))
    try:
        told = note or (lambda text: None)
        if job.engine == "local":
            told("computing")
            return _run_here(checked, summary, show or _print)
        if checked.streams:
            check_owner(document)
        from slidewise.pipeline.session import open_session

        told("starting Spark")
        with open_session(document.name, job, log) as spark:
            on_session()
            if checked.streams:
                told("first micro-batch, compiling")
                return _run_stream(checked, summary, spark, on_step, stop or threading.Event(), show or _print)
            with contextlib.nullcontext() if note is None else tasks_told(spark, note):
                return _run_batch(checked, summary, spark, stop or threading.Event(), show or _print)
    except Exception as error:
        said = str(error) if isinstance(error, SlidewiseError) else words(error, log)
        hidden = document.origin.secrets.hide(said)
        if isinstance(error, SlidewiseError) and hidden == said:
            raise
        failed = RunError(hidden)
        failed.hide = document.origin.secrets.hide  # type: ignore[attr-defined]  # for whoever shows where it came from
        raise failed from error


def _run_here(checked: Checked, summary: Summary, show: Show) -> Summary:
    from slidewise.pipeline import local
    from slidewise.pipeline.sinks import first_rows

    sink = checked.job.sink
    summary.rows, results = local.compute(checked)
    if isinstance(sink, schema.MemorySink):
        summary.table = results
    elif isinstance(sink, schema.ConsoleSink):
        show(*first_rows(results, sink.rows))
    else:
        assert isinstance(sink, schema.FileSink)
        local.write_table(checked.document, sink, results)
    return summary.ended()


def _run_batch(checked: Checked, summary: Summary, spark: SparkSession, stop: threading.Event, show: Show) -> Summary:
    try:
        with _given_up(spark, stop):
            return _compute(checked, summary, spark, show)
    except Exception:
        if stop.is_set():
            return summary.ended("stopped")
        raise


@contextlib.contextmanager
def _given_up(spark: SparkSession, stop: threading.Event) -> Iterator[None]:
    """From when `stop` is set on, all Spark jobs that are begun inside are cancelled."""
    tag, context, ended = f"slidewise-{uuid.uuid4().hex}", spark.sparkContext, threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            if stop.is_set():
                context.cancelJobsWithTag(tag)

    watcher = threading.Thread(target=watch, name="slidewise-stop", daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.removeJobTag(tag)


def _compute(checked: Checked, summary: Summary, spark: SparkSession, show: Show) -> Summary:
    from slidewise.pipeline.sinks import write_batch
    from slidewise.pipeline.sources import batch_frame

    job, document = checked.job, checked.document
    data = batch_frame(spark, document, job.source)
    if job.as_of is None:
        results = sw.rolling(data, **checked.arguments)
    else:
        results = sw.as_of(batch_frame(spark, document, job.as_of.queries), data, **checked.arguments)
    counted, observation = _counted(results)
    summary.table = write_batch(checked, counted, show)
    summary.rows = None if isinstance(job.sink, schema.ConsoleSink) else observation.get["rows"]
    return summary.ended()


def _counted(results: DataFrame) -> tuple[DataFrame, Any]:
    """The same rows, counted on the way."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation("slidewise_rows")
    return results.observe(observation, F.count(F.lit(1)).alias("rows")), observation


def results_of(checked: Checked, spark: SparkSession, control: str | None = None) -> DataFrame:
    """The stream of results. control: the folder by which the stream is told of its end."""
    from slidewise.pipeline.sources import batch_frame, stream_frame

    job, document = checked.job, checked.document
    more = meaning.stream_arguments(job)
    if job.history is not None:
        more["history"] = batch_frame(spark, document, job.history)
    if control is not None:
        more["control"] = control
    return sw.rolling(stream_frame(spark, document, job.source), **checked.arguments, **more)


def _run_stream(
    checked: Checked, summary: Summary, spark: SparkSession, on_step: Callable[[Step], None], stop: threading.Event, show: Show
) -> Summary:
    from slidewise.pipeline.sinks import StreamSink

    job, document = checked.job, checked.document
    assert job.stream is not None
    sink = StreamSink(checked, show)
    trigger = _trigger(job.stream.trigger)
    reporter = _Reporter(summary, on_step)
    with _memory_of(checked) as (checkpoint, control):
        writer = results_of(checked, spark, control).writeStream.outputMode("append").queryName(document.name)
        writer = writer.foreachBatch(sink).trigger(**trigger)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", checkpoint)
        _follow(document, writer.start, reporter, stop, sink)
        if meaning.ends_here(job) and not stop.is_set():
            assert control is not None
            sw.flush(control)
            _follow(document, writer.start, reporter, stop, sink)
    summary.rows = sum(step.rows for step in summary.steps)
    summary.table = sink.table()
    summary.waiting = job.stream.results == "final" and (stop.is_set() or not meaning.ends_here(job))
    summary.goes_on = job.stream.checkpoint is not None and not isinstance(job.source, schema.SocketSource)
    return summary.ended("stopped" if stop.is_set() else "finished")


@contextlib.contextmanager
def _memory_of(checked: Checked) -> Iterator[tuple[str | None, str | None]]:
    """The folders of the checkpoint and of the words to the stream, beside it. A stream that gives final results listens in
    every run, so that any of them can be its last."""
    job, document = checked.job, checked.document
    assert job.stream is not None
    checkpoint = None if job.stream.checkpoint is None else document.path(job.stream.checkpoint).rstrip("/")
    if job.stream.results != "final":
        yield checkpoint, None
    elif checkpoint is not None:
        yield checkpoint, f"{checkpoint}-control"
    else:  # forgotten at the end, but the second half of a run that ends must know of the first
        with tempfile.TemporaryDirectory(prefix="slidewise-stream-", ignore_cleanup_errors=True) as folder:
            yield f"{folder}/checkpoint", f"{folder}/control"


def _follow(
    document: Document, start: Callable[[], StreamingQuery], reporter: _Reporter, stop: threading.Event, sink: StreamSink
) -> None:
    """Start a query and follow it; once more where it never got going. Spark asks a Python of its own for the shape of the state
    first, and gives it ten seconds to start, whatever else the machine has to do."""
    for left in reversed(range(_STARTS)):
        before = reporter.last
        try:
            _watch(document, start(), reporter, stop, sink)
            return
        except Exception as error:
            again = left and reporter.last == before and not stop.is_set() and "worker failed to connect back" in str(error)
            if not again:
                raise


def _watch(document: Document, query: StreamingQuery, reporter: _Reporter, stop: threading.Event, sink: StreamSink) -> None:
    """Follow a query until it ends, or until `stop` is set."""
    note_owner(document, query.id)
    try:
        while not query.awaitTermination(0.25):
            reporter.tell(query)
            if stop.is_set():
                _wait_for_the_batch(query, reporter, sink)
                break
    finally:
        if query.isActive:
            query.stop()
        reporter.tell(query)


def _trigger(text: str) -> dict[str, Any]:
    if text == "available_now":
        return {"availableNow": True}
    if text == "asap":
        return {"processingTime": "0 seconds"}
    from slidewise.windows.duration import nanoseconds

    return {"processingTime": f"{nanoseconds(text) // 1_000_000} milliseconds"}


class _Reporter:
    """Tells of each micro-batch once."""

    def __init__(self, summary: Summary, on_step: Callable[[Step], None]):
        self.summary, self.on_step = summary, on_step
        self.last = -1

    def tell(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            # Between micro-batches Spark also reports that nothing happened, under the number that comes next.
            if progress["batchId"] <= self.last or "addBatch" not in progress["durationMs"]:
                continue
            self.last = progress["batchId"]
            step = step_of(progress)
            self.summary.steps.append(step)
            self.on_step(step)


def _wait_for_the_batch(query: StreamingQuery, reporter: _Reporter, sink: StreamSink) -> None:
    """Let the micro-batch that runs come to its end, so that what it wrote is told of; what is cut off is done again by the next
    run. The one before may have ended untold, so the sink is asked which one runs."""
    reporter.tell(query)
    wanted = max(sink.begun, reporter.last + 1)
    pause = threading.Event()
    for _ in range(_GRACE_SECONDS * 10):
        if not query.isActive or not query.status["isTriggerActive"]:
            return
        reporter.tell(query)
        if reporter.last >= wanted:
            return
        pause.wait(0.1)


def _sink_name(checked: Checked) -> str:
    sink = checked.document.shown()["sink"]
    where = sink.get("path") or sink.get("table") or sink.get("topic")
    return f"{checked.job.sink.__struct_config__.tag}{f' {where}' if where else ''}"


def _print(table: pa.Table, title: str) -> None:
    print(title)
    for row in table.to_pylist():
        print(row)
