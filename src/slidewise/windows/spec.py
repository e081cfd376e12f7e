"""What a user says about a window: its kind, how long it is, how it slides. No boundaries are computed here.

"1h", timedelta, sw.time("1h", slide="5m", offset="5m")    the last hour
sw.rows(100)                                              the last hundred rows
sw.tumbling("1h")                                         the current hour
sw.session("30m")                                         since the last silence of more than 30 minutes
sw.delta("price", 5)                                      while the price stayed within 5
sw.punctuation("closed")                                  since the last marked row
sw.lifetime()                                             everything so far
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from slidewise.errors import InputError, InputTypeError
from slidewise.windows.duration import is_duration, nanoseconds, text_of

KINDS = ("time", "rows", "tumbling", "session", "delta", "punctuation", "lifetime")


@dataclass(frozen=True)
class Length:
    """How long: nanoseconds where `of_time`, otherwise a plain number in the units of a number column (or rows)."""

    value: Any
    of_time: bool
    text: str


@dataclass(frozen=True)
class Window:
    """One window, as said. Build it with `sw.time`, `sw.rows` and the others."""

    kind: str
    range: Length | None = None
    slide: Length | None = None
    offset: Length | None = None
    origin: Any = None
    column: str | None = None
    calendar: bool = False

    @property
    def label(self) -> str:
        """The window's part of an output column's name: `1h`, `100r`, `1h_slide_5m`."""
        if self.kind in ("time", "rows"):
            text = self.range.text
        elif self.kind == "lifetime":
            text = "lifetime"
        elif self.kind == "delta":
            text = f"delta_{self.column}_{self.range.text}"
        elif self.kind == "punctuation":
            text = f"punctuation_{self.column}"
        else:
            text = f"{self.kind}_{self.range.text}"
        if self.calendar:
            text += "_calendar"
        for word in ("slide", "offset"):
            length = getattr(self, word)
            if length is not None:
                text += f"_{word}_{length.text}"
        return text

    @property
    def by_position(self) -> bool:
        """Whether its ends are positions in (time, order) rather than moments."""
        return self.kind in ("rows", "delta", "punctuation")

    @property
    def slides(self) -> bool:
        """Whether it has boundaries of its own, so that `emit="slide"` has something to say."""
        return self.slide is not None or self.kind in ("tumbling", "session", "punctuation")

    @property
    def needed(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def __str__(self) -> str:
        arguments = [repr(self.column)] if self.column is not None else []
        arguments += (
            [self.range.text.removesuffix("r") if self.kind == "rows" else self.range.text] if self.range else []
        )
        arguments += [f"{word}={getattr(self, word).text}" for word in ("slide", "offset") if getattr(self, word)]
        arguments += ["calendar=True"] if self.calendar else []
        return f"{self.kind}({', '.join(arguments)})"


def time(range, slide=None, offset=None, *, origin=None, calendar: bool = False) -> Window:
    """The last `range` of time: `sw.time("1h")`; of a number column: `sw.time(10)`.

    slide: only at multiples of it; offset: ends that much earlier; calendar: days are local days of the column's zone.
    """
    return Window(
        "time",
        _length(range, "time: range"),
        _maybe(slide, "time: slide"),
        _maybe(offset, "time: offset", zero=True),
        origin,
        calendar=_calendar(calendar, range),
    )


def rows(n, slide=None, offset=None) -> Window:
    """The last `n` rows of the key, by (time, order)."""
    return Window(
        "rows",
        _count(n, "rows: n"),
        None if slide is None else _count(slide, "rows: slide", ""),
        None if offset is None or offset == 0 else _count(offset, "rows: offset", ""),
    )


def tumbling(range, *, origin=None, calendar: bool = False) -> Window:
    """Windows side by side: `sw.tumbling("1h")` is the current hour, from its start up to the row."""
    return Window("tumbling", _length(range, "tumbling: range"), origin=origin, calendar=_calendar(calendar, range))


def session(gap) -> Window:
    """Since the last silence: rows of a key belong together while no two neighbours are more than `gap` apart."""
    return Window("session", _length(gap, "session: gap"))


def delta(column: str, width) -> Window:
    """The longest run of rows ending here in which `column` stays within `width` (largest less smallest)."""
    if is_duration(width):
        return Window("delta", _length(width, "delta: width", zero=True), column=_name(column, "delta"))
    try:
        number = float(width) if isinstance(width, Real) and not isinstance(width, bool) else -1.0
    except OverflowError:
        raise InputError("delta: width must be a number that fits a float") from None
    if not number >= 0:
        raise InputError(f"delta: width must be a number of at least 0, not {width!r}")
    return Window("delta", Length(width, False, _written(width)), column=_name(column, "delta"))


def punctuation(column: str) -> Window:
    """Windows that end with a marked row (`column` is true), or begin with one where `closed` includes the left end."""
    return Window("punctuation", column=_name(column, "punctuation"))


def lifetime() -> Window:
    """Everything of the key up to the row."""
    return Window("lifetime")


def window(value) -> Window:
    """A window from what may stand in `windows=`: a Window, "1h", a timedelta, or a number (of a number time column)."""
    if isinstance(value, Window):
        return value
    if is_duration(value) or (isinstance(value, Real) and not isinstance(value, bool)):
        return time(value)
    raise InputTypeError(f'not a window: {value!r}; write "1h", sw.time(...), sw.rows(100), sw.session("30m") ...')


def named_windows(windows, origin=None) -> dict[str, Window]:
    """`windows=` as given (one, a list, or a dict of names) -> windows by name, each with the call's origin if it has none."""
    if isinstance(windows, dict):
        named = {_name(name, "windows"): window(value) for name, value in windows.items()}
    else:
        one = isinstance(windows, (Window, bytes)) or is_duration(windows) or not isinstance(windows, Iterable)
        found = [window(value) for value in ([windows] if one else windows)]
        named = {}
        for value in found:
            if value.label in named:
                raise InputError(
                    f'the window {value} is given twice; name windows apart with a dict: windows={{"a": ..., "b": ...}}'
                )
            named[value.label] = value
    if not named:
        raise InputError('no windows; give at least one, such as windows=["1h"]')
    if origin is not None:
        named = {
            name: replace(value, origin=origin) if value.origin is None else value for name, value in named.items()
        }
    return named


