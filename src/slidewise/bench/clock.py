"""A clock that compiled loops can read without leaving them, for the latency of single rounds.

The processor's own counter, read by an LLVM intrinsic: code that uses it can be filed in the disk cache, which the address of
a C function cannot. It ticks at a fixed rate on every x86-64 and AArch64 processor of the last decade; `nanoseconds_per_tick`
measures the rate against the system's clock.
"""

import platform
import time
from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from slidewise.algebra.cache import entry
from slidewise.errors import UnsupportedError


@intrinsic
def ticks(context):
    """The counter now."""
    word = ir.IntType(64)

    def code(context, builder, signature, arguments):
        if platform.machine().lower() in ("arm64", "aarch64"):  # the cycle counter proper is not open to programs there
            assembly = ir.InlineAsm(ir.FunctionType(word, []), "mrs $0, cntvct_el0", "=r", side_effect=True)
            return builder.call(assembly, [])
        function = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(word, []))
        return builder.call(function, [])

    return types.int64(), code


@entry
def _read(readings):
    for k in range(len(readings)):
        readings[k] = ticks()


def available() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64", "arm64", "aarch64")


@cache
def nanoseconds_per_tick(seconds: float = 0.2) -> float:
    """How long a tick is, measured once over that many seconds."""
    if not available():
        raise UnsupportedError(f"no clock for single rounds is known on {platform.machine()}")
    reading = np.zeros(1, np.int64)
    _read(reading)  # compiled now
    began = time.perf_counter_ns()
    _read(reading)
    first = int(reading[0])
    time.sleep(seconds)
    ended = time.perf_counter_ns()
    _read(reading)
    return (ended - began) / (int(reading[0]) - first)


@cache
def overhead_ticks() -> int:
    """What reading the clock twice costs, and every measured round therefore holds too much."""
    readings = np.zeros(10_001, np.int64)
    _read(readings)
    _read(readings)
    return int(np.median(np.diff(readings)))
