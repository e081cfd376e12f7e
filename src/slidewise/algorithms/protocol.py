"""What an algorithm is, and how drivers call one without knowing its name.

An in-order algorithm is one module of kernels over four things: a header H of int64 words, work space W (int64), state
slots V (algebra.kernel), and m, its capacity less one (the capacity is a power of two, so `position & m` is a slot).
While a driver runs, the header and the few partials it keeps live in `st`, a tuple of locals that the kernels take and
return (this is worth a factor of five: LLVM keeps it in registers).

    HEADER                                  int64 words of H
    RINGS                                   rings of m + 1 states in V; extras start at slot RINGS * (m + 1)
    EXTRAS                                  partials kept beside the rings
    WORDS                                   rings of m + 1 int64 words in W
    fresh(op, W, V, m) -> st                the empty window
    load(op, H, W, V, m) -> st              st from H and the extras;   save(op, H, W, V, m, st) is its opposite
    insert(op, W, V, m, st, s) -> st        the driver sees to it that there is room
    evict(op, W, V, m, st) -> st            the driver sees to it that there is something
    query(op, W, V, m, st, out) -> st, state    of everything; out: a scratch state; st, because a query may cache
    size(st) -> int
    move(op, H, W, V, m, W2, V2, m2)        copy what lives, and only that, into arrays of another size: zeroed, blank
    check(op, H, W, V, m)                   assert every invariant, on plain Python lists: what passes is safe to run

and where it can (INFO.offers says so):

    bulk_evict(op, W, V, m, st, count) -> st                the `count` oldest at once
    evict_at(op, W, V, m, st, j) -> st                      the j-th oldest, wherever it is
    entry(op, W, V, m, st, j, out) -> st, state             of the j-th oldest event ("items")
    query_range(op, W, V, m, st, i, j, out) -> st, state    of the i-th up to the j-th oldest, both included
    query_youngest(op, W, V, m, st, r, out) -> st, state    of the r youngest
    full(st, m) -> bool                                     no room for one more; unless given: size(st) > m
    refuse(op, insist) -> str | None                        why it cannot serve a typed operator; plain Python

A tree (order "any") has another protocol: see algorithms/fiba.py.

`INFO` tells people, the planner and `sw.algorithms()` what it is; `Algorithm(module)` is what drivers get.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from slidewise.algebra.fingerprint import GENERATED, fingerprint
from slidewise.algebra.kernel import leaf_values, twin
from slidewise.errors import InputError

SCRATCH = 2
"""State slots behind an algorithm's own that belong to the driver: one to lift into, one to query into."""


@dataclass(frozen=True)
class Info:
    """What `sw.algorithms()` says of an algorithm."""

    name: str
    paper: str
    summary: str
    order: str
    """`in`: events come in the order of time; `any`: any order."""
    bounds: dict[str, str]
    """Combines for each operation, as the paper states them."""
    needs: tuple[str, ...] = ()
    """Laws the operator must declare, beyond associativity."""
    offers: tuple[str, ...] = ()
    """Operations beyond insert, evict and query."""
    stores: str = ""
    """Partials kept for a window of n."""


@dataclass(frozen=True, eq=False)
class Algorithm:
    """An algorithm as drivers see it: compiled through its tag, interpreted through its twin."""

    module: Any
    info: Info = field(init=False)
    _twins: dict[str, Any] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "info", self.module.INFO)
        functions = [v for v in vars(self.module).values() if hasattr(v, "py_func")]
        key = f"{self.info.name}:{fingerprint(*functions) or f'unfiled-{id(self):x}'}"
        object.__setattr__(self, "_numba_type_", AlgorithmType(key))
        ALGORITHMS[key] = self

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def interpreted(self):
        return twin(self.module)

    def lacks(self, name: str) -> bool:
        return not hasattr(self.module, name)

    def twin(self, name: str, parameters: str, otherwise: str):
        """The interpreted meaning of a word of the protocol."""
        if name not in self._twins:
            space = vars(self.interpreted)
            use_other = self.lacks(name) and otherwise
            self._twins[name] = eval(f"lambda {parameters}: {otherwise}", space) if use_other else space[name]
        return self._twins[name]

    def __repr__(self) -> str:
        return f"<algorithm {self.name}>"


def has_float_states(op) -> bool:
    """Whether a typed operator's states hold floating-point numbers: what an inverse is never exact on."""
    if op.state is not None:
        return any(leaf.dtype.kind == "f" for leaf in op.state.leaves)
    samples = [op.identity]
    try:
        samples.append(op.operator.lift(*(1 if d is object else d.type(1) for d in op.inputs)))
    except Exception:  # it takes other objects than numbers: its identity must tell
        pass
    return any(_has_float(sample) for sample in samples)


