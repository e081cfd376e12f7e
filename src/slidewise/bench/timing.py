"""Best of several: on a machine with other work to do, the least time is the one that says something about the code."""

import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """The least time of that many calls."""
    return min(seconds(call) for _ in range(repeats))
