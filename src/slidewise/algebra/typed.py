"""A generic operator and the types of its inputs, brought together: what algorithms run on.

`typed(op, inputs)` finds the type of the state as the smallest one that holds the identity, every lifted value and
every combination of two states, by asking Numba for the types of the user's functions. Where Numba cannot compile
one of them, or a state has no place in arrays of numbers, the operator runs interpreted, with the same results; a
warning gives the reason once. What was found is filed in the disk cache, so a second process asks nothing.
"""

import pickle
import warnings
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.core import errors as numba_errors
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.np.numpy_support import from_dtype

from slidewise.algebra.cache import entry_name, read_entry, write_entry
from slidewise.algebra.fingerprint import fingerprint
from slidewise.algebra.layout import Layout, Leaf, NoLayout, layout_of
from slidewise.algebra.operator import Operator
from slidewise.errors import InputError, InputTypeError

ROLES = ("lift", "combine", "lower", "inverse", "defined", "lift_into", "combine_into", "inverse_into")


class InterpretedWarning(UserWarning):
    """An operator runs interpreted, for the reason given."""


class TypedOperator:
    """An operator for given input types. Algorithms use it only through the words of `algebra.kernel`."""

    def __init__(
        self, op: Operator, inputs: tuple, state: Any, result: Any, optional: bool, reason: str | None
    ):
        self.operator = op
        self.operator_root = op
        self.inputs = inputs
        self.state = state  # a Layout, or None where it is interpreted; kernels only see compiled ones
        self.result = result
        self.optional = optional
        self.reason = reason
        self.kind = state.kind if state is not None else "object"
        self.compiled = state is not None
        # The interpreted meaning (algebra.kernel) reads these.
        self.lift_, self.combine_, self.lower_ = op.lift, op.combine, op.lower
        self.inverse_, self.defined_, self.identity = op.inverse, op.defined, op.identity
        self.null_when_empty = op.null_when_empty
        self._functions: dict[str, Any] = {}
        if self.compiled:
            self.key = self._fingerprint() or f"unfiled-{id(self):x}"
            self._numba_type_ = OperatorType(self.key)
            REGISTRY[self.key] = self

    @property
    def name(self) -> str:
        return self.operator.name

    def __repr__(self) -> str:
        how = self.kind if self.compiled else "object, interpreted"
        return f"<{self.operator.signature} on {', '.join(map(str, self.inputs)) or 'nothing'}: {how}>"

    def _fingerprint(self) -> str | None:
        op = self.operator
        parts = [getattr(op, role) for role in ROLES]
        types_ = [str(d) for d in self.inputs]
        return fingerprint(*parts, op.identity, op.empty, op.own, op.selective, types_, self.state.description)

    def unchanged(self) -> bool:
        """Whether the key still says what would be compiled now; InputError where a global is another one since.

        False: nobody can tell, so nothing is filed."""
        if self.operator.own:
            return True
        now = self._fingerprint()
        if now is None or self.key.startswith("unfiled"):
            return False
        if now != self.key:
            error = InputError(
                f"operator {self.name!r}: something that its functions name (a global, a value of a closure) has changed "
                "since the operator was first used; make a new operator to use the new value"
            )
            error.untouched = True  # type: ignore[attr-defined]
            raise error
        return True

    def as_object(self) -> "TypedOperator":
        """The interpreted twin of this operator: same functions, Python objects as states."""
        return TypedOperator(self.operator, self.inputs, None, None, False, "asked for")

    def function(self, role: str):
        """The user's function, compiled: called from compiled code only."""
        if role not in self._functions:
            self._functions[role] = _compile(getattr(self.operator, role), self.operator.own)
        return self._functions[role]

    def __reduce__(self):
        raise TypeError("typed operators do not travel; send the operator and the input types")


class OperatorType(types.Type):
    """The compile-time tag of an operator: its name carries the fingerprint that compiled code is filed under."""

    def __init__(self, key: str):
        self.operator_key = key
        super().__init__(name=f"op[{key}]")

    @property
    def key(self):
        return self.operator_key

    def unchanged(self) -> bool:
        return REGISTRY[self.operator_key].unchanged()


REGISTRY: dict[str, TypedOperator] = {}
_typed: dict[tuple, TypedOperator] = {}


