"""Window algorithms, one file each, with paper, bounds and picture in the header. Knows nothing of engines.

A new algorithm is one new file and one line in `MODULES`; the whole test matrix then runs on it.

    protocol.py   what an algorithm is; arrays for one; the words that drivers call it by
    drivers.py    compiled loops over whole arrays, and the single steps behind a live window
    at_hand.py    loops for rows that are all at hand: the same combines, nothing kept that can be read again
    tree_frames.py  trees over frames of sorted rows
    checking.py   what the check() of every algorithm needs
    ring.py       the two positions of a ring, for those that keep nothing else
    dyadic.py     dyadic intervals on a ring, for those that keep them
"""

import importlib
import sys
import types
from functools import cache

from slidewise.algorithms.protocol import Algorithm, Info
from slidewise.errors import InputError, UnsupportedError

MODULES = (
    "recalc",
    "subtract_on_evict",
    "two_stacks",
    "two_stacks_lite",
    "aba",
    "daba",
    "daba_lite",
    "flatfat",
    "flatfit",
    "b_int",
    "slick_deque",
    "amta",
    "btree",
    "fiba",
)


@cache
def algorithm(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in MODULES:
        raise InputError(f"no algorithm {name!r}; there are {', '.join(MODULES)}")
    return Algorithm(importlib.import_module(f"slidewise.algorithms.{name}"))


def algorithms() -> list[Info]:
    """Every algorithm: paper, bounds, order, laws needed, operations offered."""
    return [algorithm(name).info for name in MODULES]


def serves(name: str, op, insist: bool = False) -> str | None:
    """Why that algorithm cannot serve a typed operator, with the name of one that can; None if it can.

    `insist`: the user asked for an inverse on floating-point states by name, and takes the drift."""
    refuse = getattr(algorithm(name).module, "refuse", None)
    return refuse(op, insist) if refuse is not None else None


def require(name: str, op, insist: bool = False) -> Algorithm:
    """The algorithm of that name, or UnsupportedError if it cannot serve the typed operator."""
    reason = serves(name, op, insist)
    if reason is not None:
        raise UnsupportedError(reason)
    return algorithm(name)


class _Room(types.ModuleType):
    """`sw.algorithms` is this room once anything in it was imported, and must still answer `sw.algorithms()`."""

    def __call__(self) -> list[Info]:
        return algorithms()


sys.modules[__name__].__class__ = _Room
