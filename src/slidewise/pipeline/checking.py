"""What the types of a job file cannot say: names that must exist, parts that need each other, paths that must not meet.

Everything here happens before Spark starts, and everything that is wrong is told at once. The last check is the engine's own:
the plan (or a stream's specification) is made for the source's columns, if they are known by now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from slidewise.algorithms import MODULES
from slidewise.errors import SlidewiseError
from slidewise.pipeline import meaning, schema
from slidewise.pipeline.columns import columns_of
from slidewise.pipeline.problems import Problem, listed, meant
from slidewise.pipeline.reading import Document, is_local, read
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request
from slidewise.windows.duration import nanoseconds

MERGE_TABLES = ("delta", "iceberg")
PACKAGES = {"kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13", "delta": "io.delta:delta-spark_2.13"}
"""Formats that Spark does not bring along."""
_COORDINATE = re.compile(r"^[^:\s]+:[^:\s]+:[^:\s]+$")
_LOCAL = re.compile(r"^local(\[(\d+|\*)(,\s*\d+)?\])?$")


@dataclass(frozen=True)
class Checked:
    """A job that may run."""

    document: Document
    arguments: dict[str, Any]
    """Of `sw.rolling` or `sw.as_of`, beyond the data."""
    schema: pa.Schema | None
    """The source's columns, if they are known before it is read."""

    @property
    def job(self) -> Any:
        return self.document.job

    @property
    def streams(self) -> bool:
        return self.job.mode == "stream"


def load(file, settings=()) -> Checked:
    """Read and check a job file; JobError with all that is wrong."""
    return check(read(file, settings))


def check(document: Document) -> Checked:
    job = document.job
    found: list[Problem] = []
    columns, more = columns_of(document, job.source, ("source",), streams=job.mode == "stream")
    found += more
    for part in (_stream, _batch, _sink, _packages, _paths, _session):
        found += part(document)
    windows = meaning.windows_of(job, found)
    if job.algorithm not in ("auto", *MODULES):
        found.append(Problem(("algorithm",), f'no algorithm "{job.algorithm}"{meant(job.algorithm, ["auto", *MODULES])}'))
    for load in (False, True):  # no code that the job names is loaded before everything else is right
        aggregates = meaning.aggregates_of(document, found, load=load)
        if columns is not None:
            found += _unknown_columns(job, windows, aggregates, columns)
        if found:
            raise document.origin.error(found)
    arguments = meaning.arguments(job, windows, aggregates)
    _plan(document, arguments, columns)
    return Checked(document, arguments, columns)


def _unknown_columns(job: schema.Job, windows: Any, aggregates: Any, columns: pa.Schema) -> Iterator[Problem]:
    for path, name in meaning.needed(job, windows, aggregates):
        if name not in columns.names:
            yield Problem(path, f'the source has no column "{name}"{meant(name, columns.names)}')
    for name, bound in aggregates.items():
        kind = columns.field(bound.where).type if bound.where in columns.names else None
        if kind is not None and not pa.types.is_boolean(kind):
            yield Problem(("aggregates", name), f'where = "{bound.where}" must be a column of truth values, not {kind}')


def _plan(document: Document, arguments: dict[str, Any], columns: pa.Schema | None) -> None:
    """What the engine itself says to the request."""
    job = document.job
    known = {key: value for key, value in arguments.items() if key not in ("query_time", "query_by")}
    try:
        asked = request(**known, as_of=job.as_of is not None)
        if columns is None:
            return
        if job.as_of is None:
            asked.check_columns(columns.names)
        if job.mode == "stream":
            from slidewise.live.spec import stream_spec

            given = meaning.stream_arguments(job)
            given.pop("buckets", None)
            _ = stream_spec(asked, columns, **given).output_schema  # finds out the types of all results
        else:
            make_plan(asked, columns)
    except SlidewiseError as error:
        raise document.origin.error([Problem(_about(str(error), job), str(error))]) from None


