"""Times as the compiled core sees them: int64, in an order-preserving way.

int64        as it is
float64      its bits, flipped so that the order of the integers is the order of the floats; NaN is refused
datetime64   its count of units; `datetime` comes back as `datetime`, time-zone aware ones in the zone of the first
object       anything comparable, for the interpreted path only

A coding never changes. One of datetimes may leave open whether they have a time zone: `settled_by` gives the one that the first
event makes of it.
"""

import re
from datetime import UTC, datetime

import numpy as np

from slidewise.errors import InputError, InputTypeError

_MICROSECONDS = np.dtype("datetime64[us]")
_FIRST, _LAST = (int(np.datetime64(end, "us").astype(np.int64)) for end in (datetime.min, datetime.max))
"""The codes of Python's datetimes, which are fewer than those of NumPy's."""
_FLIP = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def float_codes(values: np.ndarray) -> np.ndarray:
    """float64 -> int64 in the same order; -0.0 and 0.0 are one time."""
    bits = (np.asarray(values, np.float64) + 0.0).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _FLIP)


def codes_float(codes: np.ndarray) -> np.ndarray:
    codes = np.asarray(codes, np.int64)
    return (codes ^ ((codes >> np.int64(63)) & _FLIP)).view(np.float64)


class Times:
    """How one window's times are coded. `name` is what is stored beside a state."""

    compiled = True
    open = False
    """Whether the first datetime has still to say if there is a time zone."""

    def __init__(self, name: str):
        self.name = name

    def settled_by(self, ts) -> "Times":
        """The coding once events at these times are there."""
        return self

    def code(self, t):
        raise NotImplementedError

    def codes(self, ts) -> np.ndarray:
        return np.array([self.code(t) for t in ts], np.int64)

    def time(self, code):
        raise NotImplementedError

    def are_codes(self, codes) -> bool:
        """Whether these are codes of times: stored ones may be anything."""
        return True


class IntTimes(Times):
    def __init__(self):
        super().__init__("int64")

    def code(self, t):
        if isinstance(t, (bool, np.bool_, np.timedelta64)) or not isinstance(t, (int, np.integer)):
            raise _wrong(t, "an integer", "int64")
        if not -(2**63) <= t < 2**63:
            raise InputError(f"the time {t} does not fit in int64")
        return int(t)

    def codes(self, ts):
        array = _flat(ts)
        if array.dtype.kind not in "iu" or array.dtype == np.uint64 or _has(ts, (bool, np.bool_)):
            return super().codes(ts)
        return array.astype(np.int64, copy=False)

    def time(self, code):
        return int(code)


class FloatTimes(Times):
    def __init__(self):
        super().__init__("float64")

    def code(self, t):
        if isinstance(t, (bool, np.bool_, np.timedelta64)) or not isinstance(t, (int, float, np.integer, np.floating)):
            raise _wrong(t, "a number", "float64")
        if t != t:
            raise InputError("a time is NaN: every event needs a place in the order")
        try:
            there = float(t)
        except OverflowError:
            there = np.inf
        if isinstance(t, (int, np.integer)) and (there in (np.inf, -np.inf) or int(there) != int(t)):
            raise InputError(f"the time {t} is not a float64: this window's times are; give time_dtype='int64'")
        return int(float_codes(np.float64(there)))

    def codes(self, ts):
        array = _flat(ts)
        if array.dtype.kind != "f" or _has(ts, (int, np.integer, np.bool_)):  # NumPy would round integers among floats
            return super().codes(ts)
        array = array.astype(np.float64, copy=False)
        if np.isnan(array).any():
            raise InputError(f"the time at position {int(np.isnan(array).argmax())} is NaN")
        return float_codes(array)

    def time(self, code):
        return float(codes_float(np.int64(code)))

    def are_codes(self, codes):
        values = codes_float(codes)
        return not np.isnan(values).any() and bool((float_codes(values) == codes).all())


_SUFFIXES = {
    (False, None): "",
    (False, False): "|plain",
    (False, True): "|zoned",
    (True, None): "|any datetime",
    (True, False): "|datetime",
    (True, True): "|aware",
}
"""What a name says of datetimes beside their type: whether they come back as `datetime`, and whether they have a time zone."""


