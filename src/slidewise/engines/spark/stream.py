"""`rolling` on a streaming DataFrame: a streaming DataFrame comes back, for ordinary operators and ordinary sinks.

    stream --watermark--> label of the bucket --pack--> shuffle --> BucketProcessor --> counts observed --> results
    history (batch) -------> label -----------pack------------------^ in the first micro-batch
    control (files) -------> a row for each bucket------------------^ when `flush` says so

The operator runs in Spark's processing-time mode: Spark then hands us late events instead of dropping them, and tells the
watermark; what is late and what becomes of it is the engine's to decide.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slidewise.engines.spark.batch_types import arrow_type, spark_type, to_arrow
from slidewise.engines.spark.buckets import default_buckets, label_column, normal_key, quoted
from slidewise.engines.spark.control import listened
from slidewise.engines.spark.counts import METRICS, OBSERVED
from slidewise.engines.spark.log import Limits
from slidewise.engines.spark.packing import BLOB, LABEL, Unpacker, packed
from slidewise.engines.spark.travel import Parcel
from slidewise.engines.spark.workers import DEFAULT_BYTES
from slidewise.errors import InputError, InputTypeError, UnsupportedError
from slidewise.planner.request import Request
from slidewise.planner.widening import holds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_CLOCK = "__slidewise_clock"
"""The column that Spark's watermark is computed from, where it is not the time column itself."""
_KEY = "__slidewise_key_"
_DELAY = "spark.watermarkDelayMs"
"""Spark notes a watermark in the column's metadata under this name."""
NO_TIME = -62_000_000_000_000
"""In milliseconds, in the year 5: where Spark's watermark sees events without a usable time. After Christ, because Spark's reports
leave the era out."""
_MOST = (2**63 - 1) // 1000
"""Milliseconds of the last moment that Spark, which counts microseconds, has a timestamp for."""
_NEEDED = {
    "spark.sql.streaming.stateStore.providerClass": "RocksDB",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Refused and not set here: other queries of the session may count on empty micro-batches.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_WHY = {
    "spark.sql.streaming.noDataMicroBatches.enabled": " (with timers Spark would run empty micro-batches without end, and "
    "trigger(availableNow=True) would never be done)"
}


def rolling_stream(
    df: DataFrame,
    asked: Request,
    *,
    watermark=None,
    id=None,
    results: str = "eager",
    late: str | None = None,
    keep=None,
    max_ahead=None,
    ttl=None,
    history: DataFrame | None = None,
    complete: bool = False,
    stored=None,
    buckets: int | None = None,
    control: str | os.PathLike[str] | None = None,
    cache_bytes: int = DEFAULT_BYTES,
    limits: Limits | None = None,
) -> DataFrame:
    """Aggregates over the window of each event of a stream.

    buckets: how many groups of keys the state is kept in (default: four for each shuffle partition); frozen in the
    checkpoint. control: a directory for words to the running query, see `flush`. stored: columns kept with each event
    beside the needed ones (default: all), others are null when a result comes again. cache_bytes: how much of live engines
    a Python worker may keep. The rest is as in the contract of `sw.rolling`.
    """
    spark = df.sparkSession
    _check_session(spark)
    found = described(
        df, asked, watermark=watermark, id=id, results=results, late=late, keep=keep, max_ahead=max_ahead, ttl=ttl,
        complete=complete, stored=stored,
    )  # fmt: skip
    inner, spec = found.events, found.spec
    if history is not None:
        history = _with_keys(_as_in(df, history, {*spec.schema.names, *asked.by}), asked)[0]
        if complete or spec.emit == "slide":
            oldest, youngest = _span(history, asked.time, spec)
            spec = replace(spec, known_from=oldest if complete else None, known_until=youngest)
    if not found.marked:
        inner = _watermarked(inner, asked.time, spec)
    count = default_buckets(int(spark.conf.get("spark.sql.shuffle.partitions"))) if buckets is None else buckets
    road = Road(spec, count, limits, cache_bytes)
    packed = road.packed(inner)
    if control is not None:
        packed = packed.unionAll(listened(spark, control, count))
    initial = None if history is None else road.packed(history)
    return road.opened(packed, initial, names={hidden: name for hidden, name in found.keys.items() if hidden != name}, df=df)


def explained(df: DataFrame, asked: Request, *, buckets: int | None = None, **options: Any) -> Any:
    """The stream's plan in words; arguments as `rolling_stream`'s."""
    from slidewise.live.explain import StreamExplanation

    running = ("history", "control", "cache_bytes", "limits")
    found = described(df, asked, **{name: value for name, value in options.items() if name not in running})
    shown = replace(found.spec, request=replace(found.spec.request, by=asked.by))
    return StreamExplanation(shown, buckets)


@dataclass(frozen=True)
class Described:
    """A stream and what is asked of it."""

    events: DataFrame
    spec: Any
    keys: dict[str, str]
    """Key columns as the engine sees them, and as the user calls them."""
    marked: bool
    """Whether the stream has a watermark of its own."""


def described(df: DataFrame, asked: Request, *, watermark=None, max_ahead=None, **options: Any) -> Described:
    """The specification of a stream, checked."""
    from slidewise.live.spec import stream_spec

    asked.check_columns(df.columns)
    if len(set(df.columns)) < len(df.columns):
        raise InputError("the stream has several columns of one name; rename or drop all but one of them")
    own = df.schema[asked.time].metadata.get(_DELAY)
    if own is not None:
        if watermark is not None or max_ahead is not None:
            raise InputError(
                f"the column {asked.time!r} has a watermark already; leave out watermark= and max_ahead=, or "
                f"withWatermark"
            )
        watermark = f"{own}ms"
    if watermark is None:
        raise InputError('a stream needs watermark=, how long out-of-order events are waited for, such as "10m"')
    inner, keys = _with_keys(df, asked)
    spec = stream_spec(
        replace(asked, by=tuple(keys)), arrow_schema(inner.schema), watermark=watermark, max_ahead=max_ahead, **options
    )
    _check_case(df, asked, spec)
    return Described(inner, spec, keys, own is not None)


def _check_case(df: DataFrame, asked: Request, spec: Any) -> None:
    """Spark does not tell `Total` from `total`, unless it is told to."""
    if str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    results = {output.column: output for output in asked.outputs}
    known: dict[str, str] = {}
    for name in spec.output_schema.names:
        other = known.setdefault(name.lower(), name)
        if other == name:
            continue
        output = results.get(name) or results.get(other)
        what = "the column" if output is None else f"the aggregate {output.aggregate!r} or the window {output.window!r}"
        raise InputError(
            f"{other!r} and {name!r} are the same to Spark, which does not tell upper from lower case; rename {what}"
        )


class Road:
    """The operators between events and results, for one specification."""

    def __init__(self, spec: Any, buckets: int, limits: Limits | None, cache_bytes: int):
        self.spec, self.buckets = spec, buckets
        self.limits, self.cache_bytes = limits, cache_bytes

    def packed(self, df: DataFrame) -> DataFrame:
        """Events as blobs, labelled by bucket."""
        return packed(df, label_column(df, self.spec.by, self.buckets), self.spec.schema)

    def opened(self, packed: DataFrame, initial: DataFrame | None, names: Mapping[str, str], df: DataFrame) -> DataFrame:
        """Results from blobs; `names` are hidden key columns and what they stand for, `df` knows Spark's types."""
        from pyspark.sql import functions as F

        from slidewise.engines.spark.processor import BucketProcessor, Plan

        riding = {name: df.schema[names.get(name, name)].dataType for name in self.spec.riding_columns}
        schema = spark_schema(self.spec.output_schema, riding)
        direct = all(_is_plain(field.dataType) for field in schema)
        plan = Plan(
            spec=Parcel(self.spec),
            buckets=self.buckets,
            direct=direct,
            limits=self.limits,
            cache_bytes=self.cache_bytes,
        )
        carried = ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in schema) if direct else f"{BLOB} binary"
        found = packed.groupBy(LABEL).transformWithStateInPandas(
            BucketProcessor(plan),
            f"{carried}, {METRICS} string",
            "append",
            "ProcessingTime",
            initialState=None if initial is None else initial.groupBy(LABEL),
        )
        found = found.observe(f"{OBSERVED}_{uuid.uuid4().hex[:8]}", F.collect_list(METRICS).alias(METRICS))
        if direct:
            found = found.where(~F.coalesce(F.startswith(F.col(METRICS), F.lit("-")), F.lit(False)))
        else:
            found = found.select(BLOB).mapInArrow(Unpacker(self.spec.output_schema, arrow_schema(schema)), schema)
        shown = [n for n in self.spec.output_schema.names if self.spec.emit != "event" or n not in names]
        return found.select(*[_column(n).alias(names.get(n, n)) for n in shown])


