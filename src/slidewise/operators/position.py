"""first, last, nth_youngest, m4: what depends on the place of values in time."""

from functools import lru_cache
from typing import Any, NamedTuple

from slidewise.algebra.operator import Operator
from slidewise.operators.making import CAST, ZERO, kind_of, library, public


class Kept(NamedTuple):
    """A value, if there is one."""

    has: bool
    value: Any


@lru_cache(maxsize=None)
def _lift_kept(kind: str):
    cast = CAST[kind]

    def lift(x):
        return Kept(True, cast(x))

    return lift


def _combine_first(a, b):
    return a if a.has else b


def _combine_last(a, b):
    return b if b.has else a


def _lower_kept(s):
    return s.value


def _end(name: str, combine) -> Operator:
    def resolve(inputs):
        kind = kind_of(inputs[0])
        return generic.with_(lift=_lift_kept(kind), identity=Kept(False, ZERO[kind]), resolve=None)

    generic = library(
        name,
        lift=_lift_kept("object"),
        combine=combine,
        lower=_lower_kept,
        identity=Kept(False, None),
        selective=True,
        result_like=0,
        carried=(0,),
        resolve=resolve,
    )
    return generic


_FIRST, _LAST = _end("first", _combine_first), _end("last", _combine_last)


@public("first", inputs="x")
def first_() -> Operator:
    """The oldest value.

    >>> sw.first().fold([3, 1, 2])
    3
    """
    return _FIRST


@public("last", inputs="x")
def last_() -> Operator:
    """The youngest value.

    >>> sw.last().fold(["a", "b"])
    'b'
    """
    return _LAST
