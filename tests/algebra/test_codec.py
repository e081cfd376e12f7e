"""Plain Python values as bytes and back."""

from collections import Counter, OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidewise.algebra.codec import decode, encode
from slidewise.errors import StateError, UnsupportedError

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.times(),
    st.decimals(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.binary().map(bytearray),
    st.text().map(np.str_),
    st.binary().map(np.bytes_),
    st.fractions(),
)
HASHABLE = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(HASHABLE, inner),
        st.dictionaries(HASHABLE, inner).map(OrderedDict),
        st.dictionaries(HASHABLE, st.integers()).map(Counter),
        st.sets(HASHABLE),
        st.frozensets(HASHABLE),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_round_trip(value):
    again = decode(encode(value))
    assert again == value
    assert type(again) is type(value)


@given(VALUES, st.data())
def test_damage_is_found_or_gives_a_plain_value(value, data):
    body = bytearray(encode(value))
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(body))
    except StateError:
        return
    assert encode(found), "only plain values can be written again"


@given(VALUES)
def test_cut_short(value):
    body = encode(value)
    for cut in range(len(body)):
        with pytest.raises(StateError):
            decode(body[:cut])


def test_arrays_and_numbers_keep_their_type():
    kinds = [np.array(["2026-01-01"], "M8[D]"), np.array([1], "m8[25us]"), np.array([b"ab"]), np.array([1j, 2]), np.array([True])]
    for array in (np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.array(["2026-01-01"], "M8[ns]"), np.int8([]), *kinds):
        again = decode(encode(array))
        assert again.dtype == array.dtype and again.shape == array.shape and (again == array).all()
        again[...] = again  # its own memory, writable
    assert type(decode(encode(np.float32(1.5)))) is np.float32


@pytest.mark.parametrize("text", [b"(1,;2", b"f8,,2", b"f8;2", b"<f8,<f8;2", b"<O8;2", b"<M8[D/3];2", b";2"])
def test_a_type_of_arrays_that_nobody_wrote_is_damage(text):
    """NumPy would read a tuple, a record, or a Python expression out of it."""
    body = encode(np.arange(2.0)).replace(b"<f8;2", text).replace(b"\x05\0\0\0", bytes([len(text), 0, 0, 0]), 1)
    with pytest.raises(StateError, match="array of unknown kind"):
        decode(body)


@pytest.mark.parametrize("text", [b"1e999999999", b"1", b"1.5", b" 1/2", b"1/0", b"1_0/3", b"/2"])
def test_a_fraction_that_nobody_wrote_is_damage(text):
    with pytest.raises(StateError, match="damaged"):
        decode(b"r" + len(text).to_bytes(8, "little") + text)


def test_zones_are_kept_as_offsets():
    value = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert decode(encode(value)) == value
    assert decode(encode(date(2026, 1, 1))) == date(2026, 1, 1)
    assert decode(encode([time(1, 2), timedelta(1), Decimal("1.10"), Fraction(1, 3)]))[2].as_tuple().exponent == -2


def test_other_objects_are_refused():
    with pytest.raises(UnsupportedError, match="encode="):
        encode(object())
    with pytest.raises(UnsupportedError):
        encode([lambda: None])
