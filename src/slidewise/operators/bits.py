"""any, all, bit_and, bit_or, bit_xor. Exclusive or is its own inverse; the others forget, and are selective on truth values."""

from functools import cache

from slidewise.algebra.casts import truth, unsigned, whole
from slidewise.algebra.operator import Operator
from slidewise.errors import InputTypeError
from slidewise.operators.making import UINT64_MAX, kind_of, library, plain, public, refuse, refuse_text, worked_out


def _lift_truth(x):
    return truth(x)


def _either(a, b):
    return a or b


def _both(a, b):
    return a and b


def _same(state):
    return state


def _truth(name: str, combine, identity: bool) -> Operator:
    def lift_object(x):
        return worked_out(name, "true or false", bool, refuse_text(x, name))  # "False" would be true

    def resolve(inputs):
        return op.with_(lift=lift_object if inputs[0] is object else _lift_truth, resolve=None)

    op = library(
        name,
        lift=_lift_truth,
        combine=combine,
        lower=_same,
        identity=identity,
        commutative=True,
        selective=True,
        resolve=resolve,
    )
    return op


_ANY, _ALL = _truth("any", _either, False), _truth("all", _both, True)


@public("any", inputs="x")
def any_() -> Operator:
    """Whether some value is true (numbers: not 0; NaN is true). Null for an empty window.

    >>> sw.any().fold([False, True])
    True
    """
    return _ANY


@public("all", inputs="x")
def all_() -> Operator:
    """Whether every value is true (numbers: not 0; NaN is true). Null for an empty window.

    >>> sw.all().fold([1, 0])
    False
    """
    return _ALL


# ---- bits ------------------------------------------------------------------------------------------------------------


def _lift_whole(x):
    return whole(x)


def _lift_unsigned(x):
    return unsigned(x)


@cache
def _lift_object(name: str):
    def lift(x):
        y = plain(x)
        if not isinstance(y, int):
            raise InputTypeError(f"{name} takes whole numbers, not {x!r}")
        return int(y)

    return lift


def _and(a, b):
    return a & b


def _or(a, b):
    return a | b


def _xor(a, b):
    return a ^ b


def _bits(name: str, combine, identity: int, inverse=None) -> Operator:
    def resolve(inputs):
        kind = kind_of(inputs[0])
        if kind == "float":
            refuse(name, inputs[0], "whole numbers")
        if kind == "object":
            return generic.with_(resolve=None)
        if kind == "uint":
            return generic.with_(lift=_lift_unsigned, identity=identity & UINT64_MAX, resolve=None)
        return generic.with_(lift=_lift_whole, resolve=None)

    generic = library(
        name,
        lift=_lift_object(name),
        combine=combine,
        lower=_same,
        identity=identity,
        inverse=inverse,
        commutative=True,
        result_like=0,
        resolve=resolve,
    )
    return generic


_AND, _OR, _XOR = _bits("bit_and", _and, -1), _bits("bit_or", _or, 0), _bits("bit_xor", _xor, 0, inverse=_xor)


@public("bit_and", inputs="x")
def bit_and_() -> Operator:
    """The bits that all values have.

    >>> sw.bit_and().fold([12, 10])
    8
    """
    return _AND


@public("bit_or", inputs="x")
def bit_or_() -> Operator:
    """The bits that some value has.

    >>> sw.bit_or().fold([12, 10])
    14
    """
    return _OR


@public("bit_xor", inputs="x")
def bit_xor_() -> Operator:
    """The bits that an odd number of values have. Invertible: it is its own inverse.

    >>> sw.bit_xor().fold([12, 10])
    6
    """
    return _XOR
