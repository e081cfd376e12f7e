"""Whether times have a time zone is fixed by the first event that is taken in: it stays in stored bytes, in the window itself, and
away from copies and from events that were refused."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

import slidewise as sw

PLAIN, ZONED = datetime(2026, 1, 1), datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2)))
KINDS = {
    "datetime": ({}, lambda t: t),
    "declared datetime": ({"time_dtype": datetime}, lambda t: t),
    "Timestamp": ({}, pd.Timestamp),
    "datetime64[us]": ({"time_dtype": "datetime64[us]"}, lambda t: t),
    "datetime64[ns]": ({"time_dtype": "datetime64[ns]"}, pd.Timestamp),
}


def window(kind):
    declared, time = KINDS[kind]
    return sw.Window(sw.collect(), dtype=object, **declared), time


@pytest.mark.parametrize("first", [PLAIN, ZONED], ids=["plain", "zoned"])
@pytest.mark.parametrize("kind", KINDS)
def test_stored_bytes_keep_whether_there_is_a_zone(kind, first):
    w, time = window(kind)
    w.insert(time(first), 1)
    other = ZONED if first is PLAIN else PLAIN
    for again in (w, sw.Window.from_bytes(w.to_bytes(), sw.collect())):
        with pytest.raises(sw.InputTypeError, match="time zone"):
            again.insert(time(other), 2)
        with pytest.raises(sw.InputTypeError, match="time zone"):
            again.bulk_evict(time(other))
        again.insert(time(first + timedelta(hours=1)), 3)
        assert again.query() == [1, 3] and again.query(time(first), time(first)) == [1]
        assert again.oldest == w.oldest and type(again.oldest) is type(w.oldest)


@pytest.mark.parametrize("kind", ["declared datetime", "datetime64[us]", "datetime64[ns]"])
def test_what_is_open_stays_open_in_bytes_and_in_a_copy(kind):
    w, time = window(kind)
    copy, again = w.copy(), sw.Window.from_bytes(w.to_bytes(), sw.collect())
    w.insert(time(PLAIN), 1)
    copy.insert(time(ZONED), 1)
    again.insert(time(ZONED), 1)
    assert len(w) == len(copy) == len(again) == 1


def test_a_copy_made_before_the_first_datetime_has_a_zone_of_its_own():
    """datetime64 says nothing of zones: a window may have entries and be open."""
    w = sw.Window(sw.collect(), dtype=object, time_dtype="datetime64[us]")
    w.insert(np.datetime64("2025-01-01"), 0)
    copy = w.copy()
    w.insert(PLAIN, 1)
    copy.insert(ZONED, 2)
    assert (w.query(), copy.query()) == ([0, 1], [0, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_event_does_not_fix_the_zone(kind):
    w, time = window(kind)
    with pytest.raises(sw.InputError):
        w.insert(time(PLAIN), None)
    with pytest.raises(sw.InputError):
        w.bulk_insert([time(PLAIN)], [None])
    with pytest.raises(sw.InputTypeError, match="time zone"):
        w.bulk_insert([time(PLAIN), time(ZONED)], [1, 2])
    assert not w.bulk_evict(time(PLAIN)) and not w.evict(time(PLAIN))
    w.insert(time(ZONED), 1)
    assert w.query() == [1]


def test_an_event_that_lift_refuses_fixes_no_type():
    def lift(x):
        if x == 0:
            raise ZeroDivisionError("nothing is divided by it")
        return 1 / x

    op = sw.operator(lift=lift, combine=lambda a, b: a + b, identity=0.0, name="inverses")
    w = sw.Window(op, dtype=object)
    for refused in (lambda: w.insert(PLAIN, 0), lambda: w.bulk_insert([PLAIN, PLAIN], [4, 0])):
        with pytest.raises(ZeroDivisionError):
            refused()
        assert len(w) == 0
    w.insert(7, 2)
    assert (w.query(), w.oldest) == (0.5, 7)


def test_a_zone_comes_back_as_it_went_in():
    w = sw.Window(sw.collect(), dtype=object)
    w.insert(ZONED, 1)
    w.insert(ZONED.astimezone(UTC) + timedelta(hours=1), 2)
    assert w.oldest == ZONED and w.oldest.tzinfo is w.youngest.tzinfo is ZONED.tzinfo
