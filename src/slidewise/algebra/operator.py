"""Operators: lift, combine, lower and an identity, with declared laws.

An operator is generic: `sum` serves int64 and float64 columns alike. `Operator.typed(inputs)` fixes the types of its
inputs and gives the `TypedOperator` (algebra.typed) that algorithms run on. An operator knows nothing of windows.

    lift(value, ...)      -> state      one event
    combine(older, newer) -> state      associative; never changes its arguments
    lower(state)          -> result     what the user sees
    identity                            combine(identity, s) == s == combine(s, identity)
    inverse(total, old)   -> state      inverse(combine(old, rest), old) == rest, exactly
"""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slidewise.algebra.fingerprint import fingerprint
from slidewise.errors import InputError, InputTypeError

EMPTY_NULL = None  # what a window without values gives, unless the operator says otherwise


@dataclass(frozen=True, eq=False)
class Operator:
    """One aggregation. Build it with `sw.operator(...)`, or take one of the library (`sw.sum()`, `sw.max()`, ...)."""

    lift: Callable
    combine: Callable
    lower: Callable
    identity: Any
    name: str
    inverse: Callable | None = None
    commutative: bool = False
    selective: bool = False
    equal: Callable | None = None
    encode: Callable | None = None
    decode: Callable | None = None
    params: tuple[tuple[str, Any], ...] = ()
    """Parameters by name, as stored beside a state and compared when it is read back."""
    empty: Any = EMPTY_NULL
    """The result of a window without values: None (null), 0 for counts, an empty collection. See `without_values`."""
    defined: Callable | None = None
    """`defined(state) -> bool`: whether a non-empty state has a result (a variance of one value has none)."""
    inputs: int | None = None
    """How many columns an event gives; by default what `lift` takes."""
    result_like: int | None = None
    """The input whose type the result keeps (max: 0, argmax: 1), or None where `lower` decides."""
    carried: tuple[int, ...] = ()
    """Inputs that are only carried to the result and never looked at (argmax: 1, first: 0): engines may pass row numbers in
    their place, so that every type is kept. A null there is kept too, unless every input is carried."""
    lift_into: Callable | None = None
    combine_into: Callable | None = None
    inverse_into: Callable | None = None
    """Wide states only: `lift_into(out, value)`, `combine_into(out, a, b)` and `inverse_into(out, total, old)`, safe when out
    is one of the others; no allocation."""
    resolve: Callable[[tuple], "Operator"] | None = None
    """`resolve(input_types) -> Operator` for operators whose functions or identity depend on the types."""
    exact: bool = True
    """Whether the result is the same for every grouping (False: floats, within a stated bound)."""
    error: str = ""
    """The stated bound, where not exact."""
    object_only: bool = False
    """Never tried on the compiler: states are Python objects by design (collections, sketches)."""
    own: bool = field(default=False)
    """Whether it is part of the library: a user's own operators are compiled with bounds checks."""
    named: bool = True
    """Whether the name is one that somebody gave it; if not, its signature tells it from others by its code."""
    cost: str = "cheap"
    """`cheap` or `expensive`: what one combine costs; decides the arity of trees."""
    recipe: tuple | None = None
    """A function and its arguments that make this operator again: how one of the library travels to another process."""
    narrow: "Narrow | None" = None
    """A form with smaller states that serves while its numbers are small (a sum of int64 in one word)."""

    def __post_init__(self):
        for role in ("lift", "combine", "lower"):
            if not callable(getattr(self, role)):
                raise InputTypeError(f"operator {self.name!r}: {role} must be a function, not {getattr(self, role)!r}")
        for role in ("inverse", "equal", "encode", "decode"):
            if getattr(self, role) is not None and not callable(getattr(self, role)):
                raise InputTypeError(
                    f"operator {self.name!r}: {role} must be a function or None, not {getattr(self, role)!r}"
                )
        if self.inputs is None:
            object.__setattr__(self, "inputs", _count_parameters(self.lift, self.name))

    @property
    def invertible(self) -> bool:
        return self.inverse is not None

    @property
    def signature(self) -> str:
        """Name and parameters, as shown to people and stored beside states: `quantile(q=0.95)`. One without a name of its own
        has a digest of its functions in it: `lambda[3f6c01b8a2d4]()`."""
        code = "" if self.named else f"[{self._digest() or 'unknown'}]"
        return f"{self.name}{code}({', '.join(f'{k}={v!r}' for k, v in self.params)})"

    @property
    def told_apart(self) -> bool:
        """Whether the signature is no other operator's: one without a name may hold what has no description."""
        return self.named or self._digest() is not None

    def _digest(self) -> str | None:
        functions = (self.lift, self.combine, self.lower, self.inverse, self.encode, self.decode)
        found = fingerprint(*functions, self.identity)
        return None if found is None else found[:12]

    @property
    def null_when_empty(self) -> bool:
        """Whether kernels give nothing for a window without values; where not, they lower the identity."""
        return self.empty is None

    def without_values(self):
        """The result of a window without values: the caller's own, to do with as they like."""
        return copy.deepcopy(self.empty)

    def __repr__(self) -> str:
        laws = [law for law in ("invertible", "commutative", "selective") if getattr(self, law)]
        return f"<operator {self.signature}{' ' if laws else ''}{', '.join(laws)}>"

    def __call__(self, *columns: str, where: str | None = None):
        """Bind to columns, for `rolling`: `op("amount")`, `op("amount", where="is_card")`."""
        return Bound(self, columns, where)

    def typed(self, inputs: tuple):
        """The operator for these input types (NumPy dtypes, or `object`): what algorithms run on."""
        from slidewise.algebra.typed import typed

        return typed(self, tuple(inputs))

    @property
    def compiled(self) -> bool:
        """Whether it runs compiled on float64 inputs (`op.typed(...)` tells for other types)."""
        return self.typed((np.dtype(np.float64),) * (self.inputs or 0)).compiled

    def resolved(self, inputs: tuple) -> "Operator":
        """The operator for these input types: its functions and its laws are final."""
        return self if self.resolve is None else self.resolve(tuple(inputs))

    def fold(self, *columns, rows: int | None = None):
        """The aggregate of whole columns, interpreted, from the oldest value on: what the operator means, in its plainest form.

        Rows with a None are left out. An operator without inputs takes `rows=`.

        >>> import slidewise as sw
        >>> sw.max().fold([3, 1, 4, None, 1])
        4
        >>> sw.argmax().fold([3, 1, 4], ["a", "b", "c"])
        'c'
        """
        if len(columns) != self.inputs:
            raise InputError(f"{self.name} takes {self.inputs} column(s), got {len(columns)}")
        if columns and len({len(column) for column in columns}) != 1:
            raise InputError(f"{self.name}: the columns have different lengths")
        events = list(zip(*columns)) if columns else [()] * (rows or 0)
        events = [event for event in events if not any(value is None for value in event)]
        if not events:
            return self.without_values()
        op = self.resolved(tuple(dtype_of([event[k] for event in events]) for k in range(len(columns))))
        state = op.lift(*events[0])
        for event in events[1:]:
            state = op.combine(state, op.lift(*event))
        return op.lower(state) if op.defined is None or op.defined(state) else None

    def __reduce_ex__(self, protocol):
        return self.recipe if self.recipe is not None else super().__reduce_ex__(protocol)

    def with_(self, **changes) -> "Operator":
        return replace(self, **changes)


