"""Several operators as one: `struct`, and the product that streaming engines keep for many aggregates.

    struct(a=op1, b=op2)              every member reads the same inputs; a row counts for all of them or for none
    struct(a=op1("x"), b=op2("y"))    bound members: each reads its own columns and skips its own nulls
    product(members)                  one operator over a shared list of columns; each member has its own count of values,
                                      and a flag with every event says whether it counts for that member

The states of the members lie side by side in a NamedTuple, and the functions are written out as source text, member by member, so
that Numba compiles them into straight code. Where a member has a wide or an object state the whole runs interpreted.
"""

import keyword
from collections import namedtuple
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.codec import like, stripped
from slidewise.algebra.fingerprint import GENERATED, fingerprint, is_ours
from slidewise.algebra.kernel import leaf_values
from slidewise.algebra.laws import same
from slidewise.algebra.operator import Bound, Operator
from slidewise.errors import InputError, InputTypeError


def struct(**members) -> "Operator | BoundStruct":
    """Run several operators as one; the result is a struct with a field for each.

    Unbound members all read the same inputs (members without inputs, like `count()`, read none); a row with a null in
    one of them counts for none, and a window without rows gives null. Bound members (`sw.sum("x")`) each read their own
    columns, skip their own nulls and have their own `where=`.

    >>> import slidewise as sw
    >>> sw.struct(low=sw.min(), high=sw.max(), n=sw.count()).fold([3, 1, 2])
    Struct(low=1, high=3, n=3)
    >>> sw.struct(total=sw.sum("x"), peak=sw.max("y", where="valid")).needed
    ('x', 'y', 'valid')
    """
    if not members:
        raise InputError("struct needs at least one operator, as in sw.struct(low=sw.min(), high=sw.max())")
    for name, member in members.items():
        if not isinstance(member, (Operator, Bound)):
            raise InputTypeError(f"struct: {name} must be an operator, not {member!r}")
        if name.startswith("_"):
            raise InputError(f"struct: a field cannot be called {name!r}: no leading underscore")
    bound = {
        name: member if isinstance(member, Bound) else member()
        for name, member in members.items()
        if isinstance(member, Bound) or not member.inputs
    }
    if any(isinstance(member, Bound) for member in members.values()):
        if len(bound) < len(members):
            loose = ", ".join(name for name in members if name not in bound)
            raise InputError(f"struct: bind all members to columns, or none ({loose} is not)")
        return BoundStruct(bound)
    widths = {member.inputs for member in members.values() if member.inputs}
    if len(widths) > 1:
        counts = ", ".join(f"{name} {member.inputs}" for name, member in members.items())
        raise InputError(f"struct: unbound members read the same inputs, but these take different numbers: {counts}")
    return _struct(tuple(members), tuple(members.values()), max(widths, default=0))


@dataclass(frozen=True)
class BoundStruct:
    """Bound operators side by side. Engines compute each member as they would alone, and put the results together."""

    members: dict[str, Bound]
    operator: Operator = field(init=False, compare=False)
    """The product of the members over `columns`, with a flag for each member: see `product`."""

    def __post_init__(self):
        positions = [tuple(self.columns.index(c) for c in bound.columns) for bound in self.members.values()]
        made = product([bound.operator for bound in self.members.values()], positions, len(self.columns), tuple(self.members))
        object.__setattr__(self, "operator", made)

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


class Dual:
    """A function with two meanings: called, it runs interpreted; `py_func` is what Numba compiles."""

    def __init__(self, interpreted, compiled):
        self.interpreted, self.py_func = interpreted, compiled

    def __call__(self, *arguments):
        return self.interpreted(*arguments)


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


