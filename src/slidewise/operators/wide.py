"""Wide states that combine word by word, without allocation.

`out` is often one of the arguments, and then a plain loop over three arrays is not vectorised: the compiler must assume that a
write may reach what is read next. Long rows therefore have a loop for each case (2,048 bytes: 0.07 us instead of 2.5); short ones
keep the plain loop, which is small enough to be inlined (70 words: 20 ns instead of 55).
"""

from functools import cache

from numba.extending import register_jitable

from slidewise.algebra.casts import same_array

LONG = 256


@cache
def word_by_word(function, width: int):
    """`into(out, a, b)` for rows of that width, which applies a function of two numbers to every word."""
    apply = register_jitable(function)

    def short(out, a, b):
        for k in range(len(out)):
            out[k] = apply(a[k], b[k])

    def long(out, a, b):
        if same_array(out, a):
            for k in range(len(out)):
                out[k] = apply(out[k], b[k])
        elif same_array(out, b):
            for k in range(len(out)):
                out[k] = apply(a[k], out[k])
        else:
            for k in range(len(out)):
                out[k] = apply(a[k], b[k])

    return long if width >= LONG else short


def add(a, b):
    return a + b


def subtract(total, old):
    return total - old


def either(a, b):
    return a | b


def greater(a, b):
    return a if a > b else b


def counters(width: int) -> dict:
    """The functions of a row of counters: added to combine, subtracted to invert."""
    return {
        "combine": add,
        "inverse": subtract,
        "combine_into": word_by_word(add, width),
        "inverse_into": word_by_word(subtract, width),
    }
