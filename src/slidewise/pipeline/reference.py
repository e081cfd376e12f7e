"""The reference page of job files, made from `schema.py`: its classes, fields, types, defaults and their descriptions."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as kinds

from slidewise.pipeline import schema

_INTRODUCTION = """\
# Job files

A job file says where rows come from, which windows and aggregates to compute, and where results go. `slidewise run JOB.toml`
checks all of it before anything starts, and runs it.

```toml
mode = "stream"
time = "ts"
by = "card"
id = "payment"
windows = ["1h", "24h", { rows = 100 }]

[aggregates]
payments = "count()"
total = "sum(amount, exact=true)"
p95 = { operator = "quantile", column = "amount", q = 0.95 }

[source]
format = "json"
path = "incoming"
[source.schema]
payment = "string"
card = "string"
ts = "timestamp"
amount = "double"

[stream]
watermark = "10m"
checkpoint = "state/cards"

[sink]
format = "parquet"
path = "features"
```

Result columns are named after aggregate and window: `total_1h`, `p95_100r`.

- `--set key=value` changes one key for one run: `--set mode=batch --set sink.path=backfill`.
- `${NAME}` in any text is taken from the environment; `$$` is a dollar sign. What comes from there, and values whose names
  say so (`password`, `token`, ...), are never printed.
- Paths are relative to the job file. Times without a zone are UTC.
- `--dry-run` checks and stops; `--explain` shows the plan and stops.
- Ctrl-C ends a stream after the micro-batch that runs; the next run goes on there. A batch is given up at
  once, and nothing of it is in the way of the next run.
- The same file runs as a batch with `--set mode=batch`: the tables of streams are then ignored.
- A job runs no code but what it names: the Python files of its operators, `spark.packages` and `spark.conf`.

An operator of your own is named with its file: `"features.py:trend(x, y)"`, where `features.py` (relative to the job file)
holds `trend = sw.operator(...)` or a function that returns an operator and takes the parameters.

From Kafka into a database that keeps the latest revision of each payment's features:

```toml
mode = "stream"
time = "ts"
by = "card"
id = "payment"
windows = ["1h", "24h"]
aggregates = { payments = "count()", total = "sum(cents)" }

[source]
format = "kafka"
servers = "broker-1:9092,broker-2:9092"
topic = "payments"
schema = { payment = "string", card = "string", ts = "timestamp", cents = "long" }
options = { "kafka.security.protocol" = "SASL_SSL", "kafka.sasl.jaas.config" = "${KAFKA_LOGIN}" }

[stream]
watermark = "10m"
late = "correct"
keep = "24h"
trigger = "10s"
checkpoint = "state/payments"

[dead_letters]
path = "too-late"

[sink]
format = "jdbc"
url = "jdbc:postgresql://db/features"
table = "card_features"
user = "features"
password = "${DB_PASSWORD}"
merge = true

[spark]                                    # Kafka's package has the version of your PySpark
packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0", "org.postgresql:postgresql:42.7.4"]
```

A training set: the same windows as they were just before each label, in this process:

```toml
engine = "local"
time = "ts"
by = "card"
windows = ["1h", "24h"]
aggregates = { payments = "count()", total = "sum(cents)" }

[source]
format = "parquet"
path = "payments"

[as_of]
by = "card_number"
[as_of.queries]
format = "csv"
path = "labels.csv"
schema = { card_number = "string", ts = "timestamp", fraud = "boolean" }

[sink]
format = "parquet"
path = "training"
```
"""


def reference() -> str:
    """The page `docs/job-file.md`."""
    parts = [_INTRODUCTION]
    parts += _section("The job", schema.Job, "")
    parts += _family("Sources", "`[source]`; `[history]` and `[as_of.queries]` take those of files and Delta.", schema.Source)
    parts += _section("Windows", schema.WindowTable, 'A window is text or a number, `"1h"`, or a table.')
    parts += ["## Aggregates", _AGGREGATES]
    for title, table, where in (
        ("Streams", schema.StreamTable, "`[stream]`"),
        ("Late events", schema.DeadLetters, "`[dead_letters]`"),
        ("As of", schema.AsOfTable, "`[as_of]`"),
    ):
        parts += _section(title, table, where)
    parts += _family("Sinks", "`[sink]`", schema.Sink)
    parts += _section("Spark", schema.SparkTable, "`[spark]`")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


_AGGREGATES = """\
`[aggregates]` holds one line for each: text, or a table.

| form | example |
| --- | --- |
| text | `total = "sum(amount)"` |
| text with parameters | `p95 = "quantile(delay, q=0.95, where=landed)"` |
| table | `worst = { operator = "argmax", columns = ["delay", "flight"] }` |
| of a file | `fit = { operator = "features.py:trend", columns = ["x", "y"] }` |

The keys of a table: `operator`; `column` or `columns`; `where`, a column of truth values that says which rows count; and the
operator's parameters by name.\
"""


def _family(title: str, where: str, union: Any) -> list[str]:
    parts = [f"## {title}", where]
    for member in union.__args__:
        parts += [f'### `format = "{member.__struct_config__.tag}"`', inspect.cleandoc(member.__doc__), _table(member)]
    return parts


def _section(title: str, table: type, where: str) -> list[str]:
    return [f"## {title}", " ".join(filter(None, [where, _joined(inspect.cleandoc(table.__doc__ or ""))])), _table(table)]


def _table(table: type) -> str:
    told = dict(_descriptions(table))
    lines = ["| key | type | default | |", "| --- | --- | --- | --- |"]
    info = msgspec.inspect.type_info(table)
    assert isinstance(info, kinds.StructType)
    for field in info.fields:
        default = "needed" if field.required else _default(field)
        cells = (f"`{field.encode_name}`", _type(field.type), default, told[field.name])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _descriptions(table: type) -> Iterator[tuple[str, str]]:
    """The text below each field, of the class and those it builds on."""
    for cls in reversed(table.__mro__):
        if cls.__module__ != schema.__name__:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
        body = tree.body[0].body  # type: ignore[attr-defined]
        for line, following in itertools.pairwise(body):
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and is_text:
                yield line.target.id, _joined(following.value.value)


def _joined(text: str) -> str:
    return " ".join(text.split())


def _default(field: kinds.Field) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or value in ([], {}, "") or isinstance(value, schema.Table):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(kind: kinds.Type) -> str:
    members = kind.types if isinstance(kind, kinds.UnionType) else (kind,)
    words: list[str] = []
    for member in members:
        if isinstance(member, kinds.LiteralType):
            words += [f"`{value}`" for value in member.values]
        elif isinstance(member, kinds.ListType):
            words.append("list")
        elif isinstance(member, (kinds.StructType, kinds.DictType)):
            words.append("table")
        elif isinstance(member, (kinds.IntType, kinds.FloatType)):
            words.append("number")
        elif isinstance(member, kinds.BoolType):
            words.append("true or false")
        elif isinstance(member, kinds.StrType):
            words.append("text")
    return ", ".join(dict.fromkeys(words))
