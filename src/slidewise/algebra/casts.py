"""Casts with two meanings, for operators that serve many input types: Python numbers interpreted, 64-bit numbers compiled.

Python's own `int` and `float` leave an int8 or a float32 as narrow as it is when Numba compiles them, and NumPy's leave
NumPy scalars behind in interpreted code, which wrap around instead of growing. These do neither.

    whole(x)     int       int64
    unsigned(x)  int       uint64
    real(x)      float     float64
    truth(x)     bool      boolean
    bits(x)      int       the 64 bits of a float64, as int64
"""

import struct

import numpy as np
from numba import types
from numba.extending import overload

_int64, _uint64, _float64 = types.int64, types.uint64, types.float64


def whole(x):
    return int(x)


def unsigned(x):
    return int(x)


def real(x):
    return float(x)


def truth(x):
    return bool(x)


def bits(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


@overload(whole)
def _whole(x):
    return lambda x: _int64(x)


@overload(unsigned)
def _unsigned(x):
    return lambda x: _uint64(x)


@overload(real)
def _real(x):
    return lambda x: _float64(x)


@overload(truth)
def _truth(x):
    return lambda x: x != 0


@overload(bits)
def _bits(x):
    return lambda x: np.float64(x).view(np.int64)
