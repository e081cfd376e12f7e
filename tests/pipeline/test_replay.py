"""A file as a stream: every row once, in the order of arrival."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.support import events, job

from slidewise.errors import InputError, JobError
from slidewise.pipeline import load
from slidewise.pipeline.replay import cut, lay_out, read_file


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 7))
def test_every_row_once_in_order(arrivals: list[int], size: int) -> None:
    table = pa.table({"at": arrivals, "row": list(range(len(arrivals)))})
    for pieces in (cut(table, "at", rows=size), cut(table, "at", step=size)):
        whole = pa.concat_tables(pieces)
        assert whole["at"].to_pylist() == sorted(arrivals)
        assert sorted(whole["row"].to_pylist()) == list(range(len(arrivals)))
        assert all(piece.num_rows for piece in pieces)
    assert all(piece.num_rows <= size for piece in cut(table, "at", rows=size))
    for piece in cut(table, "at", step=size):
        assert len({at // size for at in piece["at"].to_pylist()}) == 1


def test_steps_of_time() -> None:
    pieces = cut(events(), "arrived", step="2h")
    assert [len({at.hour // 2 for at in piece["arrived"].to_pylist()}) for piece in pieces] == [1] * len(pieces)


@pytest.mark.parametrize(("step", "message"), [(5, "length of time"), ("0s", "more than zero"), ("-1h", "more than zero")])
def test_a_step_that_cannot_be(step, message) -> None:
    with pytest.raises(InputError, match=message):
        cut(events(), "arrived", step=step)
    with pytest.raises(InputError, match="times or numbers"):
        cut(events(), "card", step=1)


def test_a_row_without_arrival() -> None:
    with pytest.raises(InputError, match="1 rows have no 'at'"):
        cut(pa.table({"at": [1, None]}), "at", rows=1)


def test_files_in_the_order_that_spark_takes_them(tmp_path) -> None:
    folder = tmp_path / "pieces"
    count = lay_out(events(), folder, order_by="arrived", rows=30)
    files = sorted(folder.glob("*.parquet"), key=os.path.getmtime)
    assert len(files) == count == 7
    assert [file.name for file in files] == sorted(file.name for file in files)
    assert pa.concat_tables(map(pq.read_table, files))["arrived"].to_pylist() == sorted(events()["arrived"].to_pylist())
    before = files[0].stat().st_ino
    assert lay_out(events(), folder, order_by="arrived", rows=30) == count
    assert files[0].stat().st_ino == before
    with pytest.raises(InputError, match="another replay"):
        lay_out(events(), folder, order_by="arrived", rows=31)


def test_what_spark_cannot_read_is_cast(tmp_path) -> None:
    table = pa.table({"t": pa.array([1000], pa.timestamp("ns")), "d": pa.array(["a"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "x.parquet")
    assert [str(kind) for kind in read_file(tmp_path / "x.parquet").schema.types] == ["timestamp[us]", "string"]
    (tmp_path / "x.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    assert read_file(tmp_path / "x.csv").to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize("step", ["soon", "0h", 5])
def test_a_wrong_step_is_found_before_anything_starts(tmp_path: Path, step) -> None:
    settings = ["mode=stream", "source.format=replay", "source.order_by=arrived", f"source.step={step}"]
    with pytest.raises(JobError, match=r"source\.step: "):
        load(job(tmp_path), settings)
