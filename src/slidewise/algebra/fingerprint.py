"""Stable fingerprints of Python functions: what compiled code is filed under.

A fingerprint covers a function's byte code, constants, defaults, closure values and every global it names, followed
into the functions those name, and into modules for the attributes that are named. Two processes that see the same
operator compute the same fingerprint; a changed constant anywhere below gives another one. What has no stable
description (an object whose repr holds an address) makes the fingerprint `None`: such a function is compiled in every
process and never filed.
"""

import hashlib
import re
import sys
import types
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_KNOWN_BY_VERSION = {"numpy", "numba", "scipy"} | sys.stdlib_module_names
"""Packages whose version says what is in them. What another module holds (a constant in a file of settings) is looked at."""

Seen = dict[int, int]
"""Functions and modules on the way, by id: the how-manieth each of them is."""


class Unstable(Exception):
    """A value without a stable description."""


def describe(value, seen: Seen, names: Iterable[str] = ()) -> bytes:
    """Bytes that are equal in two processes exactly when the value means the same to compiled code.

    `names` are those that the code names: of a module, these are what it can see."""
    function = getattr(value, "py_func", value)
    if isinstance(function, types.FunctionType):
        return _describe_function(function, seen)
    if isinstance(value, types.ModuleType):
        return _describe_module(value, seen, names)
    if isinstance(value, type):
        fields = getattr(value, "_fields", None)
        return f"type {value.__module__}.{value.__qualname__} {fields}".encode()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise Unstable(f"array of objects {value!r}")
        return b"array " + repr((value.dtype.str, value.shape)).encode() + value.tobytes()
    if isinstance(value, (tuple, list)):
        parts = [describe(item, seen) for item in value]
        return type(value).__name__.encode() + b"(" + b",".join(parts) + b")"
    if isinstance(value, dict):
        parts = sorted(describe(k, seen) + b":" + describe(v, seen) for k, v in value.items())
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, (set, frozenset)):
        return b"set{" + b",".join(sorted(describe(item, seen) for item in value)) + b"}"
    if isinstance(value, types.BuiltinFunctionType):
        return f"builtin {value.__module__}.{value.__qualname__}".encode()
    text = repr(value)
    if _ADDRESS.search(text):
        raise Unstable(text)
    return f"{type(value).__qualname__} {text}".encode()


def _describe_module(module: types.ModuleType, seen: Seen, names: Iterable[str]) -> bytes:
    head = f"module {module.__name__} {getattr(module, '__version__', '')}".encode()
    if module.__name__.partition(".")[0] in _KNOWN_BY_VERSION:
        return head
    if id(module) in seen:  # modules import each other
        return head + f" {seen[id(module)]}".encode()
    seen[id(module)] = len(seen)
    there = [name for name in sorted(set(names)) if hasattr(module, name)]
    return head + b"(" + b",".join(n.encode() + b"=" + describe(getattr(module, n), seen, names) for n in there) + b")"


def _describe_function(function: types.FunctionType, seen: Seen) -> bytes:
    if id(function) in seen:  # which one it was matters: (f, g, f) is not (f, g, g)
        return f"function {seen[id(function)]}".encode()
    seen[id(function)] = len(seen)
    names: list[str] = []
    parts = [_describe_code(function.__code__, names, seen)]
    parts.append(describe(function.__defaults__ or (), seen))
    parts.append(describe(function.__kwdefaults__ or {}, seen))
    for cell in function.__closure__ or ():
        try:
            parts.append(describe(cell.cell_contents, seen, names))
        except ValueError:  # an empty cell: the function is not defined yet
            parts.append(b"empty")
    for name in sorted(set(names)):
        if name in function.__globals__:
            parts.append(name.encode() + b"=" + describe(function.__globals__[name], seen, names))
    return b"function(" + b"|".join(parts) + b")"


def _describe_code(code: types.CodeType, names: list[str], seen: Seen) -> bytes:
    names.extend(code.co_names)
    parts = [code.co_code, repr((code.co_names, code.co_varnames, code.co_argcount, code.co_flags)).encode()]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            parts.append(_describe_code(constant, names, seen))
        else:
            parts.append(describe(constant, seen))
    return b"|".join(parts)


def fingerprint(*values) -> str | None:
    """Hex digest over the descriptions of the values, or None where one of them has no stable description."""
    digest = hashlib.sha256()
    try:
        for value in values:
            digest.update(describe(value, {}))
            digest.update(b"\x00")
    except Unstable:
        return None
    return digest.hexdigest()[:24]


@lru_cache(maxsize=1)
def vocabulary() -> str:
    """Digest of this room's own sources: what `get`, `combine` and the rest are compiled to is decided here."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
