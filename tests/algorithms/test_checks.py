"""check() catches what is broken: every assertion of every algorithm's check can fail, and does on damaged arrays."""

from __future__ import annotations

import ast
import copy
import inspect
import random
import traceback
from itertools import product

import pytest
from tests.algorithms.support import IN_ORDER, Running

import slidewise as sw
from slidewise.algorithms import algorithm, serves

LETTERS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters")
TOTAL = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a + b, inverse=lambda total, old: total - old, identity=0, name="total"
)
GREATEST = sw.operator(
    lift=lambda x: x, combine=lambda a, b: a if a >= b else b, identity=-(10**9), selective=True, name="greatest"
)
OPERATORS = [op.with_(object_only=True).typed((object,)) for op in (LETTERS, TOTAL, GREATEST)]
OTHER = {"letters": ("damaged",), "total": 12345, "greatest": 12345}


def states(name: str, op) -> list[Running]:
    """Windows at different moments of their lives, with a query just made and without."""
    found = []
    for seed, query in product(range(6), (False, True)):
        rng = random.Random(seed)
        window = Running(name, op, capacity=8)
        size = 0
        for _ in range(30 + seed):
            if size < 8 and (size == 0 or rng.random() < 0.55):
                window.insert(rng.randrange(1000))
                size += 1
            elif "evict_at" in window.alg.info.offers and size > 2 and rng.random() < 0.4:
                window.evict_at(rng.randrange(size))
                size -= 1
            else:
                window.evict()
                size -= 1
        if query:
            window.query()
        window.check()
        found.append(window)
    empty = Running(name, op, capacity=8)
    empty.insert(1)
    empty.evict()
    return [*found, empty]


def damages(window: Running):
    """Every header word, work word and slot, changed in some way; one at a time."""
    for field in ("H", "W"):
        for k, delta in product(range(len(getattr(window, field))), (-100, -8, -1, 1, 8, 1 << 63)):
            damaged = copy.copy(window)
            words = list(getattr(window, field))
            words[k] += delta
            setattr(damaged, field, words)
            yield damaged
    for k in range(window.scratch):
        damaged = copy.copy(window)
        damaged.V = list(window.V)
        damaged.V[k] = OTHER[window.op.name]
        yield damaged


def assertions(name: str) -> set[int]:
    """The lines of check() and of its helpers that assert something."""
    module = algorithm(name).module
    tree = ast.parse(inspect.getsource(module))
    lines = set()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and "check" in function.name:
            for node in ast.walk(function):
                called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
                if isinstance(node, ast.Assert) or called in ("assert_alike", "ordered"):
                    lines.add(node.lineno)
    return lines


@pytest.mark.parametrize("name", IN_ORDER)
def test_every_assertion_can_fail(name):
    failed = set()
    file = inspect.getsourcefile(algorithm(name).module)
    for op in OPERATORS:
        if serves(name, op) is not None:
            continue
        for window in states(name, op):
            for damaged in damages(window):
                try:
                    damaged.check()
                except AssertionError as error:
                    frames = traceback.extract_tb(error.__traceback__)
                    failed.update(frame.lineno for frame in frames if frame.filename == file)
                except (IndexError, TypeError) as error:
                    pytest.fail(f"{name}: check() runs away on damaged arrays: {error!r}")
    missing = assertions(name) - failed
    assert not missing, f"{name}: nothing made these lines of check() fail: {sorted(missing)}"


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_wrong_partial_is_caught(name):
    """Whatever a query reads next: if it is damaged, check() says so, or the answer of the window does not depend on it."""
    if serves(name, OPERATORS[1]) is not None:
        pytest.skip("this one does not take sums")
    unseen = 0
    for window in states(name, OPERATORS[1]):
        if len(window) == 0:
            continue
        answer = window.query()
        for k in range(window.scratch):
            damaged = copy.copy(window)
            damaged.H, damaged.W, damaged.V = list(window.H), list(window.W), list(window.V)
            damaged.V[k] += 777
            try:
                damaged.check()
            except AssertionError:
                continue
            unseen += damaged.query() != answer
    # Values that are gone (the Lite ones, FlatFIT, AMTA), or that only Recalc combines, cannot be checked against anything.
    keeps_both = {"subtract_on_evict", "two_stacks", "aba", "daba", "flatfat", "slick_deque"}
    if name in keeps_both:
        assert unseen == 0
