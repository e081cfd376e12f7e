"""Sinks that hold plain values only: no lists and no structs, which Spark would find out after the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from slidewise.algebra.product import BoundStruct
from slidewise.errors import SlidewiseError
from slidewise.live.outputs import result_type
from slidewise.pipeline import schema
from slidewise.pipeline.problems import Problem
from slidewise.planner.inputs import input_of

ADVICE = "take parquet or json"


def not_flat(job: schema.Job, aggregates: dict[str, Any], columns: pa.Schema) -> Iterator[Problem]:
    """What would go into CSV files or a database, and cannot."""
    if isinstance(job.sink, (schema.CsvSink, schema.JdbcSink)):
        kind = str(job.sink.__struct_config__.tag)
        for name, bound in aggregates.items():
            found = _type_of(bound, columns)
            if found is not None and pa.types.is_nested(found):
                yield Problem(("aggregates", name), f"gives {_word(found)}, which the sink {kind} cannot hold; {ADVICE}")
        if job.emit == "event" and job.as_of is None:
            yield from _columns(("sink", "format"), kind, columns)
    letters = job.dead_letters
    if letters is not None and letters.format == "csv":
        yield from _columns(("dead_letters", "format"), "csv", columns)


def _columns(key: tuple[str, ...], kind: str, columns: pa.Schema) -> Iterator[Problem]:
    for column in columns:
        if pa.types.is_nested(column.type):
            yield Problem(key, f'{kind} cannot hold the column "{column.name}", {_word(column.type)}; {ADVICE}')


def _type_of(bound: Any, columns: pa.Schema) -> pa.DataType | None:
    if isinstance(bound, BoundStruct):
        return pa.struct([])
    try:
        inputs = tuple(input_of(bound.operator, k, name, columns.field(name).type) for k, name in enumerate(bound.columns))
        return result_type(bound.operator.typed(tuple(i.dtype for i in inputs)), inputs)
    except SlidewiseError:
        return None  # whatever is wrong with it, the plan says it better


def _word(kind: pa.DataType) -> str:
    return "a struct" if pa.types.is_struct(kind) else "a map" if pa.types.is_map(kind) else "a list"