# ---- what goes in -------------------------------------------------------------------------------------------------------


def _as_in(df: DataFrame, history: DataFrame, read: Collection[str]) -> DataFrame:
    """The history in the columns and, as far as they are read, the types of the stream: a key of another type would lie in
    another bucket, and a time without a zone mean another moment. What a cast might change is refused."""
    from pyspark.sql.types import StringType

    plain = str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    there = {name if plain else name.lower() for name in history.columns}
    for name in df.columns:
        if (name if plain else name.lower()) not in there:
            has = ", ".join(map(repr, history.columns))
            raise InputError(f"history has no column {name!r}, which the stream has; it has {has}")
    history = history.select(*map(_column, df.columns))
    columns = []
    for name, before, now in zip(df.columns, history.schema, df.schema):
        was, kind = before.dataType, now.dataType
        column = _column(name)
        if name in read and was.simpleString() != kind.simpleString():
            wide, narrow = arrow_type(kind, "UTC", name), arrow_type(was, "UTC", name)
            if not holds(wide, narrow):
                raise InputTypeError(
                    f"history's column {name!r} is {was.simpleString()}, the stream's is {kind.simpleString()}, which does not "
                    f"hold all of its values as they are; cast it, where you know what that does"
                )
            if not holds(narrow, wide) or isinstance(kind, StringType):  # text may be compared otherwise
                column = column.cast(kind).alias(name)
        columns.append(column)
    return history.select(*columns)