class DatetimeTimes(Times):
    """`aware`: whether datetimes have a time zone, None while that is open. A datetime64 has none; beside others it is UTC."""

    def __init__(self, dtype: np.dtype, python: bool = False, aware: bool | None = None, zone=None):
        super().__init__(dtype.str + _SUFFIXES[python, aware])
        self.dtype, self.python, self.aware, self.zone = dtype, python, aware, zone
        self.open = aware is None

    def settled_by(self, ts):
        if self.open and not (isinstance(ts, np.ndarray) and ts.dtype.kind == "M"):
            for t in ts:
                if isinstance(t, datetime):
                    return DatetimeTimes(self.dtype, self.python, t.tzinfo is not None, t.tzinfo)
        return self

    def code(self, t):
        if missing(t):
            raise InputError("a time is NaT: every event needs a place in the order")
        if isinstance(t, datetime):
            nanoseconds = getattr(t, "nanosecond", 0)
            aware = t.tzinfo is not None
            if not self.open and aware != self.aware:
                raise InputTypeError(f"times with and without a time zone cannot be compared: {t!r}")
            if aware:
                t = t.astimezone(UTC).replace(tzinfo=None)
            # Whole microseconds as such: in nanoseconds only three centuries of Python's hundred have a place.
            t = np.datetime64(datetime(t.year, t.month, t.day, t.hour, t.minute, t.second, t.microsecond), "us")
            if nanoseconds:
                t = t + np.timedelta64(nanoseconds, "ns")
        if not isinstance(t, np.datetime64):
            raise _wrong(t, "a datetime", str(self.dtype))
        there = t.astype(self.dtype)
        if there.astype(t.dtype) != t:
            raise InputError(f"{t} is finer than this window's {self.dtype}: give time_dtype")
        code = int(there.astype(np.int64))
        if self.python and not _FIRST <= code <= _LAST:
            raise _beyond_python(t)
        return code

    def codes(self, ts):
        array = _flat(ts)
        if array.dtype.kind != "M":
            return super().codes(ts)
        if np.isnat(array).any():
            raise InputError(f"the time at position {int(np.isnat(array).argmax())} is NaT")
        there = array.astype(self.dtype)
        if array.dtype != self.dtype and not (there.astype(array.dtype) == array).all():
            raise InputError(f"times are finer than this window's {self.dtype}: give time_dtype")
        codes = there.astype(np.int64)
        if self.python and not self.are_codes(codes):
            raise _beyond_python("one of the times")
        return codes

    def time(self, code):
        value = np.int64(code).astype(self.dtype)
        if not self.python:
            return value
        plain = value.astype(_MICROSECONDS).astype(datetime)
        return plain.replace(tzinfo=UTC).astimezone(self.zone) if self.aware else plain

    def are_codes(self, codes):
        if self.python:
            return self.dtype == _MICROSECONDS and bool(np.all((codes >= _FIRST) & (codes <= _LAST)))
        return not np.isnat(codes.astype(self.dtype)).any()


class ObjectTimes(Times):
    compiled = False

    def __init__(self):
        super().__init__("object")

    def code(self, t):
        if missing(t):
            raise InputError(f"a time is {t!r}: every event needs a place in the order")
        return t

    def codes(self, ts):
        return [self.code(t) for t in ts]

    def time(self, code):
        return code

    def are_codes(self, codes):
        return isinstance(codes, list) and not any(map(missing, codes))


def _flat(ts) -> np.ndarray:
    array = np.asarray(ts)
    if array.ndim != 1:
        raise InputError(f"times must be one after the other, not an array of {array.ndim} dimensions")
    return array


def _has(ts, kinds: tuple) -> bool:
    """Whether a list of times holds one of these: in an array of numbers it would be another (True is 1)."""
    return not isinstance(ts, np.ndarray) and any(issubclass(kind, kinds) for kind in set(map(type, ts)))


def missing(t) -> bool:
    """None, NaN, NaT, and what does not even say whether it equals itself."""
    try:
        return t is None or bool(t != t)
    except (TypeError, ValueError):
        return True


def times_of(example, time_dtype=None) -> Times:
    """The coding that an example time, or a declared type, asks for."""
    if time_dtype is not None:
        if time_dtype is object:
            return ObjectTimes()
        if time_dtype is datetime:
            return DatetimeTimes(_MICROSECONDS, python=True)
        try:
            dtype = np.dtype(time_dtype)
        except TypeError as error:
            raise InputTypeError(f"time_dtype {time_dtype!r} is not a type of times") from error
        if dtype.kind == "M":
            return DatetimeTimes(_MICROSECONDS if np.datetime_data(dtype)[0] == "generic" else dtype)
        if dtype.kind in "iu":
            return IntTimes()
        if dtype.kind == "f":
            return FloatTimes()
        if dtype.kind == "O":
            return ObjectTimes()
        raise InputTypeError(f"time_dtype {time_dtype!r} is not a type of times: int64, float64 or datetime64")
    if missing(example):
        raise InputError(f"a time is missing ({example!r}): every event needs a place in the order")
    if isinstance(example, (bool, np.bool_)):
        raise InputTypeError(f"the time {example!r} is a truth value, not a number or a datetime")
    if isinstance(example, (int, np.integer)) and not isinstance(example, np.timedelta64):
        return IntTimes()
    if isinstance(example, (float, np.floating)):
        return FloatTimes()
    if isinstance(example, np.datetime64):
        unit = np.datetime_data(example.dtype)[0]
        return DatetimeTimes(example.dtype if unit not in ("generic", "Y", "M") else _MICROSECONDS)
    if isinstance(example, datetime):
        finer = getattr(example, "nanosecond", None) is not None
        if finer:  # a pandas Timestamp: nanoseconds
            return DatetimeTimes(np.dtype("datetime64[ns]"))
        return DatetimeTimes(_MICROSECONDS, python=True)
    return ObjectTimes()


def times_named(name: str) -> Times:
    """The coding stored under that name."""
    if name == "int64":
        return IntTimes()
    if name == "float64":
        return FloatTimes()
    if name == "object":
        return ObjectTimes()
    text, bar, said = name.partition("|")
    meaning = {suffix: of for of, suffix in _SUFFIXES.items()}.get(bar + said)
    if not re.fullmatch(r"[<>]M8\[\d*[a-zA-Z]{1,2}\]", text) or meaning is None:
        raise InputTypeError(f"unknown times {name!r}")
    python, aware = meaning
    return DatetimeTimes(np.dtype(text), python, aware, UTC if aware else None)


def _wrong(t, wanted: str, dtype: str) -> InputTypeError:
    return InputTypeError(f"the time {t!r} is not {wanted} (this window's times are {dtype})")


def _beyond_python(t) -> InputError:
    return InputError(f"{t} is no Python datetime, as this window's times are: give time_dtype='datetime64[us]'")
