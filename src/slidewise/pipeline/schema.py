"""What may stand in a job file: every table, key, type, default and what it means. The reference page is made from this.

A field's description is its line in the reference; `reading.py` checks a file against these classes and says where it is
wrong; `checking.py` checks what the types cannot say.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field


class Table(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Base of every table of a job file."""


Names = str | list[str]
Options = dict[str, str | int | float | bool]
Duration = str | int | float
Positive = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]

# ---- sources ------------------------------------------------------------------------------------------------------------


class Files(Table):
    path: str
    """A file or folder; relative to the job file. Schemes such as s3a:// and hdfs:// go to Spark as they are."""
    schema: dict[str, str] = field(default_factory=dict)
    """Columns and their types: `ts = "timestamp"`. Types: boolean, byte, short, int, long, float, double, decimal(p,s),
    string, binary, date, timestamp, timestamp_ntz, array<...>."""
    options: Options = field(default_factory=dict)
    """More options of Spark's reader, as they are called there."""
    max_files: Positive | None = None
    """Files a micro-batch takes (streams)."""


class ParquetSource(Files, tag_field="format", tag="parquet"):
    """Parquet files. Streams need a `schema`; batches take it from the files."""


class CsvSource(Files, tag_field="format", tag="csv"):
    """CSV files. Needs a `schema`: all columns, in the order of the files. Spark takes them by their places (`engine = "local"` by
    their names); a first line with other names is an error. A quote inside quoted text is doubled (`escape`), only what is empty is
    null, and a value that cannot be read is an error (`mode = "FAILFAST"`): `options` may say otherwise, as
    `options = { mode = "PERMISSIVE" }` takes such values as null."""

    header: bool = True
    """Whether the first line holds the names of the columns."""


class JsonSource(Files, tag_field="format", tag="json"):
    """JSON files, one object a line. Needs a `schema`. A value that cannot be read is an error (`mode = "FAILFAST"`);
    `options = { mode = "PERMISSIVE" }` takes it as null."""


class DeltaSource(Table, tag_field="format", tag="delta"):
    """A Delta table. Needs Delta's package in `spark.packages`."""

    path: str
    """The table's folder; relative to the job file."""
    options: Options = field(default_factory=dict)
    """More options of Spark's reader, as they are called there."""
    max_files: Positive | None = None
    """Files a micro-batch takes (streams)."""


class RateSource(Table, tag_field="format", tag="rate"):
    """Spark's generator: columns `timestamp` and `value` (0, 1, 2, ...). Streams only."""

    rows_per_second: Positive = 1
    """Rows a second."""
    options: Options = field(default_factory=dict)
    """More options of Spark's reader, as they are called there."""


class SocketSource(Table, tag_field="format", tag="socket"):
    """Lines of text from a network socket, for trying things out. Streams only; cannot go on after a restart."""

    host: str
    """The host to connect to."""
    port: Port
    """Its port."""
    value: Literal["json", "csv", "text"] = "json"
    """What a line holds: `json` or `csv` with the columns of `schema`, or text in a column `value`. Values that cannot be read
    are null; a line that is no JSON is a row of nulls: without a time, so it is counted and put aside."""
    schema: dict[str, str] = field(default_factory=dict)
    """Columns and their types: `ts = "timestamp"`. Types: boolean, byte, short, int, long, float, double, decimal(p,s),
    string, binary, date, timestamp, timestamp_ntz, array<...>."""
    options: Options = field(default_factory=dict)
    """More options of Spark's reader, as they are called there."""


