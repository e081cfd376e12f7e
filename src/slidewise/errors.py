"""Every error Slidewise raises on purpose.

Each is a `SlidewiseError` and also the built-in kind a caller would guess, so `except ValueError` works too.
"""


class SlidewiseError(Exception):
    """Base of all errors of this package."""


class InputError(SlidewiseError, ValueError):
    """A value, column or parameter that cannot be right."""


class InputTypeError(SlidewiseError, TypeError):
    """A value or column of a type that cannot be used here."""


class LawError(SlidewiseError, ValueError):
    """An operator breaks a law that it declares; the message holds the counter-example."""


class UnsupportedError(SlidewiseError, TypeError):
    """This algorithm, operator or engine cannot do that; the message names one that can."""


class OutOfOrderError(SlidewiseError, ValueError):
    """A time older than the youngest one, given to an algorithm that only takes events in order."""


class EmptyWindowError(SlidewiseError, IndexError):
    """Nothing to evict."""


class StateError(SlidewiseError, ValueError):
    """Damaged, truncated or foreign stored bytes, or state that does not fit this program."""


class AggregateOverflowError(SlidewiseError, OverflowError):
    """An integer aggregate left the range of int64."""


class JobError(SlidewiseError, ValueError):
    """A job file that cannot be right."""


class RunError(SlidewiseError, RuntimeError):
    """A job that failed while it ran."""
