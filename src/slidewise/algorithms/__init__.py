"""Window algorithms, one file each, with paper, bounds and picture in the header. Knows nothing of engines.

A new algorithm is one new file and one line in `MODULES`; the whole test matrix then runs on it.
"""

import importlib
from functools import lru_cache

from slidewise.algorithms.protocol import Algorithm, Info
from slidewise.errors import InputError

MODULES = (
    "recalc",
    "two_stacks_lite",
)


@lru_cache(maxsize=None)
def algorithm(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in MODULES:
        raise InputError(f"no algorithm {name!r}; there are {', '.join(MODULES)}")
    return Algorithm(importlib.import_module(f"slidewise.algorithms.{name}"))


def algorithms() -> list[Info]:
    """Every algorithm: paper, bounds, order, laws needed, operations offered."""
    return [algorithm(name).info for name in MODULES]
