"""Values on their way into a live window, and results on their way out.

The types of the inputs are fixed once, by `dtype=` or by the first value; later values must fit them exactly: an int64 window
refuses 1.5 instead of cutting it. Datetimes and durations travel as integers where what comes back can be told from the operator
(its `result_like`; a sum of durations is one), and as objects elsewhere.
"""

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from slidewise.algebra.operator import Operator
from slidewise.errors import InputError, InputTypeError
from slidewise.live.times import missing
from slidewise.operators.making import MOMENTS, NUMBERS

_NUMBERS = "biuf"


class Values:
    """The inputs of one window: their types, and how a Python value becomes what the operator lifts."""

    def __init__(self, op: Operator, dtypes: tuple):
        self.operator = op
        self.dtypes = dtypes
        self.inputs = tuple(np.dtype(np.int64) if _as_int64(op, d) else d for d in dtypes)

    @property
    def compiled(self) -> bool:
        return all(d is not object for d in self.inputs)

    def as_objects(self) -> "Values":
        return Values(self.operator, (object,) * len(self.dtypes))

    def row(self, value) -> tuple:
        """The tuple of inputs of one event."""
        count = len(self.dtypes)
        if count == 1:
            return (self._one(value, self.dtypes[0]),)
        if count == 0:
            return ()
        if not isinstance(value, (tuple, list)) or len(value) != count:
            raise InputTypeError(f"{self.operator.name} takes {count} inputs: give a tuple of {count}, not {value!r}")
        return tuple(self._one(v, d) for v, d in zip(value, self.dtypes, strict=True))

    def _one(self, value, dtype):
        if value is None or (dtype is object and _is_null(value)):
            raise InputError("a value is missing; leave out events that have none")
        if type(value) is float and dtype == np.float64:
            return value
        if dtype is object:
            if isinstance(value, np.generic) and value.dtype.kind in "iu" and _as_int64(self.operator, value.dtype):
                return int(value)
            return value.copy() if type(value) is np.ndarray else value  # a buffer that is filled again and again
        if dtype.kind in "mM":
            return np.int64(_stamp(value, dtype))
        given = np.asarray(value) if type(value) is not int else None
        kind = "i" if given is None else given.dtype.kind if given.ndim == 0 else "O"
        fits = kind in {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}.get(dtype.kind, "")
        if not fits or np.ma.is_masked(value):
            raise InputTypeError(
                f"{value!r} is not {dtype} (the type of this window's values; give dtype= if it should be another)"
            )
        if dtype.kind == "f" and dtype.itemsize < 8 and float(np.finfo(dtype).max) < abs(float(value)) < np.inf:
            raise InputError(f"{value!r} does not fit in {dtype}")
        try:
            # NumPy's own integers would wrap
            made = dtype.type(int(value) if kind in "iu" and dtype.kind != "f" else value)
            return np.int64(made) if _as_int64(self.operator, dtype) else made
        except OverflowError as error:
            raise InputError(f"{value!r} does not fit in {dtype}") from error

    def columns(self, values, count: int) -> tuple:
        """The inputs of many events as columns."""
        width = len(self.dtypes)
        if width == 0:
            return ()
        if width == 1:
            return (self._column(values, self.dtypes[0], count),)
        if isinstance(values, tuple) and len(values) == width and all(isinstance(v, np.ndarray) for v in values):
            parts = values
        elif isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == width:
            parts = tuple(values[:, k] for k in range(width))
        else:
            rows = list(values)
            for value in rows:
                if not isinstance(value, (tuple, list)) or len(value) != width:
                    raise InputTypeError(f"{self.operator.name} takes {width} inputs: {value!r} is not a tuple of them")
            parts = tuple([value[k] for value in rows] for k in range(width))
        return tuple(self._column(p, d, count) for p, d in zip(parts, self.dtypes, strict=True))

    def _column(self, values, dtype, count: int):
        if dtype is object:
            column: Any = [self._one(v, dtype) for v in values]
        else:
            if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
                raise InputError("a value is missing; leave out events that have none")
            array = values if isinstance(values, np.ndarray) else None
            if array is not None and array.ndim == 1 and array.dtype.kind in "mM" and array.dtype.kind == dtype.kind:
                column = _stamps(array, dtype)
            else:
                fits = array is not None and array.ndim == 1 and _holds(dtype, array.dtype)
                there = np.int64 if _as_int64(self.operator, dtype) else dtype
                column = np.ascontiguousarray(array if fits else [self._one(v, dtype) for v in values], there)
        if len(column) != count:
            raise InputError(f"{count} times but {len(column)} values")
        return column

    def result(self, value):
        """A result as the user sees it."""
        like = self.operator.result_like
        if value is None:
            return value
        if like is None:
            durations = self.operator.own and self.operator.name in _DURATIONS and self.dtypes[0] is not object
            return _duration(value, self.dtypes[0]) if durations and self.dtypes[0].kind in "mM" else value
        dtype = self.dtypes[like]
        if dtype is object or dtype.kind not in "mM":
            return value
        back = np.int64(value).astype(dtype)
        return back


