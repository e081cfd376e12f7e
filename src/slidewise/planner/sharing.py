"""One state for several aggregates: count, sum, mean, var and std of the same column need two sums and the central moments.

    mean's state     (n, total)          serves count, sum, mean
    var's state      (n, mean, m2)       serves var, std, whatever their ddof
    both side by side                    serve all five, in one pass

Where all rows are at hand, aggregates of one column that take the same algorithm (max beside mean) go in one pass as well, their
states side by side (`side_by_side`, called by the plan once algorithms are chosen): frames are read once, and while one state
waits for a sum the processor works on the others.

Each result is lowered by its own operator from the same numbers as if it were alone, so that shared and separate plans agree to
the last bit. Only operators of the library share, and only where their states are compiled.
"""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from numba.extending import register_jitable

from slidewise.algebra.layout import Leaf
from slidewise.algebra.operator import Bound, Operator

SUMS, MOMENTS = ("count", "sum", "mean"), ("var", "std")
MOST_NUMBERS = 8
"""Numbers of states side by side: with more, a processor runs out of registers, and compiling takes long."""


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


def may_join(group: Group, types: tuple) -> bool:
    """Whether this group's state can lie beside others: compiled, of the library, numbers as results, not invertible (beside
    one that is not, it would lose its inverse)."""
    op = group.bound.operator
    typed = op.typed(types)
    if not (op.own and len(types) == 1 and typed.kind in ("scalar", "struct")) or typed.operator.inverse is not None:
        return False
    if len(group.views) > 1:
        return True
    shape = typed.result.shape
    undefined = typed.operator.defined is None or shape == Leaf(np.dtype(np.float64))  # there is a float to put in its place
    return isinstance(shape, Leaf) and not typed.optional and undefined


def side_by_side(groups: list[Group], types: tuple) -> list[Group]:
    """Groups over the same inputs as few: as many side by side as a state may have numbers."""
    found, taken = [], [groups[0]]
    for group in groups[1:]:
        if sum(len(one.bound.operator.typed(types).state.leaves) for one in (*taken, group)) > MOST_NUMBERS:
            found.append(_one_of(taken, types))
            taken = []
        taken.append(group)
    return [*found, _one_of(taken, types)]


def _one_of(groups: list[Group], types: tuple) -> Group:
    if len(groups) == 1:
        return groups[0]
    members = {view.aggregate: view.bound for group in groups for view in group.views}
    signature = lambda name: (members[name].operator.name, members[name].operator.params)
    made = _together({name: members[name] for name in sorted(members, key=signature)}, types)  # compiled once for any order
    places = list(members)
    return Group(made.bound, tuple(sorted(made.views, key=lambda view: places.index(view.aggregate))))


def _together(members: dict[str, Bound], types: tuple) -> Group:
    from slidewise import operators

    by_name: dict[str, Operator] = {bound.operator.name: bound.operator for bound in members.values()}
    moments = next((by_name[name] for name in MOMENTS if name in by_name), None)
    cores: list[Operator] = []
    served: dict[str, int] = {}  # the core that serves an operator
    if "mean" in by_name or ("count" in by_name and moments is None):
        cores.append(by_name.get("mean", operators.OPERATORS["mean"]()).resolved(types))
        served |= dict.fromkeys(SUMS, 0)
    if moments is not None:
        served = dict.fromkeys((*MOMENTS, "count"), len(cores)) | served
        cores.append(moments.resolved(types))
    place = {}
    for name, bound in members.items():
        place[name] = served.get(bound.operator.name, len(cores))
        if place[name] == len(cores):
            cores.append(bound.operator.resolved(types))
    made = _combined(tuple(members.items()), tuple(cores), place, types)
    first = next(iter(members.values()))
    views, leaf = [], 0
    for name, bound in members.items():
        has_flag = bound.operator.resolved(types).defined is not None
        views.append(View(name, bound, leaf, leaf + 1 if has_flag else None))
        leaf += 2 if has_flag else 1
    return Group(Bound(made, first.columns, first.where), tuple(views))


_made: dict[tuple, Operator] = {}


def _combined(members: tuple, cores: tuple[Operator, ...], place: dict[str, int], types: tuple) -> Operator:
    """The cores side by side, lowered to every member's result."""
    signature = tuple((bound.operator.name, bound.operator.params) for _, bound in members)
    key = (signature, tuple(map(str, types)))
    if key in _made:
        return _made[key]
    several = len(cores) > 1
    space: dict = {}
    for k, core in enumerate(cores):
        for role in ("lift", "combine"):
            space[f"{role}{k}"] = register_jitable(getattr(core, role))
    fields, values = [], []
    for number, (name, bound) in enumerate(members):
        op = bound.operator.resolved(types)
        state = f"s[{place[name]}]" if several else "s"
        space[f"lower{number}"] = register_jitable(op.lower)
        fields.append(f"r{number}")
        text = _view(op.name, number, state, cores[place[name]])
        if op.defined is None:
            values.append(text)
        else:
            space[f"defined{number}"] = register_jitable(op.defined)
            fields.append(f"d{number}")
            values += [f"({text} if defined{number}({state}) else 0.0)", f"defined{number}({state})"]
    space["Results"] = namedtuple("Results", fields)
    source = [f"def lower(s):\n    return Results({', '.join(values)})"]
    if several:
        each = range(len(cores))
        source += [
            f"def lift(x):\n    return ({', '.join(f'lift{k}(x)' for k in each)})",
            f"def combine(a, b):\n    return ({', '.join(f'combine{k}(a[{k}], b[{k}])' for k in each)})",
        ]
    exec("\n".join(source), space)
    made = Operator(
        lift=space["lift"] if several else cores[0].lift,
        combine=space["combine"] if several else cores[0].combine,
        lower=space["lower"],
        identity=tuple(core.identity for core in cores) if several else cores[0].identity,
        inverse=None if several else cores[0].inverse,
        name="+".join(dict.fromkeys(bound.operator.name for _, bound in members)),
        commutative=all(core.commutative for core in cores),
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


def _view(name: str, number: int, state: str, core: Operator) -> str:
    """The text that lowers a member's result from the state."""
    fields = getattr(type(core.identity), "_fields", ())
    if name == "count":
        return f"{state}.n"
    if name == "sum" and "total" in fields:
        return f"lower{number}({state}.total)"
    return f"lower{number}({state})"
