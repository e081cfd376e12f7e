"""The operators that the matrix runs: the whole library, and non-commutative ones of every kind of state.

A new operator of the library needs nothing here: it gets the first of the columns below that its types allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

import slidewise as sw
from slidewise.algebra.operator import Operator
from slidewise.algebra.typed import TypedOperator
from slidewise.errors import SlidewiseError
from slidewise.operators.making import REGISTRY

ROWS = 150
PRIME = 1_000_003


def _columns() -> dict[str, tuple]:
    rng = np.random.default_rng(20150801)
    floats = np.round(rng.normal(5, 40, ROWS), 1)
    floats[[11, 12, 13]] = np.nan, 0.0, -0.0
    floats[[30, 31, 32]] = np.inf, -np.inf, np.inf
    floats[50:] = np.abs(floats[50:]) + 0.1
    text = np.array([chr(97 + k) * (k % 3) for k in rng.integers(0, 26, ROWS)], object)
    return {
        "float64": (floats, np.round(rng.normal(0, 9, ROWS), 2)),
        "int64": (rng.integers(-50, 50, ROWS), rng.integers(-9, 9, ROWS)),
        "bool": (rng.random(ROWS) < 0.7, rng.random(ROWS) < 0.2),
        "object": (text, text[::-1].copy()),
    }


COLUMNS = _columns()
"""Two columns of each type. Floats hold NaN, infinities and both zeros; from row 33 on none, and from row 50 on they are positive:
full windows of every size here have finite answers, geometric means too."""


@dataclass(frozen=True)
class Case:
    """An operator and the type of the columns it reads."""

    name: str
    operator: Operator
    column: str

    @property
    def X(self) -> tuple:
        return COLUMNS[self.column][: self.operator.inputs]

    @property
    def inputs(self) -> tuple:
        return (object if self.column == "object" else np.dtype(self.column),) * self.operator.inputs

    @property
    def typed(self) -> TypedOperator:
        return self.operator.typed(self.inputs)

    def __str__(self) -> str:
        return f"{self.name}-{self.column}"


def _takes(op: Operator, column: str) -> bool:
    """Whether an operator's types allow these columns."""
    case = Case(op.name, op, column)
    try:
        op = op.resolved(case.inputs)
        for x in zip(*(column.tolist() for column in case.X)):
            state = op.combine(op.lift(*x), op.lift(*x))
            if op.defined is None or op.defined(state):
                op.lower(state)
    except SlidewiseError:
        return False
    return True


@cache
def library() -> list[Case]:
    """Every operator of the library on its first fitting columns, and on integers too where only they have an inverse."""
    cases = []
    for name, entry in REGISTRY.items():
        op = entry.function(**entry.example)
        fitting = [column for column in COLUMNS if _takes(op, column)]
        assert fitting, f"no column here fits {name}"
        cases.append(Case(name, op, fitting[0]))
        if fitting[0] == "float64" and "int64" in fitting:
            integers = Case(name, op, "int64")
            if op.resolved(integers.inputs).invertible and not op.resolved(cases[-1].inputs).invertible:
                cases.append(integers)
        if "exact" in entry.function.__signature__.parameters:
            cases.append(Case(f"{name}_exact", entry.function(**entry.example, exact=True), "float64"))
    return cases


class Affine(NamedTuple):
    """x -> a x + b (mod a prime): composition does not commute."""

    a: int
    b: int


def _pack(permutation) -> int:
    return sum(k << (2 * i) for i, k in enumerate(permutation))


def _lift_packed(x):
    # one of the rotations and swaps of four things, two bits each
    return 0b00_11_10_01 if x % 2 == 0 else 0b11_10_00_01


def _combine_packed(f, g):
    out = 0
    for i in range(4):
        out |= ((g >> (2 * ((f >> (2 * i)) & 3))) & 3) << (2 * i)
    return out


def _lift_permutation(x):
    out = np.arange(7)
    out[x % 7], out[(x + 3) % 7] = out[(x + 3) % 7], out[x % 7]
    return out


def _combine_permutation(f, g):
    out = np.empty_like(f)
    for i in range(7):
        out[i] = g[f[i]]
    return out


PACKED = sw.operator(lift=_lift_packed, combine=_combine_packed, identity=_pack(range(4)), name="packed_permutation")
AFFINE = sw.operator(
    lift=lambda x: Affine((2 * x + 1) % PRIME, (x * x + 3) % PRIME),
    combine=lambda f, g: Affine(f.a * g.a % PRIME, (f.b * g.a + g.b) % PRIME),
    identity=Affine(1, 0),
    name="affine",
)
PERMUTATION = sw.operator(
    lift=_lift_permutation, combine=_combine_permutation, identity=np.arange(7), name="permutation"
)
WORDS = sw.operator(
    lift=lambda x: (str(x),), combine=lambda a, b: a + b, lower=lambda s: "".join(s), identity=(), name="words"
)

NON_COMMUTATIVE = {
    "scalar": Case("packed_permutation", PACKED, "int64"),
    "struct": Case("affine", AFFINE, "int64"),
    "wide": Case("permutation", PERMUTATION, "int64"),
    "object": Case("words", WORDS, "int64"),
}
"""One for each kind of state."""


def every() -> list[Case]:
    return library() + list(NON_COMMUTATIVE.values())
