"""What the `check()` of every algorithm needs: fold states, and tell whether two partials are the same aggregate.

Partials of floating-point numbers depend on the grouping, so they are compared within a bound that no broken invariant
on ordinary data meets by chance; everything else is compared exactly. Objects that cannot tell (sketches without
`equal`) pass.
"""

import math
from collections.abc import Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from numbers import Number

import numpy as np

BOUND = 1e-9
"""Relative to the largest number of the window; sums of up to millions of float64 stay well below it."""

_WORD = 1 << 64

_scale: ContextVar[float] = ContextVar("scale", default=0.0)


@contextmanager
def compared_within(states: Iterable):
    """In here, floats are compared relative to the largest one of these states: where large values cancel out, what two
    groupings leave behind differs by more than the result is worth."""
    finite = (abs(x) for s in states for x in _leaves(s) if isinstance(x, float) and math.isfinite(x))
    token = _scale.set(max(finite, default=0.0))
    try:
        yield
    finally:
        _scale.reset(token)

POSITIONS = 1 << 62
"""Positions only grow, from 0: no stream reaches this."""


def fold(op, states: Iterable):
    """All states combined, oldest first; the identity if there are none."""
    total = None
    for k, state in enumerate(states):
        total = op.combine_(total, state) if k else state
    return op.identity if total is None else total


def prefixes(op, states: list) -> list:
    """For each state, everything from the first up to it."""
    found: list = []
    for state in states:
        found.append(op.combine_(found[-1], state) if found else state)
    return found


def suffixes(op, states: list) -> list:
    """For each state, everything from it up to the last."""
    found: list = []
    for state in reversed(states):
        found.append(op.combine_(state, found[-1]) if found else state)
    return found[::-1]


def assert_alike(op, stored: list, expected: list, what: str) -> None:
    for k, (a, b) in enumerate(zip(stored, expected, strict=True)):
        assert alike(op, a, b), f"{what}: number {k} does not"


def alike(op, a, b) -> bool:
    """Whether two partials are the same aggregate."""
    equal = op.operator.equal
    if equal is not None:
        return bool(equal(a, b))
    ours, theirs = list(_leaves(a)), list(_leaves(b))
    if len(ours) != len(theirs):
        return False
    finite = [abs(x) for x in ours + theirs if isinstance(x, float) and math.isfinite(x)]
    slack = BOUND * max([_scale.get(), *finite])
    return all(_close(x, y, slack) for x, y in zip(ours, theirs, strict=True))


def _leaves(state):
    if isinstance(state, (tuple, list)):
        for part in state:
            yield from _leaves(part)
    elif isinstance(state, dict):
        for key in sorted(state, key=repr):
            yield key
            yield from _leaves(state[key])
    elif isinstance(state, np.ndarray):
        yield from state.tolist()
    elif isinstance(state, np.generic):
        yield state.item()
    else:
        yield state


def _close(x, y, slack: float) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        if not (math.isfinite(x) and math.isfinite(y)):
            return True  # the grouping decides where a sum overflows: nothing can be said
        return abs(x - y) <= slack
    if isinstance(x, int) and isinstance(y, int):
        return (x - y) % _WORD == 0  # compiled integers are residues
    if isinstance(x, (Number, str, bytes, set, frozenset, type(None))) or type(x).__eq__ is not object.__eq__:
        return bool(x == y)
    return True


def ordered(*positions: int) -> None:
    """Assert that positions are sane and in order: what `check()` lets pass, compiled code runs on."""
    assert all(isinstance(p, int) and 0 <= p < POSITIONS for p in positions), "positions are in range"
    assert all(p <= q for p, q in pairwise(positions)), f"pointers are in order, not {positions}"