def _length(value, what: str, zero: bool = False) -> Length:
    if is_duration(value):
        ns = nanoseconds(value, what)
        text = "".join(value.split()) if isinstance(value, str) else text_of(ns)
        length = Length(ns, True, text)
    elif isinstance(value, Real) and not isinstance(value, bool):
        number: Any = value
        whole = int(number) if isinstance(value, Integral) or float(number).is_integer() else float(number)
        length = Length(whole, False, _written(whole) if isinstance(whole, float) else str(whole))
    else:
        raise InputTypeError(f'{what} must be text such as "1h", a timedelta or a number, not {value!r}')
    if not length.value >= 0 or (length.value == 0 and not zero) or length.value == float("inf"):
        raise InputError(
            f"{what} must be {'at least' if zero else 'more than'} zero"
            f"{'' if length.value != float('inf') else ' and finite (sw.lifetime() has no end)'}, not {value!r}"
        )
    return length


def _written(number) -> str:
    """A number in as few digits as say it: other numbers have other names."""
    short = f"{float(number):g}"
    if float(short) == number or number != number:
        return short
    return str(int(number)) if number == int(number) else repr(float(number))


def _maybe(value, what: str, zero: bool = False) -> Length | None:
    if value is None:
        return None
    length = _length(value, what, zero)
    return length if length.value != 0 else None


def _count(value, what: str, suffix: str = "r") -> Length:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"{what} must be a whole number of rows, not {value!r}")
    if value < 1:
        raise InputError(f"{what} must be at least 1, not {value!r}")
    return Length(int(value), False, f"{int(value)}{suffix}")


def _name(value, what: str) -> str:
    if not isinstance(value, str):
        raise InputTypeError(f"{what}: a name is text, not {value!r}")
    return value


def truth(value, what: str) -> bool:
    """An option that is on or off; NumPy's truth values too. "no" is neither."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{what} must be True or False, not {value!r}")
    return bool(value)


def _calendar(calendar: bool, range) -> bool:
    if truth(calendar, "calendar=") and (not is_duration(range) or nanoseconds(range) % (86_400 * 10**9)):
        raise InputError(f'calendar=True counts local days: give whole days such as "1d", not {range!r}')
    return bool(calendar)
