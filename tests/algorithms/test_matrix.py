"""Every algorithm x every operator it serves x window sizes, against recalc. Adding an algorithm adds a line in MODULES."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest
from tests.algorithms import cases
from tests.algorithms.support import IN_ORDER, run_frames

from slidewise.algebra.typed import InterpretedWarning
from slidewise.algorithms import algorithm, serves
from slidewise.planner.ladder import RUNGS, Task, choose
from slidewise.planner.request import PREFERENCES

SIZES = (1, 2, 3, 7, 64)

RUNG = {rung.algorithm for rung in RUNGS if rung.algorithm in IN_ORDER and rung.algorithm not in ("recalc", "flatfat")}
"""What the planner chooses from, less the oracle and what only streams and `Live` take (which have kernels of their own)."""

pytestmark = pytest.mark.filterwarnings("ignore::slidewise.algebra.typed.InterpretedWarning")


@cache
def frames() -> dict[str, tuple[list[int], list[int]]]:
    """Frames [start, end) over the rows, by name: fixed sizes, and ends that move as they like (also over each other)."""
    rows = range(cases.ROWS)
    found = {f"size {w}": ([max(0, i + 1 - w) for i in rows], [i + 1 for i in rows]) for w in SIZES}
    rng = np.random.default_rng(7)
    start = end = 0
    starts, ends = [], []
    while end < cases.ROWS:
        end = min(cases.ROWS, end + int(rng.choice([0, 0, 1, 1, 2, 3, 25])))
        start = min(end, start + int(rng.choice([0, 0, 1, 1, 2, 4, 30])))
        starts.append(start)
        ends.append(end)
    found["varying"] = starts, ends
    return found


MASK = (np.random.default_rng(3).random(cases.ROWS) < 0.8).astype(np.uint8)


def runs(name: str, op, X) -> dict[str, list]:
    answers = {kind: run_frames(name, op, X, *ends) for kind, ends in frames().items()}
    answers["masked"] = run_frames(name, op, X, *frames()["varying"], MASK)
    return answers


@cache
def oracle(case: cases.Case) -> dict[str, list]:
    return runs("recalc", case.typed.as_object(), case.X)


def agree(a, b, exact: bool) -> bool:
    """Whether two results are the same: to the bit where the operator is exact, within rounding where it is not."""
    if isinstance(a, np.generic):
        a = a.item()
    if isinstance(b, np.generic):
        b = b.item()
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a).tolist(), np.asarray(b).tolist()
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(agree(x, y, exact) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if exact:
            return a == b and math.copysign(1, a) == math.copysign(1, b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(agree(a[k], b[k], exact) for k in a)
    return type(a) is type(b) and a == b


def assert_equals_recalc(name: str, case: cases.Case, op) -> None:
    exact = op.operator.exact
    for kind, answers in runs(name, op, case.X).items():
        for i, (got, want) in enumerate(zip(answers, oracle(case)[kind], strict=True)):
            assert agree(got, want, exact), f"{name}, {case}, {kind}, frame {i}: {got!r}, recalc says {want!r}"


def chosen(case: cases.Case) -> set[str]:
    """What the planner takes for this operator, whatever is preferred and however many windows there are."""
    return {choose(Task(case.typed, windows, prefer)).algorithm for prefer in PREFERENCES for windows in (1, 2, 20)}


def way(name: str, case: cases.Case) -> tuple:
    """What the code of an algorithm depends on: the kind of state, and which law it goes by if it needs one."""
    return name, case.typed.kind, bool(algorithm(name).info.needs) and case.typed.operator.selective


with warnings.catch_warnings():
    warnings.simplefilter("ignore", InterpretedWarning)
    CASES = cases.every()
    SERVED = [(name, case) for name in IN_ORDER for case in CASES if serves(name, case.typed) is None]
    FAST = [(name, case) for name, case in SERVED if case.typed.compiled]
    CHOSEN = [(name, case) for name, case in FAST if name in chosen(case)]
    # Compiling takes long: elsewhere one operator of each kind, one that does not commute if there is one.
    best_last = reversed(sorted(FAST, key=lambda pair: pair[1] not in cases.NON_COMMUTATIVE.values()))
    ONE = {way(*pair): pair for pair in best_last}
    OTHERS = [pair for key, pair in ONE.items() if key not in {way(*pair) for pair in CHOSEN}]


@pytest.mark.parametrize(("name", "case"), SERVED, ids=str)
def test_interpreted(name, case):
    assert_equals_recalc(name, case, case.typed.as_object())


@pytest.mark.parametrize(("name", "case"), CHOSEN, ids=str)
def test_compiled(name, case):
    assert_equals_recalc(name, case, case.typed)


@pytest.mark.parametrize(("name", "case"), OTHERS, ids=str)
def test_compiled_for_one_operator_of_each_kind(name, case):
    assert_equals_recalc(name, case, case.typed)


def test_every_kind_is_there():
    kinds = {case.typed.kind for case in CASES}
    assert kinds == {"scalar", "struct", "wide", "object"}
    for kind, case in cases.NON_COMMUTATIVE.items():
        assert case.typed.kind == kind or kind == "object", f"{case} is {case.typed.kind}: {case.typed.reason}"
        op = case.typed.operator
        a, b = (op.lift(x) for x in (4, 7))
        assert not agree(op.combine(a, b), op.combine(b, a), True), f"{case} commutes"


def test_the_matrix_is_not_empty():
    served = {name for name, _ in SERVED}
    assert served == set(IN_ORDER)
    assert {name for name, _ in CHOSEN} == RUNG
    assert {case for _, case in CHOSEN} == {case for case in CASES if case.typed.compiled}
    assert {way(*pair) for pair in FAST} == {way(*pair) for pair in CHOSEN + OTHERS}
    assert {(name, case) for name, case in FAST if name not in RUNG and case in cases.NON_COMMUTATIVE.values()} == {
        (name, case) for name, case in OTHERS if name not in RUNG
    }, "one for each kind of state, and none of them commutes"
    assert len({case.name for _, case in SERVED}) > 30
