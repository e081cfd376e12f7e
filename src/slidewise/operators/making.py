"""How the library's operators become public functions: one decorator, one registry, one set of parameter checks.

    @public("quantile", inputs="x", example={"q": 0.5}, source="Karnin, Lang, Liberty 2016")
    def quantile_(*, q, k=200) -> Operator: ...

makes `quantile(q=0.9)`, an operator, and `quantile("amount", q=0.9, where="paid")`, the operator bound to columns. The same
call gives the same operator, so that types are inferred and code is compiled once; in another process it is made
again by name and parameters, never by its code.
"""

import inspect
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np

from slidewise.algebra.casts import real, truth, unsigned, whole
from slidewise.algebra.operator import Operator
from slidewise.errors import InputError, InputTypeError

NUMBERS = frozenset(
    "product geomean var std covariance correlation slope quantile histogram bit_and bit_or bit_xor".split()
)
"""Operators of the library that only numbers make sense to ..."""
MOMENTS = NUMBERS | {"sum", "mean", "median"}
"""... and those that moments cannot be added up by."""


class Entry(NamedTuple):
    """A line of the registry: the public function, the names of its inputs, and parameters that serve as an example."""

    function: Callable
    make: Callable[[dict], Operator]
    inputs: str
    example: dict
    source: str


REGISTRY: dict[str, Entry] = {}
_made: dict[str, Operator] = {}


def public(name: str, *, inputs: str, example: dict | None = None, source: str = "", by_columns: bool = False):
    """Make a public function of one that makes the operator from keyword parameters.

    `by_columns`: the maker also gets how many columns it was bound to (`count()` and `count("x")` differ).
    """

    def decorate(maker: Callable) -> Callable:
        shown = [p for p in inspect.signature(maker).parameters.values() if p.name != "columns"]

        def make(parameters: dict) -> Operator:
            op = maker(**parameters).with_(recipe=(remake, (name, parameters)))
            return _made.setdefault(f"{op.signature}/{op.inputs}", op)

        def function(*columns: str, where: str | None = None, **parameters: Any):
            _check_names(name, shown, parameters)
            op = make({**parameters, "columns": len(columns)} if by_columns else parameters)
            return op(*columns, where=where) if columns or where is not None else op

        function.__name__ = function.__qualname__ = name
        function.__module__ = "slidewise.operators"
        function.__doc__ = maker.__doc__
        front = [
            inspect.Parameter("columns", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter("where", inspect.Parameter.KEYWORD_ONLY, default=None),
        ]
        function.__signature__ = inspect.Signature([*front, *shown])  # type: ignore[attr-defined]
        REGISTRY[name] = Entry(function, make, inputs, example or {}, source)
        return function

    return decorate


def remake(name: str, parameters: dict) -> Operator:
    """An operator of the library by its name and parameters: how it is read back from a pickle."""
    return REGISTRY[name].make(parameters)


def _check_names(name: str, known: list[inspect.Parameter], given: dict) -> None:
    names = [p.name for p in known]
    for parameter in given:
        if parameter not in names:
            offered = ", ".join(f"{n}=" for n in names) or "none"
            raise InputTypeError(f"{name} has no parameter {parameter!r}; its parameters: {offered}")
    for p in known:
        if p.default is p.empty and p.name not in given:
            raise InputError(f'{name} needs the parameter {p.name}=, as in sw.{name}("column", {p.name}=...)')


def library(name: str, **fields) -> Operator:
    """An operator of the library; `params` come as a dict."""
    params = tuple(fields.pop("params", {}).items())
    return Operator(name=name, own=True, params=params, **fields)


# ---- the types of inputs ---------------------------------------------------------------------------------------------

DIGITS = Context(prec=100)
"""Python rounds decimals to 28 digits; columns hold up to 76."""
INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def kind_of(dtype) -> str:
    """`bool`, `small` (integers of up to 32 bits), `int` (int64), `uint` (uint64), `float` or `object`."""
    if dtype is object:
        return "object"
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return "bool"
    if dtype.kind in "iu":
        return "small" if dtype.itemsize < 8 else "uint" if dtype.kind == "u" else "int"
    return "float" if dtype.kind == "f" else "object"


def plain(x):
    """A Python value: NumPy's numbers in object columns would wrap around and compare in ways of their own. (Its datetimes stay:
    in nanoseconds there is no Python value but a number.)"""
    return x.item() if isinstance(x, np.generic) and x.dtype.kind not in "mM" else x


CAST = {"bool": truth, "small": whole, "int": whole, "uint": unsigned, "float": real, "object": plain}
"""By kind of input: the cast to the type a state holds."""

ZERO = {"bool": False, "small": 0, "int": 0, "uint": 0, "float": 0.0, "object": None}
"""By kind of input: a value of that type, where a state needs one that means nothing."""


def refuse(name: str, dtype, wanted: str):
    raise InputTypeError(f"{name} takes {wanted}, not {'Python objects' if dtype is object else np.dtype(dtype)}")


def refuse_text(x, name: str):
    """A Python value that is no text and no collection: `float` reads numbers out of texts, and `+` joins both."""
    if isinstance(x, (str, bytes, bytearray)):
        raise InputTypeError(f"{name} takes numbers, not {x!r}; turn texts into numbers first, as in float(x)")
    if isinstance(x, (list, tuple, dict, set, frozenset)) or (isinstance(x, np.ndarray) and x.dtype.kind not in "biufc"):
        raise InputTypeError(f"{name} takes numbers, not {x!r}; insert what is in it one by one")
    return plain(x)


def worked_out(name: str, what: str, function: Callable, *values):
    """`function(*values)` of Python values that may not know how; of decimals with all their digits."""
    try:
        if isinstance(values[0], Decimal):
            with localcontext(DIGITS):
                return function(*values)
        return function(*values)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name}: {' and '.join(map(repr, values))} cannot be {what}") from error


def _as_number(x, name: str):
    """A Python value that is a real number, and no larger than a float64 can be."""
    y = refuse_text(x, name)
    if isinstance(y, (complex, np.ndarray)) or not hasattr(type(y), "__float__"):
        raise InputTypeError(f"{name} takes numbers, not {x!r}; leave out what has none, or turn it into a number first")
    try:
        float(y)
    except OverflowError as error:
        raise InputError(f"{name} takes numbers that fit in float64, not one of {int(y).bit_length()} bits") from error
    return y


def numbers_only(op: Operator) -> Operator:
    """The operator with a `lift` that looks at Python objects before it takes them for numbers."""

    def lift(*values):
        return op.lift(*(_as_number(x, op.name) for x in values))

    def resolve(inputs):
        return op.with_(lift=lift) if object in inputs else op

    return op.with_(resolve=resolve)


# ---- parameters ------------------------------------------------------------------------------------------------------


def whole_number(name: str, parameter: str, value, least: int, most: int | None = None) -> int:
    """A parameter that must be a whole number between bounds."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputTypeError(f"{name}: {parameter} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        span = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"{name}: {parameter} must be {span}, not {value!r}")
    return int(value)


def fraction(name: str, parameter: str, value) -> float:
    """A parameter between 0 and 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputTypeError(f"{name}: {parameter} must be a number between 0 and 1, not {value!r}")
    if not 0 <= value <= 1:
        raise InputError(f"{name}: {parameter} must be between 0 and 1, not {value!r}")
    return float(value)


def flag(name: str, parameter: str, value) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name}: {parameter} must be True or False, not {value!r}")
    return bool(value)
