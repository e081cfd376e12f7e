"""The words algorithms are written in, each with two meanings from one source.

    get(op, V, i) -> state          the state in slot i
    put(op, V, i, s)                write a state into slot i
    row(X, i) -> tuple              the inputs of event i
    lift(op, out, x) -> state       x is a tuple of inputs
    combine(op, out, a, b)          a is older, b is newer
    inverse(op, out, total, old)    total without its oldest part
    assign(op, out, a) -> state     a copy of a
    reset(op, out) -> state         the identity
    emit(op, OUT, OK, i, s)         write the lowered result and whether it is defined
    null_when_empty(op) -> bool     whether an empty window gives null (known when compiling)
    selective(op) -> bool           whether combine gives one of its arguments (known when compiling)
    newer_won(op, kept, a, b) -> bool   whether a selective combine of a and b kept b
    open_state(op, V), ptr(a)       arrays -> raw pointers (no reference counts, no bounds checks)
    open_arrays(X)                  the same for a tuple of arrays; strided ones stay as they are

`out` is where wide states are written: a state that nobody needs any more, or a scratch slot got by `get`. It may be a
or b. Other kinds ignore it. **A state is whatever the call returns; `out` itself must not be read afterwards.** A wide state got
by `get` is a view of its slot: it changes when the slot is written.

Interpreted, V is a Python list, states are Python objects, and `combine` is the user's function. Compiled, V is a tuple
of arrays (one for each leaf of the state's layout), opened to pointers, and every word is resolved for the operator's tag when
the algorithm is compiled. `twin(module)` gives the interpreted twin of a module of kernels: the same code objects over
other globals.
"""

import math
import sys
import types as pytypes

import numpy as np
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, overload, register_model, typeof_impl, unbox

from slidewise.algebra.fingerprint import GENERATED
from slidewise.algebra.typed import REGISTRY, OperatorType, TypedOperator

# ---- interpreted meaning ---------------------------------------------------------------------------------------------


def get(op, V, i):
    return V[i]


def put(op, V, i, s):
    V[i] = s


def row(X, i):
    return tuple(column[i] for column in X)


def lift(op, out, x):
    return op.lift_(*x)


def combine(op, out, a, b):
    return op.combine_(a, b)


def inverse(op, out, total, old):
    return op.inverse_(total, old)


def assign(op, out, a):
    return a


def reset(op, out):
    return op.identity


def emit(op, OUT, OK, i, s):
    defined = op.defined_ is None or op.defined_(s)
    result = op.lower_(s) if defined else None
    OUT[i] = result
    OK[i] = result is not None


def null_when_empty(op):
    return op.null_when_empty


def selective(op):
    return op.operator.selective


def newer_won(op, kept, a, b):
    # Equal is not the same: of Decimal("1.0") and Decimal("1.00"), in this order, the first stays.
    return kept is b or (kept is not a and _identical(kept, b))


def _identical(a, b) -> bool:
    if isinstance(a, (float, np.floating)) and isinstance(b, (float, np.floating)):
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return isinstance(a, float) == isinstance(b, float) and bool(a == b)


def open_state(op, V):
    return V


def open_arrays(X):
    return X


def ptr(a):
    return a


def shift(a, i):
    """The array from element i on, as a pointer (compiled code only)."""
    return _Shifted(a, i)


class _Shifted:
    """The interpreted stand-in for a shifted pointer."""

    __slots__ = ("a", "i")

    def __init__(self, a, i):
        self.a, self.i = (a.a, a.i + i) if isinstance(a, _Shifted) else (a, i)

    def __getitem__(self, k):
        return self.a[self.i + k]

    def __setitem__(self, k, value):
        self.a[self.i + k] = value


def twin(module):
    """The interpreted twin of a module of kernels: the same code objects, with compiled functions replaced."""
    name = module.__name__
    if name not in _twins:
        _twins[name] = pytypes.ModuleType(f"{name} (interpreted)")
        space = vars(_twins[name])
        space.update({key: value for key, value in vars(module).items() if not key.startswith("__")})
        for key, value in list(space.items()):
            function = getattr(value, "py_func", None)
            if function is None:
                continue
            if function.__module__ == name:
                space[key] = pytypes.FunctionType(function.__code__, space, function.__name__, function.__defaults__)
            else:
                space[key] = getattr(twin(sys.modules[function.__module__]), function.__name__)
    return _twins[name]


_twins: dict[str, pytypes.ModuleType] = {}


# ---- tags ------------------------------------------------------------------------------------------------------------


@typeof_impl.register(TypedOperator)
def _typeof_operator(value, context):
    return value._numba_type_


