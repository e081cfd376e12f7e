"""Lengths of time as people write them: "1h", "15min", "1h30m", "10 minutes", a timedelta. A day is 24 hours.

Months and years have no fixed length and are refused; a local day, which daylight saving makes 23 or 25 hours long, is
`sw.time("1d", calendar=True)`.
"""

import datetime
import re

from slidewise.errors import InputError, InputTypeError

NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}

_WORDS = {
    "ns": ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
    "us": ("us", "µs", "μs", "micro", "micros", "microsecond", "microseconds"),
    "ms": ("ms", "milli", "millis", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_UNIT_OF = {word: unit for unit, words in _WORDS.items() for word in words}
_CALENDAR = ("mo", "month", "months", "q", "quarter", "quarters", "y", "year", "years", "M", "Q", "Y", "ME", "YE", "QE")
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([A-Za-zµμ]+)\s*")


def nanoseconds(value, what: str = "a duration") -> int:
    """Nanoseconds of "1h", a timedelta, a NumPy timedelta64 or a pandas Timedelta."""
    if isinstance(value, str):
        return _parse(value, what)
    if hasattr(value, "to_timedelta64"):  # pandas, without importing it
        value = value.to_timedelta64()
    if isinstance(value, datetime.timedelta):
        return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000
    if type(value).__module__ == "numpy" and type(value).__name__ == "timedelta64":
        if str(value.dtype).endswith(("M]", "Y]")):
            raise InputError(f'{what}: {value!r}: months and years have no fixed length; give days, such as "30d"')
        found = value.astype("timedelta64[ns]")
        if value != value or found.astype(value.dtype) != value:
            raise InputError(f"{what}: {value!r} does not fit nanoseconds")
        return int(found.astype("int64"))
    raise InputTypeError(f'{what} must be text such as "1h", or a timedelta, not {value!r}')


def is_duration(value) -> bool:
    """Whether a value is meant as a length of time (and not as a plain number)."""
    return isinstance(value, (str, datetime.timedelta)) or type(value).__name__ in ("timedelta64", "Timedelta")


def _parse(text: str, what: str) -> int:
    total, position, parts = 0, 0, 0
    sign = -1 if text.strip().startswith("-") else 1
    body = text.strip().lstrip("+-")
    while position < len(body):
        match = _PART.match(body, position)
        if match is None:
            raise InputError(f'{what}: cannot read {text!r}; write it like "1h", "15min", "1h30m" or "10 minutes"')
        number, word = match.groups()
        unit = _UNIT_OF.get(word) or _UNIT_OF.get(word.lower() if word not in _CALENDAR else "")
        if unit is None:
            if word in _CALENDAR or word.lower() in _CALENDAR:
                raise InputError(f'{what}: {text!r}: months and years have no fixed length; give days, such as "30d"')
            raise InputError(
                f"{what}: {text!r} has an unknown unit {word!r}; known are ns, us, ms, s, m (min), h, d, w"
            )
        total += _scaled(number or "1", NS[unit], text, what)
        position, parts = match.end(), parts + 1
    if not parts:
        raise InputError(f'{what} is empty; write it like "1h"')
    return sign * total


def _scaled(number: str, factor: int, text: str, what: str) -> int:
    whole, _, fraction = number.partition(".")
    scale = 10 ** len(fraction)
    ticks = int(whole + fraction) * factor
    if ticks % scale:
        raise InputError(f"{what}: {text!r} is not a whole number of nanoseconds")
    return ticks // scale


def text_of(ns: int) -> str:
    """The shortest text of a length of time: 3600 s -> "1h", 5400 s -> "90m"."""
    if ns == 0:
        return "0s"
    for unit in ("w", "d", "h", "m", "s", "ms", "us", "ns"):
        if ns % NS[unit] == 0 and not (unit == "w" and ns // NS[unit] == 0):
            return f"{ns // NS[unit]}{unit}"
    return f"{ns}ns"
