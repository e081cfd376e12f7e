"""What is written must not meet what is read, whatever way leads there; and sinks of plain values get plain values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.support import JOB, events, job

from slidewise.cli import main
from slidewise.errors import JobError
from slidewise.pipeline import load

SINK = ("sink.format=parquet", "sink.mode=overwrite")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """data/in/*.parquet, and a link to data."""
    (tmp_path / "data" / "in").mkdir(parents=True)
    pq.write_table(events(), tmp_path / "data" / "in" / "0.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    return tmp_path


def told(folder: Path, source: str, sink: str, *more: str, text: str = JOB) -> str:
    try:
        load(job(folder, text), [f'source.path="{source}"', f'sink.path="{sink}"', *SINK, *more])
    except JobError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("source", "sink", "expected"),
    [
        ("data/in", "out", ""),
        ("data/in", "data/in-out", ""),
        ("data/in", "data/in", "is also source.path"),
        ("data/in", "data/other/../in", "is also source.path"),
        ("data/in", "link/in", "is also source.path"),
        ("data/in", "data/in/out", "lies inside source.path"),
        ("data/in", "link/in/out", "lies inside source.path"),
        ("data/in", "data", 'source.path ("data/in") lies inside it'),
        ("link/in", "data", 'source.path ("link/in") lies inside it'),
        ("data/in", ".", 'source.path ("data/in") lies inside it'),
        ("data/in/*.parquet", "data/in/out", ""),
        ("data/in/*", "data/in/out", "lies inside source.path"),
        ("data/in/*.parquet", "data/in", "is also source.path"),
        ("data/*/*.parquet", "data", "is also source.path"),
        ("data/in/*.parquet", "data", "lies inside it"),
    ],
)
def test_a_sink_and_its_source(folder: Path, source: str, sink: str, expected: str) -> None:
    found = told(folder, source, sink)
    assert expected in found
    assert bool(expected) == bool(found)


def test_queries_are_read_as_well(folder: Path) -> None:
    pq.write_table(events().select(["ts", "card"]), folder / "queries")
    text = JOB + '[as_of.queries]\nformat = "parquet"\npath = "queries"\n'
    assert "is also as_of.queries.path" in told(folder, "data/in", "queries", text=text)
    assert told(folder, "data/in", "out", text=text) == ""


def test_a_batch_may_have_anything_where_a_stream_would_write(folder: Path) -> None:
    """The tables of streams are not looked at."""
    assert told(folder, "data/in", "out", 'stream.checkpoint="data/in"') == ""
    assert "stream.checkpoint" in told(folder, "data/in", "out", 'stream.checkpoint="data/in"', "mode=stream")


def test_a_job_that_has_run_can_be_explained(folder: Path, capsys) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "part-0.parquet").touch()
    settings = ["engine=local", 'source.path="data/in"', "sink.format=parquet", 'sink.path="out"']
    path = str(job(folder))
    with pytest.raises(JobError, match="is there already"):
        load(path, settings)
    arguments = ["explain", path, *(part for setting in settings for part in ("--set", setting))]
    assert main(arguments) == 0
    assert "algorithm" in capsys.readouterr().out


def test_lists_of_the_source_are_not_plain(folder: Path) -> None:
    table = events().append_column("tags", pa.array([["a"]] * 200))
    pq.write_table(table, folder / "data" / "in" / "0.parquet")
    for kind in ("csv", "jdbc"):
        where = [f"sink.format={kind}", 'sink.table="t"', 'sink.url="jdbc:derby:x"'] if kind == "jdbc" else [f"sink.format={kind}"]
        settings = [*where, 'sink.path="out"'] if kind == "csv" else where
        with pytest.raises(JobError, match=rf'sink.format: {kind} cannot hold the column "tags", a list'):
            load(job(folder), ['source.path="data/in"', *settings])
    letters = ["mode=stream", 'source.path="data/in"', 'dead_letters={ path = "late", format = "csv" }']
    with pytest.raises(JobError, match=r'dead_letters.format: csv cannot hold the column "tags"'):
        load(job(folder), letters)
