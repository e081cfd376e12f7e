"""Arrays that kernels emit results into, and results as Python values."""

from collections import Counter, OrderedDict, deque

import numpy as np

from slidewise.algebra.layout import Leaf
from slidewise.algebra.typed import TypedOperator


def result_arrays(op: TypedOperator, count: int):
    """OUT and OK for that many results."""
    if not op.compiled:
        return [None] * count, [0] * count
    return op.result.alloc(count), np.zeros(count, np.uint8)


def result_value(op: TypedOperator, OUT, OK, i: int):
    """Result i as a Python value; None where it is not defined."""
    if not OK[i]:
        return None
    if not op.compiled:
        return OUT[i] if op.operator.own else _handed_out(OUT[i])
    if op.result.width is not None:
        width = op.result.width
        return OUT[0][i * width : (i + 1) * width].copy()
    leaves = iter([array[i] for array in OUT])

    def build(shape):
        if isinstance(shape, Leaf):
            value = next(leaves).item()
            return bool(value) if shape.dtype == np.bool_ else value
        parts = [build(part) for part in shape[1:]]
        return tuple(parts) if shape[0] is None else shape[0](*parts)

    return build(op.result.shape)


def _handed_out(value):
    """A result that whoever asked may change: `lower` may give the state itself, or a part of it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.copy()
    if kind is list or kind is tuple:
        parts = [_handed_out(part) for part in value]
        return value if kind is tuple and all(a is b for a, b in zip(parts, value, strict=True)) else kind(parts)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_handed_out, value))
    if kind is dict:
        return {key: _handed_out(part) for key, part in value.items()}
    return value.copy() if kind in (set, bytearray, Counter, OrderedDict, deque) else value