def typed(op: Operator, inputs: tuple) -> TypedOperator:
    inputs = tuple(np.dtype(d) if d is not object else object for d in inputs)
    key = (id(op), inputs)
    if key in _typed and _typed[key].operator_root is op:
        return _typed[key]
    root = op
    if op.inputs is not None and len(inputs) != op.inputs:
        raise InputTypeError(f"{op.name} takes {op.inputs} input(s), got {len(inputs)}")
    found = _infer(op.resolved(inputs), inputs)
    found.operator_root = root
    _typed[key] = found
    return found


def _infer(op: Operator, inputs: tuple) -> TypedOperator:
    if op.object_only:
        return TypedOperator(op, inputs, None, None, False, f"{op.name} keeps Python objects")
    if any(d is object or d.kind not in "biuf" for d in inputs):
        return TypedOperator(op, inputs, None, None, False, "its inputs are Python objects")
    found = _print(op)
    name = entry_name("type", found, [d.str for d in inputs]) if found else None
    answer = None
    if name is not None and (body := read_entry(name)) is not None:
        try:
            state, result, optional, reason = pickle.loads(body)
            if state is not None and state.width is None:
                state = Layout(_with_classes(state.shape, op.identity))
            answer = state, result, optional, reason
        except Exception:
            answer = None
    if answer is None:
        answer = _ask_numba(op, inputs)
        if name is not None and not _has_classes(answer[1]) and _has_classes_of(answer[0], op.identity) and found == _print(op):
            state, *others = answer
            if state is not None and state.width is None:
                state = Layout(_with_classes(state.shape, None))
            try:
                write_entry(name, dumps((state, *others)))
            except Exception:  # a class that cannot be pickled: asked again next time
                pass
    state, result, optional, reason = answer
    if reason is not None and not op.own:
        warnings.warn(f"operator {op.name!r} runs interpreted: {reason}", InterpretedWarning, stacklevel=4)
    return TypedOperator(op, inputs, state, result, optional, reason)


def _print(op: Operator) -> str | None:
    return fingerprint(*(getattr(op, role) for role in ROLES), op.identity, op.own)


def _with_classes(shape, like):
    """A shape with the tuple classes of a value; None: with none. A user's class is never filed: the one that comes back
    from a pickle would be another class to the compiler."""
    if isinstance(shape, Leaf):
        return shape
    values = like if isinstance(like, tuple) else (None,) * (len(shape) - 1)
    parts = [_with_classes(part, value) for part, value in zip(shape[1:], values, strict=True)]
    return (type(like) if hasattr(like, "_fields") else None, *parts)


def _has_classes_of(layout: Layout | None, identity) -> bool:
    """Whether the identity shows the classes of a state: lift may give a NamedTuple where the identity is a plain tuple."""
    if layout is None or layout.width is not None:
        return True
    return layout.shape == _with_classes(layout.shape, identity)


def _has_classes(layout: Layout | None) -> bool:
    """Whether results are built by a user's class, which has no place in a file."""
    return layout is not None and layout.width is None and not isinstance(layout.shape, Leaf) and layout.shape[0] is not None


def _ask_numba(op: Operator, inputs: tuple):
    try:
        arguments = tuple(from_dtype(d) for d in inputs)
        state = _state_layout(op, arguments)
        result, optional = _result_layout(op, state)
        for role, extra in (("inverse", 1), ("defined", 0)):
            if getattr(op, role) is not None:
                _return_type(getattr(op, role), (state.numba_type,) * (extra + 1), op.own)
        if op.inverse_into is not None:
            _return_type(op.inverse_into, (state.numba_type,) * 3, op.own)
        return state, result, optional, None
    except (NoLayout, numba_errors.NumbaError) as error:
        return None, None, False, _first_lines(error)
    except Exception as error:  # Numba fails in many ways on Python it does not know
        return None, None, False, f"{type(error).__name__}: {_first_lines(error)}"


