"""Casts that change nothing: told from types, and tried on their outermost values."""

import decimal

import pyarrow as pa
import pytest

from slidewise.planner.widening import holds

NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(3, 0),
           pa.decimal128(6, 2), pa.decimal128(7, 2), pa.decimal128(10, 0), pa.decimal128(18, 0), pa.decimal128(21, 2),
           pa.decimal128(38, 38)]  # fmt: skip


def outermost(kind: pa.DataType) -> list:
    """Values that another type has to hold if it is to hold all."""
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return [-most, most - 1, -most + 1]
    if pa.types.is_floating(kind):
        return [0.1, 1e30, 5e-324 if kind == pa.float64() else 2.0**-149]
    return [decimal.Decimal((sign, (9,) * kind.precision, -kind.scale)) for sign in (0, 1)]


@pytest.mark.parametrize("narrow", NUMBERS, ids=str)
@pytest.mark.parametrize("wide", NUMBERS, ids=str)
def test_numbers(wide: pa.DataType, narrow: pa.DataType) -> None:
    if pa.types.is_decimal(narrow) and not pa.types.is_decimal(wide):
        assert not holds(wide, narrow), "decimals may have fractions"
        return
    if pa.types.is_floating(narrow) and not pa.types.is_floating(wide):
        assert not holds(wide, narrow), "floats have NaN"
        return
    values = pa.array(outermost(narrow), narrow)
    try:
        fits = values.cast(wide).cast(narrow).equals(values)
    except pa.ArrowInvalid:
        fits = False
    assert holds(wide, narrow) == fits


def test_parts() -> None:
    pair = lambda kind, name="y": pa.struct([("x", pa.string()), (name, kind)])
    never_null = lambda kind: pa.list_(pa.field("item", kind, nullable=False))
    for wrap in (pa.list_, pair, never_null, lambda kind: pa.map_(pa.int8(), kind)):
        assert holds(wrap(pa.int64()), wrap(pa.int32())) and not holds(wrap(pa.int32()), wrap(pa.int64()))
    assert holds(never_null(pa.int8()), pa.list_(pa.int8())), "nulls make no difference"
    assert not holds(pair(pa.int64(), "z"), pair(pa.int32()))
    assert not holds(pa.list_(pa.int64()), pa.int64())


def test_times_and_text() -> None:
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32(), pa.string(), pa.binary(), pa.bool_()):
        assert holds(kind, kind) and holds(kind, pa.null()) and not holds(pa.null(), kind)
    assert not holds(pa.timestamp("us", "UTC"), pa.timestamp("us"))
    assert not holds(pa.timestamp("us"), pa.date32())
    assert not holds(pa.string(), pa.int32())
