"""approx_count (count-min) and bloom: sketches as rows of numbers that merge word by word, compiled.

They are deterministic, commutative, and the same whatever the order and grouping: batch and stream agree to the last bit. Only
the answers read from them are estimates.

    approx_count   Cormode, Muthukrishnan 2005 (count-min)
    bloom          Bloom 1970; the estimate of Swamidass, Baldi 2007
"""

import math
from functools import cache

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.casts import real, unsigned, whole
from slidewise.algebra.operator import Operator
from slidewise.errors import InputError
from slidewise.operators.hashing import HASH, hash_item
from slidewise.operators.making import kind_of, library, public, whole_number
from slidewise.operators.wide import counters, either, word_by_word


def _power_of_two(name: str, parameter: str, value, least: int, most: int) -> int:
    value = whole_number(name, parameter, value, least, most)
    if value & (value - 1):
        raise InputError(f"{name}: {parameter} must be a power of two, not {value}")
    return value


# ---- approx_count ----------------------------------------------------------------------------------------------------


@register_jitable
def _place(low, high, row, width):
    """The column of a hash in a row, by double hashing; the second hash is made odd to reach every column."""
    return whole((low + unsigned(row) * (high | unsigned(1))) & unsigned(width - 1))


@cache
def _count_min_functions(kind: str, width: int, depth: int):
    hashed = HASH[kind]

    def lift_into(out, x):
        for k in range(depth * width):
            out[k] = 0
        low, high = hashed(x)
        for row in range(depth):
            out[row * width + _place(low, high, row, width)] = 1

    def lift(x):
        out = np.zeros(depth * width, np.int64)
        low, high = hashed(x)
        for row in range(depth):
            out[row * width + _place(low, high, row, width)] = 1
        return out

    return {"lift": lift, "lift_into": lift_into}


@public("approx_count", inputs="x", example={"item": 3}, source="Cormode, Muthukrishnan 2005 (count-min)")
def approx_count_(*, item, width: int = 256, depth: int = 4) -> Operator:
    """About how often `item` occurs: a count-min sketch of depth x width counters. Invertible. 0 for an empty window.

    Never too low; too high by more than e / width of all values (1.1 % for the default) with probability below
    e^-depth (1.8 %).

    >>> sw.approx_count(item="b").fold(["a", "b", "b"])
    2
    """
    width = _power_of_two("approx_count", "width", width, 2, 2**24)
    depth = whole_number("approx_count", "depth", depth, 1, 64)

    def functions(kind):
        low, high = hash_item("approx_count", item, kind)
        places = np.array([row * width + _place(low, high, row, width) for row in range(depth)])

        def lower(s):
            least = s[places[0]]
            for k in range(1, depth):
                least = min(least, s[places[k]])
            return whole(least)

        return {"lower": lower, **_count_min_functions(kind, width, depth)}

    def resolve(inputs):
        return generic.with_(resolve=None, **functions(kind_of(inputs[0])))

    as_object = functions("object")
    generic = library(
        "approx_count",
        lift=as_object["lift"],
        lower=as_object["lower"],
        identity=np.zeros(depth * width, np.int64),
        commutative=True,
        empty=0,
        error=f"never too low; too high by over {math.e / width:.1%} of n with probability {math.exp(-depth):.1%}",
        params={"item": item, "width": width, "depth": depth},
        **counters(depth * width),
        cost="expensive",
        resolve=cache(resolve),
    )
    return generic


# ---- bloom -----------------------------------------------------------------------------------------------------------


@cache
def _bloom_functions(kind: str, bits: int, hashes: int):
    hashed = HASH[kind]

    def lift_into(out, x):
        for k in range(bits >> 6):
            out[k] = unsigned(0)
        low, high = hashed(x)
        for row in range(hashes):
            place = _place(low, high, row, bits)
            out[place >> 6] |= unsigned(1) << unsigned(place & 63)

    def lift(x):
        out = np.zeros(bits >> 6, np.uint64)
        low, high = hashed(x)
        for row in range(hashes):
            place = _place(low, high, row, bits)
            out[place >> 6] |= np.uint64(1 << (place & 63))
        return out

    return {"lift": lift, "lift_into": lift_into}


@register_jitable
def _ones(words):
    """How many bits are set."""
    n = 0
    for k in range(len(words)):
        word = unsigned(words[k])
        while word != unsigned(0):
            word &= word - unsigned(1)
            n += 1
    return n


@public("bloom", inputs="x", example={"bits": 1024}, source="Bloom 1970; Swamidass, Baldi 2007 (estimate)")
def bloom_(*, bits: int = 8192, hashes: int = 4, item=None) -> Operator:
    """A Bloom filter: about how many distinct values there are, or with `item=`, whether that value may be among them.

    The count is estimated from the n bits set as -(bits / hashes) ln(1 - n / bits), 0 for an empty window; a full filter
    counts as one with half a bit free. `item=`: false means never there; true is wrong with probability (n / bits)^hashes.

    >>> sw.bloom(bits=1024).fold(["a", "b", "a"])
    2
    >>> sw.bloom(bits=1024, item="c").fold(["a", "b"])
    False
    """
    bits = _power_of_two("bloom", "bits", bits, 64, 2**30)
    hashes = whole_number("bloom", "hashes", hashes, 1, 64)

    def count(s):
        free = max(real(bits - _ones(s)), 0.5)
        return whole(-(bits / hashes) * math.log(free / bits) + 0.5)

    def functions(kind):
        made = dict(_bloom_functions(kind, bits, hashes))
        if item is None:
            return {"lower": count, **made}
        low, high = hash_item("bloom", item, kind)
        places = np.array([_place(low, high, row, bits) for row in range(hashes)])

        def lower(s):
            for k in range(hashes):
                if (unsigned(s[places[k] >> 6]) >> unsigned(places[k] & 63)) & unsigned(1) == unsigned(0):
                    return False
            return True

        return {"lower": lower, **made}

    def resolve(inputs):
        return generic.with_(resolve=None, **functions(kind_of(inputs[0])))

    as_object = functions("object")
    generic = library(
        "bloom",
        lift=as_object["lift"],
        combine=either,
        lower=as_object["lower"],
        identity=np.zeros(bits >> 6, np.uint64),
        commutative=True,
        combine_into=word_by_word(either, bits >> 6),
        empty=0 if item is None else False,
        error="relative standard error of the count about sqrt((e^t - t - 1) / n) / (t / hashes), t = n hashes / bits",
        params={"bits": bits, "hashes": hashes, **({} if item is None else {"item": item})},
        cost="expensive",
        resolve=cache(resolve),
    )
    return generic
