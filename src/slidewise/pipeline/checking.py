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
from slidewise.pipeline import meaning, packages, schema
from slidewise.pipeline.about import about
from slidewise.pipeline.columns import columns_of
from slidewise.pipeline.flat import not_flat
from slidewise.pipeline.places import paths_that_meet, there_already
from slidewise.pipeline.problems import Problem, listed, meant
from slidewise.pipeline.reading import Document, is_local, read
from slidewise.pipeline.types import as_on_spark, named
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request
from slidewise.planner.widening import holds
from slidewise.windows.duration import nanoseconds

MERGE_TABLES = ("delta", "iceberg")
_LOCAL = re.compile(r"^local(\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\])?$")


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


def load(file, settings=(), *, to_run: bool = True) -> Checked:
    """Read and check a job file; JobError with all that is wrong. to_run: also that its results have a place to go."""
    return check(read(file, settings), to_run)


def check(document: Document, to_run: bool = True) -> Checked:
    job = document.job
    found: list[Problem] = []
    columns, more = columns_of(document, job.source, ("source",), streams=job.mode == "stream")
    found += more
    found += there_already(document) if to_run else ()
    found += _history(document, columns)
    found += _time_of_a_stream(job, columns)
    for part in (_stream, _batch, _sink, packages.missing, paths_that_meet, _session):
        found += part(document)
    windows = meaning.windows_of(job, found)
    if job.algorithm not in ("auto", *MODULES):
        found.append(Problem(("algorithm",), f'no algorithm "{job.algorithm}"{meant(job.algorithm, ["auto", *MODULES])}'))
    for load in (False, True):  # no code that the job names is loaded before everything else is right
        aggregates = meaning.aggregates_of(document, found, load=load)
        if columns is not None:
            found += _unknown_columns(job, windows, aggregates, columns)
            found += not_flat(job, aggregates, columns) if not found else ()
            found += _types_of_history(document, windows, aggregates, columns) if not found else ()
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
    stream = meaning.stream_arguments(document.job) if document.job.mode == "stream" else {}
    stream.pop("buckets", None)
    known = {key: value for key, value in arguments.items() if key not in ("query_time", "query_by")}

    def ask(arguments: dict[str, Any], stream: dict[str, Any]) -> None:
        asked = request(**arguments, as_of=document.job.as_of is not None)
        if columns is None:
            return
        asked.check_columns(columns.names, kept=_kept(document))
        if document.job.mode == "stream":
            from slidewise.live.spec import stream_spec

            _ = stream_spec(asked, columns, **stream).output_schema  # finds out the types of all results
        else:
            make_plan(asked, columns)

    try:
        ask(known, stream)
    except SlidewiseError as error:
        key = about(str(error), document.job, ask, known, stream)
        found = Problem(key, str(error).removeprefix(f"{key[-1]}: ") if key else str(error))
        raise document.origin.error([found]) from None


def _kept(document: Document) -> list[str] | None:
    """The columns that stand beside the results of `as_of`, as far as they are known; None: the source's."""
    if document.job.as_of is None:
        return None
    columns, _ = columns_of(document, document.job.as_of.queries, ("as_of", "queries"), streams=False)
    return [] if columns is None else columns.names


# ---- parts that need each other -----------------------------------------------------------------------------------------


def _stream(document: Document) -> Iterator[Problem]:
    job, stream = document.job, document.job.stream
    if job.mode != "stream":
        return
    if job.engine == "local":
        yield Problem(("engine",), 'runs batches only; leave it out, or take mode = "batch"')
    if job.as_of is not None:
        yield Problem(("as_of",), 'is for batches: features for rows that are there; take mode = "batch"')
    path = job.source.path if isinstance(job.source, schema.Files) else None
    if path is not None and is_local(path) and Path(document.path(path)).is_file():
        told = f'"{path}" is a file, and a stream reads a folder that files come into; name that, or take format = "replay"'
        yield Problem(("source", "path"), told)
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


def _time_of_a_stream(job: schema.Job, columns: pa.Schema | None) -> Iterator[Problem]:
    if job.mode != "stream" or columns is None or job.time not in columns.names:
        return
    kind = columns.field(job.time).type
    if not pa.types.is_timestamp(kind) and not pa.types.is_integer(kind):
        yield Problem(("time",), f'a stream\'s time is a timestamp or a whole number, and "{job.time}" is {kind}')
    elif job.stream is not None and job.stream.max_ahead is not None and pa.types.is_integer(kind):
        told = f'compares with the clock on the wall, and "{job.time}" holds plain numbers; leave it out'
        yield Problem(("stream", "max_ahead"), told)


def _history(document: Document, columns: pa.Schema | None) -> Iterator[Problem]:
    """What fills a stream's windows has the stream's columns."""
    job = document.job
    if job.mode != "stream" or job.history is None:
        return
    known, found = columns_of(document, job.history, ("history",), streams=False)
    yield from found
    for name in columns.names if columns is not None and known is not None else ():
        if name not in known.names:
            yield Problem(("history",), f'has no column "{name}", which the source has; there is {listed(known.names)}')