class KafkaSource(Table, tag_field="format", tag="kafka"):
    """A Kafka topic. Needs Spark's Kafka package in `spark.packages`."""

    servers: str
    """The brokers: `host:port`, several with commas."""
    topic: Names
    """One topic or several."""
    value: Literal["json", "csv", "text"] = "json"
    """What a message holds: `json` or `csv` with the columns of `schema`, or text in a column `value`. Values that cannot be
    read are null; a message that is no JSON is a row of nulls: without a time, so it is counted and put aside."""
    schema: dict[str, str] = field(default_factory=dict)
    """Columns and their types: `ts = "timestamp"`. Types: boolean, byte, short, int, long, float, double, decimal(p,s),
    string, binary, date, timestamp, timestamp_ntz, array<...>."""
    starting: str = "earliest"
    """Where a first run begins: earliest, latest, or Kafka's JSON of offsets."""
    max_rows: Positive | None = None
    """Messages a micro-batch takes (streams)."""
    options: Options = field(default_factory=dict)
    """More options of Spark's reader, as they are called there."""


class ReplaySource(Table, tag_field="format", tag="replay"):
    """A file that is all there, replayed as a stream in the order of one of its columns: for demos, tests and trying a job on
    yesterday's data. A batch takes all of it at once."""

    path: str
    """A Parquet or CSV file on this machine; relative to the job file."""
    order_by: str
    """The column that says when a row arrived."""
    rows: Positive | None = None
    """Rows a micro-batch takes; or give `step`."""
    step: Duration | None = None
    """What a micro-batch covers of `order_by`: `step = "6h"`."""


Source = ParquetSource | CsvSource | JsonSource | DeltaSource | RateSource | SocketSource | KafkaSource | ReplaySource
History = ParquetSource | CsvSource | JsonSource | DeltaSource

# ---- windows and aggregates ---------------------------------------------------------------------------------------------


class WindowTable(Table):
    """One window; exactly one of the first seven keys says its kind."""

    time: Duration | None = None
    """The last `time = "1h"`; a number for a number column."""
    rows: Positive | None = None
    """The last so many rows."""
    tumbling: Duration | None = None
    """Windows side by side."""
    session: Duration | None = None
    """Since the last silence of this length."""
    delta: str | None = None
    """The longest run of rows in which this column stays within `width`."""
    punctuation: str | None = None
    """Since the last row in which this column is true."""
    lifetime: bool = False
    """Everything so far."""
    width: Duration | None = None
    """With `delta`."""
    slide: Duration | None = None
    """Only at multiples of this (`time`, `rows`)."""
    offset: Duration | None = None
    """Ends so much earlier (`time`, `rows`)."""
    calendar: bool = False
    """Days are local days (`time`, `tumbling`; batches)."""


WindowValue = str | int | float | WindowTable

# An aggregate is text, "sum(amount)", or a table whose further keys are the operator's own parameters: no fixed class.
AggregateValue = str | dict[str, Any]

# ---- streams ------------------------------------------------------------------------------------------------------------


class StreamTable(Table):
    """How a stream runs; needed with `mode = "stream"`."""

    watermark: Duration
    """How long out-of-order events are waited for."""
    checkpoint: str | None = None
    """The folder in which a stream remembers how far it came; running again goes on from there. Needed unless the
    sink is `console` or `memory`."""
    results: Literal["eager", "final"] = "eager"
    """`eager`: at once, and again with a higher `revision` when an out-of-order event changes them; `final`: once,
    when the watermark has passed."""
    late: Literal["correct", "side", "drop"] | None = None
    """Events behind the watermark: `correct` what they change (eager only), put them a`side` (see `dead_letters`), or
    `drop` them. Default: `correct` with eager results, else `side`."""
    keep: Duration | None = None
    """How far back late events correct; default: the largest window."""
    max_ahead: Duration | None = None
    """An event dated further in the future is treated like a late one."""
    ttl: Duration | None = None
    """How long an idle key is remembered (windows of rows, delta, punctuation, lifetime)."""
    complete: bool = False
    """Adds a column `complete`: false where a window reaches back before what is known."""
    trigger: str = "asap"
    """How often: `"10s"`; `"asap"`: one micro-batch after the other; `"available_now"`: what is there now, then end."""
    flush: bool | None = None
    """Final results with `available_now`: whether this run is the stream's end, so that it also gives the results that
    still wait for the watermark; events that come later are late. Default: true for the source `replay`, which is
    all there, otherwise false: the next run goes on and gives them."""
    buckets: Positive | None = None
    """Groups of keys that the state is kept in; frozen in the checkpoint."""


