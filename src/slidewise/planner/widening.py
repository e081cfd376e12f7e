"""Which types hold every value of another exactly: what may be cast without a word, and what must be asked for.

    int8 -> int16 -> int32 -> int64 -> decimal        integers into decimals with room for all their digits
      |        '--> float32 -> float64                 integers into floats that count so far: 24 and 53 bits
      '------------------------^  (int32 too)

Whether a part of a type may be null makes no difference here.
"""

from __future__ import annotations

import pyarrow as pa

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Decimal digits of the largest integer of so many bits."""
_EXACT = {32: 16, 64: 32}
"""Bits of the widest integers that a float of so many bits holds all of."""


def holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether every value of `narrow` is a value of `wide` too."""
    if wide == narrow or pa.types.is_null(narrow):
        return True
    if pa.types.is_signed_integer(narrow):
        if pa.types.is_decimal(wide):
            return wide.precision - wide.scale >= _DIGITS[narrow.bit_width]
        if pa.types.is_floating(wide):
            return narrow.bit_width <= _EXACT.get(wide.bit_width, 0)
        return pa.types.is_signed_integer(wide) and wide.bit_width >= narrow.bit_width
    if pa.types.is_floating(narrow):
        return pa.types.is_floating(wide) and wide.bit_width >= narrow.bit_width
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    parts = _parts(wide), _parts(narrow)
    if not all(parts) or wide.id != narrow.id or [name for name, _ in parts[0]] != [name for name, _ in parts[1]]:
        return False
    return all(holds(mine, other) for (_, mine), (_, other) in zip(*parts))


def _parts(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """What a nested type is made of; names only where they tell parts apart."""
    if pa.types.is_struct(kind):
        return [(part.name, part.type) for part in kind]
    if pa.types.is_map(kind):
        return [("key", kind.key_type), ("item", kind.item_type)]
    return [("item", kind.value_type)] if pa.types.is_list(kind) else []