def _types_of_history(document: Document, windows: Any, aggregates: Any, columns: pa.Schema) -> Iterator[Problem]:
    """What is read of it has the stream's types, or narrower ones. Those that only Spark will know are left to the engine."""
    job = document.job
    if job.mode != "stream" or job.history is None:
        return
    known, _ = columns_of(document, job.history, ("history",), streams=False)
    if known is None:
        return
    read = columns.names if job.emit == "event" else {name for _, name in meaning.needed(job, windows, aggregates)}
    for name in [name for name in columns.names if name in read and name in known.names]:
        kind, other = as_on_spark(columns.field(name).type), as_on_spark(known.field(name).type)
        if kind is None or other is None or holds(kind, other):
            continue
        declared = name in getattr(job.history, "schema", {})
        told = f"is {named(other)}, and in the source {named(kind)}, which cannot hold all its values; give it one type in both"
        yield Problem(("history", "schema", name), told) if declared else Problem(("history",), f'the column "{name}" {told}')


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
        else:
            yield from _tried(("stream", "trigger"), lambda: _not_negative(stream.trigger))


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
        yield from _options_of_spark(job)
    if isinstance(job.source, schema.KafkaSource) and job.source.starting == "latest":
        yield Problem(("source", "starting"), 'a batch takes what is there, and after "latest" there is nothing; take "earliest"')
    if job.as_of is not None:
        for key, usual in (("emit", "event"), ("exclude_current", False)):
            if getattr(job, key) != usual:
                yield Problem((key,), "has no say with as_of, which gives a row for each query; leave it out")
        if job.ties == "arrival" and job.closed in ("right", "both"):
            yield Problem(("ties",), f'"arrival" has no meaning with as_of and closed = "{job.closed}": a query has no place among '
                          "the rows of its moment; leave it out")
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


def _options_of_spark(job: schema.Job) -> Iterator[Problem]:
    """Options are Spark's: here they would do nothing, and nobody would know."""
    parts = ((("source",), job.source), (("as_of", "queries"), job.as_of.queries if job.as_of else None), (("sink",), job.sink))
    for key, part in parts:
        for option in getattr(part, "options", {}):
            if not (option == "sep" and isinstance(part, schema.CsvSource)):
                told = 'is an option of Spark, which engine = "local" does not know; leave out one of the two'
                yield Problem((*key, "options", option), told)


def _sink(document: Document) -> Iterator[Problem]:
    job, sink = document.job, document.job.sink
    if isinstance(sink, schema.JdbcSink) and not sink.url.lower().startswith("jdbc:"):
        yield Problem(("sink", "url"), 'must be a JDBC address, such as "jdbc:postgresql://host/database"')
    if not getattr(sink, "merge", False) or job.mode != "stream":
        return
    if not job.id and job.emit == "event":
        told = 'keeps the latest revision of each event; give the key "id", the columns that identify one'
        yield Problem(("sink", "merge"), told)
    if isinstance(sink, schema.TableSink) and sink.provider not in MERGE_TABLES:
        yield Problem(("sink", "merge"), f"works on tables of {listed(MERGE_TABLES)}: give the provider, or take merge = false")


def _session(document: Document) -> Iterator[Problem]:
    master = document.job.spark.master
    if master.startswith("local") and not _LOCAL.match(master):
        yield Problem(("spark", "master"), f'cannot read "{master}"; write "local[2]", "local[*]" or the address of a cluster')
    if master.startswith("sc:"):
        told = "is an address of Spark Connect, where job files do not run; give the cluster's own, or submit the job there"
        yield Problem(("spark", "master"), told)
    for name in document.job.spark.conf:
        if not name.startswith("spark."):
            yield Problem(("spark", "conf", name), f'settings of Spark begin with "spark."; did you mean "spark.{name}"?')
    if isinstance(document.job.sink, schema.TableSink) and master.startswith("local") and not packages.session_is_there():
        yield from _table_that_stays(document.job.spark.conf)


def _table_that_stays(conf: schema.Options) -> Iterator[Problem]:
    """The catalogue of an embedded session lives in memory, and its tables end with it."""
    hive = {"spark.sql.catalogImplementation", "spark.sql.warehouse.dir"}
    if not hive <= conf.keys() and not any(name.startswith("spark.sql.catalog.") for name in conf):
        told = "would end with the session, whose catalogue is in memory; name one that stays in [spark.conf]: "
        yield Problem(("sink", "table"), f'{told}spark.sql.catalog.NAME, or {" and ".join(sorted(hive))} ("hive" and a folder)')


def _tried(path: tuple[str, ...], check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except SlidewiseError as error:
        yield Problem(path, str(error))
