"""Stable fingerprints of Python functions: what compiled code is filed under.

A fingerprint covers a function's byte code, constants, defaults, closure values and every global it names, followed
into the functions those name, and into modules for the attributes that are named. Two processes that see the same
operator compute the same fingerprint; a changed constant anywhere below gives another one. What has no stable
description (an object of a class that nobody knows here, code that was compiled while a global was another one) makes
the fingerprint `None`: such a function is compiled in every process and never filed.
"""

import datetime
import hashlib
import struct
import sys
import types
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum, EnumMeta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.types import Type
from numba.experimental.structref import StructRefProxy
from numba.extending import _Intrinsic

_KNOWN_BY_VERSION = {"numpy", "numba", "scipy"} | sys.stdlib_module_names
"""Packages whose version says what is in them. What another module holds (a constant in a file of settings) is looked at."""

_SHOWN_WHOLE = (
    bool, int, type(None), type(Ellipsis), range,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, Decimal, Fraction,
)  # fmt: skip
"""Types whose repr is all there is to a value. Of these exactly: a class of their kind may show whatever it likes."""


class Unstable(Exception):
    """A value without a stable description."""


class Walk:
    """Functions, classes and modules on the way: the how-manieth each of them is."""

    def __init__(self):
        self.numbers: dict[tuple[int, frozenset[str]], int] = {}
        self.met: list = []  # keeps them alive, for numbers go by id

    def again(self, value, names: Iterable[str] = ()) -> bytes | None:
        """Which one it was, for what comes again: (f, g, f) is not (f, g, g). A module comes again only with the same names: of
        another function that knows it, other attributes count."""
        key = id(value), frozenset(names)
        if key in self.numbers:
            return _parts("again", str(self.numbers[key]).encode())
        self.numbers[key] = len(self.met)
        self.met.append(value)
        return None


def _parts(kind: str, *parts: bytes) -> bytes:
    """Parts with their lengths: none can be taken for two, nor two for one."""
    return b"".join([kind.encode(), b"(", *(struct.pack("<Q", len(part)) + part for part in parts), b")"])


def describe(value, walk: Walk, names: Iterable[str] = ()) -> bytes:
    """Bytes that are equal in two processes exactly when the value means the same to compiled code.

    `names` are those that the code names: of a module, these are what it can see."""
    kind: Any = type(value)
    if kind in _SHOWN_WHOLE:
        return _parts(kind.__name__, repr(value).encode())
    if kind is float:
        return _parts("float", struct.pack("<d", value))
    if kind is complex:
        return _parts("complex", struct.pack("<dd", value.real, value.imag))
    if kind is str:
        return _parts("str", value.encode("utf-8", "surrogatepass"))
    if kind is bytes:
        return _parts("bytes", value)
    if kind is tuple or kind is list:
        return _parts(kind.__name__, *(describe(item, walk) for item in value))
    if kind is slice:
        return _parts("slice", *(describe(item, walk) for item in (value.start, value.stop, value.step)))
    if kind is dict:
        return _parts("dict", *sorted(_parts("", describe(k, walk), describe(v, walk)) for k, v in value.items()))
    if kind is set or kind is frozenset:
        return _parts(kind.__name__, *sorted(describe(item, walk) for item in value))
    if isinstance(value, Enum):  # two members of one name show alike, whatever they are worth
        return _parts("member", describe(kind, walk), value.name.encode())
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _parts("named", describe(kind, walk), *(describe(item, walk) for item in value))
    if kind is np.ndarray or isinstance(value, np.generic):
        return _numbers(kind, value)
    if isinstance(value, np.dtype):
        return _parts("dtype", repr(value).encode())
    if isinstance(value, types.ModuleType):
        return _describe_module(value, walk, names)
    if isinstance(value, type):
        return _describe_class(value, walk)
    if isinstance(value, Type):
        maker = describe(value.instance_class, walk) if hasattr(value, "instance_class") else b""
        return _parts("numba", str(value).encode(), maker)
    return _describe_callable(value, walk)


def _numbers(kind, value) -> bytes:
    if value.dtype.hasobject:
        raise Unstable(f"array of objects {value!r}")
    # Not dtype.str: all records of one size have the same.
    return _parts(kind.__name__, repr(value.dtype).encode(), repr(value.shape).encode(), value.tobytes())


def _describe_callable(value, walk: Walk) -> bytes:
    if isinstance(value, types.FunctionType):
        return _describe_function(value, walk)
    if isinstance(value, Dispatcher):
        walk.again(value)
        pipeline = value._compiler.pipeline_class  # type: ignore[attr-defined]
        options = describe((value.targetoptions, value.locals, pipeline), walk)
        return _parts("jitted", options, _describe_function(value.py_func, walk))
    if isinstance(value, _Intrinsic):
        return _parts("intrinsic", _describe_function(value._defn, walk))
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | None):
        return _parts("builtin", f"{value.__module__}.{value.__qualname__}".encode())
    if type(value) is np.ufunc and getattr(np, value.__name__, None) is value:
        return _parts("ufunc", value.__name__.encode(), np.__version__.encode())
    if isinstance(getattr(value, "py_func", None), types.FunctionType):  # what is compiled in its place
        return _describe_function(value.py_func, walk)
    # Callbacks, ufuncs of one's own, instances: what was compiled, or what they hold, is not seen from here.
    raise Unstable(f"{type(value).__qualname__} {value!r}")


