"""Several operators as one: `struct`.

    struct(a=op1, b=op2)              every member reads the same inputs; a row counts for all of them or for none
    struct(a=op1("x"), b=op2("y"))    bound members: each reads its own columns and skips its own nulls

Unbound, the states of the members lie side by side in a NamedTuple, and the functions are written out as source text, member by
member, so that Numba compiles them into straight code. Where a member has a wide or an object state the whole runs interpreted.
Bound to columns, also by a call, `struct(a=op1, b=op2)("x")`, engines compute each member as they would alone.
"""

import keyword
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.codec import like, stripped
from slidewise.algebra.fingerprint import GENERATED, fingerprint, is_ours
from slidewise.algebra.laws import same
from slidewise.algebra.operator import Bound, Operator
from slidewise.errors import InputError, InputTypeError


def struct(**members) -> "Operator | BoundStruct":
    """Run several operators as one; the result is a struct with a field for each.

    Unbound members all read the same inputs (members without inputs, like `count()`, read none); a row with a null in
    one of them counts for none. Bound members (`sw.sum("x")`) each read their own columns, skip their own nulls and have
    their own `where=`. In a window without rows each member gives what it gives alone.

    >>> import slidewise as sw
    >>> both = sw.struct(low=sw.min(), n=sw.count())
    >>> both.fold([3, 1, 2]), both.fold([])
    (Struct(low=1, n=3), Struct(low=None, n=0))
    >>> sw.struct(total=sw.sum("x"), peak=sw.max("y", where="valid")).needed
    ('x', 'y', 'valid')
    """
    if not members:
        raise InputError("struct needs at least one operator, as in sw.struct(low=sw.min(), high=sw.max())")
    for name, member in members.items():
        if not isinstance(member, (Operator, Bound, BoundStruct)):
            raise InputTypeError(f"struct: {name} must be an operator, not {member!r}")
        if name.startswith("_"):
            raise InputError(f"struct: a field cannot be called {name!r}: no leading underscore")
    bound = {
        name: member() if isinstance(member, Operator) else member
        for name, member in members.items()
        if not isinstance(member, Operator) or not member.inputs
    }
    if any(not isinstance(member, Operator) for member in members.values()):
        if len(bound) < len(members):
            loose = ", ".join(name for name in members if name not in bound)
            raise InputError(f"struct: bind all members to columns, or none ({loose} is not)")
        return BoundStruct(bound)
    widths = {member.inputs for member in members.values() if member.inputs}
    if len(widths) > 1:
        counts = ", ".join(f"{name} {member.inputs}" for name, member in members.items())
        raise InputError(f"struct: unbound members read the same inputs, but these take different numbers: {counts}")
    return _struct(members, max(widths, default=0))


class Together(NamedTuple):
    """What engines ask of the operator of an aggregate, for several."""

    name: str
    commutative: bool
    exact: bool
    result_like: int | None = None


@dataclass(frozen=True)
class BoundStruct:
    """Bound operators side by side. Engines compute each member as they would alone, and put the results together."""

    members: "dict[str, Bound | BoundStruct]"
    operator: Together = field(init=False, compare=False)

    def __post_init__(self):
        ops = [part.operator for part in self.members.values()]
        together = Together("struct", all(op.commutative for op in ops), all(op.exact for op in ops))
        object.__setattr__(self, "operator", together)

    def leaves(self, name: str) -> dict[str, Bound]:
        """Every operator in it, by its path: `name.member`."""
        found: dict[str, Bound] = {}
        for member, part in self.members.items():
            path = f"{name}.{member}"
            found |= part.leaves(path) if isinstance(part, BoundStruct) else {path: part}
        return found

    def put_together(self, name: str, leaf: Callable[[str], Any], join: Callable[[dict[str, Any]], Any]):
        """One value from those of the members: leaf(path) for an operator, join(values by name) for a struct."""
        return join({
            member: part.put_together(f"{name}.{member}", leaf, join) if isinstance(part, BoundStruct) else leaf(f"{name}.{member}")
            for member, part in self.members.items()
        })

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that a member reads, once."""
        return tuple(dict.fromkeys(column for bound in self.members.values() for column in bound.columns))

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that must be at hand."""
        return tuple(dict.fromkeys(column for bound in self.members.values() for column in bound.needed))

    @property
    def where(self) -> None:
        """Members have their own."""
        return None


# ---- the generated functions -----------------------------------------------------------------------------------------


def _made(lines: list[str], env: dict):
    space = dict(env)
    exec(compile("\n".join(lines), GENERATED, "exec"), space)
    return space["f"]


_classes: dict[tuple, type] = {}


def _tuple_class(title: str, names: tuple[str, ...]) -> type:
    """One class for each list of fields, whoever asks: compiled code is filed by it."""
    key = (title, *names)
    if key not in _classes:
        _classes[key] = namedtuple(title, [f"{name}_" if keyword.iskeyword(name) else name for name in names])
        _classes[key].__module__ = __name__
    return _classes[key]


_callables: dict[Any, Any] = {}