register_model(OperatorType)(models.OpaqueModel)


@unbox(OperatorType)
def _unbox_operator(kind, value, context):
    return NativeValue(context.context.get_dummy_value())


def _made(source: str, env: dict):
    """A function from source text: the accessors depend on the layout of the state."""
    space = dict(env)
    exec(compile(source, GENERATED, "exec"), space)
    return space["impl"]


def _typed(op) -> TypedOperator | None:
    return REGISTRY[op.operator_key] if isinstance(op, OperatorType) else None


# ---- compiled meaning ------------------------------------------------------------------------------------------------


@overload(get)
def _get(op, V, i):
    if (o := _typed(op)) is None:
        return None
    if o.kind == "wide":
        width = o.state.width
        return lambda op, V, i: carray(_shift(V[0], i * width), (width,))
    env: dict = {}
    return _made(f"def impl(op, V, i):\n    return {o.state.load(env)}", env)


@overload(put)
def _put(op, V, i, s):
    if (o := _typed(op)) is None:
        return None
    if o.kind == "wide":
        width = o.state.width

        def impl(op, V, i, s):
            target = _shift(V[0], i * width)
            for k in range(width):
                target[k] = s[k]

        return impl
    return _made("def impl(op, V, i, s):\n    " + "\n    ".join(o.state.store()), {})


@overload(row)
def _row(X, i):
    columns = ", ".join(f"X[{k}][i]" for k in range(len(X)))
    return _made(f"def impl(X, i):\n    return ({columns}{',' if len(X) else ''})", {})


def _arguments(count: int) -> str:
    return ", ".join(f"x[{k}]" for k in range(count))


@overload(lift)
def _lift(op, out, x):
    if (o := _typed(op)) is None:
        return None
    arguments = _arguments(len(x))
    if o.operator.lift_into is not None:
        source = f"def impl(op, out, x):\n    f(out, {arguments})\n    return out"
        return _made(source, {"f": o.function("lift_into")})
    env = {"f": o.function("lift")}
    if o.kind == "wide":
        width = o.state.width
        env["width"] = width
        body = _copied(o, "lift", env)
        return _made(f"def impl(op, out, x):\n    s = f({arguments})\n    {body}\n    return out", env)
    cast = o.state.cast(env)
    return _made(f"def impl(op, out, x):\n    s = f({arguments})\n    return {cast}", env)


def _copied(o: TypedOperator, role: str, env: dict) -> str:
    """Lines that copy the array s into out. What a user's function gives may be shorter, or longer than there is room for."""
    if o.operator.own:
        return "for k in range(width):\n        out[k] = s[k]"
    env["wrong"] = (
        f"{role} gave an array of another length than the identity: a state that is an array has one length; "
        "use a tuple or a list for states that grow"
    )
    return "if len(s) != width:\n        raise ValueError(wrong)\n    for k in range(width):\n        out[k] = s[k]"


def _binary(o: TypedOperator, role: str, names: str):
    env: dict = {"f": o.function(role)}
    if o.kind == "wide":
        env["width"] = o.state.width
        body = f"s = f({names})\n    {_copied(o, role, env)}\n    return out"
    else:
        body = f"s = f({names})\n    return {o.state.cast(env)}"
    return _made(f"def impl(op, out, {names}):\n    {body}", env)


@overload(combine)
def _combine(op, out, a, b):
    if (o := _typed(op)) is None:
        return None
    if o.operator.combine_into is not None:
        f = o.function("combine_into")

        def impl(op, out, a, b):
            f(out, a, b)
            return out

        return impl
    return _binary(o, "combine", "a, b")


@overload(inverse)
def _inverse(op, out, total, old):
    if (o := _typed(op)) is None:
        return None
    if o.operator.inverse is None:  # one source may serve several laws: compiled there, never run

        def impl(op, out, total, old):
            _no_inverse()
            return total

        return impl
    if o.operator.inverse_into is not None:
        f = o.function("inverse_into")

        def impl(op, out, total, old):
            f(out, total, old)
            return out

        return impl
    return _binary(o, "inverse", "total, old")


@njit(nogil=True)
def _no_inverse():
    raise TypeError("this operator has no inverse")


@overload(assign)
def _assign(op, out, a):
    if (o := _typed(op)) is None:
        return None
    if o.kind == "wide":
        width = o.state.width

        def impl(op, out, a):
            for k in range(width):
                out[k] = a[k]
            return out

        return impl
    return lambda op, out, a: a


