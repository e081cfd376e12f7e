"""One state for several aggregates: count, sum, mean, var and std of the same column need two sums and the central moments.

    mean's state     (n, total)          serves count, sum, mean
    var's state      (n, mean, m2)       serves var, std, whatever their ddof
    both side by side                    serve all five, in one pass

Each result is lowered by its own operator from the same numbers as if it were alone, so that shared and separate plans agree to
the last bit. Only operators of the library share, and only where their states are compiled.
"""

from collections import namedtuple
from dataclasses import dataclass

from numba.extending import register_jitable

from slidewise.algebra.operator import Bound, Operator

SUMS, MOMENTS = ("count", "sum", "mean"), ("var", "std")


@dataclass(frozen=True)
class View:
    """One aggregate of a step: where its result is among the leaves of the step's results."""

    aggregate: str
    bound: Bound
    value: int = 0
    flag: int | None = None
    """The leaf that says whether the result is defined; None: it always is, where the window is not empty."""


@dataclass(frozen=True)
class Group:
    """An operator and the aggregates it serves."""

    bound: Bound
    views: tuple[View, ...]


def grouped(aggregates: dict[str, Bound], types_of) -> list[Group]:
    """Aggregates that can share a state, together; the others alone. types_of(bound): the types of its inputs."""
    families: dict[tuple, dict[str, Bound]] = {}
    alone: list[Group] = []
    for name, bound in aggregates.items():
        if _may_share(bound):
            families.setdefault((bound.columns, bound.where), {})[name] = bound
        else:
            alone.append(Group(bound, (View(name, bound),)))
    found = list(alone)
    for members in families.values():
        found += _family(members, types_of(next(iter(members.values()))))
    places = {name: place for place, name in enumerate(aggregates)}
    return sorted(found, key=lambda group: min(places[view.aggregate] for view in group.views))


def _may_share(bound: Bound) -> bool:
    op = bound.operator
    return (
        isinstance(bound, Bound)
        and op.own
        and op.name in SUMS + MOMENTS
        and op.inputs == 1
        and not dict(op.params).get("exact")
    )


def _family(members: dict[str, Bound], types: tuple) -> list[Group]:
    """The groups of the members of one family, by input type: what is exact stays exactly invertible, and so apart."""
    whole = types[0] is object or types[0].kind != "f"
    sums = {name: bound for name, bound in members.items() if bound.operator.name in SUMS}
    moments = {name: bound for name, bound in members.items() if bound.operator.name in MOMENTS}
    parts = [sums, moments] if whole or not (sums and moments) else [members]
    found = []
    for part in filter(None, parts):
        if len(part) == 1 or types[0] is object:
            found += [Group(bound, (View(name, bound),)) for name, bound in part.items()]
        else:
            found.append(_together(part, types))
    return found


def _together(members: dict[str, Bound], types: tuple) -> Group:
    from slidewise import operators

    names = [bound.operator.name for bound in members.values()]
    cores: list[Operator] = []
    if any(name in ("sum", "mean") for name in names) or not any(name in MOMENTS for name in names):
        mean = next((b.operator for b in members.values() if b.operator.name == "mean"), operators.OPERATORS["mean"]())
        cores.append(mean.resolved(types))
    if any(name in MOMENTS for name in names):
        cores.append(next(b.operator for b in members.values() if b.operator.name in MOMENTS).resolved(types))
    made = _combined(tuple(members.items()), tuple(cores), types)
    first = next(iter(members.values()))
    views, leaf = [], 0
    for name, bound in members.items():
        has_flag = bound.operator.resolved(types).defined is not None
        views.append(View(name, bound, leaf, leaf + 1 if has_flag else None))
        leaf += 2 if has_flag else 1
    return Group(Bound(made, first.columns, first.where), tuple(views))


_made: dict[tuple, Operator] = {}


def _combined(members: tuple, cores: tuple[Operator, ...], types: tuple) -> Operator:
    """The cores side by side, lowered to every member's result."""
    signature = tuple((bound.operator.name, bound.operator.params) for _, bound in members)
    key = (signature, tuple(map(str, types)))
    if key in _made:
        return _made[key]
    two = len(cores) == 2
    space: dict = {}
    for k, core in enumerate(cores):
        for role in ("lift", "combine", "inverse"):
            function = getattr(core, role)
            if function is not None:
                space[f"{role}{k}"] = register_jitable(function)
    fields, values = [], []
    for place, (_, bound) in enumerate(members):
        op = bound.operator.resolved(types)
        state = "s[1]" if op.name in MOMENTS and two else "s[0]" if two else "s"
        space[f"lower{place}"] = register_jitable(op.lower)
        fields.append(f"r{place}")
        text = _view(op.name, place, state, cores[0])
        if op.defined is None:
            values.append(text)
        else:
            space[f"defined{place}"] = register_jitable(op.defined)
            fields.append(f"d{place}")
            values += [f"({text} if defined{place}({state}) else 0.0)", f"defined{place}({state})"]
    space["Results"] = namedtuple("Results", fields)
    source = [f"def lower(s):\n    return Results({', '.join(values)})"]
    if two:
        source += [
            "def lift(x):\n    return (lift0(x), lift1(x))",
            "def combine(a, b):\n    return (combine0(a[0], b[0]), combine1(a[1], b[1]))",
        ]
    exec("\n".join(source), space)
    inverse = None if two else cores[0].inverse
    made = Operator(
        lift=space["lift"] if two else cores[0].lift,
        combine=space["combine"] if two else cores[0].combine,
        lower=space["lower"],
        identity=tuple(core.identity for core in cores) if two else cores[0].identity,
        inverse=inverse,
        name="+".join(dict.fromkeys(bound.operator.name for _, bound in members)),
        commutative=True,
        inputs=1,
        own=True,
        exact=all(core.exact for core in cores),
        recipe=(remade, (members, types)),
    )
    _made[key] = made
    return made


def remade(members: tuple, types: tuple) -> Operator:
    """The same operator in another process."""
    return _together(dict(members), types).bound.operator


def _view(name: str, place: int, state: str, core: Operator) -> str:
    """The text that lowers a member's result from the state."""
    fields = getattr(type(core.identity), "_fields", ())
    if name == "count":
        return f"{state}.n"
    if name == "sum" and "total" in fields:
        return f"lower{place}({state}.total)"
    return f"lower{place}({state})"