@dataclass(frozen=True)
class Narrow:
    """A form of an operator on integers whose states are smaller, and every number in them a sum of inputs, or a count of them.

    It gives the operator's own results as long as the magnitudes of all inputs it holds add up to less than 2^63, a 0 counted as
    1 (algebra.narrow); beyond that it is wrong, and says nothing."""

    operator: Operator
    widen: Callable
    """`widen(*leaves) -> leaves`: the numbers of a narrow state, or arrays of them, as those of the operator's own state."""


@dataclass(frozen=True)
class Bound:
    """An operator bound to the columns it reads, and to a boolean column that says which rows count."""

    operator: Operator
    columns: tuple[str, ...]
    where: str | None = None

    def __post_init__(self):
        for column in (*self.columns, *(() if self.where is None else (self.where,))):
            if not isinstance(column, str):
                raise InputTypeError(f"{self.operator.name}: columns are given by name, not as {column!r}")
        wanted = self.operator.inputs
        if wanted is not None and len(self.columns) != wanted:
            raise InputError(
                f"{self.operator.name} reads {wanted} column{'s' if wanted != 1 else ''}, got {len(self.columns)}: "
                f"{', '.join(map(repr, self.columns)) or 'none'}"
            )

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that must be at hand."""
        return self.columns + (() if self.where is None else (self.where,))


def dtype_of(values: list):
    """The NumPy type of a list of numbers, or `object`."""
    if not values:
        return np.dtype(np.float64)
    if not all(isinstance(value, (int, float, np.generic)) for value in values):
        return object
    if all(isinstance(value, int) for value in values) and not all(-(2**63) <= value < 2**63 for value in values):
        return object
    dtype = np.asarray(values).dtype
    if dtype.kind == "f" and all(isinstance(value, (int, np.integer)) for value in values):
        return object  # integers that no integer type holds together
    return dtype if dtype.kind in "biuf" else object


def _count_parameters(function: Callable, name: str) -> int:
    """The arguments that an event has to give: those without a default, or the first where every one has its own."""
    nin = getattr(function, "nin", None)
    if isinstance(nin, int):  # a ufunc
        return nin
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return 1
    needed = [p for p in parameters if p.default is p.empty]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in needed):
        raise InputTypeError(f"operator {name!r}: lift must take a fixed number of positional arguments")
    return len(needed) or int(any(p.kind is not p.KEYWORD_ONLY for p in parameters))


_TAKES = {"combine": 2, "lower": 1, "inverse": 2, "equal": 2, "encode": 1, "decode": 1}
"""With how many arguments each function of an operator is called."""


def _check_takes(function: Callable, count: int, role: str, name: str) -> None:
    """Refuse a function that cannot be called with so many arguments, where that can be told."""
    nin = getattr(function, "nin", None)
    fits = nin == count
    if not isinstance(nin, int):
        try:
            signature = inspect.signature(getattr(function, "py_func", function))
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*[None] * count)
            fits = True
        except TypeError:
            fits = False
    if not fits:
        arguments = "1 argument" if count == 1 else f"{count} arguments"
        raise InputTypeError(f"operator {name!r}: {role} is called with {arguments}, which it does not take")


def operator(
    *,
    lift: Callable,
    combine: Callable,
    lower: Callable | None = None,
    identity: Any,
    inverse: Callable | None = None,
    commutative: bool = False,
    selective: bool = False,
    name: str | None = None,
    equal: Callable | None = None,
    encode: Callable | None = None,
    decode: Callable | None = None,
) -> Operator:
    """Make an operator of your own from plain Python functions.

    >>> import slidewise as sw
    >>> biggest_gap = sw.operator(lift=lambda x: x, combine=lambda a, b: a if a >= b else b, lower=lambda s: s,
    ...                           identity=float("-inf"), selective=True, name="biggest")

    A stored window is read back with an operator of the same name; without a name, of the same code.
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise InputTypeError(f"operator: name is a text, not {name!r}")
    for law, declared in (("commutative", commutative), ("selective", selective)):
        if not isinstance(declared, (bool, np.bool_)):
            raise InputTypeError(f"operator: {law} must be True or False, not {declared!r}")
    if (encode is None) != (decode is None):
        raise InputError("operator: give encode and decode together, or neither")
    made = Operator(
        lift=lift,
        combine=combine,
        lower=lower if lower is not None else _same,
        identity=identity,
        inverse=inverse,
        commutative=commutative,
        selective=selective,
        name=name or getattr(combine, "__name__", "operator").strip("<>"),
        named=name is not None,
        equal=equal,
        encode=encode,
        decode=decode,
    )
    for role, count in _TAKES.items():
        if getattr(made, role) is not None:
            _check_takes(getattr(made, role), count, role, made.name)
    return made


def _same(state):
    return state
