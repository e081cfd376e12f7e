"""How a state or a result is laid out: a scalar, a struct of scalars (nested if need be), or a row of numbers.

The four kinds of partial aggregate:

    scalar   one number                          one array, one slot a state
    struct   a NamedTuple (or tuple) of numbers  one array for each leaf field
    wide     a one-dimensional NumPy array       one flat array, `width` numbers a state
    object   any Python object                   a Python list; interpreted

A layout also writes the few lines of source from which the compiled `get`, `put` and casts are made.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype, from_dtype


class NoLayout(TypeError):
    """A type that has no place in arrays of numbers."""


@dataclass(frozen=True)
class Leaf:
    """One number. Truth values are stored as bytes."""

    dtype: np.dtype

    @property
    def stored(self) -> np.dtype:
        return np.dtype(np.uint8) if self.dtype == np.bool_ else self.dtype


@dataclass(frozen=True)
class Layout:
    """`shape` is a Leaf, or a tuple (constructor, field shapes ...) for a struct; `width` is set for wide states."""

    shape: Any
    width: int | None = None

    @property
    def kind(self) -> str:
        if self.width is not None:
            return "wide"
        return "scalar" if isinstance(self.shape, Leaf) else "struct"

    @property
    def leaves(self) -> list[Leaf]:
        found: list[Leaf] = []

        def walk(shape):
            if isinstance(shape, Leaf):
                found.append(shape)
            else:
                for part in shape[1:]:
                    walk(part)

        walk(self.shape)
        return found

    @property
    def row_bytes(self) -> int:
        return sum(leaf.stored.itemsize for leaf in self.leaves) * (self.width or 1)

    def alloc(self, slots: int) -> tuple[np.ndarray, ...]:
        """Arrays for that many states, one for each leaf."""
        return tuple(np.empty(slots * (self.width or 1), leaf.stored) for leaf in self.leaves)

    @property
    def description(self) -> str:
        """Stable text: stored beside states to see that they fit."""

        def walk(shape):
            if isinstance(shape, Leaf):
                return shape.dtype.str
            names = getattr(shape[0], "_fields", None) or [str(i) for i in range(len(shape) - 1)]
            return "{" + ",".join(f"{n}:{walk(p)}" for n, p in zip(names, shape[1:], strict=True)) + "}"

        return walk(self.shape) + (f"x{self.width}" if self.width is not None else "")

    @property
    def numba_type(self):
        if self.width is not None:
            return types.Array(from_dtype(self.shape.dtype), 1, "C")

        def walk(shape):
            if isinstance(shape, Leaf):
                return from_dtype(shape.dtype)
            parts = [walk(part) for part in shape[1:]]
            if shape[0] is None:
                return types.Tuple(parts)
            uniform = all(p == parts[0] for p in parts)
            return types.NamedUniTuple(parts[0], len(parts), shape[0]) if uniform else types.NamedTuple(parts, shape[0])

        return walk(self.shape)

    # ---- source text of the compiled accessors -------------------------------------------------------------------

    def build(self, leaf_text, env: dict) -> str:
        """An expression that builds a value from its leaves: `leaf_text(k, path, leaf)` gives the text of leaf k."""
        counter = iter(range(1_000_000))

        def walk(shape, path):
            if isinstance(shape, Leaf):
                return leaf_text(next(counter), path, shape)
            parts = [walk(part, f"{path}[{j}]") for j, part in enumerate(shape[1:])]
            if shape[0] is None:
                return f"({', '.join(parts)},)"
            name = f"S{len(env)}"
            env[name] = shape[0]
            return f"{name}({', '.join(parts)})"

        return walk(self.shape, "s")

    def cast(self, env: dict) -> str:
        """An expression in `s` with every leaf cast to its own type."""

        def leaf(k, path, leaf):
            if leaf.dtype == np.bool_:
                return f"bool({path})"
            env[f"c{k}"] = from_dtype(leaf.dtype)
            return f"c{k}({path})"

        return self.build(leaf, env)

    def load(self, env: dict) -> str:
        """An expression that reads the state in slot i of V."""
        return self.build(lambda k, path, leaf: f"V[{k}][i] != 0" if leaf.dtype == np.bool_ else f"V[{k}][i]", env)

    def store(self, array: str = "V") -> list[str]:
        """Statements that write s into slot i of an array tuple."""
        lines: list[str] = []

        def leaf(k, path, leaf):
            value = f"(1 if {path} else 0)" if leaf.dtype == np.bool_ else path
            lines.append(f"{array}[{k}][i] = {value}")
            return ""

        self.build(leaf, {})
        return lines


def layout_of(kind: types.Type, width: int | None = None) -> Layout:
    """The layout of a Numba type, or NoLayout."""
    if isinstance(kind, types.Array):
        if kind.ndim != 1 or width is None:
            raise NoLayout(f"arrays must be one-dimensional and of fixed width, not {kind}")
        return Layout(_leaf(kind.dtype), width)
    return Layout(_shape(kind))


def _leaf(kind: types.Type) -> Leaf:
    kind = types.unliteral(kind)
    if isinstance(kind, (types.Integer, types.Float, types.Boolean)):
        return Leaf(as_dtype(kind))
    raise NoLayout(f"{kind} is not a number")


def _shape(kind: types.Type):
    kind = types.unliteral(kind)
    if isinstance(kind, types.BaseTuple):
        constructor = getattr(kind, "instance_class", None)
        parts = list(kind)
        if not parts:
            raise NoLayout("an empty tuple holds nothing")
        return (constructor, *(_shape(part) for part in parts))
    return _leaf(kind)