class DeadLetters(Table):
    """Where late events go that correct nothing any more, with the columns they came with (with `emit` other than `event`: key and
    time); without it they stay in the sink, marked by the column `late`."""

    path: str
    """A folder; relative to the job file."""
    format: Literal["parquet", "csv", "json"] = "json"
    """The format of the files."""


class AsOfTable(Table):
    """Features for another table's rows: the windows of `source` that end at each query's key and time. Batches
    only."""

    queries: History
    """A source as under `[source]`."""
    time: str | None = None
    """The queries' time column, where it has another name."""
    by: Names | None = None
    """The queries' key columns, where they have other names."""


# ---- sinks --------------------------------------------------------------------------------------------------------------

class FileSink(Table):
    path: str
    """A folder; relative to the job file. A stream writes a folder `batch=N` for each micro-batch, whole or not at
    all."""
    options: Options = field(default_factory=dict)
    """More options of Spark's writer, as they are called there."""
    mode: Literal["error", "overwrite", "append"] = "error"
    """Batches: what to do where something is already."""


class ParquetSink(FileSink, tag_field="format", tag="parquet"):
    """Parquet files."""


class CsvSink(FileSink, tag_field="format", tag="csv"):
    """CSV files, with a first line of names; a quote inside quoted text is doubled (`escape`). `options` may say otherwise.
    Collections cannot be written."""


class JsonSink(FileSink, tag_field="format", tag="json"):
    """JSON files, one object a line."""


class ConsoleSink(Table, tag_field="format", tag="console"):
    """Rows on the terminal, for trying things out."""

    rows: Positive = 20
    """Rows shown of each micro-batch, or of a batch."""


class MemorySink(Table, tag_field="format", tag="memory"):
    """An Arrow table in this process, for `slidewise.pipeline.run` in Python."""

    merge: bool = False
    """Streams: keep one row for each `id`, its latest revision, instead of every revision; of each key with `emit = "latest"`,
    of each key and boundary with `"slide"`. A late event never takes the place of a result."""


class KafkaSink(Table, tag_field="format", tag="kafka"):
    """A Kafka topic: the row as JSON, the `by` columns as key. At least once: a restart may send a micro-batch
    again."""

    servers: str
    """The brokers: `host:port`, several with commas."""
    topic: str
    """The topic to write to."""
    options: Options = field(default_factory=dict)
    """More options of Spark's writer, as they are called there."""


class JdbcSink(Table, tag_field="format", tag="jdbc"):
    """A database table. With `merge`, a micro-batch that is sent again changes nothing; without, rows may come
    twice. Text that identifies rows needs a type that the database compares, which Spark's own choice in Derby and Db2 is not:
    `options = { createTableColumnTypes = "payment VARCHAR(40)" }`."""

    url: str
    """The JDBC address. Never printed; take what is secret from the environment: `${DB_URL}`."""
    table: str
    """The table; made on first use."""
    user: str | None = None
    """The user."""
    password: str | None = None
    """The password: `${DB_PASSWORD}`."""
    driver: str | None = None
    """The driver's Java class; known for PostgreSQL, MySQL, MariaDB, SQL Server, Oracle, Db2, H2 and SQLite. Its package must
    be in `spark.packages`, or its file in the setting `spark.jars`."""
    merge: bool = False
    """Streams: keep one row for each `id`, its latest revision, instead of every revision; of each key with `emit = "latest"`,
    of each key and boundary with `"slide"`. A late event never takes the place of a result."""
    mode: Literal["error", "overwrite", "append"] = "error"
    """Batches: what to do where something is already."""
    options: Options = field(default_factory=dict)
    """More options of Spark's writer, as they are called there."""