def _about(message: str, job: schema.Job) -> tuple[str, ...]:
    """The key that an engine's message begins with, if it is one of the job's."""
    word = re.match(r"\w+", message)
    name = word.group() if word else ""
    if message.startswith(("the window", "two results", "the result column")):
        return ("windows",) if message.startswith("the window") else ("aggregates",)
    if name in schema.Job.__struct_fields__:
        return (name,)
    return ("stream", name) if job.stream is not None and name in schema.StreamTable.__struct_fields__ else ()


# ---- parts that need each other -----------------------------------------------------------------------------------------


def _stream(document: Document) -> Iterator[Problem]:
    job, stream = document.job, document.job.stream
    if job.mode != "stream":
        return
    if job.engine == "local":
        yield Problem(("engine",), 'runs batches only; leave it out, or take mode = "batch"')
    if job.as_of is not None:
        yield Problem(("as_of",), 'is for batches: features for rows that are there; take mode = "batch"')
    if stream is None:
        yield Problem(("mode",), 'a stream needs a table [stream], with at least watermark = "10m"')
        return
    if stream.results == "final" and stream.late == "correct":
        told = '"correct" gives results again, and final ones come once; take "side", "drop" or results = "eager"'
        yield Problem(("stream", "late"), told)
    if stream.results == "eager" and job.emit == "event" and not job.id:
        told = 'eager results come again when they change; give the key "id", the columns that say which row they replace'
        yield Problem(("stream",), f'{told}, or take results = "final"')
    if stream.checkpoint is None and not isinstance(job.sink, (schema.ConsoleSink, schema.MemorySink)):
        yield Problem(("stream",), 'needs the key "checkpoint", the folder in which it remembers how far it came')
    if stream.flush and stream.results != "final":
        yield Problem(("stream", "flush"), 'is for results = "final"; eager results are all given already')
    elif stream.flush and stream.trigger != "available_now":
        yield Problem(("stream", "flush"), 'is for a run that ends by itself; take trigger = "available_now"')
    if job.dead_letters is not None and stream.late == "drop":
        yield Problem(("dead_letters",), 'nothing comes here: stream.late = "drop" drops late events; take "side" or "correct"')
    yield from _durations(stream)


def _durations(stream: schema.StreamTable) -> Iterator[Problem]:
    for key in ("watermark", "keep", "max_ahead", "ttl"):
        value = getattr(stream, key)
        if isinstance(value, str):
            yield from _tried(("stream", key), lambda v=value: _not_negative(v))
    if stream.trigger not in ("asap", "available_now"):
        try:
            nanoseconds(stream.trigger)
        except SlidewiseError:
            yield Problem(("stream", "trigger"), f'cannot read "{stream.trigger}"{_trigger_hint(stream.trigger)}')


def _trigger_hint(given: str) -> str:
    hint = meant(given, ["asap", "available_now"])
    return hint if hint.endswith("?") else '; there is "asap", "available_now" or a time such as "10s"'


def _not_negative(text: str) -> None:
    if nanoseconds(text, f'"{text}"') < 0:
        from slidewise.errors import InputError

        raise InputError(f'must not be negative, not "{text}"')


def _batch(document: Document) -> Iterator[Problem]:
    job = document.job
    if job.mode != "batch":
        return
    if isinstance(job.source, (schema.RateSource, schema.SocketSource)):
        yield Problem(("source", "format"), f'"{job.source.__struct_config__.tag}" never ends; take mode = "stream"')
    if job.engine == "local":
        files = (schema.ParquetSource, schema.CsvSource, schema.JsonSource, schema.ReplaySource)
        places = (schema.ParquetSink, schema.CsvSink, schema.JsonSink, schema.ConsoleSink, schema.MemorySink)
        if not isinstance(job.source, files):
            yield Problem(("source", "format"), 'engine = "local" reads parquet, csv, json or replay; leave the engine out')
        if not isinstance(job.sink, places):
            told = 'engine = "local" writes parquet, csv, json, console or memory; leave the engine out'
            yield Problem(("sink", "format"), told)
    if job.as_of is not None:
        columns, more = columns_of(document, job.as_of.queries, ("as_of", "queries"), streams=False)
        yield from more
        if columns is None or more:
            return
        keys, asked = meaning.names(job.by), meaning.names(job.as_of.by)
        for key, name in (("time", job.as_of.time or job.time), *(("by", name) for name in asked or keys)):
            if name not in columns.names:
                yield Problem(("as_of", key), f'the queries have no column "{name}"{meant(name, columns.names)}')
        if asked and len(asked) != len(keys):
            yield Problem(("as_of", "by"), f"names {len(asked)} columns, and by has {len(keys)}")


