"""Kernels are linked into entry points, not compiled by themselves, and mean the same."""

import numpy as np
from numba import types

from slidewise.algebra import linking
from slidewise.algebra.cache import entry, inlined, kernel


@kernel
def triangle(n):
    return n + triangle_below(n)


@kernel
def triangle_below(n):
    total = 0
    for i in range(n):
        total += step(i)
    return total


@inlined
def step(i):
    return i if i >= 0 else -i


@entry
def triangles(values, out):
    for j in range(len(values)):
        out[j] = triangle(values[j]) + triangle(step(-values[j]))


def test_kernels_several_levels_deep_give_what_python_gives():
    values, out = np.arange(20), np.zeros(20, np.int64)
    triangles(values, out)
    assert out.tolist() == [n * (n + 1) for n in range(20)]


def test_no_machine_code_is_made_of_a_kernel():
    triangle.compile((types.int64,))  # as a caller does; the entry point itself may come from the disk cache
    assert linking.OPTIONS, "this Numba is not the one that kernels were linked with: look at algebra/linking.py"
    (compiled,) = triangle.overloads.values()
    assert isinstance(compiled.library, linking.LinkedLibrary)
    assert not compiled.library._codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name)
