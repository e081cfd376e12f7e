"""One stable 128-bit hash for all sketches: MurmurHash3 x64 with seed 9001, as Apache DataSketches takes it.

The same value hashes the same in every process, on every platform, compiled and interpreted. Integers and truth values are
hashed as their int64, floats as their float64 with one zero and one NaN, strings and bytes as their (UTF-8) bytes. So the
registers of `approx_distinct` are those of a DataSketches HLL sketch of the same values.

Austin Appleby's MurmurHash3 is in the public domain; this is written from its description.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import bits, real, unsigned, whole
from slidewise.errors import InputError, InputTypeError
from slidewise.operators.making import INT64_MAX, INT64_MIN, UINT64_MAX, plain

SEED = 9001
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_M1, _M2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_ALL = UINT64_MAX
_NAN_BITS = 0x7FF8000000000000


@register_jitable
def _times(a, b):
    return (a * unsigned(b)) & unsigned(_ALL)


@register_jitable
def _rotated(x, r):
    return ((x << unsigned(r)) | (x >> unsigned(64 - r))) & unsigned(_ALL)


@register_jitable
def _plus(a, b):
    return (a + b) & unsigned(_ALL)


@register_jitable
def _mixed(k):
    k = _times(k ^ (k >> unsigned(33)), _M1)
    k = _times(k ^ (k >> unsigned(33)), _M2)
    return k ^ (k >> unsigned(33))


@register_jitable
def hash_word(word):
    """The two 64-bit halves of the hash of eight bytes, given as an unsigned number."""
    h1 = unsigned(SEED) ^ _times(_rotated(_times(word, _C1), 31), _C2) ^ unsigned(8)
    h2 = unsigned(SEED) ^ unsigned(8)
    h1 = _plus(h1, h2)
    h2 = _plus(h2, h1)
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = _plus(h1, h2)
    return h1, _plus(h2, h1)


@lru_cache(maxsize=1 << 14)  # interpreted, and columns of text repeat themselves
def hash_bytes(data: bytes) -> tuple[int, int]:
    """The two halves of the hash of any bytes."""
    h1 = h2 = SEED
    whole_blocks = len(data) // 16
    for k in range(whole_blocks):
        k1 = int.from_bytes(data[16 * k : 16 * k + 8], "little")
        k2 = int.from_bytes(data[16 * k + 8 : 16 * k + 16], "little")
        h1 ^= _times(_rotated(_times(k1, _C1), 31), _C2)
        h1 = (_plus(_rotated(h1, 27), h2) * 5 + 0x52DCE729) & _ALL
        h2 ^= _times(_rotated(_times(k2, _C2), 33), _C1)
        h2 = (_plus(_rotated(h2, 31), h1) * 5 + 0x38495AB5) & _ALL
    tail = data[16 * whole_blocks :]
    h2 ^= _times(_rotated(_times(int.from_bytes(tail[8:], "little"), _C2), 33), _C1)
    h1 ^= _times(_rotated(_times(int.from_bytes(tail[:8], "little"), _C1), 31), _C2)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = _plus(h1, h2)
    h2 = _plus(h2, h1)
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = _plus(h1, h2)
    return h1, _plus(h2, h1)


@register_jitable
def hash_whole(x):
    return hash_word(unsigned(whole(x)) & unsigned(_ALL))


@register_jitable
def hash_unsigned(x):
    return hash_word(unsigned(x))


@register_jitable
def hash_real(x):
    y = real(x)
    if y == 0.0:
        return hash_word(unsigned(0))  # -0.0 equals 0.0
    if y != y:
        return hash_word(unsigned(_NAN_BITS))
    return hash_word(unsigned(bits(y)) & unsigned(_ALL))


def hash_object(x) -> tuple[int, int]:
    """The hash of a Python value: numbers as above, text and bytes as bytes, other plain values by their canonical text."""
    y = x.item() if isinstance(x, np.generic) else x
    if isinstance(y, str):
        return hash_bytes(y.encode("utf-8", "surrogatepass"))
    if isinstance(y, (bytes, bytearray)):
        return hash_bytes(bytes(y))
    if isinstance(y, int) and INT64_MIN <= y <= INT64_MAX:
        return hash_whole(y)
    if isinstance(y, float):
        return hash_real(y)
    if isinstance(y, (int, Decimal, Fraction, date, datetime, time, timedelta)):
        text = f"{type(y).__name__}:{y.normalize() if isinstance(y, Decimal) else y}"
        return hash_bytes(text.encode())
    raise InputTypeError(f"a sketch takes numbers, text, bytes, dates and times, not {x!r}")


HASH = {
    "bool": hash_whole,
    "small": hash_whole,
    "int": hash_whole,
    "uint": hash_unsigned,
    "float": hash_real,
    "object": hash_object,
}
"""By kind of input: the hash that compiled and interpreted code share."""


def hash_item(name: str, item, kind: str) -> tuple[int, int]:
    """The hash of a parameter, as a value of a column of that kind hashes."""
    item = plain(item)
    try:
        if kind == "float":
            fits = float(item) == item or item != item
        elif kind != "object":
            low, high = (0, UINT64_MAX) if kind == "uint" else (INT64_MIN, INT64_MAX)
            fits = int(item) == item and low <= item <= high
            item = int(item)
        else:
            fits = True
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits or (kind != "object" and isinstance(item, (str, bytes))):
        raise InputError(f"{name}: item={item!r} cannot occur in a column of {kind} values")
    return HASH[kind](item)