def _sink(document: Document) -> Iterator[Problem]:
    job, sink = document.job, document.job.sink
    if not getattr(sink, "merge", False) or job.mode != "stream":
        return
    if not job.id and job.emit == "event":
        told = 'keeps the latest revision of each event; give the key "id", the columns that identify one'
        yield Problem(("sink", "merge"), told)
    if isinstance(sink, schema.TableSink) and sink.provider not in MERGE_TABLES:
        yield Problem(("sink", "merge"), f"works on tables of {listed(MERGE_TABLES)}: give the provider, or take merge = false")


def _packages(document: Document) -> Iterator[Problem]:
    job = document.job
    for number, package in enumerate(job.spark.packages):
        if not _COORDINATE.match(package):
            yield Problem(("spark", "packages", number), f'must be "group:artifact:version", not "{package}"')
    conf = job.spark.conf
    named = " ".join([*job.spark.packages, *(str(conf.get(key, "")) for key in ("spark.jars", "spark.jars.packages"))]).lower()
    for key, part in (("source", job.source), ("sink", job.sink), ("history", job.history)):
        kind = part.__struct_config__.tag if part is not None else None
        if kind in PACKAGES and str(kind) not in named:
            told = f'"{kind}" is a package of its own; name it: spark.packages = ["{PACKAGES[str(kind)]}:VERSION"]'
            yield Problem((key, "format"), told)


def _session(document: Document) -> Iterator[Problem]:
    master = document.job.spark.master
    if master.startswith("local") and not _LOCAL.match(master):
        yield Problem(("spark", "master"), f'cannot read "{master}"; write "local[2]", "local[*]" or the address of a cluster')
    for name in document.job.spark.conf:
        if not name.startswith("spark."):
            yield Problem(("spark", "conf", name), f'settings of Spark begin with "spark."; did you mean "spark.{name}"?')


# ---- paths that must not meet -------------------------------------------------------------------------------------------


def _paths(document: Document) -> Iterator[Problem]:
    job = document.job
    places = {
        ("source", "path"): getattr(job.source, "path", None),
        ("history", "path"): getattr(job.history, "path", None),
        ("sink", "path"): getattr(job.sink, "path", None),
        ("dead_letters", "path"): job.dead_letters.path if job.dead_letters and job.mode == "stream" else None,
        ("stream", "checkpoint"): job.stream.checkpoint if job.stream and job.mode == "stream" else None,
    }
    known = {key: document.path(text).rstrip("/") for key, text in places.items() if text is not None}
    written = [key for key in known if key[0] in ("sink", "dead_letters", "stream")]
    for key in written:
        for other, path in known.items():
            if other == key or (other in written and written.index(other) < written.index(key) and path == known[key]):
                continue
            if path == known[key]:
                yield Problem(key, f'is also {".".join(other)}: "{places[key]}"; give each a folder of its own')
            elif known[key].startswith(f"{path}/") and (key[0] != "stream" or other[0] != "stream"):
                told = f'lies inside {".".join(other)} ("{places[other]}"); give each a folder of its own'
                yield Problem(key, told)
    sink = job.sink
    if job.mode == "batch" and isinstance(sink, schema.FileSink) and sink.mode == "error" and is_local(sink.path):
        folder = Path(document.path(sink.path))
        if folder.exists() and (folder.is_file() or any(folder.iterdir())):
            told = f'"{sink.path}" is there already; take mode = "overwrite" or "append", or another path'
            yield Problem(("sink", "path"), told)


def _tried(path: tuple[str, ...], check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except SlidewiseError as error:
        yield Problem(path, str(error))
