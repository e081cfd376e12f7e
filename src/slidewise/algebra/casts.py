"""Casts with two meanings, for operators that serve many input types: Python numbers interpreted, 64-bit numbers compiled.

Python's own `int` and `float` leave an int8 or a float32 as narrow as it is when Numba compiles them, and NumPy's leave
NumPy scalars behind in interpreted code, which wrap around instead of growing. These do neither.

    whole(x)     int       int64
    unsigned(x)  int       uint64
    real(x)      float     float64
    truth(x)     bool      boolean
    bits(x)      int       the 64 bits of a float64, as int64

and `same_array(a, b)`: whether two arrays begin at the same place.
"""

import struct

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

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


def same_array(a, b):
    return a is b


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


@intrinsic
def _same_start(context, a, b):
    def code(context, builder, signature, arguments):
        starts = [
            builder.ptrtoint(cgutils.create_struct_proxy(kind)(context, builder, value).data, cgutils.intp_t)
            for kind, value in zip(signature.args, arguments)
        ]
        return builder.icmp_unsigned("==", *starts)

    return types.boolean(a, b), code


@overload(same_array)
def _same_array(a, b):
    return lambda a, b: _same_start(a, b)
