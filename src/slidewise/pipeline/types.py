"""Column types as a job file names them, as Arrow's and as Spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from slidewise.errors import InputError
from slidewise.pipeline.problems import listed, meant

_SIMPLE: Mapping[str, tuple[pa.DataType, str]] = {
    "boolean": (pa.bool_(), "boolean"),
    "byte": (pa.int8(), "tinyint"),
    "short": (pa.int16(), "smallint"),
    "int": (pa.int32(), "int"),
    "long": (pa.int64(), "bigint"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "string": (pa.string(), "string"),
    "binary": (pa.binary(), "binary"),
    "date": (pa.date32(), "date"),
    "timestamp": (pa.timestamp("us", tz="UTC"), "timestamp"),
    "timestamp_ntz": (pa.timestamp("us"), "timestamp_ntz"),
}
_OTHER_NAMES = {
    "bool": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "varchar": "string",
    "text": "string",
    "str": "string",
    "datetime": "timestamp",
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "float32": "float",
    "float64": "double",
}
_DECIMAL = re.compile(r"^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$")
_ARRAY = re.compile(r"^array<(.*)>$")


def arrow_and_spark(name: str) -> tuple[pa.DataType, str]:
    """The Arrow type and Spark's name of a type; InputError if there is none."""
    text = name.strip().lower()
    text = _OTHER_NAMES.get(text, text)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if match := _DECIMAL.match(text):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= 38 or scale > precision:
            raise InputError(f'"{name}": a decimal has 1 to 38 digits, and not more of them behind the point')
        return pa.decimal128(precision, scale), f"decimal({precision},{scale})"
    if match := _ARRAY.match(text):
        arrow, spark = arrow_and_spark(match[1])
        return pa.list_(arrow), f"array<{spark}>"
    shown = [*_SIMPLE, "decimal(10,2)", "array<string>"]
    hint = meant(text, [*shown, *_OTHER_NAMES])
    raise InputError(f'no type "{name}"{hint if hint.endswith("?") else f"; there is {listed(shown)}"}')


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([pa.field(name, arrow_and_spark(kind)[0]) for name, kind in columns.items()])


def named(kind: pa.DataType) -> str:
    """What a job file calls a type."""
    if pa.types.is_list(kind):
        return f"array<{named(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((name for name, (arrow, _) in _SIMPLE.items() if arrow == kind), str(kind))


def as_on_spark(kind: pa.DataType) -> pa.DataType | None:
    """The type of a file's column once Spark has read it; None where that depends on the file, or is no simple type."""
    if pa.types.is_timestamp(kind):  # nanoseconds are Spark's own old moments, or refused
        return None if kind.unit == "ns" else pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_large_string(kind):
        return pa.string()
    known = kind == pa.null() or pa.types.is_decimal128(kind) or kind in [arrow for arrow, _ in _SIMPLE.values()]
    return kind if known else None


def spark_schema(columns: Mapping[str, str]) -> str:
    """As Spark's readers take it."""
    return ", ".join(f"`{name.replace('`', '``')}` {arrow_and_spark(kind)[1]}" for name, kind in columns.items())
