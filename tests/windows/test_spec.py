"""What a user says: lengths, labels, names."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.windows.clock import Clock
from slidewise.windows.duration import nanoseconds, text_of
from slidewise.windows.spec import named_windows

HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1h", HOUR),
        ("60min", HOUR),
        ("60m", HOUR),
        ("1H", HOUR),
        ("1h30m", HOUR * 3 // 2),
        ("1.5h", HOUR * 3 // 2),
        ("1 hour", HOUR),
        ("10 minutes", HOUR // 6),
        ("1d", 24 * HOUR),
        ("1w", 168 * HOUR),
        ("5ms", 5_000_000),
        ("7us", 7_000),
        ("3ns", 3),
        ("h", HOUR),
    ],
)
def test_lengths_of_time(text, ns):
    assert nanoseconds(text) == ns


def test_other_lengths_of_time():
    assert nanoseconds(datetime.timedelta(minutes=90)) == HOUR * 3 // 2
    assert nanoseconds(np.timedelta64(90, "m")) == HOUR * 3 // 2
    assert [text_of(ns) for ns in (HOUR, HOUR * 3 // 2, 1500, 168 * HOUR)] == ["1h", "90m", "1500ns", "1w"]


@pytest.mark.parametrize(
    ("window", "label"),
    [
        ("1h", "1h"),
        (datetime.timedelta(hours=1), "1h"),
        (10, "10"),
        (sw.time(2.5), "2.5"),
        (sw.rows(100), "100r"),
        (sw.time("1h", slide="5m", offset="1m"), "1h_slide_5m_offset_1m"),
        (sw.tumbling("1d"), "tumbling_1d"),
        (sw.session("30m"), "session_30m"),
        (sw.delta("price", 5), "delta_price_5"),
        (sw.delta("price", 1_234_567), "delta_price_1234567"),
        (sw.delta("price", 1e6), "delta_price_1e+06"),
        (sw.time(1234.5678), "1234.5678"),
        (sw.punctuation("end"), "punctuation_end"),
        (sw.lifetime(), "lifetime"),
        (sw.rows(10, slide=5), "10r_slide_5"),
        (sw.time("1d", calendar=True), "1d_calendar"),
    ],
)
def test_labels(window, label):
    assert list(named_windows([window])) == [label]
    assert list(named_windows({"mine": window})) == ["mine"]


def test_windows_that_are_nearly_as_long_have_names_of_their_own():
    windows = [1.0000001, 1.0000002, sw.delta("price", 2**53), sw.delta("price", 2**53 + 1)]
    assert len(named_windows(windows)) == 4


def test_an_origin_goes_to_windows_that_have_none():
    named = named_windows({"a": "1h", "b": sw.time("1h", origin="15m")}, origin="30m")
    assert (named["a"].origin, named["b"].origin) == ("30m", "15m")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00"])
def test_an_origin_without_a_zone_is_local_whatever_its_type(zone):
    clock = Clock.of(pa.timestamp("ns", zone), "ts")
    naive = [datetime.datetime(2024, 7, 1), datetime.date(2024, 7, 1), pd.Timestamp("2024-07-01"), np.datetime64("2024-07-01")]
    aware = [pd.Timestamp("2024-07-01", tz="Europe/Berlin"), "2024-06-30T22:00:00Z"]
    assert {clock.moment(origin) for origin in ["2024-07-01", *naive, *aware]} == {1719784800 * 10**9}
    assert clock.moment(pd.Timestamp("2024-07-01 00:00:00.123456789")) == 1719784800123456789
    assert clock.moment("15m") == HOUR // 4, "a length of time is one after the epoch"


@pytest.mark.parametrize(
    ("kind", "origin"),
    [
        (pa.int64(), 0.5),
        (pa.int64(), float("inf")),
        (pa.float64(), float("nan")),
        (pa.float64(), 10**400),
        (pa.timestamp("us"), pd.NaT),
        (pa.timestamp("us"), np.datetime64("NaT")),
        (pa.timestamp("us"), np.datetime64("3000-01-01")),
    ],
)
def test_origins_that_cannot_be(kind, origin):
    with pytest.raises(sw.SlidewiseError, match="origin"):
        Clock.of(kind, "t").moment(origin)


@pytest.mark.parametrize("make", [sw.time, sw.tumbling, sw.session])
def test_a_length_that_is_no_number(make):
    with pytest.raises(sw.InputError, match="more than zero, not nan"):
        make(float("nan"))


def test_a_length_that_no_float_holds():
    with pytest.raises(sw.InputError, match="more than any float"):
        Clock("real").ticks(sw.time(10**400))
    assert Clock("whole").ticks(sw.time(10**400)).range == 10**400
