"""Keys as Spark compares them: -0.0 is 0.0, every NaN is the same, a null is a key, collated text is equal by its collation.

Two things must agree on it: which task a row goes to, and which rows of a task belong together. Floats are shuffled by one
zero and one NaN. Types that Arrow would compare otherwise than Spark (collated text, structs, arrays) get a stand-in: text that
follows from the value alone, whichever rows are beside it and whenever it is computed: a giant key's rows are picked out more than
once. What is equal under a collation of ICU only Spark can tell, from all rows of a key together (`chosen_by_spark`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slidewise.errors import InputTypeError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

STAND_IN = "slidewise_key_"


def shuffled(column: Column, kind: DataType) -> Column:
    """What rows are sent to tasks by."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DoubleType, FloatType

    if isinstance(kind, (FloatType, DoubleType)):
        return F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + F.lit(0.0).cast(kind))
    return column


def needs_stand_in(kind: DataType, name: str) -> bool:
    """Whether Arrow compares values of this type otherwise than Spark does, or not at all."""
    from pyspark.sql.types import ArrayType, StringType, StructType

    for part in _parts(kind):
        if part.typeName() in ("map", "variant"):
            raise InputTypeError(f"the key {name!r} is a {kind.simpleString()}, and Spark does not compare a {part.typeName()}; "
                                 "make columns of what tells its keys apart, and give these as `by`")
    if isinstance(kind, StringType):
        return collation(kind) != "UTF8_BINARY"
    return isinstance(kind, (ArrayType, StructType))


def chosen_by_spark(kind: DataType) -> bool:
    """Whether a stand-in takes a look at all rows of the key."""
    from pyspark.sql.types import StringType

    return any(isinstance(part, StringType) and not collation(part).startswith("UTF8_") for part in _parts(kind))


def same_key(column: Column, kind: DataType) -> Column:
    """Text that is the same exactly where Spark holds the keys equal."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # a field's name may be there twice: inside they have numbers
    text = F.to_json(F.struct(_normal(column.cast(_numbered(kind)), kind).alias("k")), {"ignoreNullFields": "false"})
    return F.min(text).over(Window.partitionBy(column)) if chosen_by_spark(kind) else text


def collation(kind: DataType) -> str:
    return getattr(kind, "collation", None) or "UTF8_BINARY"


def plain_text(column: Column, name: str) -> Column | None:
    """Text that is the same byte by byte where this collation holds text equal; None for collations of ICU."""
    from pyspark.sql import functions as F

    base, trimmed, _ = name.partition("_RTRIM")
    plain = F.rtrim(column.cast("string")) if trimmed else column.cast("string")
    if base == "UTF8_BINARY":
        return plain
    if base == "UTF8_LCASE":  # letter by letter: a sigma at the end of a word is a sigma
        return F.replace(F.lower(plain), F.lit("ς"), F.lit("σ"))
    return None


def exact(column: Column, kind: DataType) -> Column:
    """The value in a form that to_json and Python write in full, whatever the zone and the year."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.DateType):
        return F.unix_date(column)
    plain = (T.NumericType, T.BooleanType, T.StringType, T.BinaryType)
    return shuffled(column, kind) if isinstance(kind, plain) else column.cast("string")


def _normal(column: Column, kind: DataType) -> Column:
    """The value with all its parts as they are compared."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StringType, StructType

    if isinstance(kind, StructType):
        parts = [_normal(column.getField(f"f{k}"), f.dataType).alias(f"f{k}") for k, f in enumerate(kind)]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda item: _normal(item, kind.elementType))
    if isinstance(kind, StringType) and collation(kind) != "UTF8_BINARY":
        plain = plain_text(column, collation(kind))
        return column if plain is None else plain
    return exact(column, kind)


def _numbered(kind: DataType) -> DataType:
    """The same type, fields named by their places."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(f"f{k}", _numbered(f.dataType)) for k, f in enumerate(kind)])
    return ArrayType(_numbered(kind.elementType)) if isinstance(kind, ArrayType) else kind


def _parts(kind: DataType) -> list[DataType]:
    """The type and all that it is made of."""
    from pyspark.sql.types import ArrayType, StructType

    inner = [kind.elementType] if isinstance(kind, ArrayType) else []
    inner += [f.dataType for f in kind] if isinstance(kind, StructType) else []
    return [kind, *(part for each in inner for part in _parts(each))]
