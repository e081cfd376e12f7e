"""The demo's events, against what is known of the data and a few flights worked out by hand."""

import pyarrow.compute as pc
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyspark", reason="the demo's packages are not installed")

from slidewise.pipeline.demo.flights import first_days, flights


@pytest.fixture(scope="module")
def found():
    return flights()


def one(table, id):
    return table.filter(pc.equal(table["id"], id)).to_pylist()[0]


def test_every_flight_is_accounted_for(found) -> None:
    assert found.scheduled == 336_776
    assert found.cancelled == 8_255
    assert found.table.num_rows + found.cancelled + found.diverted == found.scheduled
    assert len(pc.unique(found.table["id"])) == found.table.num_rows


def test_nothing_lands_before_it_departs(found) -> None:
    minutes = pc.divide(pc.subtract(found.table["landed"], found.table["departed"]).cast("int64"), 60_000_000)
    assert pc.min(minutes).as_py() >= 20
    assert pc.max(minutes).as_py() <= 13 * 60
    assert found.table["landed"].to_pylist()[:1000] == sorted(found.table["landed"].to_pylist()[:1000])


@pytest.mark.parametrize(
    ("id", "departed", "landed"),
    [
        # EWR 05:17, IAH 08:30 (an hour behind New York)
        ("2013-01-01 UA1545 EWR", "2013-01-01 10:17:00+00:00", "2013-01-01 14:30:00+00:00"),
        # JFK 05:44, BQN 10:04 (an hour ahead in winter; not in the table of airports)
        ("2013-01-01 B6725 JFK", "2013-01-01 10:44:00+00:00", "2013-01-01 14:04:00+00:00"),
        # JFK 18:35 with a delay of 853 minutes, so 08:48 on the next day; BWI 10:01
        ("2013-01-01 MQ3944 JFK", "2013-01-02 13:48:00+00:00", "2013-01-02 15:01:00+00:00"),
    ],
)
def test_flights_worked_out_by_hand(found, id, departed, landed) -> None:
    row = one(found.table, id)
    assert (str(row["departed"]), str(row["landed"])) == (departed, landed)


def test_the_first_days(found) -> None:
    table = first_days(found.table, 2)
    assert 1500 < table.num_rows < 1900
    assert str(pc.max(table["departed"]).as_py()) < "2013-01-03 05:00"
    assert first_days(found.table, None) is found.table
