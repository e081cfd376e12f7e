"""Single values as users give them: whether a column's type holds them as they are, and moments in the ticks of a clock."""

import datetime
from math import floor, isfinite
from numbers import Real

import numpy as np
import pyarrow as pa

from slidewise.errors import InputError, InputTypeError
from slidewise.windows.clock import Clock

_FINEST = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}
"""Microseconds in a tick."""


def keeps(value, kind: pa.DataType) -> bool:
    """Whether a column of this type holds the value as it is, where Arrow takes it at all: Arrow leaves out fractions, hours and
    zones without a word."""
    if pa.types.is_integer(kind):
        return bool(value == int(value))
    if not pa.types.is_temporal(kind):
        return True
    if isinstance(value, datetime.datetime):
        if pa.types.is_timestamp(kind):
            whole = value.microsecond % _FINEST[kind.unit] == 0 and (kind.unit == "ns" or not _finer(value))
            return whole and (value.tzinfo is None) == (kind.tz is None)
        return value.tzinfo is None and value.time() == datetime.time() and not _finer(value)
    if isinstance(value, (int, float, np.number)):
        return bool(value == int(value))
    if isinstance(value, (datetime.timedelta, datetime.time)):
        return bool(pa.scalar(value, kind).as_py() == value)
    return True


def moment(at, kind: pa.DataType, clock: Clock) -> tuple[int | float, bool]:
    """(the last tick at or before a time, whether the time lies behind it). kind: the type of the time column."""
    if clock.kind == "whole" and isinstance(at, Real) and not isinstance(at, bool):
        if not isfinite(at):
            raise InputError(f"{at!r} is not a time that these windows can be counted at")
        return int(floor(at)), bool(at != floor(at))
    try:
        found = _array(at, kind, clock)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError, TypeError) as error:
        raise InputTypeError(f"{at!r} is no time of type {kind}: {error}") from error
    zones = [getattr(one, "tz", None) is not None for one in (found.type, kind)]
    lengths = [pa.types.is_duration(one) for one in (found.type, kind)]
    if found.null_count or zones[0] != zones[1] or lengths[0] != lengths[1]:
        told = ": one has a time zone, the other has none" if zones[0] != zones[1] else ""
        raise InputTypeError(f"{at!r} is no time of type {kind}{told}")
    if clock.kind != "instant":
        return found[0].as_py(), False
    ticks = found.view(pa.int32() if pa.types.is_date32(found.type) else pa.int64())[0].as_py()
    ticks, rest = divmod(ticks * Clock.of(found.type, "at").tick_ns + _finer(at), clock.tick_ns)
    return ticks, rest > 0


def _finer(at) -> int:
    """What pandas has behind the microseconds."""
    return getattr(at, "nanosecond", 0) or getattr(at, "nanoseconds", 0)


def _array(at, kind: pa.DataType, clock: Clock) -> pa.Array:
    """A date, a time or a duration of Python, NumPy or pandas in the type it has by itself; anything else in the column's."""
    if clock.kind == "instant" and isinstance(at, (np.datetime64, np.timedelta64)):
        return pa.array(np.array([at]))
    if clock.kind == "instant" and isinstance(at, (datetime.date, datetime.timedelta)):
        return pa.array([at])
    found = pa.array([at], kind)
    if not keeps(at, kind):
        raise ValueError("it has a fraction")
    return found