def _with_keys(df: DataFrame, asked: Request) -> tuple[DataFrame, dict[str, str]]:
    """The data with a hidden column for each key that Arrow would compare otherwise than Spark, and the keys by name."""
    keys: dict[str, str] = {}
    for name in asked.by:
        normal = normal_key(df, name)
        hidden = name if normal is None else _KEY + name
        keys[hidden] = name
        if normal is not None:
            df = df.withColumn(hidden, normal)
    return df, keys


def _watermarked(df: DataFrame, time: str, spec: Any) -> DataFrame:
    """The data under Spark's watermark. An event dated too far ahead must not push it, nor one without a time."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, LongType, ShortType, TimestampNTZType, TimestampType

    kind = df.schema[time].dataType
    column = _column(time)
    if isinstance(kind, (LongType, IntegerType, ShortType)):
        # Spark's watermark knows timestamps only, in milliseconds: one unit of the column is one of them.
        number, delay = column.cast("long"), f"{spec.delay} milliseconds"
        fits = number.isNull() | number.between(-_MOST, _MOST)
        told = f"the time column {time!r} holds more than Spark's watermark can count ({_MOST}); divide it, or make it a timestamp"
        beyond = F.raise_error(F.lit(told)).cast("timestamp")
        moment = F.when(fits, F.timestamp_millis(number)).otherwise(beyond)
    elif isinstance(kind, (TimestampType, TimestampNTZType)):
        moment, delay = column, f"{spec.delay * spec.clock.tick_ns // 1000} microseconds"
        if isinstance(kind, TimestampNTZType):  # without a zone: taken as UTC, whatever the session's zone is
            epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
            moment = F.timestamp_micros(F.timestamp_diff("MICROSECOND", epoch, column))
    else:
        raise UnsupportedError(
            f"the time column {time!r} is {kind.simpleString()}; a stream's time is a timestamp or a whole number. Cast it"
        )
    if spec.max_ahead is not None and not isinstance(kind, (TimestampType, TimestampNTZType)):
        raise UnsupportedError(f"max_ahead compares with the clock on the wall, and {time!r} holds plain numbers")
    if spec.max_ahead is not None:
        limit = F.current_timestamp() + F.expr(f"interval {spec.max_ahead * spec.clock.tick_ns // 1000} microseconds")
        moment = F.when(moment <= limit, moment)
    if moment is column and "." not in time:  # Spark would look for a part of it
        return df.withWatermark(time, delay)
    long_ago = F.timestamp_millis(F.lit(NO_TIME))
    return df.withColumn(_CLOCK, F.coalesce(moment.cast("timestamp"), long_ago)).withWatermark(_CLOCK, delay)


def _span(history: DataFrame, time: str, spec: Any) -> tuple[int | None, int | None]:
    """From when to when all is known, in ticks. Counts from the first batch of a query; later the log knows."""
    from pyspark.sql import functions as F

    found = to_arrow(history.agg(F.min(_column(time)).alias("oldest"), F.max(_column(time)).alias("youngest")))
    ends = [found[name].cast(pa.int64())[0].as_py() for name in ("oldest", "youngest")]
    oldest, youngest = [None if end is None else end * spec.clock.scale for end in ends]
    return oldest, youngest


def _check_session(spark: SparkSession) -> None:
    if int(spark.version.split(".")[0]) < 4:
        raise UnsupportedError(
            f"streams need Spark 4.0 or later, for its transformWithState; this session is Spark {spark.version}. Batches run "
            f"on it: take the events as a batch DataFrame"
        )
    for name, wanted in _NEEDED.items():
        if wanted not in str(spark.conf.get(name, None)):
            from slidewise.engines.spark.session import STREAMING

            raise InputError(
                f"streams need the setting {name}={STREAMING[name]}{_WHY.get(name, '')}; set all of "
                f"slidewise.engines.spark.session.STREAMING with spark.conf.set before the query is made"
            )


# ---- types --------------------------------------------------------------------------------------------------------------


def arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's schema as Arrow's, timestamps in UTC whatever the session's zone."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType, "UTC", field.name)) for field in schema])


def spark_schema(schema: pa.Schema, riding: Mapping[str, DataType]) -> StructType:
    """Arrow's schema as Spark's; columns of the data that come out again keep the types they have there."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, riding.get(f.name) or spark_type(f.type, f.name), True) for f in schema])


def _is_plain(kind: Any) -> bool:
    """Whether pandas carries the type as an Arrow column, untouched."""
    from pyspark.sql import types as T

    plain = (T.BooleanType, T.NumericType, T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType)
    return isinstance(kind, plain)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quoted(name))