def _is_known(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _KNOWN_BY_VERSION


GENERATED = "<slidewise>"
"""The file name of functions that the library makes from source text."""


def is_ours(function: types.FunctionType) -> bool:
    """Part of the library: what it is compiled to is told by the sources, in `vocabulary` and the tags, and never changes."""
    return (function.__module__ or "").startswith("slidewise.") or function.__code__.co_filename == GENERATED


def _describe_module(module: types.ModuleType, walk: Walk, names: Iterable[str]) -> bytes:
    head = f"{module.__name__} {getattr(module, '__version__', '')}".encode()
    if _is_known(module.__name__):
        return _parts("module", head)
    if (before := walk.again(module, names)) is not None:  # modules import each other
        return before
    there = [name for name in sorted(set(names)) if hasattr(module, name)]
    found = [_parts(name, describe(getattr(module, name), walk, names)) for name in there]
    return _parts("module", head, *found)


def _describe_class(cls: type, walk: Walk) -> bytes:
    head = f"{cls.__module__}.{cls.__qualname__}".encode()
    if _is_known(cls.__module__):
        return _parts("class", head)
    if (before := walk.again(cls)) is not None:
        return before
    if isinstance(cls, EnumMeta):
        members = [_parts(name, describe(member.value, walk)) for name, member in cls.__members__.items()]
        return _parts("enum", head, describe(cls.__mro__[1:], walk), *members)
    if hasattr(cls, "_fields"):
        defaults = describe(dict(getattr(cls, "_field_defaults", {})), walk)
        return _parts("fields", head, repr(cls._fields).encode(), defaults)
    # What Numba makes of a class of its own kind, or of one that it was taught, is written somewhere else.
    if type(cls).__module__.startswith("numba.") or issubclass(cls, StructRefProxy) or _meanings(cls):
        raise Unstable(f"class {cls!r}")
    return _parts("class", head)


def _meanings(value) -> list[types.FunctionType]:
    """The functions that say what it is compiled to, for what was overloaded or registered."""
    cpu_target.typing_context.refresh()
    found = cpu_target.typing_context._lookup_global(value)
    return [template._overload_func for template in getattr(found, "templates", ()) if hasattr(template, "_overload_func")]


def _describe_function(function: types.FunctionType, walk: Walk) -> bytes:
    module, name = function.__module__, function.__qualname__
    if _is_known(module) and getattr(sys.modules.get(module), name, None) is function:
        version = getattr(sys.modules[module.partition(".")[0]], "__version__", "")
        return _parts("known", f"{module}.{name} {version}".encode())
    if (before := walk.again(function)) is not None:
        return before
    names: list[str] = []
    parts = [_describe_code(function.__code__, names, walk)]
    parts.append(describe(function.__defaults__ or (), walk))
    parts.append(describe(function.__kwdefaults__ or {}, walk))
    for cell in function.__closure__ or ():
        try:
            parts.append(describe(cell.cell_contents, walk, names))
        except ValueError:  # an empty cell: the function is not defined yet
            parts.append(b"empty")
    for name in sorted(set(names)):
        if name in function.__globals__:
            parts.append(_parts(name, describe(function.__globals__[name], walk, names)))
    if not is_ours(function):
        parts += [_describe_function(meaning, walk) for meaning in _meanings(function)]
    return _parts("function", *parts)


def _describe_code(code: types.CodeType, names: list[str], walk: Walk) -> bytes:
    names.extend(code.co_names)
    names.extend(constant for constant in code.co_consts if isinstance(constant, str) and constant.isidentifier())
    shape = (
        code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
    )  # fmt: skip
    parts = [code.co_code, code.co_exceptiontable, repr(shape).encode()]
    for constant in code.co_consts:
        inner = isinstance(constant, types.CodeType)
        parts.append(_describe_code(constant, names, walk) if inner else describe(constant, walk))
    return _parts("code", *parts)


def fingerprint(*values) -> str | None:
    """Hex digest over the descriptions of the values, or None where one of them has no stable description."""
    digest = hashlib.sha256()
    try:
        for value in values:
            walk = Walk()
            digest.update(_parts("value", describe(value, walk)))
            if any(_was_another(met) for met in walk.met):
                return None
    except (Unstable, RecursionError):
        return None
    return digest.hexdigest()[:24]


# ---- code that others have compiled ----------------------------------------------------------------------------------

_compiled_as: WeakKeyDictionary[types.FunctionType, set[bytes]] = WeakKeyDictionary()
"""By function: what it was each time a dispatcher compiled it. Its globals are frozen in that code."""


def _alone(function: types.FunctionType) -> bytes:
    try:
        return hashlib.sha256(_describe_function(function, Walk())).digest()
    except (Unstable, RecursionError):
        return b""


def _was_another(met) -> bool:
    """Whether compiled code that will be called is, or may be, of another description than it has now."""
    if isinstance(met, Dispatcher) and not is_ours(met.py_func) and met.overloads and met.py_func not in _compiled_as:
        return True  # compiled before we looked, or read from a cache of Numba's
    return isinstance(met, types.FunctionType) and met in _compiled_as and _compiled_as[met] != {_alone(met)}


class _Watch(event.Listener):
    """Hears of everything that Numba compiles. What `typed` compiles is made anew where a description changes."""

    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        function = getattr(dispatcher, "py_func", None)
        if not isinstance(function, types.FunctionType) or getattr(dispatcher, "filed_by_fingerprint", False):
            return
        if not is_ours(function) and not _is_known(function.__module__):
            _compiled_as.setdefault(function, set()).add(_alone(function))

    def on_end(self, event):
        pass


event.register("numba:compile", _Watch())


@lru_cache(maxsize=1)
def vocabulary() -> str:
    """Digest of this room's own sources: what `get`, `combine` and the rest are compiled to is decided here."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
