"""A batch in this process, without Spark: Parquet, CSV or JSON files in, Arrow in the middle, the same out."""

from __future__ import annotations

import glob
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise as sw
from slidewise.errors import RunError
from slidewise.pipeline import schema
from slidewise.pipeline.checking import Checked
from slidewise.pipeline.problems import meant
from slidewise.pipeline.reading import Document
from slidewise.pipeline.replay import read_file
from slidewise.pipeline.types import arrow_schema


def compute(checked: Checked) -> tuple[int, pa.Table]:
    """How many rows were read, and the results."""
    job, document = checked.job, checked.document
    data = read_table(document, job.source)
    if job.as_of is None:
        return data.num_rows, sw.rolling(data, **checked.arguments)
    queries = read_table(document, job.as_of.queries)
    return data.num_rows, sw.as_of(queries, data, **checked.arguments)


def read_table(document: Document, source: schema.Source) -> pa.Table:
    """All rows of a source of files."""
    import pyarrow.dataset as ds

    assert not isinstance(source, (schema.RateSource, schema.SocketSource, schema.KafkaSource))
    path = document.path(source.path)
    if isinstance(source, schema.ReplaySource):
        return read_file(path)
    places = sorted(glob.glob(path)) if "*" in path else path
    declared = arrow_schema(getattr(source, "schema")) if getattr(source, "schema", None) else None  # noqa: B009
    try:
        if isinstance(source, schema.ParquetSource):
            found = ds.dataset(places, format="parquet", partitioning="hive").to_table()
            if declared is None:
                return found
            _all_there(path, found.schema.names, declared)
            return found.select(declared.names).cast(declared)
        assert declared is not None
        reading = pa.schema([pa.field(f.name, pa.string() if pa.types.is_timestamp(f.type) else f.type) for f in declared])
        files = ds.dataset(places, schema=reading, format=_format(source, reading))
        for file in files.get_fragments() if isinstance(source, schema.CsvSource) else ():
            _all_there(file.path, file.physical_schema.names, declared)  # Arrow would take nulls for one that is missing
        found = files.to_table()
        columns = [_moments(found[f.name]).cast(f.type) if pa.types.is_timestamp(f.type) else found[f.name] for f in declared]
        return pa.table(columns, schema=declared)
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error


def _all_there(path: str, names: list[str], declared: pa.Schema) -> None:
    for name in declared.names:
        if name not in names:
            raise RunError(f'{path} has no column "{name}"{meant(name, names)}')


def _format(source: schema.Source, reading: pa.Schema) -> Any:
    import pyarrow.csv
    import pyarrow.dataset as ds

    if isinstance(source, schema.CsvSource):
        names = pyarrow.csv.ReadOptions(column_names=None if source.header else reading.names)
        return ds.CsvFileFormat(
            parse_options=pyarrow.csv.ParseOptions(delimiter=str(source.options.get("sep", ","))),
            read_options=names,
            # Only what is empty is null, as on Spark: "NA" is text, and no number.
            convert_options=pyarrow.csv.ConvertOptions(column_types=reading, strings_can_be_null=True, null_values=[""]),
        )
    return ds.JsonFileFormat()


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as moments; without a zone it is UTC, as it is to Spark here."""
    has_zone = pc.match_substring_regex(column, r"(Z|[+-]\d\d:?\d\d)$")
    bare = pc.cast(pc.if_else(has_zone, None, column), pa.timestamp("us"))
    with_zone = pc.cast(pc.if_else(has_zone, column, None), pa.timestamp("us", tz="UTC"))
    return pc.coalesce(pc.assume_timezone(bare, "UTC"), with_zone)


def write_table(document: Document, sink: schema.FileSink, table: pa.Table) -> None:
    """Results as one file in the sink's folder."""
    folder = Path(document.path(sink.path))
    if sink.mode == "overwrite" and folder.is_dir():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind = str(sink.__struct_config__.tag)
    number = len(list(folder.glob(f"part-*.{kind}")))
    write_file(table, folder / f"part-{number:05d}.{kind}", kind)


def write_file(table: pa.Table, file: Path, kind: str) -> None:
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    elif kind == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, file)
    else:
        import json

        with file.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(row, default=_as_json) + "\n" for row in table.to_pylist())


def _as_json(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value.hex() if isinstance(value, bytes) else str(value)
