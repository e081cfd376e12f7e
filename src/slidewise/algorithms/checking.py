"""What the `check()` of every algorithm needs: fold states, and tell whether two partials are the same aggregate.

Partials of floating-point numbers depend on the grouping, so they are compared within a bound that no broken invariant
on ordinary data meets by chance; everything else is compared exactly. Objects that cannot tell pass: sketches without
`equal`, and classes with a `==` of their own, which may be as exact as it likes about numbers that are not.
"""

import math
from collections.abc import Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

BOUND = 1e-9
"""Relative to the largest number of the window; sums of up to millions of float64 stay well below it."""

_EXACT = (int, str, bytes, bytearray, set, frozenset, type(None), Fraction, date, time, timedelta)

_WORD = 1 << 64

_scale: ContextVar[float] = ContextVar("scale", default=0.0)
_bound: ContextVar[float] = ContextVar("bound", default=BOUND)
_structure: ContextVar[bool] = ContextVar("structure", default=False)


@contextmanager
def structure_only():
    """In here, partials are not compared: only what compiled code relies on is checked."""
    token = _structure.set(True)
    try:
        yield
    finally:
        _structure.reset(token)


@contextmanager
def compared_within(op, states: list):
    """In here, floats are compared relative to the largest one of these states: where large values cancel out, what two
    groupings leave behind differs by more than the result is worth. Narrow floats are coarser."""
    finite = (abs(x) for s in states for x in _leaves(s) if isinstance(x, float) and math.isfinite(x))
    tokens = _scale.set(max(finite, default=0.0)), _bound.set(max(BOUND, 4 * len(states) * _coarseness(op, states)))
    try:
        yield
    finally:
        _scale.reset(tokens[0])
        _bound.reset(tokens[1])


def _coarseness(op, states: list) -> float:
    if op.compiled:
        kinds = {leaf.dtype for leaf in op.state.leaves}
    else:
        kinds = {part.dtype for s in states for part in (s if isinstance(s, tuple) else (s,)) if hasattr(part, "dtype")}
    return max((float(np.finfo(kind).eps) for kind in kinds if kind.kind in "fc"), default=0.0)


POSITIONS = 1 << 62
"""Positions only grow, from 0: no stream reaches this."""


def fold(op, states: Iterable):
    """All states combined, oldest first; the identity if there are none."""
    if _structure.get():
        return op.identity
    total = None
    for k, state in enumerate(states):
        total = op.combine_(total, state) if k else state
    return op.identity if total is None else total


def prefixes(op, states: list) -> list:
    """For each state, everything from the first up to it."""
    found: list = []
    if _structure.get():
        return states
    for state in states:
        found.append(op.combine_(found[-1], state) if found else state)
    return found


def suffixes(op, states: list) -> list:
    """For each state, everything from it up to the last."""
    found: list = []
    if _structure.get():
        return states
    for state in reversed(states):
        found.append(op.combine_(state, found[-1]) if found else state)
    return found[::-1]


def assert_alike(op, stored: list, expected: list, what: str) -> None:
    for k, (a, b) in enumerate(zip(stored, expected, strict=True)):
        assert alike(op, a, b), f"{what}: number {k} does not"


def alike(op, a, b) -> bool:
    """Whether two partials are the same aggregate."""
    if _structure.get():
        return True
    equal = op.operator.equal
    if equal is not None:
        return bool(equal(a, b))
    ours, theirs = list(_leaves(a)), list(_leaves(b))
    if len(ours) != len(theirs):
        return False
    finite = [abs(x) for x in ours + theirs if isinstance(x, float) and math.isfinite(x)]
    slack = _bound.get() * max([_scale.get(), *finite])
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
        for part in state.tolist():
            yield from _leaves(part)
    elif isinstance(state, np.generic):
        yield from _leaves(state.item())
    elif isinstance(state, complex):
        yield from (state.real, state.imag)
    elif isinstance(state, Decimal):
        yield math.nan if state.is_nan() else float(state)
    elif is_dataclass(state):
        for field in fields(state):
            yield from _leaves(getattr(state, field.name))
    else:
        yield state


def _close(x, y, slack: float) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        if not (math.isfinite(x) and math.isfinite(y)):
            return True  # the grouping decides where a sum overflows: nothing can be said
        return abs(x - y) <= slack
    if isinstance(x, int) and isinstance(y, int):
        return (x - y) % _WORD == 0  # compiled integers are residues
    return not isinstance(x, _EXACT) or bool(x == y)


def inexact(state) -> bool:
    """Whether there are floats in a state: what was added and subtracted again says nothing of what is left."""
    return any(isinstance(x, float) for x in _leaves(state))


def ordered(*positions: int) -> None:
    """Assert that positions are sane and in order: what `check()` lets pass, compiled code runs on."""
    assert all(isinstance(p, int) and 0 <= p < POSITIONS for p in positions), "positions are in range"
    assert all(p <= q for p, q in pairwise(positions)), f"pointers are in order, not {positions}"
