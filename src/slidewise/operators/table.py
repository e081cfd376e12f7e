"""The table of all operators, from the registry: for the docs and the command line."""

from typing import NamedTuple

import numpy as np

from slidewise.operators.making import REGISTRY


class Row(NamedTuple):
    """What people want to know of an operator before they use it."""

    name: str
    inputs: str
    parameters: str
    laws: str
    kind: str
    empty: str
    accuracy: str
    source: str
    summary: str


def _laws(op) -> str:
    return ", ".join(law for law in ("invertible", "commutative", "selective") if getattr(op, law)) or "none"


def table() -> list[Row]:
    """A row for each operator. Laws are those on integers; where floats have others, they are given after a semicolon."""
    rows = []
    for name in sorted(REGISTRY):
        entry = REGISTRY[name]
        op = entry.function(**entry.example)
        ints, floats = _resolved(op, np.int64), _resolved(op, np.float64)
        both = ints if ints is not None else op
        laws = _laws(both)
        if floats is not None and _laws(floats) != laws:
            laws += f"; floats: {_laws(floats)}"
        shown = floats if floats is not None else both
        rows.append(
            Row(
                name=name,
                inputs=entry.inputs,
                parameters=", ".join(str(p) for p in _parameters(entry.function)),
                laws=laws,
                kind=_kind(shown),
                empty="zeros" if isinstance(op.empty, np.ndarray) else "null" if op.empty is None else repr(op.empty),
                accuracy=op.error or "exact",
                source=entry.source,
                summary=entry.function.__doc__.strip().splitlines()[0],
            )
        )
    return rows


def _resolved(op, dtype):
    try:
        return op.resolved((np.dtype(dtype),) * op.inputs)
    except TypeError:  # an operator that refuses this type
        return None


def _parameters(function) -> list:
    return [p for p in function.__signature__.parameters.values() if p.name not in ("columns", "where")]


def _kind(op) -> str:
    """The kind of partial aggregate, as the identity shows it."""
    if op.object_only:
        return "object"
    if isinstance(op.identity, np.ndarray):
        return f"wide ({op.identity.nbytes} bytes)"
    return "struct" if isinstance(op.identity, tuple) else "scalar"