def _state_layout(op: Operator, arguments: tuple) -> Layout:
    if isinstance(op.identity, np.ndarray):
        identity = np.asarray(op.identity)
        if identity.ndim != 1:
            raise NoLayout("a wide state is a one-dimensional array")
        kind: Any = typeof(np.empty(1, identity.dtype))
        if op.lift_into is not None:
            _return_type(op.lift_into, (kind, *arguments), op.own)
        else:
            lifted = _return_type(op.lift, arguments, op.own)
            if not isinstance(lifted, types.Array):
                raise NoLayout(f"the identity is an array, but lift gives {lifted}")
            kind = types.Array(_unify(kind.dtype, lifted.dtype), 1, "C")
        if op.combine_into is not None:
            _return_type(op.combine_into, (kind, kind, kind), op.own)
        else:
            combined = _return_type(op.combine, (kind, kind), op.own)
            if not isinstance(combined, types.Array) or _unify(kind.dtype, combined.dtype) != kind.dtype:
                raise NoLayout(f"combine gives {combined}, states are {kind}")
        return layout_of(kind, len(identity))
    kind = _hold(op.identity, _return_type(op.lift, arguments, op.own))
    for _ in range(4):
        combined = _return_type(op.combine, (kind, kind), op.own)
        wider = _unify(kind, combined)
        if wider == kind:
            return layout_of(kind)
        kind = wider
    raise NoLayout("combining two states never settles on one type")


def _result_layout(op: Operator, state: Layout) -> tuple[Layout, bool]:
    result = _return_type(op.lower, (state.numba_type,), op.own)
    optional = isinstance(result, types.Optional)
    if optional:
        result = result.type
    width = None
    if isinstance(result, types.Array):
        width = len(op.lower(np.array(op.identity) if isinstance(op.identity, np.ndarray) else op.identity))
    return layout_of(result, width), optional


def _hold(identity, lifted):
    """The type that holds both the identity (a Python value) and what lift gives."""
    lifted = types.unliteral(lifted)
    if isinstance(lifted, types.BaseTuple):
        if not isinstance(identity, tuple) or len(identity) != len(lifted):
            raise NoLayout(f"lift gives {lifted}, but the identity is {identity!r}")
        parts = [_hold(i, k) for i, k in zip(identity, lifted, strict=True)]
        return _tuple_like(lifted, parts)
    if isinstance(identity, (bool, np.bool_)):
        return _unify(types.boolean, lifted)
    if isinstance(identity, (int, np.integer)) and isinstance(lifted, types.Integer):
        low, high = lifted.minval, lifted.maxval
        return lifted if low <= int(identity) <= high else _unify(types.int64, lifted)
    if isinstance(identity, (int, np.integer)) and isinstance(lifted, types.Float):
        return lifted
    if isinstance(identity, (float, np.floating)) and isinstance(lifted, types.Float):
        return lifted
    if isinstance(identity, (int, float, np.number)):
        return _unify(typeof(identity), lifted)
    raise NoLayout(f"the identity {identity!r} is not a number")


def _unify(a, b):
    a, b = types.unliteral(a), types.unliteral(b)
    if isinstance(a, types.BaseTuple) and isinstance(b, types.BaseTuple):
        if len(a) != len(b):
            raise NoLayout(f"{a} and {b} have different lengths")
        return _tuple_like(a, [_unify(x, y) for x, y in zip(a, b, strict=True)])
    if a == b:
        return a
    both = cpu_target.typing_context.unify_pairs(a, b)
    if both is None:
        raise NoLayout(f"no type holds both {a} and {b}")
    return both


def _tuple_like(model, parts):
    constructor = getattr(model, "instance_class", None)
    if constructor is None:
        return types.Tuple(parts)
    uniform = all(p == parts[0] for p in parts)
    return types.NamedUniTuple(parts[0], len(parts), constructor) if uniform else types.NamedTuple(parts, constructor)


_dispatchers: dict[tuple, Any] = {}


def _compile(function, own: bool):
    """The function's dispatcher. One of a user's is made anew when what the function names has changed: a dispatcher
    freezes it with the first compile."""
    key = (function, own, "" if own else fingerprint(function))
    if key in _dispatchers:
        return _dispatchers[key]
    plain = getattr(function, "py_func", function)
    # The library's own divisions never meet a 0; a user's raise ZeroDivisionError, as they do interpreted.
    dispatcher = njit(nogil=True, boundscheck=not own, error_model="numpy" if own else "python")(plain)
    dispatcher.filed_by_fingerprint = True
    if key[2] is not None:
        _dispatchers[key] = dispatcher
    return dispatcher


def _return_type(function, arguments, own: bool):
    dispatcher = _compile(function, own)
    dispatcher.compile(tuple(arguments))
    return dispatcher.overloads[tuple(arguments)].signature.return_type


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Failed in nopython", "During:", "File ", "<source"))]
    return "; ".join(lines[:2])[:300] or type(error).__name__
