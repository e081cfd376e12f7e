"""What the time column counts in, and a user's windows in its ticks.

A clock is one of: `instant` (timestamps, dates, durations: int64 ticks of `tick_ns` nanoseconds), `whole` (integer
columns) and `real` (floating-point columns). Where a window is finer than the column ("500us" on milliseconds, "36h" on
dates) the clock is refined: all times are multiplied to the finer tick, and the rule stays exact.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd, inf
from numbers import Real

import numpy as np
import pyarrow as pa

from slidewise.errors import InputError, InputTypeError
from slidewise.windows.deltas import delta_width
from slidewise.windows.duration import nanoseconds
from slidewise.windows.spec import Length, Window

_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY_NS = 86_400 * 10**9
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
MOST_ROWS = 2**62


@dataclass(frozen=True)
class Ticks:
    """A window in the ticks of a clock: what bounds.py computes with. Zero slide: none."""

    kind: str
    range: float | int = 0
    slide: float | int = 0
    offset: float | int = 0
    origin: float | int = 0
    column: str | None = None
    calendar: bool = False
    """Whether the range counts local days of `zone` (windows/calendar.py)."""
    zone: str | None = None
    tick_ns: int = 1
    whole: bool = False
    """tumbling: the window that ends at the moment, even where another begins with it."""

    @property
    def by_position(self) -> bool:
        """Whether its ends are positions in (time, order) rather than moments."""
        return self.kind in ("rows", "delta", "punctuation")


@dataclass(frozen=True)
class Clock:
    """The time column: `kind` instant, whole or real; for instants the tick, how it was refined, and the zone."""

    kind: str
    tick_ns: int = 1
    scale: int = 1
    """Column values times `scale` are ticks."""
    zone: str | None = None

    @staticmethod
    def of(arrow_type: pa.DataType, column: str) -> "Clock":
        """The clock of an Arrow column, or an error that says what can be a time."""
        if pa.types.is_timestamp(arrow_type):
            return Clock("instant", _UNIT[arrow_type.unit], zone=arrow_type.tz)
        if pa.types.is_duration(arrow_type):
            return Clock("instant", _UNIT[arrow_type.unit])
        if pa.types.is_date32(arrow_type):
            return Clock("instant", DAY_NS)
        if pa.types.is_date64(arrow_type):
            return Clock("instant", 10**6)
        if pa.types.is_integer(arrow_type):
            return Clock("whole")
        if pa.types.is_floating(arrow_type):
            return Clock("real")
        raise InputTypeError(
            f"time column {column!r} is {arrow_type}: times are timestamps, dates, durations or numbers; "
            f"convert it first" + (" (text does not sort by time)" if pa.types.is_string(arrow_type) else "")
        )

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64 if self.kind == "real" else np.int64)

    def refined(self, windows) -> "Clock":
        """A clock fine enough for every length in these windows."""
        if self.kind != "instant":
            return self
        tick = self.tick_ns
        for window in windows:
            for length in (window.range, window.slide, window.offset):
                if length is not None and length.of_time and window.kind != "delta":
                    tick = gcd(tick, length.value)
            if window.origin is not None:
                tick = gcd(tick, _moment_ns(window.origin, self.zone))
        return replace(self, tick_ns=tick, scale=self.scale * (self.tick_ns // tick))

    def beside(self, other: "Clock") -> "Clock":
        """A clock fine enough for another column as well: as_of, where queries and data may count in different units."""
        if self.kind == "instant" and other.kind == "instant":
            tick = gcd(self.tick_ns, other.tick_ns)
            return replace(self, tick_ns=tick, scale=self.scale * (self.tick_ns // tick))
        return other if other.kind == "real" else self

    def ticks(self, window: Window, types: Mapping[str, pa.DataType] | None = None) -> Ticks:
        """The window in this clock's ticks. types: of the columns; a delta window counts in those of its own."""
        if window.kind in ("rows", "delta", "punctuation", "lifetime"):
            numbers = [0 if length is None else length.value for length in (window.range, window.slide, window.offset)]
            if window.kind == "rows":  # nobody has more rows
                numbers = [min(number, MOST_ROWS) for number in numbers]
            elif window.kind == "delta" and types is not None:
                numbers[0] = delta_width(window.range, types[window.column], window.column)
            return Ticks(window.kind, numbers[0], numbers[1], numbers[2], column=window.column)
        slide = window.range if window.kind == "tumbling" else window.slide
        if window.calendar and self.kind != "instant":
            raise InputError(f"{window}: calendar days need a column of timestamps or dates")
        local = window.calendar and self.zone is not None  # without a zone every day has 24 hours
        if local:
            _zone(self.zone)
        if local and (window.slide is not None or window.origin is not None):
            raise InputError(
                f"{window}: local days have no slide and no origin; give the zone's midnight by sw.tumbling(...)"
            )
        step = 0 if slide is None else self._length(slide, window)
        origin = 0 if window.origin is None else self.moment(window.origin)
        if self.kind != "real":
            origin = origin % step if step else 0  # the same boundaries, and nothing leaves int64
        return Ticks(
            window.kind,
            self._length(window.range, window),
            step,
            0 if window.offset is None else self._length(window.offset, window),
            origin,
            calendar=local,
            zone=self.zone if local else None,
            tick_ns=self.tick_ns,
        )

    def _length(self, length: Length, window: Window):
        if length.of_time != (self.kind == "instant"):
            if length.of_time:
                raise InputTypeError(
                    f"window {window}: the time column holds numbers, so give a number in its unit, "
                    f"such as sw.time(3600), not {length.text!r}"
                )
            raise InputTypeError(
                f"window {window}: the time column holds times, so give a length of time such as "
                f'"{length.text}s" or "{length.text}m", not the number {length.text}'
            )
        if self.kind == "instant":
            ticks, rest = divmod(length.value, self.tick_ns)
            if rest:
                raise InputError(f"window {window}: {length.text!r} is finer than the clock's tick")
        elif self.kind == "whole":
            if length.value != int(length.value):
                raise InputTypeError(f"window {window}: the time column holds integers; {length.text} is not one")
            ticks = int(length.value)
        else:
            try:
                ticks = float(length.value)
            except OverflowError:
                raise InputError(f"window {window.kind}: this length is more than any float") from None
        return ticks

    def moment(self, value):
        """A point in time given by the user (an origin), in ticks."""
        if self.kind == "instant":
            ns = _moment_ns(value, self.zone)
            if ns % self.tick_ns:
                raise InputError(f"origin {value!r} is finer than the clock's tick")
            return ns // self.tick_ns
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputTypeError(f"origin must be a number, as the time column is, not {value!r}")
        try:
            found = float(value) if self.kind == "real" else int(value)
        except (OverflowError, ValueError):
            found = inf
        if found - found != 0:
            raise InputError("origin must be a finite number")
        if self.kind == "whole" and found != value:
            raise InputTypeError(f"origin must be an integer, as the time column is, not {value!r}")
        return found