def _as_int64(op: Operator, dtype) -> bool:
    """Whether values of this type go to the operator as int64: counts of time, and small integers to functions of a user's, which
    give the same compiled as in Python only where nothing wraps."""
    if dtype is object:
        return False
    return dtype.kind in "mM" or (dtype.kind in "iu" and dtype.itemsize < 8 and not op.own)


_DURATIONS = frozenset(("sum", "mean", "spread"))
"""What gives a duration for durations (`spread`: for moments, too) ..."""
_UNSEEN = frozenset(("count", "min_count", "max_count", "approx_distinct", "bloom"))
"""... and what gives a number whatever it looks at."""


def _travelling(op: Operator, dtype):
    """The type that datetimes or durations go to the operator as: themselves, to be counted in ticks, or objects."""
    if dtype is object or dtype.kind not in "mM" or not op.own:
        return dtype
    if op.name in (NUMBERS if dtype.kind == "m" else MOMENTS):
        raise InputTypeError(
            f"{op.name} takes numbers, not {dtype}: times and durations have min, max, first, last, count and spread, and "
            "durations sum, mean and median too; for anything else give them as int64"
        )
    told = op.result_like is not None or op.name in _DURATIONS | _UNSEEN
    return dtype if told and not op.object_only else object


def _duration(value, dtype: np.dtype) -> np.timedelta64:
    """So many units as a duration; a part of one in nanoseconds."""
    unit, count = np.datetime_data(dtype)
    made: Any = np.timedelta64
    if value == int(value) or unit in "YM":  # nobody knows how long a part of a month is
        return made(round(value) * count, unit)
    return made(round(value * int(made(count, unit) / made(1, "ns"))), "ns")


def _is_null(value) -> bool:
    """pandas' NA and NaT, and NaT of NumPy's. (A NaN is a value.)"""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _holds(wide: np.dtype, narrow: np.dtype) -> bool:
    return narrow.kind in _NUMBERS and np.can_cast(narrow, wide, "safe")


def _stamp(value, dtype: np.dtype) -> int:
    maker: Any = np.datetime64 if dtype.kind == "M" else np.timedelta64
    wanted = (datetime, np.datetime64) if dtype.kind == "M" else (timedelta, np.timedelta64)
    if not isinstance(value, wanted):
        raise InputTypeError(f"{value!r} is not {dtype}")
    if missing(value):
        raise InputError("a value is NaT; leave out events that have none")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return int(_stamps(np.array([maker(value)]), dtype)[0])


def _stamps(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Datetimes or durations as counts of another unit; none is missing, cut or wrapped."""
    if np.isnat(array).any():
        raise InputError("a value is NaT; leave out events that have none")
    there = array.astype(dtype)
    changed = there.astype(array.dtype) != array
    if changed.any():
        raise InputError(f"{array[changed][0]} does not fit in {dtype}; give dtype= of another unit")
    return there.astype(np.int64)


def values_of(op: Operator, example, dtype=None) -> Values:
    """The input types that a first value, or `dtype=` (one, or a tuple for several inputs), asks for."""
    count = op.inputs or 0
    if dtype is not None:
        given = dtype if isinstance(dtype, (tuple, list)) else (dtype,) * count
        if len(given) != count:
            raise InputTypeError(f"{op.name} takes {count} inputs, dtype gives {len(given)}")
        return Values(op, tuple(_travelling(op, _dtype(d)) for d in given))
    if count <= 1:
        examples = (example,) * count
    elif isinstance(example, (tuple, list)) and len(example) == count:
        examples = tuple(example)
    else:
        raise InputTypeError(f"{op.name} takes {count} inputs: give a tuple of {count}, not {example!r}")
    return Values(op, tuple(_travelling(op, _dtype_of(e)) for e in examples))


def _dtype(given):
    if given is object:
        return object
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise InputTypeError(f"dtype {given!r} is not a NumPy type") from error
    return dtype if dtype.kind in "biufmM" else object


def _dtype_of(example):
    if isinstance(example, (bool, np.bool_)):
        return np.dtype(np.bool_)
    if isinstance(example, np.generic):
        return example.dtype if example.dtype.kind in "biufmM" else object
    if isinstance(example, int):
        return np.dtype(np.int64) if -(2**63) <= example < 2**63 else object
    if isinstance(example, float):
        return np.dtype(np.float64)
    return object
