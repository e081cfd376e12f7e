"""A file that is all there, as a stream: its rows in the order in which they arrived, cut into one small file a micro-batch.

Spark's file source takes files by their time of modification, so these are set a second apart; with one file a micro-batch the
stream then sees exactly the cuts made here, can stop and go on, and ends by itself with `available_now`.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slidewise.errors import InputError
from slidewise.windows.duration import is_duration, nanoseconds

_MARK = "_replay.json"
_EPOCH = 1_000_000_000
"""The time of modification of the first file: long ago, so that no file seems to come from the future."""


def read_file(path: str | os.PathLike[str]) -> pa.Table:
    """A Parquet or CSV file (or a folder of Parquet files) as a table that Spark can read back."""
    if str(path).endswith((".csv", ".csv.gz")):
        import pyarrow.csv

        table = pyarrow.csv.read_csv(path)
    else:
        table = pq.read_table(path)
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_timestamp(kind) and kind.unit != "us":
            kind = pa.timestamp("us", tz=kind.tz)
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))


def cut(table: pa.Table, order_by: str, rows: int | None = None, step=None) -> list[pa.Table]:
    """The table in the order of a column, in pieces of `rows` rows or of a `step` of that column. Pieces are never empty."""
    if table[order_by].null_count:
        raise InputError(f"{table[order_by].null_count} rows have no {order_by!r}, so their turn is not known; leave them out")
    ordered = table.take(pc.sort_indices(table, [(order_by, "ascending")])).combine_chunks()
    if rows is not None:
        return [ordered.slice(at, rows) for at in range(0, ordered.num_rows, rows)]
    numbers = _numbers(ordered[order_by], step)
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), ordered.num_rows]
    return [ordered.slice(a, b - a) for a, b in itertools.pairwise(edges) if b > a]


def step_size(kind: pa.DataType, step: Any) -> Any:
    """A step in the units of a column of this type; InputError if it is none."""
    if pa.types.is_timestamp(kind):
        if not is_duration(step):
            raise InputError(f'step must be a length of time such as "1h", not {step!r}')
        size = nanoseconds(step, "step") // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if is_duration(step):
            raise InputError(f"step must be a number, as the column is, not {step!r}")
        size = step
    else:
        raise InputError(f"a step needs a column of times or numbers, not {kind}; take rows instead")
    if size <= 0:
        raise InputError(f"step must be more than zero, not {step!r}")
    return size


def _numbers(column: pa.ChunkedArray, step) -> np.ndarray:
    """In which step each value lies."""
    values = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return np.floor_divide(values.to_numpy(), step_size(column.type, step))


def lay_out(table: pa.Table, folder: str | os.PathLike[str], *, order_by: str, rows: int | None = None, step=None) -> int:
    """Write the pieces into a folder, one Parquet file each, and return how many there are.

    A folder that holds these pieces already is left as it is, so that a stream that stopped goes on; with others it is an error.
    """
    place = Path(folder)
    meant = {"rows": table.num_rows, "order_by": order_by, "a_file": rows or str(step), "columns": table.column_names}
    mark = place / _MARK
    if mark.exists():
        there = json.loads(mark.read_text(encoding="utf-8"))
        if {key: there.get(key) for key in meant} != meant:
            raise InputError(f"{place} holds the pieces of another replay; remove it, together with the checkpoint")
        return there["files"]
    pieces = cut(table, order_by, rows, step)
    aside = place.with_name(f".{place.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for number, piece in enumerate(pieces):
        file = aside / f"{number:06d}.parquet"
        pq.write_table(piece, file)
        os.utime(file, (_EPOCH + number, _EPOCH + number))
    (aside / _MARK).write_text(json.dumps(meant | {"files": len(pieces)}), encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)
    return len(pieces)