def _has_float(state) -> bool:
    if isinstance(state, (tuple, list)):
        return any(_has_float(part) for part in state)
    if isinstance(state, dict):
        return any(_has_float(part) for part in state.values())
    return isinstance(state, (float, np.floating)) or (isinstance(state, np.ndarray) and state.dtype.kind == "f")


def arrays(alg: Algorithm, op, capacity: int, more: int = 0):
    """H, W, V, m and scratch of an empty window of that capacity (a power of two).

    Every word is 0 and every slot holds the identity: with every algorithm that is what `fresh` makes. `more` words and slots
    follow the algorithm's own (see slick_deque.run_ranges)."""
    if capacity < 1 or capacity & (capacity - 1):
        raise InputError(f"a capacity is a power of two, not {capacity}")
    module = alg.module
    scratch = module.RINGS * capacity + module.EXTRAS
    words, slots = module.WORDS * capacity + more, scratch + SCRATCH + more
    if not op.compiled:
        return [0] * module.HEADER, [0] * words, [op.identity] * slots, capacity - 1, scratch
    V = op.state.alloc(slots)
    if op.kind == "wide":
        V[0].reshape(slots, op.state.width)[:] = op.identity
    else:
        for array, value in zip(V, leaf_values(op.identity), strict=True):
            array[:] = value
    return np.zeros(module.HEADER, np.int64), np.zeros(words, np.int64), V, capacity - 1, scratch


def capacity_for(count: int) -> int:
    """The smallest capacity that holds so many."""
    return 1 << max(0, int(count) - 1).bit_length()


ALGORITHMS: dict[str, Algorithm] = {}


class AlgorithmType(types.Type):
    """The compile-time tag of an algorithm."""

    def __init__(self, key: str):
        self.algorithm_key = key
        super().__init__(name=f"algorithm[{key}]")

    @property
    def key(self):
        return self.algorithm_key


@typeof_impl.register(Algorithm)
def _typeof_algorithm(value, context):
    return value._numba_type_


register_model(AlgorithmType)(models.OpaqueModel)


@unbox(AlgorithmType)
def _unbox_algorithm(kind, value, context):
    return NativeValue(context.context.get_dummy_value())


def _word(name: str, parameters: str, otherwise: str = ""):
    """A word of the protocol: interpreted it calls the twin, compiled it is resolved by the tag.

    `otherwise` is what it means, in terms of the module's other functions, where a module does not define it."""

    space: dict = {}
    call = f"alg.twin({name!r}, {parameters!r}, {otherwise!r})({parameters})"
    exec(compile(f"def {name}_(alg, {parameters}):\n    return {call}", GENERATED, "exec"), space)
    word = space[f"{name}_"]
    word.__doc__ = f"`{name}` of the algorithm's module."

    def resolve(alg, *arguments):
        if not isinstance(alg, AlgorithmType):
            return None
        algorithm = ALGORITHMS[alg.algorithm_key]
        inner = {key: value for key, value in vars(algorithm.module).items() if hasattr(value, "py_func")}
        meaning = otherwise if algorithm.lacks(name) and otherwise else f"{name}({parameters})"
        exec(compile(f"def impl(alg, {parameters}):\n    return {meaning}", GENERATED, "exec"), inner)
        return inner["impl"]

    outer = {"resolve": resolve}
    exec(f"def typer(alg, {parameters}):\n    return resolve(alg, {parameters})", outer)
    overload(word)(outer["typer"])
    return word


fresh_ = _word("fresh", "op, W, V, m")
load_ = _word("load", "op, H, W, V, m")
save_ = _word("save", "op, H, W, V, m, st")
insert_ = _word("insert", "op, W, V, m, st, s")
evict_ = _word("evict", "op, W, V, m, st")
query_ = _word("query", "op, W, V, m, st, out")
size_ = _word("size", "st")
move_ = _word("move", "op, H, W, V, m, W2, V2, m2")
bulk_evict_ = _word("bulk_evict", "op, W, V, m, st, count")
entry_ = _word("entry", "op, W, V, m, st, j, out")
query_range_ = _word("query_range", "op, W, V, m, st, i, j, out")
query_youngest_ = _word("query_youngest", "op, W, V, m, st, r, out")
evict_at_ = _word("evict_at", "op, W, V, m, st, j")
full_ = _word("full", "st, m", otherwise="size(st) > m")