def _struct(names: tuple[str, ...], ops: tuple[Operator, ...], inputs: int) -> Operator:
    state, result = _tuple_class("StructState", names), _tuple_class("Struct", names)
    arguments = ", ".join(f"x{k}" for k in range(inputs))

    def resolve(kinds):
        return build(tuple(op.resolved(kinds if op.inputs else ()) for op in ops)).with_(resolve=None)

    def build(members) -> Operator:
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
        return Operator(
            lift=function(arguments, "State", "lift{i}({x})"),
            combine=function("a, b", "State", "combine{i}(a[{i}], b[{i}])"),
            inverse=function("total, old", "State", "inverse{i}(total[{i}], old[{i}])")
            if all(op.invertible for op in members)
            else None,
            lower=_made(["def f(s):", f"    return Result({', '.join(lowers)})"], env),
            identity=state(*(op.identity for op in members)),
            name="struct",
            params=tuple((name, op.signature) for name, op in zip(names, ops)),
            inputs=inputs,
            object_only=nullable or any(_runs_interpreted(op) for op in members),
            resolve=resolve,
            recipe=(_remake, (names, ops)),
            **_inherited(members),
            **_stored(members, state),
        )

    return build(ops)


def _remake(names: tuple[str, ...], ops: tuple[Operator, ...]):
    return struct(**dict(zip(names, ops)))


# ---- product ---------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A member's state, and how many values are in it."""

    n: int
    state: Any


class Answer(NamedTuple):
    """A member's result, and whether it has one."""

    ok: bool
    value: Any


def product(ops, positions, columns: int, names: tuple[str, ...] | None = None) -> Operator:
    """Many operators over a shared list of columns, each with a flag of its own that says whether an event counts for it.

    `positions[i]` are the columns that member i reads. An event is `(column 0, ..., flag 0, ...)`: all columns, then a flag for
    each member (nulls and `where=` are the caller's business; what a column holds where the flag is 0 is never looked at).
    The state has a `Part` for each member, the result an `Answer`. Compiled where all members have scalar or struct states.
    """
    ops, positions = tuple(ops), tuple(tuple(places) for places in positions)
    names = names or tuple(f"member{i}" for i in range(len(ops)))
    for op, places in zip(ops, positions, strict=True):
        if op.inputs != len(places) or not all(0 <= place < columns for place in places):
            raise InputError(f"product: {op.name} reads {op.inputs} of {columns} columns, got the places {places}")
    state, result = _tuple_class("ProductState", names), _tuple_class("Product", names)

    def resolve(kinds):
        found = [op.typed(tuple(kinds[place] for place in places)) for op, places in zip(ops, positions)]
        members = [typed.operator for typed in found]
        made = _interpreted_product(members, positions, columns, state, result)
        compiled = all(typed.compiled and typed.kind != "wide" for typed in found)
        if compiled:
            text = _compiled_product(found, positions, columns, state, result)
            made = {role: function and Dual(function, text[role]) for role, function in made.items()}
        return describe(members, made).with_(resolve=None, object_only=not compiled)

    def describe(members, functions) -> Operator:
        return Operator(
            name="product",
            identity=state(*(Part(0, op.identity) for op in members)),
            params=tuple((name, f"{op.signature}{list(at)}") for name, op, at in zip(names, ops, positions)),
            inputs=columns + len(ops),
            empty=(),  # every member says for itself what it gives without values
            resolve=resolve,
            **functions,
            **_inherited(members),
            **_stored([_part(op) for op in members], state),
        )

    return describe(ops, _interpreted_product(ops, positions, columns, state, result))


def _part(op: Operator) -> Operator:
    """How a member's Part is stored and compared."""
    encode, decode, equal = op.encode, op.decode, op.equal
    codec: dict = {"identity": Part(0, op.identity), "equal": None, "encode": None, "decode": None}
    if encode is not None and decode is not None:
        codec["encode"] = lambda part: (part.n, encode(part.state))
        codec["decode"] = lambda stored: Part(stored[0], decode(stored[1]))
    if equal is not None:
        codec["equal"] = lambda a, b: a.n == b.n and (a.n == 0 or equal(a.state, b.state))
    return op.with_(**codec)


def _interpreted_product(ops, positions, columns: int, state: type, result: type) -> dict:
    def lift(*event):
        return state(*(
            Part(1, op.lift(*(event[place] for place in places))) if event[columns + i] else Part(0, op.identity)
            for i, (op, places) in enumerate(zip(ops, positions))
        ))

    def combine(a, b):
        return state(*(
            y if x.n == 0 else x if y.n == 0 else Part(x.n + y.n, op.combine(x.state, y.state))
            for op, x, y in zip(ops, a, b)
        ))

    def inverse(total, old):
        return state(*(
            x if y.n == 0
            else Part(0, op.identity) if x.n == y.n
            else Part(x.n - y.n, op.inverse(x.state, y.state))
            for op, x, y in zip(ops, total, old)
        ))

    def lower(s):
        return result(*(_answer(op, part) for op, part in zip(ops, s)))

    return {
        "lift": lift,
        "combine": combine,
        "lower": lower,
        "inverse": inverse if all(op.invertible for op in ops) else None,
    }


