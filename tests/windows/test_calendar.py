"""Local days: the spring night has 23 hours, the autumn night 25."""

import datetime
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

ZURICH = ZoneInfo("Europe/Zurich")


def hours(start, count):
    """Rows an hour apart in real time."""
    first = datetime.datetime.fromisoformat(start).replace(tzinfo=ZURICH).astimezone(datetime.UTC)
    return [first + datetime.timedelta(hours=h) for h in range(count)]


def naive(times, kind, left):
    """How many rows are between the bound, found on the wall clock, and the row itself."""
    found = []
    for i, t in enumerate(times):
        local = t.astimezone(ZURICH).replace(tzinfo=None)
        if kind == "tumbling":
            bound = local.replace(hour=0, minute=0)
            if not left and bound == local:
                bound -= datetime.timedelta(days=1)
        else:
            bound = local - datetime.timedelta(days=1)
        bound = bound.replace(tzinfo=ZURICH, fold=0).astimezone(datetime.UTC)
        found.append(sum(bound <= u if left else bound < u for u in times[: i + 1]))
    return found


@pytest.mark.parametrize("start", ["2024-03-29 22:00", "2024-10-25 22:00"])
@pytest.mark.parametrize("closed", ["right", "both"])
@pytest.mark.parametrize("kind", ["time", "tumbling"])
def test_days_of_23_and_25_hours(start, closed, kind):
    times = hours(start, 80)
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "Europe/Zurich"))})
    window = getattr(sw, kind)("1d", calendar=True)
    ours = (
        sw.rolling(table, time="t", windows={"w": window}, aggs={"n": sw.count()}, closed=closed)
        .column("n_w")
        .to_pylist()
    )
    expected = naive(times, kind, closed == "both")
    skipped = {i for i, t in enumerate(times) if _unclear(t.astimezone(ZURICH))}
    assert [n for i, n in enumerate(ours) if i not in skipped] == [
        n for i, n in enumerate(expected) if i not in skipped
    ]
    assert set(ours[30:]) & {23, 25, 26, 24}


def _unclear(local):
    """A row whose bound falls into the hour that is skipped or happens twice, or that lies in one itself."""
    return local.hour in (1, 2, 3)


def test_without_a_zone_a_calendar_day_is_24_hours():
    frame = pd.DataFrame({"t": pd.date_range("2024-03-29", periods=60, freq="1h")})
    plain = sw.rolling(frame, time="t", windows={"w": "1d"}, aggs={"n": sw.count()})
    local = sw.rolling(frame, time="t", windows={"w": sw.time("1d", calendar=True)}, aggs={"n": sw.count()})
    assert plain.equals(local)


def test_what_local_days_do_not_have():
    table = pa.table({"t": pa.array(hours("2024-03-29 22:00", 3), pa.timestamp("us", "Europe/Zurich"))})
    with pytest.raises(sw.InputError, match="no slide"):
        sw.rolling(table, time="t", windows=sw.time("2d", slide="1d", calendar=True), aggs={"n": sw.count()})
    with pytest.raises(sw.UnsupportedError, match="fixed time apart"):
        sw.rolling(table, time="t", windows=sw.tumbling("1d", calendar=True), aggs={"n": sw.count()}, emit="slide")


def test_a_zone_that_nobody_knows():
    table = pa.table({"t": pa.array([1], pa.timestamp("s", "Mars/Base"))})
    for window in (sw.time("1d", calendar=True), sw.time("1d", slide="1h", origin="2024-01-01")):
        with pytest.raises(sw.InputError, match="'Mars/Base', which is not known"):
            sw.rolling(table, time="t", windows=window, aggs={"n": sw.count()})
    assert sw.rolling(table, time="t", windows="1d", aggs={"n": sw.count()})["n_1d"].to_pylist() == [1], "no zone is needed"


@pytest.mark.parametrize(
    ("zone", "night"),
    [("Europe/Zurich", "2024-10-26"), ("Europe/Zurich", "2024-03-30"), ("America/New_York", "2024-11-02"),
     ("Australia/Lord_Howe", "2024-04-06"), ("America/Havana", "2024-11-02")],
)
def test_a_day_back_does_not_depend_on_the_other_rows(zone, night):
    """When an hour happens again, the bound stays where the first time through it had brought it, seen or not."""
    first = datetime.datetime.fromisoformat(night).replace(tzinfo=datetime.UTC)
    moments = [first + datetime.timedelta(minutes=7 * k) for k in range(400)]
    events = [first - datetime.timedelta(days=2) + datetime.timedelta(minutes=11 * k) for k in range(600)]
    data = pa.table({"t": pa.array(events, pa.timestamp("us", zone))})

    def starts(asked):
        table = pa.table({"t": pa.array(asked, pa.timestamp("us", zone))})
        windows = {"w": sw.time("1d", calendar=True)}
        found = sw.as_of(table, data, time="t", windows=windows, aggs={"from": sw.first("t")})["from_w"]
        return [moment.astimezone(datetime.UTC) for moment in found.to_pylist()]  # in one zone Python compares what clocks show

    together = starts(moments)
    assert together == sorted(together)
    alone = [starts([moment])[0] for moment in moments[::9]]
    assert alone == together[::9]
    place = ZoneInfo(zone)
    for moment, since in zip(moments, together):
        local = moment.astimezone(place).replace(tzinfo=None)
        again = moment.astimezone(place).fold == 1
        bound = (local - datetime.timedelta(days=1)).replace(tzinfo=place)
        assert since >= bound if again else since - bound <= datetime.timedelta(hours=1, minutes=11)
