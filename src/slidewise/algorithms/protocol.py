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
    query(op, W, V, m, st, out) -> state    out: a scratch state
    size(st) -> int
    move(op, H, W, V, m, W2, V2, m2)        copy into larger (or smaller) arrays; H keeps its meaning
    check(op, H, W, V, m)                   assert every invariant; interpreted only

and where it can: bulk_evict(op, W, V, m, st, count) -> st; entry(op, W, V, m, st, j, out) -> state of the j-th
oldest event; query_range(op, W, V, m, st, i, j, out) -> state of the i-th up to the j-th oldest, both included.

A tree (order "any") has another protocol: see algorithms/fiba.py.

`INFO` tells people, the planner and `sw.algorithms()` what it is; `Algorithm(module)` is what drivers get.
"""

from dataclasses import dataclass, field

from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from slidewise.algebra.fingerprint import fingerprint
from slidewise.algebra.kernel import twin

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

    module: object
    info: Info = field(init=False)

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

    def __repr__(self) -> str:
        return f"<algorithm {self.name}>"


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


def _word(name: str, parameters: str):
    """A word of the protocol: interpreted it calls the twin, compiled it is resolved by the tag."""
    space: dict = {}
    exec(f"def {name}_(alg, {parameters}):\n    return alg.interpreted.{name}({parameters})", space)
    word = space[f"{name}_"]
    word.__doc__ = f"`{name}` of the algorithm's module."

    def resolve(alg, *arguments):
        if not isinstance(alg, AlgorithmType):
            return None
        inner = {"f": getattr(ALGORITHMS[alg.algorithm_key].module, name)}
        exec(f"def impl(alg, {parameters}):\n    return f({parameters})", inner)
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