def _answer(op: Operator, part: Part) -> Answer:
    if part.n == 0:
        return Answer(False, None) if op.empty is None else Answer(True, op.lower(op.identity))
    if op.defined is not None and not op.defined(part.state):
        return Answer(False, None)
    return Answer(True, op.lower(part.state))


def _compiled_product(found, positions, columns: int, state: type, result: type) -> dict:
    """The same functions as source text for Numba: no loops over members, every field of one type."""
    ops = [typed.operator for typed in found]
    env = {"State": state, "Result": result, "Part": Part, "Answer": Answer}
    env.update(_functions(ops, "lift", "combine", "lower", "inverse", "defined"))
    for i, typed in enumerate(found):
        env[f"cast{i}"], env[f"none{i}"] = _cast(typed.state), _constant(typed.state, typed.operator.identity)
        env[f"result{i}"], env[f"zero{i}"] = _cast(typed.result), _constant(typed.result, None)
    lift = [f"def f({', '.join([f'x{k}' for k in range(columns)] + [f'v{i}' for i in range(len(ops))])}):"]
    combine, inverse, lower = ["def f(a, b):"], ["def f(total, old):"], ["def f(s):"]
    for i, (op, places) in enumerate(zip(ops, positions)):
        values = ", ".join(f"x{place}" for place in places)
        lift += [f"    if v{i} != 0:", f"        m{i} = Part(1, cast{i}(lift{i}({values})))"]
        lift += ["    else:", f"        m{i} = Part(0, none{i}())"]
        combine += [f"    if a[{i}].n == 0:", f"        m{i} = b[{i}]"]
        combine += [f"    elif b[{i}].n == 0:", f"        m{i} = a[{i}]"]
        merged = f"cast{i}(combine{i}(a[{i}].state, b[{i}].state))"
        combine += ["    else:", f"        m{i} = Part(a[{i}].n + b[{i}].n, {merged})"]
        inverse += [f"    if old[{i}].n == 0:", f"        m{i} = total[{i}]"]
        inverse += [f"    elif old[{i}].n == total[{i}].n:", f"        m{i} = Part(0, none{i}())"]
        rest = f"cast{i}(inverse{i}(total[{i}].state, old[{i}].state))"
        inverse += ["    else:", f"        m{i} = Part(total[{i}].n - old[{i}].n, {rest})"]
        condition = f"s[{i}].n > 0" if op.empty is None else "True"
        if op.defined is not None:
            condition += f" and (s[{i}].n == 0 or defined{i}(s[{i}].state))"
        lower += [f"    if {condition}:", f"        m{i} = Answer(True, result{i}(lower{i}(s[{i}].state)))"]
        lower += ["    else:", f"        m{i} = Answer(False, zero{i}())"]
    end = ", ".join(f"m{i}" for i in range(len(ops)))
    return {
        "lift": _made([*lift, f"    return State({end})"], env),
        "combine": _made([*combine, f"    return State({end})"], env),
        "lower": _made([*lower, f"    return Result({end})"], env),
        "inverse": _made([*inverse, f"    return State({end})"], env) if all(op.invertible for op in ops) else None,
    }


def _cast(layout):
    """A function that gives every leaf of a value its own type."""
    env: dict = {}
    expression = layout.cast(env)
    return register_jitable(_made(["def f(s):", f"    return {expression}"], env))


def _constant(layout, value):
    """A function that gives this value, or zeros, in this layout."""
    leaves = layout.leaves
    numbers = [0] * len(leaves) if value is None else leaf_values(value)
    env: dict = {f"v{k}": leaf.dtype.type(number) for k, (leaf, number) in enumerate(zip(leaves, numbers))}
    expression = layout.build(lambda k, path, leaf: f"bool(v{k})" if leaf.dtype == np.bool_ else f"v{k}", env)
    return register_jitable(_made(["def f():", f"    return {expression}"], env))
