"""Spark's types and Arrow's: what a DataFrame's columns are in a worker, and what results are in Spark.

Inside the road columns have plain names by position (`c0`, `c1` ...): a DataFrame may have columns of the same name, or names
with dots and spaces in them.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa

from slidewise.errors import InputTypeError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


def inner_name(place: int) -> str:
    return f"c{place}"


def arrow_type(kind: DataType, zone: str, name: str) -> pa.DataType:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    # Older versions know only UTC, newer ones ask for the zone.
    zoned = {"timezone": zone} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
    try:
        found = to_arrow_type(kind, **zoned)
    except (PySparkException, TypeError) as error:
        raise InputTypeError(f"column {name!r} of type {kind.simpleString()} cannot leave Spark for Python: {error}; drop it, or "
                             "cast it first, to a number or to text") from None
    return pa.timestamp(found.unit, zone) if pa.types.is_timestamp(found) and found.tz else found


def carried(kind: DataType, name: str) -> tuple[DataType, DataType]:
    """The type that a column crosses into Python in, and the one it has afterwards: its own twice, but Arrow has no intervals of
    months, and they go as text. (To Spark, what a cast gives may be null.)"""
    from pyspark.sql import types as T

    def rebuilt(kind: DataType, as_text: bool) -> DataType:
        if isinstance(kind, (T.YearMonthIntervalType, T.CalendarIntervalType)) and as_text:
            return T.StringType()
        if isinstance(kind, T.ArrayType):
            return T.ArrayType(rebuilt(kind.elementType, as_text))
        if isinstance(kind, T.MapType):
            return T.MapType(rebuilt(kind.keyType, as_text), rebuilt(kind.valueType, as_text))
        if isinstance(kind, T.StructType):
            return T.StructType([T.StructField(f.name, rebuilt(f.dataType, as_text)) for f in kind])
        return kind

    try:
        arrow_type(kind, "UTC", name)
        return kind, kind
    except InputTypeError:
        text = rebuilt(kind, True)
        arrow_type(text, "UTC", name)
        return text, rebuilt(kind, False)


def spark_type(kind: pa.DataType, name: str) -> DataType:
    """The Spark type of a result column."""
    from pyspark.errors import PySparkException
    from pyspark.sql import types as T
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_unsigned_integer(kind):  # Spark has no unsigned integers: the next wider type holds them all
        return {8: T.ShortType(), 16: T.IntegerType(), 32: T.LongType()}.get(kind.bit_width, T.DecimalType(20, 0))
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return T.ArrayType(spark_type(kind.value_type, name))
    if pa.types.is_struct(kind):
        return T.StructType([T.StructField(f.name, spark_type(f.type, name)) for f in kind])
    if pa.types.is_map(kind):
        return T.MapType(spark_type(kind.key_type, name), spark_type(kind.item_type, name))
    if pa.types.is_float16(kind):
        return T.FloatType()
    try:
        return from_arrow_type(kind)
    except (PySparkException, TypeError) as error:
        raise InputTypeError(f"the result {name!r} is {kind}, which Spark has no type for: {error}") from None


def is_unknown(kind: pa.DataType) -> bool:
    """Whether no value told the type, or that of a part."""
    parts = [kind.field(k).type for k in range(kind.num_fields)]
    return pa.types.is_null(kind) or any(is_unknown(part) for part in parts)


def fitted(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """The column in exactly this type; costs nothing where it has it already, or differs in the time zone only."""
    return column if column.type.equals(kind) else column.cast(kind)


def row_bytes(kinds: list[DataType]) -> int:
    """About so many bytes a row takes in Arrow."""
    from pyspark.sql import types as T

    small = {T.BooleanType: 1, T.ByteType: 1, T.ShortType: 2, T.IntegerType: 4, T.FloatType: 4, T.DateType: 4}
    known = (T.LongType, T.DoubleType, T.TimestampType, T.TimestampNTZType)
    return max(1, sum(small.get(type(kind), 8 if isinstance(kind, known) else 32) for kind in kinds))


def to_arrow(df: DataFrame) -> pa.Table:
    """The DataFrame on the driver."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in df.columns})


def costs(df: DataFrame) -> str:
    """Spark's plan, with what it thinks of sizes."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        df.explain(mode="cost")
    return text.getvalue()


def estimated_bytes(told: str) -> float | None:
    """How large Spark thinks the data is, from its `costs`; None if it has no idea."""
    found = re.search(r"sizeInBytes=([\d.]+(?:E[+-]?\d+)?) ([KMGTPE]?i?B)", told)
    return None if found is None else float(found.group(1)) * 2.0 ** _UNITS.get(found.group(2), 60)


_NO_MORE_ROWS = {"Project", "Filter", "Union", "Repartition", "RepartitionByExpression", "Sort", "GlobalLimit", "LocalLimit",
                 "Window", "Deduplicate"}  # fmt: skip
"""Steps of a plan that give at most the rows they get. (A step that is not known may give any number.)"""


def most_rows(df: DataFrame, told: str) -> float | None:
    """There are no more rows than this, from the `costs` of a DataFrame; None if that is not certain without a job. Of files Spark
    knows only how many bytes they take, and that tells nothing: rows that repeat themselves take no room. Parquet files say it
    themselves."""
    steps = told.partition("== Physical Plan ==")[0].splitlines()
    rows = 0.0
    for step in steps:
        name = re.match(r"[ :+-]*(\w+)", step)
        if name is None or step.startswith("=="):
            continue
        if name[1] in ("LocalRelation", "Range", "OneRowRelation"):  # these are there, and counted
            known = re.search(r"rowCount=([\d.]+(?:E[+-]?\d+)?)\)", step)
            if known is None:
                return None
            rows += 1.01 * float(known[1])  # told to three digits
        elif name[1] == "Relation" and re.search(r"\] parquet\b", step):
            stored = _rows_in_files(df)
            if stored is None:
                return None
            rows += stored
        elif name[1] not in _NO_MORE_ROWS:
            return None
    return rows


_MOST_FILES = 64


def _rows_in_files(df: DataFrame) -> int | None:
    """How many rows the Parquet files have that the DataFrame reads, from their footers; None where they are many, or elsewhere."""
    import pyarrow.parquet as pq

    files = df.inputFiles()
    if len(files) > _MOST_FILES or not all(file.startswith("file:/") for file in files):
        return None
    try:
        return sum(pq.read_metadata(url2pathname(urlsplit(file).path)).num_rows for file in files)
    except (OSError, pa.ArrowException):  # Spark Connect: they may be on the server
        return None


_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}


def result_schema(fields: list[tuple[str, Any]]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, kind, True) for name, kind in fields])


def quoted(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")
