"""approx_distinct: HyperLogLog on registers of our own, compiled.

Flajolet, Fusy, Gandouet, Meunier 2007; the estimator of Ertl 2017. A state is a row of 2^lg_k bytes, each the greatest
number of leading zeros (plus one) among the hashes that fall to it; two rows merge by their maximum, register by register.
Deterministic and commutative, so that batch and stream agree to the last bit, and without the objects that a sketch
library must copy for every combine. Hash and registers are those of Apache DataSketches: `hll_bytes` writes its format,
which Spark SQL's `hll_union` and `hll_sketch_estimate` read.
"""

import math
import struct
from functools import cache

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import real, unsigned, whole
from slidewise.algebra.operator import Operator
from slidewise.operators.hashing import HASH
from slidewise.operators.making import flag, kind_of, library, public, whole_number
from slidewise.operators.wide import greater, word_by_word

_ADDRESS = 2**26 - 1  # the bits of the hash that DataSketches takes the register's address from


@register_jitable
def _leading_zeros(x):
    """Of an unsigned 64-bit number; 64 for 0."""
    n = 0
    for step in (32, 16, 8, 4, 2, 1):
        if x >> unsigned(64 - step) == unsigned(0):
            n += step
            x = x << unsigned(step)
    return n + (1 if x >> unsigned(63) == unsigned(0) else 0)


@register_jitable
def _sigma(x):
    if x == 1.0:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@register_jitable
def _tau(x):
    if x == 0.0 or x == 1.0:
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0


def _estimate(registers):
    """Ertl 2017, algorithm 6: no tables, no switching between regimes. Registers hold 0 to 63."""
    m = real(len(registers))
    counts = np.bincount(registers, minlength=64)  # not a loop: interpreted, on text, it would take most of the time
    z = m * _tau(1.0 - counts[63] / m)
    for k in range(62, 0, -1):
        z = 0.5 * (z + counts[k])
    z += m * _sigma(counts[0] / m)
    return whole(m * m / (2.0 * math.log(2.0) * z) + 0.5)


def _max(a, b):
    return np.maximum(a, b)


@cache
def _hll_functions(kind: str, registers: int):
    hashed = HASH[kind]

    def lift_into(out, x):
        for k in range(registers):
            out[k] = 0
        low, high = hashed(x)
        out[whole(low & unsigned(_ADDRESS)) & (registers - 1)] = min(_leading_zeros(high), 62) + 1

    def lift(x):
        out = np.zeros(registers, np.uint8)
        low, high = hashed(x)
        out[whole(low & unsigned(_ADDRESS)) & (registers - 1)] = min(_leading_zeros(high), 62) + 1
        return out

    return {"lift": lift, "lift_into": lift_into}


@public(
    "approx_distinct",
    inputs="x",
    source="Flajolet, Fusy, Gandouet, Meunier 2007 (HyperLogLog); Ertl 2017 (estimator)",
)
def approx_distinct_(*, lg_k: int = 11, sketch: bool = False) -> Operator:
    """About how many distinct values: HyperLogLog with 2^lg_k registers of one byte. 0 for an empty window.

    The relative standard error is 1.04 / sqrt(2^lg_k): 2.3 % for the default, 1.6 % for 12. `sketch=True` gives the sketch
    itself instead of the number, as bytes in the format of Apache DataSketches, to be merged further elsewhere.

    >>> sw.approx_distinct().fold([1, 2, 3, 2, 1])
    3
    """
    lg_k = whole_number("approx_distinct", "lg_k", lg_k, 4, 18)
    registers = 2**lg_k
    as_bytes = flag("approx_distinct", "sketch", sketch)

    def resolve(inputs):
        return generic.with_(resolve=None, **_hll_functions(kind_of(inputs[0]), registers))

    generic = library(
        "approx_distinct",
        lift=_hll_functions("object", registers)["lift"],
        combine=_max,
        lower=hll_bytes if as_bytes else _estimate,
        identity=np.zeros(registers, np.uint8),
        commutative=True,
        combine_into=word_by_word(greater, registers),
        empty=None if as_bytes else 0,
        object_only=as_bytes,
        error=f"standard error {1.04 / math.sqrt(registers):.1%} of the count",
        params={"lg_k": lg_k, **({"sketch": True} if as_bytes else {})},
        cost="expensive",
        resolve=resolve,
    )
    return generic



def hll_bytes(registers) -> bytes:
    """Registers as an Apache DataSketches HLL_8 sketch.

    Merged sketches have no history, so the out-of-order flag is set and readers estimate from the registers alone.
    """
    registers = np.asarray(registers, np.uint8)
    lg_k = len(registers).bit_length() - 1
    inverse_powers = np.ldexp(1.0, -registers.astype(np.int64))
    small = float(inverse_powers[registers < 32].sum())
    large = float(inverse_powers[registers >= 32].sum())
    out_of_order, hll_mode_8 = 16, 10
    zeros = int((registers == 0).sum())
    head = struct.pack("<BBBBBBBB", 10, 1, 7, lg_k, 0, out_of_order, 0, hll_mode_8)
    return head + struct.pack("<dddii", 0.0, small, large, zeros, 0) + registers.tobytes()