def _callable(function):
    """The function, made known to Numba as one that compiled code may call.

    Numba compiles what it knows once and for all: what a function was while its globals were others is another function."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType):  # a built-in: interpreted only
        return plain
    key = plain, "" if is_ours(plain) else fingerprint(plain)
    if key not in _callables:
        copy = FunctionType(plain.__code__, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)
        copy.__kwdefaults__, copy.__module__ = plain.__kwdefaults__, plain.__module__
        copy = register_jitable(copy)
        if key[1] is None:  # nobody can tell whether it is still the same
            return copy
        _callables[key] = copy
    return _callables[key]


def _functions(ops, *roles: str) -> dict:
    """The members' functions under the names that generated code calls them by: lift0, lift1, ..."""
    named = {f"{role}{i}": getattr(op, role) for role in roles for i, op in enumerate(ops)}
    return {name: _callable(function) for name, function in named.items() if function is not None}


def _runs_interpreted(op: Operator) -> bool:
    return op.object_only or isinstance(op.identity, np.ndarray)


def _inherited(ops) -> dict:
    """What the members have in common."""
    return {
        "commutative": all(op.commutative for op in ops),
        "exact": all(op.exact for op in ops),
        "error": "; ".join(dict.fromkeys(op.error for op in ops if op.error)),
        "cost": "expensive" if any(op.cost == "expensive" for op in ops) or len(ops) > 4 else "cheap",
        "own": all(op.own for op in ops),
    }


def _stored(ops, state: type) -> dict:
    """encode, decode and equal, member by member, where a member has its own."""
    found: dict = {}
    if any(op.encode is not None for op in ops):

        def encode(s):
            return tuple(stripped(op.identity, part) if op.encode is None else op.encode(part) for op, part in zip(ops, s))

        def decode(stored):
            if not isinstance(stored, tuple) or len(stored) != len(ops):
                raise TypeError(f"a stored struct of {len(ops)} members has {len(ops)} parts")
            return state(*(
                like(op.identity, part) if op.decode is None else op.decode(part) for op, part in zip(ops, stored)
            ))

        found.update(encode=encode, decode=decode)
    if any(op.equal is not None for op in ops):

        def equal(a, b):
            return all((op.equal or same)(x, y) for op, x, y in zip(ops, a, b))

        found["equal"] = equal
    return found


# ---- struct ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Struct(Operator):
    """Unbound operators side by side, over the same inputs."""

    members: dict[str, Operator] = field(default_factory=dict)

    def __call__(self, *columns: str, where: str | None = None):
        width = len(Bound(self, columns, where).columns)  # as many as it reads, each a name
        return BoundStruct({name: reading(op, width)(*columns, where=where) for name, op in self.members.items()})

    @property
    def null_when_empty(self) -> bool:
        """Always: an array of numbers has no place for a null among the members. `empty` says what they give."""
        return True

    @property
    def told_apart(self) -> bool:
        return all(op.told_apart for op in self.members.values())


def reading(op: Operator, inputs: int) -> Operator:
    """A member as an operator over all inputs of its struct: a row with a null in one of them does not count."""
    if isinstance(op, Struct):
        return _struct({name: reading(member, inputs) for name, member in op.members.items()}, inputs)
    recipe = (reading, (op, inputs))
    if not op.inputs and inputs:  # carries them all, and looks at none
        names = ", ".join(f"x{k}" for k in range(inputs))
        lift = _made([f"def f({names}):", "    return lift0()"], _functions([op], "lift"))
        return op.with_(lift=lift, inputs=inputs, carried=tuple(range(inputs)), recipe=recipe)
    return op if len(op.carried) in (0, inputs) else op.with_(carried=(), recipe=recipe)


def _struct(named: dict[str, Operator], inputs: int) -> Struct:
    names, ops = tuple(named), tuple(named.values())
    state, result = _tuple_class("StructState", names), _tuple_class("Struct", names)
    arguments = ", ".join(f"x{k}" for k in range(inputs))

    def resolve(kinds):
        return build(tuple(op.resolved(kinds if op.inputs else ()) for op in ops)).with_(resolve=None)

    def build(members) -> Struct:
        env = {"State": state, "Result": result}
        env.update(_functions(members, "lift", "combine", "lower", "inverse", "defined"))

        def function(head: str, title: str, pattern: str):
            parts = [pattern.format(i=i, x=arguments if op.inputs else "") for i, op in enumerate(members)]
            return _made([f"def f({head}):", f"    return {title}({', '.join(parts)})"], env)

        # A member without a result is a None in the struct, which has no place in an array of numbers.
        nullable = any(op.defined is not None for op in members)
        lowers = [
            f"lower{i}(s[{i}])" if op.defined is None else f"lower{i}(s[{i}]) if defined{i}(s[{i}]) else None"
            for i, op in enumerate(members)
        ]
        return Struct(
            lift=function(arguments, "State", "lift{i}({x})"),
            combine=function("a, b", "State", "combine{i}(a[{i}], b[{i}])"),
            inverse=function("total, old", "State", "inverse{i}(total[{i}], old[{i}])")
            if all(op.invertible for op in members)
            else None,
            lower=_made(["def f(s):", f"    return Result({', '.join(lowers)})"], env),
            identity=state(*(op.identity for op in members)),
            name="struct",
            params=tuple((name, op.signature) for name, op in zip(names, ops)),
            empty=result(*(op.empty for op in ops)),
            inputs=inputs,
            object_only=nullable or any(_runs_interpreted(op) for op in members),
            resolve=resolve,
            recipe=(_remake, (names, ops)),
            members=named,
            **_inherited(members),
            **_stored(members, state),
        )

    return build(ops)


def _remake(names: tuple[str, ...], ops: tuple[Operator, ...]):
    return struct(**dict(zip(names, ops)))
