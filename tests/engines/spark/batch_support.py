"""Random frames, and requests of every kind, for the tests of the batch engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import slidewise as sw

ALL_KINDS = {
    "time": sw.time(7),
    "short": sw.time(1),
    "offset": sw.time(4, offset=3),
    "slide": sw.time(8, slide=3),
    "rows": sw.rows(5),
    "rows_slide": sw.rows(4, slide=3),
    "rows_offset": sw.rows(3, offset=2),
    "tumbling": sw.tumbling(5),
    "session": sw.session(2),
    "delta": sw.delta("x", 2),
    "punctuation": sw.punctuation("flag"),
    "lifetime": sw.lifetime(),
}

FAMILIES = {
    "total": sw.sum("n"),
    "mean": sw.mean("n", where="flag"),
    "spread": sw.spread("x"),
    "longest": sw.max("word"),
    "where": sw.argmax("n", "word"),
    "list": sw.collect("id"),
    "second": sw.nth_youngest("word", n=2),
    "count": sw.count(),
    "both": sw.struct(low=sw.min("n"), last=sw.last("word")),
}
"""One aggregate for each kind of state, and for each way a column reaches it."""


def random_table(rng: np.random.Generator, rows: int, keys: int = 3, times: int = 40) -> pa.Table:
    """Unsorted rows with ties, nulls and NaN; `id` is unique. Numbers are small integers: every sum is exact."""
    words = np.array(["", "a", "ab", "b", "zz"])
    x = rng.integers(0, 9, rows).astype(float)
    x[rng.random(rows) < 0.03] = np.nan
    return pa.table({
        "key": pa.array(rng.integers(0, keys, rows), mask=rng.random(rows) < 0.1),
        "t": pa.array(rng.integers(0, max(times, 1), rows)),
        "n": pa.array(rng.integers(-5, 6, rows), mask=rng.random(rows) < 0.15),
        "x": pa.array(x, mask=rng.random(rows) < 0.1, from_pandas=False),
        "word": pa.array(words[rng.integers(0, 5, rows)], mask=rng.random(rows) < 0.15),
        "flag": pa.array(rng.random(rows) < 0.2, mask=rng.random(rows) < 0.05),
        "id": pa.array(rng.permutation(rows)),
    })


def to_spark(spark, table: pa.Table):
    """A DataFrame of the table. (Before 4.0 Spark takes no Arrow tables, and pandas would make floats of numbers with nulls.)"""
    if spark.version >= "4":
        return spark.createDataFrame(table)
    kinds = {"int64": "long", "int8": "byte", "double": "double", "string": "string", "bool": "boolean"}
    schema = ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in table.schema)
    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)


def same(a, b) -> bool:
    """Equal values, NaN to NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


def differences(found: pa.Table, wanted: pa.Table) -> list:
    """What is not the same, for a readable failure."""
    out = []
    if found.column_names != wanted.column_names:
        return [("columns", found.column_names, wanted.column_names)]
    if len(found) != len(wanted):
        return [("rows", len(found), len(wanted))]
    for name in wanted.column_names:
        pairs = zip(found.column(name).to_pylist(), wanted.column(name).to_pylist())
        out += [(name, row, a, b) for row, (a, b) in enumerate(pairs) if not same(a, b)][:2]
    return out
