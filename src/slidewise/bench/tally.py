"""Combines counted in compiled code: windows of millions of events, as large as the papers'.

`counting.py` counts in the interpreted twins, call by call. Here the operator's `combine` adds one to a word of this process,
which compiled code knows by name: it can be filed in the disk cache, and finds the word again in another process.
"""

import ctypes
from collections.abc import Callable

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from slidewise.algebra.operator import Operator
from slidewise.algebra.typed import TypedOperator

_NAME = "slidewise_bench_combines"
_word = ctypes.c_int64(0)
llvmlite.binding.add_symbol(_NAME, ctypes.addressof(_word))


@intrinsic
def _one_more(context):
    def code(context, builder, signature, arguments):
        word = builder.module.globals.get(_NAME)
        if word is None:
            word = ir.GlobalVariable(builder.module, ir.IntType(64), _NAME)
            word.linkage = "external"
        builder.store(builder.add(builder.load(word), ir.Constant(ir.IntType(64), 1)), word)
        return context.get_dummy_value()

    return types.none(), code


def _same(x):
    return x


def _counted_add(a, b):
    _one_more()
    return a + b


def tallied() -> TypedOperator:
    """A sum of int64 whose combines are counted. It runs compiled only."""
    op = Operator(name="tallied", lift=_same, combine=_counted_add, lower=_same, identity=0, commutative=True)
    return op.typed((np.dtype(np.int64),))


def combines(call: Callable[[], object]) -> int:
    """How many combines of `tallied` a call makes."""
    before = _word.value
    call()
    return _word.value - before
