"""Single events as dicts: checked one by one when they come, turned into a table together."""

from math import isfinite
from numbers import Integral

import numpy as np
import pyarrow as pa

from slidewise.errors import InputError, InputTypeError
from slidewise.live.given import keeps


def check_dict(row) -> None:
    if not isinstance(row, dict):
        raise InputTypeError(f"an event is a dict of columns, not {row!r}")


class Rows:
    """Dicts of these columns; other entries of a dict are left alone."""

    def __init__(self, schema: pa.Schema, time: str):
        self.schema, self.time = schema, time
        self._real = pa.types.is_floating(schema.field(time).type)
        self._checks = [(field.name, field.type, _check_for(field.type)) for field in schema]

    def check(self, row) -> None:
        """Complain of an event that cannot be taken in, while the caller still knows which it is."""
        check_dict(row)
        for name, kind, fits in self._checks:
            try:
                value = row[name]
            except KeyError:
                raise InputError(f"no {name!r} in the event; it has {', '.join(map(repr, row)) or 'nothing'}") from None
            if value is not None and not fits(value):
                raise InputTypeError(
                    f"{name!r} is {value!r}, and the column holds {kind}; convert it, or give schema= with a type "
                    "that holds both"
                )
        time = row[self.time]
        if time is None or time != time:
            raise InputError(
                f"the event's time {self.time!r} is {time!r}; an event without a time has no place in any window"
            )
        if self._real and not isfinite(time):
            raise InputError(f"the event's time {self.time!r} is {time!r}; times must be finite numbers")

    def table(self, rows: list[dict]) -> pa.Table:
        names = self.schema.names
        return pa.table(
            [pa.array([row[name] for row in rows], self.schema.field(name).type) for name in names], self.schema
        )


def _is_text(value: str) -> bool:
    """Half a surrogate pair, as json.loads lets it through, has no bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_for(kind: pa.DataType):
    """A quick test whether a value fits the type."""
    if pa.types.is_boolean(kind):
        return lambda value: isinstance(value, (bool, np.bool_))
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        low, high = (0, 2**bits) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return lambda value: isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) < high
    if pa.types.is_floating(kind):
        whole = {16: 2**11, 32: 2**24, 64: 2**53}[kind.bit_width]  # beyond, some whole numbers would be rounded
        return lambda value: isinstance(value, (float, np.floating)) or (
            isinstance(value, Integral) and not isinstance(value, bool) and -whole <= int(value) <= whole
        )
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: isinstance(value, str) and (value.isascii() or _is_text(value))

    def fits(value) -> bool:
        try:
            pa.scalar(value, kind)
            return keeps(value, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError, TypeError):
            return False

    return fits
