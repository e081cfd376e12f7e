"""Arrays that kernels emit results into, and results as Python values."""

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
        return OUT[i]
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
