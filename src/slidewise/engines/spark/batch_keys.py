"""Keys as Spark compares them: -0.0 is 0.0, every NaN is the same, a null is a key, collated text is equal by its collation.

Two things must agree on it: which task a row goes to, and which rows of a task belong together. Floats are shuffled by one
zero and one NaN; types that Arrow would compare otherwise than Spark (collated text, structs, arrays) get a stand-in: Spark
chooses one value for each group of equal keys, and its text stands for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

STAND_IN = "slidewise_key_"

_EXACT = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""to_json otherwise drops nulls and cuts timestamps to milliseconds: two keys would have one text."""


def shuffled(column: Column, kind: DataType) -> Column:
    """What rows are sent to tasks by."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DoubleType, FloatType

    if isinstance(kind, (FloatType, DoubleType)):
        return F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + F.lit(0.0).cast(kind))
    return column


def needs_stand_in(kind: DataType) -> bool:
    """Whether Arrow compares values of this type otherwise than Spark does, or not at all."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(kind, StringType):
        return (getattr(kind, "collation", None) or "UTF8_BINARY") != "UTF8_BINARY"
    return isinstance(kind, (ArrayType, MapType, StructType))


def same_key(column: Column) -> Column:
    """Text that is the same exactly where Spark holds the keys equal."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    chosen = F.first(column).over(Window.partitionBy(column))
    return F.to_json(F.struct(chosen.alias("k")), _EXACT)
