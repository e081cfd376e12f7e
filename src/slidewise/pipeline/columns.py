"""The columns a source will have, as far as that can be known before anything is read."""

from __future__ import annotations

import csv
import glob
from pathlib import Path

import pyarrow as pa

from slidewise.errors import SlidewiseError
from slidewise.pipeline import schema
from slidewise.pipeline.positions import Path as Key
from slidewise.pipeline.problems import Problem, meant
from slidewise.pipeline.reading import Document, is_local
from slidewise.pipeline.types import arrow_and_spark

_MOMENT = pa.timestamp("us", tz="UTC")
RATE = pa.schema([("timestamp", _MOMENT), ("value", pa.int64())])
TEXT = pa.schema([("value", pa.string()), ("timestamp", _MOMENT)])
"""Of sockets and Kafka with `value = "text"`: the text, and when it arrived."""


def columns_of(document: Document, source: schema.Source, key: Key, streams: bool) -> tuple[pa.Schema | None, list[Problem]]:
    """The Arrow schema of a source, or None where only Spark will know; and what is wrong about it."""
    if isinstance(source, schema.RateSource):
        return RATE, []
    declared, found = _declared(getattr(source, "schema", {}), key)
    path = getattr(source, "path", None)
    if path is not None and is_local(path):
        found += _not_there(document, path, key, streams)
    if declared is not None and not found:
        found += _not_in_the_file(document, source, declared, key)
    if isinstance(source, schema.ReplaySource) and not found:
        return _of_replay(document, source, key, found)
    if found or declared is not None:
        return declared, found
    if isinstance(source, (schema.SocketSource, schema.KafkaSource)) and source.value == "text":
        return TEXT, []
    if isinstance(source, (schema.ParquetSource, schema.DeltaSource)):
        known = _of_parquet(document, source.path, key, found) if isinstance(source, schema.ParquetSource) else None
        if known is None and streams and not found and isinstance(source, schema.ParquetSource):
            found.append(Problem(key, 'a stream needs the key "schema": there are no files yet that would tell the columns'))
        return known, found
    found.append(Problem(key, f'needs the key "schema", the columns and their types: [{".".join(map(str, key))}.schema]'))
    return None, found


def _not_there(document: Document, path: str, key: Key, streams: bool) -> list[Problem]:
    """A path that leads nowhere. A stream's pattern may find its first file later; those in braces only Spark can read."""
    place = Path(document.path(path))
    if place.exists():
        return []
    if not set(path) & set("*?[{"):
        return [Problem((*key, "path"), f'no file or folder "{path}"{_neighbour(place)}')]
    if streams or "{" in path or glob.glob(str(place)):
        return []
    return [Problem((*key, "path"), f'no file is called "{path}"')]


def _not_in_the_file(document: Document, source: schema.Source, declared: pa.Schema, key: Key) -> list[Problem]:
    """Columns that a file does not have, where it is the only one and can be read without Spark and its options."""
    names = _names_in(document, source)
    if names is None:
        return []
    path = getattr(source, "path", "")
    here = document.job.engine == "local"  # by name, to the letter; Spark does not look at capitals
    known = {name if here else name.strip().lower() for name in names}
    missing = [name for name in declared.names if (name if here else name.lower()) not in known]
    for sep in ";\t|" if missing and len(names) == 1 and isinstance(source, schema.CsvSource) else "":
        if sep in names[0]:
            shown = sep.replace("\t", "\\t")
            told = f'the columns of "{path}" stand apart by "{shown}"; write options = {{ sep = "{shown}" }}'
            return [Problem((*key, "path"), told)]
    return [Problem((*key, "schema", name), f'"{path}" has no column "{name}"{meant(name, names)}') for name in missing]


def _names_in(document: Document, source: schema.Source) -> list[str] | None:
    if not isinstance(source, (schema.CsvSource, schema.ParquetSource)) or set(source.options) - {"sep"}:
        return None
    place = Path(document.path(source.path))
    if not is_local(source.path) or not place.is_file() or not getattr(source, "header", True):
        return None
    try:
        if isinstance(source, schema.ParquetSource):
            import pyarrow.parquet as pq

            return pq.read_schema(place).names
        with place.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=str(source.options.get("sep", ","))), [])
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error, TypeError):  # compressed, a separator of several letters
        return None


def _declared(columns: dict[str, str], key: Key) -> tuple[pa.Schema | None, list[Problem]]:
    found, fields = [], []
    for name, kind in columns.items():
        try:
            fields.append(pa.field(name, arrow_and_spark(kind)[0]))
        except SlidewiseError as error:
            found.append(Problem((*key, "schema", name), str(error)))
    return (pa.schema(fields) if fields and not found else None), found


def _of_parquet(document: Document, path: str, key: Key, found: list[Problem]) -> pa.Schema | None:
    import pyarrow.dataset as ds

    if not is_local(path):
        return None
    try:
        known = ds.dataset(document.path(path), format="parquet", partitioning="hive").schema
    except (OSError, pa.ArrowException):
        if Path(document.path(path)).is_file():
            found.append(Problem((*key, "path"), f'"{path}" is no Parquet file'))
        return None
    return known if known.names else None


def _of_replay(
    document: Document, source: schema.ReplaySource, key: Key, found: list[Problem]
) -> tuple[pa.Schema | None, list[Problem]]:
    from slidewise.pipeline.replay import read_file, step_size

    if (source.rows is None) == (source.step is None):
        found.append(Problem(key, 'needs one of the keys "rows" and "step": what a micro-batch takes'))
        return None, found
    try:
        columns = read_file(document.path(source.path)).schema
    except (OSError, pa.ArrowException, SlidewiseError) as error:
        found.append(Problem((*key, "path"), f"cannot be read: {error}"))
        return None, found
    if source.order_by not in columns.names:
        told = f'the source has no column "{source.order_by}"{meant(source.order_by, columns.names)}'
        found.append(Problem((*key, "order_by"), told))
    elif source.step is not None:
        try:
            step_size(columns.field(source.order_by).type, source.step)
        except SlidewiseError as error:
            found.append(Problem((*key, "step"), str(error)))
    return columns, found


def _neighbour(path: Path) -> str:
    hint = meant(path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [])
    return hint if hint.endswith("?") else ""