def _moment_ns(value, zone: str | None) -> int:
    """Nanoseconds since the epoch of "2024-01-01", a datetime, or a length of time after the epoch ("15m"). What says no zone is
    local time in the column's, whatever type it has."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            try:
                return nanoseconds(value, "origin")
            except InputError:
                told = 'is no date such as "2024-01-01", and no length of time after the epoch such as "15m"'
                raise InputError(f"origin: {value!r} {told}") from None
    rest = 0
    if hasattr(value, "to_datetime64"):  # pandas
        if getattr(value, "tzinfo", None) is not None:
            value, zone = value.tz_convert("UTC").tz_localize(None), None
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        found = value.astype("datetime64[ns]")
        if np.isnat(value) or found.astype(value.dtype) != value:
            raise InputError(f"origin: {value!r} is no moment, or none that fits nanoseconds")
        whole, rest = divmod(int(found.astype(np.int64)), 1000)
        value = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=whole)
    elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        return nanoseconds(value, "origin")
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC if zone is None else _zone(zone))
    return nanoseconds(value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) + rest


def _zone(name: str) -> datetime.tzinfo:
    """A zone by its name, or as Arrow writes a fixed one: "+02:00"."""
    fixed = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if fixed is None:
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(name)
        except (KeyError, ValueError):
            raise InputError(f"the times are in the zone {name!r}, which is not known here; convert them first") from None
    ahead = datetime.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
    return datetime.timezone(-ahead if fixed[1] == "-" else ahead)