@overload(reset)
def _reset(op, out):
    if (o := _typed(op)) is None:
        return None
    identity = o.operator.identity
    if o.kind == "wide":
        values = np.ascontiguousarray(identity, o.state.shape.dtype)
        width = o.state.width
        if (values == values[0]).all():
            fill = values[0]

            def impl(op, out):
                for k in range(width):
                    out[k] = fill
                return out

            return impl

        def impl(op, out):
            for k in range(width):
                out[k] = values[k]
            return out

        return impl
    leaves = leaf_values(identity)
    env = {f"v{k}": leaf.dtype.type(v) for k, (leaf, v) in enumerate(zip(o.state.leaves, leaves, strict=True))}

    def text(k, path, leaf):
        return f"bool(v{k})" if leaf.dtype == np.bool_ else f"v{k}"

    return _made(f"def impl(op, out):\n    return {o.state.build(text, env)}", env)


def leaf_values(value) -> list:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaf_values(part)]
    return [value]


@overload(emit)
def _emit(op, OUT, OK, i, s):
    if (o := _typed(op)) is None:
        return None
    env: dict = {"f": o.function("lower")}
    lines = []
    if o.operator.defined is not None:
        env["defined"] = o.function("defined")
        lines += ["if not defined(s):", "    OK[i] = 0", "    return"]
    lines.append("r = f(s)")
    if o.optional:
        lines += ["if r is None:", "    OK[i] = 0", "    return"]
    if o.result.kind == "wide":
        env["width"] = o.result.width
        if not o.operator.own:
            lines += ["if len(r) != width:", "    raise ValueError('lower gave arrays of different lengths')"]
        lines += ["for k in range(width):", "    OUT[0][i * width + k] = r[k]"]
    else:
        lines += [line.replace("= s", "= r").replace("if s", "if r") for line in o.result.store("OUT")]
    lines.append("OK[i] = 1")
    return _made("def impl(op, OUT, OK, i, s):\n    " + "\n    ".join(lines), env)


@overload(null_when_empty)
def _null_when_empty(op):
    if (o := _typed(op)) is None:
        return None
    answer = o.null_when_empty
    return lambda op: answer


@overload(selective)
def _selective(op):
    if (o := _typed(op)) is None:
        return None
    answer = o.operator.selective
    return lambda op: answer


@overload(newer_won)
def _newer_won(op, kept, a, b):
    if (o := _typed(op)) is None:
        return None
    if o.kind == "wide":
        width = o.state.width

        def impl(op, kept, a, b):
            for k in range(width):
                if _bits(kept[k]) != _bits(b[k]):
                    return False
            return True

        return impl
    tests: list[str] = []

    def compare(k, path, leaf):
        one, other = path.replace("s", "kept", 1), path.replace("s", "b", 1)
        tests.append(f"_bits({one}) == _bits({other})")
        return ""

    o.state.build(compare, {})
    return _made(f"def impl(op, kept, a, b):\n    return {' and '.join(tests)}", {"_bits": _bits})


@intrinsic
def _bits(context, value):
    """A float's bits as an integer; integers as they are."""
    if not isinstance(value, types.Float):
        return value(value), lambda context, builder, signature, arguments: arguments[0]
    word = types.Integer.from_bitwidth(value.bitwidth)

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return word(value), code


# ---- raw pointers ----------------------------------------------------------------------------------------------------


@intrinsic
def _data(context, array):
    """array -> pointer to its first element"""

    def code(context, builder, signature, arguments):
        return cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), code


@intrinsic
def _shift(context, pointer, i):
    def code(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.intp), code


@overload(open_arrays)
def _open_arrays(X):
    # Arrays that are handed to a function that may raise have their references counted at every call: in a loop that asks
    # `lower` for a result, which may divide, that costs more than everything else together.
    # (Truth values stay in arrays: a pointer to one would not be loaded as the one bit that Numba takes it for.)
    openable = [kind.layout == "C" and kind.dtype != types.boolean for kind in X]
    parts = [f"_data(X[{k}])" if opened else f"X[{k}]" for k, opened in enumerate(openable)]
    return _made(f"def impl(X):\n    return ({', '.join(parts)}{',' if parts else ''})", {"_data": _data})


@overload(ptr)
def _ptr(a):
    return lambda a: _data(a)


@overload(shift)
def _shift_pointer(a, i):
    return lambda a, i: _shift(a, i)


@overload(open_state)
def _open_state(op, V):
    if _typed(op) is None:
        return None
    parts = ", ".join(f"_data(V[{k}])" for k in range(len(V)))
    return _made(f"def impl(op, V):\n    return ({parts},)", {"_data": _data})