class TableSink(Table, tag_field="format", tag="table"):
    """A table of Spark's catalogue, which must outlive the session: an embedded one needs a catalogue of your own in
    `spark.conf` (`spark.sql.catalog.NAME`), or Hive's: `"spark.sql.catalogImplementation" = "hive"` and a folder as
    `"spark.sql.warehouse.dir"`."""

    table: str
    """Its name: `catalog.schema.table`."""
    provider: str | None = None
    """What it is stored as, if it is made here: parquet, delta, iceberg ..."""
    merge: bool = False
    """Streams: keep one row for each `id`, its latest revision, instead of every revision; of each key with `emit = "latest"`,
    of each key and boundary with `"slide"`. A late event never takes the place of a result. Needs `provider = "delta"` or
    `"iceberg"`."""
    mode: Literal["error", "overwrite", "append"] = "error"
    """Batches: what to do where something is already."""
    options: Options = field(default_factory=dict)
    """More options of Spark's writer, as they are called there."""


Sink = ParquetSink | CsvSink | JsonSink | ConsoleSink | MemorySink | KafkaSink | JdbcSink | TableSink


class SparkTable(Table):
    """The Spark session. What is named in `packages` and `conf` can run code: name only what you trust."""

    master: str = "local[2]"
    """`local[2]`, or a cluster's address. Inside `spark-submit`, and where a session runs already, that one is used."""
    packages: list[str] = field(default_factory=list)
    """Maven coordinates of more packages (`spark.jars.packages`)."""
    conf: Options = field(default_factory=dict)
    """More settings."""


class Job(Table, kw_only=True):
    """A job: where rows come from, their windows and aggregates, and where results go."""

    name: str | None = None
    """Shown in progress and in Spark's pages; default: the file's name."""
    mode: Literal["batch", "stream"] = "batch"
    """Everything that is there, once; or a stream."""
    engine: Literal["spark", "local"] = "spark"
    """`local` runs a batch of Parquet, CSV or JSON files in this process, without Spark and its options (but CSV's `sep`)."""
    time: str
    """The column of event time."""
    by: Names = field(default_factory=list)
    """The key: windows are kept for each of its values."""
    id: Names = field(default_factory=list)
    """The columns that identify an event; needed for corrections, and an event that comes twice counts once
    (streams)."""
    windows: list[WindowValue] | dict[str, WindowValue]
    """Windows: `["1h", "24h", { rows = 100 }]`, or a table of names."""
    aggregates: dict[str, AggregateValue]
    """Aggregates by name: `total = "sum(amount)"`, or a table with `operator`, `columns`, `where` and the operator's
    parameters."""
    source: Source
    """Where rows come from."""
    sink: Sink
    """Where results go."""
    stream: StreamTable | None = None
    """How a stream runs."""
    history: History | None = None
    """Rows that fill the windows before a stream's first event."""
    as_of: AsOfTable | None = None
    """Features for another table's rows."""
    dead_letters: DeadLetters | None = None
    """Where late events go."""
    closed: Literal["right", "left", "both", "neither"] | None = None
    """Which ends belong to a window; default: right, `left` for as_of."""
    ties: Literal["peers", "arrival"] = "peers"
    """Whether rows of one key and time see each other."""
    exclude_current: bool = False
    """Leave the row itself out of its window."""
    order: Names = field(default_factory=list)
    """Columns that order rows of the same time."""
    emit: Literal["event", "slide", "latest"] = "event"
    """A row for each row, for each key and boundary, or for each key."""
    origin: str | int | None = None
    """Where boundaries are counted from: `"2026-01-05"`, a length of time after 1970 such as `"15m"`, or a number."""
    algorithm: str = "auto"
    """`auto`, or one of `slidewise algorithms`; on streams `flatfat` or `recalc`. `slidewise explain` tells what is chosen."""
    prefer: Literal["throughput", "latency", "memory"] = "throughput"
    """Batches: what the choice of algorithms is to favour."""
    spark: SparkTable = field(default_factory=SparkTable)
    """The Spark session."""
