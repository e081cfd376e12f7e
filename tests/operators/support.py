"""What the tests of operators share: every operator with its parameters, values of every kind, and a compiled fold."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import slidewise as sw
from slidewise.algebra.cache import entry
from slidewise.algebra.kernel import combine, emit, get, inverse, lift, open_arrays, open_state, ptr, put, reset, row
from slidewise.operators import OPERATORS
from slidewise.operators.making import REGISTRY

DTYPES = {"int": np.dtype(np.int64), "float": np.dtype(np.float64), "object": object}


def every_operator() -> dict[str, sw.Operator]:
    """Every operator of the library, by what a test is called: its example, and parameters that change its functions."""
    made = {name: function(**REGISTRY[name].example) for name, function in OPERATORS.items()}
    made["count(x)"] = sw.count("x").operator
    made["sum(exact)"] = sw.sum(exact=True)
    made["mean(exact)"] = sw.mean(exact=True)
    made["std(ddof=0)"] = sw.std(ddof=0)
    made["nth_youngest(1)"] = sw.nth_youngest(n=1)
    made["bloom(item)"] = sw.bloom(bits=256, item=3)
    made["naive_bayes(given)"] = sw.naive_bayes(given=1)
    made["approx_distinct(small)"] = sw.approx_distinct(lg_k=4)
    made["approx_distinct(sketch)"] = sw.approx_distinct(lg_k=4, sketch=True)
    made["approx_count(small)"] = sw.approx_count(item=3, width=8, depth=2)
    return made


EVERY = every_operator()


def resolved(op: sw.Operator, kind: str) -> sw.Operator | None:
    """The operator for inputs of one kind; None where it refuses them."""
    try:
        return op.resolved((DTYPES[kind],) * op.inputs)
    except TypeError:
        return None


def serving(kinds=("int", "float")) -> list[tuple[str, str]]:
    """(name, kind) of every operator and kind of input that it serves."""
    return [(name, kind) for name, op in EVERY.items() for kind in kinds if resolved(op, kind) is not None]


def values(op: sw.Operator, kind: str):
    """A strategy for single inputs: the whole range where the operator is exact, tame floats where it is not."""
    if kind == "object":
        return st.text("abc", max_size=3)
    if kind == "int":
        if op.name == "product":
            return st.integers(-5, 5)
        return st.integers(-10, 10) | st.integers(-(2**63), 2**63 - 1) if op.name != "spread" else st.integers(-(2**61), 2**61)
    if op.exact:
        return st.sampled_from([0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]) | st.floats(allow_nan=True)
    return st.floats(-1000, 1000, allow_subnormal=False) if op.name != "product" else st.floats(-4, 4, allow_subnormal=False)


def events(op: sw.Operator, kind: str, **sizes):
    """A strategy for lists of events: tuples of inputs."""
    return st.lists(st.tuples(*[values(op, kind)] * op.inputs), **sizes)


def fold(op: sw.Operator, items):
    """The state of some events, from the left; the identity of none."""
    state = op.identity
    for k, event in enumerate(items):
        state = op.lift(*event) if k == 0 else op.combine(state, op.lift(*event))
    return state


def answer(op: sw.Operator, items, state):
    """What a window with these events and this state gives."""
    if not items:
        return None if op.empty is None else op.lower(state)
    return op.lower(state) if op.defined is None or op.defined(state) else None


def close(op: sw.Operator, items):
    """The tolerance of a comparison of states: 0 where the operator is exact, else far above rounding, far below the values."""
    if op.exact:
        return 0.0
    largest = max((abs(float(v)) for event in items for v in event if math.isfinite(v)), default=1.0)
    return 1e-9 * max(1.0, largest) ** 2 * (4.0 ** len(items) if op.name == "product" else 1.0)


# ---- compiled --------------------------------------------------------------------------------------------------------

LIFT, RESET, COMBINE, INVERSE, EMIT = range(5)


@entry
def run_program(op, X_, V_, steps, OUT_, OK_):
    """A list of steps (what, a, b, out) over state slots: each word is compiled once, whatever the grouping."""
    X, V, OUT, OK = open_arrays(X_), open_state(op, V_), open_arrays(OUT_), ptr(OK_)
    for k in range(len(steps) // 4):
        what, a, b, out = steps[4 * k], steps[4 * k + 1], steps[4 * k + 2], steps[4 * k + 3]
        if what == LIFT:
            put(op, V, out, lift(op, get(op, V, out), row(X, a)))
        elif what == RESET:
            put(op, V, out, reset(op, get(op, V, out)))
        elif what == COMBINE:
            put(op, V, out, combine(op, get(op, V, out), get(op, V, a), get(op, V, b)))
        elif what == INVERSE:
            put(op, V, out, inverse(op, get(op, V, out), get(op, V, a), get(op, V, b)))
        else:
            emit(op, OUT, OK, out, get(op, V, a))


def grouped(n: int, choices) -> list[int]:
    """Steps that combine n events in an order given by `choices` (which two neighbours next, and which slot takes the result)."""
    steps = [word for k in range(n) for word in (LIFT, k, 0, k)]
    slots = list(range(n))
    while len(slots) > 1:
        k = choices(len(slots) - 1)
        left, right = slots[k], slots[k + 1]
        out = (left, right, n)[choices(3)]  # a spare slot, or one of the arguments
        steps += [COMBINE, left, right, out]
        if out == n:  # give the spare slot back
            steps += [RESET, 0, 0, left, COMBINE, left, n, left]
            out = left
        slots[k : k + 2] = [out]
    steps += [EMIT, slots[0], 0, 0]
    return steps


def taken_back(n: int) -> list[int]:
    """Steps that put two events in front of all n and take them away again, the oldest first."""
    steps = grouped(n, lambda count: 0)
    total = 0
    for k in (1, 0):
        steps += [LIFT, k, 0, n, COMBINE, n, total, total]
    for k in (0, 1):
        steps += [LIFT, k, 0, n, INVERSE, total, n, total]
    return [*steps, EMIT, total, 0, 1]


def compiled_results(op: sw.Operator, dtypes: tuple, items, choices) -> list:
    """The results of some ways to combine events, as Python values; None where there is none."""
    typed = op.typed(dtypes)
    assert typed.compiled, typed.reason
    n = len(items)
    X = tuple(np.array([event[k] for event in items], dtype) for k, dtype in enumerate(dtypes))
    found = []
    programs = [grouped(n, lambda count: 0), grouped(n, choices)]
    if typed.operator.invertible and n > 1:
        programs.append(taken_back(n))
    for steps in programs:
        V, OUT, OK = typed.state.alloc(n + 1), typed.result.alloc(2), np.zeros(2, np.uint8)
        run_program(typed, X, V, np.array(steps), OUT, OK)
        found += [_result(typed, OUT, k) if OK[k] else None for k in range(2 if len(programs) > 2 and steps is programs[2] else 1)]
    return found


def _result(typed, OUT, k):
    width = typed.result.width
    if width is not None:
        return OUT[0][k * width : (k + 1) * width].tolist()
    leaves = [array[k].item() for array in OUT]
    if typed.result.kind == "scalar":
        return bool(leaves[0]) if typed.result.leaves[0].dtype == np.bool_ else leaves[0]
    return tuple(leaves)


# ---- oracles ---------------------------------------------------------------------------------------------------------


def squares(xs) -> tuple[Fraction, Fraction]:
    """The exact sum of squared deviations from the mean, and the exact sum of squares."""
    exact = [Fraction(x) for x in xs]
    mean = sum(exact) / len(exact)
    return sum((x - mean) ** 2 for x in exact), sum(x * x for x in exact)
