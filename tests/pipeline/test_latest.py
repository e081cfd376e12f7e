"""The last word on each event, and what is none: an event that was handed out apart has no results."""

import pyarrow as pa
import pytest

from slidewise.pipeline import latest
from slidewise.pipeline.merging import jdbc_statements

SAID = pa.table({
    "id": [1, 1, 2, 3, 3],
    "total": [5, 7, 4, None, None],
    "revision": [0, 2, 0, 1, 2],
    "late": [False, False, False, True, True],
})
APART = pa.table({"id": [1, 2], "total": pa.nulls(2, pa.int64()), "revision": [9, 9], "late": [True, True]})


@pytest.mark.parametrize("said", [pa.concat_tables([SAID, APART]), pa.concat_tables([APART, SAID])], ids=["after", "before"])
def test_an_event_apart_takes_the_place_of_no_result(said: pa.Table) -> None:
    assert latest(said, "id").sort_by("id").drop_columns("late").to_pylist() == [
        {"id": 1, "total": 7, "revision": 2},
        {"id": 2, "total": 4, "revision": 0},
        {"id": 3, "total": None, "revision": 2},
    ]


def test_of_spark(spark) -> None:
    said = spark.createDataFrame(pa.concat_tables([SAID, APART]))
    assert sorted((row.id, row.total) for row in latest(said, "id").collect()) == [(1, 7), (2, 4), (3, None)]


def test_without_marks_and_without_keys() -> None:
    said = SAID.drop_columns("late")
    assert latest(said, "id").sort_by("id")["revision"].to_pylist() == [2, 0, 2]
    assert latest(said.slice(0, 3), [])["total"].to_pylist() == [7]


def test_the_statements_of_a_database_without_keys() -> None:
    for statement in jdbc_statements("t", "s", ["total"], [], str):
        assert "WHERE  " not in statement and "WHERE )" not in statement
